/* Pools and changes of size. Rows of the result are shared out; each pixel is made by one thread from what it looks at,
 * in one order, so the bits depend neither on the team nor on how many samples the call has.
 *
 * Means and interpolations, and their transposes, are one thing: along each axis a table says which neighbours make an
 * element of the result, and with which weights. The tables lie in the workspace. */
#include "backend/pool.h"

#include <assert.h>
#include <stddef.h>

#include "backend/parallel.h"
#include "kernels/kernels.h"

typedef struct work {
    const void *call;
    const pl_kernels *kernels;
} work;

/* ---- the largest ---- */

static void max_part(const void *context, int part, int parts)
{
    const work *w = context;
    const pl_max_pool_call *c = w->call;
    int64_t height = c->height / 2, width = c->width / 2, row_elems = c->width * c->channels;
    pl_range rows = pl_range_of_part(c->samples * height, 1, part, parts);
    for (int64_t r = rows.begin; r < rows.end; r++) {
        int64_t upper = (r / height * c->height + r % height * 2) * row_elems, to = r * width * c->channels;
        w->kernels->max_pool_row(width, c->channels, c->type, pl_real_at(c->type, c->x, upper),
                                 pl_real_at(c->type, c->x, upper + row_elems), pl_real_at(c->type, c->y, to),
                                 c->argmax ? c->argmax + to : NULL);
    }
}

void pl_max_pool_exec(const pl_max_pool_call *c, pl_team team)
{
    work w = {c, pl_kernels_get(team.isa)};
    pl_parallel(team, c->samples * c->height * c->width * c->channels, max_part, &w);
}

/* What the pool has seen of row `row` of an image's: columns of it, of which it made those from `from` on. */
typedef struct seen {
    int64_t from, columns;
    int parity;
} seen;

/* Row r of all images one under the other, of `height` rows of `width` pixels each. */
static seen seen_of(int64_t r, int64_t height, int64_t width, int64_t channels)
{
    int64_t row = r % height, columns = width / 2;
    if (row >= height / 2 * 2) return (seen){.parity = 0}; /* the last one of an odd number */
    return (seen){(r / height * (height / 2) + row / 2) * columns * channels, columns, (int)(row % 2)};
}

static void max_bwd_part(const void *context, int part, int parts)
{
    const work *w = context;
    const pl_max_pool_bwd_call *c = w->call;
    const int64_t row_elems = c->width * c->channels;
    pl_range rows = pl_range_of_part(c->samples * c->height, 1, part, parts);
    for (int64_t r = rows.begin; r < rows.end; r++) {
        const seen s = seen_of(r, c->height, c->width, c->channels);
        w->kernels->max_pool_bwd_row(
            s.columns, c->width, c->channels, s.parity, c->type, pl_real_at(c->type, c->dy, s.from), c->argmax + s.from,
            c->add ? pl_real_at(c->type, c->add, r * row_elems) : NULL, pl_real_at(c->type, c->dx, r * row_elems));
    }
}

void pl_max_pool_bwd_exec(const pl_max_pool_bwd_call *c, pl_team team)
{
    work w = {c, pl_kernels_get(team.isa)};
    pl_parallel(team, c->samples * c->height * c->width * c->channels, max_bwd_part, &w);
}

static void spread_part(const void *context, int part, int parts)
{
    const work *w = context;
    const pl_spread_call *c = w->call;
    const int64_t row_elems = c->width * c->channels;
    pl_range rows = pl_range_of_part(c->samples * c->height, 1, part, parts);
    for (int64_t r = rows.begin; r < rows.end; r++) {
        const seen s = seen_of(r, c->height, c->width, c->channels);
        w->kernels->spread_row(s.columns, c->width, c->channels, s.parity, c->type, pl_real_at(c->type, c->g, s.from),
                               c->argmax + s.from, c->spread, pl_real_at(c->type, c->y, r * row_elems),
                               pl_real_at(c->type, c->dy, r * row_elems));
    }
}

void pl_spread_exec(const pl_spread_call *c, pl_team team)
{
    work w = {c, pl_kernels_get(team.isa)};
    pl_parallel(team, c->samples * c->height * c->width * c->channels, spread_part, &w);
}

/* ---- tables of weights ---- */

enum { FEW_ROWS = 64, PIECE_CHANNELS = 64 };

/* One axis, forward: n pixels of x and m of y. */
typedef struct axis {
    pl_resample_kind kind;
    int64_t n, m, kernel, stride;
} axis;

typedef struct span {
    int64_t begin, end; /* of x */
} span;

static span span_of(const axis *a, int64_t o)
{
    switch (a->kind) {
    case PL_RESAMPLE_AVERAGE:
        return (span){o * a->stride, o * a->stride + a->kernel};
    case PL_RESAMPLE_ADAPTIVE:
        return (span){o * a->n / a->m, ((o + 1) * a->n + a->m - 1) / a->m};
    default: /* o = 2i looks at i − 1 and i, o = 2i + 1 at i and i + 1 */
        return (span){o == 0 ? 0 : (o - 1) / 2, o + 1 == a->m ? a->n : (o + 1) / 2 + 1};
    }
}

static float weight_of(const axis *a, int64_t o, int64_t i)
{
    span s = span_of(a, o);
    if (a->kind != PL_RESAMPLE_DOUBLE || s.end - s.begin == 1) return 1 / (float)(s.end - s.begin);
    return i == o / 2 ? 0.75f : 0.25f;
}

/* At most: neighbours of adaptive means share one pixel. */
static int64_t taps_of(const axis *a)
{
    if (a->kind == PL_RESAMPLE_AVERAGE) return a->m * a->kernel;
    return a->kind == PL_RESAMPLE_ADAPTIVE ? a->n + a->m : 2 * a->m;
}

static uint64_t table_bytes(const axis *a, int64_t results)
{
    return ((uint64_t)results * 3 * sizeof(int64_t) + (uint64_t)taps_of(a) * sizeof(float) + 63) / 64 * 64;
}

static pl_taps lay_out(void *at, int64_t results)
{
    int64_t *whole = at;
    return (pl_taps){whole, whole + results, whole + 2 * results, (float *)(whole + 3 * results)};
}

static void fill_forward(const axis *a, const pl_taps *t)
{
    for (int64_t o = 0, at = 0; o < a->m; o++) {
        span s = span_of(a, o);
        t->first[o] = s.begin, t->count[o] = s.end - s.begin, t->at[o] = at;
        for (int64_t i = s.begin; i < s.end; i++) t->weight[at++] = weight_of(a, o, i);
    }
}

/* Which of y look at i: neighbours, since neither end of a span goes back as o grows. */
static void fill_backward(const axis *a, const pl_taps *t)
{
    for (int64_t i = 0, at = 0, low = 0; i < a->n; i++) {
        while (low < a->m && span_of(a, low).end <= i) low++;
        t->first[i] = low, t->count[i] = 0, t->at[i] = at;
        for (int64_t o = low; o < a->m && span_of(a, o).begin <= i; o++, t->count[i]++)
            t->weight[at++] = weight_of(a, o, i);
    }
}

/* ---- weighted sums ---- */

typedef struct resample_work {
    const pl_resample_call *call;
    const pl_kernels *kernels;
    axis down, across;
    pl_taps down_taps, across_taps;
    int64_t height, width, from_height, from_width; /* of the result, and of what it is made of */
    int64_t piece;                                  /* channels of an item */
} resample_work;

static resample_work resample_layout(const pl_resample_call *c, void *workspace)
{
    resample_work w = {.call = c,
                       .down = {c->kind, c->height, c->out_height, c->kernel, c->stride},
                       .across = {c->kind, c->width, c->out_width, c->kernel, c->stride},
                       .height = c->backward ? c->height : c->out_height,
                       .width = c->backward ? c->width : c->out_width,
                       .from_height = c->backward ? c->out_height : c->height,
                       .from_width = c->backward ? c->out_width : c->width};
    /* few rows (a mean over the whole image): channels are shared out, too */
    w.piece = w.height * c->samples < FEW_ROWS && c->channels > PIECE_CHANNELS ? PIECE_CHANNELS : c->channels;
    if (!workspace) return w;
    w.down_taps = lay_out(workspace, w.height);
    w.across_taps = lay_out((char *)workspace + table_bytes(&w.down, w.height), w.width);
    return w;
}

uint64_t pl_resample_workspace_bytes(const pl_resample_call *c, pl_team team)
{
    (void)team;
    resample_work w = resample_layout(c, NULL);
    return table_bytes(&w.down, w.height) + table_bytes(&w.across, w.width);
}

static void resample_item(const resample_work *w, int64_t item)
{
    const pl_resample_call *c = w->call;
    int64_t pieces = (c->channels + w->piece - 1) / w->piece, r = item / pieces, channel = item % pieces * w->piece;
    int64_t row = r % w->height, from = r / w->height * w->from_height + w->down_taps.first[row];
    int64_t left = c->channels - channel, row_ld = w->from_width * c->channels;
    int64_t to = r * w->width * c->channels + channel;
    pl_resample_row made = {.columns = w->width,
                            .channels = c->channels,
                            .count = left < w->piece ? left : w->piece,
                            .across = w->across_taps,
                            .rows = w->down_taps.count[row],
                            .row_ld = row_ld,
                            .row_weight = w->down_taps.weight + w->down_taps.at[row]};
    if (made.rows == 0) from = 0; /* nobody looked at this row: nothing is read */
    w->kernels->resample_row(&made, c->type, pl_real_at(c->type, c->from, from * row_ld + channel),
                             c->add ? pl_real_at(c->type, c->add, to) : NULL, pl_real_at(c->type, c->to, to));
}

static void fill(const resample_work *w)
{
    void (*fill_axis)(const axis *, const pl_taps *) = w->call->backward ? fill_backward : fill_forward;
    fill_axis(&w->down, &w->down_taps);
    fill_axis(&w->across, &w->across_taps);
}

static void resample_part(const void *context, int part, int parts)
{
    const resample_work *w = context;
    const pl_resample_call *c = w->call;
    int64_t pieces = (c->channels + w->piece - 1) / w->piece;
    if (part == 0) fill(w);
    pl_barrier();
    pl_range items = pl_range_of_part(c->samples * w->height * pieces, 1, part, parts);
    for (int64_t i = items.begin; i < items.end; i++) resample_item(w, i);
}

void pl_resample_exec(const pl_resample_call *c, void *workspace, pl_team team)
{
    assert(c->out_height > 0 && c->out_width > 0 && (c->backward || !c->add));
    resample_work w = resample_layout(c, workspace);
    w.kernels = pl_kernels_get(team.isa);
    int64_t x = c->height * c->width, y = c->out_height * c->out_width;
    pl_parallel(team, c->samples * c->channels * (x > y ? x : y), resample_part, &w);
}
