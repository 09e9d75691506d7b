/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * softverbs: the RDMA NICs of a host, as a process of their own (docs/softverbs.md).
 */
#include "softverbs/nic/nic.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS = 32, SOURCE_BITS = 7 };

static const char usage[] =
    "usage: softverbs nic [--files DIR] [--gbit N] [--timeout-ms N] [--move-gids] [--detach]\n"
    "                     [--ib] [--netns FILE] [NETDEV[@ADDRESS][=DEVICE]...]\n"
    "           be the RDMA NICs of this network namespace: all netdevs railN as softN, or\n"
    "           those given; processes use them with LD_PRELOAD=libsoftverbs.so;\n"
    "           --ib: their ports are InfiniBand's, and no netdev is told with them;\n"
    "           --netns: the netdevs are in the network namespace of that file\n"
    "       softverbs devices\n"
    "       softverbs counters\n"
    "       softverbs fault DEVICE KIND [CHANCE [VALUE [SEED]]]\n"
    "           drop CHANCE, delay CHANCE MS, late-write CHANCE MS, key CHANCE,\n"
    "           no-completion CHANCE, error CHANCE STATUS, refuse CHANCE [ERRNO]; fatal,\n"
    "           port-down, qp-fatal 0 QPN, gid 0 INDEX, gid 1 INDEX, heal; CHANCE is a part of 1\n";

static volatile sig_atomic_t is_over;

static void on_signal(int signo)
{
    (void) signo;
    is_over = 1;
}

static uint64_t clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

/* ---- doorbells */

static void serve_word(sv_context_t *context, uint32_t word)
{
    uint64_t bits = __atomic_exchange_n(&context->bells->bits[word], 0, __ATOMIC_ACQ_REL);

    for (; 0 != bits; bits &= bits - 1) {
        sv_qp_t *qp = context->qps[word * 64 + (uint32_t) __builtin_ctzll(bits)];
        if (NULL != qp) {
            sv_posted(qp);
        }
    }
}

/* Serves all doorbells; false where none had rung. */
static bool serve_bells(sv_nic_t *nic)
{
    bool any = false;

    for (sv_context_t *context = nic->contexts; NULL != context; context = context->next) {
        for (uint32_t i = 0; NULL != context->bells && i < SV_CONTEXT_QPS / 64 / 64; ++i) {
            uint64_t words = 0;
            if (0 != __atomic_load_n(&context->bells->some[i], __ATOMIC_ACQUIRE)) {
                words = __atomic_exchange_n(&context->bells->some[i], 0, __ATOMIC_ACQ_REL);
            }
            any |= 0 != words;
            for (; 0 != words; words &= words - 1) {
                serve_word(context, i * 64 + (uint32_t) __builtin_ctzll(words));
            }
        }
    }
    for (uint32_t i = 0; any && i < nic->device_count; ++i) {
        sv_packet_flush(nic->devices[i]);
    }
    return any;
}

/* ---- the loop */

static void handle(sv_nic_t *nic, uint64_t data)
{
    void *object = (void *) (uintptr_t) (data & ~(uint64_t) SOURCE_BITS);
    uint64_t count;

    switch ((sv_source_t) (data & SOURCE_BITS)) {
    case SV_FROM_WAKE:
        if (read(nic->wake, &count, sizeof(count)) < 0) {
            return;
        }
        break;
    case SV_FROM_LISTENER:
        sv_control_accept(nic);
        break;
    case SV_FROM_LINKS:
        sv_links_changed(nic);
        break;
    case SV_FROM_DEVICE:
        sv_sockets_receive(object);
        break;
    case SV_FROM_SOCKET:
        sv_control_serve(object);
        break;
    case SV_FROM_PROCESS:
        sv_control_gone(object);
        break;
    default:
        break;
    }
}

static struct timespec until_wake(const sv_nic_t *nic)
{
    uint64_t wait = UINT64_C(1000000000);

    for (uint32_t i = 0; i < nic->device_count; ++i) {
        uint64_t wake = nic->devices[i]->wake_ns;
        uint64_t left = wake > nic->now_ns ? wake - nic->now_ns : 0;
        wait = left < wait ? left : wait;
    }
    return (struct timespec){.tv_sec = (time_t) (wait / 1000000000u),
                             .tv_nsec = (long) (wait % 1000000000u)};
}

static void loop(sv_nic_t *nic)
{
    struct epoll_event events[EVENTS];

    while (!is_over) {
        struct timespec wait;
        int count;

        nic->now_ns = clock_ns();
        serve_bells(nic);
        for (uint32_t i = 0; i < nic->device_count; ++i) {
            sv_timers(nic->devices[i]);
        }
        __atomic_store_n(&nic->page->asleep, 1, __ATOMIC_SEQ_CST);
        wait = until_wake(nic);
        if (serve_bells(nic)) {
            wait = (struct timespec){.tv_sec = 0};
        }
        count = epoll_pwait2(nic->poll, events, EVENTS, &wait, NULL);
        __atomic_store_n(&nic->page->asleep, 0, __ATOMIC_SEQ_CST);
        nic->now_ns = clock_ns();
        for (int i = 0; i < count; ++i) {
            handle(nic, events[i].data.u64);
        }
        sv_control_sweep(nic);
    }
}

/* ---- set-up */

static bool set_rate(sv_nic_t *nic, unsigned gbit)
{
    static const struct {
        unsigned gbit;
        uint32_t speed, width;
    } rates[] = {{10, 4, 1},  {25, 32, 1},  {40, 4, 2},   {50, 64, 1},
                 {56, 16, 2}, {100, 32, 2}, {200, 64, 2}, {400, 128, 2}};

    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); ++i) {
        for (uint32_t d = 0; rates[i].gbit == gbit && d < nic->device_count; ++d) {
            nic->devices[d]->speed = rates[i].speed;
            nic->devices[d]->width = rates[i].width;
        }
        if (rates[i].gbit == gbit) {
            return true;
        }
    }
    return false;
}

/* NETDEV[@ADDRESS][=DEVICE] */
static bool add_device(sv_nic_t *nic, const char *text)
{
    sv_device_t about = {.is_ib = nic->is_ib};
    char word[128];
    char *name, *ip;
    sv_dev_t *dev;

    snprintf(word, sizeof(word), "%s", text);
    name = strchr(word, '=');
    if (NULL != name) {
        *name++ = '\0';
    }
    ip = strchr(word, '@');
    if (NULL != ip) {
        *ip++ = '\0';
    }
    if (strlen(word) >= sizeof(about.netdev) || (NULL != ip && 0 == (about.ip = inet_addr(ip))) ||
        nic->device_count == SV_DEVICES) {
        return false;
    }
    memcpy(about.netdev, word, strlen(word));
    snprintf(about.name, sizeof(about.name), NULL == name ? "soft%s" : "%s",
             NULL != name                    ? name
             : 0 == strncmp(word, "rail", 4) ? word + 4
                                             : word);
    dev = sv_dev_create(nic, &about);
    if (NULL == dev) {
        return false;
    }
    dev->has_own_ip = NULL != ip;
    nic->devices[nic->device_count++] = dev;
    return NULL == ip || 0 == sv_sockets_open(dev);
}

static bool add_rails(sv_nic_t *nic)
{
    struct if_nameindex *all = if_nameindex();
    bool is_good = NULL != all;

    for (struct if_nameindex *at = all; is_good && 0 != at->if_index; ++at) {
        if (0 == strncmp(at->if_name, "rail", 4)) {
            is_good = add_device(nic, at->if_name);
        }
    }
    if (NULL != all) {
        if_freenameindex(all);
    }
    return is_good;
}

/* The page, the doorbell and what else there is one of. */
static bool open_all(sv_nic_t *nic)
{
    void *page;

    nic->poll = epoll_create1(EPOLL_CLOEXEC);
    nic->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    nic->page_fd = memfd_create("softverbs", MFD_CLOEXEC);
    if (nic->poll < 0 || nic->wake < 0 || nic->page_fd < 0 ||
        0 != ftruncate(nic->page_fd, sizeof(sv_nic_page_t))) {
        return false;
    }
    page = mmap(NULL, sizeof(sv_nic_page_t), PROT_READ | PROT_WRITE, MAP_SHARED, nic->page_fd, 0);
    nic->page = MAP_FAILED == page ? NULL : page;
    return NULL != nic->page && 0 == sv_wait_for(nic, nic->wake, SV_FROM_WAKE, nic);
}

/* As hardware does, it goes on while processes compute; without the right to it, it may wait. */
static void take_resources(void)
{
    struct sched_param param = {.sched_priority = 1};
    struct rlimit files;

    if (0 != sched_setscheduler(0, SCHED_FIFO, &param)) {
        setpriority(PRIO_PROCESS, 0, -20);
    }
    getrlimit(RLIMIT_NOFILE, &files); /* some four for each device that a process opens */
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
}

typedef struct options {
    unsigned gbit, timeout_ms;
    bool detaches;
    const char *netns; /* borrowed; NULL: as processes have it */
} options_t;

/* The options; returns the number of the first device, or -1 where something is wrong. */
static int read_options(sv_nic_t *nic, int argc, char **argv, options_t *options)
{
    int i = 0;

    for (; i < argc && 0 == strncmp(argv[i], "--", 2); ++i) {
        if (0 == strcmp(argv[i], "--move-gids")) {
            nic->moves_gids = true;
        } else if (0 == strcmp(argv[i], "--ib")) {
            nic->is_ib = true;
        } else if (0 == strcmp(argv[i], "--detach")) {
            options->detaches = true;
        } else if (i + 1 == argc) {
            return -1;
        } else if (0 == strcmp(argv[i], "--files")) {
            snprintf(nic->files, sizeof(nic->files), "%s", argv[++i]);
        } else if (0 == strcmp(argv[i], "--netns")) {
            options->netns = argv[++i];
        } else if (0 == strcmp(argv[i], "--gbit")) {
            options->gbit = (unsigned) atoi(argv[++i]);
        } else if (0 == strcmp(argv[i], "--timeout-ms")) {
            nic->least_timeout_ns = (uint64_t) atoi(argv[++i]) * 1000000u;
        } else {
            return -1;
        }
    }
    return i;
}

/* The devices, where their netdevs are. */
static bool open_devices(sv_nic_t *nic, int argc, char **argv, const options_t *options)
{
    int netns = NULL == options->netns ? -1 : open(options->netns, O_RDONLY | O_CLOEXEC);

    if (NULL != options->netns && (netns < 0 || 0 != setns(netns, CLONE_NEWNET))) {
        return false;
    }
    nic->links = sv_links_open();
    if (nic->links < 0 || 0 != sv_wait_for(nic, nic->links, SV_FROM_LINKS, nic)) {
        return false;
    }
    for (int i = 0; i < argc; ++i) {
        if (!add_device(nic, argv[i])) {
            return false;
        }
    }
    return (argc > 0 || add_rails(nic)) && set_rate(nic, options->gbit);
}

static int run_nic(int argc, char **argv)
{
    static sv_nic_t nic = {.world = &sv_real_world,
                           .segment = SV_SEGMENT,
                           .least_timeout_ns = 10000000,
                           .listener = -1};
    options_t options = {.gbit = 10};
    struct sigaction action = {.sa_handler = on_signal};
    int first = read_options(&nic, argc, argv, &options);
    sigset_t none;

    /* Its socket first: processes may have another network namespace than its netdevs. */
    if (first >= 0 && open_all(&nic) &&
        (0 != sv_files_create(&nic) || 0 != sv_control_open(&nic))) {
        perror("softverbs: another NIC, or no folder for files");
        return 1;
    }
    if (first < 0 || NULL == nic.page ||
        !open_devices(&nic, argc - first, argv + first, &options)) {
        fprintf(stderr, "softverbs: bad arguments, or no right to NICs: %s\n%s", strerror(errno),
                usage);
        return 2;
    }
    for (uint32_t i = 0; i < nic.device_count; ++i) {
        sv_link_look(nic.devices[i]);
    }
    sigemptyset(&none); /* r2lab blocks them while it builds */
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_IGN);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    if (options.detaches && 0 != daemon(0, 0)) {
        return 1;
    }
    take_resources();
    puts("ready");
    fflush(stdout);
    loop(&nic);
    sv_files_remove(&nic);
    return 0;
}

int main(int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "";

    if (0 == strcmp(verb, "nic")) {
        return run_nic(argc - 2, argv + 2);
    }
    if (0 == strcmp(verb, "devices") && 2 == argc) {
        return sv_command_devices();
    }
    if (0 == strcmp(verb, "counters") && 2 == argc) {
        return sv_command_counters();
    }
    if (0 == strcmp(verb, "fault") && argc >= 4 && argc <= 7) {
        return sv_command_fault(argc - 2, argv + 2);
    }
    fputs(usage, 0 == strcmp(verb, "--help") ? stdout : stderr);
    return 0 == strcmp(verb, "--help") ? 0 : 2;
}
