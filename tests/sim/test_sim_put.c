/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The r2 authors
 *
 * The simulator's puts: when they land, and that a late one into memory given back is reported.
 */
#include "r2_config.h"

#include "transport_world.h"

#define BYTES 30000u

static uint8_t memory[BYTES];

/** Two nodes over reliable connections; 1 has granted its memory to 0. */
static r2_tp_ep_t *start(test_world_t *world, uint32_t keep_ppm, r2_tp_ep_t **back_p,
                         test_window_t *window_p)
{
    r2_sim_config_t config = test_two_hosts(7);
    r2_tp_ep_t *ep;

    config.keep_ppm = keep_ppm;
    memset(memory, 0, sizeof(memory));
    test_world_init_over(world, config, "rail0", "rc_verbs");
    ep = test_connect(world, 0, 1);
    *back_p = test_connect(world, 1, 0);
    test_grant(world, 1, memory, sizeof(memory), window_p);
    return ep;
}

static bool has_landed(uint32_t number)
{
    for (size_t i = 0; i < BYTES; ++i) {
        if (memory[i] != (uint8_t) (number + i)) {
            return false;
        }
    }
    return true;
}

/** The process does nothing, and has the data; the header waits for it, without data. */
static void puts_land_by_themselves(void **state)
{
    test_world_t world;
    test_window_t window;
    r2_tp_ep_t *ep, *back;

    (void) state;
    ep = start(&world, 0, &back, &window);
    world.nodes[1].frozen = true;
    assert_int_equal(R2_OK, test_put(&world, 0, ep, 0, BYTES, &window));
    test_run(&world, forever);
    assert_true(has_landed(0));
    assert_int_equal(0, world.nodes[1].received);
    world.nodes[1].frozen = false;
    test_run(&world, forever);
    assert_int_equal(1, world.nodes[1].received);
    assert_int_equal(0, world.nodes[1].bytes);
    assert_null(r2_sim_failure(world.sim));
    world.nodes[1].tp.ops->ungrant(world.nodes[1].worker, window.grant);
    test_world_fini(&world);
}

/** Only connections that are reliable have puts. */
static void others_grant_nothing(void **state)
{
    static const char *const others[] = {NULL, "ud_verbs"};
    test_world_t world;
    uint8_t key[R2_TP_KEY_MAX];
    size_t bytes;
    void *grant;

    (void) state;
    for (size_t i = 0; i < r2_array_count(others); ++i) {
        test_world_init_over(&world, test_two_hosts(1), "rail0", others[i]);
        assert_int_equal(R2_ERR_UNSUPPORTED,
                         world.nodes[0].tp.ops->grant(world.nodes[0].worker, memory, BYTES, NULL,
                                                      key, &bytes, &grant));
        test_world_fini(&world);
    }
}

/**
 * A path breaks with a put under way, the sender closes its endpoint, and the path is repaired.
 * @param closes the receiver closes its end, too, before it gives the memory back.
 * @return what the simulator says of it.
 */
static bool is_reported(bool closes, bool gives_back)
{
    test_world_t world;
    test_window_t window;
    r2_tp_ep_t *ep, *back;
    const r2_sim_stats_t *stats;
    bool reported;

    ep = start(&world, 1000000, &back, &window);
    stats = r2_sim_stats(world.sim);
    assert_int_equal(R2_OK, test_put(&world, 0, ep, 0, BYTES, &window));
    r2_sim_set_pass(world.sim, 0, 0, false, true);
    test_run(&world, test_in_ms(&world, 5));
    world.nodes[0].tp.ops->ep_close(ep);
    if (closes) {
        world.nodes[1].tp.ops->ep_close(back);
    }
    if (gives_back) {
        world.nodes[1].tp.ops->ungrant(world.nodes[1].worker, window.grant);
    }
    r2_sim_set_pass(world.sim, 0, 0, true, true);
    test_run(&world, forever);
    assert_int_equal(stats->puts_refused, closes);
    assert_int_equal(stats->puts_late, !closes && !gives_back);
    assert_int_equal(has_landed(0), !closes && !gives_back);
    reported = NULL != r2_sim_failure(world.sim) &&
               NULL != strstr(r2_sim_failure(world.sim), "into memory given back");
    test_world_fini(&world);
    return reported;
}

static void late_puts_are_reported(void **state)
{
    (void) state;
    assert_false(is_reported(false, false)); /* it lands, where it may */
    assert_true(is_reported(false, true));
    assert_false(is_reported(true, false));
    assert_false(is_reported(true, true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(puts_land_by_themselves),
        cmocka_unit_test(others_grant_nothing),
        cmocka_unit_test(late_puts_are_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
