/* The gradient of the weights of 3 × 3 with stride 1 by F(2×2, 3×3) or F(4×4, 3×3): dW += Gᵀ[Σ (Bᵀ d B) ⊙ (A dy Aᵀ)]G,
 * the sum over the windows of an image, which is a product [out, windows]·[windows, in] for each point of the
 * transformed domain (kernels/winograd.h).
 *
 *   window    t × t pixels of x (t = m + 2) and the m × m pixels of dy that they gave
 *   stretch   some hundreds of windows of one image, one behind the other: their sums are transformed back together
 *   chunk     a part of a stretch: of k, as much as is transformed at a time
 *   block     some panels of output channels, whose sums are in the workspace at a time
 *
 * For each image, block, stretch and chunk the team transforms windows into panels as tiles read them, meets, and
 * shares out the tiles of all points, which go on where their sums stand, and meets; after the last chunk of a stretch
 * its sums are transformed back and added to dW. So an element of dW is a sum over stretches in their order, image by
 * image, each a chain over its windows for every point; how an image is cut into them says its size alone. The bits
 * depend on neither team, chunk and block nor the number of images in a call, and shorter chains round less: that is
 * why there are stretches. Windows at the border are copied with zeros around what lies in the image first. Everything
 * is f32, for numbers of 16 bits too.
 *
 * Workspace: transformed x | transformed dy | sums | per thread: windows at the border. */
#include <string.h>

#include "backend/convolution_winograd.h"
#include "backend/parallel.h"
#include "base/size.h"

enum {
    CHUNK_BYTES = 3 << 20, /* of transformed windows */
    CHUNK_LEAST = 64,      /* windows: a tile's sums are read and written once a chunk */
    STRETCH_WINDOWS = 512, /* at most; decides bits, as the rest does not */
    SUMS_BYTES = 5 << 20,  /* of a block, if more than a panel */
    SKEW = 16              /* words: neighbouring points do not share the sets of a cache */
};

static const double parallel_macs = 1 << 19;

typedef struct job {
    const pl_convolution_dw_call *call;
    const pl_gemm_kernels *kernels;
    const pl_winograd_kernels *transforms;
    int threads;
    int64_t m, t, points;
    int64_t windows_x, windows;               /* of a row; of an image */
    int64_t stretches, chunks, chunk_windows; /* of an image; of a stretch; at most */
    int64_t in_panels, out_panels, block_panels, blocks;
    int64_t x_panel, dy_panel, tile;       /* words */
    int64_t x_point, dy_point, sums_point; /* words from a point to the next */
    uint64_t dy_offset, sums_offset, threads_offset, thread_bytes, bytes;
    char *workspace;
} job;

static int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t max_of(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t split(int64_t m, int64_t count, int64_t i) { return m / count * i + min_of(i, m % count); }
static uint64_t words_bytes(int64_t count) { return pl_align_up((uint64_t)count * sizeof(float), 64); }

/* ---- how it is cut ---- */

static void cut(job *j)
{
    const int64_t word = sizeof(float), nr = j->kernels->nr, mr = j->kernels->mr;
    int64_t panel_sums = j->points * j->in_panels * j->tile * word; /* of one panel of output channels */
    j->blocks = divide_up(j->out_panels, max_of(1, SUMS_BYTES / panel_sums));
    j->block_panels = divide_up(j->out_panels, j->blocks);
    j->blocks = divide_up(j->out_panels, j->block_panels);
    int64_t window_bytes = j->points * (j->in_panels * nr + j->block_panels * mr) * word;
    int64_t longest = divide_up(j->windows, j->stretches);
    j->chunks = divide_up(longest, max_of(CHUNK_BYTES / window_bytes, CHUNK_LEAST));
    j->chunk_windows = divide_up(longest, j->chunks);
}

static void lay_out(job *j)
{
    const pl_convolution_shape *s = &j->call->shape;
    const uint64_t size = (uint64_t)pl_real_bytes(j->call->type);
    j->x_panel = j->chunk_windows * j->kernels->nr, j->dy_panel = j->chunk_windows * j->kernels->mr;
    j->x_point = j->in_panels * j->x_panel + SKEW;
    j->dy_point = j->block_panels * j->dy_panel + SKEW;
    j->sums_point = j->in_panels * j->block_panels * j->tile + SKEW;
    j->dy_offset = words_bytes(j->points * j->x_point);
    j->sums_offset = j->dy_offset + words_bytes(j->points * j->dy_point);
    j->threads_offset = j->sums_offset + words_bytes(j->points * j->sums_point);
    j->thread_bytes = pl_align_up((uint64_t)max_of(j->points * s->in, j->m * j->m * s->out) * size, 64);
    j->bytes = j->threads_offset + (uint64_t)j->threads * j->thread_bytes;
}

static job job_of(const pl_convolution_dw_call *c, pl_team team)
{
    const pl_convolution_shape *s = &c->shape;
    job j = {.call = c, .kernels = pl_gemm_kernels_of(team.isa, PL_REAL_F32, PL_REAL_F32)};
    j.m = c->algorithm == PL_CONVOLUTION_WINOGRAD4 ? 4 : 2, j.t = j.m + 2, j.points = j.t * j.t;
    j.transforms = pl_winograd_kernels_of(team.isa, (int)j.m);
    j.threads = team.threads > 1 && pl_convolution_macs(s) * (double)s->batch >= parallel_macs ? team.threads : 1;
    j.windows_x = divide_up(s->out_width, j.m), j.windows = j.windows_x * divide_up(s->out_height, j.m);
    j.in_panels = divide_up(s->in, j.kernels->nr), j.out_panels = divide_up(s->out, j.kernels->mr);
    j.stretches = divide_up(j.windows, STRETCH_WINDOWS);
    j.tile = j.kernels->mr * j.kernels->nr;
    cut(&j);
    lay_out(&j);
    return j;
}

static float *words_at(const job *j, uint64_t offset) { return (float *)(void *)(j->workspace + offset); }
static int64_t first_out(const job *j, int64_t panel) { return split(j->call->shape.out, j->out_panels, panel); }

/* ---- windows ---- */

typedef struct piece { /* windows [begin, end) of an image and the panels of output channels that are worked on */
    int64_t image, begin, end, first_panel, panels;
    int starts, ends; /* the first, the last of a stretch */
} piece;

typedef struct place { /* of a window: its first pixel of dy */
    int64_t y, x;
} place;

static place place_of(const job *j, int64_t window)
{
    return (place){window / j->windows_x * j->m, window % j->windows_x * j->m};
}

static place next_place(const job *j, place p)
{
    return p.x + j->m < j->call->shape.out_width ? (place){p.y, p.x + j->m} : (place){p.y + j->m, 0};
}

typedef struct source { /* of windows: an image of x or of dy */
    const char *image;
    int64_t height, width, channels, pad, size; /* size × size pixels a window */
} source;

static source source_of(const job *j, int64_t image, int is_x)
{
    const pl_convolution_shape *s = &j->call->shape;
    const int64_t size = pl_real_bytes(j->call->type);
    if (is_x)
        return (source){(const char *)j->call->x + image * s->height * s->width * s->in * size,
                        s->height,
                        s->width,
                        s->in,
                        s->pad,
                        j->t};
    return (source){(const char *)j->call->dy + image * s->out_height * s->out_width * s->out * size,
                    s->out_height,
                    s->out_width,
                    s->out,
                    0,
                    j->m};
}

static int is_inside(const source *f, place p)
{
    int64_t top = p.y - f->pad, left = p.x - f->pad;
    return top >= 0 && left >= 0 && top + f->size <= f->height && left + f->size <= f->width;
}

typedef struct panel { /* of channels */
    int64_t first, count;
    float *to; /* a window's word of the first point is at to + slot·count, or ·nr in x */
} panel;

static panel panel_of(const job *j, const piece *p, int is_x, int64_t i)
{
    const int64_t nr = j->kernels->nr;
    if (is_x) return (panel){i * nr, min_of(nr, j->call->shape.in - i * nr), words_at(j, 0) + i * j->x_panel};
    const int64_t first = first_out(j, p->first_panel + i);
    return (panel){first, first_out(j, p->first_panel + i + 1) - first, words_at(j, j->dy_offset) + i * j->dy_panel};
}

/* A window whose first pixel is `from`, `row` pixels to the next one: number `slot` of the chunk. */
static void transform_x(const job *j, const panel *p, const char *from, int64_t row, int64_t slot)
{
    const int64_t in = j->call->shape.in, vector = j->kernels->vector;
    float *to = p->to + slot * j->kernels->nr;
    j->transforms->input(PL_WINOGRAD_WHOLE, j->call->type, p->count, pl_real_at(j->call->type, from, p->first),
                         row * in, in, to, j->x_point);
    if (p->count % vector == 0) return;
    for (int64_t q = 0; q < j->points; q++)
        memset(to + q * j->x_point + p->count, 0, (size_t)(vector - p->count % vector) * sizeof(float));
}

static void transform_dy(const job *j, const panel *p, const char *from, int64_t row, int64_t slot)
{
    const int64_t out = j->call->shape.out;
    j->transforms->gradient(j->call->type, pl_real_at(j->call->type, from, p->first), row * out, out, out - p->first,
                            p->count, p->to + slot * p->count, j->dy_point);
}

static void transform(const job *j, int is_x, const panel *p, const char *from, int64_t row, int64_t slot)
{
    if (is_x)
        transform_x(j, p, from, row, slot);
    else
        transform_dy(j, p, from, row, slot);
}

/* Those that hang over the border first, each copied once for all panels; then the others where they are, a panel after
 * the other, which writes one stream for each point. */
static void transform_windows(const job *j, const piece *p, int is_x, pl_range slots, char *border)
{
    const source f = source_of(j, p->image, is_x);
    const int64_t pixel = f.channels * pl_real_bytes(j->call->type), panels = is_x ? j->in_panels : p->panels;
    const place first = place_of(j, p->begin + slots.begin);
    place at = first;
    for (int64_t slot = slots.begin; slot < slots.end; slot++, at = next_place(j, at)) {
        if (is_inside(&f, at)) continue;
        pl_convolution_copy_square(f.image, f.height, f.width, pixel, at.y - f.pad, at.x - f.pad, f.size, border);
        for (int64_t i = 0; i < panels; i++) {
            panel to = panel_of(j, p, is_x, i);
            transform(j, is_x, &to, border, f.size, slot);
        }
    }
    for (int64_t i = 0; i < panels; i++) {
        panel to = panel_of(j, p, is_x, i);
        at = first;
        for (int64_t slot = slots.begin; slot < slots.end; slot++, at = next_place(j, at))
            if (is_inside(&f, at))
                transform(j, is_x, &to, f.image + ((at.y - f.pad) * f.width + at.x - f.pad) * pixel, f.width, slot);
    }
}

/* ---- sums ---- */

/* Of output panel `i` of the block and input panel `column`. */
static float *sums_at(const job *j, int64_t point, int64_t column, int64_t i)
{
    return words_at(j, j->sums_offset) + point * j->sums_point + (column * j->block_panels + i) * j->tile;
}

static void multiply(const job *j, const piece *p, int part, int parts)
{
    const pl_gemm_kernels *k = j->kernels;
    int64_t tiles = j->in_panels * p->panels;
    pl_range mine = pl_range_of_part(j->points * tiles, 1, part, parts);
    for (int64_t at = mine.begin; at < mine.end; at++) {
        int64_t point = at / tiles, column = at % tiles / p->panels, i = at % p->panels;
        int64_t rows = first_out(j, p->first_panel + i + 1) - first_out(j, p->first_panel + i);
        int vectors = j->call->shape.in - column * k->nr > k->vector ? 2 : 1;
        k->by_columns[rows - 1][vectors - 1](p->end - p->begin,
                                             words_at(j, j->dy_offset) + point * j->dy_point + i * j->dy_panel, 0,
                                             words_at(j, 0) + point * j->x_point + column * j->x_panel, k->nr,
                                             sums_at(j, point, column, i), k->nr, !p->starts, NULL);
    }
}

static void add_weights(const job *j, const piece *p, int part, int parts)
{
    const int64_t nr = j->kernels->nr, in = j->call->shape.in;
    pl_range mine = pl_range_of_part(j->in_panels * p->panels, 1, part, parts);
    for (int64_t at = mine.begin; at < mine.end; at++) {
        int64_t column = at / p->panels, i = at % p->panels, first = first_out(j, p->first_panel + i);
        for (int64_t r = 0; r < first_out(j, p->first_panel + i + 1) - first; r++)
            j->transforms->add_weights(min_of(nr, in - column * nr), sums_at(j, 0, column, i) + r * nr, j->sums_point,
                                       j->call->dw + (first + r) * 9 * in + column * nr, in);
    }
}

/* ---- calls ---- */

static piece piece_of(const job *j, int64_t index)
{
    const int64_t chunk = index % j->chunks, part = index / j->chunks;
    const int64_t stretch = part % j->stretches, block = part / j->stretches % j->blocks;
    const int64_t begin = split(j->windows, j->stretches, stretch);
    const int64_t count = split(j->windows, j->stretches, stretch + 1) - begin;
    piece p = {.image = part / j->stretches / j->blocks, .first_panel = block * j->block_panels};
    p.begin = begin + split(count, j->chunks, chunk), p.end = begin + split(count, j->chunks, chunk + 1);
    p.panels = min_of(j->block_panels, j->out_panels - p.first_panel);
    p.starts = chunk == 0, p.ends = chunk + 1 == j->chunks;
    return p;
}

static void work(const void *work_job, int part, int parts)
{
    const job *j = work_job;
    const int64_t pieces = j->call->shape.batch * j->blocks * j->stretches * j->chunks;
    char *own = j->workspace + j->threads_offset + (uint64_t)part * j->thread_bytes;
    for (int64_t i = 0; i < pieces; i++) {
        piece p = piece_of(j, i);
        pl_range slots = pl_range_of_part(p.end - p.begin, 1, part, parts);
        transform_windows(j, &p, 1, slots, own);
        transform_windows(j, &p, 0, slots, own);
        pl_barrier();
        multiply(j, &p, part, parts);
        pl_barrier();
        if (p.ends) add_weights(j, &p, part, parts);
    }
}

uint64_t pl_convolution_winograd_dw_workspace_bytes(const pl_convolution_dw_call *c, pl_team team)
{
    return job_of(c, team).bytes;
}

void pl_convolution_winograd_dw_exec(const pl_convolution_dw_call *c, void *workspace, pl_team team)
{
    job j = job_of(c, team);
    j.workspace = workspace;
    pl_parallel((pl_team){.threads = j.threads, .isa = team.isa}, INT64_MAX, work, &j);
}
