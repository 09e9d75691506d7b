/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What RDMA ports have counted of lost packets, and who is told.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fake_sysfs.h"
#include "r2/nic.h"

#define PORT "sys/class/infiniband/mlx5_0/ports/1/"

static uint64_t losses_of(const char *root)
{
    static r2_rdma_seen_t ports[R2_RDMA_PORTS_MAX];

    assert_int_equal(r2_rdma_ports(root, ports), 1);
    return ports[0].port.losses;
}

/* Each driver has some of the counters, or none. */
static void losses_are_read(void **state)
{
    char root[PATH_MAX];

    (void) state;
    fake_begin(root);
    fake_file(root, PORT "link_layer", "Ethernet");
    assert_int_equal(losses_of(root), 0);
    fake_file(root, PORT "hw_counters/out_of_sequence", "1200");
    assert_int_equal(losses_of(root), 1200);
    fake_file(root, PORT "hw_counters/packet_seq_err", "30");
    fake_file(root, PORT "hw_counters/local_ack_timeout_err", "4");
    assert_int_equal(losses_of(root), 1234);
    fake_file(root, PORT "hw_counters/out_of_sequence", "");
    assert_int_equal(losses_of(root), 34);
    fake_end(root);
}

static void roce_that_loses_is_told(void **state)
{
    r2_nic_t nics[] = {{.name = "eth0", .rdma = "mlx5_0:1", .tls = "rc_verbs"},
                       {.name = "eth1", .rdma = "mlx5_1:1", .tls = "rc_verbs"}};
    r2_rdma_advice_t advice[R2_RDMA_ADVICE_MAX];

    (void) state;
    nics[0].port.link = nics[1].port.link = R2_LINK_ETHERNET;
    assert_int_equal(r2_rdma_hint(nics, 2, advice), 0);
    nics[0].port.losses = 999; /* a cable */
    assert_int_equal(r2_rdma_hint(nics, 2, advice), 0);
    nics[1].port.losses = 1000;
    assert_int_equal(r2_rdma_hint(nics, 2, advice), 1);
    assert_non_null(strstr(advice[0].what, "rail 1 (eth1): RDMA port mlx5_1:1 has counted 1000 "));
    assert_non_null(strstr(advice[0].remedy, "PFC"));
    nics[0].port.losses = 5000;
    assert_int_equal(r2_rdma_hint(nics, 2, advice), 1); /* one makes the point */
    assert_non_null(strstr(advice[0].what, "rail 0 "));
    nics[0].tls[0] = '\0'; /* goes by TCP */
    nics[1].port.link = R2_LINK_INFINIBAND;
    assert_int_equal(r2_rdma_hint(nics, 2, advice), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_are_read),
        cmocka_unit_test(roce_that_loses_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
