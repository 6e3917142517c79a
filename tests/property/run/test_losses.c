/* Five losses that add to one value, as a whole program: with every micro-batch, 1 to 3 threads, with and
 * without values in the place of others, in f32 and in 16 bits, the loss and the gradients of a batch have the same
 * bits, and in f32 they are the interpreter's. Some samples have no labels at all.
 * `property_run test_losses SEED` begins with that seed. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/philox.h"
#include "grad/differentiate.h"
#include "plan/plan.h"
#include "reference/interpret.h"
#include "rewrite/passes.h"
#include "run/program.h"
#include "support/load.h"
#include "support/program.h"
#include "support/seed.h"

enum { CASES = 4, BATCH = 6, T = 5, VOCAB = 7, GRADIENTS = 5 };

static const char text[] = "graph 1\n"
                           "region 0 \"train\"\n"
                           "region 1 \"micro\" in=0\n"
                           "value 0 \"scale\" f32 [1] input\n"
                           "value 1 \"halt_scale\" f32 [1] input\n"
                           "value 2 \"table\" f32 [7,9] weight\n"
                           "value 3 \"out\" f32 [7,9] weight\n"
                           "value 4 \"score\" f32 [1,9] weight\n"
                           "value 5 \"halt\" f32 [1,9] weight\n"
                           "value 6 \"sketch\" f32 [9,9] weight\n"
                           "value 7 \"tokens\" i32 [B,5] temporary program=0\n"
                           "value 8 \"targets\" i32 [B,5] temporary program=0\n"
                           "value 9 \"loss\" f64 [1] output program=0\n"
                           "value 10 \"x\" f32 [B,5,9] temporary program=0\n"
                           "value 11 \"logits\" f32 [B,5,7] temporary program=0\n"
                           "value 12 \"loss.1\" f64 [1] output program=0 update=9\n"
                           "value 13 \"right\" f32 [B,3] temporary program=0\n"
                           "value 14 \"all\" f32 [B,1] temporary program=0 view=13 offset=2 strides=3,1\n"
                           "value 15 \"e\" f32 [B,5,1] temporary program=0\n"
                           "value 16 \"pooled\" f32 [B,9] temporary program=0\n"
                           "value 17 \"q\" f32 [B,1] temporary program=0\n"
                           "value 18 \"loss.2\" f64 [1] output program=0 update=12\n"
                           "value 19 \"s\" f32 [B,5,9] temporary program=0\n"
                           "value 20 \"loss.3\" f64 [1] output program=0 update=18\n"
                           "value 21 \"loss.4\" f64 [1] output program=0 update=20\n"
                           "value 22 \"loss.5\" f64 [1] output program=0 update=21\n"
                           "node 0 fill region=0 out=9 value=0\n"
                           "node 1 load region=1 out=7,8\n"
                           "node 2 embedding region=1 in=7,2 out=10 window=1\n"
                           "node 3 linear region=1 in=10,3 out=11 act=none\n"
                           "node 4 cross_entropy region=1 in=11,8,0,9 out=12 kind=%d\n"
                           "node 5 count_right region=1 in=11,8 out=13\n"
                           "node 6 linear region=1 in=10,4 out=15 act=none\n"
                           "node 7 softmax_pool region=1 in=10,15 out=16\n"
                           "node 8 linear region=1 in=16,5 out=17 act=none\n"
                           "node 9 bce_with_logits region=1 in=17,14,1,12 out=18\n"
                           "node 10 linear region=1 in=10,6 out=19 act=none\n"
                           "node 11 cosine_loss region=1 in=10,19,0,18 out=20\n"
                           "node 12 norm_penalty region=1 in=19,1,20 out=21\n"
                           "node 13 squared_error region=1 in=19,10,0,21 out=22\n"
                           "end graph\n";

static const char *const gradients[GRADIENTS] = {"grad.table", "grad.out", "grad.score", "grad.halt", "grad.sketch"};

typedef struct problem {
    uint64_t seed;
    int64_t micro;
    pl_dtype precision;
    bool in_place;
} problem;

static double uniform(uint64_t seed, const char *name, uint64_t elem)
{
    uint32_t bits[4];
    pl_philox p = pl_philox_init(seed, pl_stream_id(name));
    pl_philox_block(&p, 0, elem, 0, bits);
    return (double)pl_uniform_f32(bits[0]);
}

static int32_t token(uint64_t seed, uint64_t sample, uint64_t t)
{
    return (int32_t)(VOCAB * uniform(seed, "tokens", sample * T + t));
}

/* A third of the samples has no label, of the others a quarter of the rows has none. */
static int32_t target(uint64_t seed, uint64_t sample, uint64_t t)
{
    if (uniform(seed, "labelled", sample) < 0.33 || uniform(seed, "rows", sample * T + t) < 0.25) return -100;
    return (int32_t)(VOCAB * uniform(seed, "targets", sample * T + t));
}

static pl_graph *compiled(const problem *p)
{
    char filled[sizeof text + 16];
    pl_error err = {0};
    pl_graph *g = NULL;
    pl_rewrites r = {.micro_batch = p->micro,
                     .trips = (uint64_t)(BATCH / p->micro),
                     .precision = p->precision,
                     .without = 1u << PL_PASS_OPTIMIZER_STATE | (p->in_place ? 0 : 1u << PL_PASS_IN_PLACE)};
    snprintf(filled, sizeof filled, text, (int)(p->seed % 2));
    if (pl_graph_parse("losses", filled, strlen(filled), &g, &err) != PL_OK ||
        pl_graph_check(g, PL_STAGE_MODEL, &err) != PL_OK || pl_grad_differentiate(g, 0, &err) != PL_OK)
        fail_msg("%s", err.text);
    for (int k = 0; k < GRADIENTS; k++) g->value[pl_graph_find_value(g, gradients[k])].role = PL_ROLE_OUTPUT;
    if (pl_rewrite_passes(g, &r, 0, PL_PASS_COUNT, &err) != PL_OK || pl_graph_check(g, PL_STAGE_BOUND, &err) != PL_OK)
        fail_msg("%s", err.text);
    return g;
}

/* ---- by kernels ---- */

typedef struct outcome {
    double loss;
    float gradient[GRADIENTS][9 * 9];
} outcome;

static pl_status load(void *context, const pl_trips *trips, const pl_load_call *call, pl_error *err)
{
    const problem *p = context;
    (void)err;
    for (uint64_t i = 0; i < (uint64_t)load_count(call); i++) {
        uint64_t sample = pl_trips_last(trips) * (uint64_t)p->micro + i / T;
        load_tokens(call)[i] = token(p->seed, sample, i % T);
        load_targets(call)[i] = target(p->seed, sample, i % T);
    }
    return PL_OK;
}

static float first_content(const problem *p, const pl_value *v, uint64_t elem)
{
    float u = (float)uniform(p->seed, v->name, elem);
    return v->role == PL_ROLE_INPUT ? 0.1f * u : 2 * u - 1;
}

static bool is_given(const pl_value *v)
{
    return v->program == PL_NONE && v->view_of == PL_NONE && v->update_of == PL_NONE && v->dtype == PL_DTYPE_F32;
}

static outcome run(problem *p, pl_team team)
{
    pl_error err = {0};
    pl_plan *plan = NULL;
    pl_program *program = NULL;
    outcome o = {0};
    pl_plan_options options = {.team = team, .process = pl_process_options_default()};
    if (pl_plan_create(compiled(p), &options, &plan, &err) != PL_OK || pl_plan_check(plan, &err) != PL_OK)
        fail_msg("%s", err.text);
    uint64_t bytes = plan->arena->bytes;
    void *memory = aligned_alloc(PL_PLAN_ALIGNMENT, (bytes / PL_PLAN_ALIGNMENT + 1) * PL_PLAN_ALIGNMENT);
    assert_non_null(memory);
    memset(memory, 0xff, bytes);
    if (pl_program_create(plan, memory, bytes, &program, &err) != PL_OK) fail_msg("%s", err.text);
    for (size_t i = 0; i < plan->graph->value_count; i++) {
        const pl_value *v = &plan->graph->value[i];
        for (uint64_t e = 0; is_given(v) && e < pl_shape_elems(&v->shape); e++)
            ((float *)pl_program_address(program, (pl_id)i))[e] = first_content(p, v, e);
    }
    if (p->precision == PL_DTYPE_F16) *(float *)pl_program_find(program, "input.loss_scale") = 64;
    pl_program_hooks hooks = {.load = load, .context = p};
    if (pl_program_run(program, 0, &hooks, &err) != PL_OK) fail_msg("%s", err.text);
    o.loss = *(double *)pl_program_find(program, "loss");
    for (int k = 0; k < GRADIENTS; k++) {
        pl_id id = pl_graph_find_value(plan->graph, gradients[k]);
        memcpy(o.gradient[k], pl_program_address(program, id),
               pl_shape_elems(&plan->graph->value[id].shape) * sizeof(float));
    }
    pl_program_destroy(program);
    pl_plan_destroy(plan);
    free(memory);
    return o;
}

/* ---- by the interpreter ---- */

static void load_reference(void *context, uint64_t trip, int64_t count, double *tokens, double *targets)
{
    const problem *p = context;
    for (uint64_t i = 0; i < (uint64_t)count; i++) {
        uint64_t sample = trip * (uint64_t)p->micro + i / T;
        tokens[i] = token(p->seed, sample, i % T), targets[i] = target(p->seed, sample, i % T);
    }
}

static void compare_with_interpreter(problem *p, const outcome *o)
{
    pl_graph *g = compiled(p);
    reference *r = reference_create(g);
    for (size_t i = 0; i < g->value_count; i++)
        for (uint64_t e = 0; is_given(&g->value[i]) && e < reference_elems(r, (pl_id)i); e++)
            reference_address(r, (pl_id)i)[e] = (double)first_content(p, &g->value[i], e);
    reference_run_named(r, "train", load_reference, p);
    double want = *reference_find(r, "loss");
    if (!(fabs(o->loss - want) <= 1e-5 * fabs(want)))
        fail_msg("seed %llu: the loss is %.9g, the interpreter has %.9g", (unsigned long long)p->seed, o->loss, want);
    for (int k = 0; k < GRADIENTS; k++) {
        pl_id id = pl_graph_find_value(g, gradients[k]);
        const double *d = reference_address(r, id);
        for (uint64_t e = 0; e < reference_elems(r, id); e++)
            if (!(fabs((double)o->gradient[k][e] - d[e]) <= 1e-4))
                fail_msg("seed %llu: %s[%llu] is %.9g, the interpreter has %.9g", (unsigned long long)p->seed,
                         gradients[k], (unsigned long long)e, (double)o->gradient[k][e], d[e]);
    }
    reference_destroy(r);
    pl_graph_destroy(g);
}

/* ---- the same bits ---- */

static void check(uint64_t seed, pl_dtype precision, pl_isa isa)
{
    problem whole = {seed, BATCH, precision, false};
    outcome first = run(&whole, (pl_team){1, isa});
    assert_true(isfinite(first.loss));
    if (precision == PL_DTYPE_F32) compare_with_interpreter(&whole, &first);
    for (int64_t micro = 1; micro <= BATCH; micro++)
        for (int in_place = 0; in_place < 2 && BATCH % micro == 0; in_place++) {
            problem p = {seed, micro, precision, in_place != 0};
            outcome o = run(&p, (pl_team){1 + (int)micro % 3, isa});
            if (memcmp(&o, &first, sizeof o) != 0)
                fail_msg("seed %llu: other bits at %s, %s, micro-batch %lld%s: the loss is %.17g, not %.17g",
                         (unsigned long long)seed, pl_isa_name(isa), pl_dtype_name(precision), (long long)micro,
                         in_place ? ", in place" : "", o.loss, first.loss);
        }
}

static uint64_t first_seed;

static void any_micro_batch_gives_the_same_bits(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + CASES; seed++)
        for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++)
            for (pl_dtype precision = PL_DTYPE_F32; precision <= PL_DTYPE_F16; precision++) check(seed, precision, isa);
}

PL_TEST_PROGRAM(argc, argv)
{
    first_seed = test_seed_said(argc, argv);
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_micro_batch_gives_the_same_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
