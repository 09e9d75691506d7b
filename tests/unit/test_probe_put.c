/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Probes by puts, over TCP, between two network namespaces: who answers, who does not, and that
 * nobody is hurt.
 */
#include "probe_ends.h"

#include <sys/mount.h>

#include "../open_files.h"
#include "rail/probe_parts.h"

#define T_CYCLES    100
#define T_SILENT_NS (200 * R2_NS_PER_MS)
#define T_ALIVE_NS  (20 * R2_NS_PER_S) /* a busy machine makes no silence */

static const char t_drop[] =
    "nft 'add table netdev t; add chain netdev t i { type filter hook ingress "
    "device rail0 priority 0; policy drop; }'";
static const char t_pass[] = "nft delete table netdev t";
/* A kernel that answers no connection but to the ports of puts. */
static const char t_only_puts[] =
    "nft 'add table ip t; add chain ip t i { type filter hook input priority 0; }; "
    "add rule ip t i tcp dport { %u, %u } drop'";

/** UCX finds its devices in sysfs, which shows those of the network namespace that mounted it. */
static bool t_own_sysfs(void)
{
    return 0 == unshare(CLONE_NEWNS) && 0 == mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
           0 == mount("sysfs", "/sys", "sysfs", 0, NULL);
}

static inline uint32_t t_far_ask(const char *words)
{
    if (0 == strcmp(words, "anew")) { /* another process in place of this one: its ports are gone */
        r2_probe_tcp_destroy(&t_far.probe);
        r2_hello_tcp_destroy(&t_far.hello);
        r2_tp_destroy(&t_far.tp);
        t_end_open(&t_far);
    }
    return open_files();
}

static void t_put_open(int out)
{
    if (!t_own_sysfs()) {
        _exit(1);
    }
    t_far_open(out);
}

static int t_put_set_up(void **state)
{
    static const t_server_t server = {t_put_open, t_far_fd, t_far_poll, t_far_ask};

    return t_set_up_with(&server, state);
}

static uint16_t t_port(const uint8_t *at)
{
    return (uint16_t) (at[0] << 8 | at[1]);
}

/** Looks all the time; time passes as it does. */
static r2_probe_answer_t t_put(t_end_t *end, uint32_t rail, uint64_t timeout_ns)
{
    const uint32_t results = end->results + 1;

    t_timeout_ns = timeout_ns;
    t_time_ns += R2_NS_PER_S; /* the pace allows one more */
    assert_int_equal(t_try(end, rail), R2_OK);
    t_run(end, results, 1);
    return end->answer;
}

/** For a question that is answered; a host learns of its carrier a little after the link is up. */
static r2_probe_answer_t t_put_alive(t_end_t *end, uint32_t rail)
{
    r2_probe_answer_t answer = t_put(end, rail, T_ALIVE_NS);

    for (int tries = 0; tries < 200 && R2_PROBE_UNABLE == answer; ++tries) {
        usleep(5000);
        answer = t_put(end, rail, T_ALIVE_NS);
    }
    return answer;
}

/** Only puts are answered: those that connect are silent then. */
static void test_answers(void **state)
{
    t_end_t *end = t_here(), *other;
    char command[512];

    (void) state;
    assert_int_equal(t_put_alive(end, 0), R2_PROBE_ALIVE);
    assert_int_equal(t_put_alive(end, 1), R2_PROBE_ALIVE);
    snprintf(command, sizeof(command), t_only_puts, t_port(t_far.hello_address[0] + 8),
             t_port(t_far.address[0] + 4));
    t_there(command);
    assert_int_equal(t_put_alive(end, 0), R2_PROBE_ALIVE);
    t_choice = "connect";
    other = t_here();
    t_choice = "put";
    assert_int_equal(t_put(other, 0, T_SILENT_NS), R2_PROBE_SILENT);
    t_there("nft delete table ip t");
    assert_int_equal(t_put_alive(other, 0), R2_PROBE_ALIVE);
    t_end_free(other);
    t_end_free(end);
}

/** "auto" puts on no NIC without RDMA, and a peer without an address for puts is asked by
 * connecting. */
static void test_choice(void **state)
{
    r2_put_t none = {0};
    r2_probe_t probe;
    t_end_t *end;

    (void) state;
    assert_true(t_far.bytes > 6);
    t_choice = "auto";
    end = t_here();
    assert_int_equal(end->bytes, 6);
    t_end_free(end);
    t_choice = "put";
    end = t_here();
    assert_int_equal(end->bytes, t_far.bytes);
    t_far.address[0][1] = 0;
    assert_int_equal(end->probe.ops->probe(end->probe.instance, 0, t_far.hello_address[0],
                                           t_far.hello_bytes, t_far.address[0], 6, T_ALIVE_NS, 77),
                     R2_OK);
    t_far.address[0][1] = (uint8_t) (t_far.bytes - 6);
    t_run(end, 1, 1);
    assert_int_equal(end->answer, R2_PROBE_ALIVE);
    t_end_free(end);
    assert_int_equal(r2_probe_tcp_create(&t_clock, &t_log, &none, "ping", &probe), R2_ERR_PARAM);
}

/** Addresses that are cut are refused; one whose inside is wrong is no place to put to. */
static void test_malformed(void **state)
{
    t_end_t *end = t_here();

    (void) state;
    for (size_t bytes = 0; bytes < t_far.bytes; ++bytes) {
        assert_int_equal(end->probe.ops->probe(end->probe.instance, 0, t_far.hello_address[0],
                                               t_far.hello_bytes, t_far.address[0], bytes, 1, 77),
                         R2_ERR_PARAM);
    }
    t_far.address[0][6] ^= 1; /* a length inside: not for puts, so connections ask */
    assert_int_equal(t_put_alive(end, 0), R2_PROBE_ALIVE);
    t_far.address[0][6] ^= 1;
    t_end_free(end);
}

/** A rail that drops, or is down: silence or inability in time, and the other rail answers
 * meanwhile. */
static void test_silent(void **state)
{
    t_end_t *end = t_here();

    (void) state;
    t_there(t_drop); /* towards the other host */
    t_timeout_ns = 10 * R2_NS_PER_S;
    t_time_ns += R2_NS_PER_S;
    assert_int_equal(t_try(end, 0), R2_OK);
    assert_int_equal(t_put_alive(end, 1), R2_PROBE_ALIVE); /* first, though asked second */
    t_run(end, 2, 0);
    assert_int_equal(end->answer, R2_PROBE_SILENT);
    t_there(t_pass);
    assert_int_equal(t_put_alive(end, 0), R2_PROBE_ALIVE);
    assert_true(t_sh("%s", t_drop)); /* from the other host */
    assert_int_equal(t_put(end, 0, T_SILENT_NS), R2_PROBE_SILENT);
    assert_true(t_sh("%s", t_pass));
    assert_int_equal(t_put_alive(end, 0), R2_PROBE_ALIVE);
    assert_true(t_sh("ip link set rail0 down"));
    assert_int_equal(t_put(end, 0, T_SILENT_NS), R2_PROBE_UNABLE);
    assert_int_equal(t_put_alive(end, 1), R2_PROBE_ALIVE);
    assert_true(t_sh("ip link set rail0 up"));
    assert_int_equal(t_put_alive(end, 0), R2_PROBE_ALIVE);
    t_end_free(end);
}

/**
 * Over TCP the process answers, so a stopped one is silent. It must survive that those who asked
 * have left when it goes on (UCP's puts do not), also while it asks itself.
 */
static void test_stopped(void **state)
{
    t_end_t *end = t_here();

    (void) state;
    for (int round = 0; round < 5; ++round) {
        kill(t_peer, SIGSTOP);
        for (uint32_t rail = 0; rail < 2; ++rail) {
            assert_int_equal(t_put(end, rail, T_SILENT_NS), R2_PROBE_SILENT);
        }
        kill(t_peer, SIGCONT);
        assert_int_equal(t_put_alive(end, 0), R2_PROBE_ALIVE);
    }
    t_end_free(end);
}

/** The end that was put to is gone, and its ports are refused: the kernel answers, so the NIC
 * does. */
static void test_gone(void **state)
{
    t_end_t *end = t_here();

    (void) state;
    t_ask("!anew");
    assert_int_equal(t_put_alive(end, 0), R2_PROBE_ALIVE);
    assert_int_equal(t_put_alive(end, 1), R2_PROBE_ALIVE);
    t_end_free(end);
}

static r2_status_t t_refuse(r2_put_end_t *end)
{
    (void) end;
    return R2_ERR_REFUSED;
}

/** A put that is refused is no silence, also if a process looks after it too late to connect. */
static void test_noticed_late(void **state)
{
    t_end_t *end = t_here();
    r2_probe_tcp_t *probe = end->probe.instance;
    r2_put_ops_t refusing = *probe->put.ops;

    (void) state;
    assert_int_equal(t_put_alive(end, 0), R2_PROBE_ALIVE);
    refusing.progress = t_refuse;
    probe->put.ops = &refusing;
    t_timeout_ns = T_ALIVE_NS;
    t_time_ns += R2_NS_PER_S;
    assert_int_equal(t_try(end, 0), R2_OK);
    t_time_ns += 2 * T_ALIVE_NS;
    t_run(end, end->results + 1, 0);
    assert_int_equal(end->answer, R2_PROBE_UNABLE);
    t_end_free(end);
}

/** What a question takes is given back, at both ends, also when it was given up. */
static void test_cycles(void **state)
{
    t_end_t *end = t_here();
    uint32_t here, there;

    (void) state;
    assert_int_equal(t_put_alive(end, 0), R2_PROBE_ALIVE);
    here = open_files();
    there = t_ask("!fds");
    for (int i = 0; i < T_CYCLES; ++i) {
        if (0 == i % 10) {
            /* mostly given up */
            assert_int_not_equal(t_put(end, 0, R2_NS_PER_US), R2_PROBE_UNABLE);
        } else {
            assert_int_equal(t_put_alive(end, 0), R2_PROBE_ALIVE);
        }
    }
    assert_int_equal(open_files(), here);
    while (t_ask("!fds") > there) {
        usleep(1000); /* a hang here: connections were kept */
    }
    t_end_free(end);
}

/** A driver that ends in the middle of questions. */
static void test_ended(void **state)
{
    t_end_t *end = t_here();

    (void) state;
    t_there(t_drop);
    t_time_ns += R2_NS_PER_S;
    for (uint32_t i = 0; i < 4; ++i) {
        assert_int_equal(t_try(end, i % 2), R2_OK);
        end->probe.ops->poll(end->probe.instance);
    }
    t_end_free(end);
    t_there(t_pass);
    end = t_here();
    assert_int_equal(t_put_alive(end, 0), R2_PROBE_ALIVE);
    t_end_free(end);
}

/** More at once than a process puts: the rest asks by connecting, and descriptors stay bounded. */
static void test_many(void **state)
{
    t_end_t *end = t_here();
    uint32_t taken = 0, here;

    (void) state;
    end->probe.ops->share(end->probe.instance, 1);
    here = open_files();
    t_timeout_ns = T_ALIVE_NS;
    t_time_ns += R2_NS_PER_S;
    while (taken < 100 && R2_OK == t_try(end, 0)) {
        ++taken;
    }
    assert_int_equal(taken, 100);
    assert_true(open_files() < here + 400);
    t_run(end, taken, 1);
    assert_int_equal(end->answer, R2_PROBE_ALIVE);
    assert_int_equal(open_files(), here);
    t_end_free(end);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers), cmocka_unit_test(test_choice),
        cmocka_unit_test(test_malformed), cmocka_unit_test(test_silent),
        cmocka_unit_test(test_stopped), cmocka_unit_test(test_cycles),
        cmocka_unit_test(test_ended),    cmocka_unit_test(test_many),
        cmocka_unit_test(test_gone),
        cmocka_unit_test(test_noticed_late),
    };

    t_choice = "put";
    if (!t_hosts_possible() || !t_own_sysfs()) {
        printf("network namespaces are not available here\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, t_put_set_up, t_hosts_down);
}
