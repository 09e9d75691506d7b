/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Problems that r2_info finds: each one alone, with its remedy, and none where there is none.
 */
#include "r2_config.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "info.h"

static r2_library_t t_libraries[] = {{"PMIx", "4.2.2"}, {"UCX", "1.13.1"}};

/** An installation without problems: two rails in two subnets. */
static info_t t_good(void)
{
    info_t info = {.libraries = t_libraries,
                   .library_count = 2,
                   .ompi_info = true,
                   .ompi_version = "4.1.4",
                   .ompi_built_for = "4.1.4",
                   .component = true,
                   .component_dir = "/opt/r2/lib",
                   .nic_count = 2};

    strcpy(info.component_version, r2_version());
    for (unsigned i = 0; i < 2; ++i) {
        r2_nic_t *nic = &info.nics[i];

        snprintf(nic->name, sizeof(nic->name), "rail%u", i);
        nic->ipv4 = htonl(0x0a000001 + (i << 8));
        nic->prefix_bits = 24;
        nic->carrier = true;
        nic->speed_bytes_per_s = 12500000000ull;
    }
    r2_params_init(&info.params);
    return info;
}

/** Expects one problem that says both texts. */
static void t_expect(const info_t *info, info_level_t level, const char *what, const char *remedy)
{
    static info_problem_t problems[INFO_PROBLEMS_MAX];

    assert_int_equal(info_problems(info, problems), 1);
    assert_int_equal(problems[0].level, level);
    if (NULL == strstr(problems[0].what, what) || NULL == strstr(problems[0].remedy, remedy)) {
        fail_msg("\"%s\" / \"%s\"", problems[0].what, problems[0].remedy);
    }
}

static void test_none(void **state)
{
    static info_problem_t problems[INFO_PROBLEMS_MAX];
    const info_t info = t_good();

    (void) state;
    assert_int_equal(info_problems(&info, problems), 0);
}

static void test_open_mpi(void **state)
{
    info_t info = t_good();

    (void) state;
    info.ompi_info = false;
    info.component = false;
    t_expect(&info, INFO_ERROR, "ompi_info was not found", "openmpi-bin");
    info = t_good();
    strcpy(info.ompi_version, "5.0.7");
    t_expect(&info, INFO_ERROR, "built for Open MPI 4.1.4, but the one on PATH is 5.0.7",
             "--with-openmpi=DIR");
    strcpy(info.ompi_version, "4.1.6");
    info.component = false;
    t_expect(&info, INFO_ERROR, "does not find the component", "SYSTEM_DEFAULT:/opt/r2/lib");
    info = t_good();
    strcpy(info.component_version, "0.0.1");
    t_expect(&info, INFO_ERROR, "coll/r2 is version 0.0.1", "make install");
}

static void test_rails(void **state)
{
    info_t info = t_good();

    (void) state;
    info.nic_count = 1;
    t_expect(&info, INFO_WARNING, "only one rail (rail0)", "coll_r2_rails");
    info.nic_count = 0;
    strcpy(info.nics_text, "no NIC matches \"x\"");
    t_expect(&info, INFO_ERROR, "no NIC matches \"x\"", "mpirun --mca coll_r2_rails");
    info = t_good();
    info.nics[1].carrier = false;
    t_expect(&info, INFO_WARNING, "rail 1 (rail1) is down", "ip link set rail1 up");
    info = t_good();
    info.nics[1].ipv4 = 0;
    t_expect(&info, INFO_WARNING, "rail 1 (rail1) has no IPv4 address", "ip addr add");
}

static void test_subnets(void **state)
{
    info_t info = t_good();

    (void) state;
    info.nics[1].ipv4 = htonl(0x0a000002);
    t_expect(&info, INFO_WARNING, "through one of them", "arp_ignore=1");
    info.nics[1].prefix_bits = 16; /* the wider one counts */
    info.nics[1].ipv4 = htonl(0x0a000202);
    t_expect(&info, INFO_WARNING, "same subnet", "one subnet for each rail");
}

static void test_speeds(void **state)
{
    info_t info = t_good();

    (void) state;
    info.nics[1].speed_bytes_per_s = 0; /* not known: nothing to say */
    assert_int_equal(info_problems(&info, (info_problem_t[INFO_PROBLEMS_MAX]){{0}}), 0);
    info.nics[1].speed_bytes_per_s = 125000000;
    t_expect(&info, INFO_WARNING, "rail0 has 100 Gbit/s, rail1 has 1 Gbit/s", "coll_r2_rails");
    info.nics[1].speed_bytes_per_s = 6250000000ull;
    t_expect(&info, INFO_HINT, "rail1 has 50 Gbit/s", "coll_r2_rails");
}

static void test_declined(void **state)
{
    static info_problem_t problems[INFO_PROBLEMS_MAX];
    info_t info = t_good();

    (void) state;
    info.gpu = "/dev/nvidiactl";
    assert_int_equal(info_problems(&info, problems), 0);
    strcpy(info.gpu_objection, "there is a GPU (/dev/kfd), whose memory r2 cannot read");
    t_expect(&info, INFO_WARNING, "there is a GPU (/dev/kfd)", "coll_r2_gpu = ignore");
    info.gpu_objection[0] = '\0';
    assert_int_equal(info_problems(&info, problems), 0);
}

static void test_params(void **state)
{
    info_t info = t_good();

    (void) state;
    strcpy(info.params_text, "spin_us=x");
    t_expect(&info, INFO_ERROR, "wrong parameter: spin_us=x", "ompi_info --param coll r2");
}

/** As many problems as there can be are all listed. */
static void test_all_at_once(void **state)
{
    static info_problem_t problems[INFO_PROBLEMS_MAX];
    info_t info = t_good();
    size_t count;

    (void) state;
    info.component = false;
    strcpy(info.params_text, "x");
    info.nic_count = R2_RAILS_MAX;
    for (unsigned i = 0; i < R2_RAILS_MAX; ++i) {
        info.nics[i] = info.nics[0];
        info.nics[i].carrier = false;
        info.nics[i].ipv4 = i < 2 ? info.nics[0].ipv4 : 0;
        info.nics[i].speed_bytes_per_s = 1000 * (i + 1);
    }
    count = info_problems(&info, problems);
    assert_int_equal(count, 2 + R2_RAILS_MAX + (R2_RAILS_MAX - 2) + 1 + 1);
    for (size_t i = 0; i < count; ++i) {
        assert_true('\0' != problems[i].what[0] && '\0' != problems[i].remedy[0]);
    }
}

/* Debian 13: a file of PMIx keeps mpirun of 5.0, not 4.1, from what is installed. */
static void test_pmix_file(void **state)
{
    info_t info = t_good();
    info_problem_t problems[INFO_PROBLEMS_MAX];

    (void) state;
    strcpy(info.pmix_file, "/share/pmix-mca-params.conf");
    assert_int_equal(info_problems(&info, problems), 0);
    strcpy(info.ompi_version, "5.0.7");
    info.ompi_built_for = "5.0.7";
    t_expect(&info, INFO_WARNING, "/share/pmix-mca-params.conf sets mca_base_component_path",
             "OMPI_MCA_mca_base_component_path=SYSTEM_DEFAULT");
}

/* Writes a parameter file; does it set the component path? */
static bool t_file_sets(const char *text)
{
    char path[] = "/tmp/r2-pmix-XXXXXX";
    const int fd = mkstemp(path);
    bool sets;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    sets = info_pmix_sets(path, "mca_base_component_path");
    unlink(path);
    return sets;
}

/* A parameter file of PMIx: comments and names that only begin alike do not count. */
static void test_pmix_lines(void **state)
{
    (void) state;
    assert_true(t_file_sets("# words\n\nmca_base_component_path = /usr/lib/pmix\n"));
    assert_true(t_file_sets("a = b\n \tmca_base_component_path=/usr/lib/pmix"));
    assert_false(t_file_sets("#mca_base_component_path = /usr/lib/pmix\n"));
    assert_false(t_file_sets("mca_base_component_path_verbose = 1\n"));
    assert_false(t_file_sets("x_mca_base_component_path = /\nmca_base_component_pat = /\n"));
    assert_false(t_file_sets("mca_base_component_path\n"));
    assert_false(t_file_sets(""));
    assert_false(info_pmix_sets("/nonexistent/file", "mca_base_component_path"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pmix_file),   cmocka_unit_test(test_pmix_lines),
        cmocka_unit_test(test_none),        cmocka_unit_test(test_open_mpi),
        cmocka_unit_test(test_rails),       cmocka_unit_test(test_subnets),
        cmocka_unit_test(test_speeds),      cmocka_unit_test(test_params),
        cmocka_unit_test(test_declined),    cmocka_unit_test(test_all_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
