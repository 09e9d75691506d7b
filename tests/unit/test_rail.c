/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * A rail whose lanes go by two transports: devices, workers, generations of each.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rail/rail.h"

struct r2_tp_device {
    char name[32], tls[16];
};

struct r2_tp_worker {
    const r2_tp_device_t *device;
};

static unsigned t_devices, t_workers; /* open */

static r2_status_t t_device_open(void *tp, const r2_tp_device_config_t *config,
                                 r2_tp_device_t **device_p)
{
    r2_tp_device_t *device = calloc(1, sizeof(*device));

    (void) tp;
    assert_non_null(device);
    snprintf(device->name, sizeof(device->name), "%s", config->name);
    snprintf(device->tls, sizeof(device->tls), "%s", NULL == config->tls ? "tcp" : config->tls);
    ++t_devices;
    *device_p = device;
    return R2_OK;
}

static void t_device_close(r2_tp_device_t *device)
{
    --t_devices;
    free(device);
}

static r2_status_t t_worker_create(r2_tp_device_t *device, const r2_tp_callbacks_t *callbacks,
                                   void *arg, r2_tp_worker_t **worker_p)
{
    (void) callbacks;
    (void) arg;
    *worker_p = calloc(1, sizeof(**worker_p));
    assert_non_null(*worker_p);
    (*worker_p)->device = device;
    ++t_workers;
    return R2_OK;
}

static void t_worker_destroy(r2_tp_worker_t *worker)
{
    --t_workers;
    free(worker);
}

static int t_worker_fd(r2_tp_worker_t *worker)
{
    (void) worker;
    return -1;
}

static r2_status_t t_ep_connect(r2_tp_ep_t *ep, const void *address, size_t address_bytes)
{
    (void) ep;
    (void) address;
    (void) address_bytes;
    return R2_OK;
}

static const r2_tp_ops_t t_ops = {
    .name = "test",
    .device_open = t_device_open,
    .device_close = t_device_close,
    .worker_create = t_worker_create,
    .worker_destroy = t_worker_destroy,
    .worker_fd = t_worker_fd,
    .ep_connect = t_ep_connect,
};

static r2_rail_worker_t *t_get(r2_rail_t *rail, bool is_rdma, uint32_t peer)
{
    r2_rail_worker_t *worker;

    assert_int_equal(r2_rail_get(rail, is_rdma, peer, 0, 0, &worker), R2_OK);
    assert_int_equal(r2_rail_connect(worker, NULL, peer, "", 0), R2_OK);
    return worker;
}

/** Each transport has a device and generations of its own. */
static void test_two_transports(void **state)
{
    const r2_nic_t nic = {.name = "ib0", .rdma = "mlx5_0:1", .tls = "rc_verbs", .carrier = true};
    const r2_tp_t tp = {.ops = &t_ops};
    r2_rail_worker_t *tcp, *rdma, *next;
    r2_rail_t rail;

    (void) state;
    r2_rail_init(&rail, 0, &nic, &tp, NULL, 4096, -1, NULL, NULL);
    tcp = t_get(&rail, false, 1);
    assert_int_equal(t_devices, 1);
    rdma = t_get(&rail, true, 2);
    assert_int_equal(t_devices, 2);
    assert_string_equal(tcp->worker->device->name, "ib0");
    assert_string_equal(tcp->worker->device->tls, "tcp");
    assert_string_equal(rdma->worker->device->name, "mlx5_0:1");
    assert_string_equal(rdma->worker->device->tls, "rc_verbs");
    assert_ptr_equal(t_get(&rail, false, 3), tcp);
    assert_ptr_equal(t_get(&rail, true, 4), rdma);

    next = t_get(&rail, false, 1); /* opened anew: a generation that has not served this peer */
    assert_ptr_not_equal(next, tcp);
    assert_ptr_equal(t_get(&rail, true, 1), rdma);
    assert_int_equal(t_workers, 3);
    r2_rail_put(tcp);
    r2_rail_put(tcp);
    r2_rail_put(next);
    for (int i = 0; i < 3; ++i) {
        r2_rail_put(rdma);
    }
    r2_rail_reap(&rail); /* the newest of each stay, though nobody uses them */
    assert_int_equal(t_workers, 2);
    assert_ptr_equal(t_get(&rail, false, 4), next);
    assert_ptr_equal(t_get(&rail, true, 5), rdma);
    r2_rail_fini(&rail);
    assert_int_equal(t_workers, 0);
    assert_int_equal(t_devices, 0);
}

/** Where each lane has a worker of its own, none outlives its lane. */
static void test_alone(void **state)
{
    const r2_nic_t nic = {.name = "ib0", .rdma = "mlx5_0:1", .tls = "rc_verbs", .carrier = true};
    const r2_tp_t tp = {.ops = &t_ops};
    r2_rail_worker_t *first, *second;
    r2_rail_t rail;

    (void) state;
    r2_rail_init(&rail, 0, &nic, &tp, NULL, 4096, -1, NULL, NULL);
    rail.alone = true;
    first = t_get(&rail, true, 1);
    second = t_get(&rail, true, 2);
    assert_ptr_not_equal(first, second);
    r2_rail_put(first);
    r2_rail_put(second);
    r2_rail_reap(&rail);
    assert_int_equal(t_workers, 0);
    r2_rail_fini(&rail);
    assert_int_equal(t_devices, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_transports),
        cmocka_unit_test(test_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
