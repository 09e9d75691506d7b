# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""What the fault tests share: a job of fault_driver that a test steers by its marks."""

import collections
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from labtest import PUT, R2LAB, RDMA, TOP, UD, UP_RDMA, counters, processes, r2lab, softverbs, until

LAB = "ft%d" % os.getpid()
BUILD = os.environ.get("R2_BUILDDIR", TOP + "/build")
DRIVER = BUILD + "/tests/lab/fault_driver"
WORK = tempfile.mkdtemp(prefix="r2-faults-")
DIGESTS = WORK + "/digests"
LAB_HOSTS = HOSTS = RAILS = 4
LANES = HOSTS * (HOSTS - 1) * RAILS     # one rank per host: each rank counts its own ends
FIXTURES = ("softverbs", "munged", "slurmctld", "slurmscriptd", "slurmd")  # stay between jobs
LIVE_S = 40     # nothing that a test waits for may take longer


def fault(*words):
    """r2lab fault; returns the time when it took effect."""
    return float(r2lab("fault", "--name", LAB, *words)[0].split()[-1])


def heal_all():
    """Undoes all faults."""
    fault("heal", "all", "all")


def nic(host, rail, *words):
    """Tells the RDMA NIC of a rail to fail, or to heal; returns the time."""
    softverbs(LAB, "h%d" % host, "fault", "soft%d" % rail, *words)
    return time.clock_gettime(time.CLOCK_MONOTONIC)


def nic_counters(host=None, device=None):
    """Counters of the RDMA NICs since the lab is up, each the sum of all hosts and devices that are
    meant."""
    sums = collections.Counter()
    for each in [host] if host else ["h%d" % i for i in range(LAB_HOSTS)]:
        for line in softverbs(LAB, each, "counters").splitlines():
            name, what, value = line.split()
            if device in (None, name):
                sums[what] += int(value)
    return sums


def is_fixture(pid):
    """Is a process the RDMA NIC of a host, or a daemon of Slurm?"""
    try:
        with open("/proc/%d/comm" % pid, encoding="ascii") as file:
            return file.read().strip() in FIXTURES
    except OSError:
        return False


def in_jobs():
    """Processes in the lab, but for those that stay."""
    return [p for p in processes(LAB) if not is_fixture(p)]


class Job:
    """One run of fault_driver under mpirun, and what it has said so far."""

    current = None  # shared by tests
    all = []

    def __init__(self, *words, mpirun=(), expect=True, wrapper=()):
        if Job.current is not None and Job.current.child.poll() is None:
            stop_running()
        self.gates = tempfile.mkdtemp(dir=WORK)
        self.lines, self.cursor, self.news = [], 0, threading.Condition()
        self.status = {}
        command = [R2LAB, *self.launch(mpirun), *wrapper, DRIVER, "--gates", self.gates,
                   *map(str, words)]
        if expect:
            command += ["--expect", DIGESTS]
        self.log = open(self.gates + "/stderr", "w+", encoding="utf8")
        self.child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=self.log, text=True)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        Job.all.append(self)

    @staticmethod
    def launch(mpirun):
        """Words for r2lab, up to the program."""
        return ["run", "--name", LAB, "--build", BUILD, "--timeout", "150", "-n", str(HOSTS),
                "--mca", "coll", "r2", *(RDMA * ["--mca", "coll_r2_tls", "ud" if UD else "rc"]),
                *mpirun]

    def _read(self):
        for line in self.child.stdout:
            with self.news:
                line = line.strip("\0 \t\r\n")  # the launcher forwards by pieces, 5.0.7 with NULs
                self.lines.append(line)
                if line.startswith("done "):
                    words = line.split()
                    self.status = {"iteration": int(words[1]), "at": float(words[2])}
                    self.status.update((k, int(v)) for k, v in (w.split("=") for w in words[3:]))
                self.news.notify_all()
        with self.news:
            self.news.notify_all()

    def _wait(self, ready, what, limit_s=LIVE_S):
        """Waits until ready(), which is called with the lines locked, is true."""
        end = time.monotonic() + limit_s
        with self.news:
            while not (got := ready()):
                assert self.reader.is_alive(), "the job ended before " + what + self.tail()
                left = end - time.monotonic()
                assert left > 0, "in vain for %d s: %s%s" % (limit_s, what, self.tail())
                self.news.wait(left)
        return got

    def wait(self, pattern, limit_s=LIVE_S):
        """Waits for the next line that matches."""
        def ready():
            while self.cursor < len(self.lines):
                found = re.match(pattern, self.lines[self.cursor])
                self.cursor += 1
                if found:
                    return found
            return None
        return self._wait(ready, "a line like '%s'" % pattern, limit_s)

    def now_in(self, kind):
        """Waits until rank 0 enters a collective of this kind, from now on."""
        with self.news:
            self.cursor = len(self.lines)
        self.wait("begin .* %s " % kind)

    def matching(self, pattern):
        """All lines so far that match."""
        with self.news:
            return [found for found in (re.match(pattern, line) for line in self.lines) if found]

    def said(self, pattern, count):
        """Waits until so many different lines match."""
        def ready():
            return len({line for line in self.lines if re.match(pattern, line)}) >= count
        self._wait(ready, "%d lines like '%s'" % (count, pattern))

    def until(self, what, condition, limit_s=LIVE_S):
        """Waits until the counters fulfil a condition."""
        self._wait(lambda: self.status and condition(self.status), what, limit_s)

    def iterations(self, count=2):
        """Waits until so many more iterations that began from now on are complete."""
        first = self.status.get("iteration", -1) + 1
        self.until("iteration %d" % (first + count), lambda s: s["iteration"] >= first + count)

    def usable(self):
        """Lane ends that are up now."""
        return self.status["lanes_up"] - self.status["lanes_closed"]

    def whole(self, lanes=LANES):
        """Waits until all lanes are up."""
        self.until("all lanes up", lambda s: s["lanes_up"] - s["lanes_closed"] == lanes)

    def open(self, *gates):
        """Lets the job through a gate."""
        for gate in gates:
            with open("%s/%s" % (self.gates, gate), "w", encoding="ascii"):
                pass

    def close(self, *gates):
        """Closes a gate again."""
        for gate in gates:
            os.unlink("%s/%s" % (self.gates, gate))

    def begin(self):
        """Through all gates at the start, and the first iteration."""
        self.open("init", "first")
        self.until("the first iteration", lambda s: True)
        return self

    def pids(self):
        """Process id of each rank."""
        self._wait(lambda: len(self.ranks()) == HOSTS, "all ranks")
        return self.ranks()

    def ranks(self):
        """Process ids known so far."""
        pairs = (re.match(r"rank (\d+) pid (\d+)", line) for line in self.lines)
        return {int(p[1]): int(p[2]) for p in pairs if p}

    def error_text(self):
        """What the job wrote to standard error."""
        self.log.flush()
        with open(self.log.name, encoding="utf8") as log:
            return log.read()

    def tail(self):
        """The end of all that the job said, for a failure report."""
        return "\n" + "\n".join(self.lines[-6:]) + "\n" + self.error_text()[-3000:]

    def ended(self, limit_s=LIVE_S):
        """Waits for the end of the job; returns its exit status."""
        try:
            status = self.child.wait(limit_s)
        except subprocess.TimeoutExpired:
            raise AssertionError("the job does not end" + self.tail()) from None
        self.reader.join(10)
        assert until(lambda: not in_jobs()), "processes are left"
        assert not os.listdir("/run/r2lab/%s/runs" % LAB), "files are left"
        return status

    def finish(self):
        """Ends the job in good order and checks its verdict."""
        self.open("stop", "finalize")
        status = self.ended()
        bad = self.matching("(wrong|error) ")
        assert not bad, bad[0].string
        verdicts = self.matching(r"verdict (\d+) 0 ")
        assert len({v[1] for v in verdicts}) == HOSTS and status == 0, self.tail()

    def right(self):
        """Fails as soon as the job has reported a mistake."""
        bad = self.matching("(wrong|error) ")
        assert not bad, bad[0].string

    def kill(self, at_once=False):
        """Ends the job somehow. at_once: mpirun as well, which else takes all of the 3 s that
        r2lab leaves it where a rank has died and others go on."""
        for pid in in_jobs() if at_once else ():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if self.child.poll() is None and not at_once:
            self.child.send_signal(signal.SIGTERM)
        try:
            self.child.wait(20)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
        until(lambda: not in_jobs(), 5)

    def extra_ms(self, at_s):
        """(kind of the collective under way at a time, ms that it took longer than usual)."""
        marks = [(float(m[2]), m[1]) for m in self.matching(r"begin \d+ (\w+) ([\d.]+)")]
        marks += [(float(m[1]), "") for m in self.matching(r"done \d+ ([\d.]+)")]
        marks.sort()
        took = {}
        for (start, kind), (end, _) in zip(marks, marks[1:]):
            took.setdefault(kind, []).append((start, end - start))
        for kind, rows in took.items():
            for start, length in rows:
                if start <= at_s < start + length and kind:
                    usual = statistics.median(each for _, each in rows)
                    return kind, 1e3 * (length - usual)
        return "nothing", 0.0


def running():
    """The job that tests share; a new one if there is none (or it has failed)."""
    if Job.current is None or Job.current.child.poll() is not None:
        Job.current = Job().begin()
        Job.current.whole()
        assert Job.current.status["lanes_failed"] == 0, "a healthy lane failed" + Job.current.tail()
    return Job.current


def stop_running():
    """Ends the shared job with its verdict."""
    job, Job.current = Job.current, None
    if job is not None:
        job.finish()


def recover():
    """After a failed test: its job is gone, the lab is whole."""
    Job.current = None
    for job in Job.all:
        job.kill()
    heal_all()
    for host in range(HOSTS if RDMA else 0):
        for rail in range(RAILS):
            nic(host, rail, "heal")


def device_bytes(host, rail):
    """Bytes sent and received so far by one device."""
    numbers = counters(LAB)["h%d" % host]["rail%d" % rail]
    return numbers["tx_bytes"], numbers["rx_bytes"]


def flows(job, host, rail, least=100000):
    """Waits until collectives use a rail again, in both directions."""
    before = device_bytes(host, rail)

    def used():
        return all(b - a > least for a, b in zip(before, device_bytes(host, rail)))
    assert until(used, LIVE_S), "rail%d of h%d carries nothing%s" % (rail, host, job.tail())


def episode(breaks, rails, kind="float", noticed=True, heals=None):
    """A fault in the middle of a collective; calls go on; healed, all lanes and bytes come back.

    breaks: words for r2lab fault. rails: [(host, rail)] concerned. Returns a diagnostic."""
    job = running()
    failed, resent = job.status["lanes_failed"], job.status["resent_chunks"]
    job.now_in(kind)
    at = fault(*breaks)
    job.iterations(2)
    if noticed:
        job.until("a failed lane", lambda s: s["lanes_failed"] > failed)
    what, extra = job.extra_ms(at)
    start = time.monotonic()
    if heals:
        fault(*heals)
    else:
        for host, rail in rails:
            fault("heal", "h%d" % host, "rail%d" % rail)
    job.whole()
    back = time.monotonic() - start
    for host, rail in rails:
        flows(job, host, rail)
    job.right()
    return ", hit %s: %+.0f ms, %d chunks again, lanes back after %.1f s" % (
        what, extra, job.status["resent_chunks"] - resent, back)


def goes_by_rdma(said):
    """Every rail of every host goes by the transport that is tested: r2 says so."""
    lines = [line for line in said.splitlines() if "coll:r2: in use on" in line]
    assert len(lines) == HOSTS, said
    assert all(line.count(", ud_verbs" if UD else ", rc_verbs") == RAILS for line in lines), lines


def placed(job):
    """The part of a job's payload that its receivers did not copy."""
    return job.status["placed_bytes"] / job.status["rx_bytes"]


def up(shares=False):
    """Raises the lab and learns the bits of the healthy run, of the two kinds that have floats.
    shares: the job that learned them is the one that tests share."""
    assert os.access(DRIVER, os.X_OK), "%s is not built" % DRIVER
    r2lab("up", "--name", LAB, "--hosts", HOSTS, "--rails", RAILS, "--rate", "100mbit",
          *UP_RDMA)
    job = Job("--learn", DIGESTS, expect=False, mpirun=RDMA * ("--mca", "coll_r2_verbose", "2"))
    job.begin()
    job.wait("learned", 90)
    assert job.status["lanes_failed"] == 0, "a healthy lane failed" + job.tail()
    if RDMA:
        goes_by_rdma(job.error_text())
    assert PUT == (placed(job) > 0), "%.3f of the bytes were put" % placed(job)
    if shares:
        job.whole()
        Job.current = job
    else:
        job.finish()


def down():
    """Takes everything away."""
    for job in Job.all:
        job.kill()
    subprocess.run([R2LAB, "down", "--name", LAB], check=False, stdout=subprocess.DEVNULL)
    if "R2_KEEP" not in os.environ:
        shutil.rmtree(WORK)
    sys.stdout.flush()


def killed(job):
    """A rank is killed in a collective: the job ends with an error. Returns a note."""
    job.now_in("float")
    os.kill(job.pids()[2], signal.SIGKILL)
    start = time.monotonic()
    assert job.ended() not in (0, 124)
    return ", ended after %.1f s" % (time.monotonic() - start)


def killed_errors(job, at_once=False):
    """The same, where errors return: all survivors get one that names it. at_once: how they are
    ended. Returns a note."""
    job.now_in("float")
    start = time.monotonic()
    os.kill(job.pids()[2], signal.SIGKILL)
    job.said("error [013] ", HOSTS - 1)
    took = time.monotonic() - start
    job.said("poisoned [013] ", HOSTS - 1)
    said = job.error_text()
    job.kill(at_once)
    assert "rank 2 on %s-h2" % LAB in said and "the peer process is gone" in said, said
    return ", after %.1f s" % took
