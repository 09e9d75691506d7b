/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * NICs that go down, lose their address and are made anew, in two network namespaces of our own:
 * finding, watching, and hellos over exactly the NIC they are meant for.
 */
#include "hello_ends.h"
#include "two_hosts.h"

/*
 * The other host's listeners are opened while its NICs are down; then it answers. There is a
 * default route on rail1.
 */
static t_end_t *t_far;
static uint8_t t_peer_address[2][R2_HELLO_ADDRESS_MAX];
static uint8_t t_own_address[2][R2_HELLO_ADDRESS_MAX];

static void t_far_open(int out)
{
    t_far = t_bare();
    t_far->hello.ops->key(t_far->hello.instance, t_key);
    t_sh("ip link set rail0 down; ip link set rail1 down");
    for (uint32_t rail = 0; rail < 2; ++rail) {
        const r2_nic_t nic = t_nic(0 == rail ? "rail0" : "rail1");

        if (nic.carrier ||
            R2_OK != t_far->hello.ops->listen(t_far->hello.instance, rail, &nic, t_far->address,
                                              &t_far->address_bytes)) {
            _exit(1);
        }
        if (sizeof(t_far->address) != write(out, t_far->address, sizeof(t_far->address))) {
            _exit(1);
        }
    }
}

static int t_far_fd(size_t idx)
{
    return 0 == idx ? t_far->hello.ops->fd(t_far->hello.instance) : -1;
}

static void t_far_poll(void)
{
    t_poll(t_far);
}

static uint32_t t_far_ask(const char *words)
{
    (void) words;
    return 0;
}

/** @return 0, or -1 where the kernel does not let us. */
static int t_set_up(void **state)
{
    static const t_server_t server = {t_far_open, t_far_fd, t_far_poll, t_far_ask};

    (void) state;
    if (0 != t_hosts_up(&server) || !t_sh("ip route add default via 10.0.1.2 dev rail1")) {
        return -1;
    }
    for (unsigned rail = 0; rail < 2; ++rail) {
        t_read(t_peer_address[rail], sizeof(t_peer_address[rail]));
    }
    return 0;
}

/** Calls the peer's listener of `to` through our rail `from`. */
static r2_status_t t_call_rail(t_end_t *end, uint32_t from, uint32_t to)
{
    r2_status_t status = end->hello.ops->call(end->hello.instance, from, t_peer_address[to], 26,
                                              "x", 1, R2_NS_PER_S, 0);

    if (R2_OK == status) {
        struct pollfd fd = {end->hello.ops->fd(end->hello.instance), POLLIN, 0};

        end->results = 0;
        end->status[0] = R2_IN_PROGRESS;
        while (0 == end->results) {
            if (0 == poll(&fd, 1, 300)) {
                t_time_ns += R2_NS_PER_S; /* nothing comes any more: the timeout */
            }
            t_poll(end);
        }
        status = end->status[0];
    }
    return status;
}

static t_end_t *t_here(void)
{
    t_end_t *end = t_bare();
    const char *const names[] = {"rail0", "rail1"};

    end->hello.ops->key(end->hello.instance, t_key);
    for (uint32_t rail = 0; rail < 2; ++rail) {
        const r2_nic_t nic = t_nic(names[rail]);

        assert_int_equal(end->hello.ops->listen(end->hello.instance, rail, &nic,
                                                t_own_address[rail], &end->address_bytes),
                         R2_OK);
    }
    return end;
}

/** As t_call_rail(), for a rail that has just come up: the first packets may be lost. */
static r2_status_t t_call_soon(t_end_t *end, uint32_t from, uint32_t to)
{
    r2_status_t status = R2_ERR_TIMEOUT;

    for (unsigned tries = 0; tries < 20 && R2_OK != status; ++tries) {
        status = t_call_rail(end, from, to);
    }
    return status;
}

/** Packets sent on a NIC of this network namespace. */
static unsigned long t_sent(const char *name)
{
    char line[512];
    unsigned long packets = 0;
    FILE *stream = fopen("/proc/self/net/dev", "r");

    assert_non_null(stream);
    while (NULL != fgets(line, sizeof(line), stream)) {
        const char *at = strstr(line, name);

        if (NULL != at) {
            assert_int_equal(
                sscanf(at + strlen(name), ": %*u %*u %*u %*u %*u %*u %*u %*u %*u %lu", &packets),
                1);
        }
    }
    fclose(stream);
    return packets;
}

/** The listener that was opened with the NIC down works when it comes up, and after each flap. */
static void test_down_and_up(void **state)
{
    t_end_t *end = t_here();

    (void) state;
    assert_true(t_call_rail(end, 0, 0) < 0);
    t_there("ip link set rail0 up; ip link set rail1 up");
    assert_int_equal(t_call_soon(end, 0, 0), R2_OK);
    t_there("ip link set rail0 down");
    assert_true(t_call_rail(end, 0, 0) < 0);
    assert_int_equal(t_call_soon(end, 1, 1), R2_OK);
    t_there("ip link set rail0 up");
    assert_int_equal(t_call_soon(end, 0, 0), R2_OK);
    t_end_free(end);
}

/** Without its address the peer does not answer; with it, it does, on the same port. */
static void test_address_away(void **state)
{
    t_end_t *end = t_here();

    (void) state;
    t_there("ip addr del 10.0.0.2/24 dev rail0");
    assert_true(t_call_rail(end, 0, 0) < 0);
    t_there("ip addr add 10.0.0.2/24 dev rail0");
    assert_int_equal(t_call_soon(end, 0, 0), R2_OK);
    assert_true(t_sh("ip addr del 10.0.0.1/24 dev rail0"));
    assert_int_equal(t_call_rail(end, 0, 0), R2_ERR_NO_DEVICE);
    assert_true(t_sh("ip addr add 10.0.0.1/24 dev rail0"));
    assert_int_equal(t_call_soon(end, 0, 0), R2_OK);
    t_end_free(end);
}

/** With rail0 down a call over rail0 does not leave through rail1, which has the default route. */
static void test_no_detour(void **state)
{
    t_end_t *end = t_here();
    unsigned long sent;

    (void) state;
    assert_int_equal(t_call_rail(end, 1, 0) < 0, true); /* the listener of rail0 hears rail0 only */
    assert_true(t_sh("ip link set rail0 down"));
    sent = t_sent("rail1");
    assert_true(t_call_rail(end, 0, 0) < 0);
    assert_int_equal(t_sent("rail1"), sent);
    assert_true(t_sh("ip link set rail0 up"));
    assert_int_equal(t_call_soon(end, 0, 0), R2_OK);
    t_end_free(end);
}

/* Watching. */

/** Who keeps the state, as a context does. */
typedef struct t_news {
    unsigned events;
    r2_nic_t nics[2];
} t_news_t;

static void t_changed(void *arg, size_t idx, const r2_nic_t *nic)
{
    t_news_t *news = arg;

    assert_true(idx < 2);
    assert_string_equal(nic->name, news->nics[idx].name);
    news->events += nic->carrier != news->nics[idx].carrier || nic->ipv4 != news->nics[idx].ipv4;
    news->nics[idx] = *nic;
}

static void t_watch(const r2_nic_t *nics, size_t count, t_news_t *news, r2_nic_watch_t *watch_p)
{
    const r2_nic_upcalls_t upcalls = {t_changed, news};

    memcpy(news->nics, nics, count * sizeof(*nics));
    assert_int_equal(r2_nic_watch_create(nics, count, watch_p), R2_OK);
    watch_p->ops->bind(watch_p->instance, &upcalls);
}

/** What is to come is waited for this long: the kernel tells of carriers once a second at most,
 * those of all network namespaces together. */
#define T_NEWS_MS 20000

/** @return the NIC of this name, once it has its carrier. */
static r2_nic_t t_nic_up(const char *name)
{
    r2_nic_t nic = t_nic(name);

    for (int ms = 0; ms < T_NEWS_MS && !nic.carrier; ms += 10) {
        poll(NULL, 0, 10);
        nic = t_nic(name);
    }
    assert_true(nic.carrier);
    return nic;
}

/** Polls until nothing has come for a while. @return number of events. */
static unsigned t_settle(r2_nic_watch_t *watch, t_news_t *news)
{
    struct pollfd fd = {watch->ops->fd(watch->instance), POLLIN, 0};
    const unsigned before = news->events;

    while (poll(&fd, 1, 100) > 0) {
        watch->ops->poll(watch->instance);
    }
    return news->events - before;
}

/** Polls until the NIC is as told, and on until nothing comes any more. @return number of
 * events. */
static unsigned t_until(r2_nic_watch_t *watch, t_news_t *news, size_t idx, bool carrier,
                        const char *address)
{
    struct pollfd fd = {watch->ops->fd(watch->instance), POLLIN, 0};
    const uint32_t ipv4 = NULL != address ? inet_addr(address) : 0;
    const r2_nic_t *nic = &news->nics[idx];
    const unsigned before = news->events;

    while ((carrier != nic->carrier || ipv4 != nic->ipv4) && poll(&fd, 1, T_NEWS_MS) > 0) {
        watch->ops->poll(watch->instance);
    }
    t_settle(watch, news);
    assert_int_equal(nic->carrier, carrier);
    assert_int_equal(nic->ipv4, ipv4);
    return news->events - before;
}

static void test_watch(void **state)
{
    r2_nic_t nics[2] = {t_nic_up("rail0"), t_nic_up("rail1")};
    t_news_t news = {0};
    r2_nic_watch_t watch;

    (void) state;
    assert_int_equal(nics[0].ipv4, inet_addr("10.0.0.1"));
    nics[1].carrier = false; /* it changed before we began to watch */
    t_watch(nics, 2, &news, &watch);
    assert_int_equal(t_until(&watch, &news, 1, true, "10.0.1.1"), 1);
    assert_true(t_sh("ip link set rail0 down"));
    assert_int_equal(t_until(&watch, &news, 0, false, "10.0.0.1"), 1);
    assert_true(t_sh("ip link set rail0 up"));
    assert_int_equal(t_until(&watch, &news, 0, true, "10.0.0.1"), 1);
    t_there("ip link set rail0 down");
    assert_int_equal(t_until(&watch, &news, 0, false, "10.0.0.1"), 1);
    t_there("ip link set rail0 up");
    assert_int_equal(t_until(&watch, &news, 0, true, "10.0.0.1"), 1);
    assert_true(t_sh("ip addr del 10.0.0.1/24 dev rail0"));
    assert_int_equal(t_until(&watch, &news, 0, false, NULL), 1);
    assert_true(t_sh("ip addr add 10.0.0.9/24 dev rail0"));
    assert_int_equal(t_until(&watch, &news, 0, true, "10.0.0.9"), 1);
    assert_true(t_sh("ip addr add 10.5.0.9/24 dev rail0")); /* a second one says nothing */
    assert_int_equal(t_settle(&watch, &news), 0);
    assert_true(t_sh("ip addr del 10.0.0.9/24 dev rail0")); /* and takes over */
    assert_true(t_until(&watch, &news, 0, true, "10.5.0.9") >= 1);
    assert_true(t_sh("ip addr add 10.0.0.1/24 dev rail0; ip addr del 10.5.0.9/24 dev rail0"));
    assert_true(t_until(&watch, &news, 0, true, "10.0.0.1") >= 1);
    r2_nic_watch_destroy(&watch);
}

/** More news than the socket can hold: the end state is right all the same. */
static void test_watch_overrun(void **state)
{
    const r2_nic_t nics[2] = {t_nic_up("rail0"), t_nic_up("rail1")};
    t_news_t news = {0};
    r2_nic_watch_t watch;

    (void) state;
    t_watch(nics, 2, &news, &watch);
    assert_int_equal(t_settle(&watch, &news), 0);
    assert_true(t_sh("{ for i in $(seq 700); do echo link set rail1 down; echo link set rail1 up; "
                     "done; echo link set rail0 down; } | ip -batch -"));
    assert_true(t_until(&watch, &news, 0, false, "10.0.0.1") >= 1);
    t_until(&watch, &news, 1, true, "10.0.1.1");
    assert_true(t_sh("ip link set rail0 up"));
    assert_true(t_until(&watch, &news, 0, true, "10.0.0.1") >= 1);
    r2_nic_watch_destroy(&watch);
}

/** The device is deleted and made anew: same rail, same port. Last: the peer's listener is deaf
 * then. */
static void test_made_anew(void **state)
{
    const r2_nic_t nics[1] = {t_nic_up("rail0")};
    t_end_t *end = t_here();
    t_news_t news = {0};
    r2_nic_watch_t watch;
    char command[96];

    (void) state;
    t_watch(nics, 1, &news, &watch);
    assert_int_equal(t_settle(&watch, &news), 0);
    assert_true(t_sh("ip link del rail0"));
    assert_true(t_until(&watch, &news, 0, false, NULL) >= 1);
    assert_int_equal(t_call_rail(end, 0, 0), R2_ERR_NO_DEVICE);
    assert_true(t_sh("ip link add rail0 type veth peer name rail0 netns %d && "
                     "ip addr add 10.0.0.1/24 dev rail0 && ip link set rail0 up && "
                     "nsenter -t %d -n sh -c 'ip addr add 10.0.0.2/24 dev rail0; "
                     "ip link set rail0 up'",
                     (int) t_peer, (int) t_peer));
    assert_true(t_until(&watch, &news, 0, true, "10.0.0.1") >= 1);
    assert_int_not_equal(news.nics[0].ifindex, nics[0].ifindex);
    /* The peer's listener is of the old device: it is not there. Ours follows with our call. */
    assert_int_equal(t_call_rail(end, 0, 0), R2_ERR_REFUSED);
    snprintf(command, sizeof(command), "timeout 5 bash -c 'exec 3<>/dev/tcp/10.0.0.1/%d'",
             t_own_address[0][8] << 8 | t_own_address[0][9]);
    t_there(command);
    r2_nic_watch_destroy(&watch);
    t_end_free(end);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_down_and_up),   cmocka_unit_test(test_address_away),
        cmocka_unit_test(test_no_detour),     cmocka_unit_test(test_watch),
        cmocka_unit_test(test_watch_overrun), cmocka_unit_test(test_made_anew),
    };

    if (!t_hosts_possible()) {
        printf("network namespaces are not available here\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, t_set_up, t_hosts_down);
}
