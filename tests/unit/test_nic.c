/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Finding NICs: selection, place in the machine, distances on given topologies, failover chains.
 */
#include "r2_config.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "rail/nic_parts.h"
#include "rail/nic_watch.h"
#include "fake_sysfs.h"

#define T_GBIT 125000000ull

static r2_nic_seen_t t_seen(const char *name, const char *ip, uint64_t gbit, bool carrier,
                            const char *kind)
{
    static uint32_t ifindex = 1;
    r2_nic_seen_t seen = {0};

    snprintf(seen.nic.name, sizeof(seen.nic.name), "%s", name);
    snprintf(seen.kind, sizeof(seen.kind), "%s", kind);
    seen.nic.ifindex = ifindex++;
    seen.nic.ipv4 = NULL == ip ? 0 : inet_addr(ip);
    seen.nic.prefix_bits = 24;
    seen.nic.speed_bytes_per_s = gbit * T_GBIT;
    seen.nic.carrier = carrier;
    seen.nic.numa_node = -1;
    seen.loopback = 0 == strcmp(name, "lo");
    seen.has_device = !seen.loopback && '\0' == kind[0];
    return seen;
}

/** Runs a selection. @return the names, "a b c", or the error text. */
static const char *t_select(const r2_nic_seen_t *seen, size_t count, const char *selection,
                            bool without_address, r2_status_t wanted)
{
    static char text[512];
    r2_nic_t nics[R2_RAILS_MAX];
    size_t found = 77;

    text[0] = '\0';
    assert_int_equal(
        r2_nics_select(seen, count, selection, without_address, nics, &found, text, sizeof(text)),
        wanted);
    if (R2_OK != wanted) {
        assert_int_equal(found, 77);
        return text;
    }
    for (size_t i = 0; i < found; ++i) {
        strcat(text, i > 0 ? " " : "");
        strcat(text, nics[i].name);
    }
    return text;
}

static void test_select_named(void **state)
{
    const r2_nic_seen_t seen[] = {
        t_seen("lo", "127.0.0.1", 0, true, ""),
        t_seen("rail10", "10.0.10.1", 100, true, ""),
        t_seen("rail2", "10.0.2.1", 100, false, ""),
        t_seen("rail1", NULL, 0, false, ""),
        t_seen("mgmt0", "10.9.0.1", 1, true, ""),
        t_seen("docker0", "172.17.0.1", 0, true, "bridge"),
    };
    const size_t count = r2_array_count(seen);

    (void) state;
    assert_string_equal(t_select(seen, count, "rail2,rail1", false, R2_OK), "rail2 rail1");
    assert_string_equal(t_select(seen, count, " rail10 , mgmt0,", false, R2_OK), "rail10 mgmt0");
    assert_string_equal(t_select(seen, count, "rail*", false, R2_OK), "rail1 rail2 rail10");
    assert_string_equal(t_select(seen, count, "rail2,rail*,rail1", false, R2_OK),
                        "rail2 rail1 rail10");
    assert_string_equal(t_select(seen, count, "rail[12]", false, R2_OK), "rail1 rail2");
    assert_string_equal(t_select(seen, count, "l*,*1*", true, R2_ERR_PARAM),
                        "no NIC matches \"l*\"; this host has rail10 (up, 10.0.10.1/24), "
                        "rail2 (down, 10.0.2.1/24), rail1 (down, no address), "
                        "mgmt0 (up, 10.9.0.1/24), docker0 (up, 172.17.0.1/24)");
    assert_string_equal(t_select(seen, count, "lo", false, R2_OK), "lo");
    assert_non_null(strstr(t_select(seen, count, "rail1,rail3", false, R2_ERR_PARAM),
                           "no NIC matches \"rail3\"; this host has rail10 (up"));
    assert_non_null(strstr(t_select(seen, count, ",", false, R2_ERR_PARAM), "names no NIC"));
    assert_string_equal(t_select(seen, 1, "rail0", false, R2_ERR_PARAM),
                        "no NIC matches \"rail0\"; this host has no NIC");
}

static void test_select_by_itself(void **state)
{
    r2_nic_seen_t seen[] = {
        t_seen("lo", "127.0.0.1", 0, true, ""),
        t_seen("docker0", "172.17.0.1", 0, true, "bridge"),
        t_seen("veth12ab", NULL, 10, true, "veth"),
        t_seen("bmc0", "169.254.3.1", 400, true, ""), /* link-local: a host's own controller */
        t_seen("eno1", "10.9.0.1", 1, true, ""),
        t_seen("usb0", "10.8.0.1", 0, true, ""), /* does not tell its speed */
        t_seen("ib2", "10.0.2.1", 100, true, ""),
        t_seen("ib0", "10.0.0.1", 200, true, ""),
        t_seen("ib1", "10.0.1.1", 0, false, ""), /* cable out: speed not known */
        t_seen("ib3", NULL, 200, true, ""),
        t_seen("bond0", "10.7.0.1", 400, true, "bond"),
    };
    const size_t count = r2_array_count(seen);

    (void) state;
    assert_string_equal(t_select(seen, count, "", false, R2_OK), "ib0 ib1 ib2");
    assert_string_equal(t_select(seen, count, "", true, R2_OK), "ib0 ib1 ib2 ib3");
    for (size_t i = 0; i < count; ++i) {
        seen[i].has_device = false;
    }
    assert_string_equal(t_select(seen, count, "", false, R2_OK), "bond0 ib0 ib1");
    assert_string_equal(t_select(seen, 2, "", false, R2_ERR_NOT_FOUND),
                        "no usable NIC was found; this host has docker0 (up, 172.17.0.1/24)");
    assert_string_equal(t_select(seen, 0, "", false, R2_ERR_NOT_FOUND),
                        "no usable NIC was found; this host has no NIC");
}

/** More NICs than rails: by itself the first ones, by name an error. */
static void test_select_too_many(void **state)
{
    r2_nic_seen_t seen[R2_RAILS_MAX + 4];
    char text[8];

    (void) state;
    for (size_t i = 0; i < r2_array_count(seen); ++i) {
        snprintf(text, sizeof(text), "e%zu", i);
        seen[i] = t_seen(text, "10.0.0.1", 10, true, "");
    }
    assert_string_equal(t_select(seen, r2_array_count(seen), "", false, R2_OK),
                        "e0 e1 e2 e3 e4 e5 e6 e7 e8 e9 e10 e11 e12 e13 e14 e15");
    assert_non_null(strstr(t_select(seen, r2_array_count(seen), "e*", false, R2_ERR_PARAM),
                           "more than 16 NICs match \"e*\""));
}

/** An error text that does not fit is cut, not overrun. */
static void test_select_short_text(void **state)
{
    const r2_nic_seen_t seen = t_seen("rail0", "10.0.0.1", 10, true, "");
    r2_nic_t nics[R2_RAILS_MAX];
    size_t count;

    (void) state;
    for (size_t bytes = 0; bytes < 60; ++bytes) {
        char *text = malloc(bytes + 1);

        text[bytes] = 'x';
        assert_int_equal(r2_nics_select(&seen, 1, "no", false, nics, &count, text, bytes),
                         R2_ERR_PARAM);
        assert_int_equal(text[bytes], 'x');
        assert_true(0 == bytes || strlen(text) < bytes);
        free(text);
    }
}

/** A bond has no device of its own: its RDMA device names it. */
static void t_place_bond(const char *root, r2_nic_seen_t *bond)
{
    strcpy(bond->nic.name, "bond0");
    bond->nic.ifindex = 9;
    fake_file(root, "sys/class/net/bond0/ifindex", "9");
    fake_file(root, "sys/class/infiniband/mlx4_1/ports/2/gid_attrs/ndevs/0", "ib0");
    fake_file(root, "sys/class/infiniband/mlx5_bond_0/ports/1/gid_attrs/ndevs/0", "bond0.7");
    fake_file(root, "sys/class/infiniband/mlx5_bond_0/ports/1/gid_attrs/ndevs/1", "bond0");
    r2_nic_place(root, bond);
    r2_nic_place_rdma(root, &bond->nic);
    assert_string_equal(bond->nic.rdma, "mlx5_bond_0:1");
}

/** A made-up sysfs: an RDMA NIC with two ports, a virtio NIC, a foreign one. */
static void test_place(void **state)
{
    char root[PATH_MAX];
    r2_nic_seen_t rdma = t_seen("ib0", "10.0.0.1", 0, true, "");
    r2_nic_seen_t virtio = rdma, foreign = rdma, bond = rdma;

    (void) state;
    fake_begin(root);
    rdma.has_device = virtio.has_device = foreign.has_device = false;
    rdma.nic.ifindex = 3;
    fake_link(root, "sys/devices/pci0000:00/0000:00:01.0/10000:3b:00.1",
              "sys/class/net/ib0/device");
    fake_file(root, "sys/class/net/ib0/ifindex", "3");
    fake_file(root, "sys/class/net/ib0/speed", "-1");
    fake_file(root, "sys/class/net/ib0/dev_port", "1");
    fake_file(root, "sys/class/net/ib0/device/numa_node", "1");
    fake_file(root, "sys/class/net/ib0/device/infiniband/mlx4_1/ports/1/rate",
              "10 Gb/sec (4X SDR)");
    fake_file(root, "sys/class/net/ib0/device/infiniband/mlx4_1/ports/2/rate",
              "100 Gb/sec (4X EDR)");
    fake_file(root, "sys/class/infiniband/mlx4_1/ports/2/rate", "100 Gb/sec (4X EDR)");
    r2_nic_place(root, &rdma);
    assert_true(r2_nic_place_rdma(root, &rdma.nic));
    assert_true(rdma.has_device);
    assert_string_equal(rdma.nic.pci, "10000:3b:00.1");
    assert_string_equal(rdma.nic.rdma, "mlx4_1:2");
    assert_int_equal(rdma.nic.numa_node, 1);
    assert_true(100 * T_GBIT == rdma.nic.speed_bytes_per_s);

    strcpy(virtio.nic.name, "eth0");
    virtio.nic.ifindex = 2;
    fake_link(root, "sys/devices/pci0000:00/0000:00:03.0/virtio2", "sys/class/net/eth0/device");
    fake_file(root, "sys/class/net/eth0/ifindex", "2");
    fake_file(root, "sys/class/net/eth0/speed", "25000");
    fake_file(root, "sys/devices/pci0000:00/0000:00:03.0/numa_node", "0");
    r2_nic_place(root, &virtio);
    assert_string_equal(virtio.nic.pci, "0000:00:03.0");
    assert_string_equal(virtio.nic.rdma, "");
    assert_int_equal(virtio.nic.numa_node, 0);
    assert_true(25 * T_GBIT == virtio.nic.speed_bytes_per_s);

    t_place_bond(root, &bond);
    r2_nic_place_rdma(root, &virtio.nic);
    assert_string_equal(virtio.nic.rdma, "");
    strcpy(rdma.nic.rdma, "own:1");
    r2_nic_place_rdma(root, &rdma.nic);
    assert_string_equal(rdma.nic.rdma, "own:1");

    foreign.nic.ifindex = 4; /* sysfs shows another network namespace's device of this name */
    r2_nic_place(root, &foreign);
    assert_false(foreign.has_device);
    assert_string_equal(foreign.nic.pci, "");
    strcpy(foreign.nic.name, "bond0");
    r2_nic_place_rdma(root, &foreign.nic);
    assert_string_equal(foreign.nic.rdma, "");
    fake_end(root);
}

/** The network devices of a topology, by name. */
static size_t t_nics_of(hwloc_topology_t topology, r2_nic_t *nics_p)
{
    hwloc_obj_t os = NULL;
    size_t count = 0;

    while (NULL != (os = hwloc_get_next_osdev(topology, os))) {
        const struct hwloc_pcidev_attr_s *pci = &os->parent->attr->pcidev;
        size_t at = count++;

        assert_int_equal(os->parent->type, HWLOC_OBJ_PCI_DEVICE);
        for (; at > 0 && strverscmp(nics_p[at - 1].name, os->name) > 0; --at) {
            nics_p[at] = nics_p[at - 1];
        }
        memset(&nics_p[at], 0, sizeof(nics_p[at]));
        nics_p[at].numa_node = -1;
        snprintf(nics_p[at].name, sizeof(nics_p[at].name), "%s", os->name);
        snprintf(nics_p[at].pci, sizeof(nics_p[at].pci), "%04x:%02x:%02x.%01x",
                 (unsigned) pci->domain, pci->bus, pci->dev, pci->func);
    }
    return count;
}

static hwloc_topology_t t_topology(const char *file)
{
    const char *source = getenv("R2_SRCDIR");
    hwloc_topology_t topology;
    char path[512];

    snprintf(path, sizeof(path), "%s/tests/golden/nic/%s", NULL != source ? source : ".", file);
    assert_int_equal(hwloc_topology_init(&topology), 0);
    hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_ALL);
    assert_int_equal(hwloc_topology_set_xml(topology, path), 0);
    assert_int_equal(hwloc_topology_load(topology), 0);
    return topology;
}

/** One line of chains.txt anew. @param by_node take NICs by NUMA node, as on a live machine. */
static void t_chain_line(const char *file, const char *cores_text, bool by_node, char *line_p,
                         size_t line_bytes)
{
    const hwloc_topology_t topology = t_topology(file);
    hwloc_bitmap_t cores = hwloc_bitmap_alloc();
    r2_nic_t nics[R2_RAILS_MAX];
    const size_t count = t_nics_of(topology, nics);
    uint32_t order[R2_RAILS_MAX];

    hwloc_bitmap_list_sscanf(cores, cores_text);
    r2_nics_measure(topology, cores, nics, count);
    for (size_t i = 0; by_node && i < count; ++i) {
        nics[i].pci[0] = '\0'; /* the NUMA node is known from the first round */
        nics[i].distance = 1000;
    }
    r2_nics_measure(topology, cores, nics, count);
    r2_nics_chain(nics, count, order);
    snprintf(line_p, line_bytes, "%s %s", file, cores_text);
    for (size_t i = 0; i < count; ++i) {
        const size_t used = strlen(line_p);

        snprintf(line_p + used, line_bytes - used, " %s=%u", nics[order[i]].name,
                 nics[order[i]].distance);
    }
    hwloc_bitmap_free(cores);
    hwloc_topology_destroy(topology);
}

static void test_golden_chains(void **state)
{
    const char *source = getenv("R2_SRCDIR");
    char path[512], wanted[512], got[512], file[64], cores[64];
    unsigned lines = 0;
    FILE *stream;

    (void) state;
    snprintf(path, sizeof(path), "%s/tests/golden/nic/chains.txt", NULL != source ? source : ".");
    stream = fopen(path, "r");
    assert_non_null(stream);
    while (NULL != fgets(wanted, sizeof(wanted), stream)) {
        wanted[strcspn(wanted, "\n")] = '\0';
        if ('#' != wanted[0]) {
            assert_int_equal(sscanf(wanted, "%63s %63s", file, cores), 2);
            t_chain_line(file, cores, false, got, sizeof(got));
            assert_string_equal(got, wanted);
            t_chain_line(file, cores, 0 != strcmp(file, "single-2nic.xml"), got, sizeof(got));
            assert_string_equal(got, wanted);
            ++lines;
        }
    }
    fclose(stream);
    assert_true(lines >= 10);
}

/** A NIC whose place is not known comes last. */
static void test_unknown_place(void **state)
{
    const hwloc_topology_t topology = t_topology("dual-4nic.xml");
    r2_nic_t nics[] = {{.name = "a", .numa_node = -1},
                       {.name = "b", .numa_node = 1},
                       {.name = "c", .numa_node = 0},
                       {.name = "d", .numa_node = 7}};
    uint32_t order[4];

    (void) state;
    r2_nics_measure(topology, hwloc_topology_get_topology_cpuset(topology), nics, 4);
    r2_nics_chain(nics, 4, order);
    assert_int_equal(nics[0].distance, R2_NIC_DISTANCE_UNKNOWN);
    assert_int_equal(nics[3].distance, R2_NIC_DISTANCE_UNKNOWN);
    assert_int_equal(order[0], 1);
    assert_int_equal(order[1], 2);
    assert_int_equal(order[2], 0);
    assert_int_equal(order[3], 3);
    hwloc_topology_destroy(topology);
}

/** This machine has lo. */
static void test_find_here(void **state)
{
    r2_nic_t nics[R2_RAILS_MAX];
    size_t count = 0;
    char text[256];

    (void) state;
    assert_int_equal(r2_nics_find("lo", false, nics, &count, text, sizeof(text)), R2_OK);
    assert_int_equal(count, 1);
    assert_int_equal(nics[0].ifindex, 1);
    assert_int_equal(nics[0].ipv4, htonl(INADDR_LOOPBACK));
    assert_int_equal(r2_nics_find("nosuch*", false, nics, &count, text, sizeof(text)),
                     R2_ERR_PARAM);
    assert_non_null(strstr(text, "no NIC matches \"nosuch*\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_select_named),    cmocka_unit_test(test_select_by_itself),
        cmocka_unit_test(test_select_too_many), cmocka_unit_test(test_select_short_text),
        cmocka_unit_test(test_place),           cmocka_unit_test(test_golden_chains),
        cmocka_unit_test(test_unknown_place),   cmocka_unit_test(test_find_here),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
