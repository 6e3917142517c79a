/* Noise, the next state and metrics as nodes of a program, several steps of it, against the interpreter at every level;
 * and what their shape rules refuse. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/philox.h"
#include "base/rollout.h"
#include "plan/plan.h"
#include "reference/interpret.h"
#include "run/program.h"
#include "support/program.h"
#include "support/seed.h"

enum { SAMPLES = 4, ELEMS = 10 * 9 * 18 };

static _Alignas(64) unsigned char memory[1 << 20];
static uint64_t seed;

/* Noise in the place of nothing (the state is read again), with a workspace or without. */
static const char text[] = "graph 1\n"
                           "region 0 \"p\" batch=4\n"
                           "region 1 \"steps\" in=0 trip=3\n"
                           "value 0 \"x\" f32 [4,10,9,18] state\n"
                           "value 1 \"previous\" f32 [4,10,9,18] state\n"
                           "value 2 \"parameters\" f32 [4,13] input\n"
                           "value 3 \"ids\" i64 [4,2] input\n"
                           "value 4 \"step\" i64 [1] input\n"
                           "value 5 \"y\" f32 [4,10,9,18] temporary program=0\n"
                           "value 6 \"x.1\" f32 [4,10,9,18] state update=0\n"
                           "value 7 \"previous.1\" f32 [4,10,9,18] state update=1\n"
                           "value 8 \"metrics\" f32 [4,5] output program=0\n"
                           "node 0 noise region=1 in=0,2,3,4 out=5 seed=3 stream=4 correlated=%d dropout=0\n"
                           "node 1 evolve region=1 in=0,5,2,1 out=6,7\n"
                           "node 2 field_metrics region=1 in=6,7 out=8\n"
                           "end graph\n";

static pl_graph *parse(const char *from)
{
    pl_error err = {0};
    pl_graph *g = NULL;
    if (pl_graph_parse("t", from, strlen(from), &g, &err) != PL_OK || pl_graph_check(g, PL_STAGE_BOUND, &err) != PL_OK)
        fail_msg("%s", err.text);
    return g;
}

enum { PLAIN, CORRELATED, DROPOUT, NOISES }; /* what the noise node does */

static pl_plan *plan_of(int noise, pl_team team)
{
    char with[sizeof text + 8];
    pl_error err = {0};
    pl_plan *p = NULL;
    pl_plan_options options = {.team = team, .process = pl_process_options_default()};
    snprintf(with, sizeof with, text, noise == CORRELATED);
    if (noise == DROPOUT) strstr(with, "dropout=0")[strlen("dropout=")] = '1';
    if (pl_plan_create(parse(with), &options, &p, &err) != PL_OK || pl_plan_check(p, &err) != PL_OK)
        fail_msg("%s", err.text);
    return p;
}

static float parameters[SAMPLES * PL_ROLLOUT_COLUMNS], start[SAMPLES * ELEMS];

/* A row of each kind of noise, schedule, policy and post-process. */
static void prepare(void)
{
    pl_philox p = pl_philox_init(seed, 0);
    pl_philox_normal_f32(&p, 0, 0, 0, SAMPLES * ELEMS, start);
    for (int s = 0; s < SAMPLES; s++) {
        float row[PL_ROLLOUT_COLUMNS] = {[PL_ROLLOUT_NOISE_KIND] = (float)s,
                                         [PL_ROLLOUT_NOISE_SCALE] = 0.3f,
                                         [PL_ROLLOUT_NOISE_SCHEDULE] = (float)(s % PL_NOISE_SCHEDULE_COUNT),
                                         [PL_ROLLOUT_NOISE_PERIOD] = 20,
                                         [PL_ROLLOUT_NOISE_STEPS] = 50,
                                         [PL_ROLLOUT_NOISE_CORRELATION] = s == 1 ? 0 : 0.1f,
                                         [PL_ROLLOUT_POLICY] = (float)((s + 1) % PL_POLICY_COUNT),
                                         [PL_ROLLOUT_DT] = 0.25f,
                                         [PL_ROLLOUT_ALPHA] = 0.75f,
                                         [PL_ROLLOUT_POST_PROCESS] = (float)((s + 2) % PL_POST_COUNT),
                                         [PL_ROLLOUT_CLAMP_LOW] = s == 2 ? 0.1f : -INFINITY,
                                         [PL_ROLLOUT_CLAMP_HIGH] = s == 3 ? 1.5f : INFINITY,
                                         [PL_ROLLOUT_DROPOUT_RATE] = 0.2f * (float)s};
        memcpy(parameters + s * PL_ROLLOUT_COLUMNS, row, sizeof row);
    }
}

static int64_t id_of(int i) { return i == 3 ? (int64_t)UINT32_MAX : 11 * i; }

static void fill_reference(reference *r)
{
    for (int i = 0; i < SAMPLES * ELEMS; i++) reference_find(r, "x")[i] = start[i];
    for (int i = 0; i < SAMPLES * PL_ROLLOUT_COLUMNS; i++) reference_find(r, "parameters")[i] = parameters[i];
    for (int i = 0; i < SAMPLES * PL_ROLLOUT_IDS; i++) reference_find(r, "ids")[i] = (double)id_of(i);
    *reference_find(r, "step") = 17;
}

static void fill_program(pl_program *p)
{
    memcpy(pl_program_find(p, "x"), start, sizeof start);
    memcpy(pl_program_find(p, "parameters"), parameters, sizeof parameters);
    for (int i = 0; i < SAMPLES * PL_ROLLOUT_IDS; i++) ((int64_t *)pl_program_find(p, "ids"))[i] = id_of(i);
    *(int64_t *)pl_program_find(p, "step") = 17;
}

static void compare(const char *name, const double *want, const float *have, int count)
{
    for (int i = 0; i < count; i++)
        if (!(fabs(want[i] - (double)have[i]) < 2e-5 * (1 + fabs(want[i]))))
            fail_msg("%s[%d]: %.9g, expected %.9g", name, i, (double)have[i], want[i]);
}

static void run_and_compare(int noise, pl_team team)
{
    pl_error err = {0};
    pl_program *program = NULL;
    pl_plan *plan = plan_of(noise, team);
    reference *r = reference_create(plan->graph);
    memset(memory, 0xFF, sizeof memory);
    if (pl_program_create(plan, memory, sizeof memory, &program, &err) != PL_OK) fail_msg("%s", err.text);
    fill_reference(r);
    fill_program(program);
    reference_run(r, 0, NULL, NULL);
    assert_int_equal(pl_program_run(program, 0, &(pl_program_hooks){0}, &err), PL_OK);
    compare("x", reference_find(r, "x"), pl_program_find(program, "x"), SAMPLES * ELEMS);
    compare("previous", reference_find(r, "previous"), pl_program_find(program, "previous"), SAMPLES * ELEMS);
    compare("metrics", reference_find(r, "metrics"), pl_program_find(program, "metrics"), SAMPLES * PL_FIELD_METRICS);
    reference_destroy(r);
    pl_program_destroy(program);
    pl_plan_destroy(plan);
}

static void steps_are_those_of_the_interpreter(void **state)
{
    (void)state;
    prepare();
    for (int isa = PL_ISA_REF; isa <= (int)pl_isa_of_machine(); isa++)
        for (int noise = 0; noise < NOISES; noise++) run_and_compare(noise, (pl_team){1 + isa % 3, (pl_isa)isa});
}

/* The text with `was` replaced, once, is refused with these words. */
static void check_refused(const char *was, const char *becomes, const char *words)
{
    char with[2048];
    pl_error err = {0};
    pl_graph *g = NULL;
    const char *at = strstr(text, was);
    assert_non_null(at);
    int before = (int)(at - text);
    snprintf(with, sizeof with, "%.*s%s%s", before, text, becomes, at + strlen(was));
    char *attribute = strstr(with, "=%d");
    memcpy(attribute, "=1 ", 3);
    if (pl_graph_parse("t", with, strlen(with), &g, &err) == PL_OK && pl_graph_check(g, PL_STAGE_BOUND, &err) == PL_OK)
        fail_msg("taken: %s", becomes);
    if (!strstr(err.text, words)) fail_msg("\"%s\" lacks \"%s\"", err.text, words);
    pl_graph_destroy(g);
}

static void wrong_shapes_are_refused(void **state)
{
    (void)state;
    check_refused("f32 [4,13]", "f32 [4,12]",
                  "input parameters is f32 [4,12], expected a row of parameters for each sample");
    check_refused("f32 [4,13]", "bf16 [4,13]", "input parameters is bf16 [4,13], expected f32");
    check_refused("i64 [4,2]", "i64 [3,2]", "input ids is i64 [3,2], expected the numbers of operator and realisation");
    check_refused("i64 [1]", "i64 [4]", "input step is i64 [4], expected i64 [1]");
    check_refused("in=0,5,2,1 out=6,7", "in=0,2,2,1 out=6,7", "input y is f32 [4,13], expected the shape of the state");
    check_refused("in=6,7 out=8", "in=2 out=8", "input x is f32 [4,13], expected f32 [samples, H, W, C]");
    check_refused("f32 [4,5]", "f32 [4,6]", "field_metrics");
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_those_of_the_interpreter),
        cmocka_unit_test(wrong_shapes_are_refused),
    };
    seed = test_seed_said(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
