/* Where zeroings and updates go: as far as they may and not a node farther, and nowhere where several micro-batches are
 * summed or the gradient is clipped as a whole. That the numbers stay is tests/property/rewrite/test_combinations.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "reference/tiny.h"
#include "rewrite/rewrite.h"
#include "support/program.h"

static tiny model(uint64_t trips, double clip)
{
    tiny t = {.seed = 1, .vocab = 7, .micro = 2, .trips = trips, .update = true, .recompute = true, .fuse = true};
    pl_config_default(&t.config);
    t.config.model.width = 8, t.config.model.heads = 2, t.config.model.layers = 3, t.config.model.sequence = 4;
    t.config.train.grad_clip = clip;
    return t;
}

static pl_graph *compiled(uint64_t trips, double clip, bool early)
{
    tiny t = model(trips, clip);
    t.update_early = early;
    return tiny_compiled(&t);
}

static bool touches(const pl_graph *g, const pl_node *n, pl_id root)
{
    for (int k = 0; k < PL_NODE_IN_MAX; k++)
        if (n->in[k] != PL_NONE && pl_value_root(g, n->in[k]) == root) return true;
    for (int k = 0; k < PL_NODE_OUT_MAX; k++)
        if (n->out[k] != PL_NONE && pl_value_root(g, n->out[k]) == root) return true;
    return false;
}

/* Between the node and its neighbour in question stand only nodes of its own kind: it could not go a place farther. */
static void check_zeroing(const pl_graph *g, size_t i)
{
    pl_id root = pl_value_root(g, g->node[i].out[0]);
    size_t next = i + 1;
    while (g->node[next].op == PL_OP_FILL) next++;
    assert_true(touches(g, &g->node[next], root));
}

static void check_update(const pl_graph *g, size_t i)
{
    const pl_node *n = &g->node[i];
    size_t last = i - 1;
    while (g->node[last].op == PL_OP_ADAMW || g->node[last].op == PL_OP_FILL) last--;
    if (g->node[last].op == PL_OP_ADD_TO && !touches(g, &g->node[last], pl_value_root(g, n->in[1]))) last--;
    assert_true(touches(g, &g->node[last], pl_value_root(g, n->in[0])) ||
                touches(g, &g->node[last], pl_value_root(g, n->in[1])));
}

static void a_gradient_lives_for_a_moment(void **state)
{
    (void)state;
    pl_graph *g = compiled(1, 0, true);
    pl_id train = pl_graph_find_program(g, "train");
    int zeroings = 0, updates = 0, sums = 0;
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        if (pl_region_program(g, n->region) != train) continue;
        if (n->op == PL_OP_FILL && g->value[n->out[0]].role == PL_ROLE_GRADIENT) zeroings++, check_zeroing(g, i);
        if (n->op == PL_OP_ADAMW) updates++, check_update(g, i);
        sums += n->op == PL_OP_ADD_TO; /* of the tied table's second reader */
    }
    assert_int_equal(sums, 1);
    assert_int_equal(zeroings, updates + sums);
    assert_true(updates > 20);
    pl_graph_destroy(g);
}

/* Zeroings, the region that is repeated, updates: as before. */
static void check_outside(uint64_t trips, double clip)
{
    pl_graph *g = compiled(trips, clip, true);
    pl_id train = pl_graph_find_program(g, "train");
    int stretch = 0;
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        if (pl_region_program(g, n->region) != train) continue;
        if (n->region != train) stretch = 1;
        bool zeroing = n->op == PL_OP_FILL && g->value[n->out[0]].role == PL_ROLE_GRADIENT;
        if (zeroing) assert_true(n->region == train && stretch == 0);
        if (n->phase == PL_PHASE_UPDATE && n->op != PL_OP_FILL) assert_true(n->region == train && stretch == 1);
    }
    pl_graph_destroy(g);
}

static void several_micro_batches_keep_their_order(void **state)
{
    (void)state;
    check_outside(2, 0);
    check_outside(3, 1.0);
}

static uint64_t arena_bytes(bool early, double clip)
{
    tiny t = model(1, clip);
    t.update_early = early, t.in_place = true;
    pl_plan *p = tiny_plan(&t, (pl_team){1, PL_ISA_REF});
    uint64_t bytes = p->arena->bytes;
    pl_plan_destroy(p);
    return bytes;
}

static void the_arena_is_smaller_unless_clipped(void **state)
{
    (void)state;
    assert_true(arena_bytes(true, 0) < arena_bytes(false, 0));
    assert_true(arena_bytes(true, 1) <= arena_bytes(false, 1));
}

static void what_forbids_it_is_said(void **state)
{
    (void)state;
    const char *why;
    pl_graph *plain = compiled(1, 0, false), *clipped = compiled(1, 1, false);
    pl_id train = pl_graph_find_program(plain, "train");
    assert_true(pl_rewrite_update_early_possible(plain, train, 1, &why));
    assert_null(why);
    assert_false(pl_rewrite_update_early_possible(plain, train, 2, &why));
    assert_non_null(strstr(why, "micro-batch"));
    assert_false(pl_rewrite_update_early_possible(clipped, train, 1, &why));
    assert_non_null(strstr(why, "grad_clip"));
    assert_false(pl_rewrite_update_early_possible(plain, pl_graph_find_program(plain, "evaluate"), 1, &why));
    assert_non_null(strstr(why, "updated"));
    pl_graph_destroy(plain);
    pl_graph_destroy(clipped);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gradient_lives_for_a_moment), cmocka_unit_test(several_micro_batches_keep_their_order),
        cmocka_unit_test(the_arena_is_smaller_unless_clipped), cmocka_unit_test(what_forbids_it_is_said)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
