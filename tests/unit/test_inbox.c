/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * Inboxes: they end, there may be no memory for one, and a sender may die.
 */
#include "r2_config.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "local/inbox.h"

/* An inbox has so many mailboxes, and no more memory than they may have together: who comes later
 * takes the lane. */
static void an_inbox_ends(void **state)
{
    static r2_outbox_t outs[R2_INBOX_MOST + 1];
    uint8_t address[R2_INBOX_ADDRESS_BYTES];
    r2_inbox_t *inbox;
    struct stat file;

    (void) state;
    assert_int_equal(r2_inbox_create(&inbox), R2_OK);
    r2_inbox_address(inbox, address);
    for (uint32_t i = 0; i < R2_INBOX_MOST; ++i) {
        assert_int_equal(r2_outbox_open(address, sizeof(address), &outs[i]), R2_OK);
    }
    assert_int_equal(r2_outbox_open(address, sizeof(address), &outs[R2_INBOX_MOST]),
                     R2_ERR_NO_MEMORY);
    assert_int_equal(fstat(inbox->fd, &file), 0);
    assert_true(512 * file.st_blocks < 3 << 19); /* 1.5 MiB */
    for (uint32_t i = 0; i < R2_INBOX_MOST; ++i) {
        assert_int_equal(outs[i].ring.lines, r2_inbox_lines(i));
        memset(outs[i].ring.box, (int) i, r2_mailbox_bytes(outs[i].ring.lines));
    }
    for (uint32_t i = 0; i < R2_INBOX_MOST; ++i) { /* each has its own memory */
        assert_int_equal(outs[i].ring.box->consumed, 0x01010101u * i);
        r2_outbox_close(&outs[i]);
    }
    r2_outbox_close(&outs[R2_INBOX_MOST]);
    r2_inbox_destroy(inbox);
}

/* Without memory for one there is no inbox, and no harm. */
static void no_memory_is_said(void **state)
{
    struct rlimit before, least;
    r2_inbox_t *inbox = NULL;

    (void) state;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    least = before;
    least.rlim_cur = 4096;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &least), 0);
    assert_int_equal(r2_inbox_create(&inbox), R2_ERR_SYSTEM);
    assert_null(inbox);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
}

/* A process that dies in the middle of a record: what was whole is there, the rest never was. A
 * third one finds a mailbox of its own. */
static void who_dies_leaves_what_was_whole(void **state)
{
    uint8_t address[R2_INBOX_ADDRESS_BYTES];
    r2_mailbox_in_t in = {.lines = R2_INBOX_LINES_LARGE};
    uint32_t number, sender, bytes;
    const void *record;
    r2_inbox_t *inbox;
    r2_outbox_t out;
    pid_t child;
    int ended;

    (void) state;
    assert_int_equal(r2_inbox_create(&inbox), R2_OK);
    r2_inbox_address(inbox, address);
    child = fork();
    assert_true(0 <= child);
    if (0 == child) {
        if (R2_OK != r2_outbox_open(address, sizeof(address), &out)) {
            _exit(1);
        }
        r2_outbox_announce(&out, 5);
        memcpy(r2_mailbox_reserve(&out.ring, 6), "whole", 6);
        r2_mailbox_commit(&out.ring);
        memset(r2_mailbox_reserve(&out.ring, 1000), 0xff, 1000);
        (void) raise(SIGKILL);
    }
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFSIGNALED(ended) && SIGKILL == WTERMSIG(ended));
    assert_true(r2_inbox_changed(inbox) && r2_inbox_next(inbox, &number, &sender));
    assert_int_equal(sender, 5);
    in.box = r2_inbox_map(inbox, number);
    r2_inbox_know(inbox, number);
    assert_int_equal(r2_mailbox_peek(&in, &record, &bytes), R2_OK);
    assert_int_equal(bytes, 6);
    assert_string_equal(record, "whole");
    r2_mailbox_release(&in);
    assert_true(r2_mailbox_is_empty(&in));
    assert_false(r2_inbox_next(inbox, &number, &sender));
    assert_int_equal(r2_outbox_open(address, sizeof(address), &out), R2_OK);
    assert_true(out.number > number);
    r2_outbox_close(&out);
    r2_inbox_destroy(inbox);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_inbox_ends),
        cmocka_unit_test(no_memory_is_said),
        cmocka_unit_test(who_dies_leaves_what_was_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
