#include "systems/clouds_prepare.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "data/clouds/preprocess.h"
#include "base/checksum.h"
#include "store/hdf5_load.h"
#include "systems/clouds_child.h"

enum { RECIPE = 2 }; /* raise it when flights are read, or pictures or labels made, in another way */

/* ---- the wish ---- */

static pl_status check(const pl_clouds_options *o, pl_error *err)
{
    if (o->flights < 1 || o->flights > PL_FRAMES_FLIGHTS_MAX)
        return pl_fail(err, PL_E_CONFIG, "there are %u flights; give 1 to %d", o->flights, PL_FRAMES_FLIGHTS_MAX);
    if (o->swath_begin >= o->swath_end)
        return pl_fail(err, PL_E_CONFIG,
                       "the swath [%u, %u] has no rows; it begins with the first and ends before the "
                       "second",
                       o->swath_begin, o->swath_end);
    for (uint32_t i = 0; i < o->flights; i++) {
        const char *name = o->flight[i].name;
        if (!name[0] || strlen(name) >= PL_FRAMES_NAME_BYTES)
            return pl_fail(err, PL_E_CONFIG, "the name of flight %u has %zu bytes; give it 1 to %d", i + 1,
                           strlen(name), PL_FRAMES_NAME_BYTES - 1);
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(name, o->flight[k].name) == 0)
                return pl_fail(err, PL_E_CONFIG, "flights %u and %u are both named %s; give each its own name", k + 1,
                               i + 1, name);
    }
    return PL_OK;
}

static void add_text(pl_checksum *c, const char *text) { pl_checksum_update(c, text, strlen(text) + 1); }

static uint64_t key_of(const pl_clouds_options *o)
{
    const uint64_t wish[] = {RECIPE, o->flights, o->swath_begin, o->swath_end, o->flat_field, o->window, o->form};
    pl_checksum c;
    pl_checksum_init(&c);
    pl_checksum_update(&c, wish, sizeof wish);
    pl_checksum_update(&c, &o->clip_limit, sizeof o->clip_limit);
    add_text(&c, o->filter->name);
    for (uint32_t i = 0; i < o->flights; i++) add_text(&c, o->flight[i].name);
    return pl_checksum_value(&c);
}

/* ---- the flights' files ---- */

static const char *path_of(const pl_clouds_options *o, uint32_t number)
{
    const pl_flight_files *f = &o->flight[number / PL_FRAMES_SOURCES];
    const char *const path[PL_FRAMES_SOURCES] = {f->camera, f->lidar, f->navigation};
    return path[number % PL_FRAMES_SOURCES];
}

static pl_status open_source(const pl_clouds_options *o, uint32_t number, int *fd, pl_origin *now, pl_error *err)
{
    static const char *const key[PL_FRAMES_SOURCES] = {"iFileName", "cFileName", "nFileName"};
    const char *path = path_of(o, number);
    uint64_t bytes;
    pl_status status = pl_file_open(path, fd, &bytes, err);
    if (status != PL_OK) {
        pl_error_append(err, "; it is the %s of flight %s: correct that, or data_directory",
                        key[number % PL_FRAMES_SOURCES], o->flight[number / PL_FRAMES_SOURCES].name);
        return status;
    }
    status = pl_origin_look(*fd, path, now, err);
    if (status != PL_OK) close(*fd);
    return status;
}

static pl_status match_source(const pl_clouds_options *o, const pl_frames *f, uint32_t number, bool *same,
                              pl_error *err)
{
    pl_origin now, then;
    int fd;
    PL_TRY(open_source(o, number, &fd, &now, err));
    *same = pl_frames_read_source(f, number, &then);
    const pl_status status = *same ? pl_origin_match(fd, path_of(o, number), &now, &then, same, err) : PL_OK;
    close(fd);
    if (status == PL_OK && *same && !pl_origin_is_untouched(&now, &then))
        pl_frames_note_source(o->path, &f->info, number, &now);
    return status;
}

pl_status pl_clouds_match(const pl_clouds_options *o, const pl_frames *f, bool *same, pl_error *err)
{
    *same = f->info.key == key_of(o) && f->info.version > 1;
    for (uint32_t n = 0; n < o->flights * PL_FRAMES_SOURCES && *same; n++) PL_TRY(match_source(o, f, n, same, err));
    return PL_OK;
}

/* As they are before they are read. */
static pl_status hash_sources(const pl_clouds_options *o, pl_origin *source, pl_error *err)
{
    for (uint32_t n = 0; n < o->flights * PL_FRAMES_SOURCES; n++) {
        int fd;
        PL_TRY(open_source(o, n, &fd, &source[n], err));
        const pl_status status = pl_origin_hash(fd, path_of(o, n), 0, source[n].bytes, &source[n].content, err);
        close(fd);
        PL_TRY(status);
    }
    return PL_OK;
}

/* The files must be those that were there at first. */
static pl_status check_unchanged(const pl_clouds_options *o, const pl_origin *source, pl_error *err)
{
    for (uint32_t n = 0; n < o->flights * PL_FRAMES_SOURCES; n++) {
        pl_origin now;
        int fd;
        PL_TRY(open_source(o, n, &fd, &now, err));
        close(fd);
        if (!pl_origin_is_untouched(&now, &source[n]))
            return pl_fail(err, PL_E_DATA, "%s: changed while it was read; begin again when it is whole",
                           path_of(o, n));
    }
    return PL_OK;
}

/* ---- is what is there still good? ---- */

/* What is damaged is made again; what the system does not let us read may be whole, and somebody's. */
static pl_status try_reuse(const pl_clouds_options *o, pl_clouds_result *r, pl_error *err)
{
    pl_error why = {0};
    if (access(o->path, F_OK) != 0) return PL_OK;
    pl_frames *frames = pl_alloc(1, sizeof *frames);
    if (!frames) return pl_fail(err, PL_E_NOMEM, "no memory for looking at %s", o->path);
    pl_status status = pl_frames_open(frames, o->path, &why), matched = PL_OK;
    if (status == PL_OK) {
        r->info = frames->info;
        matched = pl_clouds_match(o, frames, &r->reused, err);
        pl_frames_close(frames);
    }
    pl_free(frames);
    if (status == PL_E_STORAGE || status == PL_E_NOMEM) return pl_fail(err, status, "%s", why.text);
    if (!r->reused)
        snprintf(r->reason, sizeof r->reason, "%s",
                 status == PL_OK ? "it was made of other flights, or in another way" : why.text);
    return matched;
}

/* ---- making ---- */

typedef struct maker {
    const pl_clouds_options *o;
    const pl_hdf5_module *module;
    pl_frames_flight *flight; /* [flights], as in the file */
    pl_origin *source;        /* [flights][PL_FRAMES_SOURCES] */
    pl_frames_record *record; /* of all flights */
    size_t records, record_capacity;
    uint64_t pictures, looked_at, made; /* that are wanted; of these looked at; and written */
    pl_frames_info info;
    float *frame, *gain;
    void *flat, *scratch;
} maker;

static pl_status no_memory(pl_error *err)
{
    return pl_fail(err, PL_E_NOMEM, "no memory for preparing flights; close other programs, or leave flights out");
}

static pl_status check_sides(maker *m, const pl_flight *f, pl_error *err)
{
    const pl_clouds_options *o = m->o;
    if (o->swath_end > f->rows)
        return pl_fail(err, PL_E_CONFIG, "%s: its frames have %u rows; the swath [%u, %u] goes beyond them",
                       f->files->camera, f->rows, o->swath_begin, o->swath_end);
    if (m->info.width && m->info.width != f->columns)
        return pl_fail(err, PL_E_DATA, "%s: its frames have %u columns, those of flight %s have %u; all must be alike",
                       f->files->camera, f->columns, o->flight[0].name, m->info.width);
    m->info.height = o->swath_end - o->swath_begin, m->info.width = f->columns;
    return PL_OK;
}

/* Numbers the frames that get a picture, in order. */
static void choose_pictures(maker *m, pl_flight *f)
{
    const uint32_t window = m->o->window;
    for (uint64_t i = 0; i < f->frames; i++) {
        if (window == 0) f->record[i].picture = 0;
        for (uint32_t place = 0; place < window && f->record[i].profile != PL_FRAMES_NONE; place++)
            f->record[pl_window_frame(i, f->frames, window, place)].picture = 0;
    }
    for (uint64_t i = 0; i < f->frames; i++)
        if (f->record[i].picture != PL_FRAMES_NONE) f->record[i].picture = m->pictures++;
}

static pl_status take_records(maker *m, const pl_flight *f, uint32_t number, pl_error *err)
{
    pl_frames_flight *to = &m->flight[number];
    snprintf(to->name, sizeof to->name, "%s", f->files->name);
    to->first = m->records, to->frames = f->frames, to->labels = f->labels;
    for (uint64_t i = 0; i < f->frames; i++) {
        if (pl_grow(&m->record, &m->record_capacity, m->records, sizeof *m->record)) return no_memory(err);
        m->record[m->records++] = f->record[i];
    }
    return PL_OK;
}

/* Where a child was when it died is known from what it told. */
static void note_flight(const maker *m, uint32_t number)
{
    if (m->o->in_child) (void)m->o->progress(m->o->context, m->o->flight[number].name, 0, 0);
}

static pl_status read_flight(maker *m, uint32_t number, pl_error *err)
{
    pl_flight f;
    note_flight(m, number);
    PL_TRY(pl_flight_read(m->module, &m->o->flight[number], m->o->filter, &f, err));
    pl_status status = check_sides(m, &f, err);
    if (status == PL_OK) choose_pictures(m, &f);
    if (status == PL_OK) status = take_records(m, &f, number, err);
    pl_flight_deinit(&f);
    return status;
}

static pl_status check_size(maker *m, pl_error *err)
{
    m->info.form = m->o->form, m->info.flights = m->o->flights;
    m->info.frames = m->records, m->info.pictures = m->pictures;
    if (pl_frames_file_bytes(&m->info) <= m->o->file_max) return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "the frame file would have %" PRIu64 " bytes for %" PRIu64 " pictures, more than the %" PRIu64
                   " that it may have; allow more, take fewer flights, or a smaller swath",
                   pl_frames_file_bytes(&m->info), m->pictures, m->o->file_max);
}

static pl_preprocess rules_of(const maker *m)
{
    return (pl_preprocess){m->info.height, m->info.width, m->o->clip_limit, false};
}

static pl_status take_memory(maker *m, pl_error *err)
{
    const uint64_t pixels = (uint64_t)m->info.height * m->info.width;
    const pl_preprocess rules = rules_of(m);
    m->frame = pl_alloc(pixels, sizeof *m->frame);
    m->gain = pl_alloc(m->o->flat_field ? pixels : 1, sizeof *m->gain);
    m->flat = pl_alloc(m->o->flat_field ? pl_flat_field_bytes(pixels) : 1, 1);
    m->scratch = pl_alloc(pl_preprocess_scratch_bytes(&rules), 1);
    return m->frame && m->gain && m->flat && m->scratch ? PL_OK : no_memory(err);
}

static pl_status read_frame(const maker *m, const pl_flight_camera *c, uint64_t frame, pl_error *err)
{
    return pl_flight_camera_read(c, frame, m->o->swath_begin, m->o->swath_end, m->frame, err);
}

static pl_status make_gain(maker *m, const pl_flight_camera *c, pl_error *err)
{
    const uint64_t frames = c->flight->frames;
    pl_flat_field flat;
    if (!m->o->flat_field) return PL_OK;
    pl_flat_field_begin(&flat, (uint64_t)m->info.height * m->info.width, m->flat);
    for (uint64_t i = 0; i < frames && i < PL_FLAT_FRAMES; i++) {
        PL_TRY(read_frame(m, c, i, err));
        pl_flat_field_add(&flat, m->frame);
    }
    const pl_status status = pl_flat_field_finish(&flat, m->gain, err);
    return status == PL_OK ? PL_OK : pl_fail_prefix(err, status, "%s", c->flight->files->camera);
}

static pl_status tell(const maker *m, const char *flight, uint64_t done, pl_error *err)
{
    if (!m->o->progress || m->o->progress(m->o->context, flight, done, m->pictures)) return PL_OK;
    return pl_fail(err, PL_E_STOPPED, "stopped at picture %" PRIu64 " of %" PRIu64 ", of flight %s", done, m->pictures,
                   flight);
}

/* Of a frame of which nothing can be seen there is no picture. */
static pl_status make_picture(maker *m, const pl_flight_camera *c, uint64_t frame, pl_frames_writer *w, pl_error *err)
{
    const pl_preprocess rules = rules_of(m);
    pl_frames_record *r = &c->flight->record[frame];
    PL_TRY(read_frame(m, c, frame, err));
    r->damaged_pixels =
        (uint32_t)pl_preprocess_frame(&rules, m->frame, m->o->flat_field ? m->gain : NULL, m->scratch, m->frame);
    r->picture = PL_FRAMES_NONE;
    if (r->damaged_pixels == (uint64_t)rules.height * rules.width) return PL_OK;
    r->picture = m->made++;
    return pl_frames_append(w, m->frame, err);
}

static pl_status make_pictures(maker *m, const pl_flight_camera *c, pl_frames_writer *w, pl_error *err)
{
    const uint64_t before = m->made;
    PL_TRY(make_gain(m, c, err));
    for (uint64_t i = 0; i < c->flight->frames; i++) {
        if (c->flight->record[i].picture == PL_FRAMES_NONE) continue;
        PL_TRY(make_picture(m, c, i, w, err));
        PL_TRY(tell(m, c->flight->files->name, ++m->looked_at, err));
    }
    if (m->made > before) return PL_OK;
    return pl_fail(
        err, PL_E_DATA,
        "%s: none of the pixels that are used of it is a finite number; correct swath_slice, or leave flight "
        "%s out",
        c->flight->files->camera, c->flight->files->name);
}

static bool sees_all(const maker *m, const pl_flight *f, uint64_t frame)
{
    const uint32_t window = m->o->window ? m->o->window : 1;
    for (uint32_t place = 0; place < window; place++)
        if (f->record[pl_window_frame(frame, f->frames, window, place)].picture == PL_FRAMES_NONE) return false;
    return true;
}

/* A height is a sample's where there is a picture of each frame of its window. */
static pl_status leave_labels_out(const maker *m, pl_flight *f, pl_error *err)
{
    const uint64_t before = f->labels;
    for (uint64_t i = 0; i < f->frames; i++) {
        pl_frames_record *r = &f->record[i];
        if (r->profile == PL_FRAMES_NONE || sees_all(m, f, i)) continue;
        r->profile = PL_FRAMES_NONE, r->label_km = NAN;
        f->labels--;
    }
    if (f->labels == before) return PL_OK;
    const pl_status status = pl_flight_check_labels(f, m->o->filter, err);
    return status == PL_OK ? PL_OK
                           : pl_fail_prefix(err, status, "%s: %" PRIu64 " labels lie where frames have no finite pixel",
                                            f->files->camera, before - f->labels);
}

static pl_status add_flight(maker *m, uint32_t number, pl_frames_writer *w, pl_error *err)
{
    pl_flight f = {.files = &m->o->flight[number],
                   .frames = m->flight[number].frames,
                   .labels = m->flight[number].labels,
                   .rows = m->o->swath_end,
                   .columns = m->info.width,
                   .record = m->record + m->flight[number].first};
    pl_flight_camera camera;
    note_flight(m, number);
    PL_TRY(pl_flight_camera_open(&camera, m->module, &f, err));
    pl_status status = make_pictures(m, &camera, w, err);
    pl_flight_camera_close(&camera);
    if (status == PL_OK) status = leave_labels_out(m, &f, err);
    m->flight[number].labels = f.labels;
    return status;
}

static pl_status write_file(maker *m, pl_error *err)
{
    const pl_clouds_options *o = m->o;
    pl_frames_writer *w;
    PL_TRY(pl_frames_create(o->path, &m->info, &w, err));
    pl_status status = PL_OK;
    for (uint32_t i = 0; i < o->flights && status == PL_OK; i++) status = add_flight(m, i, w, err);
    if (status == PL_OK) status = check_unchanged(o, m->source, err);
    if (status != PL_OK) return pl_frames_abandon(w), status;
    const pl_frames_rest rest = {.flight = m->flight,
                                 .record = m->record,
                                 .source = m->source,
                                 .flights = o->flights,
                                 .frames = m->records,
                                 .key = key_of(o),
                                 .identity = o->identity,
                                 .run = o->run};
    return pl_frames_commit(w, &rest, err);
}

static pl_status make(maker *m, pl_error *err)
{
    m->flight = pl_alloc(m->o->flights, sizeof *m->flight);
    m->source = pl_alloc(m->o->flights, PL_FRAMES_SOURCES * sizeof *m->source);
    if (!m->flight || !m->source) return no_memory(err);
    PL_TRY(hash_sources(m->o, m->source, err));
    for (uint32_t i = 0; i < m->o->flights; i++) PL_TRY(read_flight(m, i, err));
    PL_TRY(check_size(m, err));
    PL_TRY(take_memory(m, err));
    return write_file(m, err);
}

static pl_status make_with_module(const pl_clouds_options *o, pl_error *err)
{
    maker m = {.o = o};
    pl_module hdf5;
    PL_TRY(pl_hdf5_load("reading flights", "", &hdf5, err));
    m.module = hdf5.functions;
    pl_status status = make(&m, err);
    pl_free(m.scratch);
    pl_free(m.flat);
    pl_free(m.gain);
    pl_free(m.frame);
    pl_free(m.record);
    pl_free(m.source);
    pl_free(m.flight);
    pl_module_unload(&hdf5);
    return status;
}

pl_status pl_clouds_prepare(const pl_clouds_options *o, pl_clouds_result *r, pl_error *err)
{
    pl_clouds_result made = {0};
    *r = (pl_clouds_result){0};
    PL_TRY(check(o, err));
    PL_TRY(try_reuse(o, r, err));
    if (!r->reused && o->before_writing) {
        PL_TRY(o->before_writing(o->writing, err));
        PL_TRY(try_reuse(o, r, err)); /* who was kept waiting may find it done */
    }
    if (r->reused) return PL_OK;
    PL_TRY(o->in_child ? pl_clouds_in_child(make_with_module, o, err) : make_with_module(o, err));
    PL_TRY(try_reuse(o, &made, err)); /* as a run will find it */
    if (!made.reused) return pl_fail(err, PL_E_STORAGE, "%s: is not as it was written: %s", o->path, made.reason);
    r->info = made.info;
    return PL_OK;
}
