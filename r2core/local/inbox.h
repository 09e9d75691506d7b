/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Inboxes: memory of a process in which others of its host put records for it.
 *
 * It is a shared file (local/shared.h). Who cannot open it (another process namespace, another
 * user) sends by other ways, and nobody has to agree on that: the owner reads whatever mailboxes
 * there are.
 *
 *   page 0          r2_inbox_head_t
 *   then, each      a mailbox: memory from its first use on, which its sender allocates; first the
 *                   large ones
 */
#ifndef R2_LOCAL_INBOX_H
#define R2_LOCAL_INBOX_H

#include <stdbool.h>

#include "local/mailbox.h"
#include "local/shared.h"

/*
 * All mailboxes together have 1.4 MiB, so that the memory of a host grows with its processes and
 * not with their square: those that come first are large, and who comes last gets none.
 */
#define R2_INBOX_MOST          128u /* mailboxes */
#define R2_INBOX_LARGE         16u  /* of them, the first ones */
#define R2_INBOX_LINES_LARGE   512u /* 36 KiB, records up to 8 KiB and their head */
#define R2_INBOX_LINES_SMALL   64u  /* 8 KiB, records up to 1 KiB and their head */
#define R2_INBOX_ID_BYTES      R2_SHARED_ID_BYTES
#define R2_INBOX_ADDRESS_BYTES R2_SHARED_ADDRESS_BYTES

/** In shared memory: zeros at first, but for the id. */
typedef struct r2_inbox_head {
    uint8_t id[R2_INBOX_ID_BYTES];                     /* random: this is the one */
    _Alignas(R2_MAILBOX_LINE) _Atomic uint32_t sleeps; /* its owner wants to be woken */
    _Alignas(R2_MAILBOX_LINE) _Atomic uint32_t opened; /* mailboxes that are ready */
    _Atomic uint32_t taken;                            /* and those that somebody wants */
    _Atomic uint32_t senders[R2_INBOX_MOST];           /* process that sends, and 1; 0: not ready */
} r2_inbox_head_t;

/** The owner's side. Its user's lock. */
typedef struct r2_inbox {
    int fd;                             /* owned */
    uint32_t seen;                      /* head->opened when all that are ready were known */
    r2_inbox_head_t *head;              /* owned: a mapping */
    bool sleeps;                        /* head->sleeps was set since it was last cleared */
    r2_mailbox_t *boxes[R2_INBOX_MOST]; /* owned: mappings; NULL: none */
    bool known[R2_INBOX_MOST];
} r2_inbox_t;

/** A sender's side of one mailbox. Its user's lock. */
typedef struct r2_outbox {
    r2_inbox_head_t *head; /* owned: a mapping; NULL: there is no mailbox */
    r2_mailbox_out_t ring; /* ring.box owned: a mapping */
    uint32_t number;       /* of the mailbox in the inbox */
} r2_outbox_t;

/** Lines of the ring of a mailbox. */
static inline uint32_t r2_inbox_lines(uint32_t number)
{
    return number < R2_INBOX_LARGE ? R2_INBOX_LINES_LARGE : R2_INBOX_LINES_SMALL;
}

/** @return R2_OK, R2_ERR_NO_MEMORY, R2_ERR_SYSTEM (errno). */
r2_status_t r2_inbox_create(r2_inbox_t **inbox_p);
void r2_inbox_destroy(r2_inbox_t *inbox);
/** Where others find it. @param to R2_INBOX_ADDRESS_BYTES bytes. */
void r2_inbox_address(const r2_inbox_t *inbox, uint8_t *to);

/** True if mailboxes may be ready that are not known. */
static inline bool r2_inbox_changed(const r2_inbox_t *inbox)
{
    return inbox->seen != atomic_load_explicit(&inbox->head->opened, memory_order_acquire);
}

/**
 * A mailbox that is ready and not known yet; the same until r2_inbox_know().
 * @return false: there is none.
 */
bool r2_inbox_next(r2_inbox_t *inbox, uint32_t *number_p, uint32_t *sender_p);
/** Maps a mailbox. @return NULL: no memory now. */
r2_mailbox_t *r2_inbox_map(r2_inbox_t *inbox, uint32_t number);
static inline void r2_inbox_know(r2_inbox_t *inbox, uint32_t number)
{
    inbox->known[number] = true;
}

/**
 * Takes a mailbox in the inbox of another process, which does not know of it yet.
 * @param address what that process published, [bytes].
 * @return R2_OK, R2_ERR_UNSUPPORTED (it cannot be reached: another namespace or user),
 *         R2_ERR_NO_MEMORY (also: it has enough).
 */
r2_status_t r2_outbox_open(const uint8_t *address, size_t bytes, r2_outbox_t *out_p);
/** Its owner may find it. @param rank of this process. */
void r2_outbox_announce(r2_outbox_t *out, uint32_t rank);
/** Also for one that was not opened. */
void r2_outbox_close(r2_outbox_t *out);

/** True, once, if who reads is asleep and has to be woken. After a record was committed. */
static inline bool r2_outbox_sleeps(const r2_outbox_t *out)
{
    /* with that of r2_inbox_sleep(): one of both sees what the other has written */
    atomic_thread_fence(memory_order_seq_cst);
    return 0 != atomic_load_explicit(&out->head->sleeps, memory_order_relaxed) &&
           0 != atomic_exchange_explicit(&out->head->sleeps, 0, memory_order_relaxed);
}

/** The owner is about to sleep: to be called before it looks for the last time. */
static inline void r2_inbox_sleep(r2_inbox_t *inbox)
{
    inbox->sleeps = true;
    atomic_store_explicit(&inbox->head->sleeps, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
}

/** It does not sleep any more. */
static inline void r2_inbox_wake(r2_inbox_t *inbox)
{
    if (inbox->sleeps) {
        inbox->sleeps = false;
        atomic_store_explicit(&inbox->head->sleeps, 0, memory_order_relaxed);
    }
}

#endif
