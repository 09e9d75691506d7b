/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A rail on an RDMA device that dies, and on a port whose address moves.
 */
#include "r2_config.h"

#include "tp_sides.h"

#include <dirent.h>

#include "r2/fds.h"
#include "r2/nic.h"
#include "rail/rail.h"

static uint32_t rail_received;

static void rail_on_packet(void *arg, const void *header, size_t header_bytes, const void *data,
                           size_t data_bytes)
{
    (void) arg;
    (void) header;
    (void) header_bytes;
    (void) data;
    (void) data_bytes;
    ++rail_received;
}

static void rail_on_failure(void *arg, void *ep_arg, r2_status_t status)
{
    (void) arg;
    (void) ep_arg;
    (void) status;
}

static void rail_open(r2_rail_t *rail)
{
    static const r2_tp_callbacks_t rail_callbacks = {.received = rail_on_packet,
                                                     .failed = rail_on_failure};
    const r2_nic_t nic = {.name = "lo", .rdma = "soft0:1", .tls = "rc_verbs", .carrier = true};

    r2_rail_init(rail, 0, &nic, &tp, &rail_callbacks, SEGMENT_MAX, -1, NULL, NULL);
}

/** A lane of the rail to a peer; packets go both ways. @return the worker it got. */
static r2_rail_worker_t *rail_works(r2_rail_t *rail, side_t *b, uint32_t peer, uint64_t at_ns)
{
    char address[R2_TP_ADDRESS_MAX];
    packet_t packets[2];
    r2_rail_worker_t *worker;
    side_t a = {0};
    size_t bytes;

    assert_int_equal(r2_rail_get(rail, true, peer, 0, at_ns, &worker), R2_OK);
    a.worker = worker->worker;
    side_offer(&a);
    side_offer(b);
    assert_int_equal(tp.ops->ep_address(b->ep, address, &bytes), R2_OK);
    assert_int_equal(r2_rail_connect(worker, a.ep, peer, address, bytes), R2_OK);
    side_join(b, &a);
    b->received = rail_received = 0;
    assert_true(packet_send(&packets[0], &a, 1, DATA_MAX, pattern + 1) >= 0);
    assert_true(packet_send(&packets[1], b, 2, DATA_MAX, pattern + 2) >= 0);
    assert_true(progress_until(&a, b, &b->received, 1));
    assert_true(progress_until(&a, b, &rail_received, 1));
    packet_wait(&packets[0], &a);
    packet_wait(&packets[1], b);
    tp.ops->ep_close(a.ep);
    tp.ops->ep_close(b->ep);
    r2_rail_put(worker);
    r2_rail_reap(rail);
    return worker;
}

static void peer_open(side_t *b)
{
    device_name = "soft1:1";
    side_open(b);
    device_name = "soft0:1";
}

/**
 * What was opened of a device before it died is of no use when it is back. The rail opens it anew,
 * and while that is not possible, no more often than it can afford.
 */
void test_rail_after_death(void **state)
{
    r2_rail_worker_t *worker;
    r2_rail_t rail;
    side_t b;

    (void) state;
    rail_open(&rail);
    peer_open(&b);
    rail_works(&rail, &b, 1, 0);
    nic_fault("fatal");
    assert_int_equal(r2_rail_get(&rail, true, 1, 0, 1, &worker), R2_ERR_NO_DEVICE);
    assert_true(rail.reopen_ns > 1);
    nic_fault("heal");
    assert_int_equal(r2_rail_get(&rail, true, 1, 0, 2, &worker), R2_ERR_NO_DEVICE);
    rail_works(&rail, &b, 1, rail.reopen_ns);
    rail_works(&rail, &b, 2, rail.reopen_ns);
    assert_non_null(rail.devices);
    assert_null(rail.devices->next); /* what was dead went with its last worker */
    r2_rail_fini(&rail);
    side_close(&b);
}

/** A worker that was there before tells of the death when an endpoint is opened on it. */
void test_rail_worker_after_death(void **state)
{
    r2_rail_worker_t *worker;
    r2_tp_ep_t *ep;
    r2_rail_t rail;
    r2_status_t status;
    side_t b;

    (void) state;
    rail_open(&rail);
    peer_open(&b);
    rail_works(&rail, &b, 1, 0);
    nic_fault("fatal");
    nic_fault("heal");
    assert_int_equal(r2_rail_get(&rail, true, 2, 0, 1, &worker), R2_OK); /* it was not tried yet */
    status = tp.ops->ep_open(worker->worker, NULL, &ep);
    assert_int_equal(status, R2_ERR_NO_DEVICE);
    r2_rail_doubt(worker, status);
    r2_rail_put(worker);
    rail_works(&rail, &b, 2, 2);
    r2_rail_fini(&rail);
    side_close(&b);
}

/** Offered is what can be opened when the job starts; what cannot later is tried again later. */
void test_rail_refused(void **state)
{
    const r2_rdma_setting_t setting = {.tls = "rc_verbs", .memlock_bytes = UINT64_MAX};
    r2_nic_t nic = {
        .name = "lo", .rdma = "soft0:1", .port = {.state = R2_PORT_ACTIVE, .openable = true}};
    r2_rail_worker_t *worker;
    r2_rail_t rail;
    side_t b;

    (void) state;
    nic_fault("refuse 1");
    r2_nics_offer(&setting, &nic, 1);
    assert_int_equal(nic.lack, R2_RDMA_LACKS_DEVICE);
    assert_string_equal(nic.tls, "");
    rail_open(&rail);
    assert_int_equal(r2_rail_get(&rail, true, 1, 0, 1, &worker), R2_ERR_NO_DEVICE);
    assert_true(rail.reopen_ns > 1);
    nic_fault("heal");
    r2_nics_offer(&setting, &nic, 1);
    assert_int_equal(nic.lack, R2_RDMA_LACKS_NOTHING);
    assert_string_equal(nic.tls, "rc_verbs");
    peer_open(&b);
    rail_works(&rail, &b, 1, rail.reopen_ns);
    r2_rail_fini(&rail);
    side_close(&b);
}

/** The next worker is of a device that was opened with the address's new index. */
void test_rail_gid_moves(void **state)
{
    r2_rail_t rail;
    side_t b;

    (void) state;
    rail_open(&rail);
    peer_open(&b);
    for (int i = 1; i <= 3; ++i) {
        nic_fault(1 == i ? "gid 0 1" : 2 == i ? "gid 0 2" : "gid 1 3"); /* 2 is a VLAN's then */
        rail_works(&rail, &b, 1, 0);
        assert_int_equal(rail.devices->gid_index, i);
        assert_null(rail.devices->next);
    }
    nic_fault("heal");
    nic_fault("gid 0 1");
    r2_rail_fini(&rail);
    side_close(&b);
}

/** Lines of the log. */
typedef struct lines {
    uint32_t count;
    char last[1024];
} lines_t;

static void on_line(void *arg, int level, const char *line)
{
    lines_t *lines = arg;

    assert_int_equal(level, R2_LOG_WARN);
    ++lines->count;
    snprintf(lines->last, sizeof(lines->last), "%s", line);
}

/** Memory that the device does not take is copied; that is told once. */
void test_rail_tells_refusals(void **state)
{
    enum { TURNS = 3, PAGE = 4096 };
    unsigned char *const first = pattern, *copies[TURNS];
    lines_t lines = {0};
    const r2_log_t log = {.level = R2_LOG_WARN, .fn = on_line, .arg = &lines};
    r2_rail_t rail;
    side_t b;

    (void) state;
    rail_open(&rail);
    rail.log = &log;
    peer_open(&b);
    rail_works(&rail, &b, 1, 0);
    assert_int_equal(lines.count, 0);
    for (uint32_t i = 0; i < TURNS; ++i) {
        copies[i] = aligned_alloc(PAGE, DATA_MAX + PAGE);
        assert_non_null(copies[i]);
        memory_refuse(copies[i], DATA_MAX + PAGE);
        pattern = memcpy(copies[i], first, DATA_MAX + 512);
        rail_works(&rail, &b, 2 + i, 0);
    }
    memory_refuse(NULL, 0);
    pattern = first;
    assert_int_equal(lines.count, 1);
    assert_non_null(strstr(lines.last, "rail 0 (lo): "));
    assert_non_null(strstr(lines.last, "cannot be registered with RDMA device soft0:1"));
    r2_rail_fini(&rail);
    side_close(&b);
    for (uint32_t i = 0; i < TURNS; ++i) {
        free(copies[i]);
    }
}

static void assert_offers(bool offers, r2_rdma_lack_t lack, uint64_t memlock_bytes)
{
    const r2_rdma_setting_t setting = {.tls = "rc_verbs", .memlock_bytes = memlock_bytes};
    r2_nic_t nic = {.name = "lo",
                    .rdma = "soft0:1",
                    .port = {.state = R2_PORT_ACTIVE, .openable = true},
                    .carrier = true};

    r2_nics_offer(&setting, &nic, 1);
    assert_string_equal(nic.tls, offers ? "rc_verbs" : "");
    assert_int_equal(nic.lack, lack);
}

/** A device that cannot be opened, or not be used, offers TCP and says why. */
void test_rail_offers(void **state)
{
    (void) state;
    assert_offers(true, R2_RDMA_LACKS_NOTHING, UINT64_MAX);
    assert_offers(true, R2_RDMA_LACKS_NOTHING, (uint64_t) 20 << 20);
    assert_offers(false, R2_RDMA_LACKS_MEMORY, (uint64_t) 8 << 20);
    opens_none = true;
    assert_offers(false, R2_RDMA_LACKS_DEVICE, UINT64_MAX);
    opens_none = false;
    connects_none = true;
    assert_offers(false, R2_RDMA_LACKS_DEVICE, UINT64_MAX);
    connects_none = false;
    refuses_all = true;
    assert_offers(false, R2_RDMA_LACKS_DEVICE, UINT64_MAX);
    refuses_all = false;
    assert_offers(true, R2_RDMA_LACKS_NOTHING, UINT64_MAX);
}

static size_t descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    size_t count = 0;

    assert_non_null(folder);
    while (NULL != readdir(folder)) {
        ++count;
    }
    closedir(folder);
    return count;
}

/** Device and worker take no more than is asked for before they are opened; lanes take none. */
void test_rail_descriptors(void **state)
{
    enum { LANES = 8 };
    side_t others[LANES], a, b;
    size_t before, opened, used;

    (void) state;
    peer_open(&b); /* UCX's thread is there */
    before = descriptors();
    side_open(&a);
    opened = descriptors();
    for (int i = 0; i < LANES; ++i) {
        others[i] = a;
        side_connect(&others[i], &b);
    }
    used = descriptors();
    assert_in_range(opened - before, 1, R2_FDS_DEVICE + R2_FDS_WORKER_LOCAL);
    assert_int_equal(used, opened);
    side_close(&a);
    side_close(&b);
    assert_true(descriptors() < before);
}
