/* Attention as pretrained decoders use it, against plain loops over doubles at every level of this machine: fewer key
 * heads than heads, windows, caps on scores, a cache of another type than the queries, one query or many. The places of
 * the cache that no query sees are not a number: reading one would show. The same bits for any team; guard zones. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "backend/calls.h"
#include "base/philox.h"
#include "support/guarded.h"
#include "support/program.h"
#include "support/seed.h"

#if defined(PL_TEST_KERNELS_SANITIZED) /* each kind comes a dozen times; the plain tree tries more */
enum { CASES = 50, ROOM_MAX = 900 };
#else
enum { CASES = 150, ROOM_MAX = 900 };
#endif

static uint64_t seed;
static uint32_t this_case, drawn;

static int64_t draw(int64_t low, int64_t high)
{
    const pl_philox p = pl_philox_init(seed, this_case);
    uint32_t bits[4];
    pl_philox_block(&p, 0, 0, drawn++, bits);
    return low + (int64_t)(bits[0] % (uint64_t)(high - low + 1));
}

typedef struct problem {
    pl_attention_call c;
    int64_t position;
    float *lse;
} problem;

/* `count` numbers of that type, with rows of `ld`. */
static void *numbers(pl_real type, int64_t count, uint64_t stream)
{
    const float *from = guarded_normal(count, seed * 1000 + this_case * 4 + stream);
    void *to = guarded_bytes((uint64_t)(count * pl_real_bytes(type)), 0);
    for (int64_t i = 0; i < count; i++) pl_real_put(type, to, i, from[i]);
    return to;
}

static int64_t first_seen(const pl_attention_call *c, int64_t place)
{
    return c->window && place + 1 > c->window ? place + 1 - c->window : 0;
}

/* Not a number where no query looks: beyond the last one's place, and before the first one's window. */
static void spoil(const problem *p, void *x, pl_attention_strides s, int64_t columns)
{
    const pl_attention_call *c = &p->c;
    for (int64_t b = 0; b < c->batch; b++)
        for (int64_t j = 0; j < c->tk; j++)
            if (j >= p->position + c->tq || j < first_seen(c, p->position))
                for (int64_t d = 0; d < columns; d++) pl_real_put(c->key_type, x, b * s.batch + j * s.token + d, NAN);
}

static void make_numbers(problem *p)
{
    pl_attention_call *c = &p->c;
    const int64_t columns = c->heads * c->head_width, keys = c->key_heads * c->head_width;
    const int64_t ldq = columns + draw(0, 3), ldk = keys + draw(0, 3);
    c->sq = (pl_attention_strides){c->tq * ldq, ldq}, c->so = (pl_attention_strides){c->tq * columns, columns};
    c->sk = c->sv = (pl_attention_strides){c->tk * ldk, ldk};
    void *k = numbers(c->key_type, c->batch * c->tk * ldk, 1), *v = numbers(c->key_type, c->batch * c->tk * ldk, 2);
    spoil(p, k, c->sk, keys), spoil(p, v, c->sv, keys);
    c->q = numbers(c->type, c->batch * c->tq * ldq, 0), c->k = k, c->v = v;
    p->lse = draw(0, 1) ? guarded_f32(c->batch * c->heads * c->tq) : NULL;
}

static problem random_problem(void)
{
    static const int64_t groups[] = {1, 2, 3, 7, 20};
    problem p = {.c = {.batch = draw(1, 2), .tq = draw(0, 2) ? draw(1, 4) : draw(5, 120), .causal = 1}};
    pl_attention_call *c = &p.c;
    c->key_heads = draw(1, 3), c->heads = c->key_heads * groups[draw(0, c->tq > 4 ? 2 : 4)],
    c->head_width = draw(1, 40);
    c->scale = 1 / sqrtf((float)c->head_width);
    c->tk = c->tq + draw(0, 1) * draw(0, c->tq > 4 ? 300 : ROOM_MAX), p.position = draw(0, c->tk - c->tq);
    c->window = draw(0, 1) ? draw(1, 150) : 0, c->cap = draw(0, 2) ? 0 : 0.5f * (float)draw(1, 4);
    c->type = draw(0, 1) ? PL_REAL_F32 : (pl_real)draw(0, 2), c->key_type = (pl_real)draw(0, 2);
    make_numbers(&p);
    return p;
}

static void *run(const problem *p, pl_team team)
{
    pl_attention_call c = p->c;
    c.o = guarded_bytes((uint64_t)(c.batch * c.so.batch * pl_real_bytes(c.type)), 0);
    c.position = &p->position, c.lse = p->lse;
    pl_attention_exec(&c, guarded_bytes(pl_attention_workspace_bytes(&c, team), 0), team);
    return c.o;
}

static double dot(const problem *p, int64_t at_q, int64_t at_k)
{
    double sum = 0;
    for (int64_t d = 0; d < p->c.head_width; d++)
        sum += (double)pl_real_get(p->c.type, p->c.q, at_q + d) * pl_real_get(p->c.key_type, p->c.k, at_k + d);
    return sum;
}

/* Weights of the keys [begin, end), not yet divided by their sum, which it returns. */
static double weigh(const problem *p, int64_t at_q, int64_t at_k, int64_t begin, int64_t end, double *w, double *top)
{
    const pl_attention_call *c = &p->c;
    double sum = 0;
    *top = -INFINITY;
    for (int64_t j = begin; j < end; j++) {
        w[j] = (double)c->scale * dot(p, at_q, at_k + j * c->sk.token);
        if (c->cap > 0) w[j] = (double)c->cap * tanh(w[j] / (double)c->cap);
        *top = fmax(*top, w[j]);
    }
    for (int64_t j = begin; j < end; j++) sum += w[j] = exp(w[j] - *top);
    return sum;
}

static void expect(double got, double want, double bound, const char *what, pl_isa isa)
{
    if (!(fabs(got - want) <= bound * fmax(1, fabs(want))))
        fail_msg("case %u, %s: %s is %.9g, not %.9g", this_case, pl_isa_name(isa), what, got, want);
}

/* Both of 16 bits, weights may be rounded before they meet the values; a capped score of bf16 loses no more. */
static double bound_of(const pl_attention_call *c)
{
    static const double rounding[] = {[PL_REAL_F32] = 4e-6, [PL_REAL_BF16] = 0x1p-8, [PL_REAL_F16] = 0x1p-11};
    return (c->type == PL_REAL_BF16 && c->key_type == PL_REAL_BF16 ? 4 : 1) * rounding[c->type];
}

static void check_row(const problem *p, const void *o, int64_t b, int64_t h, int64_t i, pl_isa isa)
{
    static double w[ROOM_MAX + 200];
    const pl_attention_call *c = &p->c;
    const int64_t width = c->head_width, place = p->position + i, begin = first_seen(c, place), end = place + 1;
    const int64_t at_k = b * c->sk.batch + h / (c->heads / c->key_heads) * width;
    double top, sum = weigh(p, b * c->sq.batch + i * c->sq.token + h * width, at_k, begin, end, w, &top);
    for (int64_t d = 0; d < width; d++) {
        double want = 0;
        for (int64_t j = begin; j < end; j++)
            want += w[j] / sum * (double)pl_real_get(c->key_type, c->v, at_k + j * c->sv.token + d);
        expect(pl_real_get(c->type, o, b * c->so.batch + i * c->so.token + h * width + d), want, bound_of(c), "o", isa);
    }
    if (p->lse) expect(p->lse[(b * c->heads + h) * c->tq + i], top + log(sum), 4e-6, "lse", isa);
}

static void check(const problem *p, pl_isa isa)
{
    const pl_attention_call *c = &p->c;
    const void *one = run(p, (pl_team){1, isa}), *three = run(p, (pl_team){3, isa});
    assert_memory_equal(one, three, (size_t)(c->batch * c->so.batch * pl_real_bytes(c->type)));
    for (int64_t b = 0; b < c->batch; b++)
        for (int64_t h = 0; h < c->heads; h++)
            for (int64_t i = 0; i < c->tq; i++) check_row(p, one, b, h, i, isa);
    guarded_check_all();
}

static void test_formula(void **state)
{
    (void)state;
    for (this_case = 0; this_case < CASES; this_case++) {
        drawn = 0;
        const problem p = random_problem();
        for (int isa = PL_ISA_REF; isa <= (int)pl_isa_of_machine(); isa++) check(&p, (pl_isa)isa);
        guarded_free_all();
    }
}

/* Queries beyond the end of the cache, which the last tokens of a chunk may be, read nothing that is not there. */
static void test_end_of_cache(void **state)
{
    (void)state;
    for (int isa = PL_ISA_REF; isa <= (int)pl_isa_of_machine(); isa++)
        for (int64_t tq = 3; tq <= 30; tq += 27) {
            problem p = {.c = {.batch = 1,
                               .tq = tq,
                               .tk = 300,
                               .heads = 4,
                               .head_width = 8,
                               .causal = 1,
                               .scale = 1,
                               .key_heads = 2},
                         .position = 300 - tq};
            make_numbers(&p);
            const float *whole = run(&p, (pl_team){2, (pl_isa)isa});
            p.position += 2, p.c.q = (const float *)p.c.q + 2 * p.c.sq.token, p.c.tq = tq;
            float *beyond = guarded_normal(tq * p.c.sq.token, 5);
            memcpy(beyond, p.c.q, (size_t)((tq - 2) * p.c.sq.token) * sizeof *beyond);
            p.c.q = beyond;
            const float *shifted = run(&p, (pl_team){2, (pl_isa)isa});
            for (int64_t e = 0; e < (tq - 2) * p.c.so.token; e++)
                assert_true(fabsf(whole[2 * p.c.so.token + e] - shifted[e]) < 1e-5f);
            guarded_check_all();
            guarded_free_all();
        }
}

/* Row `row` of a cache becomes row j of another, in blocks if it has such. */
static void store_row(const pl_attention_call *to, void *x, int64_t row, const pl_attention_call *from, const void *y,
                      int64_t j)
{
    const int64_t ld = to->sk.token;
    if (to->key_encoding)
        pl_encoding_narrow(to->key_encoding, (const float *)y + j * ld, ld,
                           (char *)x + row * pl_encoding_row_bytes(to->key_encoding, ld));
    else
        memcpy(pl_real_at(to->key_type, x, row * ld), pl_real_at(from->key_type, y, j * ld),
               (size_t)(ld * pl_real_bytes(to->key_type)));
}

/* A cache of so many places that holds what the queries see, key j at j mod places; the rest is not a number. */
static void *store(const problem *p, const pl_attention_call *to, const void *x)
{
    const uint64_t bytes = (uint64_t)(to->key_encoding ? pl_encoding_row_bytes(to->key_encoding, to->tk * to->sk.token)
                                                       : to->tk * to->sk.token * pl_real_bytes(to->key_type));
    void *y = guarded_bytes(bytes, 0);
    memset(y, 0xff, bytes);
    for (int64_t j = first_seen(&p->c, p->position); j < p->position + p->c.tq; j++)
        store_row(to, y, j % to->tk, &p->c, x, j);
    return y;
}

/* What an encoded cache gives back. */
static void round_to_blocks(float *x, int64_t count)
{
    char *blocks = guarded_bytes((uint64_t)pl_encoding_row_bytes(PL_ENCODING_Q8_0, count), 0);
    pl_encoding_narrow(PL_ENCODING_Q8_0, x, count, blocks);
    pl_encoding_widen(PL_ENCODING_Q8_0, blocks, count, x);
}

static problem random_stored(bool is_ring, bool is_blocks)
{
    problem p = {.c = {.batch = 1, .tq = draw(0, 1) ? draw(1, 4) : draw(5, 70), .causal = 1, .key_heads = draw(1, 3)}};
    pl_attention_call *c = &p.c;
    c->heads = c->key_heads * draw(1, 7), c->head_width = is_blocks ? 32 * draw(1, 3) : draw(1, 40);
    c->scale = 1 / sqrtf((float)c->head_width), c->cap = draw(0, 2) ? 0 : 0.5f * (float)draw(1, 4);
    c->window = is_ring ? draw(0, 3) ? draw(1, 150) : draw(250, 600) : 0;
    p.position = draw(0, 700), c->tk = p.position + c->tq + draw(0, 300);
    c->type = is_blocks || draw(0, 1) ? PL_REAL_F32 : (pl_real)draw(0, 2);
    c->key_type = is_blocks ? PL_REAL_F32 : (pl_real)draw(0, 2);
    c->sq = (pl_attention_strides){0, c->heads * c->head_width}, c->so = c->sq;
    c->sk = c->sv = (pl_attention_strides){0, c->key_heads * c->head_width};
    void *k = numbers(c->key_type, c->tk * c->sk.token, 1), *v = numbers(c->key_type, c->tk * c->sk.token, 2);
    if (is_blocks) round_to_blocks(k, c->tk * c->sk.token), round_to_blocks(v, c->tk * c->sk.token);
    c->q = numbers(c->type, c->tq * c->sq.token, 0), c->k = k, c->v = v, c->so.batch = c->tq * c->so.token;
    p.lse = guarded_f32(c->heads * c->tq);
    return p;
}

/* A ring, or blocks of 8 bits, or both, give the bits of all keys in a row. */
static void test_stores(void **state)
{
    (void)state;
    for (this_case = 0; this_case < CASES; this_case++) {
        drawn = 0;
        const bool is_blocks = draw(0, 1), is_ring = !is_blocks || draw(0, 1);
        const problem whole = random_stored(is_ring, is_blocks);
        problem stored = whole;
        stored.c.key_encoding = is_blocks ? PL_ENCODING_Q8_0 : PL_ENCODING_F32;
        if (is_ring) stored.c.tk = whole.c.window + whole.c.tq - 1 + draw(0, 3);
        stored.c.k = store(&whole, &stored.c, whole.c.k), stored.c.v = store(&whole, &stored.c, whole.c.v);
        for (int isa = PL_ISA_REF; isa <= (int)pl_isa_of_machine(); isa++) {
            const pl_team team = {(int)draw(1, 3), (pl_isa)isa};
            const void *want = run(&whole, team), *got = run(&stored, team);
            if (memcmp(want, got, (size_t)(whole.c.so.batch * pl_real_bytes(whole.c.type))) != 0)
                fail_msg("case %u, %s: ring %d, blocks %d: other bits", this_case, pl_isa_name((pl_isa)isa), is_ring,
                         is_blocks);
        }
        guarded_check_all();
        guarded_free_all();
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_formula), cmocka_unit_test(test_end_of_cache),
                                       cmocka_unit_test(test_stores)};
    seed = test_seed_said(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
