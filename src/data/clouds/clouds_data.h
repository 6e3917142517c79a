/* Flights as the data of a command: the frame file, split by a stage of the protocol (split.h). In training commands
 * the validation part is the one that stops the stage; in those that evaluate, the one that judges it. */
#ifndef PL_DATA_CLOUDS_DATA_H
#define PL_DATA_CLOUDS_DATA_H

#include "data/clouds/clouds_source.h"
#include "data/clouds/split.h"
#include "stream/data.h"

/* What a config says, as plain values. Texts are the caller's, and needed only while the data are opened. */
typedef struct pl_clouds_setup {
    const char *frames_path;
    pl_split_stage stage;
    const char *stage_key;    /* the key of the stage's flight, for a sentence: "pretrain_flight" */
    const char *flight;       /* the stage's: trained on by pretrain, held out by the others */
    const char *overweight;   /* flight that `final` draws more often; "": none */
    double overweight_factor; /* finite, above 0 */
    uint32_t window, batch;   /* frames of a sample, samples of a step: at least 1 */
    uint64_t seed;
    bool augment, zscore;
    bool zenith, azimuth; /* does the model see these angles? */
    bool evaluates;       /* it does not train */
    uint64_t count;       /* above 0: there is no frame file; so many samples are assumed, of this form: */
    uint32_t height, width;
    pl_frames_form form;
    bool is_noise; /* pictures can be read, as noise */
} pl_clouds_setup;

typedef struct pl_clouds_data {
    pl_data data; /* first: this is one. Identity: "frames", "split", "scalers"; extents: "height", "width" */
    pl_frames frames;
    pl_frames_flight *flight;
    pl_flight_split *split;
    pl_clouds_source source;
    uint64_t heavy_begin, heavy_end; /* samples of the training part that are drawn more often */
} pl_clouds_data;

/* PL_E_CONFIG for a name that no flight has, and for a flight both held out and overweight; PL_E_DATA as from
 * pl_frames_open and pl_split_make, for heights that are all equal, and where the file is not the one expected. */
pl_status pl_clouds_data_open(const pl_clouds_setup *, pl_clouds_data **, pl_error *);
static inline const pl_clouds_data *pl_clouds_data_of(const pl_data *d) { return (const pl_clouds_data *)d; }

#endif
