/* Gradients of weights that are told how many tokens a sample has (k_sample): random tokens, samples, widths, strides
 * and types against sums in double; at every level of this machine the same bits with any team, with the samples dealt
 * to calls in any way, and with cuts between groups of tokens, as chunks of feed-forward layers and of the loss make
 * them. Samples that fill too little of their groups, and all levels but amx, have the bits of k_sample 0. Outputs and
 * workspace stand between guard zones.
 *
 * Tolerance: see test_gemm.c. A group's two chains and the sum of them are no more roundings than its products. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "backend/calls.h"
#include "support/guarded.h"
#include "support/program.h"
#include "support/seed.h"

enum { CASES = 120, CHUNK_CASES = 24 };

static uint64_t first_seed, state;

static uint64_t draw(void)
{
    state += 0x9e3779b97f4a7c15u;
    uint64_t z = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static int64_t below(int64_t n) { return (int64_t)(draw() % (uint64_t)n); }
static int chance(int percent) { return below(100) < percent; }

/* Now and then zero, of either sign. */
static float draw_real(void)
{
    const float x = (float)below(1 << 20) * 0x1p-19f - 1.0f;
    return chance(90) ? x : x < 0 ? -0.0f : 0.0f;
}

static void *random_numbers(pl_real type, int64_t count)
{
    void *to = guarded_bytes((uint64_t)(count * pl_real_bytes(type)), (uint64_t)(2 * below(3) * pl_real_bytes(type)));
    for (int64_t i = 0; i < count; i++) pl_real_put(type, to, i, draw_real());
    return to;
}

/* ---- products ---- */

typedef struct problem {
    int64_t out, in, tokens, samples, ld_dy, ld_x;
    pl_real type;
    void *dy, *x;
    float *c; /* what is there before */
} problem;

static int64_t random_tokens(void)
{
    return chance(25) ? 32 * (1 + below(5)) : chance(40) ? 24 + below(9) : 1 + below(chance(30) ? 600 : 100);
}

static problem problem_of(uint64_t seed)
{
    state = seed;
    problem p = {.tokens = random_tokens(), .samples = 1 + below(6), .type = PL_REAL_BF16};
    if (chance(15)) p.type = chance(50) ? PL_REAL_F16 : PL_REAL_F32;
    p.out = 1 + below(chance(40) ? 400 : 120), p.in = 1 + below(chance(40) ? 400 : 120);
    p.ld_dy = p.out + (chance(50) ? 0 : below(70)), p.ld_x = p.in + (chance(50) ? 0 : below(70));
    p.dy = random_numbers(p.type, p.tokens * p.samples * p.ld_dy);
    p.x = random_numbers(p.type, p.tokens * p.samples * p.ld_x);
    p.c = random_numbers(PL_REAL_F32, p.out * p.in);
    return p;
}

static int64_t rows_of(const problem *p) { return p->tokens * p->samples; }

/* Adds tokens [first, end) to c. */
static void add(const problem *p, int64_t k_sample, int64_t first, int64_t end, float *c, pl_team team)
{
    pl_gemm_call call =
        pl_gemm_linear_dw(p->type, p->out, p->in, end - first, pl_real_at(p->type, p->dy, first * p->ld_dy),
                          pl_real_at(p->type, p->x, first * p->ld_x), c);
    call.a_col = p->ld_dy, call.b_row = p->ld_x;
    call.k_sample = k_sample, call.k_first = k_sample ? first % k_sample : 0;
    pl_gemm_exec(&call, guarded_bytes(pl_gemm_workspace_bytes(&call, team), 0), team);
}

static float *sum_of(const problem *p, int64_t k_sample, pl_team team)
{
    float *c = guarded_copy(p->c, p->out * p->in);
    add(p, k_sample, 0, rows_of(p), c, team);
    return c;
}

/* Samples dealt to calls. */
static float *sum_in_batches(const problem *p, pl_team team)
{
    float *c = guarded_copy(p->c, p->out * p->in);
    for (int64_t sample = 0, count; sample < p->samples; sample += count) {
        count = 1 + below(p->samples - sample);
        add(p, p->tokens, sample * p->tokens, (sample + count) * p->tokens, c, team);
    }
    return c;
}

/* Cuts between groups. */
static float *sum_in_stretches(const problem *p, pl_team team)
{
    float *c = guarded_copy(p->c, p->out * p->in);
    for (int64_t first = 0, end; first < rows_of(p); first = end) {
        end = pl_gemm_end_of_tokens(first, PL_GEMM_TOKEN_GROUP + below(200), rows_of(p), p->tokens);
        add(p, p->tokens, first, end, c, team);
    }
    return c;
}

static int is_close(const problem *p, const float *c)
{
    const int all = p->out * p->in * rows_of(p) < 300000;
    for (int64_t s = 0; s < (all ? p->out * p->in : 300); s++) {
        const int64_t at = all ? s : s % 3 ? below(p->out * p->in) : p->out * p->in - 1 - s / 3 % (p->out * p->in);
        const int64_t i = at / p->in, j = at % p->in;
        double sum = p->c[at], size = fabs(sum);
        for (int64_t t = 0; t < rows_of(p); t++) {
            const double x =
                (double)pl_real_get(p->type, p->dy, t * p->ld_dy + i) * pl_real_get(p->type, p->x, t * p->ld_x + j);
            sum += x, size += fabs(x);
        }
        if (fabs(c[at] - sum) <= 2 * (double)(rows_of(p) + 8) * 0x1p-24 * size) continue;
        print_error("[%ld,%ld] = %.9g, wanted %.9g\n", (long)i, (long)j, (double)c[at], sum);
        return 0;
    }
    return 1;
}

static int same(const problem *p, const float *a, const float *b)
{
    return memcmp(a, b, (size_t)(p->out * p->in) * sizeof *a) == 0;
}

/* The rule, said once more: of the model's shape alone. */
static int is_in_groups(const problem *p, pl_isa isa)
{
    const int64_t groups = (p->tokens + 31) / 32, side = p->out < p->in ? p->out : p->in;
    const int64_t least = side >= 128 ? 8 : side >= 32 ? 16 : 33;
    return isa == PL_ISA_AMX && p->type == PL_REAL_BF16 && p->tokens >= groups * least;
}

static const char *wrong_of(const problem *p, pl_isa isa)
{
    const float *whole = sum_of(p, p->tokens, (pl_team){1, isa});
    if (!is_close(p, whole)) return "other numbers";
    static const int threads[] = {2, 3, 7, 64};
    for (int i = 0; i < 4; i++)
        if (!same(p, whole, sum_of(p, p->tokens, (pl_team){threads[i], isa}))) return "other bits in a team";
    for (int i = 0; i < 3; i++)
        if (!same(p, whole, sum_in_batches(p, (pl_team){1 + i, isa}))) return "other bits in micro-batches";
    for (int i = 0; i < 3; i++)
        if (!same(p, whole, sum_in_stretches(p, (pl_team){1 + i, isa}))) return "other bits in stretches";
    const int in_order = same(p, whole, sum_of(p, 0, (pl_team){2, isa}));
    if (!in_order && !is_in_groups(p, isa)) return "bits that are not those of a single chain";
    return NULL;
}

static void test_samples(void **unused)
{
    (void)unused;
    for (uint64_t seed = first_seed; seed < first_seed + CASES; seed++)
        for (int isa = PL_ISA_REF; isa <= (int)pl_isa_of_machine(); isa++) {
            const problem p = problem_of(seed);
            const char *wrong = NULL;
            if (isa != PL_ISA_REF || p.out * p.in * rows_of(&p) <= 3000000) wrong = wrong_of(&p, (pl_isa)isa);
            if (wrong)
                fail_msg("%s: level %s, type %d, out %ld in %ld, %ld samples of %ld tokens, seed %lu", wrong,
                         pl_isa_name((pl_isa)isa), (int)p.type, (long)p.out, (long)p.in, (long)p.samples,
                         (long)p.tokens, (unsigned long)seed);
            guarded_check_all();
            guarded_free_all();
        }
}

/* Sums of -0 stay -0, however an odd number of tokens is filled up. */
static void test_signs_of_zeros(void **unused)
{
    (void)unused;
    for (int64_t tokens = 1; tokens <= 3; tokens++)
        for (int isa = PL_ISA_REF; isa <= (int)pl_isa_of_machine(); isa++)
            for (int type = 0; type <= PL_REAL_F16; type++) {
                state = (uint64_t)tokens;
                problem p = {.out = 40, .in = 37, .tokens = tokens, .samples = 4, .type = (pl_real)type};
                p.ld_dy = p.out, p.ld_x = p.in;
                p.dy = random_numbers(p.type, rows_of(&p) * p.out), p.x = random_numbers(p.type, rows_of(&p) * p.in);
                p.c = random_numbers(PL_REAL_F32, p.out * p.in);
                for (int64_t i = 0; i < rows_of(&p) * p.out; i++) pl_real_put(p.type, p.dy, i, -0.0f);
                for (int64_t i = 0; i < rows_of(&p) * p.in; i++) pl_real_put(p.type, p.x, i, 1);
                for (int64_t i = 0; i < p.out * p.in; i++) p.c[i] = -0.0f;
                const char *wrong = wrong_of(&p, (pl_isa)isa);
                if (wrong)
                    fail_msg("%s: level %s, type %d, %ld tokens", wrong, pl_isa_name((pl_isa)isa), type, (long)tokens);
                guarded_check_all();
                guarded_free_all();
            }
}

/* Tiles are used where they are meant to be: then the order of sums is another, and shows. */
static void test_tiles_are_used(void **unused)
{
    (void)unused;
    static const struct {
        int64_t tokens, out, in;
        int tiles;
    } shapes[] = {{197, 64, 48, 1}, {16, 64, 48, 1},  {64, 32, 32, 1},   {12, 64, 48, 0},   {15, 64, 48, 0},
                  {33, 64, 48, 1},  {64, 31, 64, 0},  {64, 64, 31, 0},   {1, 64, 64, 0},    {12, 128, 128, 1},
                  {8, 128, 160, 1}, {7, 160, 128, 0}, {12, 127, 128, 0}, {12, 128, 127, 0}, {1, 160, 160, 0}};
    if (pl_isa_of_machine() < PL_ISA_AMX) skip();
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (int64_t samples = 3; samples < 6; samples++) {
            state = i;
            problem p = {shapes[i].out, shapes[i].in, shapes[i].tokens, samples,
                         shapes[i].out, shapes[i].in, PL_REAL_BF16,     NULL,
                         NULL,          NULL};
            p.dy = random_numbers(p.type, rows_of(&p) * p.out), p.x = random_numbers(p.type, rows_of(&p) * p.in);
            p.c = random_numbers(PL_REAL_F32, p.out * p.in);
            const pl_team team = {1, PL_ISA_AMX};
            assert_int_equal(!same(&p, sum_of(&p, p.tokens, team), sum_of(&p, 0, team)), shapes[i].tiles);
            guarded_free_all();
        }
}

/* ---- chunks ---- */

typedef struct layer {
    pl_feed_forward_bwd_call call;
    int64_t w1, w2, x; /* numbers */
} layer;

static layer layer_of(pl_real type)
{
    const int64_t tokens = random_tokens(), samples = 1 + below(4);
    pl_feed_forward_layer l = {.rows = tokens * samples, .tokens = tokens, .gated = chance(40), .type = type};
    const int64_t widths = chance(50) ? 80 : 200;
    l.in = 1 + below(widths), l.hidden = 1 + below(widths), l.out = 1 + below(widths), l.act = PL_ACT_GELU;
    layer r = {.w1 = l.hidden * l.in * (1 + l.gated), .w2 = l.out * l.hidden, .x = l.rows * l.in};
    l.x = random_numbers(type, r.x), l.w1 = random_numbers(type, r.w1), l.w2 = random_numbers(type, r.w2);
    r.call = (pl_feed_forward_bwd_call){.layer = l, .dy = random_numbers(type, l.rows * l.out)};
    return r;
}

/* dw1, dw2 and dx with chunks of so many rows, one behind the other. */
static float *gradients_of(const layer *l, int64_t chunk_rows, pl_team team)
{
    float *all = guarded_f32(l->w1 + l->w2 + l->x);
    memset(all, 0, (size_t)(l->w1 + l->w2 + l->x) * sizeof *all);
    pl_feed_forward_bwd_call c = l->call;
    c.layer.chunk_rows = chunk_rows;
    c.dw1 = all, c.dw2 = all + l->w1, c.dx = all + l->w1 + l->w2;
    pl_feed_forward_bwd_exec(&c, guarded_bytes(pl_feed_forward_bwd_workspace_bytes(&c, team), 0), team);
    return all;
}

static void check_layer(uint64_t seed, pl_isa isa)
{
    state = seed;
    const layer l = layer_of(chance(80) ? PL_REAL_BF16 : PL_REAL_F16);
    const float *whole = gradients_of(&l, l.call.layer.rows, (pl_team){1, isa});
    for (int i = 0; i < 4; i++) {
        const int64_t chunk = 1 + below(i == 0 ? 31 : l.call.layer.rows);
        const float *more = gradients_of(&l, chunk, (pl_team){1 + i % 3, isa});
        if (memcmp(whole, more, (size_t)(l.w1 + l.w2 + l.x) * sizeof *whole) != 0)
            fail_msg("level %s: other bits in chunks of %ld of %ld rows, samples of %ld, seed %lu", pl_isa_name(isa),
                     (long)chunk, (long)l.call.layer.rows, (long)l.call.layer.tokens, (unsigned long)seed);
    }
}

static float *loss_gradient(pl_linear_ce_call c, int64_t chunk_rows, pl_team team)
{
    const int64_t count = c.vocab * c.width;
    c.dweight = guarded_f32(count), c.chunk_rows = chunk_rows;
    memset(c.dweight, 0, (size_t)count * sizeof *c.dweight);
    c.dh = guarded_bytes((uint64_t)(c.rows * c.width * pl_real_bytes(c.type)), 0);
    c.loss = guarded_bytes(sizeof *c.loss, 0), *c.loss = 0;
    pl_linear_ce_exec(&c, guarded_bytes(pl_linear_ce_workspace_bytes(&c, team), 0), team);
    return c.dweight;
}

static void check_loss(uint64_t seed, pl_isa isa)
{
    static const float scale = 1;
    state = seed;
    pl_linear_ce_call c = {.tokens = random_tokens(), .width = 1 + below(160), .vocab = 1 + below(160)};
    c.scale = &scale;
    c.rows = c.tokens * (1 + below(4)), c.type = chance(80) ? PL_REAL_BF16 : PL_REAL_F16;
    c.h = random_numbers(c.type, c.rows * c.width), c.weight = random_numbers(c.type, c.vocab * c.width);
    int32_t *target = guarded_bytes((uint64_t)c.rows * sizeof *target, 0);
    for (int64_t i = 0; i < c.rows; i++) target[i] = (int32_t)below(c.vocab + 1) - 1;
    c.target = target;
    const float *whole = loss_gradient(c, c.rows, (pl_team){1, isa});
    for (int i = 0; i < 4; i++) {
        const int64_t chunk = 1 + below(i == 0 ? 31 : c.rows);
        const float *more = loss_gradient(c, chunk, (pl_team){1 + i % 3, isa});
        if (memcmp(whole, more, (size_t)(c.vocab * c.width) * sizeof *whole) != 0)
            fail_msg("level %s: other bits of the loss in chunks of %ld of %ld rows, samples of %ld, seed %lu",
                     pl_isa_name(isa), (long)chunk, (long)c.rows, (long)c.tokens, (unsigned long)seed);
    }
}

static void test_chunks(void **unused)
{
    (void)unused;
    for (uint64_t seed = first_seed; seed < first_seed + CHUNK_CASES; seed++)
        for (int isa = PL_ISA_REF + 1; isa <= (int)pl_isa_of_machine(); isa++) {
            check_layer(seed, (pl_isa)isa);
            check_loss(seed, (pl_isa)isa);
            guarded_check_all();
            guarded_free_all();
        }
}

/* ---- workspace ---- */

static void test_workspace_is_bounded(void **unused)
{
    (void)unused;
    for (uint64_t seed = first_seed; seed < first_seed + 20000; seed++) {
        state = seed;
        const int64_t m = 1 + below(100000), n = 1 + below(100000), k = 1 + below(100000);
        pl_gemm_call call = pl_gemm_linear_dw(PL_REAL_BF16, m, n, k, NULL, NULL, NULL);
        call.k_sample = 1 + below(chance(50) ? 300 : 5000), call.k_first = below(call.k_sample) / 32 * 32;
        const int threads = 1 + (int)below(64);
        const uint64_t bytes = pl_gemm_workspace_bytes(&call, (pl_team){.threads = threads, .isa = PL_ISA_AMX});
        assert_true(bytes <= 64 + (uint64_t)threads * 262144);
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    first_seed = test_seed_said(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_signs_of_zeros),
        cmocka_unit_test(test_tiles_are_used),
        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_workspace_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
