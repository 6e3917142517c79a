/* Transforms and products of modes as nodes of a program, forward and backward ones, against the interpreter at every
 * level; and what their shape rules refuse. */
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

static _Alignas(64) unsigned char memory[1 << 20];
static uint64_t seed;

static const char text[] = "graph 1\n"
                           "region 0 \"p\" batch=3\n"
                           "value 0 \"x\" f32 [3,10,9,5] input\n"
                           "value 1 \"r\" f32 [8,4,5,2,18] weight\n"
                           "value 2 \"z\" f32 [3,10,9,18] input\n"
                           "value 3 \"s\" f32 [3,8,4,2,5] output program=0\n"
                           "value 4 \"t\" f32 [3,8,4,2,18] output program=0\n"
                           "value 5 \"y\" f32 [3,10,9,18] output program=0\n"
                           "value 6 \"dt\" f32 [3,8,4,2,18] output program=0\n"
                           "value 7 \"ds\" f32 [3,8,4,2,5] output program=0\n"
                           "value 8 \"dr\" f32 [8,4,5,2,18] output program=0\n"
                           "value 9 \"dr.1\" f32 [8,4,5,2,18] output program=0 update=8\n"
                           "value 10 \"dx\" f32 [3,10,9,5] output program=0\n"
                           "node 0 rfft2 region=0 in=0 out=3 modes=4 adjoint=0\n"
                           "node 1 spectral_linear region=0 in=3,1 out=4\n"
                           "node 2 irfft2 region=0 in=4,2 out=5 add=1 adjoint=0\n"
                           "node 3 rfft2 region=0 in=5 out=6 modes=4 adjoint=1\n"
                           "node 4 fill region=0 out=8 value=0\n"
                           "node 5 spectral_linear_dw region=0 in=6,3,8 out=9\n"
                           "node 6 spectral_linear_dx region=0 in=6,1 out=7\n"
                           "node 7 irfft2 region=0 in=7,0 out=10 add=0 adjoint=1\n"
                           "end graph\n";

/* Each within so many roundings of the largest. */
static void compare(reference *r, pl_program *program, const char *name, int count)
{
    const double *want = reference_find(r, name);
    const float *have = pl_program_find(program, name);
    double largest = 0;
    for (int i = 0; i < count; i++) largest = fmax(largest, fabs(want[i]));
    for (int i = 0; i < count; i++)
        if (!(fabs(want[i] - (double)have[i]) < 5e-6 * largest))
            fail_msg("%s[%d]: %.9g, expected %.9g", name, i, (double)have[i], want[i]);
}

static void run_and_compare(pl_team team)
{
    pl_error err = {0};
    pl_program *program = NULL;
    pl_plan *plan = text_plan(text, team);
    reference *r = reference_create(plan->graph);
    memset(memory, 0xFF, sizeof memory);
    if (pl_program_create(plan, memory, sizeof memory, &program, &err) != PL_OK) fail_msg("%s", err.text);
    text_fill(seed, r, program, "x", 3 * 10 * 9 * 5), text_fill(seed, r, program, "z", 3 * 10 * 9 * 18),
        text_fill(seed, r, program, "r", 8 * 4 * 5 * 36);
    reference_run(r, 0, NULL, NULL);
    assert_int_equal(pl_program_run(program, 0, &(pl_program_hooks){0}, &err), PL_OK);
    compare(r, program, "s", 3 * 8 * 4 * 2 * 5), compare(r, program, "t", 3 * 8 * 4 * 2 * 18);
    compare(r, program, "y", 3 * 10 * 9 * 18), compare(r, program, "dt", 3 * 8 * 4 * 2 * 18);
    compare(r, program, "dr", 8 * 4 * 5 * 36), compare(r, program, "ds", 3 * 8 * 4 * 2 * 5);
    compare(r, program, "dx", 3 * 10 * 9 * 5);
    reference_destroy(r);
    pl_program_destroy(program);
    pl_plan_destroy(plan);
}

static void nodes_are_those_of_the_interpreter(void **state)
{
    (void)state;
    text_each_level(run_and_compare);
}

/* The text with `was` replaced, once, is refused with these words. */
static void check_refused(const char *was, const char *becomes, const char *words)
{
    char with[2048];
    pl_error err = {0};
    pl_graph *g = NULL;
    const char *at = strstr(text, was);
    assert_non_null(at);
    snprintf(with, sizeof with, "%.*s%s%s", (int)(at - text), text, becomes, at + strlen(was));
    if (pl_graph_parse("t", with, strlen(with), &g, &err) == PL_OK && pl_graph_check(g, PL_STAGE_BOUND, &err) == PL_OK)
        fail_msg("taken: %s", becomes);
    if (!strstr(err.text, words)) fail_msg("\"%s\" lacks \"%s\"", err.text, words);
    pl_graph_destroy(g);
}

static void wrong_shapes_are_refused(void **state)
{
    (void)state;
    check_refused("[3,10,9,5] input", "[3,7,9,5] input", "4 modes of an image of 7 x 9; at most 3 are there");
    check_refused("[3,10,9,5] input", "[3,10,5,5] input", "4 modes of an image of 10 x 5; at most 3 are there");
    check_refused("out=3 modes=4", "out=3 modes=0", "0 modes of an image");
    check_refused("in=0 out=3", "in=1 out=3", "expected [batch, height, width, channels]");
    check_refused("f32 [8,4,5,2,18] weight", "f32 [8,4,6,2,18] weight", "expected f32 [2·modes, modes, in, 2, out]");
    check_refused("in=4,2 out=5", "in=4,0 out=5",
                  "input image is f32 [3,10,9,5], expected [batch, height, width, channels]");
    check_refused("in=3,1 out=4", "in=0,1 out=4", "expected f32 [batch, 2·modes, modes, 2, channels]");
    check_refused("in=6,3,8 out=9", "in=6,0,8 out=9", "input x is f32 [3,10,9,5]");
    check_refused("in=6,1 out=7", "in=3,1 out=7", "expected f32 [2·modes, modes, in, 2, out]");
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_are_those_of_the_interpreter),
        cmocka_unit_test(wrong_shapes_are_refused),
    };
    seed = test_seed_said(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
