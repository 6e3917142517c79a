/* Rotations as nodes of a program, in the storage of their input and out of it, forward and backward ones, against the
 * interpreter at every level. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/philox.h"
#include "plan/plan.h"
#include "reference/interpret.h"
#include "run/program.h"
#include "support/program.h"
#include "support/seed.h"

enum { COUNT = 3 * 70 * 36 };

static _Alignas(64) unsigned char memory[1 << 20];
static uint64_t seed;

static const char text[] = "graph 1\n"
                           "region 0 \"p\" batch=3\n"
                           "value 0 \"x\" f32 [3,70,36] input\n"
                           "value 1 \"z\" f32 [3,70,36] input\n"
                           "value 2 \"sum\" f32 [3,70,36] temporary program=0\n"
                           "value 3 \"turned\" f32 [3,70,36] temporary program=0 update=2\n"
                           "value 4 \"y\" f32 [3,70,36] output program=0\n"
                           "value 5 \"part\" f32 [3,70,36] output program=0\n"
                           "value 6 \"back\" f32 [3,70,36] output program=0\n"
                           "node 0 add region=0 in=0,1 out=2\n"
                           "node 1 rope region=0 in=2 out=3 heads=3 rotated=2 theta=10000 adjoint=0\n"
                           "node 2 add region=0 in=3,0 out=4\n"
                           "node 3 rope region=0 in=4 out=5 heads=2 rotated=1 theta=20 adjoint=0\n"
                           "node 4 rope region=0 in=3 out=6 heads=3 rotated=2 theta=10000 adjoint=1\n"
                           "end graph\n";

static pl_plan *plan_of(pl_team team)
{
    pl_error err = {0};
    pl_graph *g = NULL;
    pl_plan *p = NULL;
    pl_plan_options options = {.team = team, .process = pl_process_options_default()};
    if (pl_graph_parse("t", text, strlen(text), &g, &err) != PL_OK || pl_graph_check(g, PL_STAGE_BOUND, &err) != PL_OK)
        fail_msg("%s", err.text);
    if (pl_plan_create(g, &options, &p, &err) != PL_OK || pl_plan_check(p, &err) != PL_OK) fail_msg("%s", err.text);
    return p;
}

static void fill(reference *r, pl_program *program, const char *name)
{
    pl_philox p = pl_philox_init(seed, pl_stream_id(name));
    float *to = pl_program_find(program, name);
    pl_philox_normal_f32(&p, 0, 0, 0, COUNT, to);
    for (int i = 0; i < COUNT; i++) reference_find(r, name)[i] = to[i];
}

static void compare(reference *r, pl_program *program, const char *name)
{
    const double *want = reference_find(r, name);
    const float *have = pl_program_find(program, name);
    for (int i = 0; i < COUNT; i++)
        if (!(fabs(want[i] - (double)have[i]) < 8e-6))
            fail_msg("%s[%d]: %.9g, expected %.9g", name, i, (double)have[i], want[i]);
}

/* What was turned and turned back is what it was. */
static void check_back(pl_program *program)
{
    const float *x = pl_program_find(program, "x"), *z = pl_program_find(program, "z");
    const float *back = pl_program_find(program, "back");
    for (int i = 0; i < COUNT; i++) assert_true(fabs((double)x[i] + (double)z[i] - (double)back[i]) < 8e-6);
}

static void run_and_compare(pl_team team)
{
    pl_error err = {0};
    pl_program *program = NULL;
    pl_plan *plan = plan_of(team);
    reference *r = reference_create(plan->graph);
    memset(memory, 0xFF, sizeof memory);
    if (pl_program_create(plan, memory, sizeof memory, &program, &err) != PL_OK) fail_msg("%s", err.text);
    fill(r, program, "x"), fill(r, program, "z");
    reference_run(r, 0, NULL, NULL);
    assert_int_equal(pl_program_run(program, 0, &(pl_program_hooks){0}, &err), PL_OK);
    compare(r, program, "y"), compare(r, program, "part"), compare(r, program, "back");
    check_back(program);
    reference_destroy(r);
    pl_program_destroy(program);
    pl_plan_destroy(plan);
}

static void nodes_are_those_of_the_interpreter(void **state)
{
    (void)state;
    for (int isa = PL_ISA_REF; isa <= (int)pl_isa_of_machine(); isa++)
        run_and_compare((pl_team){1 + isa % 3, (pl_isa)isa});
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nodes_are_those_of_the_interpreter)};
    seed = test_seed_said(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
