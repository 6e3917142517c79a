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

#include "support/program.h"
#include "support/seed.h"
#include "unit/run/text_program.h"

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
    pl_plan *plan = text_plan(text, team);
    reference *r = reference_create(plan->graph);
    memset(memory, 0xFF, sizeof memory);
    if (pl_program_create(plan, memory, sizeof memory, &program, &err) != PL_OK) fail_msg("%s", err.text);
    text_fill(seed, r, program, "x", COUNT), text_fill(seed, r, program, "z", COUNT);
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
    text_each_level(run_and_compare);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nodes_are_those_of_the_interpreter)};
    seed = test_seed_said(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
