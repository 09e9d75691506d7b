/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The verbs of softverbs as an application calls them: a process and its child, each with a device
 * of the NIC that tests/softverbs/with-nic has started. The child only owns memory.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { MEMORY = 1 << 21, SENDS = 16, PATIENCE_MS = 20000 };

/* What one side tells the other. */
typedef struct sides {
    uint32_t qpn, rkey;
    uint64_t addr;
    union ibv_gid gid;
} side_t;

typedef struct end {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_srq *srq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    uint8_t *memory; /* shared between the processes, so that tests can look at it */
    side_t other;
} end_t;

static uint8_t *memories[2];
static end_t here;
static pid_t child;

static struct ibv_context *open_device(const char *name)
{
    int count;
    struct ibv_device **list = ibv_get_device_list(&count);
    struct ibv_context *context = NULL;

    for (int i = 0; i < count; ++i) {
        if (0 == strcmp(ibv_get_device_name(list[i]), name)) {
            context = ibv_open_device(list[i]);
        }
    }
    ibv_free_device_list(list);
    return context;
}

static struct ibv_qp *new_qp(end_t *end, struct ibv_srq *srq)
{
    struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
                                    .send_cq = end->cq,
                                    .recv_cq = end->cq,
                                    .srq = srq,
                                    .cap.max_send_wr = SENDS,
                                    .cap.max_recv_wr = SENDS,
                                    .cap.max_send_sge = 2,
                                    .cap.max_recv_sge = 1};
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    struct ibv_qp *qp = ibv_create_qp(end->pd, &init);

    attr.qp_access_flags =
        IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    assert_non_null(qp);
    assert_int_equal(
        ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
        0);
    return qp;
}

static void connect_qp(struct ibv_qp *qp, const side_t *to)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
                               .path_mtu = IBV_MTU_4096,
                               .dest_qp_num = to->qpn,
                               .max_dest_rd_atomic = 4,
                               .min_rnr_timer = 12};

    attr.ah_attr.is_global = 1;
    attr.ah_attr.port_num = 1;
    attr.ah_attr.grh.dgid = to->gid;
    attr.ah_attr.grh.sgid_index = 1;
    assert_int_equal(ibv_modify_qp(qp, &attr,
                                   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                       IBV_QP_MIN_RNR_TIMER),
                     0);
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = 12; /* 17 ms, the least of this NIC is 10 */
    attr.retry_cnt = 3;
    attr.rnr_retry = 7;
    attr.max_rd_atomic = 4;
    assert_int_equal(ibv_modify_qp(qp, &attr,
                                   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                       IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
                     0);
}

static side_t side_of(const end_t *end, const struct ibv_qp *qp)
{
    side_t side = {.qpn = qp->qp_num, .rkey = end->mr->rkey, .addr = (uintptr_t) end->memory};

    assert_int_equal(ibv_query_gid(end->context, 1, 1, &side.gid), 0);
    return side;
}

static void make_end(end_t *end, const char *device, uint8_t *memory)
{
    end->memory = memory;
    end->context = open_device(device);
    assert_non_null(end->context);
    end->pd = ibv_alloc_pd(end->context);
    end->channel = ibv_create_comp_channel(end->context);
    end->cq = ibv_create_cq(end->context, 64, end, end->channel, 0);
    assert_non_null(end->cq);
    end->mr = ibv_reg_mr(end->pd, memory, MEMORY,
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                             IBV_ACCESS_REMOTE_ATOMIC);
    assert_non_null(end->mr);
    end->qp = new_qp(end, NULL);
}

static void exchange(end_t *end, int socket)
{
    side_t side = side_of(end, end->qp);

    assert_int_equal(write(socket, &side, sizeof(side)), sizeof(side));
    assert_int_equal(read(socket, &end->other, sizeof(side)), sizeof(side));
    connect_qp(end->qp, &end->other);
}

/* The child waits for its end. */
static void be_child(int socket)
{
    static end_t end;
    struct ibv_sge sge;
    struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1}, *bad;
    char byte;

    make_end(&end, "soft1", memories[1]);
    exchange(&end, socket);
    sge = (struct ibv_sge){.addr = (uintptr_t) memories[1], .length = 4096, .lkey = end.mr->lkey};
    assert_int_equal(ibv_post_recv(end.qp, &wr, &bad), 0);
    assert_int_equal(write(socket, "r", 1), 1);
    _exit(1 == read(socket, &byte, 1));
}

static int set_up(void **state)
{
    int sockets[2];
    char ready;

    (void) state;
    memset(memories[0], 0, MEMORY);
    memset(memories[1], 0, MEMORY);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    child = fork();
    if (0 == child) {
        close(sockets[0]);
        be_child(sockets[1]);
    }
    close(sockets[1]);
    make_end(&here, "soft0", memories[0]);
    exchange(&here, sockets[0]);
    assert_int_equal(read(sockets[0], &ready, 1), 1);
    return 0;
}

static int tear_down(void **state)
{
    (void) state;
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_int_equal(ibv_destroy_qp(here.qp), 0);
    assert_int_equal(ibv_dereg_mr(here.mr), 0);
    assert_int_equal(ibv_destroy_cq(here.cq), 0);
    assert_int_equal(ibv_destroy_comp_channel(here.channel), 0);
    assert_int_equal(ibv_dealloc_pd(here.pd), 0);
    assert_int_equal(ibv_close_device(here.context), 0);
    return 0;
}

static int post(struct ibv_qp *qp, enum ibv_wr_opcode opcode, uint64_t wr_id, uint32_t from,
                uint32_t length, uint64_t to)
{
    struct ibv_sge sge = {.addr = (uintptr_t) here.memory + from,
                          .length = length,
                          .lkey = here.mr->lkey};
    struct ibv_send_wr wr = {.wr_id = wr_id,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = opcode,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;

    if (IBV_WR_ATOMIC_FETCH_AND_ADD == opcode) {
        wr.wr.atomic.remote_addr = here.other.addr + to;
        wr.wr.atomic.rkey = here.other.rkey;
        wr.wr.atomic.compare_add = 5;
    } else {
        wr.wr.rdma.remote_addr = here.other.addr + to;
        wr.wr.rdma.rkey = here.other.rkey;
    }
    return ibv_post_send(qp, &wr, &bad);
}

/* Waits on the channel for the next completion. */
static struct ibv_wc next(void)
{
    struct ibv_wc wc;
    struct ibv_cq *cq;
    void *user;
    struct pollfd channel = {.fd = here.channel->fd, .events = POLLIN};
    int count;

    while (0 == (count = ibv_poll_cq(here.cq, 1, &wc))) {
        assert_int_equal(ibv_req_notify_cq(here.cq, 0), 0);
        assert_int_equal(poll(&channel, 1, PATIENCE_MS), 1);
        assert_int_equal(ibv_get_cq_event(here.channel, &cq, &user), 0);
        assert_ptr_equal(cq, here.cq);
        assert_ptr_equal(user, &here);
        ibv_ack_cq_events(cq, 1);
    }
    assert_int_equal(count, 1);
    return wc;
}

static void expect(uint64_t wr_id, enum ibv_wc_status status)
{
    struct ibv_wc wc = next();

    assert_int_equal(wc.wr_id, wr_id);
    assert_int_equal(wc.status, status);
}

static void fault(const char *words)
{
    char command[200];

    snprintf(command, sizeof(command), "LD_PRELOAD= $SOFTVERBS fault %s", words);
    assert_int_equal(system(command), 0);
}

/* ---- */

static void devices_and_files(void **state)
{
    struct ibv_port_attr port;
    struct ibv_device_attr device;
    struct stat about;
    char text[32] = "";
    DIR *folder;
    int fd;

    (void) state;
    assert_int_equal(ibv_query_port(here.context, 1, &port), 0);
    assert_int_equal(port.state, IBV_PORT_ACTIVE);
    assert_int_equal(port.link_layer, IBV_LINK_LAYER_ETHERNET);
    assert_int_equal(ibv_query_port(here.context, 2, &port), EINVAL);
    assert_int_equal(ibv_query_device(here.context, &device), 0);
    assert_int_equal(device.phys_port_cnt, 1);
    assert_int_equal(stat("/dev/infiniband/softverbs_soft0", &about), 0);
    assert_true(S_ISCHR(about.st_mode));
    fd = open("/sys/class/infiniband/soft0/ports/1/gid_attrs/types/1", O_RDONLY);
    assert_true(fd >= 0);
    assert_true(read(fd, text, sizeof(text) - 1) > 0);
    close(fd);
    assert_string_equal(text, "RoCE v2\n");
    folder = opendir("/sys/class/infiniband");
    assert_non_null(folder);
    closedir(folder);
    assert_int_equal(access("/sys/class/infiniband/soft9", F_OK), -1);
}

static void every_kind_arrives(void **state)
{
    uint64_t number = 100;

    (void) state;
    memcpy(here.memory, "hello", 6);
    assert_int_equal(post(here.qp, IBV_WR_SEND, 1, 0, 6, 0), 0);
    expect(1, IBV_WC_SUCCESS);
    assert_string_equal((char *) memories[1], "hello");
    memset(here.memory, 7, 1 << 20);
    assert_int_equal(post(here.qp, IBV_WR_RDMA_WRITE, 2, 0, 1 << 20, 1 << 20), 0);
    expect(2, IBV_WC_SUCCESS);
    assert_memory_equal(here.memory, memories[1] + (1 << 20), 1 << 20);
    assert_int_equal(post(here.qp, IBV_WR_RDMA_READ, 3, 1 << 20, 1 << 20, 1 << 20), 0);
    expect(3, IBV_WC_SUCCESS);
    assert_memory_equal(here.memory + (1 << 20), here.memory, 1 << 20);
    memcpy(memories[1] + 64, &number, sizeof(number));
    assert_int_equal(post(here.qp, IBV_WR_ATOMIC_FETCH_AND_ADD, 4, 8, 8, 64), 0);
    expect(4, IBV_WC_SUCCESS);
    memcpy(&number, memories[1] + 64, sizeof(number));
    assert_int_equal(number, 105);
}

/* The NIC of a process that is stopped goes on, as hardware does; that of one that is killed does
 * not know its queue pairs any more. */
static void stopped_and_killed(void **state)
{
    (void) state;
    kill(child, SIGSTOP);
    assert_int_equal(waitpid(child, NULL, WUNTRACED), child);
    every_kind_arrives(NULL);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(post(here.qp, IBV_WR_RDMA_WRITE, 1, 0, 100000, 0), 0);
    assert_int_equal(post(here.qp, IBV_WR_RDMA_WRITE, 2, 0, 100000, 0), 0);
    expect(1, IBV_WC_RETRY_EXC_ERR);
    expect(2, IBV_WC_WR_FLUSH_ERR);
}

/* A place in the queue of sends is free when its completion is taken, not before. */
static void places_come_back_by_polling(void **state)
{
    (void) state;
    for (uint64_t i = 0; i < SENDS; ++i) {
        assert_int_equal(post(here.qp, IBV_WR_RDMA_WRITE, i, 0, 8, 0), 0);
    }
    assert_int_equal(post(here.qp, IBV_WR_RDMA_WRITE, 99, 0, 8, 0), ENOMEM);
    usleep(20000); /* they are done, and still fill the queue */
    assert_int_equal(post(here.qp, IBV_WR_RDMA_WRITE, 99, 0, 8, 0), ENOMEM);
    expect(0, IBV_WC_SUCCESS);
    assert_int_equal(post(here.qp, IBV_WR_RDMA_WRITE, SENDS, 0, 8, 0), 0);
    for (uint64_t i = 1; i <= SENDS; ++i) {
        expect(i, IBV_WC_SUCCESS);
    }
}

/* Two queue pairs of one device, and a queue of receives of one that goes. */
static void destroyed_with_completions(void **state)
{
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = 2, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(here.pd, &attr);
    struct ibv_qp *pair[2] = {new_qp(&here, NULL), new_qp(&here, srq)};
    side_t sides[2] = {side_of(&here, pair[0]), side_of(&here, pair[1])};
    struct ibv_sge sge = {.addr = (uintptr_t) here.memory, .length = 64, .lkey = here.mr->lkey};
    struct ibv_recv_wr wr = {.wr_id = 50, .sg_list = &sge, .num_sge = 1}, *bad;
    struct ibv_wc wc;

    (void) state;
    connect_qp(pair[0], &sides[1]);
    connect_qp(pair[1], &sides[0]);
    assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
    assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
    assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), ENOMEM);
    assert_int_equal(post(pair[0], IBV_WR_SEND, 1, 0, 10, 0), 0);
    assert_int_equal(post(pair[0], IBV_WR_SEND, 2, 0, 10, 0), 0);
    usleep(20000); /* what completes, completes */
    assert_int_equal(ibv_destroy_cq(here.cq), EBUSY);
    assert_int_equal(ibv_destroy_srq(srq), EBUSY);
    assert_int_equal(ibv_destroy_qp(pair[0]), 0);
    assert_int_equal(ibv_destroy_qp(pair[1]), 0);
    assert_int_equal(ibv_poll_cq(here.cq, 1, &wc), 0); /* none of theirs is seen */
    assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
    assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
    assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void events_of_the_port(void **state)
{
    static const struct {
        const char *words;
        enum ibv_event_type type;
    } faults[] = {{"soft0 port-down", IBV_EVENT_PORT_ERR},
                  {"soft0 heal", IBV_EVENT_PORT_ACTIVE},
                  {"soft0 gid 0 3", IBV_EVENT_GID_CHANGE},
                  {"soft0 gid 0 1", IBV_EVENT_GID_CHANGE}};
    struct pollfd events = {.fd = here.context->async_fd, .events = POLLIN};
    struct ibv_async_event event;

    (void) state;
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); ++i) {
        fault(faults[i].words);
        assert_int_equal(poll(&events, 1, PATIENCE_MS), 1);
        assert_int_equal(ibv_get_async_event(here.context, &event), 0);
        assert_int_equal(event.event_type, faults[i].type);
        assert_int_equal(event.element.port_num, 1);
        ibv_ack_async_event(&event);
    }
}

/* The device is dead: no completion, nothing new; destroying what there was is the flush. */
static void fatal(void **state)
{
    struct ibv_wc wc;

    (void) state;
    fault("soft0 fatal");
    assert_int_equal(post(here.qp, IBV_WR_RDMA_WRITE, 1, 0, 8, 0), 0);
    usleep(200000);
    assert_int_equal(ibv_poll_cq(here.cq, 1, &wc), 0);
    assert_null(ibv_reg_mr(here.pd, here.memory, 10, 0));
    assert_null(open_device("soft0"));
    fault("soft0 heal");
}

/* The device is there and works for who has it, and nobody else can open it. */
static void refused(void **state)
{
    uint32_t opened = 0;

    (void) state;
    fault("soft0 refuse 1");
    assert_null(open_device("soft0"));
    assert_int_equal(errno, EIO);
    fault("soft0 refuse 1 13");
    assert_null(open_device("soft0"));
    assert_int_equal(errno, EACCES);
    assert_int_equal(post(here.qp, IBV_WR_RDMA_WRITE, 1, 0, 8, 0), 0);
    expect(1, IBV_WC_SUCCESS);
    fault("soft0 refuse 0.5 0 3");
    for (int i = 0; i < 32; ++i) {
        struct ibv_context *context = open_device("soft0");
        if (NULL != context) {
            ++opened;
            ibv_close_device(context);
        }
    }
    assert_in_range(opened, 8, 24);
    fault("soft0 heal");
}

/* Memory that is unmapped while it is registered, as caches of registrations leave it. */
static void unmapped_memory(void **state)
{
    uint8_t *memory = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ibv_mr *mr = ibv_reg_mr(here.pd, memory, 65536, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_sge sge = {.addr = (uintptr_t) memory, .length = 65536, .lkey = mr->lkey};
    struct ibv_send_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1,
                             .opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_SIGNALED},
                       *bad;

    (void) state;
    munmap(memory, 65536);
    wr.wr.rdma.remote_addr = here.other.addr;
    wr.wr.rdma.rkey = here.other.rkey;
    assert_int_equal(ibv_post_send(here.qp, &wr, &bad), 0);
    expect(1, IBV_WC_SUCCESS);
    assert_int_equal(ibv_dereg_mr(mr), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(devices_and_files),
        TEST(every_kind_arrives),
        TEST(stopped_and_killed),
        TEST(places_come_back_by_polling),
        TEST(destroyed_with_completions),
        TEST(events_of_the_port),
        TEST(unmapped_memory),
        TEST(refused),
        TEST(fatal),
    };

    for (int i = 0; i < 2; ++i) {
        memories[i] = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (MAP_FAILED == memories[i]) {
            return 1;
        }
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
