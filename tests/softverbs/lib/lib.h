/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The library that stands in for libibverbs (LD_PRELOAD). It answers the verbs that UCX's libuct_ib
 * calls; the real one stays loaded for the rest (libmlx5 needs its private parts).
 *
 * Every struct that the application sees begins with that of verbs.h, but for the context, which is
 * an extended one without operations: the inline functions of verbs.h fall back to the exported
 * ones, and libefa, which libfabric asks, finds the verbs_context that it takes for granted.
 *
 * Locks: a context's guards its control socket, its lists and the counts of events; a queue pair's,
 * an SRQ's and a completion queue's the side of their rings that the application has. Order: a
 * context's is never taken inside another.
 */
#ifndef SV_LIB_H
#define SV_LIB_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softverbs/abi.h"
#include "softverbs/ring.h"

#define SV_EXPORT __attribute__((visibility("default")))

enum { SV_LIB_PLACES = 65536 }; /* as the NIC has: no two queue pairs in one place */

typedef struct sv_lib_device {
    struct ibv_device ibv;
    char behind[512]; /* libmlx5 looks for its operations there, and finds none */
    sv_device_t about;
    uint32_t index; /* of the NIC */
} sv_lib_device_t;

/* Events that the application has got of an object and has acknowledged: it goes when they are
 * equal. */
typedef struct sv_told {
    uint32_t got, acked;
} sv_told_t;

typedef struct sv_lib_qp sv_lib_qp_t;
typedef struct sv_lib_cq sv_lib_cq_t;
typedef struct sv_lib_srq sv_lib_srq_t;

typedef struct sv_lib_context {
    struct verbs_context verbs; /* ends with the ibv_context */
    pthread_mutex_t lock;
    pthread_cond_t acked;
    int control, wake;
    sv_bells_t *bells;   /* mapped */
    sv_nic_page_t *page; /* mapped */
    sv_lib_qp_t **qps;   /* owned; by number modulo SV_LIB_PLACES */
    sv_lib_cq_t *cqs;    /* list */
    sv_lib_srq_t *srqs;  /* list */
    uint32_t next_pd;
} sv_lib_context_t;

typedef struct sv_lib_pd {
    struct ibv_pd ibv;
    uint32_t number;
} sv_lib_pd_t;

typedef struct sv_lib_channel {
    struct ibv_comp_channel ibv; /* fd: where a queue's number arrives */
    uint32_t number;
    int told; /* the end that is written to */
} sv_lib_channel_t;

struct sv_lib_cq {
    struct ibv_cq ibv;
    pthread_mutex_t lock;
    sv_ring_t ring;
    uint32_t number;
    sv_told_t completions, events;
    sv_lib_cq_t *next;
};

struct sv_lib_srq {
    struct ibv_srq ibv;
    pthread_mutex_t lock;
    sv_ring_t ring;
    uint32_t number, most, released;
    sv_told_t events;
    sv_lib_srq_t *next;
};

struct sv_lib_qp {
    struct ibv_qp ibv;
    pthread_mutex_t lock;
    struct ibv_qp_cap cap;
    sv_ring_t sends, recvs;
    uint32_t sends_released, recvs_released; /* places that polling has given back */
    uint32_t slot;
    bool signals_all;
    sv_told_t events;
};

typedef struct sv_lib_ah {
    struct ibv_ah ibv;
    uint32_t ip;
} sv_lib_ah_t;

static inline sv_lib_context_t *sv_context_of(struct ibv_context *context)
{
    return (sv_lib_context_t *) (void *) ((char *) context -
                                          offsetof(sv_lib_context_t, verbs.context));
}

/* ---- device.c */
/* The folder that holds what /sys/class/infiniband shows; "" without a NIC. */
const char *sv_lib_files(void);
/* A request of an opened device; returns 0 or an errno. */
int sv_lib_ask(sv_lib_context_t *context, const sv_request_t *request, const int *fds, int count,
               sv_reply_t *reply_p);
/* Descriptors of a pipe, the end that is written to does not block; 0 or an errno. */
int sv_lib_pipe(int ends_p[2]);

/* ---- event.c: waits until all events of an object are acknowledged; with the lock held. */
void sv_lib_wait_acked(sv_lib_context_t *context, const sv_told_t *told);

/* ---- cq.c */
int sv_lib_poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc);
int sv_lib_req_notify_cq(struct ibv_cq *cq, int solicited_only);
/* A queue pair is gone: what it has left in a queue is not seen. */
void sv_lib_forget(struct ibv_cq *cq, sv_lib_qp_t *qp);

/* ---- given.c */
const sv_given_t *sv_lib_given(void);
/* For the application, which finds them by dlsym(). */
SV_EXPORT int softverbs_give_back(const void *memory, size_t bytes);
SV_EXPORT void softverbs_take(const void *memory);

/* ---- gpu.c */
/* Whether there is what registers memory of GPUs. */
bool sv_lib_has_peer_memory(void);
/* Where the NIC finds memory that is to be registered: elsewhere if it is a GPU's. Returns 0, or an
 * errno: it is a GPU's, and cannot be registered. */
int sv_lib_gpu_place(uint64_t at, size_t bytes, uint64_t *place_p);
/* A request is posted: the driver checks that the application's work on the memory has ended. */
void sv_lib_gpu_touch(const struct ibv_send_wr *wr);

/* ---- qp.c */
int sv_lib_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int sv_lib_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* ---- srq.c */
int sv_lib_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
/* Puts receives into a ring of which released places are free again. */
int sv_lib_put_recvs(sv_ring_t *ring, uint32_t most, const uint32_t *released,
                     struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

#endif
