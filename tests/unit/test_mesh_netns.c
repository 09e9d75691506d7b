/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The mesh between two network namespaces: management network and rails that fail, strangers,
 * queues.
 */
#include "two_hosts.h"

#include <netinet/tcp.h>
#include <sodium.h>

#include "base/util.h"
#include "oob/mesh.h"
#include "oob/mesh_address.h"
#include "rail/hello_tcp.h"

#define T_RANKS      4 /* 0, 2 and 3 here, 1 on the other host */
#define T_HEARD      128
#define T_GIVE_UP_NS (10 * R2_NS_PER_S)

/** One process. */
typedef struct t_end {
    r2_post_t post;
    uint32_t heard;
    uint32_t rank; /* that sent the last one */
    uint32_t numbers[T_HEARD];
    size_t bytes; /* of the last one */
} t_end_t;

static uint8_t t_blobs[T_RANKS][R2_MESH_ADDRESS_MAX];
static size_t t_blob_bytes[T_RANKS];
static t_end_t t_far; /* over there */

static r2_status_t t_lookup(void *arg, uint32_t rank, void *blob_p, size_t *bytes_p)
{
    (void) arg;
    if (0 == t_blob_bytes[rank]) {
        return R2_ERR_NOT_FOUND;
    }
    memcpy(blob_p, t_blobs[rank], t_blob_bytes[rank]);
    *bytes_p = t_blob_bytes[rank];
    return R2_OK;
}

static void t_received(void *arg, uint32_t rank, const void *data, size_t bytes)
{
    t_end_t *end = arg;

    if (end->heard < T_HEARD && bytes >= sizeof(end->numbers[0])) {
        memcpy(&end->numbers[end->heard], data, sizeof(end->numbers[0]));
    }
    ++end->heard;
    end->rank = rank;
    end->bytes = bytes;
}

/** @param key NULL: none yet. */
static r2_status_t t_end_open(t_end_t *end, uint32_t rank, const char *nics, const uint8_t *key)
{
    const r2_nic_t rails[2] = {t_nic("rail0"), t_nic("rail1")};
    const r2_mesh_config_t config = {.clock = &t_clock,
                                     .log = &t_log,
                                     .rank = rank,
                                     .size = T_RANKS,
                                     .nics = nics,
                                     .rails = rails,
                                     .rail_count = 2,
                                     .give_up_ns = T_GIVE_UP_NS,
                                     .lookup = t_lookup};
    const r2_post_upcalls_t upcalls = {.received = t_received, .arg = end};
    r2_status_t status;

    memset(end, 0, sizeof(*end));
    status = r2_mesh_create(&config, &end->post);
    if (R2_OK == status) {
        end->post.ops->bind(end->post.instance, &upcalls);
        r2_mesh_address(&end->post, t_blobs[rank], &t_blob_bytes[rank]);
    }
    if (R2_OK == status && NULL != key) {
        end->post.ops->key(end->post.instance, key);
    }
    return status;
}

/** A process of this host; the other host learns its address. */
static t_end_t *t_here(uint32_t rank, const uint8_t *key)
{
    t_end_t *end = malloc(sizeof(*end));
    char hex[2 * R2_MESH_ADDRESS_MAX + 1], line[sizeof(hex) + 32];

    assert_int_equal(t_end_open(end, rank, "", key), R2_OK);
    sodium_bin2hex(hex, sizeof(hex), t_blobs[rank], t_blob_bytes[rank]);
    snprintf(line, sizeof(line), "!blob %u %s", rank, hex);
    assert_int_equal(t_ask(line), 1);
    t_ask("!forget");
    return end;
}

static void t_end_free(t_end_t *end)
{
    r2_mesh_destroy(&end->post);
    free(end);
}

/* The other host. */

static void t_far_open(int out)
{
    if (R2_OK != t_end_open(&t_far, 1, "", t_key) ||
        sizeof(t_blobs[1]) != write(out, t_blobs[1], sizeof(t_blobs[1])) ||
        sizeof(t_blob_bytes[1]) != write(out, &t_blob_bytes[1], sizeof(t_blob_bytes[1]))) {
        _exit(1);
    }
}

static int t_far_fd(size_t idx)
{
    return 0 == idx ? t_far.post.ops->fd(t_far.post.instance) : -1;
}

static void t_far_poll(void)
{
    t_far.post.ops->poll(t_far.post.instance);
}

/** A new process in place of the old one, so that it knows a new address; its own stays. */
static uint32_t t_far_blob(const char *words)
{
    unsigned rank;
    int at = 0;

    if (1 != sscanf(words, "blob %u %n", &rank, &at) || rank >= T_RANKS) {
        return 0;
    }
    return 0 == sodium_hex2bin(t_blobs[rank], sizeof(t_blobs[rank]), words + at, strlen(words + at),
                               NULL, &t_blob_bytes[rank], NULL);
}

static uint32_t t_far_ask(const char *words)
{
    unsigned number, place;

    if (0 == strncmp(words, "blob", 4)) {
        return t_far_blob(words);
    }
    if (2 == sscanf(words, "send %u %u", &place, &number)) {
        return (uint32_t) t_far.post.ops->send(t_far.post.instance, place, &number, sizeof(number));
    }
    if (1 == sscanf(words, "number %u", &place)) {
        return t_far.numbers[place];
    }
    if (0 == strcmp(words, "forget")) {
        t_far.heard = 0;
        return 0;
    }
    return 0 == strcmp(words, "bytes") ? (uint32_t) t_far.bytes : t_far.heard;
}

static int t_set_up(void **state)
{
    static const t_server_t server = {t_far_open, t_far_fd, t_far_poll, t_far_ask};

    (void) state;
    if (0 != t_hosts_up(&server)) {
        return -1;
    }
    t_read(t_blobs[1], sizeof(t_blobs[1]));
    t_read(&t_blob_bytes[1], sizeof(t_blob_bytes[1]));
    return 0;
}

/* Messages. */

static void t_send(t_end_t *end, uint32_t rank, uint32_t number)
{
    assert_int_equal(end->post.ops->send(end->post.instance, rank, &number, sizeof(number)), R2_OK);
}

/** Runs until there is nothing to do any more. Time passes when nothing has come for a while. */
static void t_settle(t_end_t *end)
{
    struct pollfd fd = {end->post.ops->fd(end->post.instance), POLLIN, 0};

    for (;;) {
        const uint64_t due_ns = end->post.ops->deadline_ns(end->post.instance);

        if (due_ns > t_time_ns && 0 == poll(&fd, 1, T_IDLE_MS)) {
            if (R2_NEVER_NS == due_ns) {
                return;
            }
            t_time_ns = due_ns;
        }
        end->post.ops->poll(end->post.instance);
    }
}

/** Connections of this host that are open. */
static unsigned t_connections(void)
{
    FILE *stream = fopen("/proc/self/net/tcp", "r");
    char line[256];
    unsigned count = 0, state;

    assert_non_null(stream);
    while (NULL != fgets(line, sizeof(line), stream)) {
        count += 1 == sscanf(line, " %*u: %*x:%*x %*x:%*x %x", &state) && 1 == state;
    }
    fclose(stream);
    return count;
}

static void test_both_ways(void **state)
{
    static const uint8_t longest[R2_POST_BYTES_MAX + 1] = {1};
    t_end_t *end = t_here(0, t_key);

    (void) state;
    for (uint32_t i = 0; i < 20; ++i) {
        t_send(end, 1, i);
    }
    t_settle(end);
    assert_int_equal(t_ask("!heard"), 20);
    assert_int_equal(t_ask("!number 0"), 0);
    assert_int_equal(t_ask("!number 19"), 19);
    assert_int_equal(end->post.ops->send(end->post.instance, 1, longest, R2_POST_BYTES_MAX), R2_OK);
    t_settle(end);
    assert_int_equal(t_ask("!bytes"), R2_POST_BYTES_MAX);
    assert_int_equal(end->post.ops->send(end->post.instance, 1, NULL, 0), R2_OK);
    t_settle(end);
    assert_int_equal(t_ask("!heard"), 22);
    assert_int_equal(t_ask("!bytes"), 0);
    assert_int_equal(t_ask("!send 0 42"), (uint32_t) R2_OK);
    t_settle(end);
    assert_true(1 == end->heard && 1 == end->rank && 42 == end->numbers[0]);
    assert_int_equal(t_connections(), 0); /* nothing stays open */
    assert_int_equal(end->post.ops->send(end->post.instance, 0, "me", 2), R2_ERR_PARAM);
    assert_int_equal(end->post.ops->send(end->post.instance, T_RANKS, "x", 1), R2_ERR_PARAM);
    assert_int_equal(end->post.ops->send(end->post.instance, 1, longest, sizeof(longest)),
                     R2_ERR_PARAM);
    t_blob_bytes[2] = 0;
    assert_int_equal(end->post.ops->send(end->post.instance, 2, "x", 1), R2_ERR_NO_PATH);
    t_end_free(end);
}

/** Within the host no NIC is needed. */
static void test_same_host(void **state)
{
    t_end_t *end = t_here(0, t_key);
    t_end_t *other = t_here(2, t_key);

    (void) state;
    assert_true(t_sh("for d in lo mgmt rail0 rail1; do ip link set $d down; done"));
    t_send(end, 2, 7);
    for (int i = 0; i < T_WAIT_MS && 0 == other->heard; ++i) {
        end->post.ops->poll(end->post.instance);
        other->post.ops->poll(other->post.instance);
        usleep(1000);
    }
    assert_true(1 == other->heard && 0 == other->rank && 7 == other->numbers[0]);
    t_settle(end);
    assert_true(t_sh("for d in lo mgmt rail0 rail1; do ip link set $d up; done"));
    t_end_free(other);
    t_end_free(end);
}

static const char t_drop_start[] = "nft 'add table netdev t'";
static const char t_drop[] = "nft 'add chain netdev t %s { type filter hook ingress device %s "
                             "priority 0; policy drop; }'";

/** The management network fails, loudly and silently: rails carry the messages, one after the
 * other. */
static void test_second_address(void **state)
{
    t_end_t *end = t_here(0, t_key);

    (void) state;
    assert_true(t_sh("ip link set mgmt down"));
    t_send(end, 1, 1);
    t_settle(end);
    assert_int_equal(t_ask("!heard"), 1);
    assert_true(t_sh("ip link set mgmt up"));
    t_time_ns += T_GIVE_UP_NS; /* the bad mark is forgotten */
    assert_true(t_sh("%s", t_drop_start) && t_sh(t_drop, "mgmt", "mgmt"));
    t_send(end, 1, 2);
    t_settle(end);
    assert_int_equal(t_ask("!heard"), 2);
    assert_true(t_sh(t_drop, "rail0", "rail0"));
    t_send(end, 1, 3);
    t_settle(end);
    assert_int_equal(t_ask("!heard"), 3);
    assert_int_equal(t_ask("!number 2"), 3);
    assert_true(t_sh("nft delete table netdev t"));
    t_end_free(end);
}

/** The management NIC gets another address, here and then there: rails carry the messages, both
 * ways. */
static void test_address_changed(void **state)
{
    t_end_t *end = t_here(3, t_key); /* the other host has not looked up this rank's address yet */

    (void) state;
    t_sh("ip addr flush dev mgmt; ip addr add 10.9.0.77/24 dev mgmt; ip link set rail0 down; "
         "ip link set rail1 down");
    t_send(end, 1, 0); /* from there, under the new address */
    t_settle(end);
    assert_int_equal(t_ask("!heard"), 1);
    assert_true(t_sh("ip link set rail0 up; ip link set rail1 up"));
    t_ask("!forget");
    for (uint32_t i = 1; i <= 2; ++i) {
        t_send(end, 1, i);
        t_settle(end);
        assert_int_equal(t_ask("!heard"), i);
        assert_int_equal(t_ask("!send 3 7"), (uint32_t) R2_OK);
        for (int wait = 0; wait < T_WAIT_MS && end->heard < i; ++wait) {
            end->post.ops->poll(end->post.instance);
            usleep(1000);
        }
        assert_int_equal(end->heard, i);
        t_there("ip addr flush dev mgmt; ip addr add 10.9.0.88/24 dev mgmt");
    }
    t_there("ip addr flush dev mgmt; ip addr add 10.9.0.2/24 dev mgmt");
    assert_true(t_sh("ip addr flush dev mgmt; ip addr add 10.9.0.1/24 dev mgmt"));
    t_end_free(end);
}

/** Nothing passes: messages are kept, the newest, for a bounded time; then they are dropped. */
static void test_no_way(void **state)
{
    t_end_t *end = t_here(0, t_key);
    struct pollfd fd = {end->post.ops->fd(end->post.instance), POLLIN, 0};
    const uint64_t start_ns = t_time_ns;

    (void) state;
    assert_true(t_sh("%s", t_drop_start) && t_sh(t_drop, "mgmt", "mgmt") &&
                t_sh(t_drop, "rail0", "rail0") && t_sh(t_drop, "rail1", "rail1"));
    for (uint32_t i = 0; i < R2_MESH_QUEUE_MAX + 10; ++i) {
        t_send(end, 1, i);
    }
    while (t_time_ns < start_ns + R2_NS_PER_S) { /* all addresses are tried */
        if (0 == poll(&fd, 1, 10)) {
            t_time_ns = r2_max(t_time_ns, end->post.ops->deadline_ns(end->post.instance));
        }
        end->post.ops->poll(end->post.instance);
    }
    assert_int_equal(t_ask("!heard"), 0);
    assert_true(t_sh("nft delete table netdev t"));
    t_settle(end);
    assert_int_equal(t_ask("!heard"), R2_MESH_QUEUE_MAX);
    assert_int_equal(t_ask("!number 0"), 10);
    assert_true(t_sh("%s", t_drop_start) && t_sh(t_drop, "mgmt", "mgmt") &&
                t_sh(t_drop, "rail0", "rail0") && t_sh(t_drop, "rail1", "rail1"));
    t_send(end, 1, 99);
    t_settle(end); /* returns: it gave up */
    assert_true(t_sh("nft delete table netdev t"));
    t_settle(end);
    assert_int_equal(t_ask("!heard"), R2_MESH_QUEUE_MAX);
    t_end_free(end);
}

/** A stopped process gets its messages when it goes on. */
static void test_stopped(void **state)
{
    t_end_t *end = t_here(0, t_key);
    struct pollfd fd = {end->post.ops->fd(end->post.instance), POLLIN, 0};
    const uint64_t start_ns = t_time_ns;

    (void) state;
    kill(t_peer, SIGSTOP);
    t_send(end, 1, 11);
    while (t_time_ns < start_ns + 2 * R2_NS_PER_S) { /* no address answers */
        if (0 == poll(&fd, 1, 10)) {
            t_time_ns = r2_max(t_time_ns, end->post.ops->deadline_ns(end->post.instance));
        }
        end->post.ops->poll(end->post.instance);
    }
    kill(t_peer, SIGCONT);
    t_settle(end);
    assert_true(t_ask("!heard") >= 1);
    assert_int_equal(t_ask("!number 0"), 11);
    t_end_free(end);
}

/** Messages wait for the key; another job's key opens nothing. */
static void test_key(void **state)
{
    static const uint8_t wrong[R2_JOB_KEY_BYTES] = "key of another job";
    t_end_t *end = t_here(0, NULL);

    (void) state;
    t_send(end, 1, 5);
    assert_int_equal(t_ask("!heard"), 0);
    end->post.ops->key(end->post.instance, t_key);
    t_settle(end);
    assert_int_equal(t_ask("!heard"), 1);
    t_end_free(end);
    end = t_here(0, wrong);
    t_send(end, 1, 6);
    t_settle(end);
    assert_int_equal(t_ask("!heard"), 0);
    t_end_free(end);
}

/** Strangers that connect to the listener and talk nonsense do not keep messages out. */
static void test_strangers(void **state)
{
    t_end_t *end = t_here(0, t_key);
    r2_mesh_places_t places;
    struct sockaddr_in in = {.sin_family = AF_INET};
    int fds[100];

    (void) state;
    assert_int_equal(r2_mesh_places_decode(t_blobs[1], t_blob_bytes[1], &places), R2_OK);
    assert_true(places.count > 1);
    memcpy(&in.sin_addr, places.places[1].address + 4, 4);
    memcpy(&in.sin_port, places.places[1].address + 8, 2);
    for (size_t i = 0; i < r2_array_count(fds); ++i) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(fds[i], (const struct sockaddr *) &in, sizeof(in)), 0);
        (void) !send(fds[i], "GET / HTTP/1.1\r\nHost: 10.9.0.2\r\nAccept: everything\r\n\r\n",
                     i % 55, MSG_NOSIGNAL);
    }
    t_send(end, 1, 8);
    t_settle(end);
    assert_int_equal(t_ask("!heard"), 1);
    for (size_t i = 0; i < r2_array_count(fds); ++i) {
        close(fds[i]);
    }
    t_end_free(end);
}

/** oob_nics chooses; a NIC that is not there is an error. */
static void test_choice(void **state)
{
    r2_mesh_places_t places;
    t_end_t end;

    (void) state;
    assert_int_equal(t_end_open(&end, 0, "", t_key), R2_OK);
    assert_int_equal(r2_mesh_places_decode(t_blobs[0], t_blob_bytes[0], &places), R2_OK);
    assert_int_equal(places.count, 4); /* the host's, mgmt, rail0, rail1 */
    assert_int_equal(places.places[1].kind, 0);
    assert_int_equal(places.places[2].kind, R2_MESH_RAIL);
    assert_memory_equal(places.places[1].address + 4, ((const uint8_t[]){10, 9, 0, 1}), 4);
    r2_mesh_destroy(&end.post);
    assert_int_equal(t_end_open(&end, 0, "rail1", t_key), R2_OK);
    assert_int_equal(r2_mesh_places_decode(t_blobs[0], t_blob_bytes[0], &places), R2_OK);
    assert_memory_equal(places.places[1].address + 4, ((const uint8_t[]){10, 0, 1, 1}), 4);
    r2_mesh_destroy(&end.post);
    t_log.level = -1;
    assert_int_equal(t_end_open(&end, 0, "nosuch0", t_key), R2_ERR_PARAM);
    t_log.level = R2_LOG_ERROR;
}

/** Addresses and requests that are cut or changed are refused as a whole. */
static void test_malformed(void **state)
{
    uint8_t request[R2_HELLO_BYTES_MAX];
    r2_mesh_places_t places;
    t_end_t end = {0};
    const r2_post_upcalls_t upcalls = {.received = t_received, .arg = &end};
    size_t bytes = r2_mesh_request_begin(2, request);

    (void) state;
    for (size_t cut = 0; cut < t_blob_bytes[1]; ++cut) {
        assert_int_equal(r2_mesh_places_decode(t_blobs[1], cut, &places), R2_ERR_WIRE);
    }
    bytes = r2_mesh_request_add(request, bytes, "four", 4);
    bytes = r2_mesh_request_add(request, bytes, "seventy", 7);
    for (size_t cut = 0; cut < bytes; ++cut) {
        const bool whole = R2_MESH_HEADER_BYTES == cut || bytes - 9 == cut;

        assert_int_equal(r2_mesh_request_read(request, cut, T_RANKS, &upcalls),
                         whole ? R2_OK : R2_ERR_WIRE);
    }
    assert_int_equal(end.heard, 1);
    assert_int_equal(r2_mesh_request_read(request, bytes, 2, &upcalls), R2_ERR_WIRE);
    assert_int_equal(r2_mesh_request_read(request, bytes, T_RANKS, &upcalls), R2_OK);
    assert_true(3 == end.heard && 2 == end.rank && 7 == end.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_ways),      cmocka_unit_test(test_same_host),
        cmocka_unit_test(test_second_address), cmocka_unit_test(test_address_changed),
        cmocka_unit_test(test_no_way),
        cmocka_unit_test(test_stopped),        cmocka_unit_test(test_key),
        cmocka_unit_test(test_strangers),      cmocka_unit_test(test_choice),
        cmocka_unit_test(test_malformed),
    };

    if (!t_hosts_possible()) {
        printf("network namespaces are not available here\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, t_set_up, t_hosts_down);
}
