/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The helper process that runs the fault command, and how the benchmark talks to it.
 */
#include "r2_config.h"

#include "injector.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    OUTPUT_BYTES = 4096,      /* kept of the end of what a command prints */
    COMMAND_LIMIT_MS = 30000, /* then it is killed */
    SYNC = UINT16_MAX,        /* fault number of the answer to ORDER_SYNC */
};

typedef enum order_kind { ORDER_BEGIN, ORDER_FAULT, ORDER_SYNC } order_kind_t;

/* To the helper. Sent and received whole. */
typedef struct order {
    order_kind_t kind;
    unsigned fault; /* ORDER_FAULT: its number */
    double zero_s;  /* ORDER_BEGIN */
} order_t;

/* From the helper. */
typedef struct news {
    unsigned fault;
    r2_bench_effect_t effect;
} news_t;

double r2_bench_now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double) now.tv_sec + (double) now.tv_nsec * 1e-9;
}

/* One message from the other side. @return false if that is gone. */
static bool take(int channel, void *message, size_t length)
{
    ssize_t got;

    do {
        got = recv(channel, message, length, 0);
    } while (-1 == got && EINTR == errno);
    return got == (ssize_t) length;
}

/* One message to the other side. If that is gone, take() notices. */
static void give(int channel, const void *message, size_t length)
{
    ssize_t put;

    do {
        put = send(channel, message, length, MSG_NOSIGNAL);
    } while (-1 == put && EINTR == errno);
}

/* ---- the helper ---- */

/* Becomes `sh -c 'CMD "$@"'` with the words of the fault. */
static void exec_command(const r2_bench_options_t *options, const r2_bench_fault_t *fault,
                         int output)
{
    char script[OUTPUT_BYTES];
    char name[] = "r2-fault";
    char shell[] = "sh";
    char dash_c[] = "-c";
    char *argv[4 + R2_BENCH_MAX_WORDS + 1] = {shell, dash_c, script, name};

    if (snprintf(script, sizeof(script), "%s \"$@\"", options->fault_cmd) >= (int) sizeof(script)) {
        _exit(126);
    }
    for (unsigned i = 0; i < fault->words_count; ++i) {
        argv[4 + i] = fault->words[i];
    }
    setpgid(0, 0); /* so that it can be ended with all that it started */
    dup2(output, STDOUT_FILENO);
    execv("/bin/sh", argv);
    _exit(127);
}

/* Collects what a command prints until it closes its output. @return false if it takes too long. */
static bool collect(int fd, char *text)
{
    double limit_s = r2_bench_now_s() + COMMAND_LIMIT_MS * 1e-3;
    size_t used = 0;

    text[0] = '\0';
    for (;;) {
        struct pollfd set = {.fd = fd, .events = POLLIN};
        int left_ms = (int) ((limit_s - r2_bench_now_s()) * 1e3);
        ssize_t got;

        if (left_ms <= 0) {
            return false;
        }
        if (poll(&set, 1, left_ms) <= 0) {
            continue;
        }
        if (used + 1 == OUTPUT_BYTES) { /* only the end matters */
            used /= 2;
            memmove(text, text + OUTPUT_BYTES - 1 - used, used);
        }
        got = read(fd, text + used, OUTPUT_BYTES - 1 - used);
        if (0 == got || (-1 == got && EINTR != errno)) {
            return true;
        }
        if (got > 0) {
            used += (size_t) got;
            text[used] = '\0';
        }
    }
}

/* The time that a command prints as its last word. @return false if there is none. */
static bool parse_effect(char *text, double *at_s_p)
{
    size_t length = strlen(text);
    char *word;
    char *end;

    while (length > 0 && NULL != strchr(" \t\n", text[length - 1])) {
        text[--length] = '\0';
    }
    word = text + length;
    while (word > text && NULL == strchr(" \t\n", word[-1])) {
        --word;
    }
    *at_s_p = strtod(word, &end);
    return end != word && '\0' == *end;
}

/* Runs the command for one fault and fills its effect. */
static void run_command(const r2_bench_options_t *options, unsigned index,
                        r2_bench_effect_t *effect)
{
    double before_s = r2_bench_now_s();
    char text[OUTPUT_BYTES];
    int output[2];
    pid_t child;
    int status = 0;

    *effect = (r2_bench_effect_t){.begun = true, .done = true, .status = 127, .at_s = before_s};
    if (0 != pipe2(output, O_CLOEXEC)) {
        return;
    }
    child = fork();
    if (0 == child) {
        exec_command(options, &options->faults[index], output[1]);
    }
    close(output[1]);
    if (child > 0) {
        if (!collect(output[0], text)) {
            kill(-child, SIGKILL);
        }
        while (-1 == waitpid(child, &status, 0) && EINTR == errno) {
        }
        effect->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        effect->at_s = r2_bench_now_s();
        double said_s = 0;
        /* A clock of another machine is no use here. */
        if (parse_effect(text, &said_s) && said_s >= before_s && said_s <= effect->at_s) {
            effect->at_s = said_s;
        }
    }
    close(output[0]);
}

/* Tells the benchmark about one fault. */
static void carry_out(const r2_bench_options_t *options, unsigned index, bool *begun, int channel)
{
    news_t news = {.fault = index};

    if (begun[index]) {
        return;
    }
    begun[index] = true;
    run_command(options, index, &news.effect);
    give(channel, &news, sizeof(news));
}

/* The next fault that is due at a time, or faults_count. */
static unsigned next_timed(const r2_bench_options_t *options, const bool *begun)
{
    unsigned best = options->faults_count;

    for (unsigned i = 0; i < options->faults_count; ++i) {
        const r2_bench_fault_t *fault = &options->faults[i];

        if (!begun[i] && !fault->at_iteration &&
            (best == options->faults_count || fault->seconds < options->faults[best].seconds)) {
            best = i;
        }
    }
    return best;
}

/* Waits for an order or the next time. @return milliseconds for poll(), -1 for ever. */
static int wait_ms(const r2_bench_options_t *options, unsigned timed, double zero_s)
{
    double left_s;

    if (zero_s < 0 || timed == options->faults_count) {
        return -1;
    }
    left_s = zero_s + options->faults[timed].seconds - r2_bench_now_s();
    if (left_s <= 0) {
        return 0;
    }
    return left_s > 3600 ? 3600000 : (int) (left_s * 1e3) + 1;
}

static void helper_main(const r2_bench_options_t *options, int channel)
{
    bool *begun = calloc(options->faults_count, sizeof(*begun));
    double zero_s = -1;
    struct pollfd set = {.fd = channel, .events = POLLIN};
    order_t order;

    while (NULL != begun) {
        unsigned timed = next_timed(options, begun);
        int ready = poll(&set, 1, wait_ms(options, timed, zero_s));

        if (0 == ready) {
            if (0 == wait_ms(options, timed, zero_s)) {
                carry_out(options, timed, begun, channel);
            }
            continue;
        }
        if (ready < 0) {
            continue; /* a signal */
        }
        if (!take(channel, &order, sizeof(order))) {
            break; /* the benchmark has ended */
        }
        if (ORDER_BEGIN == order.kind) {
            zero_s = order.zero_s;
        } else if (ORDER_FAULT == order.kind) {
            carry_out(options, order.fault, begun, channel);
        } else {
            news_t news = {.fault = SYNC};
            give(channel, &news, sizeof(news));
        }
    }
    _exit(0);
}

/* ---- the benchmark's side ---- */

static void find_next_iteration(r2_bench_injector_t *injector)
{
    const r2_bench_options_t *options = injector->options;

    injector->next_iteration = UINT64_MAX;
    for (unsigned i = 0; i < options->faults_count; ++i) {
        if (options->faults[i].at_iteration && !injector->effects[i].begun &&
            options->faults[i].iteration < injector->next_iteration) {
            injector->next_iteration = options->faults[i].iteration;
        }
    }
}

/* In the child: its own end only, nothing to read from the terminal. */
static void become_helper(const r2_bench_options_t *options, const int *ends)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

    close(ends[0]);
    if (nothing >= 0) {
        dup2(nothing, STDIN_FILENO);
        dup2(nothing, STDOUT_FILENO);
    }
    helper_main(options, ends[1]);
}

bool r2_bench_injector_init(r2_bench_injector_t *injector, const r2_bench_options_t *options)
{
    int ends[2];

    memset(injector, 0, sizeof(*injector));
    injector->options = options;
    injector->next_iteration = UINT64_MAX;
    if (0 == options->faults_count) {
        return true;
    }
    injector->effects = calloc(options->faults_count, sizeof(*injector->effects));
    if (NULL == injector->effects ||
        0 != socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) {
        return false;
    }
    injector->helper = fork();
    if (0 == injector->helper) {
        become_helper(options, ends);
    }
    close(ends[1]);
    if (injector->helper < 0) {
        close(ends[0]);
        injector->helper = 0;
        return false;
    }
    injector->channel = ends[0];
    find_next_iteration(injector);
    return true;
}

void r2_bench_injector_fini(r2_bench_injector_t *injector)
{
    if (0 != injector->helper) {
        close(injector->channel);
        while (-1 == waitpid(injector->helper, NULL, 0) && EINTR == errno) {
        }
        injector->helper = 0;
    }
    free(injector->effects);
    injector->effects = NULL;
}

static void give_order(r2_bench_injector_t *injector, order_kind_t kind, unsigned fault,
                       double zero_s)
{
    const order_t order = {.kind = kind, .fault = fault, .zero_s = zero_s};

    give(injector->channel, &order, sizeof(order));
}

void r2_bench_injector_begin(r2_bench_injector_t *injector, double zero_s)
{
    if (0 != injector->helper) {
        give_order(injector, ORDER_BEGIN, 0, zero_s);
    }
}

void r2_bench_injector_iteration(r2_bench_injector_t *injector, uint64_t iteration)
{
    if (iteration < injector->next_iteration) {
        return;
    }
    for (unsigned i = 0; i < injector->options->faults_count; ++i) {
        const r2_bench_fault_t *fault = &injector->options->faults[i];

        if (fault->at_iteration && !injector->effects[i].begun && fault->iteration <= iteration) {
            injector->effects[i].begun = true;
            give_order(injector, ORDER_FAULT, i, 0);
        }
    }
    find_next_iteration(injector);
}

/* Takes one piece of news. @return its fault, SYNC also if the helper is gone. */
static unsigned take_news(r2_bench_injector_t *injector)
{
    news_t news;

    if (!take(injector->channel, &news, sizeof(news)) || SYNC == news.fault) {
        return SYNC;
    }
    injector->effects[news.fault] = news.effect;
    return news.fault;
}

bool r2_bench_injector_poll(r2_bench_injector_t *injector)
{
    struct pollfd set = {.fd = injector->channel, .events = POLLIN};
    bool any = false;

    while (0 != injector->helper && poll(&set, 1, 0) > 0) {
        if (SYNC == take_news(injector)) {
            break;
        }
        any = true;
    }
    return any;
}

void r2_bench_injector_sync(r2_bench_injector_t *injector)
{
    if (0 != injector->helper) {
        give_order(injector, ORDER_SYNC, 0, 0);
        while (SYNC != take_news(injector)) {
        }
    }
}
