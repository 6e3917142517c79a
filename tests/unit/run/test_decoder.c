/* What a pretrained decoder's program is made of, as nodes, against the interpreter at every level: rows of cosines
 * and sines from a position on, rotations by them, caches of f32 and of bf16 that are filled five tokens at a time,
 * attention with fewer key heads, a window and a cap, a gate of two values, a scale. What the caches hold before is not
 * a number. */
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

enum { TOKENS = 5, ROOM = 22, CHUNKS = 5, QUERIES = TOKENS * 6 * 8, KEYS = TOKENS * 2 * 8 };

static _Alignas(64) unsigned char memory[1 << 20];
static uint64_t seed;

static const char text[] =
    "graph 2\n"
    "region 0 \"p\" batch=1\n"
    "value 0 \"q\" f32 [1,5,48] input\n"
    "value 1 \"k\" f32 [1,5,16] input\n"
    "value 2 \"v\" f32 [1,5,16] input\n"
    "value 3 \"position\" i64 [1] input\n"
    "value 4 \"divisor\" f32 [4] input\n"
    "value 5 \"wide_k\" f32 [1,22,16] state program=0\n"
    "value 6 \"wide_v\" f32 [1,22,16] state program=0\n"
    "value 7 \"narrow_k\" bf16 [1,22,16] state program=0\n"
    "value 8 \"narrow_v\" bf16 [1,22,16] state program=0\n"
    "value 9 \"cosine\" f32 [5,4] output program=0\n"
    "value 10 \"sine\" f32 [5,4] output program=0\n"
    "value 11 \"turned_q\" f32 [1,5,48] output program=0\n"
    "value 12 \"turned_k\" f32 [1,5,16] temporary program=0\n"
    "value 13 \"wide_k_new\" f32 [1,22,16] state program=0 update=5\n"
    "value 14 \"wide_v_new\" f32 [1,22,16] state program=0 update=6\n"
    "value 15 \"narrow_k_new\" bf16 [1,22,16] state program=0 update=7\n"
    "value 16 \"narrow_v_new\" bf16 [1,22,16] state program=0 update=8\n"
    "value 17 \"wide_o\" f32 [1,5,48] output program=0\n"
    "value 18 \"narrow_o\" f32 [1,5,48] output program=0\n"
    "value 19 \"y\" f32 [1,5,48] temporary program=0\n"
    "value 20 \"scaled\" f32 [1,5,48] output program=0\n"
    "node 0 rope_table region=0 position=3 divisor=4 cosine=9 sine=10 positions=5 half=4 theta=30 kind=2 factor=8"
    " original=64 low=1 high=4 magnitude=1.25\n"
    "node 1 rope region=0 x=0 cosine=9 sine=10 y=11 heads=6 rotated=6 theta=0 adjoint=0\n"
    "node 2 rope region=0 x=1 cosine=9 sine=10 y=12 heads=2 rotated=2 theta=0 adjoint=0\n"
    "node 3 cache_write region=0 x=12 cache=5 position=3 cache_new=13\n"
    "node 4 cache_write region=0 x=2 cache=6 position=3 cache_new=14\n"
    "node 5 cache_write region=0 x=12 cache=7 position=3 cache_new=15\n"
    "node 6 cache_write region=0 x=2 cache=8 position=3 cache_new=16\n"
    "node 7 attention region=0 q=11 k=13 v=14 position=3 o=17 heads=6 causal=1 scale=0.3 key_heads=2 window=9 cap=2\n"
    "node 8 attention region=0 q=11 k=15 v=16 position=3 o=18 heads=6 causal=1 scale=0.3 key_heads=2\n"
    "node 9 gated_activation region=0 x=17 up=18 y=19 act=gelu_tanh\n"
    "node 10 scale region=0 x=19 y=20 factor=-3.5\n"
    "end graph\n";

/* The rows of this chunk for which the cache has room. */
static void compare(reference *r, pl_program *program, const char *name, int64_t position, int row, double tolerance)
{
    const int64_t room = ROOM - position < TOKENS ? ROOM - position : TOKENS;
    const double *want = reference_find(r, name);
    const float *have = pl_program_find(program, name);
    for (int64_t i = 0; i < room * row; i++)
        if (!(fabs(want[i] - (double)have[i]) <= tolerance * (1 + fabs(want[i]))))
            fail_msg("%s[%d] at %d: %.9g, expected %.9g", name, (int)i, (int)position, (double)have[i], want[i]);
}

static void run_chunk(reference *r, pl_program *program, int64_t position)
{
    pl_error err = {0};
    text_fill(seed + (uint64_t)position, r, program, "q", QUERIES);
    text_fill(seed + (uint64_t)position, r, program, "k", KEYS);
    text_fill(seed + (uint64_t)position, r, program, "v", KEYS);
    *(int64_t *)pl_program_find(program, "position") = position, *reference_find(r, "position") = (double)position;
    reference_run(r, 0, NULL, NULL);
    assert_int_equal(pl_program_run(program, 0, &(pl_program_hooks){0}, &err), PL_OK);
    compare(r, program, "cosine", position, 4, 2e-7), compare(r, program, "sine", position, 4, 2e-7);
    compare(r, program, "turned_q", position, 48, 2e-6), compare(r, program, "wide_o", position, 48, 1e-5);
    compare(r, program, "narrow_o", position, 48, 0.03), compare(r, program, "scaled", position, 48, 0.2);
}

static void run_and_compare(pl_team team)
{
    pl_error err = {0};
    pl_program *program = NULL;
    pl_plan *plan = text_plan(text, team);
    reference *r = reference_create(plan->graph);
    memset(memory, 0xFF, sizeof memory);
    if (pl_program_create(plan, memory, sizeof memory, &program, &err) != PL_OK) fail_msg("%s", err.text);
    for (int i = 0; i < 4; i++)
        ((float *)pl_program_find(program, "divisor"))[i] = (float)(reference_find(r, "divisor")[i] = 1 + 0.5 * i);
    for (int64_t chunk = 0; chunk < CHUNKS; chunk++) run_chunk(r, program, chunk * TOKENS);
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
