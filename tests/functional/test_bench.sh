#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The r2 authors
# The benchmarks on Open MPI's own collectives: options, columns, validation, digests, faults, CSV,
# plot.
# Runs in the build directory. Prints TAP.
set -u
build=${R2_BUILDDIR:-$(pwd)}
source=${R2_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
number=0
failed=0

# bench RANKS PROGRAM ARGUMENT...: output in $work/out and $work/err, exit status in $rc.
bench() {
    local ranks=$1 program=$2
    shift 2
    # shellcheck disable=SC2086 # options are split on purpose
    timeout 60 "$source/tests/functional/run-mpi" -n "$ranks" --mca coll ^r2 ${MCA:-} \
        "$build/bench/osu/$program" "$@" >"$work/out" 2>"$work/err"
    rc=$?
}

# verdict TITLE: the exit status of the command before decides.
verdict() {
    local ok=$?
    number=$((number + 1))
    if [ $ok -eq 0 ]; then
        echo "ok $number - $1"
        return
    fi
    failed=$((failed + 1))
    echo "not ok $number - $1"
    { echo "exit status $rc"; cat "$work/out" "$work/err"; } 2>/dev/null | sed 's/^/# /' \
        | head -n 30
}

has() { grep -Eq -- "$1" "$work/out"; }
complains() { grep -Eq -- "$1" "$work/err"; }

# A fault command with the interface of r2lab: prints CLOCK_MONOTONIC last.
cat >"$work/fault" <<'EOT'
#!/bin/sh
echo "$*" >>"${0%/*}/words"
exec python3 -c 'import sys, time; print("fault", *sys.argv[1:], "at %.9f" % time.monotonic())' "$@"
EOT
chmod +x "$work/fault"

for program in r2_allreduce r2_allgather r2_reduce_scatter; do
    bench 4 $program -m 4:64K -i 10 -x 2 -c
    [ $rc -eq 0 ] && has '^65536 .* Pass ' \
        && has '# validation: 150 iterations on 4 ranks, 0 wrong' &&
        ! has Fail
    verdict "$program: all sizes are right"
    bench 3 $program -m 4:40 -i 5 -x 0 -c -f -T mpi_double
    [ $rc -eq 0 ] &&
        has 'Size +Avg Latency\(us\) +Min Latency\(us\) +Max Latency\(us\) +Iterations' &&
        has '^32 +[0-9.]+ +[0-9.]+ +[0-9.]+ +5 +Pass'
    verdict "$program: full columns, 3 ranks, doubles, fewer elements than ranks"
    bench 1 $program -m 8:8 -i 5 -x 0 -c -T mpi_int
    [ $rc -eq 0 ] && has '^8 .* Pass +0.00'
    verdict "$program: one rank"
    defects=sum
    [ $program != r2_allreduce ] || defects="sum hole send guard"
    for defect in $defects; do
        bench 4 $program -m 4K:8K -i 4 -x 1 -c --plant-error $defect
        [ $rc -eq 1 ] && has '^4096 .* Fail' && has '^8192 .* Pass' && has ', 1 wrong results' &&
            complains 'rank 3, 4096 bytes, iteration 1: '
        verdict "$program: validation finds a planted error: $defect"
    done
done

bench 4 r2_allgather -m 1:16 -i 5 -x 0 -c
[ $rc -eq 0 ] && has '^1 .* Pass' && has mpi_char
verdict "allgather of bytes"
bench 4 r2_allreduce -m 8 -i 3 -x 0
[ $rc -eq 0 ] && has '^4 ' && has '^8 ' && ! has '^16 ' && ! has Pass
verdict "-m MAX starts with one element; no -c, no validation"
bench 2 r2_allreduce -m 16K:16K -x 1 -i 3 --line-rate 1000
[ $rc -eq 0 ] && has 'Bus BW\(MB/s\) +% line' && has '^16384 +[0-9.]+ +[0-9.]+ +[0-9.]+$'
verdict "share of the line rate"
start=$(date +%s)
bench 4 r2_allreduce -m 64K:128K -x 1 --seconds 1 --progress
took=$(($(date +%s) - start))
[ $rc -eq 0 ] && [ $took -ge 2 ] && [ $took -le 20 ] && has '^131072 ' &&
    complains '131072 bytes, [0-9.]+ s, iteration [0-9]+, '
verdict "--seconds runs each size that long, with progress"

bench 2 r2_bench reduce -m 8:16 -i 4 -x 0 -c -T all --csv "$work/t.csv"
[ $rc -eq 0 ] && [ "$(grep -c '^# Size' "$work/out")" -eq 3 ] && has 'Test v.*, mpi_int$' &&
    has 'Test v.*, mpi_float$' && has 'Test v.*, mpi_double$' && ! has mpi_char &&
    has '# validation: 24 iterations' && [ "$(grep -c '^# type mpi_' "$work/t.csv")" -eq 3 ]
verdict "-T all: a table for each type that has a sum"
bench 2 r2_bench gather -m 8:8 -i 4 -x 0 -T all
[ $rc -eq 0 ] && [ "$(grep -c '^# Size' "$work/out")" -eq 4 ] && has mpi_char
verdict "-T all: bytes too where nothing is added up"
bench 2 r2_bench allreduce -m 8:8 -i 50 -x 2 -z -f
[ $rc -eq 0 ] && has 'Iterations +P50 Tail Lat\(us\) +P90 Tail Lat\(us\) +P99 Tail Lat\(us\)' &&
    awk '/^8 / { exit !(NF == 9 && $6 > 0 && $6 <= $7 && $7 <= $8) }' "$work/out"
verdict "-z: percentiles ascend"
bench 4 r2_bench allgather -m 1:1K -i 2 -x 0 -M 1000
[ $rc -eq 0 ] && has '^128 ' && ! has '^256 ' &&
    complains 'sizes from 256 bytes on are left out: their buffers are 1280 bytes'
verdict "-M: sizes whose buffers are larger are left out"
for name in bcast gather gatherv reduce scatter scatterv; do
    bench 3 r2_bench $name -m 4:4K -i 7 -x 1 -c -T mpi_int -k rotate
    [ $rc -eq 0 ] && has 'validation: 77 iterations on 3 ranks, 0 wrong results'
    verdict "$name: the root rotates"
    bench 3 r2_bench i$name -m 4K:4K -i 3 -x 1 -c -k fixed:2 --plant-error sum
    [ $rc -eq 1 ] && complains 'rank 2, 4096 bytes, iteration 1: '
    verdict "i$name: another root, a planted error"
done
bench 2 r2_bench bcast -m 8:8 -i 2 -k fixed:2
[ $rc -eq 2 ] && complains 'no such rank'
verdict "a root that is none"
bench 2 r2_bench bcast -m 8:8 -i 2 -x 0 -d host
[ $rc -eq 0 ] && has '^8 '
verdict "-d host"
bench 2 r2_bench bcast -m 8:8 -i 2 -d rocm
[ $rc -eq 2 ] && complains "'rocm': expected host, cuda or managed"
verdict "-d rocm is refused"

# Buffers in memory of GPUs, on the stand-in for the driver (docs/fakecuda.md); with r2, since Open
# MPI's own collectives cannot read it.
gpu() { # RANKS PROGRAM ARGUMENT...
    rm -f "$work"/gpu.*
    OMPI_MCA_coll_r2_gpu=auto LD_LIBRARY_PATH="$build/tests/fakecuda/.libs" \
        FAKECUDA_KERNELS="$build/tests/doubles/.libs/kernels_c.so" \
        FAKECUDA_STATS="$work/gpu" FAKECUDA_DELAY_US=${DELAY_US:-0} \
        timeout 100 "$source/tests/functional/run-mpi" -n "$1" --mca coll r2 -x LD_LIBRARY_PATH \
        "$build/bench/osu/$2" "${@:3}" >"$work/out" 2>"$work/err"
    rc=$?
    ! complains MISTAKE
}
# on_gpus COUNTER RANKS: each rank's driver counted something.
on_gpus() { [ "$(grep -hEc "^$1 [1-9]" "$work"/gpu.* | grep -c '^1$')" -eq "$2" ]; }
for place in cuda managed; do
    counter=cuMemAlloc_v2
    [ $place = cuda ] || counter=cuMemAllocManaged
    gpu 3 r2_allreduce -m 4:64K -i 4 -x 1 -c -d $place && [ $rc -eq 0 ] \
        && has "^# buffers: $place\$" && has "# validation: 60 iterations on 3 ranks, 0 wrong" \
        && on_gpus $counter 3
    verdict "-d $place: all sizes are right"
    FAKECUDA_DEVICES=2 DELAY_US=50 gpu 2 r2_bench ialltoallv -m 1:4K -i 3 -x 1 -c -d $place \
        && [ $rc -eq 0 ] && has ', 0 wrong' && on_gpus $counter 2
    verdict "-d $place: nonblocking, two devices, copies take a while"
    for name in reduce_scatter bcast gather_persistent; do
        gpu 3 r2_bench $name -m 4K:8K -i 6 -x 1 -c -d $place --plant-error all
        defects=4
        [ $name != bcast ] || defects=3
        [ $rc -eq 1 ] && has ' Fail' && ! has '^8192.*Fail' && has ", $defects wrong results" \
            && [ "$(grep -c 'iteration [1-4]: ' "$work/err")" -eq $defects ]
        verdict "-d $place: planted errors in $name are found"
    done
done
gpu 2 r2_allreduce -m 4K:4K -x 0 -i 6 --digest -d cuda && [ $rc -eq 0 ] \
    && digest=$(awk '/^4096 / { print $NF }' "$work/out") \
    && gpu 2 r2_allreduce -m 4K:4K -x 0 -i 6 --digest \
    && [[ $digest =~ ^[0-9a-f]{16}$ ]] && has "$digest\$"
verdict "-d cuda: the digest is that of buffers of the host"
for name in latency bibw; do
    gpu 2 r2_bench $name -m 1:256K -i 4 -x 1 -c -d cuda
    [ $rc -eq 0 ] && has '# validation: 76 iterations on 2 ranks, 0 wrong' \
        && on_gpus cuMemAlloc_v2 2
    verdict "-d cuda: $name"
done
# A file that is no library, on hosts that have a driver, too.
mkdir "$work/no-driver" && : >"$work/no-driver/libcuda.so.1"
LD_LIBRARY_PATH=$work/no-driver bench 2 r2_allreduce -m 8:8 -i 2 -d cuda
[ $rc -eq 1 ] && [ ! -s "$work/out" ] \
    && [ "$(grep -c '^r2_allreduce: -d cuda: rank [01]: there is no CUDA driver: ' \
        "$work/err")" = 2 ]
verdict "-d cuda without a driver"
FAKECUDA_FAULTS=cuInit@1=100 gpu 2 r2_allreduce -m 8:8 -i 2 -d managed
[ $rc -eq 1 ] && [ ! -s "$work/out" ] \
    && [ "$(grep -c 'rank [01]: cuInit returned CUDA_ERROR_NO_DEVICE (100)' "$work/err")" = 2 ]
verdict "-d managed without a device"
FAKECUDA_MEMORY=65536 gpu 2 r2_allreduce -m 32K:1M -i 2 -x 0 -d cuda
[ $rc -eq 1 ] && complains 'not enough memory for the buffers'
verdict "-d cuda: the memory of the device is used up"
FAKECUDA_FAULTS=cuMemcpyDtoH_v2@3=999 gpu 2 r2_allreduce -m 8:8 -i 9 -x 0 -c -d cuda
[ $rc -ne 0 ] && complains 'cuMemcpyDtoH returned CUDA_ERROR_UNKNOWN'
verdict "-d cuda: a copy that fails"

# Bad arguments: exit status 2 and one usage text, alone and from several ranks.
bad() {
    "$build/bench/osu/r2_allreduce" "$@" >"$work/out" 2>"$work/err"
    rc=$?
    [ $rc -eq 2 ] && [ "$(grep -c '^usage: ' "$work/err")" -eq 1 ] && [ ! -s "$work/out" ]
    verdict "refused: $*"
}
bench 3 r2_allreduce -m 4:x
[ $rc -eq 2 ] && [ "$(grep -c '^usage: ' "$work/err")" -eq 1 ] && [ ! -s "$work/out" ]
verdict "refused by three ranks: -m 4:x"
bad -m 4:x
bad -m 64:4
bad -m :
bad -m 1:2
bad -i 0
bad -i -5
bad -i
bad -x many
bad -T mpi_char
bad -T float
bad --seconds 0
bad --seconds 1 -i 5
bad --line-rate nan
bad --fault '5 down h1 rail2'
bad --fault 'soon down h1 rail2' --fault-cmd true
bad --fault '5 down' --fault-cmd true
bad --fault '1 2 3 4 5 6 7 8 9 10' --fault-cmd true
bad --plant-error sum
bad -T all -m 4:4
bad -u few -c
bad -M much
bad -k rotate
bad -k 1
bad -t 3
bad --unknown
bad 16

bench 2 r2_allgather -h
[ $rc -eq 0 ] && [ "$(grep -c '^usage: ' "$work/out")" -eq 1 ]
verdict "-h"
bench 2 r2_allgather -v
[ $rc -eq 0 ] && [ "$(grep -c '^r2_allgather [0-9]' "$work/out")" -eq 1 ]
verdict "-v"
bench 2 r2_allreduce -m 8:8 -i 2 -x 0 --csv "$work/none/x.csv"
[ $rc -eq 1 ] && complains 'none/x.csv: No such file'
verdict "a CSV file that cannot be written"

# Digests: the same order of additions, the same digest.
digest() {
    MCA="--mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_allreduce_algorithm $1" \
        bench 4 r2_allreduce -m 4K:4K -x 0 -i 6 --digest
    awk '/^4096 / { print $NF }' "$work/out"
}
ring=$(digest 4)
again=$(digest 4)
other=$(digest 2)
[[ $ring =~ ^[0-9a-f]{16}$ ]] && [ "$ring" = "$again" ]
verdict "equal digests of equal runs"
[[ $other =~ ^[0-9a-f]{16}$ ]] && [ "$ring" != "$other" ]
verdict "another order of additions, another digest"
bench 4 r2_reduce_scatter -m 4K:4K -x 0 -i 6 --digest -c
[ $rc -eq 0 ] && has 'Pass .*[0-9a-f]{16}$'
verdict "digest and validation together"

# Faults.
bench 4 r2_allreduce -m 256K:256K -x 1 --seconds 3 --fault '1s rate=10mbit h1 rail2' \
    --fault '2s heal h1 rail2' --fault '3 --at switch down h0 rail1' --fault '1.5s heal h0 rail1' \
    --fault-cmd "$work/fault" --csv "$work/x.csv"
[ $rc -eq 0 ] && [ "$(sort "$work/words" | tr '\n' ,)" = \
    "--at switch down h0 rail1,heal h0 rail1,heal h1 rail2,rate=10mbit h1 rail2," ]
verdict "faults are carried out, with their words"
has '^  before ' && has '^  during .* --at switch down h0 rail1$' \
    && has '^  after .* heal h1 rail2$' &&
    has 're-sent: -'
verdict "phases before, during and after"
awk -F, '
    /^time_s,/ { head = ($0 == "time_s,iteration,bytes,latency_us,bus_mb_per_s") }
    /^[0-9]/ { n++; if (NF != 5 || $1 < last || $2 != n - 1 || $3 != 262144) bad = 1; last = $1 }
    /^# fault / {
        split($0, w, " ")
        faults++
        if (w[3] < before || w[3] > 4) bad = 1
        before = w[3]
    }
    END { exit !(head && n > 3 && faults == 4 && !bad) }' "$work/x.csv"
verdict "CSV file: an ascending line for each iteration, faults in order"
if command -v gnuplot >/dev/null; then
    "$source/bench/osu/plot_fault" "$work/x.csv" "$work/x.png" >"$work/out" 2>"$work/err"
    rc=$?
    [ $rc -eq 0 ] && [ "$(head -c 4 "$work/x.png" | tail -c 3)" = PNG ]
    verdict "plot"
else
    number=$((number + 1))
    echo "ok $number - plot # SKIP no gnuplot"
fi
bench 2 r2_allreduce -m 8:8 -i 5 -x 0 --fault '2 down h1 rail2' --fault-cmd false
[ $rc -eq 1 ] && complains "fault 'down h1 rail2': .*exit status 1"
verdict "a fault command that fails"
bench 2 r2_allreduce -m 8:8 -i 5 -x 0 --fault '50 down h1 rail2' --fault-cmd "$work/fault"
[ $rc -eq 1 ] && complains "fault 'down h1 rail2' was not carried out"
verdict "a fault that comes too late"
bench 2 r2_allreduce -m 8:8 -i 5 -x 0 --fault '60s down h1 rail2' --fault-cmd "$work/fault"
sleep 0.2
! pgrep -f "$work/fault" >/dev/null
verdict "the helper does not outlive the benchmark"

# Faults beside the benchmarks of others: any command, here a shell's.
beside() { # STATUS ARGUMENT...: of bench/osu/run
    local wanted=$1
    shift
    rm -f "$work/words"
    timeout 60 "$source/bench/osu/run" "$@" >"$work/out" 2>"$work/err"
    rc=$?
    [ $rc -eq "$wanted" ]
}
beside 0 --fault '700ms heal h1 rail2' --fault '0.2s --at switch down h1 rail2' \
    --fault-cmd "$work/fault" --with sh -c 'echo "# Size"; sleep 0.5; echo 8; sleep 0.7; echo 16' \
    && [ "$(sed 's/[0-9.]*[.][0-9]* /T /' "$work/out" | tr '\n' ,)" = \
        "# Size,# fault T --at switch down h1 rail2,8,# fault T heal h1 rail2,16," ] \
    && [ "$(tr '\n' , <"$work/words")" = "--at switch down h1 rail2,heal h1 rail2," ]
verdict "faults beside another program, in the order of time, between its lines"
beside 7 --with sh -c 'exit 7' && beside 1 --with sh -c 'kill -9 $$'
verdict "its exit status is passed on"
beside 1 --fault '50s down h1 rail2' --fault-cmd true --with true \
    && complains "'down h1 rail2' was not carried out"
verdict "a fault that comes too late beside it"
beside 1 --fault '10ms down h1 rail2' --fault-cmd false --with sleep 0.5 \
    && complains 'false down h1 rail2: exit status 1'
verdict "a fault command that fails beside it"
beside 124 --limit 1 --with sh -c 'sleep 30 & sleep 30'
verdict "it is ended after a time"
beside 2 --with "$work/none" && beside 2 --fault '5 down h1 rail2' --fault-cmd true --with true \
    && beside 2 --fault '5s down h1 rail2' --with true && beside 2 --fault
verdict "arguments that are wrong, a program that is none"

echo "1..$number"
[ $failed -eq 0 ]
