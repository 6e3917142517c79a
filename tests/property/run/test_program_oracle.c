/* Compiled programs (plan, memory filled with not-a-number, kernels in f32) against the interpreter in double, on
 * random small models, for each instruction set of this machine and 1, 2 and 3 threads: loss, every gradient, and the
 * weights, moments and averages after three updates. The bits do not depend on the threads.
 * Generating with the key-value cache gives the logits that evaluation sees; a token changes nothing before its place.
 *
 * Bounds: the loss within 2e-6 relative (1e-5 after updates); a gradient within 3e-5 of its tensor's largest element
 * plus 2e-7 of the largest of all (what cancels in a norm over few numbers); a weight after three
 * updates within 2e-5 of the largest, its moments within 1e-4 and 1e-5 (an update moves it by 0.01 at most; epsilon
 * 1e-3 keeps the update smooth). `property_run test_program_oracle SEED` repeats one case. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "reference/tiny.h"
#include "support/load.h"
#include "support/program.h"

enum { CASES = 40, STEPS = 3, TEAMS_MAX = 3 * PL_ISA_COUNT };
static uint64_t only_seed;

static int teams_of_machine(pl_team *team)
{
    static const int threads[] = {1, 2, 3};
    int count = 0;
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++)
        for (int i = 0; i < 3; i++) team[count++] = (pl_team){threads[i], isa};
    return count;
}

static void compare(const tiny *t, const char *what, const char *name, const float *got, const double *want,
                    uint64_t elems, double relative, double absolute)
{
    double largest = 0;
    for (uint64_t e = 0; e < elems; e++) largest = fmax(largest, fabs(want[e]));
    for (uint64_t e = 0; e < elems; e++)
        if (!(fabs(got[e] - want[e]) <= relative * largest + absolute)) {
            tiny_print(t);
            fail_msg("%s %s[%llu] is %.9g, the interpreter has %.9g (largest %.3g)", what, name, (unsigned long long)e,
                     got[e], want[e], largest);
        }
}

/* The largest element of all roots of a role whose names begin so. */
static double largest_of(reference *r, const pl_graph *g, pl_role role, const char *prefix)
{
    double all = 0;
    for (size_t i = 0; i < g->value_count; i++)
        if (g->value[i].role == role && pl_value_root(g, (pl_id)i) == i &&
            strncmp(g->value[i].name, prefix, strlen(prefix)) == 0)
            for (uint64_t e = 0; e < reference_elems(r, (pl_id)i); e++)
                all = fmax(all, fabs(reference_address(r, (pl_id)i)[e]));
    return all;
}

static void compare_role(const tiny *t, tiny_run *run, reference *r, pl_role role, const char *prefix, double relative,
                         double of_all)
{
    const pl_graph *g = run->plan->graph;
    double all = largest_of(r, g, role, prefix);
    for (size_t i = 0; i < g->value_count; i++)
        if (g->value[i].role == role && pl_value_root(g, (pl_id)i) == i &&
            strncmp(g->value[i].name, prefix, strlen(prefix)) == 0)
            compare(t, pl_role_name(role), g->value[i].name, pl_program_address(run->program, (pl_id)i),
                    reference_address(r, (pl_id)i), reference_elems(r, (pl_id)i), relative, of_all * all);
}

static void compare_loss(const tiny *t, tiny_run *run, reference *r, const char *name, double relative)
{
    double got = *(double *)pl_program_find(run->program, name), want = *reference_find(r, name);
    if (fabs(got - want) <= relative * fabs(want)) return;
    tiny_print(t);
    fail_msg("%s is %.12g with %d threads, %s; the interpreter has %.12g", name, got, run->plan->team.threads,
             pl_isa_name(run->plan->team.isa), want);
}

/* The persistent values (weights, moments) lie at the bottom of the arena in the same way for every team. */
static void keep_bits(const tiny *t, const tiny_run *run, unsigned char **first)
{
    const pl_graph *g = run->plan->graph;
    uint64_t bytes = 0;
    for (size_t i = 0; i < g->value_count; i++)
        if (run->plan->value[i].bytes && g->value[i].program == PL_NONE &&
            run->plan->value[i].offset + run->plan->value[i].bytes > bytes)
            bytes = run->plan->value[i].offset + run->plan->value[i].bytes;
    if (*first && memcmp(*first, run->memory, bytes) != 0) {
        tiny_print(t);
        fail_msg("weights or moments differ in their bits with %d threads, %s", run->plan->team.threads,
                 pl_isa_name(run->plan->team.isa));
    }
    if (*first) return;
    *first = malloc(bytes);
    assert_non_null(*first);
    memcpy(*first, run->memory, bytes);
}

/* Gradients are checked in a run without update nodes: there they are still in their places at the end. */
static void check_gradients(tiny *t, pl_team team)
{
    t->update = false;
    tiny_run run = tiny_run_begin(t, team);
    reference *r = reference_create(run.plan->graph);
    tiny_run_weights(t, &run);
    tiny_reference_weights(t, r);
    tiny_run_step(t, &run, "train", 1);
    tiny_reference_step(t, r, "train", 1);
    compare_loss(t, &run, r, "train.loss", 2e-6);
    const pl_graph *g = run.plan->graph;
    double all = largest_of(r, g, PL_ROLE_GRADIENT, "");
    for (size_t i = 0; i < g->value_count; i++) { /* a gradient that dies before the end may have been overwritten */
        const pl_block *b = &run.plan->value[i];
        uint64_t first, last;
        pl_plan_program_span(g, pl_graph_find_program(g, "train"), &first, &last);
        if (g->value[i].role != PL_ROLE_GRADIENT || pl_value_root(g, (pl_id)i) != i || b->last < last) continue;
        compare(t, "gradient", g->value[i].name, pl_program_address(run.program, (pl_id)i),
                reference_address(r, (pl_id)i), reference_elems(r, (pl_id)i), 3e-5, 2e-7 * all);
    }
    reference_destroy(r);
    tiny_run_end(&run);
}

/* An angle has no epsilon: where a gradient is nothing but rounding, as behind a softmax of one, its sign decides, and
 * so does what the weight becomes. Then only the averages can be compared, with the weights that they are of. */
static void check_averages(const tiny *t, const tiny_run *run, float **before)
{
    const pl_graph *g = run->plan->graph;
    for (size_t i = 0; i < g->value_count; i++) {
        const pl_value *v = &g->value[i];
        if (v->role != PL_ROLE_AVERAGE || pl_value_root(g, (pl_id)i) != i) continue;
        const uint64_t elems = pl_shape_elems(&v->shape);
        const float *weight = pl_program_find(run->program, v->name + strlen("ema."));
        const float *average = pl_program_address(run->program, (pl_id)i);
        double *want = malloc((elems + 1) * sizeof *want);
        assert_true(weight && want);
        for (uint64_t e = 0; before[i] && e < elems; e++)
            want[e] = t->config.train.ema_rate * before[i][e] + (1 - t->config.train.ema_rate) * weight[e];
        if (before[i]) compare(t, "average", v->name, average, want, elems, 1e-6, 0);
        before[i] = realloc(before[i], (elems + 1) * sizeof **before);
        assert_non_null(before[i]);
        memcpy(before[i], average, elems * sizeof *average);
        free(want);
    }
}

static void check_angle(tiny *t, pl_team team, unsigned char **first)
{
    t->update = true;
    tiny_run run = tiny_run_begin(t, team);
    const size_t values = run.plan->graph->value_count;
    float **before = calloc(values, sizeof *before);
    assert_non_null(before);
    tiny_run_weights(t, &run);
    for (uint64_t step = 1; step <= STEPS; step++) {
        tiny_run_step(t, &run, "train", step);
        check_averages(t, &run, before);
    }
    for (size_t i = 0; i < values; i++) free(before[i]);
    free(before);
    keep_bits(t, &run, first);
    tiny_run_end(&run);
}

static void check_updates(tiny *t, pl_team team, unsigned char **first)
{
    t->update = true;
    tiny_run run = tiny_run_begin(t, team);
    reference *r = reference_create(run.plan->graph);
    tiny_run_weights(t, &run);
    tiny_reference_weights(t, r);
    for (uint64_t step = 1; step <= STEPS; step++) {
        tiny_run_step(t, &run, "train", step);
        tiny_reference_step(t, r, "train", step);
        compare_loss(t, &run, r, "train.loss", 1e-5);
    }
    compare_role(t, &run, r, PL_ROLE_WEIGHT, "", 1e-6, 2e-5);
    compare_role(t, &run, r, PL_ROLE_OPTIMIZER, "m.", 1e-4, 1e-5);
    compare_role(t, &run, r, PL_ROLE_OPTIMIZER, "v.", 1e-4, 1e-5);
    compare_role(t, &run, r, PL_ROLE_AVERAGE, "ema.", 1e-6, 2e-5);
    tiny_run_step(t, &run, "evaluate", STEPS + 1);
    tiny_reference_step(t, r, "evaluate", STEPS + 1);
    compare_loss(t, &run, r, "evaluate.loss", 1e-5);
    keep_bits(t, &run, first);
    reference_destroy(r);
    tiny_run_end(&run);
}

static void programs_agree_with_the_interpreter(void **state)
{
    (void)state;
    static tiny t;
    pl_team team[TEAMS_MAX];
    int teams = teams_of_machine(team);
    for (uint64_t seed = only_seed ? only_seed : 1; seed <= (only_seed ? only_seed : CASES); seed++) {
        tiny_random(&t, seed);
        t.frozen = seed % 4 == 0 ? 40 : 0;
        t.config.train.ema_rate = seed % 3 == 0 ? 0.75 : 0;
        t.config.train.optimizer = seed % 5 < 2 ? PL_OPTIMIZER_ADAM_ATAN2 : PL_OPTIMIZER_ADAMW;
        unsigned char *first = NULL;
        for (int i = 0; i < teams; i++) {
            if (team[i].threads == 1) free(first), first = NULL; /* another instruction set */
            if (team[i].threads == 1) check_gradients(&t, team[i]);
            (t.config.train.optimizer == PL_OPTIMIZER_ADAMW ? check_updates : check_angle)(&t, team[i], &first);
        }
        free(first);
    }
}

/* ---- generating and evaluating are the same function ---- */

typedef struct one_target {
    const tiny *t;
    int64_t place;
    int32_t target, changed; /* changed: the token at place + 1 is another one */
} one_target;

static pl_status load_one(void *context, const pl_trips *trips, const pl_load_call *call, pl_error *err)
{
    (void)err;
    const one_target *o = context;
    for (int64_t i = 0; i < load_count(call); i++) {
        load_tokens(call)[i] = tiny_token(o->t, 9, 0, i);
        if (i > o->place && o->changed) load_tokens(call)[i] = (int32_t)((load_tokens(call)[i] + 1 + i) % o->t->vocab);
        load_targets(call)[i] = pl_trips_last(trips) == 0 && i == o->place ? o->target : -1;
    }
    return PL_OK;
}

static double evaluate_one(const tiny *t, tiny_run *run, int64_t place, int32_t target, int changed)
{
    pl_error err = {0};
    one_target one = {t, place, target, changed};
    pl_program_hooks hooks = {.load = load_one, .context = &one};
    assert_int_equal(pl_program_run(run->program, pl_graph_find_program(run->plan->graph, "evaluate"), &hooks, &err),
                     PL_OK);
    return *(double *)pl_program_find(run->program, "evaluate.loss");
}

/* The window of an mlp holds −1 where there is no token yet; a gpt is fed one token and its place. */
static void generate_one(const tiny *t, tiny_run *run, int64_t place, float *logits)
{
    pl_error err = {0};
    pl_program_hooks none = {0};
    int32_t *tokens = pl_program_find(run->program, "generate.tokens");
    int64_t n = t->config.model.arch == PL_ARCH_GPT ? 1 : t->config.model.window;
    for (int64_t i = 0; i < n; i++) tokens[i] = place - n + 1 + i >= 0 ? tiny_token(t, 9, 0, place - n + 1 + i) : -1;
    *(int64_t *)pl_program_find(run->program, "input.position") = place;
    assert_int_equal(pl_program_run(run->program, pl_graph_find_program(run->plan->graph, "generate"), &none, &err),
                     PL_OK);
    memcpy(logits, pl_program_find(run->program, "generate.logits"), (size_t)t->vocab * sizeof *logits);
}

static double loss_from(const float *logits, int64_t vocab, int64_t target)
{
    double sum = 0;
    for (int64_t v = 0; v < vocab; v++) sum += exp((double)logits[v]);
    return log(sum) - logits[target];
}

static void check_places(const tiny *t, tiny_run *run)
{
    float logits[32][32];
    for (int64_t place = 0; place < t->config.model.sequence; place++) generate_one(t, run, place, logits[place]);
    for (int64_t place = 0; place < t->config.model.sequence; place++)
        for (int32_t v = 0; v < t->vocab; v++) {
            double want = evaluate_one(t, run, place, v, 0), got = loss_from(logits[place], t->vocab, v);
            if (!(fabs(want - got) <= 1e-5 * (1 + fabs(want)))) {
                tiny_print(t);
                fail_msg("token %d at place %lld: loss %.9g from generate's logits, %.9g from evaluate", v,
                         (long long)place, got, want);
            }
            assert_true(evaluate_one(t, run, place, v, 1) == want); /* later tokens change not a bit */
        }
}

static void generating_is_evaluating_and_causal(void **state)
{
    (void)state;
    static tiny t;
    pl_team team[TEAMS_MAX];
    int teams = teams_of_machine(team);
    for (uint64_t seed = only_seed ? only_seed : 1; seed <= (only_seed ? only_seed : CASES); seed++) {
        tiny_random(&t, seed);
        t.micro = (int64_t)(seed % 2) + 1;
        tiny_run run = tiny_run_begin(&t, team[seed % (uint64_t)teams]);
        tiny_run_weights(&t, &run);
        check_places(&t, &run);
        tiny_run_end(&run);
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    if (argc > 1) only_seed = strtoull(argv[1], NULL, 10);
    const struct CMUnitTest tests[] = {cmocka_unit_test(programs_agree_with_the_interpreter),
                                       cmocka_unit_test(generating_is_evaluating_and_causal)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
