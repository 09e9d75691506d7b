/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * GPUs and the NICs near them: golden lines for topologies of the shape of real machines, and what
 * r2_info shows.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "info.h"
#include "r2/near.h"
#include "rail/nic_parts.h"

static void path_of(const char *file, char *path_p, size_t room)
{
    const char *source = getenv("R2_SRCDIR");

    snprintf(path_p, room, "%s/tests/golden/nic/%s", NULL == source ? "." : source, file);
}

static hwloc_topology_t load(const char *file)
{
    hwloc_topology_t topology;
    char path[512];

    path_of(file, path, sizeof(path));
    assert_int_equal(hwloc_topology_init(&topology), 0);
    hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_ALL);
    assert_int_equal(hwloc_topology_set_xml(topology, path), 0);
    assert_int_equal(hwloc_topology_load(topology), 0);
    return topology;
}

/* NICs by name, as r2_nics_find() has them. */
static size_t nics_of(hwloc_topology_t topology, r2_nic_t *nics_p)
{
    hwloc_obj_t os = NULL;
    size_t count = 0;

    while (NULL != (os = hwloc_get_next_osdev(topology, os))) {
        const struct hwloc_pcidev_attr_s *pci = &os->parent->attr->pcidev;
        size_t at = count++;

        for (; at > 0 && strcmp(nics_p[at - 1].name, os->name) > 0; --at) {
            nics_p[at] = nics_p[at - 1];
        }
        memset(&nics_p[at], 0, sizeof(nics_p[at]));
        snprintf(nics_p[at].name, sizeof(nics_p[at].name), "%s", os->name);
        snprintf(nics_p[at].pci, sizeof(nics_p[at].pci), "%04x:%02x:%02x.%01x",
                 (unsigned) pci->domain, pci->bus, pci->dev, pci->func);
    }
    return count;
}

static void measure(const char *file, info_t *info_p)
{
    const hwloc_topology_t topology = load(file);

    memset(info_p, 0, sizeof(*info_p));
    info_p->nic_count = nics_of(topology, info_p->nics);
    info_p->gpu_count = r2_gpus_measure(topology, info_p->nics, info_p->nic_count, info_p->gpus);
    hwloc_topology_destroy(topology);
}

static const char *const machines[] = {"dgx-a100.xml", "dgx-h100.xml", "plain-2gpu.xml",
                                       "dual-4nic.xml"};

/* @param print what is in the golden file of a machine */
static void compare(const char *file, void (*print)(const char *machine, FILE *out))
{
    static char wanted[16384];
    char path[512], *shown = NULL;
    size_t bytes = 0, wanted_bytes;
    FILE *out = open_memstream(&shown, &bytes), *in;

    for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); ++i) {
        fprintf(out, "%s%s\n", 0 == i ? "" : "\n", machines[i]);
        print(machines[i], out);
    }
    fclose(out);
    path_of(file, path, sizeof(path));
    in = fopen(path, "r");
    assert_non_null(in);
    wanted_bytes = fread(wanted, 1, sizeof(wanted) - 1, in);
    wanted[wanted_bytes] = '\0';
    fclose(in);
    assert_string_equal(shown, wanted);
    free(shown);
}

static void print_gpus(const char *machine, FILE *out)
{
    static info_t info;

    measure(machine, &info);
    info_print_gpus(&info, out);
}

/* What r2_info shows of all machines is gpus.txt. */
static void golden_machines(void **state)
{
    (void) state;
    compare("gpus.txt", print_gpus);
}

/* NICs from the nearest on; ">" where the next ones are farther. */
static void print_chain(const char *what, const info_t *info, const r2_near_t *near, FILE *out)
{
    fprintf(out, "    %s:", what);
    for (uint8_t step = 0; step < R2_RAILS_MAX; ++step) {
        bool is_first = step > 0;

        for (size_t i = 0; i < info->nic_count; ++i) {
            if (step == near->steps[i]) {
                fprintf(out, "%s %s", is_first ? " >" : "", info->nics[i].name);
                is_first = false;
            }
        }
    }
    fprintf(out, "\n");
}

/* As a process sees it that is bound to some cores. */
static void find_near(hwloc_topology_t topology, hwloc_const_cpuset_t cores, info_t *info,
                      r2_near_gpus_t *near_p)
{
    r2_nics_measure(topology, cores, info->nics, info->nic_count);
    r2_near_find(info->nics, info->nic_count, info->gpus, info->gpu_count, near_p);
}

/* Copies are those of a process on the last NUMA node. Those of one that is bound to cores near the
 * GPU, or to none, are as near to NICs as the GPU. */
static void print_chains(const char *machine, FILE *out)
{
    const hwloc_topology_t topology = load(machine);
    const hwloc_obj_t last = hwloc_get_obj_by_type(
        topology, HWLOC_OBJ_NUMANODE,
        (unsigned) hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE) - 1);
    r2_near_gpus_t near;
    static info_t info;

    measure(machine, &info);
    for (size_t i = 0; i < info.gpu_count; ++i) {
        const hwloc_obj_t gpu = hwloc_get_pcidev_by_busidstring(topology, info.gpus[i].pci);
        const r2_near_gpu_t *found = &near.of[i];

        find_near(topology, hwloc_topology_get_topology_cpuset(topology), &info, &near);
        assert_memory_equal(&found->copies, &found->itself, sizeof(found->itself));
        find_near(topology, hwloc_get_non_io_ancestor_obj(topology, gpu)->cpuset, &info, &near);
        assert_memory_equal(&found->copies, &found->itself, sizeof(found->itself));
        find_near(topology, last->cpuset, &info, &near);
        assert_ptr_equal(r2_near_of(&near, info.gpus[i].pci), found);
        fprintf(out, "  %s\n", found->pci);
        print_chain("NICs read it", &info, &found->itself, out);
        print_chain("they read copies", &info, &found->copies, out);
    }
    hwloc_topology_destroy(topology);
}

/* In which order lanes take what lies on a GPU is nearest.txt. */
static void golden_chains(void **state)
{
    (void) state;
    compare("nearest.txt", print_chains);
}

/* Every GPU of the A100 machine has two NICs behind its switch, of the H100 machine one. */
static void the_nearest_come_first(void **state)
{
    static info_t info;

    (void) state;
    measure("dgx-a100.xml", &info);
    assert_int_equal(info.gpu_count, 8);
    for (size_t i = 0; i < info.gpu_count; ++i) {
        const r2_gpu_place_t *gpu = &info.gpus[i];

        assert_int_equal(gpu->ways[gpu->order[1]], R2_GPU_WAY_SWITCH);
        assert_int_equal(gpu->ways[gpu->order[2]], R2_GPU_WAY_PACKAGE);
        assert_int_equal(gpu->ways[gpu->order[9]], R2_GPU_WAY_FAR);
    }
    measure("dgx-h100.xml", &info);
    assert_int_equal(info.gpu_count, 8);
    for (size_t i = 0; i < info.gpu_count; ++i) {
        const r2_gpu_place_t *gpu = &info.gpus[i];

        assert_int_equal(gpu->ways[gpu->order[0]], R2_GPU_WAY_SWITCH);
        assert_int_equal(gpu->ways[gpu->order[1]], R2_GPU_WAY_NODE);
        assert_int_equal(gpu->ways[gpu->order[9]], R2_GPU_WAY_FAR);
    }
}

/* A NIC whose place is not known comes last. */
static void an_unknown_place_is_last(void **state)
{
    const hwloc_topology_t topology = load("dgx-h100.xml");
    r2_nic_t nics[3] = {{.name = "bond0"}, {.name = "a", .pci = "0000:dc:00.0"}, {.name = "b"}};
    r2_gpu_place_t gpus[R2_GPUS_MAX];

    (void) state;
    assert_int_equal(r2_gpus_measure(topology, nics, 3, gpus), 8);
    assert_int_equal(gpus[0].order[0], 1);
    assert_int_equal(gpus[0].order[1], 0);
    assert_int_equal(gpus[0].ways[0], R2_GPU_WAY_UNKNOWN);
    hwloc_topology_destroy(topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_machines),
        cmocka_unit_test(golden_chains),
        cmocka_unit_test(the_nearest_come_first),
        cmocka_unit_test(an_unknown_place_is_last),
    };

    return cmocka_run_group_tests_name("GPUs and NICs", tests, NULL, NULL);
}
