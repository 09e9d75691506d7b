/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * One-sided communication and long messages by NICs (coll_r2_direct), on two hosts or more: it is
 * counted how much went so, a rank computes meanwhile, and rounds go on while rails fail. Every
 * byte is compared; what was written is marked as given back while it is looked at, so that the
 * NICs of tests/softverbs tell of any write that comes late. Output: TAP, from rank 0. Arguments:
 * rounds; then "none" where NICs are to move nothing, or a file: once it is there, a few rounds are
 * left.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "counted.h"
#include "pattern.h"

#define SLOT      (4 << 20) /* bytes of the window for each of the two that move */
#define COMPUTE_S 0.3
#define QUICK_S   0.2 /* of that: with a copy of 4 MiB, and other ranks on the same cores */
#define TRIES     3   /* until one is quick: on a busy machine not all are */
#define AFTER     3   /* rounds that are left once the test has seen enough */

static int me, size, number;
static double took_s[2]; /* from who computes: written, read */
static unsigned char *out, *in, *window;
static MPI_Win win;

/* Nobody may write to the window from now on, until it is taken. */
static void give_back(void)
{
    int (*tell)(const void *, size_t) =
        (int (*)(const void *, size_t)) dlsym(RTLD_DEFAULT, "softverbs_give_back");

    if (NULL != tell && 0 == tell(window, 2 * SLOT)) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void take(void)
{
    void (*tell)(const void *) = (void (*)(const void *)) dlsym(RTLD_DEFAULT, "softverbs_take");

    if (NULL != tell) {
        tell(window);
    }
}

static void compute(double seconds)
{
    const double end = MPI_Wtime() + seconds;
    volatile double sum = 0;

    while (MPI_Wtime() < end) {
        sum = sum + 1;
    }
}

/* Slot 0 is written by the rank to the left, slot 1 read by the one to the right. */
static int round_of(int round, int bytes)
{
    const int right = (me + 1) % size, left = (me + size - 1) % size;
    MPI_Request requests[2];
    int errors = 0;

    memset(window, 0x55, SLOT);
    pattern_fill(window + SLOT, me, round, bytes);
    pattern_fill(out, me, round + 100, bytes);
    memset(in, 0xa5, (size_t) bytes);
    MPI_Win_sync(win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Rput(out, bytes, MPI_BYTE, right, 0, bytes, MPI_BYTE, win, &requests[0]);
    MPI_Rget(in, bytes, MPI_BYTE, left, SLOT, bytes, MPI_BYTE, win, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Win_flush_all(win);
    memset(out, 0x5a, (size_t) bytes); /* the buffer is ours again */
    MPI_Barrier(MPI_COMM_WORLD);
    give_back();
    MPI_Win_sync(win);
    errors += pattern_wrong(in, left, round, bytes);
    errors += pattern_wrong(window, left, round + 100, bytes);
    errors += bytes < SLOT && 0x55 != window[bytes];
    MPI_Barrier(MPI_COMM_WORLD);
    take();
    return errors;
}

/* NICs have moved all of it, and not only started to. @param wanted false: none of it. */
static int by_nics(bool wanted)
{
    static const int lengths[] = {16385, 65536, 300001, SLOT};
    const unsigned long long read = counted("coll_r2_direct_read_bytes"),
                             written = counted("coll_r2_direct_written_bytes");
    unsigned long long bytes = 0;
    int errors = 0;

    for (int i = 0; i < 4; ++i) {
        errors += round_of(i, lengths[i]);
        bytes += (unsigned long long) lengths[i];
    }
    bytes = wanted ? bytes : 0;
    errors += bytes != counted("coll_r2_direct_read_bytes") - read;
    errors += bytes != counted("coll_r2_direct_written_bytes") - written;
    errors += 0 != counted("coll_r2_direct_lost_bytes");
    return errors;
}

/* Rank 1 computes: rank 0 reads or writes its window meanwhile. */
static int while_computing(bool is_read, double *took_p)
{
    double took = 0;
    int errors = 0;

    memset(window, 0x55, SLOT);
    pattern_fill(window + SLOT, me, 7, SLOT);
    pattern_fill(out, me, 8, SLOT);
    memset(in, 0xa5, SLOT);
    MPI_Win_sync(win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (1 == me) {
        compute(COMPUTE_S);
    } else if (0 == me) {
        compute(0.02); /* it does by now */
        took = MPI_Wtime();
        if (is_read) {
            MPI_Get(in, SLOT, MPI_BYTE, 1, SLOT, SLOT, MPI_BYTE, win);
        } else {
            MPI_Put(out, SLOT, MPI_BYTE, 1, 0, SLOT, MPI_BYTE, win);
        }
        MPI_Win_flush(1, win);
        took = MPI_Wtime() - took;
        *took_p = took;
        errors += is_read && pattern_wrong(in, 1, 7, SLOT);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(win);
    return errors + (1 == me && !is_read && pattern_wrong(window, 0, 8, SLOT));
}

/* It is done at once, if NICs do it. If not, there is nothing to try again. */
static int at_once(bool is_read, bool wanted)
{
    double took = 0;
    int errors = 0;

    took_s[is_read] = COMPUTE_S + 1;
    for (int i = 0; i < (wanted ? TRIES : 1) && took_s[is_read] > QUICK_S; ++i) {
        errors += while_computing(is_read, &took);
        took_s[is_read] = took < took_s[is_read] ? took : took_s[is_read];
        MPI_Bcast(&took_s[is_read], 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    }
    return errors + (wanted && took_s[is_read] > QUICK_S);
}

/* Messages that ob1 has their receiver read. */
static int messages(bool wanted)
{
    const int right = (me + 1) % size, left = (me + size - 1) % size;
    unsigned long long read = counted("coll_r2_direct_read_bytes");
    int errors = 0;

    for (int i = 0; i < 3; ++i) {
        pattern_fill(out, me, i, SLOT);
        memset(in, 0xa5, SLOT);
        MPI_Sendrecv(out, SLOT, MPI_BYTE, right, i, in, SLOT, MPI_BYTE, left, i, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        errors += pattern_wrong(in, left, i, SLOT);
    }
    read = counted("coll_r2_direct_read_bytes") - read;
    return errors + (wanted ? read < 3ull * SLOT : 0 != read);
}

/* What was lost so far, by all, is told before the verdict on each round. @return whether the test
 * has seen enough. */
static bool tell_lost(const char *enough)
{
    unsigned long long counts[] = {counted("coll_r2_direct_lost_bytes"),
                                   0 == me && NULL != enough && 0 == access(enough, F_OK)};

    MPI_Allreduce(MPI_IN_PLACE, counts, 2, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (0 == me) {
        printf("# %llu lost so far\n", counts[0]);
    }
    return 0 != counts[1];
}

static int play_rounds(int rounds, const char *enough)
{
    int errors = 0, left = rounds;

    for (int round = 0; round < rounds && left > 0; ++round) {
        int wrong = 0;

        for (int i = 0; i < 4; ++i) {
            wrong += round_of(4 * round + i, SLOT - 4099 * i);
        }
        left -= tell_lost(enough) && left > AFTER ? left - AFTER : 1;
        errors += pattern_verdict(++number, "round", wrong);
    }
    return errors;
}

int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? atoi(argv[1]) : 0;
    const bool wanted = argc < 3 || 0 != strcmp(argv[2], "none");
    int errors = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    out = pattern_alloc(SLOT);
    in = pattern_alloc(SLOT);
    window = pattern_alloc(2 * SLOT);
    MPI_Win_create(window, 2 * SLOT, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_lock_all(0, win);
    (void) round_of(0, 65536); /* opens the lanes */
    compute(0.3);
    if (0 == rounds) {
        errors += pattern_verdict(++number, "windows by NICs", by_nics(wanted));
        errors += pattern_verdict(++number, "messages by NICs", messages(wanted));
        errors += pattern_verdict(++number, "a read from who computes", at_once(true, wanted));
        errors += pattern_verdict(++number, "a write to who computes", at_once(false, wanted));
    }
    errors += play_rounds(rounds, argc > 2 ? argv[2] : NULL);
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    printf("# rank %d: %llu read, %llu written, %llu lost, %llu fences\n", me,
           counted("coll_r2_direct_read_bytes"), counted("coll_r2_direct_written_bytes"),
           counted("coll_r2_direct_lost_bytes"), counted("coll_r2_direct_fences"));
    MPI_Win_free(&win);
    if (0 == me) {
        if (0 == rounds) {
            printf("# who computes for %.0f ms: 4 MiB read in %.1f, written in %.1f ms\n",
                   1e3 * COMPUTE_S, 1e3 * took_s[1], 1e3 * took_s[0]);
        }
        printf("1..%d\n", number);
    }
    MPI_Finalize();
    return 0 == errors ? 0 : 1;
}
