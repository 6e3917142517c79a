/* Calls on bf16 and f16 arrays. What is stored with 16 bits is only stored so: the result must be, bit for bit, that of
 * the same call on the widened inputs, rounded once (base/narrow.h); the f32 calls are held to oracles in double by the
 * tests beside this one. Every level of this machine, several teams, guard zones. And the conversions themselves, for
 * every number of 16 bits and over all magnitudes of f32, against base/narrow.h. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/backend.h"
#include "backend/calls.h"
#include "kernels/kernels.h"
#include "support/guarded.h"
#include "support/program.h"

static const pl_real types[] = {PL_REAL_BF16, PL_REAL_F16};
static const int thread_counts[] = {1, 2, 8, 64};
enum { TYPES = 2, THREAD_COUNTS = 4 };

static float widened(pl_real type, uint16_t h) { return type == PL_REAL_BF16 ? pl_f32_of_bf16(h) : pl_f32_of_f16(h); }
static uint16_t narrowed(pl_real type, float x) { return type == PL_REAL_BF16 ? pl_bf16_of_f32(x) : pl_f16_of_f32(x); }

/* The same numbers twice: as 16 bits, and as the f32 that those are. */
typedef struct pair {
    int64_t count;
    pl_real type;
    void *narrow;
    float *wide;
} pair;

static pair empty_pair(pl_real type, int64_t count)
{
    return (pair){count, type, guarded_bytes((uint64_t)(count * 2), 0), guarded_f32(count)};
}

static pair make_pair(pl_real type, int64_t count, uint64_t stream)
{
    pair p = empty_pair(type, count);
    float *normal = guarded_normal(count, stream);
    for (int64_t i = 0; i < count; i++) pl_real_put(type, p.narrow, i, normal[i]);
    for (int64_t i = 0; i < count; i++) p.wide[i] = pl_real_get(type, p.narrow, i);
    return p;
}

/* The 16-bit result is the f32 result, rounded. */
static void check_pair(const pair *p, const char *what, pl_team team)
{
    const uint16_t *got = p->narrow;
    for (int64_t i = 0; i < p->count; i++) {
        if (got[i] != narrowed(p->type, p->wide[i]))
            fail_msg("%s[%lld] is %g, %g was expected (%s, %d threads, type %d)", what, (long long)i,
                     (double)pl_real_get(p->type, got, i), (double)p->wide[i], pl_isa_name(team.isa), team.threads,
                     (int)p->type);
    }
}

static void check_same(const float *got, const float *wanted, int64_t count, const char *what)
{
    for (int64_t i = 0; i < count; i++)
        if (memcmp(&got[i], &wanted[i], sizeof *got) != 0)
            fail_msg("%s[%lld] is %.9g, %.9g was expected", what, (long long)i, (double)got[i], (double)wanted[i]);
}

static void for_each_team(void (*check)(pl_real, pl_team))
{
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++)
        for (int type = 0; type < TYPES; type++)
            for (int t = 0; t < THREAD_COUNTS; t++) {
                check(types[type], (pl_team){thread_counts[t], isa});
                guarded_check_all();
                guarded_free_all();
            }
}

/* ---- conversions ---- */

static void check_widening(pl_real type, pl_team team)
{
    if (team.threads > 1) return;
    uint16_t *all = guarded_bytes(2 << 16, 0);
    float *wide = guarded_f32(1 << 16);
    for (int i = 0; i < 1 << 16; i++) all[i] = (uint16_t)i;
    pl_cast_exec(&(pl_cast_call){1 << 16, type, PL_REAL_F32, all, wide}, team);
    for (int i = 0; i < 1 << 16; i++) {
        float wanted = widened(type, all[i]);
        if (isnan(wanted) ? !isnan(wide[i]) : memcmp(&wide[i], &wanted, sizeof wanted) != 0)
            fail_msg("%04x of type %d is %g, %g was expected (%s)", i, (int)type, (double)wide[i], (double)wanted,
                     pl_isa_name(team.isa));
    }
}

/* Every 4099th pattern of bits: signs, subnormal numbers, infinities, NaN; and all ties. */
static void check_narrowing(pl_real type, pl_team team)
{
    enum { STEP = 4099, PATTERNS = (1u << 31) / STEP * 2, COUNT = PATTERNS + (1 << 16) };
    if (team.threads > 2) return;
    float *x = malloc(COUNT * sizeof *x);
    uint16_t *y = malloc(COUNT * sizeof *y);
    assert_true(x && y);
    for (uint32_t i = 0; i < PATTERNS; i++) x[i] = pl_f32_of_bits(i * STEP);
    for (uint32_t i = 0; i < 1 << 16; i++) {
        /* half way between neighbours */
        x[PATTERNS + i] = (widened(type, (uint16_t)i) + widened(type, (uint16_t)(i + 1))) / 2;
    }
    pl_cast_exec(&(pl_cast_call){COUNT, PL_REAL_F32, type, x, y}, team);
    for (int i = 0; i < COUNT; i++) {
        uint16_t wanted = narrowed(type, x[i]);
        if (y[i] != wanted)
            fail_msg("%a becomes %04x, %04x was expected (type %d, %s)", (double)x[i], y[i], wanted, (int)type,
                     pl_isa_name(team.isa));
    }
    free(x);
    free(y);
}

/* Every length of a tail; nothing past the end is touched. */
static void check_tails(pl_real type, pl_team team)
{
    pl_real other = type == PL_REAL_BF16 ? PL_REAL_F16 : PL_REAL_BF16;
    for (int64_t count = 0; count < 40; count++) {
        pair p = make_pair(type, count, 1), y = empty_pair(type, count), z = empty_pair(other, count);
        pl_cast_exec(&(pl_cast_call){count, PL_REAL_F32, type, p.wide, y.narrow}, team);
        assert_memory_equal(p.narrow, y.narrow, (size_t)count * 2);
        pl_cast_exec(&(pl_cast_call){count, type, PL_REAL_F32, p.narrow, y.wide}, team);
        check_same(y.wide, p.wide, count, "widened");
        pl_cast_exec(&(pl_cast_call){count, type, other, p.narrow, z.narrow}, team);
        z.wide = p.wide;
        check_pair(&z, "converted", team);
        guarded_check_all();
        guarded_free_all();
    }
}

/* Samples that are not side by side: those of a window. */
static void check_apart(pl_real type, pl_team team)
{
    enum { SAMPLES = 5, SAMPLE = 1009, DISTANCE = 1500, ALL = (SAMPLES - 1) * DISTANCE + SAMPLE };
    pair x = make_pair(type, ALL, 1), y = empty_pair(type, SAMPLES * SAMPLE);
    float *same = guarded_f32(SAMPLES * SAMPLE);
    pl_cast_call c = {SAMPLES * SAMPLE, PL_REAL_F32, type, x.wide, y.narrow, SAMPLE, DISTANCE};
    pl_cast_exec(&c, team);
    c.to = PL_REAL_F32, c.y = same;
    pl_cast_exec(&c, team);
    for (int i = 0; i < SAMPLES; i++) {
        assert_memory_equal((uint16_t *)y.narrow + i * SAMPLE, (uint16_t *)x.narrow + i * DISTANCE, SAMPLE * 2);
        check_same(same + i * SAMPLE, x.wide + i * DISTANCE, SAMPLE, "copied");
    }
}

/* ---- element by element ---- */

enum { COUNT = 9001 };

static void check_activation(pl_real type, pl_team team)
{
    for (pl_activation act = PL_ACT_NONE; act < PL_ACT_COUNT; act++) {
        pair x = make_pair(type, COUNT, 1), dy = make_pair(type, COUNT, 2), y = empty_pair(type, COUNT);
        pl_activation_exec(&(pl_activation_call){COUNT, act, x.wide, y.wide}, team);
        pl_activation_exec(&(pl_activation_call){COUNT, act, x.narrow, y.narrow, type}, team);
        check_pair(&y, "act(x)", team);
        pl_activation_bwd_exec(&(pl_activation_bwd_call){COUNT, act, x.wide, dy.wide, y.wide}, team);
        pl_activation_bwd_exec(&(pl_activation_bwd_call){COUNT, act, x.narrow, dy.narrow, y.narrow, type}, team);
        check_pair(&y, "dx", team);
        memcpy(dy.wide, y.wide, COUNT * sizeof(float));
        pl_activation_bwd_exec(&(pl_activation_bwd_call){COUNT, act, x.narrow, dy.narrow, dy.narrow, type}, team);
        check_pair(&dy, "dx in the place of dy", team);
        guarded_check_all();
        guarded_free_all();
    }
}

static void check_add(pl_real type, pl_team team)
{
    pair a = make_pair(type, COUNT, 1), b = make_pair(type, COUNT, 2), y = empty_pair(type, COUNT);
    pl_add_exec(&(pl_add_call){COUNT, a.wide, b.wide, y.wide}, team);
    pl_add_exec(&(pl_add_call){COUNT, a.narrow, b.narrow, y.narrow, type}, team);
    check_pair(&y, "a + b", team);
    pl_add_exec(&(pl_add_call){COUNT, a.narrow, b.narrow, b.narrow, type}, team);
    assert_memory_equal(b.narrow, y.narrow, COUNT * 2);
}

static void check_scale(pl_real type, pl_team team)
{
    pair x = make_pair(type, COUNT, 1), y = empty_pair(type, COUNT);
    pl_scale_exec(&(pl_scale_call){COUNT, -0.7f, x.wide, y.wide, PL_REAL_F32}, team);
    pl_scale_exec(&(pl_scale_call){COUNT, -0.7f, x.narrow, y.narrow, type}, team);
    for (int64_t i = 0; i < COUNT; i++) assert_true(y.wide[i] == -0.7f * x.wide[i]);
    check_pair(&y, "factor·x", team);
    pl_scale_exec(&(pl_scale_call){COUNT, -0.7f, x.narrow, x.narrow, type}, team);
    assert_memory_equal(x.narrow, y.narrow, COUNT * 2);
}

static void check_gate(pl_real type, pl_team team)
{
    pair x = make_pair(type, COUNT, 1), up = make_pair(type, COUNT, 2), y = empty_pair(type, COUNT);
    pl_gated_activation_exec(&(pl_gated_activation_call){COUNT, 1, PL_ACT_SILU, x.wide, y.wide, up.wide}, team);
    pl_gated_activation_exec(&(pl_gated_activation_call){COUNT, 1, PL_ACT_SILU, x.narrow, y.narrow, up.narrow, type},
                             team);
    check_pair(&y, "act(x)·up", team);
}

static void check_dropout(pl_real type, pl_team team)
{
    enum { SAMPLES = 3, ELEMS = 4099 + 7 };
    int64_t step = 17, first_sample = (int64_t)1 << 33;
    for (int with_residual = 0; with_residual < 2; with_residual++) {
        pair x = make_pair(type, SAMPLES * ELEMS, 1), r = make_pair(type, SAMPLES * ELEMS, 2);
        pair y = empty_pair(type, SAMPLES * ELEMS);
        pl_dropout_call c = {SAMPLES, ELEMS, 0.25f, 5, 6, &step, &first_sample, x.wide, NULL, y.wide};
        c.residual = with_residual ? r.wide : NULL;
        pl_dropout_exec(&c, team);
        c.x = x.narrow, c.y = y.narrow, c.residual = with_residual ? r.narrow : NULL, c.type = type;
        pl_dropout_exec(&c, team);
        check_pair(&y, "dropped", team);
        c.y = x.narrow;
        pl_dropout_exec(&c, team);
        assert_memory_equal(x.narrow, y.narrow, SAMPLES * ELEMS * 2);
        guarded_check_all();
        guarded_free_all();
    }
}

/* ---- rows ---- */

static void check_norm_of(pl_real type, pl_team team, int64_t rows, int64_t width, int rms)
{
    int64_t n = rows * width;
    pair x = make_pair(type, n, 1), y = empty_pair(type, n), dy = make_pair(type, n, 2), add = make_pair(type, n, 3);
    float *gamma = guarded_normal(width, 4), *beta = rms ? NULL : guarded_normal(width, 5);
    float *stats[4], *sums[4];
    for (int i = 0; i < 4; i++) stats[i] = guarded_f32(rows), sums[i] = guarded_normal(width, 6);
    pl_norm_call c = {rows, width, rms, 1e-5f, x.wide, gamma, beta, y.wide, rms ? NULL : stats[0], stats[1]};
    pl_norm_exec(&c, team);
    c.x = x.narrow, c.y = y.narrow, c.mean = rms ? NULL : stats[2], c.rstd = stats[3], c.type = type;
    pl_norm_exec(&c, team);
    check_pair(&y, "y", team);
    check_same(stats[3], stats[1], rows, "rstd");
    if (!rms) check_same(stats[2], stats[0], rows, "mean");
    pl_norm_bwd_call b = {rows, rows, width, rms, dy.wide, x.wide, gamma, c.mean, c.rstd, add.wide, y.wide, sums[0]};
    b.dbeta = rms ? NULL : sums[1];
    void *workspace = guarded_bytes(pl_norm_bwd_workspace_bytes(&b, team), 0);
    pl_norm_bwd_exec(&b, workspace, team);
    b.dy = dy.narrow, b.x = x.narrow, b.add = add.narrow, b.dx = y.narrow, b.type = type;
    b.dgamma = sums[2], b.dbeta = rms ? NULL : sums[3];
    pl_norm_bwd_exec(&b, workspace, team);
    check_pair(&y, "dx", team);
    check_same(sums[2], sums[0], width, "dgamma");
    if (!rms) check_same(sums[3], sums[1], width, "dbeta");
    guarded_check_all();
    guarded_free_all();
}

static void check_norm(pl_real type, pl_team team)
{
    for (int rms = 0; rms < 2; rms++) {
        check_norm_of(type, team, 37, 31, rms);
        check_norm_of(type, team, 129, 256, rms);
        check_norm_of(type, team, 3, 1540, rms);
    }
}

/* Tables of the type of y: as f32 tables that hold the same numbers. */
static void check_narrow_tables(const pl_embedding_call *like, const pair *y, pl_team team)
{
    const pl_real type = like->type;
    const pair table = make_pair(type, like->vocab * like->width, 6),
               places = make_pair(type, like->tokens_per_sequence * like->width, 7);
    const bool has_places = like->position_table != NULL;
    pl_embedding_call c = *like;
    c.type = PL_REAL_F32, c.y = y->wide, c.table = table.wide, c.position_table = has_places ? places.wide : NULL;
    pl_embedding_exec(&c, team);
    c.type = c.tables = type, c.y = y->narrow, c.table = table.narrow;
    c.position_table = has_places ? places.narrow : NULL;
    pl_embedding_exec(&c, team);
    check_pair(y, "y of narrow tables", team);
}

static void check_embedding_of(pl_real type, pl_team team, int64_t width, int64_t window)
{
    enum { BATCH = 5, TOKENS = 33, VOCAB = 70 };
    int64_t n = BATCH * TOKENS * window * width;
    pair y = empty_pair(type, n), dy = make_pair(type, n, 1);
    float *table = guarded_normal(VOCAB * width, 2), *places = window == 1 ? guarded_normal(TOKENS * width, 3) : NULL;
    int32_t *token = guarded_bytes(BATCH * TOKENS * sizeof *token, 0);
    for (int i = 0; i < BATCH * TOKENS; i++) token[i] = i * 7919 % VOCAB;
    pl_embedding_call c = {BATCH, TOKENS, VOCAB, width, window, token, table, places, NULL, y.wide};
    pl_embedding_exec(&c, team);
    c.y = y.narrow, c.type = type;
    pl_embedding_exec(&c, team);
    check_pair(&y, "y", team);
    check_narrow_tables(&c, &y, team);
    float *sums[2][2];
    for (int i = 0; i < 2; i++)
        sums[i][0] = guarded_normal(VOCAB * width, 4), sums[i][1] = guarded_normal(TOKENS * width, 5);
    pl_embedding_bwd_call b = {
        BATCH, TOKENS, VOCAB, width, window, token, dy.wide, sums[0][0], places ? sums[0][1] : NULL};
    pl_embedding_bwd_exec(&b, team);
    b.dy = dy.narrow, b.dtable = sums[1][0], b.dposition = places ? sums[1][1] : NULL, b.type = type;
    pl_embedding_bwd_exec(&b, team);
    check_same(sums[1][0], sums[0][0], VOCAB * width, "dtable");
    check_same(sums[1][1], sums[0][1], TOKENS * width, "dposition");
    guarded_check_all();
    guarded_free_all();
}

static void check_embedding(pl_real type, pl_team team)
{
    check_embedding_of(type, team, 64, 1);
    check_embedding_of(type, team, 29, 1);
    check_embedding_of(type, team, 19, 4);
}

/* ---- first values ---- */

static void check_first_values(pl_real type, pl_team team)
{
    enum { NUMBERS = 9001 };
    static const int64_t item = 12;
    const pair y = empty_pair(type, NUMBERS);
    void *place[] = {y.wide, y.narrow};
    for (int truncated = 0; truncated < 2; truncated++) {
        for (int k = 0; k < 2; k++) {
            const pl_normal_call c = {NUMBERS, 0.3f, 5, 6, place[k], k ? type : PL_REAL_F32};
            if (truncated)
                pl_truncated_normal_exec(&c, team);
            else
                pl_normal_exec(&c, team);
        }
        check_pair(&y, truncated ? "truncated_normal" : "normal", team);
    }
    for (int k = 0; k < 2; k++)
        pl_uniform_exec(&(pl_uniform_call){NUMBERS, 1, 2, 5, 6, &item, place[k], k ? type : PL_REAL_F32}, team);
    check_pair(&y, "uniform", team);
}

/* ---- attention: q, k and v are the columns of one matrix, as in the model ---- */

typedef struct head_shape {
    int64_t batch, tokens, heads, head_width;
} head_shape;

static pl_attention_call attention_of(head_shape s, const pair *qkv, const pair *o, float *lse, pl_real type)
{
    int64_t width = s.heads * s.head_width;
    pl_attention_strides fused = {s.tokens * 3 * width, 3 * width}, alone = {s.tokens * width, width};
    const void *q = type == PL_REAL_F32 ? qkv->wide : qkv->narrow;
    return (pl_attention_call){.batch = s.batch,
                               .tq = s.tokens,
                               .tk = s.tokens,
                               .heads = s.heads,
                               .head_width = s.head_width,
                               .causal = 1,
                               .scale = 0.3f,
                               .q = q,
                               .k = pl_real_at(type, q, width),
                               .v = pl_real_at(type, q, 2 * width),
                               .sq = fused,
                               .sk = fused,
                               .sv = fused,
                               .so = alone,
                               .o = type == PL_REAL_F32 ? (void *)o->wide : o->narrow,
                               .lse = lse,
                               .type = type,
                               .key_type = type};
}

static pl_attention_bwd_call backward_of(head_shape s, const pair *qkv, const pair *o, const float *lse,
                                         const pair *d_o, const pair *d_qkv, pl_real type)
{
    int64_t width = s.heads * s.head_width;
    pl_attention_strides fused = {s.tokens * 3 * width, 3 * width}, alone = {s.tokens * width, width};
    int f32 = type == PL_REAL_F32;
    const void *q = f32 ? qkv->wide : qkv->narrow;
    void *dq = f32 ? d_qkv->wide : d_qkv->narrow;
    return (pl_attention_bwd_call){.batch = s.batch,
                                   .tq = s.tokens,
                                   .tk = s.tokens,
                                   .heads = s.heads,
                                   .head_width = s.head_width,
                                   .causal = 1,
                                   .scale = 0.3f,
                                   .q = q,
                                   .k = pl_real_at(type, q, width),
                                   .v = pl_real_at(type, q, 2 * width),
                                   .o = f32 ? o->wide : o->narrow,
                                   .lse = lse,
                                   .d_o = f32 ? d_o->wide : d_o->narrow,
                                   .sq = fused,
                                   .sk = fused,
                                   .sv = fused,
                                   .so = alone,
                                   .sdo = alone,
                                   .dq = dq,
                                   .dk = pl_real_at(type, dq, width),
                                   .dv = pl_real_at(type, dq, 2 * width),
                                   .sdq = fused,
                                   .sdk = fused,
                                   .sdv = fused,
                                   .type = type};
}

/* What is rounded before it is multiplied: P going forward; P and dS going backward. */
static int rounds_forward(pl_real type, pl_team team) { return type == PL_REAL_BF16 && team.isa >= PL_ISA_AVX512_BF16; }
static int rounds_backward(pl_real type, pl_team team)
{
    return type == PL_REAL_BF16 && team.isa == PL_ISA_AVX512_BF16;
}

/* Rounding what is multiplied is an error of 2⁻⁸ in each term at most, and they do not all point one way; rounding the
 * result adds as much once more. */
static void check_bounds(const pair *p, const char *what)
{
    double error = 0, size = 0, worst = 0, largest = 0;
    for (int64_t i = 0; i < p->count; i++) {
        double e = pl_real_get(p->type, p->narrow, i) - p->wide[i], w = p->wide[i];
        error += e * e, size += w * w;
        worst = fmax(worst, fabs(e)), largest = fmax(largest, fabs(w));
    }
    if (!(sqrt(error) <= 0x1p-8 * sqrt(size) && worst <= 0x1p-7 * largest))
        fail_msg("%s: error %g of %g, the largest %g of %g", what, sqrt(error), sqrt(size), worst, largest);
}

static void check_attention_result(const pair *p, const char *what, int rounds, pl_team team)
{
    if (rounds)
        check_bounds(p, what);
    else
        check_pair(p, what, team);
}

static void check_lse(const float *got, const float *wanted, int64_t rows, pl_real type, pl_team team)
{
    if (!rounds_forward(type, team)) {
        check_same(got, wanted, rows, "lse");
        return;
    }
    for (int64_t i = 0; i < rows; i++) assert_true(fabsf(got[i] - wanted[i]) <= 1e-5f * fmaxf(1, fabsf(wanted[i])));
}

/* Who computes, and how a head is cut for many, is not to be seen. */
static void check_attention_alone(const pl_attention_call *c, const pl_attention_bwd_call *b, const pair *o,
                                  const pair *d_qkv, pl_team team)
{
    pl_team alone = {1, team.isa};
    uint16_t *o_again = guarded_bytes((uint64_t)o->count * 2, 0),
             *d_again = guarded_bytes((uint64_t)d_qkv->count * 2, 0);
    memcpy(o_again, o->narrow, (size_t)o->count * 2);
    memcpy(d_again, d_qkv->narrow, (size_t)d_qkv->count * 2);
    pl_attention_exec(c, guarded_bytes(pl_attention_workspace_bytes(c, alone), 0), alone);
    pl_attention_bwd_exec(b, guarded_bytes(pl_attention_bwd_workspace_bytes(b, alone), 0), alone);
    assert_memory_equal(o_again, o->narrow, (size_t)o->count * 2);
    assert_memory_equal(d_again, d_qkv->narrow, (size_t)d_qkv->count * 2);
}

static void check_attention_of(pl_real type, pl_team team, head_shape s)
{
    int64_t n = s.batch * s.tokens * s.heads * s.head_width, rows = s.batch * s.heads * s.tokens;
    pair qkv = make_pair(type, 3 * n, 1), o = empty_pair(type, n), d_o = make_pair(type, n, 2);
    pair d_qkv = empty_pair(type, 3 * n);
    float *lse[2] = {guarded_f32(rows), guarded_f32(rows)};
    pl_attention_call wide = attention_of(s, &qkv, &o, lse[0], PL_REAL_F32);
    pl_attention_call narrow = attention_of(s, &qkv, &o, lse[1], type);
    pl_attention_exec(&wide, guarded_bytes(pl_attention_workspace_bytes(&wide, team), 0), team);
    pl_attention_exec(&narrow, guarded_bytes(pl_attention_workspace_bytes(&narrow, team), 0), team);
    check_attention_result(&o, "o", rounds_forward(type, team), team);
    check_lse(lse[1], lse[0], rows, type, team);
    for (int64_t i = 0; i < n; i++)
        o.wide[i] = pl_real_get(type, o.narrow, i); /* the backward pass reads what is stored */
    pl_attention_bwd_call b = backward_of(s, &qkv, &o, lse[1], &d_o, &d_qkv, PL_REAL_F32);
    pl_attention_bwd_call c = backward_of(s, &qkv, &o, lse[1], &d_o, &d_qkv, type);
    pl_attention_bwd_exec(&b, guarded_bytes(pl_attention_bwd_workspace_bytes(&b, team), 0), team);
    pl_attention_bwd_exec(&c, guarded_bytes(pl_attention_bwd_workspace_bytes(&c, team), 0), team);
    check_attention_result(&d_qkv, "dq, dk, dv", rounds_backward(type, team), team);
    check_attention_alone(&narrow, &c, &o, &d_qkv, team);
    guarded_check_all();
    guarded_free_all();
}

/* More than four tokens: f32 has a way of its own for fewer. */
static void check_attention(pl_real type, pl_team team)
{
    check_attention_of(type, team, (head_shape){2, 70, 2, 32});
    check_attention_of(type, team, (head_shape){1, 133, 3, 13});
    check_attention_of(type, team, (head_shape){1, 5, 1, 1});
    check_attention_of(type, team, (head_shape){1, 200, 1, 47});
    check_attention_of(type, team, (head_shape){1, 290, 2, 96});
}

#if defined(__x86_64__)
/* Tiles as somebody else's code in this thread may leave them: all of 16 rows; or none. */
__attribute__((target("amx-tile"))) static void shape_tiles(int all)
{
    unsigned char config[64] __attribute__((aligned(64))) = {1};
    for (int i = 0; i < 8; i++) config[16 + 2 * i] = 64, config[48 + i] = 16;
    if (all)
        __asm__ volatile("ldtilecfg %0" : : "m"(config));
    else
        __asm__ volatile("tilerelease");
}

static void test_tiles_of_others(void **state)
{
    (void)state;
    enum { M = 8, N = 32, K = 64 };
    pl_team team = {1, pl_isa_of_machine()};
    if (team.isa < PL_ISA_AMX) skip();
    pair x = make_pair(PL_REAL_BF16, M * K, 1), w = make_pair(PL_REAL_BF16, N * K, 2);
    float *first = NULL;
    for (int shaped = -1; shaped < 2; shaped++) {
        float *c = guarded_f32(M * N);
        pl_gemm_call call = pl_gemm_linear(PL_REAL_BF16, M, N, K, x.narrow, w.narrow, c);
        call.type = PL_REAL_F32;
        if (shaped >= 0) shape_tiles(shaped);
        pl_gemm_exec(&call, guarded_bytes(pl_gemm_workspace_bytes(&call, team), 0), team);
        guarded_check_all();
        if (first) assert_memory_equal(c, first, M * N * sizeof *c);
        first = c;
    }
    guarded_free_all();
}
#endif

/* Few tokens go through tiles too: held to the scalar level, which sums in double. */
static void test_few_tokens(void **state)
{
    (void)state;
    for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++)
        for (int64_t tokens = 1; tokens <= 4; tokens++) {
            head_shape s = {2, tokens, 2, 24};
            int64_t n = 2 * tokens * 48;
            pair qkv = make_pair(PL_REAL_BF16, 3 * n, 1), o = empty_pair(PL_REAL_BF16, n);
            pl_attention_call wide = attention_of(s, &qkv, &o, NULL, PL_REAL_F32);
            pl_attention_call narrow = attention_of(s, &qkv, &o, NULL, PL_REAL_BF16);
            pl_team ref = {1, PL_ISA_REF}, team = {2, isa};
            pl_attention_exec(&wide, guarded_bytes(pl_attention_workspace_bytes(&wide, ref), 0), ref);
            pl_attention_exec(&narrow, guarded_bytes(pl_attention_workspace_bytes(&narrow, team), 0), team);
            for (int64_t i = 0; i < n; i++)
                assert_true(fabs(pl_real_get(PL_REAL_BF16, o.narrow, i) - o.wide[i]) <=
                            0x1p-8 * fabs(o.wide[i]) + (rounds_forward(PL_REAL_BF16, team) ? 0x1p-8 : 1e-6));
            guarded_check_all();
            guarded_free_all();
        }
}

static void test_conversions(void **state)
{
    (void)state;
    for_each_team(check_widening);
    for_each_team(check_narrowing);
    for_each_team(check_tails);
    for_each_team(check_apart);
}
static void test_activation(void **state) { (void)state, for_each_team(check_activation); }
static void test_add(void **state) { (void)state, for_each_team(check_add); }
static void test_scale(void **state) { (void)state, for_each_team(check_scale); }
static void test_gate(void **state) { (void)state, for_each_team(check_gate); }
static void test_dropout(void **state) { (void)state, for_each_team(check_dropout); }
static void test_norm(void **state) { (void)state, for_each_team(check_norm); }
static void test_embedding(void **state) { (void)state, for_each_team(check_embedding); }
static void test_first_values(void **state) { (void)state, for_each_team(check_first_values); }
static void test_attention(void **state) { (void)state, for_each_team(check_attention); }

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conversions),
        cmocka_unit_test(test_activation),
        cmocka_unit_test(test_add),
        cmocka_unit_test(test_scale),
        cmocka_unit_test(test_gate),
        cmocka_unit_test(test_dropout),
        cmocka_unit_test(test_norm),
        cmocka_unit_test(test_embedding),
        cmocka_unit_test(test_first_values),
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_few_tokens),
#if defined(__x86_64__)
        cmocka_unit_test(test_tiles_of_others),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
