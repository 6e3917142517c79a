#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/size.h"
#include "data/arrays/arrays_data.h"

static const pl_arrays_data *arrays_of(const pl_source *source)
{
    return (const pl_arrays_data *)(const void *)((const char *)source - offsetof(pl_arrays_data, source));
}

static uint64_t pixels_of(const pl_arrays_data *d) { return d->record.height * d->record.width; }

static pl_status describe(const pl_source *source, uint32_t micro_batch, pl_source_layout *l, pl_error *err)
{
    const pl_arrays_data *d = arrays_of(source);
    uint64_t images;
    if (pl_size_mul(pl_infer_port_bytes(&d->port), micro_batch, &images) || images > INT64_MAX)
        return pl_fail(err, PL_E_CONFIG,
                       "a micro-batch of %u samples of %" PRIu64 " frames of %" PRIu64 " x %" PRIu64
                       " is absurdly large",
                       micro_batch, d->record.window, d->record.height, d->record.width);
    *l = (pl_source_layout){
        .port = {{"images", PL_DTYPE_F32, images, 0, NULL},
                 {"angles", PL_DTYPE_F32, (uint64_t)micro_batch * PL_ARRAYS_ANGLE_COUNT * sizeof(float), 0, NULL},
                 {"target", PL_DTYPE_F32, (uint64_t)micro_batch * sizeof(float), 0, NULL}},
        .ports = 3,
        .scratch_bytes = PL_ROWS_SCRATCH_BYTES};
    return PL_OK;
}

static void prepare(const pl_source *source, void *scratch) { (void)source, (void)scratch; }

/* ---- a row ---- */

typedef struct row {
    float *images, *angles, *target;
} row;

static row row_of(const pl_arrays_data *d, const pl_slot *slot, uint32_t number)
{
    return (row){(float *)slot->port[0].at + (size_t)number * d->record.window * pixels_of(d),
                 (float *)slot->port[1].at + (size_t)number * PL_ARRAYS_ANGLE_COUNT,
                 (float *)slot->port[2].at + number};
}

static void fill_empty(const pl_arrays_data *d, row to)
{
    memset(to.images, 0, (size_t)pl_infer_port_bytes(&d->port));
    memset(to.angles, 0, PL_ARRAYS_ANGLE_COUNT * sizeof *to.angles);
    *to.target = NAN;
}

static pl_status fill_row(const pl_arrays_data *d, void *scratch, uint64_t item, row to, pl_error *err)
{
    PL_TRY(pl_rows_read(&d->rows, item, to.images, scratch, err));
    if (XXH64(to.images, (size_t)pl_infer_port_bytes(&d->port), 0) != d->sums[item])
        return pl_fail(err, PL_E_DATA,
                       "%.300s: sample %" PRIu64
                       " has other images than when %.300s was made; bring them back, or delete "
                       "that file, and it is made again",
                       d->rows.path, item, d->path);
    for (uint64_t t = 0; t < d->record.window && d->zscore; t++)
        pl_scale_each(to.images + t * pixels_of(d), pixels_of(d));
    for (int k = 0; k < PL_ARRAYS_ANGLE_COUNT; k++)
        to.angles[k] = (float)pl_scale(&d->scaler.angle[k], (double)d->angles[item * PL_ARRAYS_ANGLE_COUNT + k]);
    *to.target = (float)pl_scale(&d->scaler.target, (double)d->target[item]);
    return PL_OK;
}

/* ---- a slot ---- */

/* The number of samples where no sample stands at that place. */
static uint64_t place_of(const pl_arrays_data *d, pl_part part, uint64_t number)
{
    const uint64_t count = d->count[part];
    if (part == PL_PART_TRAIN) return pl_permutation_at(&d->order, number / count, number % count);
    return number < count ? number : count;
}

static pl_status fill(const pl_source *source, void *scratch, pl_slot *slot, pl_error *err)
{
    const pl_arrays_data *d = arrays_of(source);
    const uint64_t count = d->count[slot->part];
    slot->counted = 0;
    for (uint32_t r = 0; r < slot->rows; r++) {
        const uint64_t in_step = (uint64_t)slot->micro * slot->rows + r, number = slot->step * source->batch + in_step;
        const uint64_t place = in_step < source->batch ? place_of(d, slot->part, number) : count;
        if (place == count) {
            fill_empty(d, row_of(d, slot, r));
            continue;
        }
        PL_TRY(fill_row(d, scratch, d->item[slot->part][place], row_of(d, slot, r), err));
        slot->counted++;
    }
    return PL_OK;
}

static uint64_t count(const pl_source *source, pl_part part, uint64_t step)
{
    const uint64_t all = arrays_of(source)->count[part], begin = step * source->batch;
    if (part == PL_PART_TRAIN) return source->batch;
    return begin >= all ? 0 : all - begin < source->batch ? all - begin : source->batch;
}

static const pl_source_kind kind = {
    .name = "arrays", .describe = describe, .prepare = prepare, .fill = fill, .count = count};

void pl_arrays_source_init(pl_arrays_data *d, const pl_arrays_setup *s)
{
    d->zscore = s->zscore;
    d->order = pl_permutation_init(d->count[PL_PART_TRAIN], pl_philox_init(s->seed, pl_stream_id("data/shuffle")));
    /* Batch norm ties the samples of a training batch together; evaluation may split it. */
    d->source = (pl_source){.kind = &kind, .batch = s->batch, .at_once = s->evaluates ? 0 : s->batch};
    for (int part = PL_PART_TRAIN; part <= PL_PART_VALIDATION; part++)
        d->source.steps_per_epoch[part] = (d->count[part] + s->batch - 1) / s->batch;
    d->data.source = &d->source;
}
