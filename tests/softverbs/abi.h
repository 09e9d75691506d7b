/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * What the library (in the application) and the NIC (a process of its own) say to each other:
 * work requests and completions in shared rings, everything else as a request and its reply over a
 * socket (a packet each). Pointers never cross: objects have numbers.
 */
#ifndef SV_ABI_H
#define SV_ABI_H

#include <infiniband/verbs.h>
#include <net/if.h>
#include <stdint.h>

enum {
    SV_SEND_SGES = 16,   /* pieces of a send */
    SV_RECV_SGES = 4,    /* pieces of a receive */
    SV_INLINE_BYTES = 256,
    SV_RD_ATOMICS = 16,  /* reads and atomics in flight of a queue pair */
    SV_UD_BYTES = 4096,  /* longest datagram of UD: its path's MTU */
    SV_GRH_BYTES = 40,
    SV_GIDS = 4,         /* of a port: 0 is link-local (RoCE v1), one other has the address (v2);
                            of an InfiniBand port 0 alone */
    SV_DEVICES = 16,     /* of a host */
    SV_CONTEXT_QPS = 16384, /* queue pairs of an opened device: bits of its doorbells */
    SV_GIVEN = 32,       /* pieces of memory that a process has got back */
    SV_NAME_BYTES = 32
};

/* Memory of a process that no NIC may write to any more; read by the NIC (lib/given.c). */
typedef struct sv_given {
    struct {
        uint64_t addr, length; /* 0: none */
    } of[SV_GIVEN];
} sv_given_t;

/* A posted send. */
typedef struct sv_send {
    uint64_t wr_id;
    uint32_t opcode; /* enum ibv_wr_opcode */
    uint32_t flags;  /* enum ibv_send_flags */
    uint32_t imm;
    uint32_t rkey;
    uint64_t remote_addr;
    uint64_t compare_add;
    uint64_t swap;
    uint32_t length;    /* of all pieces */
    uint32_t sge_count; /* 0 where the data is inline */
    uint32_t dest_ip;   /* UD: address (InfiniBand: LID), number and key of the receiver */
    uint32_t dest_qpn;
    uint32_t qkey;
    uint32_t unused;
    union {
        struct ibv_sge sge[SV_SEND_SGES];
        uint8_t bytes[SV_INLINE_BYTES];
    } data;
} sv_send_t;

/* A posted receive. */
typedef struct sv_recv {
    uint64_t wr_id;
    uint64_t sge_count;
    struct ibv_sge sge[SV_RECV_SGES];
} sv_recv_t;

enum { SV_CQE_SEND = 1, SV_CQE_SOLICITED = 2, SV_CQE_DEAD = 4 };

/* A completion. */
typedef struct sv_cqe {
    struct ibv_wc wc;
    uint32_t flags;     /* SV_CQE_* */
    uint32_t send_next; /* number of the send after this one: those before have left the queue */
} sv_cqe_t;

/* The doorbells of an opened device, shared. A bit for each queue pair with new sends, and one for
 * each word of these bits. */
typedef struct sv_bells {
    uint64_t some[SV_CONTEXT_QPS / 64 / 64];
    uint64_t bits[SV_CONTEXT_QPS / 64];
} sv_bells_t;

/* Shared by a NIC and all processes of its host. */
typedef struct sv_nic_page {
    uint32_t asleep; /* the NIC waits: whoever rings has to write to its descriptor */
} sv_nic_page_t;

/* What arrives on the descriptor of asynchronous events; on that of a channel, a queue's number. */
typedef struct sv_event {
    uint32_t type;   /* enum ibv_event_type */
    uint32_t object; /* queue pair, completion queue or SRQ; 0 for those of the port */
} sv_event_t;

/* ---- requests */

typedef enum sv_verb {
    SV_LIST,     /* -> devices */
    SV_OPEN,     /* device, given; descriptors: events (write end), doorbells -> wake, page */
    SV_PORT,     /* -> port */
    SV_REG_MR,   /* mr -> object is the key */
    SV_DEREG_MR,
    SV_CHANNEL,  /* descriptor: write end -> object */
    SV_CHANNEL_GONE,
    SV_CQ,       /* cq; descriptor: ring -> object */
    SV_CQ_GONE,
    SV_SRQ,      /* srq; descriptor: ring -> object */
    SV_SRQ_ARM,  /* srq.limit */
    SV_SRQ_GONE,
    SV_QP,       /* qp; descriptors: sends, receives unless there is an SRQ -> qp */
    SV_QP_MODIFY,
    SV_QP_QUERY, /* -> attr */
    SV_QP_GONE,  /* -> taken: receives of the SRQ that went with it */
    SV_FAULT,    /* fault */
    SV_COUNTERS, /* -> text */
    SV_VERBS
} sv_verb_t;

typedef struct sv_device {
    char name[SV_NAME_BYTES];
    char netdev[IFNAMSIZ];
    uint32_t ip;
    uint8_t mac[6];
    uint8_t is_ib; /* an InfiniBand port: by LIDs, without an address of IP to be seen */
    uint8_t unused;
} sv_device_t;

/* The GID at index 0: fe80:: and the address of the netdev. */
static inline void sv_link_local(const sv_device_t *device, uint8_t gid_p[16])
{
    static const uint8_t none[16] = {0xfe, 0x80, [11] = 0xff, [12] = 0xfe};

    for (int i = 0; i < 16; ++i) {
        gid_p[i] = none[i];
    }
    for (int i = 0; i < 3; ++i) {
        gid_p[8 + i] = device->mac[i];
        gid_p[13 + i] = device->mac[3 + i];
    }
    gid_p[8] ^= 2;
}

/** ::ffff:192.0.2.1, of a VLAN: an address for documentation, nobody's. */
static inline void sv_other_gid(uint8_t gid_p[16])
{
    static const uint8_t other[16] = {[10] = 0xff, 0xff, 192, 0, 2, 1};

    for (int i = 0; i < 16; ++i) {
        gid_p[i] = other[i];
    }
}

typedef struct sv_port {
    uint32_t state; /* enum ibv_port_state */
    uint32_t speed, width;
    uint32_t gid_index;   /* the entry of the table that has the address */
    uint32_t other_index; /* the entry with the address of a VLAN; 0: none */
    uint32_t ip;
    uint32_t lid;     /* InfiniBand; 0: none */
    uint32_t is_dead; /* the device had a fatal error */
} sv_port_t;

/* Faults of the NIC's own. */
typedef enum sv_fault_kind {
    SV_FAULT_DROP,          /* an arriving packet is lost */
    SV_FAULT_DELAY,         /* an arriving packet is handled later, and behind others */
    SV_FAULT_LATE_WRITE,    /* the data of an RDMA write is written once more, later */
    SV_FAULT_KEY,           /* an arriving request has another key than was sent */
    SV_FAULT_NO_COMPLETION, /* a send that is done is never told */
    SV_FAULT_ERROR,         /* a send that is done is told as failed; value is the status */
    SV_FAULT_REFUSE,        /* the device cannot be opened; value is errno, 0: EIO */
    SV_FAULT_FATAL,         /* the device dies: no packet and no completion any more */
    SV_FAULT_QP_FATAL,      /* a queue pair dies; value is its number */
    SV_FAULT_PORT_DOWN,     /* the port is down, whatever its netdev is */
    SV_FAULT_GID,           /* the port's address is at another index; value is the index */
    SV_FAULT_HEAL,
    SV_FAULT_KINDS
} sv_fault_kind_t;

typedef struct sv_fault {
    char device[SV_NAME_BYTES];
    uint32_t kind;
    uint32_t per_million; /* chance of each packet, completion or opening */
    uint32_t value;       /* delays: milliseconds */
    uint32_t unused;
    uint64_t seed;
} sv_fault_t;

typedef struct sv_request {
    uint32_t verb;   /* sv_verb_t */
    uint32_t object; /* number of the object, or the device's index */
    union {
        uint64_t given; /* address of the process's sv_given_t */
        struct {
            uint64_t addr, length, iova;
            uint32_t access, pd;
        } mr;
        struct {
            uint32_t channel; /* 0: none */
        } cq;
        struct {
            uint32_t pd, limit;
        } srq;
        struct {
            uint32_t pd, type, send_cq, recv_cq, srq, signal_all;
        } qp;
        struct {
            struct ibv_qp_attr attr;
            uint32_t mask;
        } modify;
        sv_fault_t fault;
    } u;
} sv_request_t;

typedef struct sv_reply {
    int32_t error;   /* 0, or an errno */
    uint32_t object; /* number of what was made */
    union {
        struct {
            uint32_t count;
            char files[128]; /* folder of what stands in /sys/class/infiniband */
            sv_device_t of[SV_DEVICES];
        } devices;
        sv_port_t port;
        struct {
            uint32_t slot; /* of its bit among the doorbells */
        } qp;
        uint32_t taken;
        struct ibv_qp_attr attr;
        char text[2048];
    } u;
} sv_reply_t;

/* Name of the NIC's socket (abstract, so each network namespace has its own): the variable
 * SOFTVERBS_NAME tells several NICs of one namespace apart. */
#define SV_NAME_VARIABLE "SOFTVERBS_NAME"
#define SV_SOCKET        "softverbs-"

/* Connects to the NIC of this network namespace. Returns the socket or -1. */
int sv_dial(void);

/* Sends a request with up to two descriptors and waits for its reply; fds_p gets the two that may
 * come with it, or -1. Returns 0 or an errno, that of the reply included. */
int sv_ask(int socket, const sv_request_t *request, const int *fds, int count, sv_reply_t *reply_p,
           int fds_p[2]);

/* One packet with up to two descriptors. receive returns the bytes received; fds_p are -1 where
 * none came. */
int sv_packet_send(int socket, const void *bytes, size_t size, const int *fds, int count);
int sv_packet_receive(int socket, void *bytes, size_t size, int fds_p[2]);

/* The socket's address; returns its length. */
struct sockaddr_un;
unsigned sv_socket_name(struct sockaddr_un *address_p);

#endif
