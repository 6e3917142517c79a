/* Several sequences that are at places of their own in one cache, against the interpreter at every level: embeddings
 * with a table of places, rotations, caches of f32 and bf16 and a ring, attention of one token and of several. And one
 * sequence of such a cache by itself, which must give the bits that it gives among the others. */
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

enum { SEQUENCES = 3, MOST = 5, ROOM = 300, STEPS = 4, Q = 48, KV = 16, GRAPH_BYTES = 8192 };

static _Alignas(64) unsigned char memory[2 << 20];
static uint64_t seed;

/* %1$d: tokens of a sequence. One of the sequences is computed once more, alone, as "one_…", from the same caches. */
static const char form[] =
    "graph 2\n"
    "region 0 \"p\" batch=1\n"
    "value 0 \"q\" f32 [3,%1$d,48] input\n"
    "value 1 \"k\" f32 [3,%1$d,16] input\n"
    "value 2 \"v\" f32 [3,%1$d,16] input\n"
    "value 3 \"position\" i64 [3] input\n"
    "value 4 \"tokens\" i32 [3,%1$d] input\n"
    "value 5 \"table\" f32 [7,48] input\n"
    "value 6 \"places\" f32 [320,48] input\n"
    "value 7 \"wide_k\" f32 [3,300,16] state program=0\n"
    "value 8 \"wide_v\" f32 [3,300,16] state program=0\n"
    "value 9 \"narrow_k\" bf16 [3,300,16] state program=0\n"
    "value 10 \"narrow_v\" bf16 [3,300,16] state program=0\n"
    "value 11 \"ring_k\" f32 [3,13,16] state program=0\n"
    "value 12 \"ring_v\" f32 [3,13,16] state program=0\n"
    "value 13 \"embedded\" f32 [3,%1$d,48] output program=0\n"
    "value 14 \"cosine\" f32 [3,%1$d,4] output program=0\n"
    "value 15 \"sine\" f32 [3,%1$d,4] output program=0\n"
    "value 16 \"turned_q\" f32 [3,%1$d,48] output program=0\n"
    "value 17 \"turned_k\" f32 [3,%1$d,16] temporary program=0\n"
    "value 18 \"wide_k_new\" f32 [3,300,16] state program=0 update=7\n"
    "value 19 \"wide_v_new\" f32 [3,300,16] state program=0 update=8\n"
    "value 20 \"narrow_k_new\" bf16 [3,300,16] state program=0 update=9\n"
    "value 21 \"narrow_v_new\" bf16 [3,300,16] state program=0 update=10\n"
    "value 22 \"ring_k_new\" f32 [3,13,16] state program=0 update=11\n"
    "value 23 \"ring_v_new\" f32 [3,13,16] state program=0 update=12\n"
    "value 24 \"wide_o\" f32 [3,%1$d,48] output program=0\n"
    "value 25 \"narrow_o\" f32 [3,%1$d,48] output program=0\n"
    "value 26 \"ring_o\" f32 [3,%1$d,48] output program=0\n"
    "value 27 \"one_position\" i64 [1] input\n"
    "value 28 \"one_sequence\" i64 [1] input\n"
    "value 29 \"one_q\" f32 [1,%1$d,48] input\n"
    "value 30 \"one_k\" f32 [1,%1$d,16] input\n"
    "value 31 \"one_v\" f32 [1,%1$d,16] input\n"
    "value 32 \"one_cosine\" f32 [%1$d,4] output program=0\n"
    "value 33 \"one_sine\" f32 [%1$d,4] output program=0\n"
    "value 34 \"one_turned_q\" f32 [1,%1$d,48] output program=0\n"
    "value 35 \"one_turned_k\" f32 [1,%1$d,16] temporary program=0\n"
    "value 36 \"again_k\" f32 [3,300,16] state program=0 update=18\n"
    "value 37 \"again_v\" f32 [3,300,16] state program=0 update=19\n"
    "value 38 \"again_ring_k\" f32 [3,13,16] state program=0 update=22\n"
    "value 39 \"again_ring_v\" f32 [3,13,16] state program=0 update=23\n"
    "value 40 \"one_wide_o\" f32 [1,%1$d,48] output program=0\n"
    "value 41 \"one_narrow_o\" f32 [1,%1$d,48] output program=0\n"
    "value 42 \"one_ring_o\" f32 [1,%1$d,48] output program=0\n"
    "value 43 \"one_tokens\" i32 [1,%1$d] input\n"
    "value 44 \"one_embedded\" f32 [1,%1$d,48] output program=0\n"
    "node 0 embedding region=0 tokens=4 table=5 positions=6 position=3 x=13 window=1\n"
    "node 1 rope_table region=0 position=3 cosine=14 sine=15 positions=%1$d half=4 theta=30\n"
    "node 2 rope region=0 x=0 cosine=14 sine=15 y=16 heads=6 rotated=6 theta=0 adjoint=0\n"
    "node 3 rope region=0 x=1 cosine=14 sine=15 y=17 heads=2 rotated=2 theta=0 adjoint=0\n"
    "node 4 cache_write region=0 x=17 cache=7 position=3 cache_new=18\n"
    "node 5 cache_write region=0 x=2 cache=8 position=3 cache_new=19\n"
    "node 6 cache_write region=0 x=17 cache=9 position=3 cache_new=20\n"
    "node 7 cache_write region=0 x=2 cache=10 position=3 cache_new=21\n"
    "node 8 cache_write region=0 x=17 cache=11 position=3 cache_new=22 ring=1\n"
    "node 9 cache_write region=0 x=2 cache=12 position=3 cache_new=23 ring=1\n"
    "node 10 attention region=0 q=16 k=18 v=19 position=3 o=24 heads=6 causal=1 scale=0.3 key_heads=2\n"
    "node 11 attention region=0 q=16 k=20 v=21 position=3 o=25 heads=6 causal=1 scale=0.3 key_heads=2 cap=2\n"
    "node 12 attention region=0 q=16 k=22 v=23 position=3 o=26 heads=6 causal=1 scale=0.3 key_heads=2 window=9\n"
    "node 13 embedding region=0 tokens=43 table=5 positions=6 position=27 x=44 window=1\n"
    "node 14 rope_table region=0 position=27 cosine=32 sine=33 positions=%1$d half=4 theta=30\n"
    "node 15 rope region=0 x=29 cosine=32 sine=33 y=34 heads=6 rotated=6 theta=0 adjoint=0\n"
    "node 16 rope region=0 x=30 cosine=32 sine=33 y=35 heads=2 rotated=2 theta=0 adjoint=0\n"
    "node 17 cache_write region=0 x=35 cache=18 position=27 sequence=28 cache_new=36\n"
    "node 18 cache_write region=0 x=31 cache=19 position=27 sequence=28 cache_new=37\n"
    "node 19 cache_write region=0 x=35 cache=22 position=27 sequence=28 cache_new=38 ring=1\n"
    "node 20 cache_write region=0 x=31 cache=23 position=27 sequence=28 cache_new=39 ring=1\n"
    "node 21 attention region=0 q=34 k=36 v=37 position=27 sequence=28 o=40 heads=6 causal=1 scale=0.3 key_heads=2\n"
    "node 22 attention region=0 q=34 k=20 v=21 position=27 sequence=28 o=41 heads=6 causal=1 scale=0.3 key_heads=2"
    " cap=2\n"
    "node 23 attention region=0 q=34 k=38 v=39 position=27 sequence=28 o=42 heads=6 causal=1 scale=0.3 key_heads=2"
    " window=9\n"
    "end graph\n";

typedef struct running {
    reference *r;
    pl_program *program;
    int64_t tokens, position[SEQUENCES];
    pl_philox draw;
    uint64_t drawn;
} running;

static int64_t draw_below(running *g, int64_t limit)
{
    uint32_t bits[4];
    pl_philox_block(&g->draw, 0, 0, (uint32_t)g->drawn++, bits);
    return (int64_t)(bits[0] % (uint32_t)limit);
}

static void compare(const running *g, const char *name, int64_t row, double tolerance)
{
    const double *want = reference_find(g->r, name);
    const float *have = pl_program_find(g->program, name);
    for (int64_t i = 0; i < SEQUENCES * g->tokens * row; i++)
        if (!(fabs(want[i] - (double)have[i]) <= tolerance * (1 + fabs(want[i]))))
            fail_msg("%s[%d] of %d tokens at %d, %d, %d: %.9g, expected %.9g", name, (int)i, (int)g->tokens,
                     (int)g->position[0], (int)g->position[1], (int)g->position[2], (double)have[i], want[i]);
}

/* That sequence's part of the input, into the input of the one that is computed alone. */
static void copy_one(const running *g, const char *from, const char *to, int64_t row, int64_t b)
{
    const int64_t count = g->tokens * row;
    memcpy(pl_program_find(g->program, to), (const float *)pl_program_find(g->program, from) + b * count,
           (size_t)count * sizeof(float));
    memcpy(reference_find(g->r, to), reference_find(g->r, from) + b * count, (size_t)count * sizeof(double));
}

static void check_alone(const running *g, const char *name, const char *alone, int64_t row, int64_t b)
{
    const int64_t count = g->tokens * row;
    const float *all = pl_program_find(g->program, name);
    if (memcmp(pl_program_find(g->program, alone), all + b * count, (size_t)count * sizeof *all) != 0)
        fail_msg("%s of sequence %d of %d tokens differs from %s", name, (int)b, (int)g->tokens, alone);
}

static void set_integers(const running *g, const char *name, const int64_t *value, int count)
{
    for (int i = 0; i < count; i++)
        ((int64_t *)pl_program_find(g->program, name))[i] = value[i], reference_find(g->r, name)[i] = (double)value[i];
}

static void set_inputs(running *g, uint64_t step, int64_t one)
{
    int32_t *token = pl_program_find(g->program, "tokens");
    text_fill(seed + step, g->r, g->program, "q", (int)(SEQUENCES * g->tokens * Q));
    text_fill(seed + step, g->r, g->program, "k", (int)(SEQUENCES * g->tokens * KV));
    text_fill(seed + step, g->r, g->program, "v", (int)(SEQUENCES * g->tokens * KV));
    for (int64_t i = 0; i < SEQUENCES * g->tokens; i++)
        reference_find(g->r, "tokens")[i] = (double)(token[i] = (int32_t)draw_below(g, 7));
    set_integers(g, "position", g->position, SEQUENCES);
    set_integers(g, "one_position", &g->position[one], 1), set_integers(g, "one_sequence", &one, 1);
    copy_one(g, "q", "one_q", Q, one), copy_one(g, "k", "one_k", KV, one), copy_one(g, "v", "one_v", KV, one);
    copy_one(g, "tokens", "one_tokens", 1, one);
}

static void run_step(running *g, uint64_t step)
{
    pl_error err = {0};
    const int64_t one = draw_below(g, SEQUENCES);
    set_inputs(g, step, one);
    reference_run(g->r, 0, NULL, NULL);
    assert_int_equal(pl_program_run(g->program, 0, &(pl_program_hooks){0}, &err), PL_OK);
    compare(g, "embedded", Q, 2e-7), compare(g, "cosine", 4, 2e-7), compare(g, "sine", 4, 2e-7);
    compare(g, "turned_q", Q, 2e-6), compare(g, "wide_o", Q, 1e-5), compare(g, "ring_o", Q, 1e-5);
    compare(g, "narrow_o", Q, 0.05);
    check_alone(g, "embedded", "one_embedded", Q, one), check_alone(g, "cosine", "one_cosine", 4, one);
    check_alone(g, "turned_q", "one_turned_q", Q, one), check_alone(g, "wide_o", "one_wide_o", Q, one);
    check_alone(g, "ring_o", "one_ring_o", Q, one), check_alone(g, "narrow_o", "one_narrow_o", Q, one);
}

/* Every place before the first position must have been written, so sequences begin anywhere only where the caches hold
 * numbers from the beginning. */
static void fill_caches(const running *g)
{
    static const char *const wide[] = {"wide_k", "wide_v"}, *const ring[] = {"ring_k", "ring_v"},
                             *const narrow[] = {"narrow_k", "narrow_v"};
    for (int i = 0; i < 2; i++) {
        text_fill(seed + 7, g->r, g->program, wide[i], SEQUENCES * ROOM * KV);
        text_fill(seed + 8, g->r, g->program, ring[i], SEQUENCES * 13 * KV);
        memset(reference_find(g->r, narrow[i]), 0,
               SEQUENCES * ROOM * KV * sizeof(double)); /* as it is in the program */
    }
    text_fill(seed, g->r, g->program, "table", 7 * Q), text_fill(seed, g->r, g->program, "places", 320 * Q);
}

static void run_form(pl_team team, int64_t tokens)
{
    char text[GRAPH_BYTES];
    pl_error err = {0};
    snprintf(text, sizeof text, form, (int)tokens);
    pl_plan *plan = text_plan(text, team);
    running g = {.r = reference_create(plan->graph), .tokens = tokens};
    g.draw = pl_philox_init(seed, pl_stream_id("places"));
    memset(memory, 0, sizeof memory);
    if (pl_program_create(plan, memory, sizeof memory, &g.program, &err) != PL_OK) fail_msg("%s", err.text);
    fill_caches(&g);
    for (int b = 0; b < SEQUENCES; b++) g.position[b] = draw_below(&g, ROOM - STEPS * MOST);
    for (uint64_t step = 0; step < STEPS; step++) {
        run_step(&g, step);
        for (int b = 0; b < SEQUENCES; b++) g.position[b] += draw_below(&g, 3) ? tokens : 0;
    }
    reference_destroy(g.r);
    pl_program_destroy(g.program);
    pl_plan_destroy(plan);
}

static void one_token_each(pl_team team) { run_form(team, 1); }
static void several_tokens_each(pl_team team) { run_form(team, MOST); }

static void sequences_are_at_places_of_their_own(void **state)
{
    (void)state;
    text_each_level(one_token_each);
    text_each_level(several_tokens_each);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sequences_are_at_places_of_their_own)};
    seed = test_seed_said(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
