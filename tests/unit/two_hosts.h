/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Two hosts for tests: this process and a child, each in a network namespace of its own.
 */
#ifndef R2_TESTS_TWO_HOSTS_H
#define R2_TESTS_TWO_HOSTS_H

#include "r2_config.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "moved_clock.h"
#include "r2/nic.h"

/*
 * NICs rail0 (10.0.0.N), rail1 (10.0.1.N) and mgmt (10.9.0.N) join host 1, this process, to host 2.
 * The other host's clock is real; it does what it is told through a pipe: a line that begins with
 * '!' is a question for the test's own server, any other line a shell command.
 */

#define T_TICK_MS 5   /* how late timers of the other host may be */
#define T_IDLE_MS 100 /* without news for so long: nothing will come */

/** What the test runs on the other host. */
typedef struct t_server {
    void (*open)(int out); /* writes its addresses */
    int (*fd)(size_t idx); /* descriptors to wait for; -1: no more */
    void (*poll)(void);
    uint32_t (*ask)(const char *words); /* answers a question */
} t_server_t;

static pid_t t_peer;
static int t_to_peer, t_from_peer;

static inline bool t_sh(const char *format, ...) __attribute__((format(printf, 1, 2)));

static inline bool t_sh(const char *format, ...)
{
    char command[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(command, sizeof(command), format, args);
    va_end(args);
    return 0 == system(command);
}

static inline r2_nic_t t_nic(const char *name)
{
    r2_nic_t nics[R2_RAILS_MAX];
    char text[256];
    size_t count;

    if (R2_OK != r2_nics_find(name, false, nics, &count, text, sizeof(text))) {
        fprintf(stderr, "%s\n", text);
        abort();
    }
    return nics[0];
}

static inline void t_peer_command(const t_server_t *server, int out, const char *line)
{
    char answer[16];

    snprintf(answer, sizeof(answer), "%08x",
             '!' == line[0] ? server->ask(line + 1) : (uint32_t) t_sh("%s", line));
    if (8 != write(out, answer, 8)) {
        _exit(1);
    }
}

/** The other host: until the pipe closes. */
static inline void t_peer_main(const t_server_t *server, int in, int out)
{
    char line[1024];
    size_t used = 0;

    t_real_time = true;
    server->open(out);
    for (;;) {
        struct pollfd fds[8] = {{in, POLLIN, 0}};
        nfds_t count = 1;

        while ((fds[count].fd = server->fd(count - 1)) >= 0) {
            fds[count++].events = POLLIN;
        }
        poll(fds, count, T_TICK_MS);
        server->poll();
        if (0 == fds[0].revents) {
            continue;
        }
        if (1 != read(in, &line[used], 1)) {
            _exit(0);
        }
        if ('\n' == line[used]) {
            line[used] = '\0';
            used = 0;
            t_peer_command(server, out, line);
        } else {
            ++used;
        }
    }
}

/** Asks the other host. */
static inline uint32_t t_ask(const char *line)
{
    char answer[9] = {0};

    assert_true(dprintf(t_to_peer, "%s\n", line) > 0);
    assert_int_equal(read(t_from_peer, answer, 8), 8);
    return (uint32_t) strtoul(answer, NULL, 16);
}

/** Runs a command on the other host. */
static inline void t_there(const char *command)
{
    assert_int_equal(t_ask(command), 1);
}

/** Reads what the server's open() wrote. */
static inline void t_read(void *to, size_t bytes)
{
    assert_int_equal(read(t_from_peer, to, bytes), bytes);
}

static inline int t_start_peer(const t_server_t *server)
{
    int down[2], up[2], ready = 0;

    if (0 != pipe(down) || 0 != pipe(up)) {
        return -1;
    }
    t_peer = fork();
    if (0 == t_peer) {
        if (0 != unshare(CLONE_NEWNET) || 1 != write(up[1], "r", 1) ||
            1 != read(down[0], &ready, 1)) {
            _exit(1);
        }
        close(down[1]);
        t_peer_main(server, down[0], up[1]);
    }
    close(down[0]);
    close(up[1]);
    t_to_peer = down[1];
    t_from_peer = up[0];
    return 1 == read(up[0], &ready, 1) ? 0 : -1;
}

/** @return 0, or -1 where the kernel does not let us. */
static inline int t_hosts_up(const t_server_t *server)
{
    return 0 == t_start_peer(server) &&
                   t_sh("for n in '' 'nsenter -t %d -n'; do "
                        "$n sh -c 'echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6'; done; "
                        "ip link set lo up && set -e; for d in rail0:0.0 rail1:0.1 mgmt:9.0; do "
                        "n=${d%%%%:*}; a=10.${d##*:}; "
                        "ip link add $n type veth peer name $n netns %d; "
                        "ip addr add $a.1/24 dev $n; nsenter -t %d -n ip addr add $a.2/24 dev $n; "
                        "ip link set $n up; nsenter -t %d -n ip link set $n up; done",
                        (int) t_peer, (int) t_peer, (int) t_peer, (int) t_peer) &&
                   1 == write(t_to_peer, "g", 1)
               ? 0
               : -1;
}

static inline int t_hosts_down(void **state)
{
    (void) state;
    close(t_to_peer);
    kill(t_peer, SIGCONT); /* a test that failed may have left it stopped */
    waitpid(t_peer, NULL, 0);
    return 0;
}

/** Root of a new user namespace, so that no privilege is needed. */
static inline bool t_become_root(void)
{
    const unsigned uid = geteuid();
    char map[32];
    int fd;

    if (0 != unshare(CLONE_NEWUSER)) {
        return false;
    }
    snprintf(map, sizeof(map), "0 %u 1", uid);
    fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, map, strlen(map)) < 0) {
        return false;
    }
    close(fd);
    return true;
}

/** Enters a network namespace of our own. */
static inline bool t_hosts_possible(void)
{
    signal(SIGPIPE, SIG_IGN);
    return (0 == geteuid() || t_become_root()) && 0 == unshare(CLONE_NEWNET) &&
           t_sh("ip link add t0 type veth peer name t1 && ip link del t0 && nsenter -V >/dev/null");
}

#endif
