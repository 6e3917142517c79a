/* Forward, y of a few samples lies in the workspace, where its moments and the pool are made of it, or where it is kept
 * all of it where it belongs. A window of few numbers is quicker: its thread keeps two rows of y, and no more
 * (convolution_few.c). Backward, y of a few samples is made again, turned into dy in its place, and dW and dx are made
 * of that before the next come. What a sample gives does not depend on its neighbours, and dW goes on where it stands,
 * so how many samples go together is not to be seen in the results.
 *
 * Workspace: signs | y of some samples, where it is not kept | that of the convolutions. */
#include "backend/convolution_pool.h"

#include <string.h>

#include "backend/convolution_few.h"
#include "backend/parallel.h"
#include "backend/pool.h"
#include "base/size.h"
#include "kernels/kernels.h"

enum { CHUNK_BYTES = 8 << 20, LINE_BYTES = 64 }; /* of y, and at least one sample */

static int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }
static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

static int64_t elems_of_x(const pl_convolution_shape *s) { return s->height * s->width * s->in; }
static int64_t elems_of_y(const pl_convolution_shape *s) { return s->out_height * s->out_width * s->out; }
static int64_t elems_of_pooled(const pl_convolution_shape *s)
{
    return s->out_height / 2 * (s->out_width / 2) * s->out;
}

static int64_t samples_at_once(const pl_convolution_call *c)
{
    const int64_t bytes = elems_of_y(&c->shape) * pl_real_bytes(c->type), fit = CHUNK_BYTES / bytes;
    return min_of(fit > 0 ? fit : 1, c->shape.batch);
}

static uint64_t y_bytes(const pl_convolution_call *c)
{
    return pl_align_up((uint64_t)(samples_at_once(c) * elems_of_y(&c->shape) * pl_real_bytes(c->type)), LINE_BYTES);
}

/* Samples [first, first + count) of the call alone, into y; no moments. */
static pl_convolution_call part_of(const pl_convolution_call *c, int64_t first, int64_t count, void *y)
{
    pl_convolution_call part = *c;
    part.shape.batch = count;
    part.x = pl_real_at(c->type, c->x, first * elems_of_x(&c->shape));
    part.y = y;
    part.moments = NULL;
    return part;
}

static float somewhere; /* where y would be, while bytes are counted */

/* How many go together in the last part, which may be smaller than the others. */
static int64_t rest_of(int64_t batch, int64_t at_once) { return (batch - 1) % at_once + 1; }

/* ---- forward ---- */

static int sign_of(float x) { return (x > 0) - (x < 0); }

/* Of every sample's channels, [batch, out]. */
static void find_signs(const pl_convolution_pool_call *c, float *sign)
{
    const int64_t out = c->convolution.shape.out;
    for (int64_t b = 0; b < c->convolution.shape.batch; b++)
        for (int64_t o = 0; o < out; o++) {
            const float scale = c->film ? c->film[2 * b * out + o] : 1;
            *sign++ = (float)(sign_of(c->gamma[o]) * sign_of(scale));
        }
}

static int is_few(const pl_convolution_pool_call *c, pl_team team)
{
    const pl_convolution_call *v = &c->convolution;
    return team.isa != PL_ISA_REF && !v->y && pl_convolution_is_few(&v->shape, v->algorithm);
}

static uint64_t sign_bytes(const pl_convolution_pool_call *c)
{
    const pl_convolution_shape *s = &c->convolution.shape;
    return pl_align_up((uint64_t)(s->batch * s->out) * sizeof(float), LINE_BYTES);
}

static int64_t forward_at_once(const pl_convolution_pool_call *c)
{
    return c->convolution.y ? c->convolution.shape.batch : samples_at_once(&c->convolution);
}

uint64_t pl_convolution_pool_workspace_bytes(const pl_convolution_pool_call *c, pl_team team)
{
    const int64_t at_once = forward_at_once(c);
    if (c->convolution.shape.batch == 0) return 0;
    if (is_few(c, team)) return sign_bytes(c) + pl_convolution_few_pool_workspace_bytes(c, team);
    const int64_t rest = rest_of(c->convolution.shape.batch, at_once);
    const pl_convolution_call first = part_of(&c->convolution, 0, at_once, &somewhere);
    const pl_convolution_call last = part_of(&c->convolution, 0, rest, &somewhere);
    return sign_bytes(c) + (c->convolution.y ? 0 : y_bytes(&c->convolution)) +
           larger(pl_convolution_workspace_bytes(&first, team), pl_convolution_workspace_bytes(&last, team));
}

typedef struct rows_work { /* of samples [first, first + count), whose y is there */
    const pl_convolution_pool_call *call;
    const pl_kernels *kernels;
    const float *sign;
    int64_t first, count;
    const void *y;
} rows_work;

static void make_moments(const rows_work *w, int64_t sample, int64_t row, const void *y)
{
    const pl_convolution_call *c = &w->call->convolution;
    const pl_convolution_shape *s = &c->shape;
    float *moments = c->moments + (sample * s->out_height + row) * 2 * s->out;
    w->kernels->row_moments(s->out_width, s->out, s->out, c->type, y, moments, moments + s->out);
}

/* Two rows of y, of which the second may not be there: then nothing is pooled. */
static void do_pair(const rows_work *w, int64_t in_part, int64_t pair)
{
    const pl_convolution_pool_call *c = w->call;
    const pl_convolution_shape *s = &c->convolution.shape;
    const pl_real type = c->convolution.type;
    const int64_t sample = w->first + in_part, row_elems = s->out_width * s->out, pooled = s->out_width / 2;
    const void *upper = pl_real_at(type, w->y, (in_part * s->out_height + 2 * pair) * row_elems);
    const void *lower = pl_real_at(type, upper, row_elems);
    const int whole = 2 * pair + 1 < s->out_height;
    if (c->convolution.moments) {
        make_moments(w, sample, 2 * pair, upper);
        if (whole) make_moments(w, sample, 2 * pair + 1, lower);
    }
    if (!whole) return;
    const int64_t to = (sample * (s->out_height / 2) + pair) * pooled * s->out;
    w->kernels->signed_max_pool_row(pooled, s->out, type, w->sign + sample * s->out, upper, lower,
                                    pl_real_at(type, c->pooled, to), c->argmax ? c->argmax + to : NULL);
}

static void rows_part(const void *context, int part, int parts)
{
    const rows_work *w = context;
    const int64_t pairs = (w->call->convolution.shape.out_height + 1) / 2;
    const pl_range own = pl_range_of_part(w->count * pairs, 1, part, parts);
    for (int64_t i = own.begin; i < own.end; i++) do_pair(w, i / pairs, i % pairs);
}

void pl_convolution_pool_exec(const pl_convolution_pool_call *c, void *workspace, pl_team team)
{
    const pl_convolution_call *v = &c->convolution;
    float *sign = workspace;
    char *y = (char *)workspace + sign_bytes(c), *behind = y + (v->y ? 0 : y_bytes(v));
    rows_work w = {.call = c, .kernels = pl_kernels_get(team.isa), .sign = sign, .y = v->y ? v->y : y};
    find_signs(c, sign);
    if (is_few(c, team)) {
        pl_convolution_few_pool_exec(c, sign, y, team);
        return;
    }
    for (int64_t at_once = forward_at_once(c); w.first < v->shape.batch; w.first += w.count) {
        w.count = min_of(at_once, v->shape.batch - w.first);
        const pl_convolution_call part = part_of(v, w.first, w.count, (void *)(uintptr_t)w.y);
        pl_convolution_exec(&part, behind, team);
        pl_parallel(team, w.count * elems_of_y(&v->shape), rows_part, &w);
    }
}

/* ---- backward ---- */

typedef struct products {
    pl_convolution_call y;
    pl_spread_call dy;
    pl_convolution_dw_call dw;
    pl_convolution_dx_call dx;
} products;

static products products_of(const pl_convolution_pool_bwd_call *c, int64_t first, int64_t count, void *y)
{
    const pl_convolution_call *v = &c->convolution;
    const int64_t pooled = first * elems_of_pooled(&v->shape);
    products p = {.y = part_of(v, first, count, y)};
    p.dy = (pl_spread_call){.samples = count,
                            .height = v->shape.out_height,
                            .width = v->shape.out_width,
                            .channels = v->shape.out,
                            .g = pl_real_at(v->type, c->g, pooled),
                            .argmax = c->argmax + pooled,
                            .spread = c->spread,
                            .y = y,
                            .dy = y,
                            .type = v->type};
    p.dw = (pl_convolution_dw_call){.shape = p.y.shape, .type = v->type, .dy = y, .x = p.y.x, .dw = c->dw};
    p.dw.algorithm = pl_convolution_choose_dw(&p.y.shape, v->algorithm);
    p.dx = (pl_convolution_dx_call){
        .shape = p.y.shape, .algorithm = v->algorithm, .type = v->type, .dy = y, .weight = v->weight};
    p.dx.dx = c->dx ? pl_real_at(v->type, c->dx, first * elems_of_x(&v->shape)) : NULL;
    return p;
}

static uint64_t bytes_of(const pl_convolution_pool_bwd_call *c, int64_t count, pl_team team)
{
    const products p = products_of(c, 0, count, &somewhere);
    uint64_t bytes = pl_convolution_workspace_bytes(&p.y, team);
    if (c->dw) bytes = larger(bytes, pl_convolution_dw_workspace_bytes(&p.dw, team));
    return c->dx ? larger(bytes, pl_convolution_dx_workspace_bytes(&p.dx, team)) : bytes;
}

uint64_t pl_convolution_pool_bwd_workspace_bytes(const pl_convolution_pool_bwd_call *c, pl_team team)
{
    const int64_t batch = c->convolution.shape.batch, at_once = samples_at_once(&c->convolution);
    if (batch == 0) return 0;
    return y_bytes(&c->convolution) + larger(bytes_of(c, at_once, team), bytes_of(c, rest_of(batch, at_once), team));
}

void pl_convolution_pool_bwd_exec(const pl_convolution_pool_bwd_call *c, void *workspace, pl_team team)
{
    const int64_t batch = c->convolution.shape.batch, at_once = samples_at_once(&c->convolution);
    char *behind = (char *)workspace + y_bytes(&c->convolution);
    for (int64_t first = 0; first < batch; first += at_once) {
        const products p = products_of(c, first, min_of(at_once, batch - first), workspace);
        pl_convolution_exec(&p.y, behind, team);
        pl_spread_exec(&p.dy, team);
        if (c->dw) pl_convolution_dw_exec(&p.dw, behind, team);
        if (c->dx) pl_convolution_dx_exec(&p.dx, behind, team);
    }
}
