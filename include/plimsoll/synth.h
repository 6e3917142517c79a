/* Data that is made, so that examples and tests need no downloads: flights for the regression of cloud heights from
 * image sequences (frames of a camera, profiles of a lidar, navigation), in HDF5; and texts to draw as pages.
 *
 *     pl_synth_clouds_options options = pl_synth_clouds_default();
 *     options.height = 48, options.width = 64;
 *     if (pl_synth_clouds("flights", &options, &text, &bytes, &error) == PL_OK) pl_text_free(text);
 */
#ifndef PLIMSOLL_SYNTH_H
#define PLIMSOLL_SYNTH_H

#include <stddef.h>
#include <stdint.h>

#include "plimsoll/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What tells the height: the shadow that a cloud casts, or its displacement from frame to frame, which a model that
 * encodes each frame by itself cannot know. */
typedef enum pl_synth_cue { PL_SYNTH_SHADOW, PL_SYNTH_PARALLAX } pl_synth_cue;

typedef struct pl_synth_clouds_options {
    uint32_t flights;       /* 1 to 31; the first six have the documented names */
    uint32_t labels;        /* in each flight; 0: the documented numbers over `labels_part` */
    uint32_t labels_part;   /* 1: all of them, 5: a fifth, … */
    uint32_t height, width; /* of a frame's swath; files have more rows above and below */
    double gsd_metres;      /* of a pixel on the ground */
    pl_synth_cue cue;
    uint64_t seed;
    void (*tell)(void *context, const char *flight, uint64_t frames, uint64_t labels); /* of a flight that is made */
    void *context;
} pl_synth_clouds_options;

/* Six flights, a fifth of the documented labels, frames of 440 by 640, shadows, seed 1; nobody is told. */
PL_API pl_synth_clouds_options pl_synth_clouds_default(void);

/* Writes the flights' files into the folder, each whole or not at all, over those of an earlier time, and
 * PL_SYNTH_CLOUDS_FILE: the keys of a config that name them. The same options give the same bytes. The text of that
 * file comes in a block for pl_text_free. PL_E_UNSUPPORTED without libhdf5. */
#define PL_SYNTH_CLOUDS_FILE "synthetic_flights.yaml"
PL_API PL_MUST_USE pl_status pl_synth_clouds(const char *folder, const pl_synth_clouds_options *, char **text,
                                             size_t *bytes, pl_error *);

/* One a line (ends of lines within a text become spaces); an object a line, with the keys id and text; or CSV (RFC
 * 4180) with the columns id and text. */
typedef enum pl_synth_form { PL_SYNTH_LINES, PL_SYNTH_JSONL, PL_SYNTH_CSV } pl_synth_form;

typedef struct pl_synth_texts_options {
    uint64_t count; /* 1 and more */
    pl_synth_form form;
    uint64_t seed; /* text i is a function of (seed, i) alone */
} pl_synth_texts_options;

/* 10,000 lines, seed 1. */
PL_API pl_synth_texts_options pl_synth_texts_default(void);

/* Writes texts of 20 to 400 characters (code, prose and formulas, a few of them in other scripts) into a file, whole or
 * not at all. The same options give the same bytes. */
PL_API PL_MUST_USE pl_status pl_synth_texts(const char *path, const pl_synth_texts_options *, pl_error *);

#ifdef __cplusplus
}
#endif
#endif
