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

#include "base/util.h"
#include "ctx/state.h"
#include "doubles/loop.h"
#include "doubles/nic_watch_sim.h"
#include "r2/p2p.h"
#include "thread_net.h"

#define RAILS     2
#define SHORT_NS  (20 * R2_NS_PER_MS)
#define LONG_NS   (10 * R2_NS_PER_S)
#define WAKES_MAX 40 /* in a time in which one wakeup per millisecond makes hundreds */

static void nap_ms(long ms)
{
    const struct timespec pause = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&pause, NULL);
}

/** A hello driver whose only call ends by a timeout. */
typedef struct calls {
    int fd;
    const r2_ctx_t *ctx;          /* borrowed */
    _Atomic uint64_t seen_ns;     /* what the net took for now when it polled last */
    _Atomic uint64_t deadline_ns; /* of the call; R2_NEVER_NS: none */
    _Atomic unsigned polls, ended, listens;
} calls_t;

static void calls_bind(void *hello, const r2_hello_upcalls_t *upcalls)
{
    (void) hello;
    (void) upcalls;
}

static void calls_key(void *hello, const uint8_t *key)
{
    (void) hello;
    (void) key;
}

static r2_status_t calls_listen(void *hello, uint32_t rail_idx, const r2_nic_t *nic,
                                void *address_p, size_t *bytes_p)
{
    (void) rail_idx;
    (void) nic;
    atomic_fetch_add(&((calls_t *) hello)->listens, 1);
    memset(address_p, 0, 4);
    *bytes_p = 4;
    return R2_OK;
}

static int calls_fd(void *hello)
{
    return ((const calls_t *) hello)->fd;
}

static void calls_poll(void *hello)
{
    calls_t *calls = hello;
    uint64_t drained;

    (void) !read(calls->fd, &drained, sizeof(drained));
    atomic_store(&calls->seen_ns, calls->ctx->core.net.now_ns);
    atomic_fetch_add(&calls->polls, 1);
    if (r2_now_ns(r2_clock_system()) >= atomic_load(&calls->deadline_ns)) {
        atomic_store(&calls->deadline_ns, R2_NEVER_NS);
        atomic_fetch_add(&calls->ended, 1);
    }
}

static uint64_t calls_deadline_ns(void *hello)
{
    return atomic_load(&((const calls_t *) hello)->deadline_ns);
}

static const r2_hello_ops_t calls_ops = {
    .name = "calls",
    .bind = calls_bind,
    .key = calls_key,
    .listen = calls_listen,
    .fd = calls_fd,
    .poll = calls_poll,
    .deadline_ns = calls_deadline_ns,
};

static _Atomic int rails_are_busy; /* there is always something more to read */

static r2_status_t busy_arm(r2_tp_worker_t *worker)
{
    (void) worker;
    return 0 != atomic_load(&rails_are_busy) ? R2_ERR_AGAIN : R2_OK;
}

typedef struct process {
    calls_t calls;
    r2_tp_ops_t tp_ops; /* of the transport, and busy_arm() */
    r2_p2p_t *p2p;      /* owned; NULL: it has no user */
    r2_nic_watch_t watch;
    thread_net_t *net;
    r2_oob_loop_t *oob;
    r2_params_t params;
    r2_ctx_t *ctx;
} process_t;

static void process_up(process_t *process)
{
    static const uint8_t key[R2_JOB_KEY_BYTES] = "drive";
    r2_ctx_config_t config = {.params = &process->params};
    r2_ctx_parts_t parts = {.clock = r2_clock_system(), .nic_count = RAILS, .host_id = 1};
    char text[256] = "";

    memset(process, 0, sizeof(*process));
    process->calls.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    process->calls.deadline_ns = R2_NEVER_NS;
    process->net = thread_net_create();
    process->oob = r2_oob_loop_create(1, key);
    r2_params_init(&process->params);
    process->params.verbose = 0;
    for (uint32_t i = 0; i < RAILS; ++i) {
        parts.nics[i] =
            (r2_nic_t){.name = "rail0", .ifindex = i + 1, .ipv4 = i + 1, .carrier = true};
        parts.nics[i].name[4] = (char) ('0' + i);
    }
    assert_int_equal(r2_nic_watch_sim_create(parts.nics, RAILS, true, &process->watch), R2_OK);
    parts.tp = thread_net_rank(process->net);
    process->tp_ops = *parts.tp.ops;
    process->tp_ops.worker_arm = busy_arm;
    parts.tp.ops = &process->tp_ops;
    parts.hello = (r2_hello_t){&calls_ops, &process->calls};
    parts.oob = r2_oob_loop_rank(process->oob, 0);
    parts.watch = process->watch;
    snprintf(parts.host_name, sizeof(parts.host_name), "h0");
    if (R2_OK != r2_ctx_assemble(&config, &parts, &process->ctx, text, sizeof(text))) {
        fail_msg("%s", text);
    }
    process->calls.ctx = process->ctx;
    assert_int_equal(r2_service_create(process->ctx, &process->ctx->service), R2_OK);
}

static void process_down(process_t *process)
{
    r2_service_destroy(process->ctx->service);
    if (NULL != process->p2p) {
        r2_p2p_unbind(process->p2p);
    }
    r2_ctx_dismantle(process->ctx);
    r2_nic_watch_sim_destroy(&process->watch);
    r2_oob_loop_destroy(process->oob);
    thread_net_destroy(process->net);
    close(process->calls.fd);
}

static void process_wake(process_t *process)
{
    const uint64_t one = 1;

    assert_int_equal(write(process->calls.fd, &one, sizeof(one)), sizeof(one));
}

static uint64_t process_wakeups(process_t *process)
{
    uint64_t wakeups;

    r2_core_enter(&process->ctx->core);
    wakeups = process->ctx->core.counters.service_wakeups;
    r2_core_leave(&process->ctx->core);
    return wakeups;
}

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

static uint64_t process_takeovers(process_t *process)
{
    uint64_t takeovers;

    r2_core_enter(&process->ctx->core);
    takeovers = process->ctx->core.counters.service_takeovers;
    r2_core_leave(&process->ctx->core);
    return takeovers;
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

/** Rails that always have more to read: sources are looked at all the same. */
static void sources_are_polled_however_much_the_rails_bring(void **state)
{
    r2_rail_worker_t *worker;
    process_t process;
    unsigned polls, looks = 0;

    (void) state;
    process_up(&process);
    r2_core_enter(&process.ctx->core);
    assert_int_equal(r2_rail_get(&process.ctx->core.net.rails[0], false, 1, 0, 0, &worker), R2_OK);
    r2_core_leave(&process.ctx->core);
    atomic_store(&rails_are_busy, 1);
    process_wake(&process);
    nap_ms(50);
    polls = atomic_load(&process.calls.polls);
    process_wake(&process);
    while (polls == atomic_load(&process.calls.polls) && ++looks < 1000) {
        nap_ms(1);
    }
    assert_true(atomic_load(&process.calls.polls) > polls);
    atomic_store(&rails_are_busy, 0);
    r2_core_enter(&process.ctx->core);
    r2_rail_put(worker);
    r2_core_leave(&process.ctx->core);
    process_down(&process);
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
    uint64_t from_ns, driven_ns;

    (void) state;
    process_up(&process);
    assert_int_equal(r2_comm_create(process.ctx, (r2_comm_id_t){7, 0}, &(uint32_t){0}, 1, 0, &comm),
                     R2_OK);
    nap_ms(1);
    from_ns = r2_now_ns(r2_clock_system());
    assert_int_equal(r2_coll_post(comm, &args, NULL, NULL, &coll), R2_OK);
    assert_int_equal(r2_coll_wait(coll), R2_OK);
    r2_coll_release(coll);
    r2_core_enter(&process.ctx->core);
    driven_ns = process.ctx->core.net.last_progress_ns;
    r2_core_leave(&process.ctx->core);
    assert_true(driven_ns >= from_ns);
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
        cmocka_unit_test(who_reads_is_let_in),
        cmocka_unit_test(nics_come_in_by_one_door),
        cmocka_unit_test(an_address_may_change_by_itself),
        cmocka_unit_test(who_need_not_wait_drives_now_and_then),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
