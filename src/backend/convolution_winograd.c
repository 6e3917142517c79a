#include "backend/convolution_winograd.h"

#include "backend/convolution_epilogue.h"
#include "backend/parallel.h"
#include "base/size.h"
#include "kernels/gemm_ahead.h"

enum {
    UNIT_WINDOWS = 24,    /* two or more whole tiles of rows; more were no quicker */
    HALF_WINDOWS = 36,    /* the same in halves */
    NEAR_BYTES = 3 << 19, /* of windows and weights that should stay in a second-level cache */
    WEIGHTS_CHUNK = 64,   /* channels whose weights are transformed at a time */
    OUTPUTS = 2,          /* neighbouring windows that are transformed back before the epilogue */
    UNITS_PER_THREAD = 4,
    SKEW = 16 /* words: neighbouring windows do not share the sets of a cache */
};

static const double parallel_macs = 1 << 19;

typedef pl_convolution_winograd winograd;

static int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t max_of(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t split(int64_t m, int64_t count, int64_t i) { return m / count * i + min_of(i, m % count); }
static uint64_t words_bytes(int64_t count) { return pl_align_up((uint64_t)count * sizeof(float), 64); }

/* ---- how it is cut ---- */

/* Windows of a unit and one panel's weights: what is read again for every panel, and what passes by meanwhile. */
static int64_t near_bytes(const winograd *w, int64_t parts, int64_t windows)
{
    return w->points / parts * w->channels * (windows + w->kernels->nr) * (int64_t)sizeof(float);
}

static void cut_units(winograd *w)
{
    int64_t wanted = w->threads == 1 ? 1 : UNITS_PER_THREAD * (int64_t)w->threads;
    w->parts = w->m == 4 && near_bytes(w, 1, UNIT_WINDOWS) > NEAR_BYTES ? 2 : 1;
    w->part_points = w->points / w->parts;
    int more = w->parts == 2 && near_bytes(w, 2, HALF_WINDOWS) <= NEAR_BYTES;
    w->unit_windows = min_of(more ? HALF_WINDOWS : UNIT_WINDOWS, w->windows);
    if (divide_up(w->windows, w->unit_windows) < wanted) w->unit_windows = min_of(w->kernels->mr, w->windows);
    w->units = divide_up(w->windows, w->unit_windows);
}

/* Of a panel's weights, what one thread transforms at a time. */
static int64_t weight_chunks(const winograd *w) { return divide_up(w->channels, WEIGHTS_CHUNK); }

/* Of a window, for one panel. */
static int64_t kept_words(const winograd *w) { return PL_WINOGRAD_KEPT * w->kernels->nr; }

static void lay_out(winograd *w)
{
    int64_t nr = w->kernels->nr, weights = w->is_dx ? 0 : w->points * nr * WEIGHTS_CHUNK;
    int64_t kept = w->parts > 1 ? w->panels * w->unit_windows * kept_words(w) : 0;
    w->weights_offset = sizeof(pl_tickets);
    w->weights_bytes = words_bytes(w->panels * w->points * w->channels * nr);
    w->threads_offset = w->weights_offset + w->weights_bytes;
    w->sums_offset = words_bytes(max_of(w->unit_windows * w->window_words, weights));
    w->kept_offset = w->sums_offset + words_bytes(w->part_points * w->unit_windows * nr);
    w->outputs_offset = w->kept_offset + words_bytes(kept);
    w->border_offset = w->outputs_offset + words_bytes(w->m * OUTPUTS * w->m * nr);
    w->thread_bytes = w->border_offset + words_bytes(w->points * w->channels);
    w->bytes = w->threads_offset + (uint64_t)w->workers * w->thread_bytes;
}

static void complete(winograd *w, const pl_convolution_shape *s, pl_convolution_algorithm algorithm, pl_team team)
{
    w->batch = s->batch;
    w->m = algorithm == PL_CONVOLUTION_WINOGRAD4 ? 4 : 2, w->t = w->m + 2, w->points = w->t * w->t;
    w->kernels = pl_gemm_kernels_of(team.isa, PL_REAL_F32, PL_REAL_F32);
    w->transforms = pl_winograd_kernels_of(team.isa, (int)w->m);
    w->windows_y = divide_up(w->rows, w->m), w->windows_x = divide_up(w->columns, w->m);
    w->windows = w->batch * w->windows_y * w->windows_x;
    w->panels = divide_up(w->n, w->kernels->nr);
    double macs = pl_convolution_macs(s) * (double)s->batch;
    w->threads = team.threads > 1 && macs >= parallel_macs ? team.threads : 1;
    cut_units(w);
    w->workers = (int)min_of(w->threads, max_of(w->units, w->is_dx ? 0 : w->panels * weight_chunks(w)));
    w->window_words = w->part_points * w->channels + SKEW;
    lay_out(w);
}

winograd pl_convolution_winograd_of(const pl_convolution_call *c, pl_team team)
{
    const pl_convolution_shape *s = &c->shape;
    winograd w = {.type = c->type, .source = c->x, .weight = c->weight, .epilogue = pl_convolution_epilogue(c)};
    w.height = s->height, w.width = s->width, w.channels = s->in, w.pad = s->pad;
    w.rows = s->out_height, w.columns = s->out_width, w.n = s->out;
    complete(&w, s, c->algorithm, team);
    return w;
}

winograd pl_convolution_winograd_of_dx(const pl_convolution_dx_call *c, pl_team team)
{
    const pl_convolution_shape *s = &c->shape;
    winograd w = {.is_dx = 1, .type = c->type, .source = c->dy, .weight = c->weight};
    w.epilogue = pl_convolution_dx_epilogue(c);
    w.height = s->out_height, w.width = s->out_width, w.channels = s->out, w.pad = 2 - s->pad;
    w.rows = s->height, w.columns = s->width, w.n = s->in;
    complete(&w, s, c->algorithm, team);
    return w;
}

/* ---- weights ---- */

/* Channel `channel` of a panel at a point. */
static float *weights_at(const winograd *w, int64_t panel, int64_t point, int64_t channel)
{
    float *first = (float *)(void *)(w->workspace + w->weights_offset);
    return first + ((panel * w->points + point) * w->channels + channel) * w->kernels->nr;
}

/* Forward: the weights of an output channel are transformed along the input channels, then turned. */
static void transform_forward(const winograd *w, int64_t panel, int64_t channel, int64_t count, float *own)
{
    const pl_gemm_kernels *k = w->kernels;
    int64_t first = panel * k->nr, outs = min_of(k->nr, w->n - first), point = k->nr * WEIGHTS_CHUNK;
    for (int64_t i = 0; i < outs; i++)
        w->transforms->weights(w->type, count, pl_real_at(w->type, w->weight, (first + i) * 9 * w->channels + channel),
                               w->channels, 0, own + i * WEIGHTS_CHUNK, point);
    for (int64_t p = 0; p < w->points; p++)
        k->pack[0][PL_REAL_F32].b_transposed(own + p * point, WEIGHTS_CHUNK, count, outs,
                                             weights_at(w, panel, p, channel), 0);
}

/* dx: the output channels of the convolution are k, and the panel's columns lie side by side. */
static void transform_backward(const winograd *w, int64_t panel, int64_t channel, int64_t count)
{
    int64_t nr = w->kernels->nr, first = panel * nr;
    for (int64_t i = channel; i < channel + count; i++)
        w->transforms->weights(w->type, min_of(nr, w->n - first), pl_real_at(w->type, w->weight, i * 9 * w->n + first),
                               w->n, 1, weights_at(w, panel, 0, i), w->channels * nr);
}

static void transform_weights(const winograd *w, int part, int parts, char *own)
{
    const int64_t chunks = weight_chunks(w);
    for (int64_t i = part; i < w->panels * chunks; i += parts) {
        int64_t channel = i % chunks * WEIGHTS_CHUNK, count = min_of(WEIGHTS_CHUNK, w->channels - channel);
        if (w->is_dx)
            transform_backward(w, i / chunks, channel, count);
        else
            transform_forward(w, i / chunks, channel, count, (float *)(void *)own);
    }
}

/* ---- windows ---- */

typedef struct place { /* of a window */
    int64_t image, y, x;
} place;

static place place_of(const winograd *w, int64_t window)
{
    return (place){window / w->windows_x / w->windows_y, window / w->windows_x % w->windows_y, window % w->windows_x};
}

static pl_winograd_part part_of(const winograd *w, int64_t part)
{
    return w->parts == 1 ? PL_WINOGRAD_WHOLE : part == 0 ? PL_WINOGRAD_LEFT : PL_WINOGRAD_RIGHT;
}

static void transform_windows(const winograd *w, int64_t part, int64_t begin, int64_t end, char *own)
{
    const int64_t pixel = w->channels * pl_real_bytes(w->type), window_words = w->window_words;
    for (int64_t i = begin; i < end; i++) {
        place p = place_of(w, i);
        int64_t top = p.y * w->m - w->pad, left = p.x * w->m - w->pad, row = w->width;
        const char *image = (const char *)w->source + p.image * w->height * w->width * pixel;
        const char *window = own + w->border_offset;
        if (top < 0 || left < 0 || top + w->t > w->height || left + w->t > w->width) {
            pl_convolution_copy_square(image, w->height, w->width, pixel, top, left, w->t, own + w->border_offset);
            row = w->t;
        } else {
            window = image + (top * w->width + left) * pixel;
        }
        w->transforms->input(part_of(w, part), w->type, w->channels, window, row * w->channels, w->channels,
                             (float *)(void *)own + (i - begin) * window_words, w->channels);
    }
}

/* The sums of the part's points, for one panel, whose words follow each other point by point. */
static void multiply(const winograd *w, int64_t part, int64_t panel, int64_t windows, int vectors, char *own)
{
    const pl_gemm_kernels *k = w->kernels;
    const float *from = (const float *)(void *)own;
    float *sums = (float *)(void *)(own + w->sums_offset);
    int64_t tiles = divide_up(windows, k->mr), points = w->part_points;
    for (int64_t p = 0; p < points; p++)
        for (int64_t i = 0; i < tiles; i++) {
            int64_t begin = split(windows, tiles, i), rows = split(windows, tiles, i + 1) - begin;
            k->by_rows_ahead[rows - 1][vectors - 1](w->channels, from + begin * w->window_words + p * w->channels,
                                                    w->window_words, weights_at(w, panel, part * points + p, 0), k->nr,
                                                    sums + (begin * points + p) * k->nr, points * k->nr, 0, NULL);
        }
}

typedef struct run_of_windows { /* neighbours in one row, and their first pixel of the destination */
    int64_t begin, end, row, column;
    int64_t at; /* element of the destination */
} run_of_windows;

static run_of_windows run_from(const winograd *w, int64_t begin, int64_t end)
{
    place p = place_of(w, begin);
    run_of_windows r = {.begin = begin, .row = p.y * w->m, .column = p.x * w->m};
    r.end = min_of(min_of(begin + OUTPUTS, begin - p.x + w->windows_x), end);
    r.at = ((p.image * w->rows + r.row) * w->columns + r.column) * w->n;
    return r;
}

/* What is written for a run, and what the epilogue reads: a few lines of every pixel, which nothing else fetches. */
static void fetch_outputs(const winograd *w, const run_of_windows *r, int64_t panel)
{
    const pl_gemm_epilogue *e = &w->epilogue;
    const void *const used[] = {e->c, e->residual, e->grad_of, e->act_out, e->act_again};
    int64_t size = pl_real_bytes(e->type), nr = w->kernels->nr, columns = min_of(nr, w->n - panel * nr);
    int64_t pixels = min_of((r->end - r->begin) * w->m, w->columns - r->column), rows = min_of(w->m, w->rows - r->row);
    for (size_t i = 0; i < sizeof used / sizeof used[0]; i++)
        for (int64_t y = 0; used[i] && y < rows; y++)
            pl_gemm_ahead_tile(pl_real_at(e->type, used[i], r->at + y * w->columns * w->n + panel * nr), w->n * size,
                               pixels, columns * size);
}

/* Nothing is left to do with the outputs but to store them, and all of them are wanted. */
static int is_plain(const winograd *w, const run_of_windows *r, int64_t columns)
{
    const pl_gemm_epilogue *e = &w->epilogue;
    int whole = r->row + w->m <= w->rows && r->column + (r->end - r->begin) * w->m <= w->columns;
    return whole && columns % w->kernels->vector == 0 && e->type == PL_REAL_F32 && !e->bias && !e->residual &&
           !e->act_out && !e->grad_of;
}

static void finish_outputs(const winograd *w, const run_of_windows *r, int64_t panel, const float *outputs, int64_t row)
{
    int64_t nr = w->kernels->nr, columns = min_of(nr, w->n - panel * nr);
    int64_t pixels = min_of((r->end - r->begin) * w->m, w->columns - r->column);
    for (int64_t y = 0; y < min_of(w->m, w->rows - r->row); y++) {
        pl_gemm_epilogue e = pl_convolution_epilogue_at(&w->epilogue, r->at + y * w->columns * w->n, w->n);
        w->kernels->finish(&e, outputs + y * row, nr, 0, panel * nr, pixels, columns);
    }
}

/* What the left half leaves for the right one, of a window of the unit. */
static float *kept_at(const winograd *w, int64_t panel, int64_t window, char *own)
{
    return (float *)(void *)(own + w->kept_offset) + (panel * w->unit_windows + window) * kept_words(w);
}

static void keep_outputs(const winograd *w, int64_t windows, int64_t panel, int vectors, char *own)
{
    int64_t nr = w->kernels->nr;
    const float *sums = (const float *)(void *)(own + w->sums_offset);
    for (int64_t i = 0; i < windows; i++)
        w->transforms->output(PL_WINOGRAD_LEFT, vectors, sums + i * w->part_points * nr, nr, kept_at(w, panel, i, own),
                              NULL, 0, 0);
}

/* Back from the points, into the destination or through the epilogue; the unit begins at window `first`. */
static void put_outputs(const winograd *w, int64_t first, const run_of_windows *r, int64_t panel, int vectors,
                        char *own)
{
    int64_t nr = w->kernels->nr, columns = min_of(nr, w->n - panel * nr), row = OUTPUTS * w->m * nr, pixel = nr;
    const float *sums = (const float *)(void *)(own + w->sums_offset);
    float *outputs = (float *)(void *)(own + w->outputs_offset);
    int plain = is_plain(w, r, columns);
    if (plain) outputs = (float *)w->epilogue.c + r->at + panel * nr, row = w->columns * w->n, pixel = w->n;
    for (int64_t i = r->begin; i < r->end; i++)
        w->transforms->output(part_of(w, w->parts - 1), vectors, sums + (i - first) * w->part_points * nr, nr,
                              kept_at(w, panel, i - first, own), outputs + (i - r->begin) * w->m * pixel, row, pixel);
    if (!plain) finish_outputs(w, r, panel, outputs, row);
}

static void compute_part(const winograd *w, int64_t part, int64_t begin, int64_t end, char *own)
{
    transform_windows(w, part, begin, end, own);
    for (int64_t panel = 0; panel < w->panels; panel++) {
        int vectors = w->n - panel * w->kernels->nr > w->kernels->vector ? 2 : 1;
        multiply(w, part, panel, end - begin, vectors, own);
        if (part + 1 < w->parts) {
            keep_outputs(w, end - begin, panel, vectors, own);
            continue;
        }
        for (run_of_windows r = run_from(w, begin, end), next; r.begin < end; r = next) {
            next = run_from(w, r.end, end);
            if (next.begin < end) fetch_outputs(w, &next, panel);
            put_outputs(w, begin, &r, panel, vectors, own);
        }
    }
}

static void compute_unit(const winograd *w, int64_t index, char *own)
{
    int64_t begin = index * w->unit_windows, end = min_of(begin + w->unit_windows, w->windows);
    for (int64_t part = 0; part < w->parts; part++) compute_part(w, part, begin, end, own);
}

static void work(const void *work_winograd, int part, int parts)
{
    const winograd *w = work_winograd;
    char *own = w->workspace + w->threads_offset + (uint64_t)part * w->thread_bytes;
    pl_share share = {.units = w->units, .threads = w->workers};
    transform_weights(w, part, parts, own);
    pl_barrier();
    if (part >= w->workers) return;
    while (pl_share_next(&share, (pl_tickets *)(void *)w->workspace))
        for (int64_t index = share.begin; index < share.end; index++) compute_unit(w, index, own);
}

void pl_convolution_winograd_exec(winograd *w, void *workspace, pl_team team)
{
    w->workspace = workspace;
    *(pl_tickets *)workspace = (pl_tickets){0};
    pl_parallel((pl_team){.threads = w->threads, .isa = team.isa}, INT64_MAX, work, w);
}
