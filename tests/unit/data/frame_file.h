/* A frame file of random flights whose every number is known. */
#ifndef PL_TESTS_UNIT_DATA_FRAME_FILE_H
#define PL_TESTS_UNIT_DATA_FRAME_FILE_H

#include "unit/data/scratch.h"

#include <math.h>
#include <stdbool.h>

#include "base/narrow.h"
#include "data/clouds/frames.h"

enum { WORLD_FLIGHTS = 4, WORLD_FRAMES = 70, WORLD_PIXELS = 160 };

typedef struct world_frame {
    double seconds, zenith, azimuth;
    float pixel[WORLD_PIXELS]; /* as the file keeps them */
    bool labelled;
    float km;
} world_frame;

typedef struct world {
    uint32_t height, width;
    pl_frames_form form;
    struct {
        char name[16];
        uint32_t frames, labels;
        world_frame frame[WORLD_FRAMES];
    } flight[WORLD_FLIGHTS];
} world;

static inline double world_uniform(scratch_random *r) { return (double)scratch_next(r, 1 << 30) * 0x1p-30; }

/* Every flight has at least three labels. */
static inline void world_make(world *w, scratch_random *r)
{
    w->height = 4 + scratch_next(r, 7), w->width = 4 + scratch_next(r, 12);
    w->form = scratch_next(r, 2) ? PL_FRAMES_F16 : PL_FRAMES_U8;
    for (uint32_t f = 0; f < WORLD_FLIGHTS; f++) {
        const uint32_t frames = 8 + scratch_next(r, WORLD_FRAMES - 7), rarity = 1 + scratch_next(r, 4);
        snprintf(w->flight[f].name, sizeof w->flight[f].name, "flight%u", f);
        w->flight[f].frames = frames, w->flight[f].labels = 0;
        for (uint32_t i = 0; i < frames; i++) {
            world_frame *x = &w->flight[f].frame[i];
            *x = (world_frame){.seconds = 1e9 + f * 1e5 + i * 0.25 + world_uniform(r) * 0.1,
                               .zenith = 20 + 10 * f + world_uniform(r),
                               .azimuth = scratch_next(r, 6) ? 360 * world_uniform(r) : 0,
                               .labelled = i < 3 || scratch_next(r, rarity) == 0};
            x->km = x->labelled ? (float)(0.1 + 1.9 * world_uniform(r)) : NAN;
            w->flight[f].labels += x->labelled;
            for (uint32_t p = 0; p < w->height * w->width; p++) {
                const float v = (float)(0.2 + world_uniform(r) * (0.7 + 0.1 * (double)(i % 2)));
                x->pixel[p] = w->form == PL_FRAMES_F16 ? pl_f32_of_f16(pl_f16_of_f32(v)) : rintf(v * 255) / 255;
            }
        }
    }
}

/* skip: a frame of the first flight that gets no picture; WORLD_FRAMES: every frame has one. */
static inline void world_write_without(const world *w, const char *path, uint32_t skip)
{
    static pl_frames_record record[WORLD_FLIGHTS * WORLD_FRAMES];
    pl_frames_flight flight[WORLD_FLIGHTS];
    pl_error err = {0};
    pl_frames_writer *to;
    uint64_t frames = 0, pictures = 0;
    const pl_frames_info info = {.height = w->height, .width = w->width, .form = w->form};
    assert_int_equal(pl_frames_create(path, &info, &to, &err), PL_OK);
    memset(flight, 0, sizeof flight);
    for (uint32_t f = 0; f < WORLD_FLIGHTS; f++) {
        strcpy(flight[f].name, w->flight[f].name);
        flight[f].first = frames, flight[f].frames = w->flight[f].frames, flight[f].labels = w->flight[f].labels;
        for (uint32_t i = 0; i < w->flight[f].frames; i++) {
            const world_frame *x = &w->flight[f].frame[i];
            const bool has = f || i != skip;
            record[frames++] = (pl_frames_record){.seconds = x->seconds,
                                                  .zenith = x->zenith,
                                                  .azimuth = x->azimuth,
                                                  .picture = has ? pictures++ : PL_FRAMES_NONE,
                                                  .profile = x->labelled ? i : PL_FRAMES_NONE,
                                                  .label_km = x->km};
            if (has) assert_int_equal(pl_frames_append(to, x->pixel, &err), PL_OK);
        }
    }
    static const pl_origin source[WORLD_FLIGHTS * PL_FRAMES_SOURCES];
    const pl_frames_rest rest = {flight, record, source, WORLD_FLIGHTS, frames, 77, 0, NULL};
    if (pl_frames_commit(to, &rest, &err) != PL_OK) fail_msg("%s", err.text);
}

static inline void world_write(const world *w, const char *path) { world_write_without(w, path, WORLD_FRAMES); }

#endif
