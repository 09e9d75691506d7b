/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Probes and beacons between two network namespaces: links that are down, packets that are dropped
 * one way, a process that is stopped, strangers.
 */
#include "probe_ends.h"

#include <sys/epoll.h>
#include <sys/resource.h>

#define T_BACKLOG 1024 /* of the hello listener */

static inline uint32_t t_far_ask(const char *words)
{
    if (0 == strcmp(words, "strangers")) {
        const r2_hello_tcp_t *hello = t_far.hello.instance;

        return (uint32_t) hello->stranger_count;
    }
    return 0 == strcmp(words, "id") ? (uint32_t) t_far.beacon_id : t_far.heard;
}

static int t_set_up(void **state)
{
    static const t_server_t server = {t_far_open, t_far_fd, t_far_poll, t_far_ask};

    return t_set_up_with(&server, state);
}

static void t_beacon(t_end_t *end, uint32_t rail, uint64_t id)
{
    end->probe.ops->beacon(end->probe.instance, rail, t_far.hello_address[rail], t_far.hello_bytes,
                           t_far.address[rail], t_far.bytes, 5, id);
}

/** Sends beacons until one is heard, or ten were not. */
static bool t_beacon_passes(t_end_t *end, uint32_t rail)
{
    static uint64_t next_id = 1;

    t_time_ns += R2_NS_PER_S; /* the pace allows a burst */
    end->probe.ops->poll(end->probe.instance);
    for (int tries = 0; tries < 10; ++tries, ++next_id) {
        t_beacon(end, rail, next_id);
        usleep(2000);
        if (t_ask("!id") == next_id) {
            ++next_id;
            return true;
        }
    }
    return false;
}

static void test_answers(void **state)
{
    t_end_t *end = t_here();

    (void) state;
    assert_int_equal(t_probe_alive(end, 0), R2_PROBE_ALIVE);
    assert_int_equal(t_probe_alive(end, 1), R2_PROBE_ALIVE);
    assert_true(t_beacon_passes(end, 0));
    assert_true(t_beacon_passes(end, 1));
    assert_int_equal(end->probe.ops->probe(end->probe.instance, 0, t_far.hello_address[0], 9,
                                           t_far.address[0], t_far.bytes, 1, 1),
                     R2_ERR_PARAM);
    assert_int_equal(end->probe.ops->probe(end->probe.instance, 0, t_far.hello_address[0],
                                           t_far.hello_bytes, "garbage", 7, 1, 1),
                     R2_ERR_PARAM);
    assert_int_equal(end->probe.ops->probe(end->probe.instance, 3, t_far.hello_address[0],
                                           t_far.hello_bytes, t_far.address[0], t_far.bytes, 1, 1),
                     R2_ERR_PARAM);
    t_end_free(end);
}

/** The NIC of the other host is down: silence where nobody answers, inability without own
 * carrier. */
static void test_link_down(void **state)
{
    t_end_t *end = t_here();

    (void) state;
    /* A veth loses its carrier with the other end's, so the far address goes instead. */
    t_there("ip addr del 10.0.0.2/24 dev rail0");
    assert_int_equal(t_probe(end, 0), R2_PROBE_SILENT);
    assert_int_equal(t_probe_alive(end, 1), R2_PROBE_ALIVE);
    t_there("ip addr add 10.0.0.2/24 dev rail0; ip neigh flush dev rail0");
    assert_true(t_sh("ip neigh flush dev rail0"));
    assert_int_equal(t_probe_alive(end, 0), R2_PROBE_ALIVE);
    t_there("ip link set rail0 down"); /* both ends lose it */
    assert_int_equal(t_probe(end, 0), R2_PROBE_UNABLE);
    t_there("ip link set rail0 up");
    assert_int_equal(t_probe_alive(end, 0), R2_PROBE_ALIVE);
    assert_true(t_sh("ip link set rail0 down"));
    assert_int_equal(t_probe(end, 0), R2_PROBE_UNABLE);
    assert_true(t_sh("ip link set rail0 up"));
    assert_int_equal(t_probe_alive(end, 0), R2_PROBE_ALIVE);
    t_end_free(end);
}

/** Carrier that is lost while the question is open: nothing is said about the other end. */
static void test_carrier_lost_meanwhile(void **state)
{
    t_end_t *end = t_here();

    (void) state;
    t_there("nft 'add table netdev t; add chain netdev t i { type filter hook ingress device rail0 "
            "priority 0; policy drop; }'");
    assert_int_equal(t_try(end, 0), R2_OK);
    assert_true(t_sh("ip link set rail0 down"));
    t_run(end, 1, T_IDLE_MS);
    assert_int_equal(end->answer, R2_PROBE_UNABLE);
    assert_true(t_sh("ip link set rail0 up"));
    t_there("nft delete table netdev t");
    assert_int_equal(t_probe_alive(end, 0), R2_PROBE_ALIVE);
    t_end_free(end);
}

/** Silent drops: probes need both ways, beacons the one. */
static void test_drop(void **state)
{
    static const char drop_in[] =
        "nft 'add table netdev t; add chain netdev t i { type filter hook "
        "ingress device rail0 priority 0; policy drop; }'";
    t_end_t *end = t_here();

    (void) state;
    t_there(drop_in); /* towards the other host */
    assert_int_equal(t_probe(end, 0), R2_PROBE_SILENT);
    assert_false(t_beacon_passes(end, 0));
    assert_true(t_beacon_passes(end, 1));
    t_there("nft delete table netdev t");
    assert_int_equal(t_probe_alive(end, 0), R2_PROBE_ALIVE);
    /* A neighbour entry that does not age: the lost way back must not stop the way there. */
    t_there("ip neigh replace 10.0.0.1 dev rail0 lladdr $(ip neigh show 10.0.0.1 dev rail0 | "
            "sed 's/.*lladdr \\([^ ]*\\).*/\\1/') nud permanent");
    assert_true(t_sh("ip neigh replace 10.0.0.2 dev rail0 lladdr $(ip neigh show 10.0.0.2 dev "
                     "rail0 | sed 's/.*lladdr \\([^ ]*\\).*/\\1/') nud permanent"));
    assert_true(t_sh("%s", drop_in)); /* from the other host */
    assert_int_equal(t_probe(end, 0), R2_PROBE_SILENT);
    assert_true(t_beacon_passes(end, 0));
    assert_true(t_sh("nft delete table netdev t"));
    assert_int_equal(t_probe_alive(end, 0), R2_PROBE_ALIVE);
    t_end_free(end);
}

/** A network that swallows refusals: the hello listener answers, and forgets the connection at
 * once. */
static void test_swallowed_refusals(void **state)
{
    t_end_t *end = t_here();
    struct pollfd fd = {end->probe.ops->fd(end->probe.instance), POLLIN, 0};

    (void) state;
    assert_true(
        t_sh("nft 'add table ip t; add chain ip t i { type filter hook input priority 0; }; "
             "add rule ip t i tcp flags rst drop'"));
    for (uint32_t i = 0; i < 5; ++i) {
        assert_int_equal(t_try(end, 0), R2_OK);
        assert_int_equal(poll(&fd, 1, T_IDLE_MS), 0);
        t_time_ns = end->probe.ops->deadline_ns(end->probe.instance); /* half of the time */
        t_run(end, i + 1, T_WAIT_MS);
        assert_int_equal(end->answer, R2_PROBE_ALIVE);
    }
    assert_true(t_sh("nft delete table ip t"));
    while (0 != t_ask("!strangers")) {
        usleep(1000); /* a hang here: slots were not freed */
    }
    t_end_free(end);
}

/** A stopped process answers, also when the queue of its hello listener is full; so does a dead
 * one. */
static void test_stopped(void **state)
{
    t_end_t *end = t_here();
    static int fds[T_BACKLOG + 64];
    struct sockaddr_in in = {.sin_family = AF_INET};
    size_t open_count = 0;
    struct rlimit limit;

    (void) state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    memcpy(&in.sin_addr, t_far.hello_address[0] + 4, 4);
    memcpy(&in.sin_port, t_far.hello_address[0] + 8, 2);
    kill(t_peer, SIGSTOP);
    assert_int_equal(t_probe_alive(end, 0), R2_PROBE_ALIVE);
    for (; open_count < r2_array_count(fds); ++open_count) {
        fds[open_count] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fds[open_count] < 0) {
            break; /* the limit of descriptors: the queue is as full as we can make it */
        }
        (void) connect(fds[open_count], (const struct sockaddr *) &in, sizeof(in));
    }
    while (open_count > 0 && open_count + 32 > r2_array_count(fds)) {
        close(fds[--open_count]);
    }
    close(fds[--open_count]); /* room for the question */
    close(fds[--open_count]);
    assert_int_equal(t_probe_alive(end, 0), R2_PROBE_ALIVE);
    while (open_count > 0) {
        close(fds[--open_count]);
    }
    kill(t_peer, SIGCONT);
    t_end_free(end);
}

/** Many at once: the burst leaves, the rest waits, and what waits is bounded. */
static void test_rate_limit(void **state)
{
    t_end_t *end = t_here();
    uint32_t taken = 0;

    (void) state;
    while (taken < 1000 && R2_OK == t_try(end, 0)) {
        ++taken;
    }
    assert_int_equal(taken, R2_PROBE_RATE);
    assert_true(end->probe.ops->deadline_ns(end->probe.instance) <= t_time_ns + T_STEP_NS);
    t_run(end, r2_probe_limit_burst(R2_PROBE_RATE), T_WAIT_MS);
    assert_int_equal(end->results, r2_probe_limit_burst(R2_PROBE_RATE));
    t_run(end, taken, 10);
    assert_int_equal(end->answer, R2_PROBE_ALIVE);
    t_end_free(end);
}

#define LATE_PROBES 150 /* more than the driver looks at in one go */

static uint32_t t_alive;

static void t_count_alive(void *arg, uint64_t probe_id, r2_probe_answer_t answer, uint64_t rtt_ns)
{
    (void) probe_id;
    (void) rtt_ns;
    ++((t_end_t *) arg)->results;
    t_alive += R2_PROBE_ALIVE == answer;
}

/** All are answered, but we are stopped until their time is over: what came is read first. */
static void test_looks_late(void **state)
{
    t_end_t *end = t_here();
    const r2_probe_upcalls_t upcalls = {t_count_alive, t_heard, end};
    struct epoll_event events[LATE_PROBES];
    int count = 0;

    (void) state;
    assert_int_equal(t_probe_alive(end, 0), R2_PROBE_ALIVE);
    end->results = t_alive = 0;
    end->probe.ops->bind(end->probe.instance, &upcalls);
    end->probe.ops->share(end->probe.instance, 1);
    t_time_ns += R2_NS_PER_S; /* the whole burst may go */
    for (uint32_t i = 0; i < LATE_PROBES; ++i) {
        assert_int_equal(t_try(end, 0), R2_OK);
    }
    for (int waits = 0; waits < T_WAIT_MS && count < LATE_PROBES; ++waits) {
        usleep(1000);
        count = epoll_wait(end->probe.ops->fd(end->probe.instance), events, LATE_PROBES, 0);
    }
    t_time_ns += 2 * t_timeout_ns;
    for (uint32_t i = 0; i < 10 && end->results < LATE_PROBES; ++i) {
        end->probe.ops->poll(end->probe.instance);
    }
    assert_int_equal(end->results, LATE_PROBES);
    assert_int_equal(t_alive, LATE_PROBES);
    t_end_free(end);
}

/** Sends bytes to our own UDP port of rail 0 and counts what is heard. */
static uint32_t t_inject(t_end_t *end, const void *bytes, size_t count)
{
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr("10.0.0.1")};
    const uint32_t before = end->heard;
    struct pollfd ready = {end->probe.ops->fd(end->probe.instance), POLLIN, 0};

    memcpy(&in.sin_port, end->address[0] + 2, 2);
    /* Device-bound sockets hear their own host's packets only from that device: ask for it. */
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "rail0", 5), 0);
    assert_int_equal(sendto(fd, bytes, count, 0, (const struct sockaddr *) &in, sizeof(in)), count);
    close(fd);
    assert_int_equal(poll(&ready, 1, T_WAIT_MS), 1);
    end->probe.ops->poll(end->probe.instance);
    return end->heard - before;
}

/** Forged, changed, cut, for another place: not heard. The same bytes in order are. */
static void test_strangers(void **state)
{
    static const uint8_t wrong[R2_JOB_KEY_BYTES] = "key of another job";
    t_end_t *end = t_here();
    r2_beacon_place_t place = {.rail_idx = 0, .ipv4 = inet_addr("10.0.0.1")};
    uint8_t key[R2_JOB_KEY_BYTES], datagram[R2_BEACON_BYTES + 1] = {0};

    (void) state;
    place.port = (uint16_t) (end->address[0][2] << 8 | end->address[0][3]);
    r2_beacon_key(t_key, key);
    r2_beacon_seal(key, &place, 9, 1234, datagram);
    assert_int_equal(t_inject(end, datagram, R2_BEACON_BYTES), 1);
    assert_true(9 == end->rank && 0 == end->rail_idx && 1234 == end->beacon_id);
    assert_int_equal(t_inject(end, datagram, R2_BEACON_BYTES - 1), 0);
    assert_int_equal(t_inject(end, datagram, R2_BEACON_BYTES + 1), 0);
    assert_int_equal(t_inject(end, "", 0), 0);
    for (size_t i = 0; i < R2_BEACON_BYTES; ++i) {
        datagram[i] ^= 0x20;
        assert_int_equal(t_inject(end, datagram, R2_BEACON_BYTES), 0);
        datagram[i] ^= 0x20;
    }
    place.rail_idx = 1;
    r2_beacon_seal(key, &place, 9, 1234, datagram);
    assert_int_equal(t_inject(end, datagram, R2_BEACON_BYTES), 0);
    place.rail_idx = 0;
    place.ipv4 = inet_addr("10.0.1.1");
    r2_beacon_seal(key, &place, 9, 1234, datagram);
    assert_int_equal(t_inject(end, datagram, R2_BEACON_BYTES), 0);
    place.ipv4 = inet_addr("10.0.0.1");
    r2_beacon_key(wrong, key);
    r2_beacon_seal(key, &place, 9, 1234, datagram);
    assert_int_equal(t_inject(end, datagram, R2_BEACON_BYTES), 0);
    t_end_free(end);
}

/** The device is made anew: same ports, and probing goes on. Last: the other host's is deaf
 * then. */
static void test_made_anew(void **state)
{
    t_end_t *end = t_here();
    uint8_t before[R2_PROBE_ADDRESS_MAX];
    r2_nic_t nic;

    (void) state;
    memcpy(before, end->address[0], end->bytes);
    assert_true(t_sh("ip link del rail0"));
    assert_int_equal(t_probe(end, 0), R2_PROBE_UNABLE);
    assert_true(t_sh("ip link add rail0 type veth peer name rail0 netns %d && "
                     "ip addr add 10.0.0.1/24 dev rail0 && ip link set rail0 up && "
                     "nsenter -t %d -n sh -c 'ip addr add 10.0.0.2/24 dev rail0; "
                     "ip link set rail0 up'",
                     (int) t_peer, (int) t_peer));
    assert_int_equal(t_probe_alive(end, 0), R2_PROBE_ALIVE);
    assert_true(t_sh("ip addr add 10.0.0.7/24 dev rail0; ip addr del 10.0.0.1/24 dev rail0; "
                     "ip addr replace 10.0.0.7/24 dev rail0"));
    nic = t_nic("rail0");
    assert_int_equal(
        end->probe.ops->listen(end->probe.instance, 0, &nic, end->address[0], &end->bytes), R2_OK);
    assert_memory_equal(before, end->address[0], end->bytes);
    assert_int_equal(t_probe_alive(end, 0), R2_PROBE_ALIVE);
    t_end_free(end);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_link_down),
        cmocka_unit_test(test_carrier_lost_meanwhile),
        cmocka_unit_test(test_drop),
        cmocka_unit_test(test_swallowed_refusals),
        cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_rate_limit),
        cmocka_unit_test(test_looks_late),
        cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_made_anew),
    };

    if (!t_hosts_possible()) {
        printf("network namespaces are not available here\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, t_set_up, t_hosts_down);
}
