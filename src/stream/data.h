/* The data of one command, opened by its system: what planner and runner ask of them, whatever they are. The beginning
 * of every such structure; the rooms of data (data/text/ …) have one each. */
#ifndef PL_STREAM_DATA_H
#define PL_STREAM_DATA_H

#include "base/facts.h"
#include "base/scaler.h"
#include "base/str.h"
#include "stream/source.h"

typedef struct pl_data pl_data;
struct pl_block_sink;   /* store/block_sink.h */
struct pl_weights_part; /* store/weights.h */

/* Of the identity: the xxh64 of the file of weights. */
#define PL_FACT_WEIGHTS "weights"

/* A sample of the validation part that has a label: a number that a model is to predict. */
typedef struct pl_label {
    const char *group; /* the flight that it is of; NULL: these samples have no groups, and no times */
    uint64_t item;     /* its number, from 0: in its group, or among all samples */
    double seconds;    /* since 1970 */
    double truth;
} pl_label;

/* What is asked about labels when predictions are judged. Asks for no memory. */
typedef struct pl_labels {
    const char *unit; /* "km"; NULL: they have none */
    uint64_t (*count)(const pl_data *);
    /* Number i is the i-th that the source gives. */
    pl_label (*at)(const pl_data *, uint64_t i);
    /* What they were scaled with: a prediction is pl_unscale(…, output). */
    const pl_scaler *(*scaler)(const pl_data *);
} pl_labels;

typedef struct pl_data_kind {
    /* May weights that were saved with these hashes be used with the data, and may a run go on with them (trains)?
     * PL_E_CONFIG. saved_path: of the checkpoint, for the sentence. */
    pl_status (*match)(const pl_data *, const pl_facts *saved, const char *saved_path, bool trains, pl_error *);
    void (*close)(pl_data *); /* frees it, too */
    /* Of work in several groups: the data become that one's; and what makes its shapes, in words ("num_layers 4, …").
     * NULL where there is one. */
    pl_status (*choose)(pl_data *, uint32_t group, pl_error *);
    void (*say_group)(const pl_data *, pl_str *);
    const pl_labels *labels; /* NULL: its samples have none */
} pl_data_kind;

enum { PL_DATA_SAID_BYTES = 400 };

/* Of the identity, 1: all that there is is validated, for a run that was not trained on any of it. */
#define PL_FACT_WHOLE "whole"

/* Of a calibration: it goes through so many samples of the training part, the first, so often. */
typedef struct pl_calibration_work {
    uint64_t samples, passes;
} pl_calibration_work;

struct pl_data {
    const pl_data_kind *kind;
    const pl_source *source;          /* NULL: the command reads no samples */
    uint32_t at_once;                 /* samples, then, where whoever runs its programs brings some; 0: none */
    const char *path;                 /* what sentences call it where it has a source: the path of its file, or words */
    char piece[24];                   /* of the work, which this process does: "shape-3"; "": all of it */
    const struct pl_block_sink *sink; /* where results go; NULL: the command keeps none */
    const void *for_rows; /* what the dataset's own kind of files (pl_rows_kind) needs to read them; NULL: nothing */
    pl_facts identity;    /* hashes of what it was made from */
    pl_facts extents;     /* what shapes of the model depend on */
    /* Work whose shapes differ is done in groups, each by a plan of its own: how many they are, and of how many items
     * (steps of the source) the one is that the data are opened for. 0 groups: one plan does all. */
    uint32_t groups;
    uint64_t group_items, group_samples; /* samples of all those items together: texts, realisations */
    /* File of weights that the model begins with; NULL: it makes its own, or has a checkpoint's. One of the whole model
     * stands in the place of a checkpoint. */
    const char *weights;
    const struct pl_weights_part *weights_part; /* NULL: of the whole model */
    bool weights_exceed_f16;                    /* some of them: a search leaves that type out */
    const char *instead; /* what stands in for samples that are not there, in a plan: "texts of a grammar"; or NULL */
    char said[PL_DATA_SAID_BYTES]; /* what they are, for people: "30 texts: lines of t.txt"; "": nothing is said */
    bool has_less;                 /* than its config asks for: that is a warning, then */
    pl_calibration_work calibration;
    double limit_seconds; /* a run ends by itself after so long, and is gone on with; 0: none */
    /* For the planner: */
    pl_facts validation; /* of the part that is held out what the command evaluates */
    const char *file;    /* how the plan calls what lies on the disk for it: "token file"; or NULL */
    uint64_t file_bytes;
    int held; /* descriptor of a file without a name that a run reads; of the plan as soon as there is one. 0: none */
    uint64_t kernel_cache_bytes; /* of what a run reads and writes there: in the kernel's cache, at most */
};

/* Samples are read, and there is such a part. */
static inline bool pl_data_has(const pl_data *d, pl_part part) { return d->source && d->source->steps_per_epoch[part]; }
static inline void pl_data_close(pl_data *d)
{
    if (d) d->kind->close(d);
}

#endif
