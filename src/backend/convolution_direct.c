#include "backend/convolution_direct.h"

#include <string.h>

#include "backend/convolution_epilogue.h"
#include "backend/parallel.h"
#include "base/size.h"
#include "kernels/gemm_ahead.h"
#include "kernels/kernels.h"

enum {
    BAND_BYTES = 1 << 19, /* of the source, while one panel of B after the other passes by */
    UNITS_PER_THREAD = 4,
    PACK_ELEMS = 256, /* of k, that are packed at a time */
};

static const double parallel_macs = 1 << 19;

typedef pl_convolution_direct direct;

static int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t max_of(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t split(int64_t m, int64_t count, int64_t i) { return m / count * i + min_of(i, m % count); }

/* ---- phases ---- */

typedef struct axis { /* of a phase: output o is made of taps at places o·step − pad … of the source */
    int64_t first;    /* of its pixels of the destination */
    int64_t outputs, taps, pad;
    int64_t last_tap, apart; /* the kernel's tap t comes from here: its own is last_tap − t·apart (dx), or t */
    int64_t taps_before;     /* of earlier phases */
} axis;

typedef struct phase {
    axis y, x;
} phase;

static axis forward_axis(int64_t outputs, const pl_convolution_shape *s)
{
    return (axis){.outputs = outputs, .taps = s->kernel, .pad = s->pad};
}

/* Pixel first + stride·o has the taps that are first + pad modulo the stride; tap u meets output (place + pad −
 * u)/stride of the convolution, so they are taken from the last to the first. */
static axis backward_axis(int64_t size, int64_t first, const pl_convolution_shape *s)
{
    int64_t lowest = (first + s->pad) % s->stride;
    axis a = {.first = first, .outputs = first < size ? divide_up(size - first, s->stride) : 0, .apart = s->stride};
    a.taps = lowest < s->kernel ? divide_up(s->kernel - lowest, s->stride) : 0;
    a.pad = a.taps - 1 - (first + s->pad - lowest) / s->stride;
    a.last_tap = lowest + (a.taps - 1) * s->stride;
    for (int64_t before = 0; before < first; before++) {
        int64_t other = (before + s->pad) % s->stride;
        a.taps_before += other < s->kernel ? divide_up(s->kernel - other, s->stride) : 0;
    }
    return a;
}

static phase phase_of(const direct *d, int64_t index)
{
    const pl_convolution_shape *s = &d->shape;
    if (!d->is_dx) return (phase){forward_axis(s->out_height, s), forward_axis(s->out_width, s)};
    return (phase){backward_axis(s->height, index / d->apart, s), backward_axis(s->width, index % d->apart, s)};
}

/* ---- how it is cut ---- */

static void cut_units(direct *d)
{
    int64_t row_bytes = d->width * d->tap_words * (int64_t)sizeof(float), taps = divide_up(d->shape.kernel, d->apart);
    int64_t wanted = d->threads == 1 ? 1 : UNITS_PER_THREAD * (int64_t)d->threads;
    d->band_rows = min_of(d->rows, max_of(1, (BAND_BYTES / row_bytes - taps) / d->step + 1));
    d->unit_panels = d->panels;
    for (;;) {
        d->bands = divide_up(d->rows, d->band_rows), d->panel_units = divide_up(d->panels, d->unit_panels);
        if (d->phases * d->shape.batch * d->bands * d->panel_units >= wanted) break;
        if (d->band_rows > 4)
            d->band_rows = divide_up(d->band_rows, 2);
        else if (d->unit_panels > 1)
            d->unit_panels = divide_up(d->unit_panels, 2);
        else if (d->band_rows > 1)
            d->band_rows--;
        else
            break;
    }
    d->widened_rows = d->widen ? min_of(d->height, (d->band_rows - 1) * d->step + taps) : 0;
}

static int64_t units_of(const direct *d) { return d->phases * d->shape.batch * d->bands * d->panel_units; }

static uint64_t words_bytes(int64_t count) { return pl_align_up((uint64_t)count * sizeof(float), 64); }

static void lay_out(direct *d)
{
    const pl_gemm_kernels *t = d->kernels;
    int64_t taps = d->shape.kernel * d->shape.kernel;
    d->packed_offset = sizeof(pl_tickets);
    d->threads_offset = d->packed_offset + words_bytes(taps * d->tap_words * d->panels * t->nr);
    d->rows_offset = words_bytes(t->mr * t->nr);
    d->thread_bytes = d->rows_offset + words_bytes(d->widened_rows * d->width * d->channels);
    d->bytes = d->threads_offset + (uint64_t)d->workers * d->thread_bytes;
}

/* Pairs are multiplied where no pixel cuts one; else pixels become f32. */
static void complete(direct *d, pl_team team)
{
    d->isa = team.isa;
    d->kernels = pl_gemm_kernels_of(team.isa, d->type, d->type);
    if (d->channels % d->kernels->step) d->kernels = pl_gemm_kernels_of(team.isa, PL_REAL_F32, PL_REAL_F32);
    d->widen = d->type != PL_REAL_F32 && d->kernels->step == 1;
    d->tap_words = d->channels / d->kernels->step;
    d->panels = divide_up(d->n, d->kernels->nr);
    d->phases = d->apart * d->apart;
    double macs = pl_convolution_macs(&d->shape) * (double)d->shape.batch;
    d->threads = team.threads > 1 && macs >= parallel_macs ? team.threads : 1;
    cut_units(d);
    d->workers = (int)min_of(d->threads, units_of(d));
    lay_out(d);
}

direct pl_convolution_direct_of(const pl_convolution_call *c, pl_team team)
{
    const pl_convolution_shape *s = &c->shape;
    direct d = {.shape = *s, .type = c->type, .source = c->x, .weight = c->weight, .moments = c->moments};
    d.epilogue = pl_convolution_epilogue(c);
    d.height = s->height, d.width = s->width, d.channels = s->in, d.n = s->out;
    d.step = s->stride, d.apart = 1, d.rows = s->out_height;
    complete(&d, team);
    return d;
}

direct pl_convolution_direct_of_dx(const pl_convolution_dx_call *c, pl_team team)
{
    const pl_convolution_shape *s = &c->shape;
    direct d = {.shape = *s, .is_dx = 1, .type = c->type, .source = c->dy, .weight = c->weight};
    d.epilogue = pl_convolution_dx_epilogue(c);
    d.height = s->out_height, d.width = s->out_width, d.channels = s->out, d.n = s->in;
    d.step = 1, d.apart = s->stride, d.rows = divide_up(s->height, s->stride);
    complete(&d, team);
    return d;
}

/* ---- weights ---- */

/* Words of B of a phase lie panel by panel, in each all its taps in the order in which tiles take them. */
static uint32_t *panel_at(const direct *d, const phase *p, int64_t panel)
{
    int64_t taps_before = p->y.taps_before * d->shape.kernel + p->y.taps * p->x.taps_before;
    int64_t words = taps_before * d->panels + panel * p->y.taps * p->x.taps;
    return (uint32_t *)(void *)(d->workspace + d->packed_offset) + words * d->tap_words * d->kernels->nr;
}

static const void *weight_at(const direct *d, int64_t i) { return pl_real_at(d->type, d->weight, i); }

/* Forward: k runs along the weights of an output channel. */
static void pack_forward(const direct *d, const phase *p, int64_t panel, int64_t part, int64_t parts)
{
    const pl_gemm_kernels *t = d->kernels;
    int64_t k = d->shape.kernel * d->shape.kernel * d->channels, columns = min_of(t->nr, d->n - panel * t->nr);
    int64_t begin = part * PACK_ELEMS, end = part + 1 < parts ? begin + PACK_ELEMS : k;
    t->pack[0][d->type].b_transposed(weight_at(d, panel * t->nr * k + begin), k, end - begin, columns,
                                     panel_at(d, p, panel) + begin / t->step * t->nr, 0);
}

/* dx: k runs over the output channels, tap by tap. */
static void pack_backward(const direct *d, const phase *p, int64_t panel, int64_t tap)
{
    const pl_gemm_kernels *t = d->kernels;
    int64_t size = d->shape.kernel, u = p->y.last_tap - tap / p->x.taps * p->y.apart,
            v = p->x.last_tap - tap % p->x.taps * p->x.apart;
    t->pack[0][d->type].b(weight_at(d, (u * size + v) * d->n + panel * t->nr), size * size * d->n, d->channels,
                          min_of(t->nr, d->n - panel * t->nr), panel_at(d, p, panel) + tap * d->tap_words * t->nr, 0);
}

static void pack(const direct *d, int part, int parts)
{
    int64_t k = d->shape.kernel * d->shape.kernel * d->channels, pieces = max_of(1, k / PACK_ELEMS), job = 0;
    for (int64_t i = 0; i < d->phases; i++) {
        phase p = phase_of(d, i);
        int64_t each = d->is_dx ? p.y.taps * p.x.taps : pieces;
        for (int64_t at = 0; at < d->panels * each; at++, job++) {
            if (job % parts != part) continue;
            if (d->is_dx)
                pack_backward(d, &p, at / each, at % each);
            else
                pack_forward(d, &p, at / each, at % each, pieces);
        }
    }
}

/* ---- tiles ---- */

typedef struct band { /* of an image, and where its part of the source is */
    int64_t image, begin, end;
    const char *source; /* row `first` of the image, as tiles read it */
    int64_t first, row_bytes;
    float *tile;
} band;

typedef struct tile { /* outputs [begin, end) of a row, a panel of columns */
    int64_t row, begin, end, panel;
    int vectors;
} tile;

static const char *source_row(const band *b, int64_t y) { return b->source + (y - b->first) * b->row_bytes; }

/* Outputs whose tap x lies within the image, of the tile's. */
static void outputs_with(const direct *d, const axis *x, const tile *t, int64_t tap, int64_t *begin, int64_t *end)
{
    int64_t before = x->pad - tap, room = d->width - 1 + before; /* output o reads pixel o·step − before */
    *begin = max_of(t->begin, before > 0 ? divide_up(before, d->step) : 0);
    *end = min_of(t->end, room < 0 ? 0 : room / d->step + 1);
}

/* Taps [first, end) of a row of the kernel, for outputs [begin, begin + count) of the tile. */
static void sum_taps(const direct *d, const phase *p, const band *b, const tile *t, int64_t y, int64_t first,
                     int64_t end, int64_t begin, int64_t count, int add)
{
    const pl_gemm_kernels *k = d->kernels;
    int64_t nr = k->nr, source = t->row * d->step - p->y.pad + y;
    const char *a = source_row(b, source) + (begin * d->step - p->x.pad + first) * d->tap_words * 4;
    const uint32_t *packed = panel_at(d, p, t->panel) + (y * p->x.taps + first) * d->tap_words * nr;
    k->by_rows[count - 1][t->vectors - 1]((end - first) * d->tap_words, a, d->step * d->tap_words, packed, nr,
                                          b->tile + (begin - t->begin) * nr, nr, add, NULL);
}

/* A row of the kernel where some windows hang over the sides: neighbouring taps that the same outputs have go together.
 */
static void sum_edge(const direct *d, const phase *p, const band *b, const tile *t, int64_t y)
{
    int64_t begin, end, next_begin, next_end;
    for (int64_t x = 0, next; x < p->x.taps; x = next) {
        outputs_with(d, &p->x, t, x, &begin, &end);
        for (next = x + 1; next < p->x.taps; next++) {
            outputs_with(d, &p->x, t, next, &next_begin, &next_end);
            if (next_begin != begin || next_end != end) break;
        }
        if (begin < end) sum_taps(d, p, b, t, y, x, next, begin, end - begin, 1);
    }
}

static void sum_tile(const direct *d, const phase *p, const band *b, const tile *t)
{
    int64_t left = t->begin * d->step - p->x.pad, right = (t->end - 1) * d->step - p->x.pad + p->x.taps;
    int64_t top = t->row * d->step - p->y.pad;
    int64_t begin = max_of(0, -top), end = min_of(p->y.taps, d->height - top);
    int inside = left >= 0 && right <= d->width && p->x.taps > 0 && begin < end;
    if (!inside) memset(b->tile, 0, (size_t)((t->end - t->begin) * d->kernels->nr) * sizeof(float));
    for (int64_t y = begin; y < end; y++)
        if (inside)
            sum_taps(d, p, b, t, y, 0, p->x.taps, t->begin, t->end - t->begin, y > begin);
        else
            sum_edge(d, p, b, t, y);
}

/* The epilogue of a row of outputs: element (q, j) is column j of its output q. */
static pl_gemm_epilogue epilogue_of(const direct *d, const phase *p, const band *b, int64_t row)
{
    const pl_convolution_shape *s = &d->shape;
    int64_t height = d->is_dx ? s->height : s->out_height, width = d->is_dx ? s->width : s->out_width;
    int64_t at = ((b->image * height + p->y.first + row * d->apart) * width + p->x.first) * d->n;
    return pl_convolution_epilogue_at(&d->epilogue, at, d->apart * d->n);
}

/* What the epilogue reads comes from memory while the sums are made. */
static void fetch_ahead(const pl_gemm_epilogue *e, const tile *t, int64_t column, int64_t columns)
{
    const void *const read[] = {e->residual, e->grad_of};
    for (int i = 0; i < 2; i++)
        if (read[i])
            pl_gemm_ahead_tile(pl_real_at(e->type, read[i], t->begin * e->ldc + column),
                               e->ldc * pl_real_bytes(e->type), t->end - t->begin, columns * pl_real_bytes(e->type));
}

static void compute_row(const direct *d, const phase *p, const band *b, int64_t row, int64_t panel)
{
    const pl_gemm_kernels *k = d->kernels;
    pl_gemm_epilogue e = epilogue_of(d, p, b, row);
    int64_t columns = min_of(k->nr, d->n - panel * k->nr), tiles = divide_up(p->x.outputs, k->mr);
    for (int64_t i = 0; i < tiles; i++) {
        tile t = {.row = row, .begin = split(p->x.outputs, tiles, i), .end = split(p->x.outputs, tiles, i + 1)};
        t.panel = panel, t.vectors = columns > k->vector ? 2 : 1;
        fetch_ahead(&e, &t, panel * k->nr, columns);
        sum_tile(d, p, b, &t);
        k->finish(&e, b->tile, k->nr, t.begin, panel * k->nr, t.end - t.begin, columns);
    }
    if (!d->moments) return;
    float *moments = d->moments + (b->image * d->rows + row) * 2 * d->n + panel * k->nr;
    pl_kernels_get(d->isa)->row_moments(p->x.outputs, columns, d->n, d->type, pl_real_at(d->type, e.c, panel * k->nr),
                                        moments, moments + d->n);
}

/* ---- units ---- */

/* The rows of the source that the band reads: where they are, or widened. */
static void take_source(const direct *d, const phase *p, band *b, float *widened)
{
    int64_t first = max_of(0, b->begin * d->step - p->y.pad);
    int64_t end = min_of(d->height, (b->end - 1) * d->step - p->y.pad + p->y.taps), row_elems = d->width * d->channels;
    const void *image = pl_real_at(d->type, d->source, b->image * d->height * row_elems);
    b->first = d->widen ? first : 0;
    b->row_bytes = d->widen ? row_elems * (int64_t)sizeof(float) : row_elems * pl_real_bytes(d->type);
    b->source = d->widen ? (const char *)widened : image;
    if (d->widen && first < end)
        d->kernels->pack[0][d->type].a_rows(pl_real_at(d->type, image, first * row_elems), row_elems, end - first,
                                            row_elems, widened, row_elems);
}

static void compute_unit(const direct *d, int64_t index, char *own)
{
    phase p = phase_of(d, index / (d->panel_units * d->bands * d->shape.batch));
    int64_t group = index % d->panel_units, at = index / d->panel_units % d->bands;
    band b = {.image = index / d->panel_units / d->bands % d->shape.batch, .begin = at * d->band_rows};
    b.end = min_of(p.y.outputs, b.begin + d->band_rows);
    b.tile = (float *)(void *)own;
    if (b.begin >= b.end) return;
    take_source(d, &p, &b, (float *)(void *)(own + d->rows_offset));
    for (int64_t panel = group * d->unit_panels; panel < min_of(d->panels, (group + 1) * d->unit_panels); panel++)
        for (int64_t row = b.begin; row < b.end; row++) compute_row(d, &p, &b, row, panel);
}

static void work(const void *work_direct, int part, int parts)
{
    const direct *d = work_direct;
    char *own = d->workspace + d->threads_offset + (uint64_t)part * d->thread_bytes;
    pl_share share = {.units = units_of(d), .threads = d->workers};
    pack(d, part, parts);
    pl_barrier();
    if (part >= d->workers) return;
    while (pl_share_next(&share, (pl_tickets *)(void *)d->workspace))
        for (int64_t index = share.begin; index < share.end; index++) compute_unit(d, index, own);
}

void pl_convolution_direct_exec(direct *d, void *workspace, pl_team team)
{
    d->workspace = workspace;
    *(pl_tickets *)workspace = (pl_tickets){0};
    pl_parallel((pl_team){.threads = d->threads, .isa = team.isa}, INT64_MAX, work, d);
}
