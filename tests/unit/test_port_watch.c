/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * RDMA ports that go down, die and come back while their network device says nothing. Run with a
 * NIC of tests/softverbs (with-nic), whose devices lie on the loopback device.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <poll.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/fork.h"
#include "base/util.h"
#include "rail/nic_watch.h"
#include "rail/port_verbs.h"

#define NEWS_MS 5000 /* what is to come is waited for this long */

#define WAIT_MS 10 /* of which no more is waited at a time: the clock is moved on for the rest */

static const r2_log_t silent = {.level = R2_LOG_ERROR};
static uint64_t skipped_ns;

static uint64_t time_ns(void *arg)
{
    (void) arg;
    return r2_now_ns(r2_clock_system()) + skipped_ns;
}

static const r2_clock_t fast = {.now_ns = time_ns};

typedef struct news {
    r2_nic_t nic; /* as it was told last */
    unsigned told;
} news_t;

static void changed(void *arg, size_t idx, const r2_nic_t *nic)
{
    news_t *news = arg;

    assert_int_equal(idx, 0);
    news->nic = *nic;
    ++news->told;
}

static void nic_fault(const char *words)
{
    char command[128];

    snprintf(command, sizeof(command), "LD_PRELOAD= \"$SOFTVERBS\" fault soft0 %s", words);
    assert_int_equal(system(command), 0);
}

static void begin(r2_nic_watch_t *watch_p, news_t *news, const char *rdma, const char *tls)
{
    const r2_nic_upcalls_t upcalls = {changed, news};
    r2_nic_t nic = {.name = "lo", .ifindex = 1, .carrier = true};

    memset(news, 0, sizeof(*news));
    snprintf(nic.rdma, sizeof(nic.rdma), "%s", rdma);
    snprintf(nic.tls, sizeof(nic.tls), "%s", tls);
    assert_int_equal(r2_nic_watch_create(&nic, 1, watch_p), R2_OK);
    r2_nic_watch_ports(watch_p, &fast, &silent);
    watch_p->ops->bind(watch_p->instance, &upcalls);
}

/** One look, as the service thread does it: woken by the descriptor or by the deadline. */
static void look(r2_nic_watch_t *watch, int most_ms)
{
    struct pollfd fd = {watch->ops->fd(watch->instance), POLLIN, 0};
    const uint64_t now_ns = r2_now_ns(&fast);
    const uint64_t deadline_ns = watch->ops->deadline_ns(watch->instance);
    int wait_ms = most_ms;

    if (R2_NEVER_NS != deadline_ns) {
        const uint64_t left_ns = deadline_ns - r2_min(now_ns, deadline_ns);
        wait_ms = r2_min(most_ms, (int) (left_ns / R2_NS_PER_MS) + 1);
    }
    if (0 == poll(&fd, 1, r2_min(wait_ms, WAIT_MS))) {
        skipped_ns += (uint64_t) (wait_ms - r2_min(wait_ms, WAIT_MS)) * R2_NS_PER_MS;
    }
    watch->ops->poll(watch->instance);
}

static void until(r2_nic_watch_t *watch, const news_t *news, r2_nic_outage_t outage)
{
    const uint64_t end_ns = r2_now_ns(r2_clock_system()) + NEWS_MS * R2_NS_PER_MS;

    while ((0 == news->told || outage != news->nic.outage) &&
           r2_now_ns(r2_clock_system()) < end_ns) {
        look(watch, 100);
    }
    assert_true(news->told > 0);
    assert_int_equal(news->nic.outage, outage);
    assert_int_equal(news->nic.carrier, R2_NIC_WORKS == outage);
}

static void assert_says(const news_t *news, const char *wanted)
{
    char text[R2_NIC_OUTAGE_TEXT_MAX];

    r2_nic_outage_text(&news->nic, text, sizeof(text));
    assert_string_equal(text, wanted);
}

static void test_port_goes_down_and_returns(void **state)
{
    r2_nic_watch_t watch;
    news_t news;

    (void) state;
    begin(&watch, &news, "soft0:1", "rc_verbs");
    until(&watch, &news, R2_NIC_WORKS);
    for (int i = 0; i < 3; ++i) {
        nic_fault("port-down");
        until(&watch, &news, R2_NIC_PORT_DOWN);
        assert_says(&news, "RDMA port soft0:1 is down");
        nic_fault("heal");
        until(&watch, &news, R2_NIC_WORKS);
    }
    r2_nic_watch_destroy(&watch);
}

static void test_port_is_down_at_the_start(void **state)
{
    r2_nic_watch_t watch;
    news_t news;

    (void) state;
    nic_fault("port-down");
    begin(&watch, &news, "soft0:1", "rc_verbs");
    until(&watch, &news, R2_NIC_PORT_DOWN);
    nic_fault("heal");
    until(&watch, &news, R2_NIC_WORKS);
    r2_nic_watch_destroy(&watch);
}

/** What was opened of a dead device stays dead: only one that is opened anew knows that it is
 * back. */
static void test_device_dies_and_returns(void **state)
{
    r2_nic_watch_t watch;
    news_t news;

    (void) state;
    begin(&watch, &news, "soft0:1", "rc_verbs");
    until(&watch, &news, R2_NIC_WORKS);
    assert_true(R2_NEVER_NS ==
                watch.ops->deadline_ns(watch.instance)); /* no timer while it works */
    nic_fault("fatal");
    until(&watch, &news, R2_NIC_DEVICE_DEAD);
    assert_says(&news, "RDMA device soft0 had a fatal error");
    for (int i = 0; i < 3; ++i) {
        assert_true(R2_NEVER_NS != watch.ops->deadline_ns(watch.instance));
        look(&watch, 500);
        assert_int_equal(news.nic.outage, R2_NIC_DEVICE_DEAD);
    }
    nic_fault("heal");
    until(&watch, &news, R2_NIC_WORKS);
    nic_fault("port-down"); /* the one that is open now is heard, too */
    until(&watch, &news, R2_NIC_PORT_DOWN);
    nic_fault("heal");
    until(&watch, &news, R2_NIC_WORKS);
    r2_nic_watch_destroy(&watch);
}

/** A device that stays dead is not waited for: its network device works. */
static void test_device_stays_dead(void **state)
{
    r2_nic_watch_t watch;
    news_t news;

    (void) state;
    begin(&watch, &news, "soft0:1", "rc_verbs");
    until(&watch, &news, R2_NIC_WORKS);
    nic_fault("fatal");
    until(&watch, &news, R2_NIC_DEVICE_DEAD);
    assert_false(news.nic.rdma_lost);
    until(&watch, &news, R2_NIC_WORKS);
    assert_true(news.nic.rdma_lost);
    assert_true(R2_NEVER_NS != watch.ops->deadline_ns(watch.instance)); /* tried on */
    nic_fault("heal");
    for (int i = 0; i < NEWS_MS / 100 && news.nic.rdma_lost; ++i) {
        look(&watch, 100);
    }
    assert_false(news.nic.rdma_lost);
    assert_true(news.nic.carrier);
    nic_fault("fatal"); /* so soon that it is not waited for again */
    for (int i = 0; i < NEWS_MS / 100 && !news.nic.rdma_lost; ++i) {
        assert_int_equal(news.nic.outage, R2_NIC_WORKS);
        look(&watch, 100);
    }
    assert_true(news.nic.rdma_lost);
    assert_true(news.nic.carrier);
    nic_fault("heal");
    for (int i = 0; i < NEWS_MS / 100 && news.nic.rdma_lost; ++i) {
        look(&watch, 100);
    }
    assert_false(news.nic.rdma_lost);
    r2_nic_watch_destroy(&watch);
}

static void test_address_moves(void **state)
{
    const uint64_t end_ns = r2_now_ns(r2_clock_system()) + NEWS_MS * R2_NS_PER_MS;
    r2_nic_watch_t watch;
    news_t news;

    (void) state;
    begin(&watch, &news, "soft0:1", "rc_verbs");
    until(&watch, &news, R2_NIC_WORKS);
    nic_fault("gid 0 3");
    while (3 != news.nic.port.gid_idx && r2_now_ns(r2_clock_system()) < end_ns) {
        look(&watch, 100);
    }
    assert_int_equal(news.nic.port.gid_idx, 3);
    assert_true(news.nic.carrier);
    nic_fault("gid 0 1");
    r2_nic_watch_destroy(&watch);
}

/** A rail that goes by TCP, and a device that is not there: netlink alone. */
static void test_not_followed(void **state)
{
    static const char *const rows[][2] = {{"soft0:1", ""}, {"none0:1", "rc_verbs"}};

    (void) state;
    for (size_t i = 0; i < r2_array_count(rows); ++i) {
        r2_nic_watch_t watch;
        news_t news;

        begin(&watch, &news, rows[i][0], rows[i][1]);
        until(&watch, &news, R2_NIC_WORKS);
        nic_fault("port-down");
        look(&watch, 100);
        assert_int_equal(news.nic.outage, R2_NIC_WORKS);
        nic_fault("heal");
        r2_nic_watch_destroy(&watch);
    }
}

static void test_open_refuses(void **state)
{
    r2_port_verbs_t *port = NULL;

    (void) state;
    assert_int_equal(r2_port_verbs_open("none0:1", &port), R2_ERR_NO_DEVICE);
    assert_int_equal(r2_port_verbs_open("soft0", &port), R2_ERR_NO_DEVICE);
    assert_int_equal(r2_port_verbs_open("soft", &port), R2_ERR_NO_DEVICE);
    nic_fault("fatal");
    assert_int_equal(r2_port_verbs_open("soft0:1", &port), R2_ERR_NO_DEVICE);
    nic_fault("heal");
    assert_int_equal(r2_port_verbs_open("soft0:1", &port), R2_OK);
    assert_int_equal(r2_port_verbs_state(port), R2_PORT_ACTIVE);
    assert_int_equal(r2_port_verbs_next(port), R2_PORT_NEWS_NONE); /* does not block */
    r2_port_verbs_close(port);
    assert_int_equal(r2_port_verbs_open("soft0:2", &port), R2_OK); /* no such port */
    assert_int_equal(r2_port_verbs_state(port), R2_PORT_UNKNOWN);
    nic_fault("port-down"); /* another port's */
    usleep(20000);
    assert_int_equal(r2_port_verbs_next(port), R2_PORT_NEWS_NOTHING);
    r2_port_verbs_close(port);
    nic_fault("heal");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_port_goes_down_and_returns),
        cmocka_unit_test(test_port_is_down_at_the_start),
        cmocka_unit_test(test_device_dies_and_returns),
        cmocka_unit_test(test_device_stays_dead),
        cmocka_unit_test(test_address_moves),
        cmocka_unit_test(test_not_followed),
        cmocka_unit_test(test_open_refuses),
    };

    if (NULL == getenv("SOFTVERBS")) {
        printf("skipped: run by tests/softverbs/with-nic\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
