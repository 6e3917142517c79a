/* Random small models in which random weights are frozen, compiled in every way, against the same model with all
 * weights trained: the loss and the gradients of the trained weights are the same to the last bit. (Where all weights
 * are frozen nothing is trained, so nothing is narrowed: the loss is that of f32.) A frozen weight has neither a
 * gradient nor moments and is the same after three updates. Nothing of the backward pass stands below the lowest
 * trained weight.
 * `property_grad test_frozen SEED` repeats one case. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "grad/differentiate.h"
#include "ir/properties.h"
#include "reference/tiny.h"
#include "support/program.h"

enum { CASES = 40, STEPS = 3 };
static const pl_dtype precisions[] = {PL_DTYPE_F32, PL_DTYPE_BF16, PL_DTYPE_F16};
static uint64_t only_seed;

static bool is_weight(const pl_graph *g, size_t i)
{
    return g->value[i].role == PL_ROLE_WEIGHT && g->value[i].program == PL_NONE && pl_value_root(g, (pl_id)i) == i;
}

static bool has(const pl_graph *g, const char *prefix, const char *weight)
{
    char name[300];
    snprintf(name, sizeof name, "%s%s", prefix, weight);
    return pl_graph_find_value(g, name) != PL_NONE;
}

static pl_team team_of(uint64_t seed)
{
    return (pl_team){.threads = 1 + (int)(seed % 2), .isa = seed % 3 == 0 ? PL_ISA_REF : pl_isa_of_machine()};
}

/* ---- the gradients of one step ---- */

typedef struct gradients {
    tiny_run run;
    double loss;
} gradients;

static gradients gradients_of(tiny *t, int frozen)
{
    t->frozen = frozen;
    gradients a = {.run = tiny_run_begin(t, team_of(t->seed))};
    tiny_run_weights(t, &a.run);
    if (pl_program_find(a.run.program, "input.loss_scale"))
        *(float *)pl_program_find(a.run.program, "input.loss_scale") = 64;
    tiny_run_step(t, &a.run, "train", 1);
    a.loss = *(double *)pl_program_find(a.run.program, "train.loss");
    return a;
}

static void compare_weight(const tiny *t, const gradients *whole, const gradients *some, const char *weight)
{
    char name[300];
    snprintf(name, sizeof name, "grad.%s", weight);
    const pl_graph *g = some->run.plan->graph;
    assert_int_equal(has(g, "grad.", weight), !tiny_is_frozen(t, weight));
    if (tiny_is_frozen(t, weight)) return;
    const void *a = pl_program_find(whole->run.program, name), *b = pl_program_find(some->run.program, name);
    if (memcmp(a, b, pl_value_bytes(g, pl_graph_find_value(g, name))) == 0) return;
    tiny_print(t);
    fail_msg("%s is another one when others are frozen", name);
}

static double loss_in_f32(const tiny *t)
{
    tiny wide = *t;
    wide.precision = PL_DTYPE_F32;
    gradients a = gradients_of(&wide, 0);
    tiny_run_end(&a.run);
    return a.loss;
}

static void check_gradients(tiny *t, int frozen)
{
    t->update = false;
    t->keep_gradients = true;
    gradients whole = gradients_of(t, 0), some = gradients_of(t, frozen);
    const pl_graph *g = some.run.plan->graph;
    double expected = pl_graph_find_trained(g) == PL_NONE ? loss_in_f32(t) : whole.loss;
    if (some.loss != expected) tiny_print(t);
    assert_true(some.loss == expected);
    for (size_t i = 0; i < g->value_count; i++)
        if (is_weight(g, i)) compare_weight(t, &whole, &some, g->value[i].name);
    tiny_run_end(&whole.run);
    tiny_run_end(&some.run);
    t->keep_gradients = false;
}

/* ---- three steps ---- */

static void *copy_weights(const tiny_run *run)
{
    const pl_graph *g = run->plan->graph;
    uint64_t bytes = 0, at = 0;
    for (size_t i = 0; i < g->value_count; i++) bytes += is_weight(g, i) ? pl_value_bytes(g, (pl_id)i) : 0;
    char *copy = malloc(bytes);
    assert_non_null(copy);
    for (size_t i = 0; i < g->value_count; i++) {
        if (!is_weight(g, i)) continue;
        memcpy(copy + at, pl_program_address(run->program, (pl_id)i), pl_value_bytes(g, (pl_id)i));
        at += pl_value_bytes(g, (pl_id)i);
    }
    return copy;
}

static void check_updates(tiny *t, int frozen)
{
    t->update = true;
    t->frozen = frozen;
    tiny_run run = tiny_run_begin(t, team_of(t->seed));
    const pl_graph *g = run.plan->graph;
    tiny_run_weights(t, &run);
    char *before = copy_weights(&run), *at = before;
    for (uint64_t step = 1; step <= STEPS; step++) tiny_run_step(t, &run, "train", step);
    for (size_t i = 0; i < g->value_count; i++) {
        const char *name = g->value[i].name;
        if (!is_weight(g, i)) continue;
        bool trained = !tiny_is_frozen(t, name);
        if (has(g, "m.", name) != trained || has(g, "v.", name) != trained) tiny_print(t);
        assert_int_equal(has(g, "m.", name), trained);
        assert_int_equal(has(g, "v.", name), trained);
        bool same = memcmp(at, pl_program_address(run.program, (pl_id)i), pl_value_bytes(g, (pl_id)i)) == 0;
        if (!same && !trained) fail_msg("seed %llu: %s has changed", (unsigned long long)t->seed, name);
        at += pl_value_bytes(g, (pl_id)i);
    }
    free(before);
    tiny_run_end(&run);
}

static void draw(tiny *t, uint64_t seed)
{
    tiny_random(t, seed);
    t->precision = precisions[seed % 3];
    t->recompute = tiny_roll(t, 0, 1), t->in_place = tiny_roll(t, 0, 1), t->fuse = tiny_roll(t, 0, 1);
    t->feed_forward_rows = tiny_roll(t, 0, 1) * tiny_roll(t, 1, 20);
}

static void frozen_weights_change_nothing_else(void **state)
{
    (void)state;
    static tiny t;
    for (uint64_t seed = only_seed ? only_seed : 1; seed <= (only_seed ? only_seed : CASES); seed++) {
        draw(&t, seed);
        int frozen = (int)tiny_roll(&t, 1, 100);
        check_gradients(&t, frozen);
        t.update_early = tiny_roll(&t, 0, 1);
        if (t.update_early) t.config.train.grad_clip = 0;
        t.layer_major = t.config.train.grad_clip > 0 || t.precision == PL_DTYPE_F16 ? 0 : tiny_roll(&t, 0, 2);
        check_updates(&t, frozen);
    }
}

/* ---- what is left out ---- */

static bool is_below(const char *scope, int64_t block)
{
    for (int64_t i = 0; i < block; i++) {
        char name[32];
        snprintf(name, sizeof name, "block.%d", (int)i);
        if (strncmp(scope, name, strlen(name)) == 0) return true;
    }
    return strncmp(scope, "embedding", sizeof "embedding" - 1) == 0;
}

/* All weights but those of the blocks from `first` on, and of the head. */
static void freeze_below(pl_graph *g, int64_t first)
{
    for (size_t i = 0; i < g->value_count; i++)
        g->value[i].frozen = g->value[i].role == PL_ROLE_WEIGHT && is_below(g->value[i].scope, first);
}

static void below_the_lowest_trained_weight_nothing_goes_back(void **state)
{
    (void)state;
    static tiny t;
    pl_error err = {0};
    for (int64_t first = 0; first <= 3; first++) {
        size_t below = 0, above = 0;
        tiny_random(&t, 7);
        t.config.model.arch = PL_ARCH_GPT;
        t.config.model.layers = 3;
        t.config.model.tie_embeddings = false;
        pl_graph *g = tiny_model(&t);
        freeze_below(g, first);
        assert_int_equal(pl_grad_differentiate(g, pl_graph_find_program(g, "train"), &err), PL_OK);
        tiny_check(g, PL_STAGE_GRAD);
        for (size_t i = 0; i < g->node_count; i++)
            if (g->node[i].phase == PL_PHASE_BACKWARD) ++*(is_below(g->node[i].scope, first) ? &below : &above);
        assert_true(above > 0);
        if (below) fail_msg("%zu nodes go back below block %d", below, (int)first);
        pl_graph_destroy(g);
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    if (argc > 1) only_seed = strtoull(argv[1], NULL, 10);
    const struct CMUnitTest tests[] = {cmocka_unit_test(frozen_weights_change_nothing_else),
                                       cmocka_unit_test(below_the_lowest_trained_weight_nothing_goes_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
