#include "calibrate/scratch.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>

#include "base/narrow.h"
#include "base/philox.h"
#include "base/process.h"
#include "base/size.h"
#include "ir/properties.h"

enum { NOISE_COUNT = 1 << 16 };
#define MOMENT_SCALE 1e-6f
typedef enum use { USE_FLAG, USE_ID, USE_POSITION } use;

static pl_status map(pl_scratch *s, uint64_t bytes, bool huge_pages, pl_error *err)
{
    s->bytes = bytes;
    s->mapping_bytes =
        huge_pages ? pl_align_up(bytes, PL_HUGE_PAGE_BYTES) + PL_HUGE_PAGE_BYTES : pl_align_up(bytes, PL_PAGE_BYTES);
    s->mapping =
        mmap(NULL, s->mapping_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (s->mapping == MAP_FAILED) {
        s->mapping = NULL;
        return pl_fail(err, PL_E_NOMEM, "no memory to measure kernels: %llu bytes are refused by the system",
                       (unsigned long long)bytes);
    }
    s->base =
        (unsigned char *)(uintptr_t)pl_align_up((uintptr_t)s->mapping, huge_pages ? PL_HUGE_PAGE_BYTES : PL_PAGE_BYTES);
    (void)madvise(s->mapping, s->mapping_bytes, huge_pages ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    return PL_OK;
}

/* ---- what integers are for: known from the nodes that read them ---- */

static void mark(pl_scratch *s, const pl_graph *g, pl_id value, use what, int64_t limit)
{
    if (value == PL_NONE) return;
    pl_id root = pl_value_root(g, value);
    bool known = s->used[root] == what;
    s->used[root] = (uint8_t)what;
    if (!known || limit < s->limit[root]) s->limit[root] = limit;
}

/* A cache is filled from empty to full: half of it is what a token costs on average. */
static void mark_place(pl_scratch *s, const pl_graph *g, const pl_node *n)
{
    const pl_signature *row = pl_signature_of(n->op);
    pl_id place = PL_NONE;
    int64_t places = 1;
    for (int k = 0; k < row->ins; k++) {
        if (pl_operand_has(row->in, k, PL_PLACE)) place = n->in[k];
        if (!pl_operand_has(row->in, k, PL_PLACES) || n->in[k] == PL_NONE) continue;
        const pl_shape *shape = &g->value[n->in[k]].shape;
        places = shape->dim[shape->rank - 2];
    }
    mark(s, g, place, USE_POSITION, places / 2);
}

static void find_uses(pl_scratch *s, const pl_graph *g)
{
    for (size_t i = 0; i < g->node_count; i++) {
        int64_t below = 1;
        mark(s, g, pl_node_find_ids(g, &g->node[i], &below), USE_ID, below);
        mark_place(s, g, &g->node[i]);
    }
}

/* ---- numbers ---- */

static float scale_of(pl_area_kind kind, pl_role role)
{
    if (kind == PL_AREA_GRADIENT || role == PL_ROLE_GRADIENT) return 1e-4f;
    if (role == PL_ROLE_INPUT) return 1e-4f; /* learning rate, 1 / tokens */
    return kind == PL_AREA_WEIGHT || role == PL_ROLE_WEIGHT ? 0.03f : 1.0f;
}

/* Some moments are squares, so all are absolute values. They may be f32, bf16, or codes and f32 scales: the upper half
 * of each number stands in its lower half, too, so that whatever is read at any of these places is of that size. */
static void fill_moments(const pl_scratch *s, void *out, uint64_t bytes)
{
    unsigned char *to = out;
    for (uint64_t i = 0; i < bytes; i += sizeof(uint32_t)) {
        uint32_t half = pl_f32_bits(MOMENT_SCALE * fabsf(s->noise[i / sizeof(uint32_t) & (NOISE_COUNT - 1)])) >> 16;
        uint32_t both = half << 16 | half;
        memcpy(to + i, &both, bytes - i < sizeof both ? (size_t)(bytes - i) : sizeof both);
    }
}

static void fill_floats(const pl_scratch *s, float *out, uint64_t count, float scale, bool positive)
{
    for (uint64_t i = 0; i < count; i++) {
        float x = s->noise[i & (NOISE_COUNT - 1)];
        out[i] = scale * (positive ? fabsf(x) : x);
    }
}

/* Memory for activations holds f32 at one time and 16-bit numbers at another, and weights may be encoded: the upper
 * half of each number is written into its lower half, too, so that whatever is read at any of these places is of an
 * ordinary size. */
static void repeat_halves(float *out, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        uint32_t half = pl_f32_bits(out[i]) >> 16;
        out[i] = pl_f32_of_bits(half << 16 | half);
    }
}

/* Words of a text are not equally frequent: squaring a uniform number makes small ids the common ones. */
static int32_t token_of(float x, int64_t limit)
{
    int32_t token = (int32_t)(x * x * (float)limit);
    return token < limit ? token : (int32_t)limit - 1;
}

static void fill_own(const pl_scratch *s, const pl_layout *l, pl_id id)
{
    const pl_value *v = &l->graph->value[id];
    void *at = s->base + pl_layout_offset(l, id, 0);
    uint64_t count = pl_shape_elems(&v->shape);
    if (v->role == PL_ROLE_OPTIMIZER || v->encoding) {
        fill_moments(s, at, pl_value_bytes(l->graph, id));
        return;
    }
    if (v->dtype == PL_DTYPE_F32) fill_floats(s, at, count, scale_of(PL_AREA_OWN, v->role), v->role == PL_ROLE_INPUT);
    for (uint64_t i = 0; i < count; i++) {
        float x = s->noise[i & (NOISE_COUNT - 1)];
        if (v->dtype == PL_DTYPE_BF16) ((uint16_t *)at)[i] = pl_bf16_of_f32(x);
        if (v->dtype == PL_DTYPE_F16) ((uint16_t *)at)[i] = pl_f16_of_f32(x);
        if (v->dtype == PL_DTYPE_F64) ((double *)at)[i] = 1;
        if (v->dtype == PL_DTYPE_I64) ((int64_t *)at)[i] = s->used[id] == USE_POSITION ? s->limit[id] : 1;
        if (v->dtype == PL_DTYPE_I32) ((int32_t *)at)[i] = s->used[id] == USE_ID ? token_of(x, s->limit[id]) : 1;
    }
}

void pl_scratch_fill(const pl_scratch *s, const pl_layout *l, pl_area_kind kind)
{
    const pl_area *a = &l->area[kind];
    if (kind == PL_AREA_MOMENT) {
        fill_moments(s, s->base + a->begin, a->bytes);
        return;
    }
    if (kind != PL_AREA_OWN) {
        float *out = (float *)(void *)(s->base + a->begin);
        fill_floats(s, out, a->bytes / sizeof(float), scale_of(kind, PL_ROLE_COUNT), false);
        if (kind == PL_AREA_ACTIVATION || kind == PL_AREA_WEIGHT) repeat_halves(out, a->bytes / sizeof(float));
        return;
    }
    for (size_t i = 0; i < l->graph->value_count; i++)
        if (l->kind[i] == PL_AREA_OWN) fill_own(s, l, (pl_id)i);
}

void pl_scratch_evict(const void *begin, uint64_t bytes)
{
#if defined(__x86_64__)
    enum { LINE = 64 };
    const unsigned char *at = begin;
    for (uint64_t i = 0; i < bytes; i += LINE) __builtin_ia32_clflush(at + i);
    __builtin_ia32_mfence();
#else
    (void)begin, (void)bytes;
#endif
}

/* Multiples of 2^-23: with the scales above even squares stay far from denormal. */
static void make_noise(float *noise)
{
    pl_philox philox = pl_philox_init(1, pl_stream_id("calibration"));
    for (uint32_t i = 0; i < NOISE_COUNT; i += 4) {
        uint32_t bits[4];
        pl_philox_block(&philox, 0, 0, i / 4, bits);
        for (uint32_t k = 0; k < 4; k++) noise[i + k] = 2 * pl_uniform_f32(bits[k]) - 1;
    }
}

pl_status pl_scratch_init(pl_scratch *s, const pl_layout *l, bool huge_pages, pl_error *err)
{
    pl_status status;
    *s = (pl_scratch){0};
    s->noise = pl_alloc(NOISE_COUNT, sizeof *s->noise);
    s->used = pl_alloc(l->graph->value_count + 1, sizeof *s->used);
    s->limit = pl_alloc(l->graph->value_count + 1, sizeof *s->limit);
    if (!s->noise || !s->used || !s->limit) PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "no memory to measure kernels"));
    make_noise(s->noise);
    find_uses(s, l->graph);
    PL_TRY_DONE(map(s, l->bytes, huge_pages, err));
    memset(s->base, 0, l->bytes); /* resident before the first sample */
    for (int k = 0; k < PL_AREA_COUNT; k++)
        if (k != PL_AREA_WORKSPACE) pl_scratch_fill(s, l, (pl_area_kind)k);
    return PL_OK;
done:
    pl_scratch_deinit(s);
    return status;
}

void pl_scratch_deinit(pl_scratch *s)
{
    if (s->mapping) munmap(s->mapping, s->mapping_bytes);
    pl_free(s->noise);
    pl_free(s->used);
    pl_free(s->limit);
    *s = (pl_scratch){0};
}
