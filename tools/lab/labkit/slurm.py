# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
"""The verbs `slurm up`, `slurm run` and `slurm down`: a Slurm of the lab's own.

munged and slurmctld run on h0, a slurmd on every host; all their files, the key too, lie in
DIR/slurm of the lab, and nothing of this machine's own Slurm or munge is read. Steps share the
namespaces of their host's slurmd, so ranks of one host see each other as on a machine. Daemons
carry the mark of a run, R2LAB_RUN_ID=LAB.slurm, and end with `slurm down` or with the lab.
"""

import os
import shutil
import time

from . import openmpi, run, sweep
from .launch import environment
from .spawn import LabError, attempt, must

DAEMONS = ("munged", "slurmctld", "slurmd")
CLIENTS = ("srun", "sinfo", "scancel")
SLOTS = 16              # ranks that a host takes, whatever it has
START_S = 20.0          # for all hosts to be idle
POLL_S = 0.1

# config_overrides: hosts have as many CPUs as is said here. FORCE: runs may overlap.
CONF = """\
ClusterName={name}
SlurmctldHost={h0}({address0})
AuthType=auth/munge
AuthInfo=socket={dir}/munge.socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation={dir}/state
SlurmdSpoolDir={dir}/spool.%n
SlurmctldPidFile={dir}/slurmctld.pid
SlurmdPidFile={dir}/%n.pid
SlurmctldLogFile={dir}/slurmctld.log
SlurmdLogFile={dir}/%n.log
SlurmdParameters=config_overrides
TmpFS={tmp}
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
SchedulerType=sched/builtin
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
{nodes}
PartitionName=lab Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:{slots}
"""

# Hosts of a lab have a /sys of their own, without cgroups: v1 looks for none before it needs them.
CGROUP_CONF = "CgroupPlugin=cgroup/v1\n"


def folder(lab):
    """Where all files of the lab's Slurm are."""
    return lab.dir + "/slurm"


def mark(lab):
    """What its daemons carry."""
    return lab.name + ".slurm"


def is_up(lab):
    """Has `slurm up` ended well, and has nobody taken it down since?"""
    return os.path.exists(folder(lab) + "/up")


def variables(lab):
    """What a command of Slurm needs to find this one."""
    return {"SLURM_CONF": folder(lab) + "/slurm.conf", "R2LAB_NAME": lab.name, "R2LAB_DIR": lab.dir,
            "R2LAB_RUN_DIR": folder(lab)}


def on_host(lab, host, *argv, **more):
    """argv, to be run on a host, with those variables and more of them."""
    words = ["%s=%s" % pair for pair in {**variables(lab), **more}.items()]
    return ["env", *words, "/bin/sh", run.ENTER, lab.host(host), *argv]


def check_installed():
    """Refuses what cannot work before anything is started."""
    missing = [name for name in (*DAEMONS, *CLIENTS) if not shutil.which(name)]
    if missing:
        raise LabError("missing: %s; on Debian: tools/deps.sh slurm, or apt install slurmctld "
                       "slurmd slurm-client slurm-wlm-basic-plugins munge" % " ".join(missing))
    if os.geteuid() != 0:
        raise LabError("the lab's Slurm needs root")


def up(lab):
    """The verb `slurm up`."""
    check_installed()
    if os.path.exists(folder(lab)):
        raise LabError("lab %s has a Slurm already: `r2lab slurm down --name %s`"
                       % (lab.name, lab.name))
    start = time.monotonic()
    try:
        write_files(lab)
        must([on_host(lab, 0, "munged", *munge_options(lab), R2LAB_RUN_ID=mark(lab))])
        must([on_host(lab, 0, "slurmctld", R2LAB_RUN_ID=mark(lab))]
             + [on_host(lab, h, "slurmd", "-N", lab.host(h), R2LAB_RUN_ID=mark(lab))
                for h in range(lab.hosts)])
        wait_idle(lab)
        with open(folder(lab) + "/up", "w", encoding="ascii"):
            pass
    except LabError as error:
        said = "%s\n%s" % (error, log_ends(lab))
        down(lab)
        raise LabError(said.strip()) from None
    except BaseException:
        down(lab)
        raise
    print("lab %s: Slurm is up in %.2f s" % (lab.name, time.monotonic() - start))
    return 0


def munge_options(lab):
    """munged of the lab alone. --force: /run may be writable for groups, which it complains of."""
    top = folder(lab)
    return ["--force", "--num-threads=2", "--socket=%s/munge.socket" % top,
            "--key-file=%s/munge.key" % top, "--pid-file=%s/munged.pid" % top,
            "--log-file=%s/munged.log" % top, "--seed-file=%s/munge.seed" % top]


def write_files(lab):
    """The folder, the key and slurm.conf."""
    top = folder(lab)
    os.makedirs(top + "/state", mode=0o755)
    with open(top + "/munge.key", "wb", opener=lambda p, f: os.open(p, f, 0o600)) as out:
        out.write(os.urandom(128))
    with open(top + "/cgroup.conf", "w", encoding="ascii") as out:
        out.write(CGROUP_CONF)
    nodes = ["NodeName=%s NodeHostname=%s NodeAddr=%s CPUs=%d State=UNKNOWN"
             % (lab.host(h), lab.host(h), lab.address(h, "mgmt0"), SLOTS)
             for h in range(lab.hosts)]
    with open(top + "/slurm.conf", "w", encoding="ascii") as out:
        out.write(CONF.format(name=lab.name, h0=lab.host(0), address0=lab.address(0, "mgmt0"),
                              dir=top, tmp=lab.dir + "/tmp", nodes="\n".join(nodes), slots=SLOTS))


def wait_idle(lab):
    """Until every host can take a job; else an error with what the daemons have logged."""
    end = time.monotonic() + START_S
    said = ""
    while time.monotonic() < end:
        status, said = attempt([on_host(lab, 0, "sinfo", "-h", "-N", "-o", "%T")])[0]
        if status == 0 and said.split() == ["idle"] * lab.hosts:
            return
        time.sleep(POLL_S)
    raise LabError("Slurm does not come up: " + said.strip())


def log_ends(lab):
    """The last lines of all logs."""
    text = ""
    for name in sorted(os.listdir(folder(lab))):
        if name.endswith(".log"):
            with open("%s/%s" % (folder(lab), name), encoding="utf8", errors="replace") as source:
                text += "".join("%s: %s" % (name, line) for line in source.readlines()[-5:])
    return text


def command(lab, run_id, arguments):
    """srun with what a lab needs. Without a task plugin ranks are bound to nothing."""
    return ["srun", "--job-name=" + run_id, "--export=ALL", *arguments]


def start(lab, arguments, p2p=None, timeout_s=None, build=None, show=False):
    """The verb `slurm run`: srun's arguments to srun's exit status."""
    if not is_up(lab):
        raise LabError("lab %s has no Slurm: `r2lab slurm up --name %s`" % (lab.name, lab.name))
    run_id = "%s.%d" % (lab.name, os.getpid())
    run_dir = "%s/runs/%s" % (lab.dir, run_id)
    version = openmpi.major()
    added = environment(lab, run_id, run_dir, version, None, p2p, 0, build, launches=False)
    added.update(openmpi.quiet(version))
    added.update(variables(lab))
    srun = command(lab, run_id, arguments)
    if show:
        run.say_command(added, srun)
        return 0
    for crashed in list(sweep.crashed_runs(lab)):
        end(lab, crashed)
    lock = run.make_run_dir(lab, run_id, run_dir, 0)
    with open(run_dir + "/slurm", "w", encoding="ascii"):
        pass
    argv = ["/bin/sh", run.ENTER, lab.host(0), "setpriv", "--pdeathsig", "TERM", "--", *srun]
    try:
        return run.Supervisor(lab, run_id, timeout_s).watch(argv, {**os.environ, **added})
    finally:
        end(lab, run_id)
        os.close(lock)


def cancel(lab, run_id):
    """Ends the job of a run, if there still is one."""
    attempt([on_host(lab, 0, "scancel", "--quiet", "--name=" + run_id)])


def end(lab, run_id):
    """Cancels what Slurm still has of a run, ends its processes and removes its files."""
    if is_up(lab):      # else scancel would wait for slurmctld
        cancel(lab, run_id)
    sweep.remove_run(lab, run_id, run.EXIT_GRACE_S)


def down(lab):
    """The verb `slurm down`: ends runs and daemons, and removes all files."""
    had_jobs = is_up(lab)
    if had_jobs:
        os.unlink(folder(lab) + "/up")
    for run_id in os.listdir(lab.dir + "/runs"):
        if os.path.exists("%s/runs/%s/slurm" % (lab.dir, run_id)):
            if had_jobs:
                cancel(lab, run_id)
            sweep.remove_run(lab, run_id, run.EXIT_GRACE_S)
    sweep.end(sweep.namespace_ids(lab.namespaces()), mark(lab))
    shutil.rmtree(folder(lab), ignore_errors=True)
    return 0
