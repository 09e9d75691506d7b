/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * One way to drive: the service thread while the application is away, and the door for what happens
 * to NICs. One process with its real service thread, in real time.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "drive_process.h"

#define SHORT_NS  (20 * R2_NS_PER_MS)
#define LONG_NS   (10 * R2_NS_PER_S)
#define WAKES_MAX 40 /* in a time in which one wakeup per millisecond makes hundreds */

/** A timeout of hello was waited for by its timer, and nobody polled it: a wakeup per
 * millisecond. */
static void timeouts_of_hello_pass_while_the_application_is_away(void **state)
{
    process_t process;

    (void) state;
    process_up(&process);
    atomic_store(&process.calls.deadline_ns, r2_now_ns(r2_clock_system()) + SHORT_NS);
    process_wake(&process);
    nap_ms(400);
    assert_int_equal(atomic_load(&process.calls.ended), 1);
    assert_in_range(process_wakeups(&process), 2, WAKES_MAX);
    process_down(&process);
}

/** What a fault cost is told when its time is over, also while the service thread drives. */
static void gaps_end_while_the_application_is_away(void **state)
{
    process_t process;
    uint64_t now_ns, deadline_ns;

    (void) state;
    process_up(&process);
    r2_core_enter(&process.ctx->core);
    now_ns = r2_now_ns(r2_clock_system());
    r2_gap_fault(&process.ctx->record.gap, 0, now_ns + SHORT_NS - R2_GAP_WINDOW_NS, now_ns);
    r2_core_leave(&process.ctx->core);
    process_wake(&process);
    nap_ms(400);
    r2_core_enter(&process.ctx->core);
    deadline_ns = r2_gap_deadline_ns(&process.ctx->record.gap);
    r2_core_leave(&process.ctx->core);
    assert_true(R2_NEVER_NS == deadline_ns);
    assert_in_range(process_wakeups(&process), 2, WAKES_MAX);
    process_down(&process);
}

/** The net has the time of now when a message comes in, however long nobody drove. */
static void sources_are_polled_with_the_time_of_now(void **state)
{
    process_t process;
    uint64_t before_ns;

    (void) state;
    process_up(&process);
    nap_ms(50);
    before_ns = r2_now_ns(r2_clock_system());
    process_wake(&process);
    nap_ms(50);
    assert_true(atomic_load(&process.calls.seen_ns) >= before_ns);
    process_down(&process);
}

static void nothing_received(void *arg, uint32_t rank, uint8_t id, const void *data, size_t bytes)
{
    (void) arg;
    (void) rank;
    (void) id;
    (void) data;
    (void) bytes;
}

static void nothing_lost(void *arg, uint32_t rank, r2_status_t status)
{
    (void) arg;
    (void) rank;
    (void) status;
}

/**
 * The application comes back for one call, and is away again: the service thread has set its timer
 * for what it awaited meanwhile, seconds ahead, and reads the rails for the application all the
 * same.
 */
static void who_goes_away_again_is_stood_in_for(void **state)
{
    static const r2_p2p_handlers_t handlers = {.received = nothing_received, .lost = nothing_lost};
    process_t process;
    uint64_t takeovers;

    (void) state;
    process_up(&process);
    assert_int_equal(r2_p2p_bind(process.ctx, &handlers, &process.p2p), R2_OK);
    atomic_store(&process.calls.deadline_ns, r2_now_ns(r2_clock_system()) + LONG_NS);
    for (unsigned i = 0; i < 3; ++i) {
        takeovers = process_takeovers(&process);
        (void) r2_ctx_progress(process.ctx);
        nap_ms(100);
        assert_true(process_takeovers(&process) > takeovers);
    }
    process_down(&process);
}

/** Who only starts things, one after the other, reads nothing: it is stood in for. */
static void who_only_starts_is_stood_in_for(void **state)
{
    static const r2_p2p_handlers_t handlers = {.received = nothing_received, .lost = nothing_lost};
    process_t process;
    uint64_t takeovers;

    (void) state;
    process_up(&process);
    assert_int_equal(r2_p2p_bind(process.ctx, &handlers, &process.p2p), R2_OK);
    (void) r2_ctx_progress(process.ctx);
    takeovers = process_takeovers(&process);
    for (unsigned i = 0; i < 200 && process_takeovers(&process) == takeovers; ++i) {
        r2_core_enter(&process.ctx->core);
        process.ctx->core.net.now_ns = r2_now_ns(r2_clock_system());
        r2_core_leave_started(&process.ctx->core);
        nap_ms(1);
    }
    assert_true(process_takeovers(&process) > takeovers);
    process_down(&process);
}

/* From now on one rail has more to read, always. */
static r2_rail_worker_t *rails_get_busy(process_t *process)
{
    r2_rail_worker_t *worker;

    r2_core_enter(&process->ctx->core);
    assert_int_equal(r2_rail_get(&process->ctx->core.net.rails[0], false, 1, 0, 0, &worker), R2_OK);
    r2_core_leave(&process->ctx->core);
    atomic_store(&rails_are_busy, 1);
    process_wake(process);
    return worker;
}

static void busy_process_down(process_t *process, r2_rail_worker_t *worker)
{
    atomic_store(&rails_are_busy, 0);
    r2_core_enter(&process->ctx->core);
    r2_rail_put(worker);
    r2_core_leave(&process->ctx->core);
    process_down(process);
}

/** Rails that always have more to read: sources are looked at all the same. */
static void sources_are_polled_however_much_the_rails_bring(void **state)
{
    r2_rail_worker_t *worker;
    process_t process;
    unsigned polls, looks = 0;

    (void) state;
    process_up(&process);
    worker = rails_get_busy(&process);
    nap_ms(50);
    polls = atomic_load(&process.calls.polls);
    process_wake(&process);
    while (polls == atomic_load(&process.calls.polls) && ++looks < 1000) {
        nap_ms(1);
    }
    assert_true(atomic_load(&process.calls.polls) > polls);
    busy_process_down(&process, worker);
}

static int busy_fd(r2_tp_worker_t *worker)
{
    static int fd = -1;

    (void) worker;
    fd = fd < 0 ? eventfd(1, EFD_CLOEXEC) : fd;
    return fd; /* there is something to read always */
}

/** Who tries for the lock in vain may need this processor: the rails do not wake the service thread
 * again before a millisecond is over. */
static void who_tries_in_vain_has_a_millisecond(void **state)
{
    r2_rail_worker_t *worker;
    process_t process;
    uint64_t start_ns, takeovers;

    (void) state;
    process_up(&process);
    process.tp_ops.worker_fd = busy_fd;
    worker = rails_get_busy(&process);
    takeovers = process_takeovers(&process);
    start_ns = r2_now_ns(r2_clock_system());
    while (r2_now_ns(r2_clock_system()) < start_ns + 100 * R2_NS_PER_MS) {
        atomic_store(&process.ctx->app_wants, 1);
    }
    takeovers = process_takeovers(&process) - takeovers;
    assert_in_range(takeovers, 2, 2 + (r2_now_ns(r2_clock_system()) - start_ns) / R2_NS_PER_MS);
    busy_process_down(&process, worker);
}

static void *reader_main(void *arg)
{
    char text[64];

    r2_ctx_error_text(arg, text, sizeof(text));
    r2_ctx_describe(arg, text, sizeof(text));
    return NULL;
}

/** Who only reads says that it waits for the lock: the service thread would keep it for long. */
static void who_reads_is_let_in(void **state)
{
    process_t process;
    pthread_t reader;
    unsigned looks = 0;

    (void) state;
    process_up(&process);
    r2_core_enter(&process.ctx->core);
    assert_int_equal(pthread_create(&reader, NULL, reader_main, process.ctx), 0);
    while (0 == atomic_load(&process.ctx->core.app_blocked) && ++looks < 1000) {
        nap_ms(1);
    }
    assert_int_equal(atomic_load(&process.ctx->core.app_blocked), 1);
    r2_core_leave(&process.ctx->core);
    assert_int_equal(pthread_join(reader, NULL), 0);
    process_down(&process);
}

/* ---- the door for NICs ---- */

static bool rail_has_carrier(process_t *process, uint32_t rail)
{
    bool carrier;

    r2_core_enter(&process->ctx->core);
    carrier = process->ctx->core.net.rails[rail].nic.carrier;
    r2_core_leave(&process->ctx->core);
    return carrier;
}

static void rail_awaits(process_t *process, uint32_t rail, bool carrier)
{
    const uint64_t end_ns = r2_now_ns(r2_clock_system()) + LONG_NS;

    while (carrier != rail_has_carrier(process, rail) && r2_now_ns(r2_clock_system()) < end_ns) {
        nap_ms(1);
    }
    assert_true(carrier == rail_has_carrier(process, rail));
}

/** The service thread is woken by a NIC; listeners follow a NIC that is back. */
static void nics_come_in_by_one_door(void **state)
{
    process_t process;
    unsigned listens;

    (void) state;
    process_up(&process);
    listens = atomic_load(&process.calls.listens);
    r2_nic_watch_sim_set(&process.watch, 1, false);
    rail_awaits(&process, 1, false);
    assert_true(rail_has_carrier(&process, 0));
    assert_int_equal(atomic_load(&process.calls.listens), listens);
    r2_nic_watch_sim_set(&process.watch, 1, false); /* no news */
    r2_nic_watch_sim_set(&process.watch, 1, true);
    rail_awaits(&process, 1, true);
    assert_int_equal(atomic_load(&process.calls.listens), listens + 1);
    assert_int_equal(process.ctx->core.counters.carrier_losses, 1);
    process_down(&process);
}

/** Another address, and no carrier was lost; then the same address once more, which is no news. */
static void an_address_may_change_by_itself(void **state)
{
    process_t process;
    unsigned listens;

    (void) state;
    process_up(&process);
    listens = atomic_load(&process.calls.listens);
    for (unsigned i = 0; i < 2; ++i) {
        r2_nic_watch_sim_address(&process.watch, 0, 9);
        nap_ms(50);
        assert_int_equal(atomic_load(&process.calls.listens), listens + 1);
    }
    r2_core_enter(&process.ctx->core);
    assert_int_equal(process.ctx->core.net.rails[0].nic.ipv4, 9);
    assert_int_equal(process.ctx->core.counters.carrier_losses, 0);
    r2_core_leave(&process.ctx->core);
    process_down(&process);
}

/** A call that finds all it needs at once drives all the same, where nobody has for long. */
static void who_need_not_wait_drives_now_and_then(void **state)
{
    const r2_coll_args_t args = {.kind = R2_COLL_BARRIER, .element_bytes = 1, .blocking = true};
    process_t process;
    r2_coll_t *coll;
    r2_comm_t *comm;
    uint64_t from_ns;

    (void) state;
    process_up(&process);
    assert_int_equal(r2_comm_create(process.ctx, (r2_comm_id_t){7, 0}, &(uint32_t){0}, 1, 0, &comm),
                     R2_OK);
    nap_ms(1);
    from_ns = r2_now_ns(r2_clock_system());
    assert_int_equal(r2_coll_post(comm, &args, NULL, NULL, &coll), R2_OK);
    assert_int_equal(r2_coll_wait(coll), R2_OK);
    r2_coll_release(coll);
    assert_true(process_count(&process, &process.ctx->core.net.last_progress_ns) >= from_ns);
    r2_comm_destroy(comm);
    process_down(&process);
}

/** Driving as one of several in a loop, for a while. @param breaks_p how often it had no processor
 * for so long that it begins anew. @return passes over the rails. */
static uint64_t drive_for(process_t *process, uint64_t ns, uint64_t *breaks_p)
{
    static const char driver;
    const uint64_t *progressed_ns = &process->ctx->core.net.last_progress_ns;
    const uint64_t begin_ns = r2_now_ns(r2_clock_system());
    uint64_t last_ns = process_count(process, progressed_ns), passes = 0;

    *breaks_p = 0;
    do {
        const uint64_t before_ns = last_ns;

        (void) r2_ctx_progress_as(process->ctx, &driver);
        last_ns = process_count(process, progressed_ns);
        passes += before_ns != last_ns;
        *breaks_p += last_ns - before_ns > 100 * R2_NS_PER_US;
    } while (r2_now_ns(r2_clock_system()) - begin_ns < ns);
    return passes;
}

/* The most passes of so long: a microsecond apart for 64 of them, then 64 in e-fold the time. */
static uint64_t idle_passes_most(uint64_t ns, uint64_t breaks)
{
    uint64_t passes = 65 + 64 + 64;

    for (uint64_t us = ns / R2_NS_PER_US; us > 64; us /= 2) {
        passes += 64;
    }
    return passes * (breaks + 1);
}

/** Who was away has not waited, so it looks often again: once in 20 times at least, since it may
 * have no processor. */
static void who_comes_back_begins_anew(process_t *process)
{
    uint64_t most = 0, breaks;

    for (int i = 0; i < 20; ++i) {
        nap_ms(1);
        most = r2_max(most, drive_for(process, 100 * R2_NS_PER_US, &breaks));
    }
    assert_in_range(most, 20, UINT64_MAX);
}

/** What was started is looked after at once. */
static void who_starts_something_is_not_idle(process_t *process)
{
    const r2_coll_args_t args = {.kind = R2_COLL_BARRIER, .element_bytes = 1};
    uint64_t breaks;
    r2_comm_t *comm;
    r2_coll_t *coll;

    assert_int_equal(
        r2_comm_create(process->ctx, (r2_comm_id_t){8, 0}, &(uint32_t){0}, 1, 0, &comm), R2_OK);
    for (int i = 0; i < 20; ++i) {
        (void) drive_for(process, 5 * R2_NS_PER_MS, &breaks);
        assert_int_equal(r2_coll_post(comm, &args, NULL, NULL, &coll), R2_OK);
        assert_int_equal(drive_for(process, 0, &breaks), 1);
        r2_coll_release(coll);
    }
    r2_comm_destroy(comm);
}

/** What others progress in the same loop does not wait for rails that bring nothing. */
static void idle_rails_are_looked_at_less_and_less(void **state)
{
    const uint64_t begin_ns = r2_now_ns(r2_clock_system());
    process_t process;
    uint64_t passes, before_ns, breaks;

    (void) state;
    process_up(&process);
    passes = drive_for(&process, 20 * R2_NS_PER_MS, &breaks);
    assert_in_range(passes, 65, idle_passes_most(r2_now_ns(r2_clock_system()) - begin_ns, breaks));
    nap_ms(1);
    assert_int_equal(drive_for(&process, 0, &breaks), 1); /* who comes back looks at once */
    who_comes_back_begins_anew(&process);
    who_starts_something_is_not_idle(&process);
    for (int i = 0; i < 10; ++i) {
        before_ns = process_count(&process, &process.ctx->core.net.last_progress_ns);
        (void) r2_ctx_progress(process.ctx); /* the only one in its loop */
        assert_true(before_ns != process_count(&process, &process.ctx->core.net.last_progress_ns));
    }
    process_down(&process);
}

static void count_up(void *arg)
{
    ++*(unsigned *) arg;
}

/* Blocking calls in a row that need not wait. @return how often they have given way. */
static unsigned calls_give_way(process_t *process, r2_comm_t *comm, unsigned calls)
{
    const r2_coll_args_t args = {.kind = R2_COLL_BARRIER, .element_bytes = 1, .blocking = true};
    unsigned times = 0;
    r2_coll_t *coll;

    process->ctx->config.idle = count_up;
    process->ctx->config.idle_arg = &times;
    for (unsigned i = 0; i < calls; ++i) {
        assert_int_equal(r2_coll_post(comm, &args, NULL, NULL, &coll), R2_OK);
        assert_int_equal(r2_coll_wait(coll), R2_OK);
        r2_coll_release(coll);
    }
    process->ctx->config.idle = NULL;
    return times;
}

/** What is not r2's goes on beside calls that never wait, but not at each. */
static void who_never_waits_gives_way_now_and_then(void **state)
{
    unsigned least = UINT32_MAX;
    process_t process;
    r2_comm_t *comm;

    (void) state;
    process_up(&process);
    assert_int_equal(r2_comm_create(process.ctx, (r2_comm_id_t){9, 0}, &(uint32_t){0}, 1, 0, &comm),
                     R2_OK);
    for (int i = 0; i < 20; ++i) {
        nap_ms(1); /* it computes */
        assert_int_equal(calls_give_way(&process, comm, 1), 1);
        least = r2_min(least, calls_give_way(&process, comm, 20));
    }
    assert_in_range(least, 0, 10); /* they take less than 100 us, but it may have no processor */
    r2_comm_destroy(comm);
    process_down(&process);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timeouts_of_hello_pass_while_the_application_is_away),
        cmocka_unit_test(gaps_end_while_the_application_is_away),
        cmocka_unit_test(sources_are_polled_with_the_time_of_now),
        cmocka_unit_test(who_goes_away_again_is_stood_in_for),
        cmocka_unit_test(who_only_starts_is_stood_in_for),
        cmocka_unit_test(sources_are_polled_however_much_the_rails_bring),
        cmocka_unit_test(who_tries_in_vain_has_a_millisecond),
        cmocka_unit_test(who_reads_is_let_in),
        cmocka_unit_test(nics_come_in_by_one_door),
        cmocka_unit_test(an_address_may_change_by_itself),
        cmocka_unit_test(who_need_not_wait_drives_now_and_then),
        cmocka_unit_test(idle_rails_are_looked_at_less_and_less),
        cmocka_unit_test(who_never_waits_gives_way_now_and_then),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
