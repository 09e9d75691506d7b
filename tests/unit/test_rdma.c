/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * RDMA ports and the NICs on them, on made-up hosts: what is found, what becomes a rail, and what
 * r2_info shows of it (tests/golden/rdma; --write writes that anew).
 */
#include "r2_config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/util.h"
#include "fake_sysfs.h"
#include "info.h"
#include "rdma_hosts.h"
#include "rail/nic_parts.h"

static bool t_writes; /* golden files */

/** Chooses rails as r2_nics_find() does. */
static void t_find(t_host_t *host, const char *selection, info_t *info_p)
{
    size_t count = host->count;
    r2_nic_seen_t *seen;

    memset(info_p, 0, sizeof(*info_p));
    r2_params_init(&info_p->params);
    info_p->params.rails = selection;
    strcpy(info_p->host_name, "n1");
    r2_nics_place(host->root, selection, host->seen, host->count);
    seen = malloc(count * sizeof(*seen));
    memcpy(seen, host->seen, count * sizeof(*seen));
    assert_int_equal(r2_nics_add_bare(host->root, host->managers, &seen, &count), R2_OK);
    if (R2_OK != r2_nics_select(seen, count, selection, false, info_p->nics, &info_p->nic_count,
                                info_p->nics_text, sizeof(info_p->nics_text))) {
        info_p->nic_count = 0;
    }
    free(seen);
    for (size_t i = 0; i < info_p->nic_count; ++i) {
        (void) r2_nic_place_rdma(host->root, &info_p->nics[i]);
    }
    r2_nics_chain(info_p->nics, info_p->nic_count, info_p->chain);
    info_p->port_count = r2_rdma_ports(host->root, info_p->ports);
}

/** Compares what r2_info shows of the rails, as text and as JSON, with a golden file. */
static void t_golden(const info_t *info, const char *name)
{
    const char *source = getenv("R2_SRCDIR");
    char path[PATH_MAX], *shown = NULL, wanted[16384];
    size_t bytes = 0, wanted_bytes;
    FILE *file = open_memstream(&shown, &bytes);
    r2_json_t json;

    info_print_rails(info, file);
    fprintf(file, "%s\n", info->nics_text);
    r2_json_init_file(&json, file);
    r2_json_open(&json, NULL, '{');
    info_json_rails(&json, info);
    r2_json_close(&json, '}');
    assert_int_equal(r2_json_end_file(&json), R2_OK);
    fclose(file);
    snprintf(path, sizeof(path), "%s/tests/golden/rdma/%s.txt", NULL != source ? source : ".",
             name);
    file = fopen(path, t_writes ? "we" : "re");
    assert_non_null(file);
    if (t_writes) {
        assert_int_equal(fwrite(shown, 1, bytes, file), bytes);
    } else {
        wanted_bytes = fread(wanted, 1, sizeof(wanted) - 1, file);
        wanted[wanted_bytes] = '\0';
        assert_string_equal(shown, wanted);
    }
    fclose(file);
    free(shown);
}

/** One card, two PCI functions, each an RDMA device with one port; management beside it. */
static void t_two_ports(t_host_t *host)
{
    t_begin(host);
    t_nic(host, "eno1", "", "0000:00:1f.6", "10.9.0.1", true);
    t_nic(host, "ens1f0np0", "", "0000:3b:00.0", "10.0.0.1", true);
    t_nic(host, "ens1f1np1", "", "0000:3b:00.1", "10.0.1.1", true);
    t_speed(host, "eno1", "1000");
    t_speed(host, "ens1f0np0", "100000");
    t_speed(host, "ens1f1np1", "100000");
    t_path(host, "1", "sys/class/net/ens1f1np1/dev_port"); /* of the card: its device has port 1 */
    t_device(host, "mlx5_0", "0000:3b:00.0", "0");
    t_device(host, "mlx5_1", "0000:3b:00.1", "0");
    t_port(host, "mlx5_0", 1, "Ethernet", "4: ACTIVE", "100 Gb/sec (4X EDR)", "0x0");
    t_port(host, "mlx5_1", 1, "Ethernet", "4: ACTIVE", "100 Gb/sec (4X EDR)", "0x0");
    t_roce(host, "mlx5_0", 1, "ens1f0np0", T_LOCAL "01", T_MAPPED "0a00:0001");
    t_roce(host, "mlx5_1", 1, "ens1f1np1", T_LOCAL "02", T_MAPPED "0a00:0101");
}

static void test_two_ports(void **state)
{
    t_host_t host;
    info_t info;

    (void) state;
    t_two_ports(&host);
    t_find(&host, "", &info);
    assert_int_equal(info.nic_count, 2);
    assert_string_equal(info.nics[1].rdma, "mlx5_1:1");
    assert_int_equal(info.nics[1].port.gid_kind, R2_GID_ROCE_V2);
    assert_int_equal(info.nics[1].port.gid_idx, 3);
    t_golden(&info, "two-ports");
    t_find(&host, "mlx5_1:1,mlx5_0:1", &info);
    assert_int_equal(info.nic_count, 2);
    assert_string_equal(info.nics[0].name, "ens1f1np1");
    assert_string_equal(info.nics[1].name, "ens1f0np0");
    t_find(&host, "mlx5_*:1, eno1", &info);
    assert_int_equal(info.nic_count, 3);
    assert_string_equal(info.nics[0].name, "ens1f0np0");
    assert_string_equal(info.nics[2].name, "eno1");
    assert_string_equal(info.nics[2].rdma, "");
    t_find(&host, "mlx5_0:1,mlx5_7:1", &info);
    t_golden(&info, "no-such-port");
    fake_end(host.root);
}

/** An older card: one PCI function, two ports, InfiniBand, of which the second has no cable. */
static void test_one_device_port_down(void **state)
{
    t_host_t host;
    info_t info;

    (void) state;
    t_begin(&host);
    t_nic(&host, "ib0", "ipoib", "0000:81:00.0", "10.0.0.1", true);
    t_nic(&host, "ib1", "ipoib", "0000:81:00.0", "10.0.1.1", false);
    t_path(&host, "0", "sys/class/net/ib0/dev_port");
    t_path(&host, "1", "sys/class/net/ib1/dev_port");
    t_device(&host, "mlx4_0", "0000:81:00.0", "1");
    t_port(&host, "mlx4_0", 1, "InfiniBand", "4: ACTIVE", "56 Gb/sec (4X FDR)", "0x1b");
    t_port(&host, "mlx4_0", 2, "InfiniBand", "1: DOWN", "10 Gb/sec (4X SDR)", "0x0");
    t_gid(&host, "mlx4_0", 1, 0, "fe80:0000:0000:0000:0002:c903:0000:0001", "IB/RoCE v1", "");
    t_gid(&host, "mlx4_0", 1, 1, "fe80:0000:0000:0000:0002:c903:0000:0009", "IB/RoCE v1", "");
    t_gid(&host, "mlx4_0", 2, 0, "fe80:0000:0000:0000:0002:c903:0000:0002", "IB/RoCE v1", "");
    t_find(&host, "", &info); /* what is down belongs to the fastest class */
    assert_int_equal(info.nic_count, 2);
    t_find(&host, "ib0,ib1", &info);
    assert_int_equal(info.nics[0].port.lid, 27);
    assert_int_equal(info.nics[0].port.gid_idx, 0);
    assert_int_equal(info.nics[1].port.state, R2_PORT_DOWN);
    assert_true(7000000000ull == info.nics[0].speed_bytes_per_s); /* IPoIB tells none */
    assert_true(0 == info.nics[1].speed_bytes_per_s);             /* and what is down none that is
                                                                     true */
    t_golden(&info, "port-down");
    fake_end(host.root);
}

/** A bond of two RoCE ports is one RDMA device, one NIC, one rail; a VLAN on it is the same. */
static void test_bond(void **state)
{
    t_host_t host;
    info_t info;

    (void) state;
    t_begin(&host);
    t_nic(&host, "eno1", "", "0000:00:1f.6", "10.9.0.1", true);
    t_nic(&host, "bond0", "bond", NULL, "10.0.0.1", true);
    t_nic(&host, "bond0.7", "vlan", NULL, "10.7.0.1", true);
    t_nic(&host, "ens1f0", "", "0000:3b:00.0", NULL, true);
    t_nic(&host, "ens1f1", "", "0000:3b:00.1", NULL, true);
    t_speed(&host, "eno1", "1000");
    t_speed(&host, "bond0", "200000");
    t_speed(&host, "bond0.7", "200000");
    t_device(&host, "mlx5_bond_0", "0000:3b:00.0", "1");
    t_port(&host, "mlx5_bond_0", 1, "Ethernet", "4: ACTIVE", "200 Gb/sec (4X HDR)", "0x0");
    t_roce(&host, "mlx5_bond_0", 1, "bond0", T_LOCAL "01", T_MAPPED "0a00:0001");
    t_gid(&host, "mlx5_bond_0", 1, 4, NULL, NULL, NULL); /* an address that went */
    t_gid(&host, "mlx5_bond_0", 1, 5, T_MAPPED "0a07:0001", "IB/RoCE v1", "bond0.7");
    t_gid(&host, "mlx5_bond_0", 1, 6, T_MAPPED "0a07:0001", "RoCE v2", "bond0.7");
    t_find(&host, "", &info);
    assert_int_equal(info.nic_count, 1);
    assert_string_equal(info.nics[0].name, "bond0");
    assert_string_equal(info.nics[0].pci, "0000:3b:00.0");
    t_golden(&info, "bond");
    t_find(&host, "bond0.7", &info);
    assert_string_equal(info.nics[0].rdma, "mlx5_bond_0:1");
    assert_int_equal(info.nics[0].port.gid_idx, 6);
    t_find(&host, "mlx5_bond_0:1", &info); /* of three NICs on it one that lies on no other, if it
                                              has an address */
    assert_string_equal(info.nics[0].name, "bond0");
    fake_end(host.root);
}

/* Two InfiniBand ports: the first has no network device, that of the second has no address. */
static void t_bare(t_host_t *host)
{
    t_begin(host);
    t_nic(host, "docker0", "bridge", NULL, "172.17.0.1", true);
    t_nic(host, "eno1", "", "0000:00:1f.6", "10.9.0.1", true);
    t_nic(host, "eno2", "", "0000:00:1f.7", "10.8.0.1", true);
    t_nic(host, "ib1", "ipoib", "0000:81:00.1", NULL, true);
    t_speed(host, "eno1", "1000");
    t_device(host, "mlx5_0", "0000:81:00.0", "1");
    t_port(host, "mlx5_0", 1, "InfiniBand", "2: INIT", "200 Gb/sec (4X HDR)", "0xffff");
    t_gid(host, "mlx5_0", 1, 0, "fe80:0000:0000:0000:0002:c903:0000:0001", "IB/RoCE v1", "");
    t_device(host, "mlx5_1", "0000:81:00.1", "1");
    t_port(host, "mlx5_1", 1, "InfiniBand", "4: ACTIVE", "200 Gb/sec (4X HDR)", "0x1c");
    t_gid(host, "mlx5_1", 1, 0, "fe80:0000:0000:0000:0002:c903:0000:0002", "IB/RoCE v1", "ib1");
}

/** InfiniBand without IP: the port itself is the rail, and a network device of the host stands in
 * where there has to be one. */
static void test_without_ip(void **state)
{
    t_host_t host;
    info_t info;

    (void) state;
    t_bare(&host);
    t_find(&host, "mlx5_0:1,mlx5_1:1", &info);
    assert_int_equal(info.nic_count, 2);
    assert_string_equal(info.nics[0].name, "mlx5_0:1");
    assert_string_equal(info.nics[0].via, "eno1"); /* no bridge of containers */
    assert_false(info.nics[0].carrier);
    assert_true(info.nics[1].carrier);
    assert_int_equal(info.nics[1].port.gid_kind,
                     R2_GID_INFINIBAND);         /* though ib1 is not its name */
    assert_int_equal(info.ports[0].port.lid, 0); /* before the subnet manager came */
    t_golden(&info, "without-ip");
    strcpy(host.managers, "ib*, eno2");
    t_find(&host, "mlx5_*:1", &info);
    assert_int_equal(info.nic_count, 2);
    assert_string_equal(info.nics[1].via, "eno2");
    strcpy(host.managers, "eno2,eno1"); /* in this order */
    t_find(&host, "mlx5_0:1", &info);
    assert_string_equal(info.nics[0].via, "eno2");
    host.seen[2].nic.carrier = false;
    t_find(&host, "mlx5_0:1", &info);
    assert_string_equal(info.nics[0].via, "eno1");
    host.seen[1].nic.carrier = false; /* none has: it may come */
    t_find(&host, "mlx5_0:1", &info);
    assert_string_equal(info.nics[0].via, "eno2");
    strcpy(host.managers, "eno7");
    t_find(&host, "mlx5_0:1", &info);
    assert_int_equal(info.nic_count, 0); /* nobody could be called */
    fake_end(host.root);
}

/** By itself: no such port, since nothing says that it is meant to be used, or that the other hosts
 * have one; no pattern of network devices means them; an address makes the network device the
 * rail. */
static void test_without_ip_by_itself(void **state)
{
    t_host_t host;
    info_t info;

    (void) state;
    t_bare(&host);
    t_find(&host, "", &info);
    assert_int_equal(info.nic_count, 1);
    assert_string_equal(info.nics[0].name, "eno1");
    t_find(&host, "*", &info);
    assert_int_equal(info.nic_count, 4);
    host.seen[3].nic.ipv4 = inet_addr("10.0.1.1");
    t_find(&host, "", &info);
    assert_int_equal(info.nic_count, 1);
    assert_string_equal(info.nics[0].name, "ib1");
    t_find(&host, "mlx5_*:1", &info);
    assert_int_equal(info.nic_count, 2);
    assert_string_equal(info.nics[0].name, "mlx5_0:1");
    assert_string_equal(info.nics[1].name, "ib1");
    fake_end(host.root);
}

/** A container: virtual functions, renamed, of which one has no file in /dev/infiniband. */
static void test_virtual_functions(void **state)
{
    t_host_t host;
    info_t info;

    (void) state;
    t_begin(&host);
    t_nic(&host, "storage0", "", "0000:3b:00.2", "10.0.0.1", true);
    t_nic(&host, "compute0", "", "0000:3b:08.3", "10.0.1.1", true);
    t_device(&host, "mlx5_2", "0000:3b:00.2", "-1");
    t_device(&host, "mlx5_10", "0000:3b:08.3", "-1");
    t_port(&host, "mlx5_2", 1, "Ethernet", "4: ACTIVE", "100 Gb/sec (4X EDR)", "0x0");
    t_port(&host, "mlx5_10", 1, "Ethernet", "4: ACTIVE", "100 Gb/sec (4X EDR)", "0x0");
    t_roce(&host, "mlx5_2", 1, "storage0", T_LOCAL "01", T_MAPPED "0a00:0001");
    t_gid(&host, "mlx5_10", 1, 0, T_LOCAL "02", "IB/RoCE v1", "compute0");
    t_gid(&host, "mlx5_10", 1, 1, T_LOCAL "02", "RoCE v2", "compute0");
    t_path(&host, "", "sys/class/infiniband/mlx5_2/device/infiniband_verbs/uverbs2/dev");
    t_path(&host, "", "sys/class/infiniband/mlx5_10/device/infiniband_verbs/uverbs10/dev");
    t_path(&host, "", "dev/infiniband/uverbs2");
    t_find(&host, "", &info);
    assert_int_equal(info.nic_count, 2);
    assert_string_equal(info.nics[0].rdma, "mlx5_10:1");
    assert_false(info.nics[0].port.openable);
    assert_int_equal(info.nics[0].port.gid_idx, 1);
    assert_true(info.nics[1].port.openable);
    t_golden(&info, "virtual-functions");
    fake_end(host.root);
}

/** A GID follows the NIC's address: whoever opens the port anew finds it. */
static void test_gid_moves(void **state)
{
    t_host_t host;
    r2_nic_t *nic = &host.seen[1].nic;

    (void) state;
    t_two_ports(&host);
    r2_nics_place(host.root, "", host.seen, host.count);
    assert_int_equal(nic->port.gid_idx, 3);
    t_gid(&host, "mlx5_0", 1, 3, NULL, NULL, NULL);
    t_gid(&host, "mlx5_0", 1, 4, T_MAPPED "0a00:0009", "RoCE v2", "ens1f0np0");
    t_gid(&host, "mlx5_0", 1, 5, T_MAPPED "0a00:0001", "RoCE v2", "ens1f0np0");
    assert_true(r2_nic_place_rdma(host.root, nic));
    assert_int_equal(nic->port.gid_idx, 5);
    nic->ipv4 = 0; /* the first of its kind */
    assert_true(r2_nic_place_rdma(host.root, nic));
    assert_int_equal(nic->port.gid_idx, 4);
    fake_end(host.root);
}

/** What sysfs says is no more trusted than it has to be. */
static void test_odd_files(void **state)
{
    t_host_t host;
    info_t info;

    (void) state;
    t_two_ports(&host);
    t_port(&host, "mlx5_0", 1, "Token Ring", "77: LOST", "-4 Gb/sec", "0x0");
    t_gid(&host, "mlx5_0", 1, 3, "no address", "RoCE v2", "ens1f0np0");
    t_path(&host, "", "sys/class/infiniband/mlx5_1/ports/1/state");
    t_path(&host, "4: ACTIVE", "sys/class/infiniband/mlx5_1/ports/0/state");
    t_path(&host, "4: ACTIVE", "sys/class/infiniband/mlx5_1/ports/4711/state");
    t_path(&host, "4: ACTIVE", "sys/class/infiniband/%s/ports/1/state",
           "a_device_whose_name_is_longer_than_there_is_room");
    t_find(&host, "ens1f0np0", &info);
    assert_int_equal(info.nics[0].port.state, R2_PORT_UNKNOWN);
    assert_int_equal(info.nics[0].port.link, R2_LINK_UNKNOWN);
    assert_true(0 == info.nics[0].port.speed_bytes_per_s);
    assert_int_equal(info.nics[0].port.gid_idx, 1);
    assert_int_equal(info.port_count, 2);
    assert_int_equal(info.ports[1].port.state, R2_PORT_UNKNOWN);
    fake_end(host.root);
}

/** Memory that is not registered: with the limit that is in the way, and what to do. */
static void test_refusals(void **state)
{
    static const struct {
        r2_tp_refusal_t refusal;
        uint64_t memlock_bytes;
        const char *what, *remedy;
    } rows[] = {
        {{1 << 20, 2 << 20, ENOMEM},
         8 << 20,
         "rail 3 (ens1f0np0): 1024 KiB of memory cannot be registered with RDMA device mlx5_0:1 "
         "beside 2048 KiB that are (Cannot allocate memory), and what is sent from there is "
         "copied; this process may lock 8192 KiB (ulimit -l)",
         "LimitMEMLOCK=infinity"},
        {{1 << 20, 0, ENOMEM}, UINT64_MAX, "may lock all it has", "max_mr_size"},
        {{4096, 0, EFAULT}, 65536, "(Bad address)", "UCX_LOG_LEVEL=debug"},
        {{4096, 0, 0}, UINT64_MAX, "(UCX does not say why)", "UCX_LOG_LEVEL=debug"},
    };
    const r2_nic_t nic = {.name = "ens1f0np0", .rdma = "mlx5_0:1"};
    r2_rdma_advice_t advice;

    (void) state;
    for (size_t i = 0; i < r2_array_count(rows); ++i) {
        r2_rdma_refusal_advise(rows[i].memlock_bytes, 3, &nic, &rows[i].refusal, &advice);
        assert_non_null(strstr(advice.what, rows[i].what));
        assert_non_null(strstr(advice.remedy, rows[i].remedy));
    }
}

/** What stands against RDMA is told once, with what to do. */
static void test_advice(void **state)
{
    static const struct {
        r2_rdma_setting_t setting;
        const char *what, *remedy; /* NULL: there is nothing to say */
    } rows[] = {
        {{.tls = "rc_verbs", .memlock_bytes = UINT64_MAX}, NULL, NULL},
        {{.tls = "", .memlock_bytes = 0, .ucx_tls = "tcp"}, NULL, NULL},
        {{.tls = "rc_verbs", .memlock_bytes = 65536},
         "may lock 64 KiB of memory (ulimit -l), and RDMA over 2 rails locks 128 MiB",
         "LimitMEMLOCK=infinity"},
        {{.tls = "rc_verbs", .memlock_bytes = 128u << 20}, NULL, NULL},
        {{.tls = "rc_verbs", .memlock_bytes = UINT64_MAX, .ucx_tls = "tcp,sm"},
         "UCX_TLS=tcp,sm does not apply",
         "coll_r2_tls = tcp"},
        {{.tls = "rc_verbs", .memlock_bytes = UINT64_MAX, .ucx_tls = "^rc"},
         "UCX_TLS=^rc does not apply",
         "coll_r2_tls = tcp"},
        {{.tls = "rc_verbs", .memlock_bytes = UINT64_MAX, .ucx_tls = "^tcp"}, NULL, NULL},
        {{.tls = "rc_verbs", .memlock_bytes = UINT64_MAX, .ucx_tls = "rc_x,sm"}, NULL, NULL},
        {{.tls = "ud_verbs", .memlock_bytes = UINT64_MAX, .ucx_tls = "rc_x,sm"},
         "UCX_TLS=rc_x,sm does not apply",
         "coll_r2_tls = tcp"},
        {{.tls = "rc_verbs", .memlock_bytes = UINT64_MAX, .ucx_net_devices = "mlx5_0:1"},
         "UCX_NET_DEVICES=mlx5_0:1 does not apply to r2, which uses mlx5_1:1 for rail 1",
         "coll_r2_rails"},
        {{.tls = "rc_verbs", .memlock_bytes = UINT64_MAX, .ucx_net_devices = "all"}, NULL, NULL},
        {{.tls = "rc_verbs", .memlock_bytes = UINT64_MAX, .ucx_gid_index = "3"}, NULL, NULL},
        {{.tls = "rc_verbs", .memlock_bytes = UINT64_MAX, .ucx_gid_index = "1"},
         "rail 0 (ens1f0np0) has its address at index 3 of mlx5_0:1",
         "unset UCX_IB_GID_INDEX"},
    };
    static const char *const lacks[] = {NULL, "/dev/infiniband", "UCX does not know it",
                                        "(ulimit -l)", "cannot be opened"};
    r2_rdma_advice_t advice[R2_RDMA_ADVICE_MAX];
    t_host_t host;
    info_t info;

    (void) state;
    t_two_ports(&host);
    t_find(&host, "", &info);
    strcpy(info.nics[0].tls, "rc_verbs");
    strcpy(info.nics[1].tls, "rc_verbs");
    for (size_t i = 0; i < r2_array_count(rows); ++i) {
        assert_int_equal(r2_rdma_advise(&rows[i].setting, info.nics, info.nic_count, advice),
                         NULL != rows[i].what);
        assert_true(NULL == rows[i].what || (NULL != strstr(advice[0].what, rows[i].what) &&
                                             NULL != strstr(advice[0].remedy, rows[i].remedy)));
    }
    for (r2_rdma_lack_t lack = R2_RDMA_LACKS_FILE; lack <= R2_RDMA_LACKS_DEVICE; ++lack) {
        info.nics[1].tls[0] = '\0';
        info.nics[1].lack = lack;
        assert_int_equal(r2_rdma_advise(&rows[0].setting, info.nics, info.nic_count, advice), 1);
        assert_non_null(strstr(advice[0].what, "(ens1f1np1) goes by TCP, not by its RDMA device "
                                               "mlx5_1:1: "));
        assert_non_null(strstr(advice[0].what, lacks[lack]));
        assert_non_null(strstr(advice[0].remedy, "coll_r2_tls = tcp"));
    }
    fake_end(host.root);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_ports),
        cmocka_unit_test(test_one_device_port_down),
        cmocka_unit_test(test_bond),
        cmocka_unit_test(test_without_ip),
        cmocka_unit_test(test_virtual_functions),
        cmocka_unit_test(test_gid_moves),
        cmocka_unit_test(test_odd_files),
        cmocka_unit_test(test_advice),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_without_ip_by_itself),
    };

    t_writes = 2 == argc && 0 == strcmp(argv[1], "--write");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
