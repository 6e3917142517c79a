/* Mixed precision on random small models.
 *   what it costs   loss and gradients of the compiled program in bf16 and f16 against the interpreter's of the f32
 *                   graph, in double: the loss within 1 %; a gradient within the bound for the roundings of n nodes
 *                   (plimsoll/verify.h: 4·√n·u, with relu 4·√(√n·u)) of its norm plus half the largest norm of all
 *                   (what cancels in a norm over few numbers), by the L2 norm; the same bits with 1, 2 and 3 threads
 *   what it means   interpreted exactly, the f16 program with its scaled loss makes the same three updates as the f32
 *                   one, clipped or not
 *   loss scale      an overflow leaves the bits of weights and moments and halves the scale, good steps double it
 *   what it leaves  recompute, fusing, in-place, layer-major order and feed-forward layers in chunks change no bit, as
 *                   in f32
 * The first two and the text with chunks in every other case.
 * Graph and plan survive print, parse, print. `property_rewrite test_precision SEED` repeats one case. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ir/op.h"
#include "reference/tiny.h"
#include "support/program.h"

enum { CASES = 8, STEPS = 3 };
static const pl_dtype narrow[] = {PL_DTYPE_BF16, PL_DTYPE_F16};
static uint64_t only_seed;

static uint64_t first_seed(void) { return only_seed ? only_seed : 1; }
static uint64_t last_seed(void) { return only_seed ? only_seed : CASES; }

static int64_t chunk_of(uint64_t seed) { return seed % 2 ? 0 : (int64_t)(seed % 5) + 1; } /* 0: whole */

static bool is_gradient(const pl_graph *g, pl_id id)
{
    return strncmp(g->value[id].name, "grad.", 5) == 0 && pl_value_root(g, id) == id;
}

/* ---- what it costs ---- */

static double norm_of(const double *x, uint64_t elems)
{
    double sum = 0;
    for (uint64_t e = 0; e < elems; e++) sum += x[e] * x[e];
    return sqrt(sum);
}

static double largest_norm(reference *r, const pl_graph *g)
{
    double largest = 0;
    for (size_t i = 0; i < g->value_count; i++)
        if (is_gradient(g, (pl_id)i))
            largest = fmax(largest, norm_of(reference_address(r, (pl_id)i), reference_elems(r, (pl_id)i)));
    return largest;
}

static tiny_run run_once(const tiny *t, pl_team team, float loss_scale)
{
    tiny_run run = tiny_run_begin(t, team);
    float *scale = pl_program_find(run.program, "input.loss_scale");
    assert_true((scale != NULL) == (t->precision == PL_DTYPE_F16));
    if (scale) *scale = loss_scale;
    tiny_run_weights(t, &run);
    tiny_run_step(t, &run, "train", 1);
    return run;
}

static double bound_of(const tiny *t, const pl_graph *g)
{
    double nodes = 0, unit = t->precision == PL_DTYPE_BF16 ? 0x1p-8 : 0x1p-11;
    for (size_t i = 0; i < g->node_count; i++)
        nodes += !g->node[i].dead && g->value[g->node[i].out[0]].dtype == t->precision;
    double rounding = sqrt(nodes) * unit;
    return 4 * (t->config.model.activation == PL_ACTIVATION_RELU ? sqrt(rounding) : rounding);
}

static void compare_gradients(const tiny *t, tiny_run *run, reference *exact, const pl_graph *of_exact,
                              double loss_scale)
{
    const pl_graph *g = run->plan->graph;
    double largest = largest_norm(exact, of_exact), share = bound_of(t, g);
    for (size_t i = 0; i < g->value_count; i++) {
        if (!is_gradient(g, (pl_id)i)) continue;
        const float *got = pl_program_address(run->program, (pl_id)i);
        pl_id same = pl_graph_find_value(of_exact, g->value[i].name);
        const double *want = reference_address(exact, same);
        uint64_t elems = reference_elems(exact, same);
        double error = 0, norm = norm_of(want, elems);
        for (uint64_t e = 0; e < elems; e++) error += (got[e] / loss_scale - want[e]) * (got[e] / loss_scale - want[e]);
        if (sqrt(error) <= share * (norm + 0.5 * largest)) continue;
        tiny_print(t);
        fail_msg("%s in %s (%s): off by %.3g of %.3g, the largest has %.3g", g->value[i].name,
                 pl_dtype_name(t->precision), pl_isa_name(run->plan->team.isa), sqrt(error), norm, largest);
    }
}

static void compare_loss(const tiny *t, tiny_run *run, reference *exact)
{
    double got = *(double *)pl_program_find(run->program, "train.loss"), want = *reference_find(exact, "train.loss");
    if (fabs(got - want) <= 0.01 * fabs(want)) return;
    tiny_print(t);
    fail_msg("loss %.9g in %s (%s), exactly %.9g", got, pl_dtype_name(t->precision), pl_isa_name(run->plan->team.isa),
             want);
}

static void compare_bits(const tiny *t, tiny_run *a, tiny_run *b)
{
    const pl_graph *g = a->plan->graph;
    for (size_t i = 0; i < g->value_count; i++)
        if (is_gradient(g, (pl_id)i) &&
            memcmp(pl_program_address(a->program, (pl_id)i), pl_program_address(b->program, (pl_id)i),
                   pl_value_bytes(g, (pl_id)i)) != 0) {
            tiny_print(t);
            fail_msg("%s has other bits with %d threads", g->value[i].name, b->plan->team.threads);
        }
}

static void check_costs(tiny *t, pl_isa isa, reference *exact, const pl_graph *of_exact)
{
    tiny_run one = run_once(t, (pl_team){1, isa}, 1024);
    compare_loss(t, &one, exact);
    compare_gradients(t, &one, exact, of_exact, t->precision == PL_DTYPE_F16 ? 1024 : 1);
    for (int threads = 2; threads <= 3; threads++) {
        tiny_run more = run_once(t, (pl_team){threads, isa}, 1024);
        compare_bits(t, &one, &more);
        tiny_run_end(&more);
    }
    tiny_run_end(&one);
}

static void gradients_are_near(void **state)
{
    (void)state;
    static tiny t;
    for (uint64_t seed = first_seed(); seed <= last_seed(); seed++) {
        tiny_random(&t, seed);
        t.update = false;
        t.keep_gradients = true;
        pl_graph *g = tiny_compiled(&t);
        reference *exact = reference_create(g);
        tiny_reference_weights(&t, exact);
        tiny_reference_step(&t, exact, "train", 1);
        for (int i = 0; i < 2; i++)
            for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++) {
                t.precision = narrow[i];
                t.feed_forward_rows = chunk_of(seed);
                check_costs(&t, isa, exact, g);
            }
        reference_destroy(exact);
        pl_graph_destroy(g);
    }
}

/* ---- what it means ---- */

static void compare_weights(const tiny *t, reference *a, const pl_graph *of_a, reference *b, const pl_graph *of_b)
{
    for (size_t i = 0; i < of_a->value_count; i++) {
        if (of_a->value[i].role != PL_ROLE_WEIGHT || of_a->value[i].program != PL_NONE ||
            pl_value_root(of_a, (pl_id)i) != i)
            continue;
        pl_id other = pl_graph_find_value(of_b, of_a->value[i].name);
        for (uint64_t e = 0; e < reference_elems(a, (pl_id)i); e++) {
            double got = reference_address(a, (pl_id)i)[e], want = reference_address(b, other)[e];
            if (fabs(got - want) <= 1e-9 * (1 + fabs(want))) continue;
            tiny_print(t);
            fail_msg("%s[%llu] is %.15g with a scaled loss, %.15g without", of_a->value[i].name, (unsigned long long)e,
                     got, want);
        }
    }
}

static void scaled_updates_are_the_updates(void **state)
{
    (void)state;
    static tiny t;
    for (uint64_t seed = first_seed(); seed <= last_seed(); seed++) {
        tiny_random(&t, seed);
        t.update = true;
        pl_graph *g[2];
        reference *r[2];
        for (int i = 0; i < 2; i++) {
            t.precision = i ? PL_DTYPE_F32 : PL_DTYPE_F16;
            t.feed_forward_rows = i ? 0 : chunk_of(seed);
            g[i] = tiny_compiled(&t);
            r[i] = reference_create(g[i]);
            tiny_reference_weights(&t, r[i]);
            for (uint64_t step = 1; step <= STEPS; step++) tiny_reference_step(&t, r[i], "train", step);
        }
        assert_true(*reference_find(r[0], "loss_scale") == 65536);
        assert_true(*reference_find(r[0], "loss_scale.good_steps") == STEPS);
        compare_weights(&t, r[0], g[0], r[1], g[1]);
        for (int i = 0; i < 2; i++) reference_destroy(r[i]), pl_graph_destroy(g[i]);
    }
}

/* ---- the loss scale ---- */

/* Weights, moments and averages, one after the other. */
static unsigned char *copy_state(const tiny_run *run, uint64_t *bytes)
{
    const pl_graph *g = run->plan->graph;
    unsigned char *copy = malloc(run->plan->arena->bytes);
    assert_non_null(copy);
    *bytes = 0;
    for (size_t i = 0; i < g->value_count; i++) {
        bool kept = g->value[i].role == PL_ROLE_WEIGHT || g->value[i].role == PL_ROLE_OPTIMIZER ||
                    g->value[i].role == PL_ROLE_AVERAGE;
        if (!kept || g->value[i].program != PL_NONE || pl_value_root(g, (pl_id)i) != i) continue;
        memcpy(copy + *bytes, pl_program_address(run->program, (pl_id)i), pl_value_bytes(g, (pl_id)i));
        *bytes += pl_value_bytes(g, (pl_id)i);
    }
    return copy;
}

/* One step; did it change weights or moments? */
static bool step_changes(const tiny *t, tiny_run *run, uint64_t step)
{
    uint64_t bytes;
    unsigned char *before = copy_state(run, &bytes);
    tiny_run_step(t, run, "train", step);
    unsigned char *after = copy_state(run, &bytes);
    bool changed = memcmp(before, after, bytes) != 0;
    free(before);
    free(after);
    return changed;
}

/* ---- what it leaves ---- */

/* Weights and moments after two updates, at another level for each seed. */
static unsigned char *trained(const tiny *t, uint64_t *bytes)
{
    pl_isa isa = (pl_isa)(t->seed % ((uint64_t)pl_isa_of_machine() + 1));
    tiny_run run = tiny_run_begin(t, (pl_team){2, isa});
    tiny_run_weights(t, &run);
    for (uint64_t step = 1; step <= 2; step++) tiny_run_step(t, &run, "train", step);
    unsigned char *state = copy_state(&run, bytes);
    tiny_run_end(&run);
    return state;
}

static void compare_trained(const tiny *t, const unsigned char *want, uint64_t bytes, const char *what)
{
    uint64_t got_bytes;
    unsigned char *got = trained(t, &got_bytes);
    if (got_bytes != bytes || memcmp(got, want, bytes) != 0) {
        tiny_print(t);
        fail_msg("%s changes the bits in %s", what, pl_dtype_name(t->precision));
    }
    free(got);
}

/* With a tied table layer-major order adds in another order, in f32 too. */
static void other_choices_change_nothing(void **state)
{
    (void)state;
    static tiny t;
    for (uint64_t seed = first_seed(); seed <= last_seed(); seed++)
        for (int i = 0; i < 2; i++) {
            uint64_t bytes;
            tiny_random(&t, seed);
            t.update = true;
            t.config.model.tie_embeddings = false;
            t.config.train.ema_rate = seed % 2 ? 0.75 : 0;
            t.config.train.optimizer = seed % 3 ? PL_OPTIMIZER_ADAM_ATAN2 : PL_OPTIMIZER_ADAMW;
            t.precision = narrow[i];
            unsigned char *plain = trained(&t, &bytes);
            t.recompute = false;
            compare_trained(&t, plain, bytes, "storing all");
            t.in_place = false;
            compare_trained(&t, plain, bytes, "nothing in place");
            t.feed_forward_rows = tiny_roll(&t, 1, 25);
            compare_trained(&t, plain, bytes, "doing feed-forward layers in chunks and nothing in place");
            t.recompute = t.in_place = true;
            compare_trained(&t, plain, bytes, "doing feed-forward layers in chunks");
            t.feed_forward_rows = 0;
            t.fuse = false;
            compare_trained(&t, plain, bytes, "nothing fused");
            t.fuse = true;
            t.layer_major = t.layer_major_keep = 1;
            if (t.config.model.arch == PL_ARCH_GPT) compare_trained(&t, plain, bytes, "layer-major order");
            free(plain);
        }
}

static void expect_scale(const tiny_run *run, double scale, int good, int skipped)
{
    double got = *(float *)pl_program_find(run->program, "loss_scale");
    int32_t got_good = *(int32_t *)pl_program_find(run->program, "loss_scale.good_steps");
    int32_t got_skipped = *(int32_t *)pl_program_find(run->program, PL_SKIPPED_STEPS);
    if (got != scale || got_good != good || got_skipped != skipped)
        fail_msg("loss scale %g, %d good steps, %d skipped; %g, %d and %d were expected", got, got_good, got_skipped,
                 scale, good, skipped);
}

static void set_growth(tiny_run *run, int64_t steps)
{
    pl_error err = {0};
    pl_graph *g = run->plan->graph;
    for (size_t i = 0; i < g->node_count; i++)
        if (g->node[i].op == PL_OP_LOSS_SCALE) g->node[i].attr[0].i = steps;
    pl_program_destroy(run->program);
    assert_int_equal(pl_program_create(run->plan, run->memory, run->plan->arena->bytes, &run->program, &err), PL_OK);
}

static void overflow_is_skipped_and_good_steps_grow(void **state)
{
    (void)state;
    static tiny t;
    for (uint64_t seed = first_seed(); seed <= last_seed(); seed++) {
        tiny_random(&t, seed);
        t.update = true;
        t.precision = PL_DTYPE_F16;
        t.config.train.ema_rate = seed % 2 ? 0.75 : 0;
        t.config.train.optimizer = seed % 3 ? PL_OPTIMIZER_ADAM_ATAN2 : PL_OPTIMIZER_ADAMW;
        tiny_run run = tiny_run_begin(&t, (pl_team){1 + (int)(seed % 2), pl_isa_of_machine()});
        set_growth(&run, 2);
        tiny_run_weights(&t, &run);
        expect_scale(&run, 65536, 0, 0);
        float *scale = pl_program_find(run.program, "loss_scale");
        *scale = 256;
        assert_true(step_changes(&t, &run, 1));
        expect_scale(&run, 256, 1, 0);
        *scale = 0x1p100f; /* no gradient of f16 holds that */
        assert_false(step_changes(&t, &run, 2));
        expect_scale(&run, 0x1p99, 0, 1);
        assert_true(isfinite(*(double *)pl_program_find(run.program, "train.loss")));
        *scale = 256;
        assert_true(step_changes(&t, &run, 3));
        expect_scale(&run, 256, 1, 1);
        assert_true(step_changes(&t, &run, 4));
        expect_scale(&run, 512, 0, 1);
        tiny_run_end(&run);
    }
}

static float *address_of(const tiny_run *run, pl_id value)
{
    float *at = pl_program_find(run->program, run->plan->graph->value[value].name);
    assert_non_null(at);
    return at;
}

/* From zero moments the first update of AdamW, t = 1, is lr·g/(|g| + eps), and the moments say what g was. */
static void expect_first_update(const tiny_run *run, const pl_node *n, const float *before, double lr)
{
    const pl_graph *g = run->plan->graph;
    const float *w = address_of(run, pl_value_root(g, n->out[0])), *m = address_of(run, pl_value_root(g, n->out[1]));
    for (uint64_t e = 0; e < pl_shape_elems(&g->value[n->in[0]].shape); e++) {
        double gradient = m[e] / (1 - n->attr[0].f), decay = lr * n->attr[3].f * before[e];
        double want = before[e] - decay - lr * gradient / (fabs(gradient) + n->attr[2].f);
        if (!(fabs(w[e] - want) <= 1e-4 * lr))
            fail_msg("%s[%llu] is %g, %g was expected", g->value[n->in[0]].name, (unsigned long long)e, (double)w[e],
                     want);
    }
}

/* Step 4 is the first that updates. */
static void expect_fourth_is_first(const tiny *t, tiny_run *run)
{
    const pl_graph *g = run->plan->graph;
    float **before = calloc(g->node_count, sizeof *before);
    assert_int_equal(*(int32_t *)pl_program_find(run->program, PL_SKIPPED_STEPS), 3);
    for (size_t i = 0; i < g->node_count; i++) {
        if (g->node[i].op != PL_OP_ADAMW) continue;
        uint64_t bytes = pl_value_bytes(g, g->node[i].in[0]);
        before[i] = malloc(bytes);
        memcpy(before[i], address_of(run, pl_value_root(g, g->node[i].out[0])), bytes);
    }
    assert_true(step_changes(t, run, 4));
    for (size_t i = 0; i < g->node_count; i++) {
        if (before[i]) expect_first_update(run, &g->node[i], before[i], 0.01f);
        free(before[i]);
    }
    free(before);
}

/* The first number of each weight changes places with `with`'s. */
static void swap_firsts(const tiny_run *run, float *with)
{
    const pl_graph *g = run->plan->graph;
    for (size_t i = 0; i < g->node_count; i++) {
        if (g->node[i].op != PL_OP_ADAMW) continue;
        float *first = address_of(run, pl_value_root(g, g->node[i].out[0])), was = *first;
        *first = with[i], with[i] = was;
    }
}

/* Three steps whose gradient is not finite: it overflows in f16, or each weight has an infinite number (one alone may
 * be without effect, as a bias that tanh makes 1). */
static void skip_three(const tiny *t, tiny_run *run)
{
    const size_t nodes = run->plan->graph->node_count;
    float *scale = pl_program_find(run->program, "loss_scale"), *firsts = calloc(nodes, sizeof *firsts);
    for (size_t i = 0; i < nodes; i++) firsts[i] = INFINITY;
    scale ? (void)(*scale = 0x1p100f) : swap_firsts(run, firsts);
    for (uint64_t step = 1; step <= 3; step++) assert_false(step_changes(t, run, step));
    scale ? (void)(*scale = 256) : swap_firsts(run, firsts);
    free(firsts);
}

enum { OVERFLOWS, CLIPS, NEVER_SKIPS, WAYS };

/* What was skipped was no step: the moments' correction for their zeros does not count it (GradScaler's rule). So in
 * f16, where a norm is clipped, and where nothing is skipped any more, in a run that began in another precision. */
static void skipped_steps_leave_no_trace(void **state)
{
    (void)state;
    static tiny t;
    for (uint64_t seed = first_seed(); seed <= last_seed(); seed++)
        for (int way = 0; way < WAYS; way++) {
            tiny_random(&t, seed);
            t.update = true;
            t.precision = way == OVERFLOWS ? PL_DTYPE_F16 : PL_DTYPE_F32;
            if (way != OVERFLOWS) t.config.train.grad_clip = way == CLIPS ? 0.5 : 0;
            tiny_run run = tiny_run_begin(&t, (pl_team){1 + (int)(seed % 2), pl_isa_of_machine()});
            tiny_run_weights(&t, &run);
            if (way == NEVER_SKIPS)
                *(int32_t *)pl_program_find(run.program, PL_SKIPPED_STEPS) = 3;
            else
                skip_three(&t, &run);
            expect_fourth_is_first(&t, &run);
            tiny_run_end(&run);
        }
}

/* ---- text ---- */

static void plans_survive_print_and_parse(void **state)
{
    (void)state;
    static tiny t;
    for (uint64_t seed = first_seed(); seed <= last_seed(); seed++) {
        pl_error err = {0};
        pl_str text = {0}, again = {0};
        pl_plan *copy = NULL;
        tiny_random(&t, seed);
        t.update = seed % 2;
        t.precision = narrow[seed / 2 % 2];
        t.feed_forward_rows = chunk_of(seed);
        pl_plan *plan = tiny_plan(&t, (pl_team){2, PL_ISA_BASELINE});
        pl_plan_print(plan, &text);
        if (pl_plan_parse("plan", text.data, text.bytes, &copy, &err) != PL_OK) fail_msg("%s", err.text);
        pl_plan_print(copy, &again);
        assert_true(text.bytes == again.bytes && memcmp(text.data, again.data, text.bytes) == 0);
        pl_plan_destroy(copy);
        pl_plan_destroy(plan);
        pl_str_deinit(&text);
        pl_str_deinit(&again);
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    if (argc > 1) only_seed = strtoull(argv[1], NULL, 10);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_near),           cmocka_unit_test(scaled_updates_are_the_updates),
        cmocka_unit_test(other_choices_change_nothing), cmocka_unit_test(overflow_is_skipped_and_good_steps_grow),
        cmocka_unit_test(skipped_steps_leave_no_trace), cmocka_unit_test(plans_survive_print_and_parse)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
