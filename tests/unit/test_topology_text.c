/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The text form of topologies, and what the planner makes of it.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "sim/real.h"
#include "topology.h"

static r2_status_t t_read(const char *text, topo_t *topo_p, char *error_p, size_t error_bytes)
{
    FILE *in = fmemopen((void *) (uintptr_t) text, strlen(text), "r");
    r2_status_t status = topo_read(in, "file", topo_p, error_p, error_bytes);

    fclose(in);
    return status;
}

static void t_file(void **state)
{
    char error[256];
    topo_t topo;

    (void) state;
    assert_int_equal(t_read("# lab\nhosts 4\nrails 2\nrate 100mbit\nnetwork flat\nlatency 50us\n"
                            "rate-of h0 rail1 1G\ncapacity 3 1 4\nfail 1 0 # dead\nslow h2 rail1 "
                            "25%\ncut h3 h0 rail0",
                            &topo, error, sizeof(error)),
                     R2_OK);
    assert_int_equal(topo.host_count, 4);
    assert_true(topo.flat);
    assert_float_equal(topo.latency_s, 50e-6, 1e-12);
    assert_float_equal(topo_rail(&topo, 0, 1), 1e9, 1);
    assert_true(!(topo_rail(&topo, 1, 0) > 0));
    assert_float_equal(topo_rail(&topo, 2, 1), 12.5e6 / 4, 1);
    assert_true(topo_is_cut(&topo, 0, 3, 0));
    assert_float_equal(topo_rail(&topo, 3, 1), 12.5e6 / 4, 1);
    assert_int_equal(topo_failures(&topo), 4);
    topo_fini(&topo);
}

static void t_file_errors(void **state)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"\n", "file:1: \"hosts\", \"rails\" and \"rate\" come first"},
        {"hosts 0", "file:1: \"0\" is no number from 1 to 4096"},
        {"hosts 4\nhosts 4", "file:2: \"hosts\" is said once"},
        {"hosts 4\nrails 65", "file:2: \"65\" is no number from 1 to 64"},
        {"hosts 4\nrails 2\nrate fast", "file:3: \"fast\" is no rate"},
        {"hosts 4\nrails 2\nfail 0 0", "file:3: \"hosts\", \"rails\" and \"rate\" come first"},
        {"hosts 4\nrails 2\nrate 1G\nfail h4 rail0", "file:4: there is no host \"h4\": h0 to h3"},
        {"hosts 4\nrails 2\nrate 1G\nfail h0 2", "file:4: there is no rail \"2\": rail0 to rail1"},
        {"hosts 4\nrails 2\nrate 1G\nslow h0 0 101%", "file:4: \"101%\" is no rest"},
        {"hosts 4\nrails 2\nrate 1G\ncut h0 h0 0", "file:4: a cut is between two hosts"},
        {"hosts 4\nrails 2\nrate 1G\nfail h0", "file:4: expected \"fail HOST RAIL\""},
        {"hosts 4\nrails 2\nrate 1250\ncapacity 0 0 17",
         "file:4: \"17\" is no number of sixteenths"},
        {"hosts 4\nranks 0", "file:2: \"0\" is no number from 1 to 1048576"},
        {"hosts 4\nrails 2\nranks 3\nrate 1G\n", "file:4: every one of 4 hosts needs a rank"},
        {"hosts 2\nrails 2\nrate 1G\nhost-of 2 0", "file:4: there is no rank \"2\": 0 to 1"},
        {"hosts 2\nrails 2\nrate 1G\nhost-of 1 h2", "file:4: there is no host \"h2\""},
        {"hosts 2\nrails 2\nrate 1G\nhost-of 1", "file:4: expected \"host-of RANK HOST\""},
        {"hosts 2\nrails 2\nrate 1G\nhost-of 1 0\n", "file:4: no rank is on h1"},
        {"hosts 2\nrails 2\nrate 1G\ncut 0 1 1\nranks 4", "file:5: \"ranks\" is said once"},
        {"nosuch 1", "file:1: unknown statement \"nosuch\""},
        {"network round", "file:1: \"round\" is neither aligned nor flat"},
        {"latency 5", "file:1: \"5\" is no time like 5us"},
        {"rate 0", "file:1: \"0\" is no rate like 1250 (MB/s), 50G or 400gbit above 0"},
        {"pace 30", "file:1: \"30\" is no percentage like 30% above 0"},
        {"reduce -1", "file:1: \"-1\" is no rate like"},
    };
    char error[256];
    topo_t topo;

    (void) state;
    for (size_t i = 0; i < r2_array_count(cases); ++i) {
        assert_int_equal(t_read(cases[i].text, &topo, error, sizeof(error)), R2_ERR_PARAM);
        if (0 != strncmp(error, cases[i].error, strlen(cases[i].error))) {
            fail_msg("\"%s\" gives \"%s\"", cases[i].text, error);
        }
    }
}

/** What the planner gets: sixteenths of MB/s. */
static void t_planner(void **state)
{
    char error[256];
    r2_topology_t topology;
    topo_t topo;

    (void) state;
    assert_int_equal(
        t_read("# a machine\nhosts 3\nrails 2\nranks 4 # one more\nrate 10\nany-pairing\n"
               "\ncapacity 1 0 8\nrate-of 2 1 40\ncut 2 0 1\nhost-of 3 0\nhost-of 1 2\n",
               &topo, error, sizeof(error)),
        R2_OK);
    assert_false(topo_is_rank_per_host(&topo));
    assert_int_equal(real_topology(&topo, &topology), R2_OK);
    topo_fini(&topo);
    assert_int_equal(4, topology.rank_count);
    assert_int_equal(240, r2_topology_host_rate(&topology, 1));
    assert_int_equal(160 + 640, r2_topology_host_rate(&topology, 2));
    assert_int_equal(1, topology.cut_count);
    assert_int_equal(0, topology.cuts[0].host_a);
    assert_int_equal(0, topology.host_of[3]);
    assert_int_equal(320, r2_topology_pair_rate(&topology, 0, 2));
    topology.any_pairing = false;
    assert_int_equal(160, r2_topology_pair_rate(&topology, 0, 2));
    r2_topology_fini(&topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(t_file), cmocka_unit_test(t_file_errors),
                                       cmocka_unit_test(t_planner)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
