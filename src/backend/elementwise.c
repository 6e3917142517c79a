/* Elementwise calls: the range is cut into a piece per thread at cache-line boundaries. Each element's value depends on
 * its inputs and its index alone, so the cut does not show. Short ranges stay on one thread. */
#include <stddef.h>
#include <string.h>

#include "backend/calls.h"
#include "backend/parallel.h"
#include "kernels/kernels.h"

enum { LINE_ELEMS = 32, /* of 16 bits */ DROPOUT_PIECE = 4096 };

typedef struct range {
    int64_t begin, count;
} range;

/* A call and the kernels that do it: what a part is given. */
typedef struct work {
    const void *call;
    const pl_kernels *kernels;
    pl_philox philox;
} work;

/* The piece of [0, count) that is this part's, in whole units but for the last. */
static range piece_of(int64_t count, int64_t unit, int part, int parts)
{
    pl_range r = pl_range_of_part(count, unit, part, parts);
    return (range){r.begin, r.end - r.begin};
}

static void run_parts(pl_team team, int64_t elems, pl_body *body, const void *call)
{
    work w = {.call = call, .kernels = pl_kernels_get(team.isa)};
    pl_parallel(team, elems, body, &w);
}

static void activation_part(const void *context, int part, int parts)
{
    const work *w = context;
    const pl_activation_call *c = w->call;
    range r = piece_of(c->count, LINE_ELEMS, part, parts);
    w->kernels->activation(c->act, r.count, c->type, pl_real_at(c->type, c->x, r.begin),
                           pl_real_at(c->type, c->y, r.begin));
}

void pl_activation_exec(const pl_activation_call *c, pl_team team) { run_parts(team, c->count, activation_part, c); }

/* Numbers [begin, end) of act(x)·up in 16 bits, widened a few at a time. */
static void gate_narrow(const pl_gated_activation_call *c, const pl_kernels *kernels, int64_t begin, int64_t end)
{
    enum { FEW = 256 };
    float gate[FEW], up[FEW];
    for (int64_t i = begin, count; i < end; i += count) {
        count = end - i < FEW ? end - i : FEW;
        kernels->cast(count, c->type, pl_real_at(c->type, c->x, i), PL_REAL_F32, gate);
        kernels->cast(count, c->type, pl_real_at(c->type, c->up, i), PL_REAL_F32, up);
        kernels->gated(c->act, count, gate, up, gate);
        kernels->cast(count, PL_REAL_F32, gate, c->type, pl_real_at(c->type, c->y, i));
    }
}

static void gated_activation_part(const void *context, int part, int parts)
{
    const work *w = context;
    const pl_gated_activation_call *c = w->call;
    const range r = piece_of(c->rows, 1, part, parts);
    if (c->type != PL_REAL_F32) return gate_narrow(c, w->kernels, r.begin * c->width, (r.begin + r.count) * c->width);
    for (int64_t i = r.begin; i < r.begin + r.count; i++) {
        const float *x = (const float *)c->x + (c->up ? 1 : 2) * i * c->width;
        const float *up = c->up ? (const float *)c->up + i * c->width : x + c->width;
        w->kernels->gated(c->act, c->width, x, up, (float *)c->y + i * c->width);
    }
}

void pl_gated_activation_exec(const pl_gated_activation_call *c, pl_team team)
{
    run_parts(team, c->rows * c->width, gated_activation_part, c);
}

/* The kernel works in place, on a row of each part. */
static uint64_t gated_row_bytes(const pl_gated_activation_bwd_call *c)
{
    return ((uint64_t)c->width * sizeof(float) + 63) / 64 * 64;
}

typedef struct gated_bwd_work {
    const pl_gated_activation_bwd_call *call;
    const pl_kernels *kernels;
    char *workspace;
} gated_bwd_work;

static void gated_activation_bwd_part(const void *context, int part, int parts)
{
    const gated_bwd_work *w = context;
    const pl_gated_activation_bwd_call *c = w->call;
    const range r = piece_of(c->rows, 1, part, parts);
    float *d = (float *)(void *)(w->workspace + gated_row_bytes(c) * (uint64_t)part);
    for (int64_t i = r.begin; i < r.begin + r.count; i++) {
        float *dx = c->dx + 2 * i * c->width;
        if (dx != c->x + 2 * i * c->width) memcpy(dx, c->x + 2 * i * c->width, 2 * (size_t)c->width * sizeof *dx);
        memcpy(d, c->dy + i * c->width, (size_t)c->width * sizeof *d);
        w->kernels->gated_bwd(c->act, c->width, PL_REAL_F32, dx, dx + c->width, d);
    }
}

uint64_t pl_gated_activation_bwd_workspace_bytes(const pl_gated_activation_bwd_call *c, pl_team team)
{
    return gated_row_bytes(c) * (uint64_t)team.threads;
}

void pl_gated_activation_bwd_exec(const pl_gated_activation_bwd_call *c, void *workspace, pl_team team)
{
    const gated_bwd_work w = {c, pl_kernels_get(team.isa), workspace};
    pl_parallel(team, c->rows * c->width, gated_activation_bwd_part, &w);
}

static void activation_bwd_part(const void *context, int part, int parts)
{
    const work *w = context;
    const pl_activation_bwd_call *c = w->call;
    range r = piece_of(c->count, LINE_ELEMS, part, parts);
    w->kernels->activation_bwd(c->act, r.count, c->type, pl_real_at(c->type, c->x, r.begin),
                               pl_real_at(c->type, c->dy, r.begin), pl_real_at(c->type, c->dx, r.begin));
}

void pl_activation_bwd_exec(const pl_activation_bwd_call *c, pl_team team)
{
    run_parts(team, c->count, activation_bwd_part, c);
}

static void add_part(const void *context, int part, int parts)
{
    const work *w = context;
    const pl_add_call *c = w->call;
    range r = piece_of(c->count, LINE_ELEMS, part, parts);
    w->kernels->add(r.count, c->type, pl_real_at(c->type, c->a, r.begin), pl_real_at(c->type, c->b, r.begin),
                    pl_real_at(c->type, c->y, r.begin));
}

void pl_add_exec(const pl_add_call *c, pl_team team) { run_parts(team, c->count, add_part, c); }

static void scale_part(const void *context, int part, int parts)
{
    const work *w = context;
    const pl_scale_call *c = w->call;
    range r = piece_of(c->count, LINE_ELEMS, part, parts);
    w->kernels->scale(r.count, c->type, c->factor, pl_real_at(c->type, c->x, r.begin),
                      pl_real_at(c->type, c->y, r.begin));
}

void pl_scale_exec(const pl_scale_call *c, pl_team team) { run_parts(team, c->count, scale_part, c); }

static void cast_part(const void *context, int part, int parts)
{
    const work *w = context;
    const pl_cast_call *c = w->call;
    range r = piece_of(c->count, LINE_ELEMS, part, parts);
    const int64_t sample = c->sample ? c->sample : c->count, end = r.begin + r.count;
    for (int64_t at = r.begin, count; at < end; at += count) {
        const int64_t within = at % sample, left = sample - within;
        count = end - at < left ? end - at : left;
        w->kernels->cast(count, c->from, pl_real_at(c->from, c->x, at / sample * c->distance + within), c->to,
                         pl_real_at(c->to, c->y, at));
    }
}

static void encode_part(const void *context, int part, int parts)
{
    const work *w = context;
    const pl_cast_call *c = w->call;
    const int64_t block = pl_encoding_block(c->encoding);
    const pl_range r = pl_range_of_part(c->count / block, 1, part, parts);
    w->kernels->encode_q8_0(r.end - r.begin, (const float *)c->x + r.begin * block,
                            (char *)c->y + r.begin * pl_encoding_block_bytes(c->encoding));
}

void pl_cast_exec(const pl_cast_call *c, pl_team team)
{
    run_parts(team, c->count, c->encoding ? encode_part : cast_part, c);
}

static void fill_part(const void *context, int part, int parts)
{
    const pl_fill_call *c = ((const work *)context)->call;
    range r = piece_of((int64_t)c->bytes, LINE_ELEMS * (int64_t)sizeof(float), part, parts);
    memset((char *)c->y + r.begin, 0, (size_t)r.count);
}

void pl_fill_exec(const pl_fill_call *c, pl_team team)
{
    run_parts(team, (int64_t)(c->bytes / sizeof(float)), fill_part, c);
}

/* Piece `index` of the call: DROPOUT_PIECE elements of one sample. */
static void drop_piece(const pl_dropout_call *c, const pl_kernels *kernels, pl_philox philox, int64_t index)
{
    int64_t pieces = (c->elems_per_sample + DROPOUT_PIECE - 1) / DROPOUT_PIECE, sample = index / pieces;
    int64_t first = index % pieces * DROPOUT_PIECE, rest = c->elems_per_sample - first;
    pl_dropout_range r = {.philox = philox,
                          .step = (uint32_t)*c->step,
                          .sample = (uint64_t)(*c->first_sample + sample),
                          .first = first,
                          .count = rest < DROPOUT_PIECE ? rest : DROPOUT_PIECE,
                          .probability = c->probability};
    int64_t at = sample * c->elems_per_sample + first;
    kernels->dropout(&r, c->type, pl_real_at(c->type, c->x, at),
                     c->residual ? pl_real_at(c->type, c->residual, at) : NULL, pl_real_at(c->type, c->y, at));
}

static int64_t pieces_of(const pl_dropout_call *c)
{
    return c->samples * ((c->elems_per_sample + DROPOUT_PIECE - 1) / DROPOUT_PIECE);
}

static void dropout_part(const void *context, int part, int parts)
{
    const work *w = context;
    range r = piece_of(pieces_of(w->call), 1, part, parts);
    for (int64_t i = r.begin; i < r.begin + r.count; i++) drop_piece(w->call, w->kernels, w->philox, i);
}

void pl_dropout_exec(const pl_dropout_call *c, pl_team team)
{
    work w = {.call = c, .kernels = pl_kernels_get(team.isa), .philox = pl_philox_init(c->seed, c->stream)};
    pl_parallel(team, c->samples * c->elems_per_sample, dropout_part, &w);
}
