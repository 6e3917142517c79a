/* Any decision gives the same bits. Random small models (gpt and mlp, with and without dropout, both norms, all
 * activations), compiled with and without fusing and in place, under
 *   random decisions: any node that may run again, before any node behind it, up to twice as many as there are;
 *   the planner's: every point of the frontier, also of the graph with feed-forward layers in chunks and in
 *   layer-major order, where a decision is made for many regions;
 *   the two that follow from a rule.
 * Compared with storing all: the loss, all weights and moments after two updates, bit for bit. The graph is legal after
 * every pass and the plan passes its judge (tiny.c). Peaks of real plans fall along a frontier: the last one is the
 * least but for 2 %, and seldom does one rise. `property_fit test_recompute SEED`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fit/recompute.h"
#include "reference/tiny.h"
#include "support/program.h"

enum { CASES = 10, FORM_CASES = 4, RANDOM_DECISIONS = 6, TRIES = 400 };
static uint64_t only_seed;

typedef struct outcome {
    double loss;
    unsigned char *state; /* weights and moments */
    uint64_t bytes, arena_bytes;
} outcome;

static outcome run(const tiny *t, pl_team team)
{
    outcome o = {0};
    tiny_run r = tiny_run_begin(t, team);
    const pl_graph *g = r.plan->graph;
    tiny_run_weights(t, &r);
    for (uint64_t step = 1; step <= 2; step++) tiny_run_step(t, &r, "train", step);
    o.loss = *(double *)pl_program_find(r.program, "train.loss");
    o.arena_bytes = r.plan->arena->bytes;
    for (size_t i = 0; i < g->value_count; i++) {
        bool state = g->value[i].role == PL_ROLE_WEIGHT || g->value[i].role == PL_ROLE_OPTIMIZER;
        if (!state || pl_value_root(g, (pl_id)i) != i) continue;
        uint64_t bytes = pl_value_bytes(g, (pl_id)i);
        o.state = realloc(o.state, o.bytes + bytes);
        assert_non_null(o.state);
        memcpy(o.state + o.bytes, pl_program_address(r.program, (pl_id)i), bytes);
        o.bytes += bytes;
    }
    tiny_run_end(&r);
    return o;
}

static void print_decision(const pl_recompute_decision *d)
{
    for (size_t i = 0; d && i < d->count; i++) fprintf(stderr, "%u before %u, ", d->again[i].node, d->again[i].before);
    fprintf(stderr, "\n");
}

static uint64_t check(tiny *t, pl_team team, const outcome *want, const pl_recompute_decision *d, const char *what)
{
    t->decision = d;
    outcome got = run(t, team);
    t->decision = NULL;
    if (got.loss != want->loss || got.bytes != want->bytes || memcmp(got.state, want->state, got.bytes) != 0) {
        tiny_print(t);
        print_decision(d);
        fail_msg("%s: loss %.17g where storing all gives %.17g, or weights differ", what, got.loss, want->loss);
    }
    free(got.state);
    return got.arena_bytes;
}

static int by_place(const void *a, const void *b)
{
    pl_id x = ((const pl_again *)a)->before, y = ((const pl_again *)b)->before;
    return x < y ? -1 : x > y;
}

static void draw(tiny *t, const pl_graph *g, const bool *may, pl_recompute_decision *d)
{
    pl_error err = {0};
    int64_t wanted = tiny_roll(t, 1, 2 * (int64_t)g->node_count / 5);
    for (int i = 0; i < TRIES && (int64_t)d->count < wanted; i++) {
        pl_id node = (pl_id)tiny_roll(t, 0, (int64_t)g->node_count - 2);
        pl_id before = (pl_id)tiny_roll(t, node + 1, (int64_t)g->node_count - 1);
        if (!may[node] || g->node[before].region != g->node[node].region) continue;
        assert_int_equal(pl_recompute_decision_add(d, node, before, &err), PL_OK);
    }
    if (d->count > 1) qsort(d->again, d->count, sizeof *d->again, by_place);
}

static void check_random(tiny *t, pl_team team, const outcome *want, const pl_graph *g)
{
    pl_error err = {0};
    bool *may = calloc(g->node_count + 1, sizeof *may);
    assert_non_null(may);
    assert_int_equal(pl_recompute_find_repeatable(g, may, &err), PL_OK);
    for (int i = 0; i < RANDOM_DECISIONS; i++) {
        pl_recompute_decision d = {0};
        draw(t, g, may, &d);
        check(t, team, want, &d, "a random decision");
        pl_recompute_decision_deinit(&d);
    }
    free(may);
}

static void check_rules(tiny *t, pl_team team, const outcome *want, const pl_graph *g)
{
    pl_error err = {0};
    pl_id train = pl_graph_find_program(g, "train");
    pl_recompute_decision cheap = {0}, full = {0};
    assert_int_equal(pl_recompute_decide_cheap(g, train, &cheap, &err), PL_OK);
    assert_int_equal(pl_recompute_decide_full(g, train, &full, &err), PL_OK);
    check(t, team, want, &cheap, "what is cheap");
    check(t, team, want, &full, "block by block");
    pl_recompute_decision_deinit(&cheap);
    pl_recompute_decision_deinit(&full);
}

static pl_recompute_frontier *make_frontier(const tiny *t, const pl_graph *g)
{
    pl_error err = {0};
    pl_recompute_frontier *f = NULL;
    pl_fit_options o = {.batch = t->micro * (int64_t)t->trips};
    assert_int_equal(pl_recompute_frontier_create(g, &o, t->micro, PL_RECOMPUTE_BUDGETS_MAX, &f, &err), PL_OK);
    return f;
}

typedef struct tally {
    size_t points, rises;
} tally;

static void check_frontier(tiny *t, pl_team team, const outcome *want, const pl_graph *g, tally *all)
{
    pl_recompute_frontier *f = make_frontier(t, g);
    const pl_recompute_point *point, *before = NULL;
    size_t count = pl_recompute_frontier_count(f);
    assert_true(pl_recompute_frontier_point(f, 0)->added_seconds == 0);
    uint64_t arena = UINT64_MAX, least = UINT64_MAX;
    for (size_t i = 0; i < count; i++, before = point) {
        point = pl_recompute_frontier_point(f, i);
        if (before) assert_true(point->peak_bytes < before->peak_bytes && point->added_seconds > before->added_seconds);
        uint64_t now = check(t, team, want, point->decision, "a point of the frontier");
        all->rises += now > arena;
        all->points++;
        arena = now;
        if (arena < least) least = arena;
    }
    if (arena > least + least / 50) {
        tiny_print(t);
        fail_msg("the last point needs %llu bytes, another one %llu", (unsigned long long)arena,
                 (unsigned long long)least);
    }
    pl_recompute_frontier_destroy(f);
}

/* Chunks, layer-major order, or both: storing all there gives the bits of the plain graph, and so does every point. */
static void check_forms(tiny *t, pl_team team, const outcome *want, tally *all)
{
    for (int form = 1; form < 4; form++) {
        t->feed_forward_rows = form & 1 ? tiny_roll(t, 1, 25) : 0;
        t->layer_major = form & 2 ? tiny_roll(t, 1, 3) : 0;
        t->layer_major_keep = tiny_roll(t, 0, 2);
        pl_graph *g = tiny_differentiated(t);
        check(t, team, want, NULL, "storing all");
        check_random(t, team, want, g);
        check_frontier(t, team, want, g, all);
        pl_graph_destroy(g);
    }
    t->feed_forward_rows = t->layer_major = 0;
}

static pl_team team_of(uint64_t seed)
{
    return (pl_team){.threads = 1 + (int)(seed % 2), .isa = seed % 3 ? pl_isa_of_machine() : PL_ISA_REF};
}

/* As fused, for chunks are. */
static void decisions_go_with_all_forms(void **state)
{
    (void)state;
    static tiny t;
    tally all = {0};
    for (uint64_t seed = only_seed ? only_seed : 1; seed <= (only_seed ? only_seed : FORM_CASES); seed++) {
        tiny_random(&t, seed);
        t.config.model.layers = tiny_roll(&t, 2, 5);
        t.config.train.grad_clip = 0;
        t.update = t.fuse = true;
        t.recompute = false;
        t.in_place = seed % 5 != 0;
        outcome want = run(&t, team_of(seed));
        check_forms(&t, team_of(seed), &want, &all);
        free(want.state);
    }
    printf("%zu points of frontiers of other forms, %zu with a higher peak than the one before\n", all.points,
           all.rises);
    assert_true(all.rises * 5 <= all.points);
}

static void any_decision_gives_the_same_bits(void **state)
{
    (void)state;
    static tiny t;
    tally all = {0};
    for (uint64_t seed = only_seed ? only_seed : 1; seed <= (only_seed ? only_seed : CASES); seed++) {
        tiny_random(&t, seed);
        t.config.model.layers = tiny_roll(&t, 1, 4);
        t.update = true;
        t.recompute = false;
        t.fuse = seed % 4 != 0, t.in_place = seed % 5 != 0;
        outcome want = run(&t, team_of(seed));
        pl_graph *g = tiny_differentiated(&t);
        check_random(&t, team_of(seed), &want, g);
        check_rules(&t, team_of(seed), &want, g);
        check_frontier(&t, team_of(seed), &want, g, &all);
        pl_graph_destroy(g);
        free(want.state);
    }
    printf("%zu points of frontiers, %zu with a higher peak than the one before\n", all.points, all.rises);
    assert_true(all.rises * 5 <= all.points);
}

/* A decision that is not for this graph, or not in order, is refused before anything is changed. */
static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    static tiny t;
    pl_error err = {0};
    tiny_random(&t, 3);
    pl_graph *g = tiny_differentiated(&t);
    size_t nodes = g->node_count, values = g->value_count;
    bool *may = calloc(nodes + 1, sizeof *may);
    assert_non_null(may);
    assert_int_equal(pl_recompute_find_repeatable(g, may, &err), PL_OK);
    pl_id fine = 0, never = 0;
    pl_id micro = PL_NONE;
    for (pl_id i = 0; i < nodes; i++)
        if (g->node[i].op == PL_OP_LOAD && micro == PL_NONE) micro = g->node[i].region, never = i;
    while (!may[fine] || g->node[fine].region != micro) fine++;
    assert_false(may[never]);
    pl_again wrong[][2] = {{{fine, fine}, {fine, fine + 1}},
                           {{never, never + 1}, {fine, fine + 1}},
                           {{fine, fine + 2}, {fine, fine + 1}},
                           {{fine, (pl_id)nodes}, {fine, (pl_id)nodes}},
                           {{fine, fine + 1}, {fine, (pl_id)nodes - 1}}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        pl_recompute_decision d = {.again = wrong[i], .count = 2};
        assert_int_equal(pl_rewrite_recompute(g, &d, &err), PL_E_INTERNAL);
        assert_non_null(strstr(err.text, "recompute: node"));
        assert_true(g->node_count == nodes && g->value_count == values);
        pl_error_clear(&err);
    }
    free(may);
    pl_graph_destroy(g);
}

PL_TEST_PROGRAM(argc, argv)
{
    if (argc > 1) only_seed = strtoull(argv[1], NULL, 10);
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_decision_gives_the_same_bits),
                                       cmocka_unit_test(decisions_go_with_all_forms),
                                       cmocka_unit_test(what_cannot_be_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
