#include "data/clouds/clouds_data.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/size.h"
#include "base/units.h"
#include "data/clouds/lidar.h"

enum { RECORDS = 64 }; /* read at once; the longest window, too */

/* ---- which data these are ---- */

static pl_status match(const pl_data *data, const pl_facts *saved, const char *saved_path, bool trains, pl_error *err)
{
    const pl_facts *now = &data->identity;
    if (pl_facts_differ(saved, now, "scalers"))
        return pl_fail(err, PL_E_CONFIG,
                       "%.350s: was trained with other means and deviations of angles and heights than those of the "
                       "training flights in %.350s; name the flights and the stage that it was trained with",
                       saved_path, data->path);
    if (trains && (pl_facts_differ(saved, now, "frames") || pl_facts_differ(saved, now, "split")))
        return pl_fail(err, PL_E_CONFIG,
                       "%.350s: was trained on other flights than those in %.350s, or on another part of them; resume "
                       "with the same, or train on these in another folder with `run.out`",
                       saved_path, data->path);
    return PL_OK;
}

static void close_clouds(pl_data *data)
{
    pl_clouds_data *d = (pl_clouds_data *)data;
    pl_frames_close(&d->frames);
    for (int part = PL_PART_TRAIN; part <= PL_PART_VALIDATION; part++) {
        pl_free(d->source.samples[part].sample);
        pl_free(d->source.samples[part].picture);
    }
    pl_free(d->split);
    pl_free(d->flight);
    pl_free(d);
}

static uint64_t count_labels(const pl_data *data)
{
    return pl_clouds_data_of(data)->source.samples[PL_PART_VALIDATION].count;
}

static pl_label label_at(const pl_data *data, uint64_t i)
{
    const pl_clouds_data *d = pl_clouds_data_of(data);
    const pl_clouds_sample *s = &d->source.samples[PL_PART_VALIDATION].sample[i];
    return (pl_label){d->flight[s->flight].name, s->frame, s->seconds, (double)s->height_km};
}

static const pl_scaler *scaler_of(const pl_data *data) { return &pl_clouds_data_of(data)->source.scaler.height; }

static const pl_labels labels = {.unit = "km", .count = count_labels, .at = label_at, .scaler = scaler_of};
static const pl_data_kind clouds = {.match = match, .close = close_clouds, .labels = &labels};

static uint64_t hash_split(const pl_clouds_data *d, const pl_clouds_setup *s)
{
    XXH64_state_t state;
    XXH64_reset(&state, 0);
    for (uint32_t i = 0; i < d->frames.info.flights; i++) {
        const pl_flight_split *f = &d->split[i];
        const uint64_t of[] = {f->train, f->end, f->held_out};
        XXH64_update(&state, d->flight[i].name, strlen(d->flight[i].name) + 1);
        XXH64_update(&state, of, sizeof of);
    }
    const bool weighs = s->stage == PL_SPLIT_FINAL;
    const uint64_t of[] = {(uint64_t)s->stage, s->window, weighs ? d->heavy_begin : 0, weighs ? d->heavy_end : 0};
    const double factor = weighs ? s->overweight_factor : 1;
    XXH64_update(&state, of, sizeof of);
    XXH64_update(&state, &factor, sizeof factor);
    return pl_fact_of_hash(XXH64_digest(&state));
}

static uint64_t hash_scalers(const pl_clouds_scalers *s) { return pl_fact_of_hash(XXH64(s, sizeof *s, 0)); }

/* ---- the flights ---- */

static void say_file(pl_clouds_data *d)
{
    const pl_frames_info *i = &d->frames.info;
    d->data.path = d->frames.path;
    d->data.file = "frame file";
    d->data.file_bytes = pl_frames_file_bytes(i);
    pl_facts_add(&d->data.extents, "height", i->height);
    pl_facts_add(&d->data.extents, "width", i->width);
}

static pl_status check_overweight(const pl_clouds_data *d, const pl_clouds_setup *s, pl_error *err)
{
    uint32_t number;
    if (s->stage != PL_SPLIT_FINAL || !s->overweight[0]) return PL_OK;
    PL_TRY(pl_split_find(d->flight, d->frames.info.flights, "overweight_flight", s->overweight, &number, err));
    if (!d->split[number].held_out) return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "%s and overweight_flight are both %.100s: what is held out cannot be trained on more often; name "
                   "another flight, or none",
                   s->stage_key, s->overweight);
}

static pl_status split_flights(pl_clouds_data *d, const pl_clouds_setup *s, pl_error *err)
{
    const uint32_t flights = d->frames.info.flights;
    uint32_t chosen;
    d->flight = pl_alloc(flights, sizeof *d->flight);
    d->split = pl_alloc(flights, sizeof *d->split);
    if (!d->flight || !d->split) return pl_fail(err, PL_E_NOMEM, "no memory for the flights of %s", s->frames_path);
    PL_TRY(pl_frames_read_flights(&d->frames, d->flight, err));
    PL_TRY(pl_split_find(d->flight, flights, s->stage_key, s->flight, &chosen, err));
    PL_TRY(pl_split_make(s->stage, d->flight, flights, chosen, d->split, err));
    return check_overweight(d, s, err);
}

/* ---- samples and scalers ---- */

typedef struct walk {
    pl_clouds_data *d;
    const pl_clouds_setup *s;
    pl_split_list validation; /* the list that the validation part uses */
    uint64_t label;           /* labels of the flight so far */
    pl_scaler_sum zenith, azimuth, height;
    uint64_t damaged, damaged_pixels;           /* frames whose picture has pixels that are not numbers */
    uint64_t unseen, unseen_frame, unseen_from; /* frames without any finite number; the first, and its flight */
} walk;

static uint64_t count_held(const walk *w, uint32_t flight)
{
    const pl_flight_split *f = &w->d->split[flight];
    if (w->validation == PL_SPLIT_INNER) return f->end - f->train;
    return f->held_out ? w->d->flight[flight].labels : 0;
}

static pl_status take_room(walk *w, pl_error *err)
{
    pl_clouds_data *d = w->d;
    uint64_t count[2] = {0};
    for (uint32_t i = 0; i < d->frames.info.flights; i++) {
        count[PL_PART_TRAIN] += d->split[i].train;
        count[PL_PART_VALIDATION] += count_held(w, i);
    }
    for (int part = PL_PART_TRAIN; part <= PL_PART_VALIDATION; part++) {
        pl_clouds_samples *to = &d->source.samples[part];
        to->sample = pl_alloc(count[part], sizeof *to->sample);
        to->picture = pl_alloc(count[part], w->s->window * sizeof *to->picture);
        if (!to->sample || !to->picture)
            return pl_fail(err, PL_E_NOMEM, "no memory for the list of %" PRIu64 " samples of %s", count[part],
                           w->s->frames_path);
    }
    return PL_OK;
}

static pl_status find_pictures(const walk *w, uint32_t flight, uint64_t frame, uint64_t *picture, pl_error *err)
{
    const pl_frames_flight *f = &w->d->flight[flight];
    const uint32_t window = w->s->window;
    const uint64_t first = pl_window_frame(frame, f->frames, window, 0),
                   last = pl_window_frame(frame, f->frames, window, window - 1);
    pl_frames_record record[RECORDS];
    PL_TRY(pl_frames_read_records(&w->d->frames, f->first + first, f->first + last + 1, record, err));
    for (uint32_t k = 0; k < window; k++) {
        picture[k] = record[pl_window_frame(frame, f->frames, window, k) - first].picture;
        if (picture[k] == PL_FRAMES_NONE)
            return pl_fail(err, PL_E_DATA,
                           "%.350s: frame %" PRIu64 " of flight %s has no picture, but is one of the %u around a "
                           "label; delete the file, it is made again from the flights",
                           w->s->frames_path, first, f->name, window);
    }
    return PL_OK;
}

static pl_status take_label(walk *w, uint32_t flight, uint64_t frame, const pl_frames_record *r, pl_error *err)
{
    const pl_split_list list = pl_split_find_list(&w->d->split[flight], w->label++);
    const bool trains = list == PL_SPLIT_TRAIN;
    if (!trains && list != w->validation) return PL_OK;
    pl_clouds_samples *to = &w->d->source.samples[trains ? PL_PART_TRAIN : PL_PART_VALIDATION];
    PL_TRY(find_pictures(w, flight, frame, to->picture + to->count * w->s->window, err));
    to->sample[to->count++] = (pl_clouds_sample){flight, r->label_km, frame, r->seconds, r->zenith, r->azimuth};
    if (trains) pl_scaler_add(&w->height, (double)r->label_km);
    return PL_OK;
}

static void note_damage(walk *w, uint32_t flight, uint64_t frame, const pl_frames_record *r)
{
    if (r->damaged_pixels == 0) return;
    if (r->picture != PL_FRAMES_NONE)
        w->damaged++, w->damaged_pixels += r->damaged_pixels;
    else if (w->unseen++ == 0)
        w->unseen_frame = frame, w->unseen_from = flight;
}

static pl_status walk_flight(walk *w, uint32_t flight, pl_error *err)
{
    const pl_frames_flight *f = &w->d->flight[flight];
    const bool trains = w->d->split[flight].end > 0;
    pl_frames_record record[RECORDS];
    w->label = 0;
    for (uint64_t begin = 0, end; begin < f->frames; begin = end) {
        end = begin + RECORDS < f->frames ? begin + RECORDS : f->frames;
        PL_TRY(pl_frames_read_records(&w->d->frames, f->first + begin, f->first + end, record, err));
        for (uint64_t i = begin; i < end; i++) {
            const pl_frames_record *r = &record[i - begin];
            if (trains) pl_scaler_add(&w->zenith, r->zenith), pl_scaler_add(&w->azimuth, r->azimuth);
            note_damage(w, flight, i, r);
            if (r->profile != PL_FRAMES_NONE) PL_TRY(take_label(w, flight, i, r, err));
        }
    }
    return PL_OK;
}

static pl_status walk_flights(walk *w, pl_error *err)
{
    pl_clouds_data *d = w->d;
    PL_TRY(take_room(w, err));
    for (uint32_t i = 0; i < d->frames.info.flights; i++) {
        const bool heavy = w->s->stage == PL_SPLIT_FINAL && strcmp(d->flight[i].name, w->s->overweight) == 0;
        if (heavy) d->heavy_begin = d->source.samples[PL_PART_TRAIN].count;
        PL_TRY(walk_flight(w, i, err));
        if (heavy) d->heavy_end = d->source.samples[PL_PART_TRAIN].count;
    }
    if (w->height.squares > 0) {
        d->source.scaler = (pl_clouds_scalers){pl_scaler_finish(&w->zenith), pl_scaler_finish(&w->azimuth),
                                               pl_scaler_finish(&w->height)};
        return PL_OK;
    }
    return pl_fail(err, PL_E_DATA,
                   "%.350s: all %" PRIu64 " heights that would be trained on are %g km, so there is nothing to learn; "
                   "train on other flights",
                   w->s->frames_path, w->height.count, w->height.mean);
}

/* ---- samples that are only counted ---- */

enum { COUNTED_HELD_PERCENT = 15 }; /* as in every training but the first (split.c) */

static pl_status take_counted(pl_clouds_samples *to, uint64_t first, uint64_t count, uint32_t window, pl_error *err)
{
    uint64_t pictures;
    const bool fits = !pl_size_mul(count, window * sizeof *to->picture, &pictures);
    to->sample = fits ? pl_alloc(count, sizeof *to->sample) : NULL;
    to->picture = fits ? pl_alloc(count, window * sizeof *to->picture) : NULL;
    if (!to->sample || !to->picture)
        return pl_fail(err, PL_E_NOMEM, "no memory for the list of %" PRIu64 " samples; plan for fewer", count);
    for (; to->count < count; to->count++) {
        to->sample[to->count] = (pl_clouds_sample){.height_km = 1, .frame = first + to->count};
        for (uint32_t k = 0; k < window; k++) to->picture[to->count * window + k] = (first + to->count) * window + k;
    }
    return PL_OK;
}

/* A picture for each frame of each sample, as if windows did not overlap, like a flight's with few labels. */
static pl_status count_samples(pl_clouds_data *d, const pl_clouds_setup *s, pl_error *err)
{
    const uint64_t held = (s->count * COUNTED_HELD_PERCENT + 99) / 100;
    pl_frames_info *i = &d->frames.info;
    if (s->count < 2)
        return pl_fail(err, PL_E_CONFIG, "of %" PRIu64 " sample none would be left to train on; plan for 2 at least",
                       s->count);
    *i = (pl_frames_info){.height = s->height, .width = s->width, .flights = 1, .form = s->form};
    i->frames = i->pictures = s->count * s->window;
    d->frames.is_noise = s->is_noise;
    PL_TRY(take_counted(&d->source.samples[PL_PART_TRAIN], 0, s->count - held, s->window, err));
    PL_TRY(take_counted(&d->source.samples[PL_PART_VALIDATION], s->count - held, held, s->window, err));
    d->source.scaler = (pl_clouds_scalers){{0, 1}, {0, 1}, {0, 1}};
    snprintf(d->data.said, sizeof d->data.said,
             "%" PRIu64 " samples of %u frames of %u x %u pixels, which are counted, for there are no flights",
             s->count, s->window, s->height, s->width);
    return PL_OK;
}

/* ---- what is said about damage ---- */

static void say_damage(const walk *w)
{
    pl_data *d = &w->d->data;
    char text[32];
    pl_str s = pl_str_fixed(d->said, sizeof d->said);
    if (w->unseen)
        pl_str_printf(&s,
                      "frames without any finite number: %s (the first is frame %" PRIu64
                      " of flight %s), left out with the samples around them",
                      pl_format_count(w->unseen, text, sizeof text), w->unseen_frame,
                      w->d->flight[w->unseen_from].name);
    if (w->damaged)
        pl_str_printf(&s,
                      "%spixels that are no finite numbers: %s in %" PRIu64 " frame%s, taken as the mean of the frame",
                      w->unseen ? "; " : "", pl_format_count(w->damaged_pixels, text, sizeof text), w->damaged,
                      pl_plural(w->damaged));
    d->has_less = w->unseen > 0;
}

/* ---- opening ---- */

static void make_source(pl_clouds_data *d, const pl_clouds_setup *s)
{
    pl_clouds_source *c = &d->source;
    const uint64_t samples = c->samples[PL_PART_TRAIN].count;
    c->frames = &d->frames;
    c->window = s->window;
    c->zscore = s->zscore, c->augment = s->augment;
    c->zenith = s->zenith, c->azimuth = s->azimuth;
    c->draw = s->stage == PL_SPLIT_FINAL
                  ? pl_draw_weighted(samples, d->heavy_begin, d->heavy_end, s->overweight_factor, s->seed)
                  : pl_draw_each_once(samples, s->seed);
    /* Batch norm ties the samples of a training batch together; evaluation may split it. */
    pl_clouds_source_init(c, s->batch, s->evaluates ? 0 : s->batch, s->seed);
    d->data.source = &c->source;
}

static pl_status open_data(pl_clouds_data *d, const pl_clouds_setup *s, pl_error *err)
{
    if (s->window < 1 || s->window > RECORDS || s->batch < 1 || s->batch > INT32_MAX)
        return pl_fail(err, PL_E_CONFIG, "a window of %u frames and a batch of %u: 1 to %d and 1 to %d were expected",
                       s->window, s->batch, RECORDS, INT32_MAX);
    walk w = {.d = d, .s = s, .validation = PL_SPLIT_INNER};
    if (s->evaluates && s->stage != PL_SPLIT_PRETRAIN) w.validation = PL_SPLIT_TEST;
    if (!s->count) PL_TRY(pl_frames_open(&d->frames, s->frames_path, err));
    if (!s->count) PL_TRY(split_flights(d, s, err));
    PL_TRY(s->count ? count_samples(d, s, err) : walk_flights(&w, err));
    say_file(d);
    make_source(d, s);
    if (s->count) return PL_OK;
    say_damage(&w);
    pl_facts_add(&d->data.identity, "frames", pl_frames_identity(&d->frames.info));
    pl_facts_add(&d->data.identity, "split", hash_split(d, s));
    pl_facts_add(&d->data.identity, "scalers", hash_scalers(&d->source.scaler));
    return PL_OK;
}

pl_status pl_clouds_data_open(const pl_clouds_setup *s, pl_clouds_data **data, pl_error *err)
{
    pl_clouds_data *d = pl_alloc(1, sizeof *d);
    if (!d) return pl_fail(err, PL_E_NOMEM, "no memory for the flights' data");
    d->data.kind = &clouds;
    d->frames.fd = -1;
    const pl_status status = open_data(d, s, err);
    if (status != PL_OK) return close_clouds(&d->data), status;
    *data = d;
    return PL_OK;
}
