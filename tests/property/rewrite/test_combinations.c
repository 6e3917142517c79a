/* The mathematics does not depend on what was chosen to fit (invariant 6). For random small models, compiled programs:
 *   recompute, in-place and early updates, in all combinations: the same bits (same operators on the same numbers);
 *   fuse: the same bits or nearly (its kernels may round an activation differently): within 2e-5 of the largest
 *   element;
 *   feed-forward layers in chunks of any number of rows, as fused, in f32, bf16 and f16: the same bits;
 *   layer-major, with groups of any size, any inputs kept, a short last micro-batch, and micro-batch 1, 2, 4 and the
 *   whole batch (all of them: property/run): the same bits.
 * In some models some weights are frozen. Compared: the loss, and all weights and moments after two updates. The graph
 * is legal between all passes (tiny.c), and the interpreter finds the same loss to 1e-12 for every combination.
 * `property_rewrite test_combinations SEED`. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/narrow.h"
#include "reference/tiny.h"
#include "support/program.h"

enum { CASES = 10, BATCH = 8, TILINGS = 6, TILING_CASES = 24, CHUNKINGS = 4, CHUNKING_CASES = 24 };
static const pl_dtype precisions[] = {PL_DTYPE_F32, PL_DTYPE_BF16, PL_DTYPE_F16};
static uint64_t only_seed;

typedef struct outcome {
    double loss, exact_loss;
    float *weight; /* weights and moments one after the other */
    uint64_t elems;
} outcome;

static void add_tensor(outcome *o, const void *x, pl_dtype dtype, uint64_t elems)
{
    o->weight = realloc(o->weight, (o->elems + elems) * sizeof *o->weight);
    assert_non_null(o->weight);
    for (uint64_t i = 0; i < elems; i++)
        o->weight[o->elems + i] =
            dtype == PL_DTYPE_BF16 ? pl_f32_of_bf16(((const uint16_t *)x)[i]) : ((const float *)x)[i];
    o->elems += elems;
}

static outcome run(const tiny *t, pl_team team)
{
    outcome o = {0};
    tiny_run r = tiny_run_begin(t, team);
    const pl_graph *g = r.plan->graph;
    tiny_run_weights(t, &r);
    for (uint64_t step = 1; step <= 2; step++) tiny_run_step(t, &r, "train", step);
    o.loss = *(double *)pl_program_find(r.program, "train.loss");
    for (size_t i = 0; i < g->value_count; i++)
        if ((g->value[i].role == PL_ROLE_WEIGHT || g->value[i].role == PL_ROLE_OPTIMIZER) &&
            g->value[i].program == PL_NONE && pl_value_root(g, (pl_id)i) == i)
            add_tensor(&o, pl_program_address(r.program, (pl_id)i), g->value[i].dtype,
                       pl_shape_elems(&g->value[i].shape));
    reference *exact = reference_create(g);
    tiny_reference_weights(t, exact);
    for (uint64_t step = 1; step <= 2; step++) tiny_reference_step(t, exact, "train", step);
    o.exact_loss = *reference_find(exact, "train.loss");
    reference_destroy(exact);
    tiny_run_end(&r);
    return o;
}

/* bound 0: the same bits */
static void compare(const tiny *t, const outcome *a, const outcome *b, double bound)
{
    double largest = 0, worst = 0;
    assert_int_equal(a->elems, b->elems);
    for (uint64_t i = 0; i < a->elems; i++) {
        largest = fmax(largest, fabs(a->weight[i]));
        worst = fmax(worst, isfinite(b->weight[i]) ? fabs((double)a->weight[i] - b->weight[i]) : INFINITY);
    }
    bool same = bound == 0 ? a->loss == b->loss && memcmp(a->weight, b->weight, a->elems * sizeof(float)) == 0
                           : worst <= bound * largest && fabs(a->loss - b->loss) <= 2e-5 * fabs(a->loss);
    same &= fabs(a->exact_loss - b->exact_loss) <= 1e-12 * fabs(a->exact_loss);
    if (same) return;
    tiny_print(t);
    fail_msg("loss %.12g and %.12g, exactly %.15g and %.15g; weights differ by %.3g of %.3g", a->loss, b->loss,
             a->exact_loss, b->exact_loss, worst, largest);
}

static pl_team team_of(uint64_t seed)
{
    pl_isa best = pl_isa_of_machine();
    return (pl_team){.threads = 1 + (int)(seed % 2),
                     .isa = seed % 3 == 0   ? PL_ISA_REF
                            : seed % 3 == 1 ? best
                                            : PL_ISA_BASELINE};
}

static void check_rewrites(tiny *t, pl_team team)
{
    outcome plain[2];
    for (int combination = 0; combination < 16; combination++) {
        t->fuse = combination & 8, t->update_early = combination & 4;
        t->recompute = combination & 2, t->in_place = combination & 1;
        outcome o = run(t, team);
        if (combination % 8 == 0)
            plain[combination / 8] = o;
        else {
            compare(t, &plain[combination / 8], &o, 0);
            free(o.weight);
        }
    }
    t->update_early = false;
    compare(t, &plain[0], &plain[1], 2e-5);
    free(plain[0].weight);
    free(plain[1].weight);
}

static void check_layer_major(tiny *t, pl_team team)
{
    t->config.train.grad_clip = 0;
    t->config.model.layers = tiny_roll(t, 1, 5);
    t->trips = (uint64_t)tiny_roll(t, 1, 4);
    t->missing = (uint64_t)tiny_roll(t, 0, t->micro - 1);
    t->fuse = tiny_roll(t, 0, 1);
    outcome plain = run(t, team);
    for (int draw = 0; draw < TILINGS; draw++) {
        t->layer_major = tiny_roll(t, 1, t->config.model.layers + 1);
        t->layer_major_keep = tiny_roll(t, 0, 3);
        t->recompute = tiny_roll(t, 0, 1), t->in_place = tiny_roll(t, 0, 1);
        outcome o = run(t, team);
        compare(t, &plain, &o, 0);
        free(o.weight);
    }
    free(plain.weight);
}

static int count_nodes(const tiny *t, pl_op op)
{
    int count = 0;
    pl_graph *g = tiny_compiled(t);
    for (size_t i = 0; i < g->node_count; i++) count += g->node[i].op == op;
    pl_graph_destroy(g);
    return count;
}

/* In every layer that has two linears, in training and evaluation, whichever weights are frozen; alone and with all
 * other rewrites. */
static void check_feed_forward(tiny *t, pl_team team)
{
    const pl_config_model *m = &t->config.model; /* a perceptron's dropout stands between linear and linear */
    int64_t layers = m->arch == PL_ARCH_GPT ? m->layers : m->layers / 2;
    int64_t trained = m->arch == PL_ARCH_MLP && m->dropout > 0 ? 0 : layers;
    t->fuse = t->recompute = t->in_place = true;
    outcome plain = run(t, team);
    for (int draw = 0; draw < CHUNKINGS; draw++) {
        t->feed_forward_rows = tiny_roll(t, 1, 25);
        t->recompute = tiny_roll(t, 0, 1), t->in_place = tiny_roll(t, 0, 1);
        t->layer_major = tiny_roll(t, 0, 2), t->layer_major_keep = tiny_roll(t, 0, 1);
        if (t->layer_major == 0) assert_int_equal(count_nodes(t, PL_OP_FEED_FORWARD), layers + trained);
        bool all = t->layer_major == 0 && t->frozen == 0;
        if (all) assert_int_equal(count_nodes(t, PL_OP_FEED_FORWARD_BWD), trained);
        outcome o = run(t, team);
        compare(t, &plain, &o, 0);
        free(o.weight);
    }
    free(plain.weight);
}

static void check_micro_batches(tiny *t, pl_team team)
{
    t->fuse = t->recompute = t->in_place = true;
    outcome whole = {0};
    for (int64_t micro = BATCH; micro >= 1; micro /= 2) {
        t->micro = micro;
        t->trips = BATCH / (uint64_t)micro;
        outcome o = run(t, team);
        if (micro == BATCH) {
            whole = o;
            continue;
        }
        compare(t, &whole, &o, 0);
        free(o.weight);
    }
    free(whole.weight);
}

static void rewrites_change_nothing(void **state)
{
    (void)state;
    static tiny t;
    for (uint64_t seed = only_seed ? only_seed : 1; seed <= (only_seed ? only_seed : CASES); seed++) {
        tiny_random(&t, seed);
        t.update = true;
        t.moments = seed % 2 ? PL_DTYPE_F32 : PL_DTYPE_BF16; /* rounded at random, but the same way in all */
        t.frozen = seed % 3 == 0 ? 40 : 0;
        check_rewrites(&t, team_of(seed));
    }
}

static void chunks_change_nothing(void **state)
{
    (void)state;
    static tiny t;
    for (uint64_t seed = only_seed ? only_seed : 1; seed <= (only_seed ? only_seed : CHUNKING_CASES); seed++) {
        tiny_random(&t, seed);
        t.update = true;
        t.config.train.grad_clip = 0;
        t.precision = precisions[seed / 3 % 3];
        t.frozen = seed % 4 < 2 ? 0 : seed % 4 == 2 ? 30 : 70;
        if (seed % 3 == 0) t.config.model.sequence = tiny_roll(&t, 9, 40); /* no dot products */
        check_feed_forward(&t, team_of(seed));
    }
}

static void micro_batches_change_nothing(void **state)
{
    (void)state;
    static tiny t;
    for (uint64_t seed = only_seed ? only_seed : 1; seed <= (only_seed ? only_seed : CASES); seed++) {
        tiny_random(&t, seed);
        t.update = true;
        t.frozen = seed % 4 == 0 ? 50 : 0;
        check_micro_batches(&t, team_of(seed));
    }
}

static void layer_major_changes_nothing(void **state)
{
    (void)state;
    static tiny t;
    for (uint64_t seed = only_seed ? only_seed : 1; seed <= (only_seed ? only_seed : TILING_CASES); seed++) {
        tiny_random(&t, seed);
        t.update = true;
        t.frozen = seed % 4 < 2 ? 0 : seed % 4 == 2 ? 30 : 80;
        check_layer_major(&t, team_of(seed));
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    if (argc > 1) only_seed = strtoull(argv[1], NULL, 10);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rewrites_change_nothing), cmocka_unit_test(chunks_change_nothing),
        cmocka_unit_test(micro_batches_change_nothing), cmocka_unit_test(layer_major_changes_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
