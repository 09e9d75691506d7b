/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The director's nodes: processes that are told what to do, stopped, continued and killed.
 */
#include "r2_config.h"

#include "director.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANSWER_MS 120000 /* a node that takes longer hangs */

static const char *const names[] = {"A", "B", "C"};
static const char *const verbs[] = {"OPEN",   "CONNECT", "SEND",  "FILL",    "TURN",  "AWAIT",
                                    "FAILED", "REST",    "CLOSE", "DESTROY", "COUNT", "LEAVE"};

void fail(stage_t *stage, const char *format, ...)
{
    va_list args;

    if (!stage->broken) {
        va_start(args, format);
        vsnprintf(stage->reason, sizeof(stage->reason), format, args);
        va_end(args);
    }
    stage->broken = true;
}

static void enter_netns(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    /* UCX looks for NICs in /sys, which shows those of whoever mounted it. */
    if (fd < 0 || 0 != setns(fd, CLONE_NEWNET) || 0 != unshare(CLONE_NEWNS) ||
        0 != mount("", "/", "none", MS_SLAVE | MS_REC, NULL) ||
        0 != mount("sysfs", "/sys", "sysfs", 0, NULL)) {
        perror(path);
        exit(2);
    }
    close(fd);
}

static void node_start(stage_t *stage, node_name_t name)
{
    node_t *node = &stage->nodes[name];
    int ends[2];

    memset(node, 0, sizeof(*node));
    fflush(NULL);
    if (0 != socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) {
        perror("socketpair");
        exit(2);
    }
    node->pid = fork();
    if (0 == node->pid) {
        for (int other = 0; other < NODES; ++other) {
            if (other != (int) name && 0 != stage->nodes[other].pid) {
                close(stage->nodes[other].socket);
            }
        }
        close(ends[0]);
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* one that is stopped would stay for ever */
        if (NULL != stage->netns[name]) {
            enter_netns(stage->netns[name]);
        }
        closing_node(stage->transport, stage->device, ends[1]);
    }
    close(ends[1]);
    node->socket = ends[0];
}

void stage_fill(stage_t *stage)
{
    for (int name = 0; name < NODES; ++name) {
        if (0 == stage->nodes[name].pid) {
            node_start(stage, (node_name_t) name);
        }
    }
}

/** A node that is gone. @return its exit status as of waitpid(). */
static int node_bury(node_t *node)
{
    int status = 0;

    waitpid(node->pid, &status, 0);
    close(node->socket);
    node->pid = 0;
    return status;
}

void stage_clear(stage_t *stage, bool gently)
{
    for (int name = 0; name < NODES; ++name) {
        node_t *node = &stage->nodes[name];
        int status;

        if (0 == node->pid) {
            continue;
        }
        if (gently) {
            simply(stage, (node_name_t) name, VERB_LEAVE, 0, 0);
        }
        if (!gently || stage->broken) {
            kill(node->pid, SIGKILL);
        }
        status = 0 != node->pid ? node_bury(node) : 0;
        if (gently && 0 != status) {
            fail(stage, "%s: exit status %x", names[name], (unsigned) status);
        }
    }
}

void tell(stage_t *stage, node_name_t name, const order_t *order)
{
    node_t *node = &stage->nodes[name];

    if (!stage->broken && 0 != node->pid) {
        node->asked = order->verb;
        /* Fails if the node is dead: take() says why. */
        (void) !send(node->socket, order, sizeof(*order), MSG_NOSIGNAL);
    }
}

static void node_died(stage_t *stage, node_name_t name, const char *verb)
{
    int status = node_bury(&stage->nodes[name]);

    stage->crashed = true;
    if (WIFSIGNALED(status)) {
        fail(stage, "%s died of %s inside %s", names[name], strsignal(WTERMSIG(status)), verb);
    } else {
        fail(stage, "%s ended with status %d inside %s", names[name], WEXITSTATUS(status), verb);
    }
}

void take(stage_t *stage, node_name_t name)
{
    node_t *node = &stage->nodes[name];
    struct pollfd input = {.fd = node->socket, .events = POLLIN};
    const char *verb = verbs[node->asked];

    if (stage->broken || 0 == node->pid) {
        return;
    }
    if (poll(&input, 1, ANSWER_MS) <= 0) {
        fail(stage, "%s hangs inside %s", names[name], verb);
        return;
    }
    if (sizeof(node->last) != recv(node->socket, &node->last, sizeof(node->last), 0)) {
        node_died(stage, name, verb);
        return;
    }
    if ('\0' != node->last.complaint[0]) {
        fail(stage, "%s, %s: %s", names[name], verb, node->last.complaint);
    }
}

void ask(stage_t *stage, node_name_t name, const order_t *order)
{
    tell(stage, name, order);
    take(stage, name);
}

void simply(stage_t *stage, node_name_t name, verb_t verb, uint32_t lane, uint32_t count)
{
    const order_t order = {.verb = verb, .lane = lane, .count = count};

    ask(stage, name, &order);
}

void node_stop(stage_t *stage, node_name_t name)
{
    int status;

    if (stage->broken) {
        return;
    }
    kill(stage->nodes[name].pid, SIGSTOP);
    waitpid(stage->nodes[name].pid, &status, WUNTRACED);
    if (!WIFSTOPPED(status)) {
        stage->nodes[name].pid = 0;
        fail(stage, "%s is not there to be stopped", names[name]);
    }
}

void node_continue(stage_t *stage, node_name_t name)
{
    if (0 != stage->nodes[name].pid) {
        kill(stage->nodes[name].pid, SIGCONT);
    }
}

void node_kill(stage_t *stage, node_name_t name)
{
    if (!stage->broken) {
        kill(stage->nodes[name].pid, SIGKILL);
        node_bury(&stage->nodes[name]);
    }
}
