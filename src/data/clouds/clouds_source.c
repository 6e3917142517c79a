#include "data/clouds/clouds_source.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/size.h"

static const pl_clouds_source *clouds_of(const pl_source *source) { return (const pl_clouds_source *)source; }

static uint64_t pixels_of(const pl_clouds_source *c)
{
    return (uint64_t)c->frames->info.height * c->frames->info.width;
}

static pl_status describe(const pl_source *source, uint32_t micro_batch, pl_source_layout *l, pl_error *err)
{
    const pl_clouds_source *c = clouds_of(source);
    const pl_frames_info *i = &c->frames->info;
    uint64_t images;
    if (pl_size_mul(pixels_of(c), (uint64_t)c->window * sizeof(float), &images) ||
        pl_size_mul(images, micro_batch, &images) || images > INT64_MAX)
        return pl_fail(err, PL_E_CONFIG, "a micro-batch of %u sequences of %u frames of %u x %u is absurdly large",
                       micro_batch, c->window, i->height, i->width);
    *l = (pl_source_layout){.port = {{"images", PL_DTYPE_F32, images, 0, NULL},
                                     {"angles", PL_DTYPE_F32, (uint64_t)micro_batch * 2 * sizeof(float), 0, NULL},
                                     {"target", PL_DTYPE_F32, (uint64_t)micro_batch * sizeof(float), 0, NULL}},
                            .ports = 3,
                            .scratch_bytes =
                                pl_frames_picture_bytes(i) + pl_align_up(pl_picture_scratch_bytes(i->form), 64)};
    return PL_OK;
}

static void prepare(const pl_source *source, void *scratch) { (void)source, (void)scratch; }

/* The number of samples: there is none for it. */
static uint64_t place_of(const pl_clouds_source *c, pl_part part, uint64_t number)
{
    if (part == PL_PART_TRAIN) return pl_draw_at(&c->draw, number);
    return number < c->samples[part].count ? number : c->samples[part].count;
}

const pl_clouds_sample *pl_clouds_source_row(const pl_clouds_source *c, pl_part part, uint64_t number)
{
    const uint64_t place = place_of(c, part, number);
    return place < c->samples[part].count ? &c->samples[part].sample[place] : NULL;
}

/* ---- a row ---- */

typedef struct row {
    float *images, *angles, *target;
} row;

static row row_of(const pl_clouds_source *c, const pl_slot *slot, uint32_t number)
{
    return (row){(float *)slot->port[0].at + (size_t)number * c->window * pixels_of(c),
                 (float *)slot->port[1].at + (size_t)number * 2, (float *)slot->port[2].at + number};
}

static void fill_empty(const pl_clouds_source *c, row to)
{
    memset(to.images, 0, c->window * pixels_of(c) * sizeof(float));
    to.angles[0] = to.angles[1] = 0;
    *to.target = NAN;
}

static void fill_scalars(const pl_clouds_source *c, const pl_clouds_sample *s, const pl_variation *v, row to)
{
    to.angles[0] = c->zenith ? (float)pl_scale(&c->scaler.zenith, s->zenith) : 0;
    to.angles[1] = c->azimuth ? (float)pl_scale(&c->scaler.azimuth, pl_variation_azimuth(v, s->azimuth)) : 0;
    *to.target = (float)pl_scale(&c->scaler.height, (double)s->height_km);
}

static pl_status fill_images(const pl_clouds_source *c, const uint64_t *picture, const pl_variation *v, void *scratch,
                             float *images, pl_error *err)
{
    const pl_frames_info *i = &c->frames->info;
    const pl_picture_rules rules = {i->height, i->width, i->form, c->zscore};
    void *work = (uint8_t *)scratch + pl_frames_picture_bytes(i);
    for (uint32_t k = 0; k < c->window; k++, images += pixels_of(c)) {
        if (k && picture[k] == picture[k - 1]) { /* at an end of the flight */
            memcpy(images, images - pixels_of(c), pixels_of(c) * sizeof *images);
            continue;
        }
        PL_TRY(pl_frames_read_picture(c->frames, picture[k], scratch, NULL, err));
        pl_frames_drop_picture(c->frames, picture[k]);
        if (!pl_picture_make(&rules, v, scratch, work, images))
            return pl_fail(err, PL_E_DATA,
                           "%s: picture %" PRIu64 " has numbers outside [0, 1]; delete the file, it is made again from "
                           "the flights",
                           c->frames->path, picture[k]);
    }
    return PL_OK;
}

static pl_status fill_row(const pl_clouds_source *c, void *scratch, pl_part part, uint64_t number, uint64_t place,
                          row to, pl_error *err)
{
    const pl_clouds_samples *of = &c->samples[part];
    const bool varies = part == PL_PART_TRAIN && c->augment;
    pl_variation v = {.varies = false};
    if (varies) v = pl_variation_draw(&c->variation, number, c->frames->info.height, c->frames->info.width);
    fill_scalars(c, &of->sample[place], &v, to);
    return fill_images(c, of->picture + place * c->window, &v, scratch, to.images, err);
}

static pl_status fill(const pl_source *source, void *scratch, pl_slot *slot, pl_error *err)
{
    const pl_clouds_source *c = clouds_of(source);
    slot->counted = 0;
    for (uint32_t r = 0; r < slot->rows; r++) {
        const uint64_t in_step = (uint64_t)slot->micro * slot->rows + r, number = slot->step * source->batch + in_step;
        const row to = row_of(c, slot, r);
        const uint64_t all = c->samples[slot->part].count;
        const uint64_t place = in_step < source->batch ? place_of(c, slot->part, number) : all;
        if (place == all) {
            fill_empty(c, to);
            continue;
        }
        PL_TRY(fill_row(c, scratch, slot->part, number, place, to, err));
        slot->counted++;
    }
    return PL_OK;
}

static uint64_t count(const pl_source *source, pl_part part, uint64_t step)
{
    const uint64_t all = clouds_of(source)->samples[part].count, begin = step * source->batch;
    if (part == PL_PART_TRAIN) return source->batch;
    return begin >= all ? 0 : all - begin < source->batch ? all - begin : source->batch;
}

static const pl_source_kind kind = {
    .name = "clouds", .describe = describe, .prepare = prepare, .fill = fill, .count = count};

void pl_clouds_source_init(pl_clouds_source *c, uint32_t batch, uint32_t at_once, uint64_t seed)
{
    c->source = (pl_source){.kind = &kind, .batch = batch, .at_once = at_once};
    for (int part = PL_PART_TRAIN; part <= PL_PART_VALIDATION; part++)
        c->source.steps_per_epoch[part] = (c->samples[part].count + batch - 1) / batch;
    c->variation = pl_philox_init(seed, pl_stream_id("data/augment"));
}
