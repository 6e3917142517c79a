/* The data of one command, opened by its system: what planner and runner ask of them, whatever they are. Every kind of
 * data (data/text/ …) has a structure that begins with this one. */
#ifndef PL_STREAM_DATA_H
#define PL_STREAM_DATA_H

#include "base/facts.h"
#include "base/scaler.h"
#include "base/str.h"
#include "stream/source.h"

typedef struct pl_data pl_data;
struct pl_block_sink;   /* store/block_sink.h */
struct pl_weights_part; /* store/weights.h */

/* In the identity: the xxh64 of the file of weights. */
#define PL_FACT_WEIGHTS "weights"

/* A labelled sample of the validation part: its label is a number that a model is to predict. */
typedef struct pl_label {
    const char *group; /* its flight; NULL: these samples have no groups, and no times */
    uint64_t item;     /* its number, from 0: in its group, or among all samples */
    double seconds;    /* since 1970 */
    double truth;
} pl_label;

/* What judging predictions needs to know about labels. Asks for no memory. */
typedef struct pl_labels {
    const char *unit; /* "km"; NULL: they have none */
    uint64_t (*count)(const pl_data *);
    /* Number i is the i-th that the source gives. */
    pl_label (*at)(const pl_data *, uint64_t i);
    /* How they were scaled: a prediction is pl_unscale(…, output). */
    const pl_scaler *(*scaler)(const pl_data *);
} pl_labels;

typedef struct pl_data_kind {
    /* May weights saved with these hashes be used with the data, and (trains) may a run resume with them? PL_E_CONFIG.
     * saved_path: the checkpoint's, for the sentence. */
    pl_status (*match)(const pl_data *, const pl_facts *saved, const char *saved_path, bool trains, pl_error *);
    void (*close)(pl_data *); /* frees it, too */
    /* For work in several groups: switches the data to that group; and what decides its shapes, in words ("num_layers
     * 4, …"). NULL if there is only one. */
    pl_status (*choose)(pl_data *, uint32_t group, pl_error *);
    void (*say_group)(const pl_data *, pl_str *);
    const pl_labels *labels; /* NULL: its samples have none */
} pl_data_kind;

/* A pretrained model's weights, wherever they are read from. */
typedef struct pl_brought_weights {
    const void *from; /* the first argument of all */
    /* Is there this weight, in its shape? PL_E_DATA. */
    pl_status (*match)(const void *from, const pl_graph *, pl_id, pl_error *);
    /* Its numbers, as the value stores them. Asks for no memory. */
    pl_status (*read)(const void *from, const pl_graph *, pl_id, void *to, pl_error *);
    /* Where in PL_SPACE_FILES are the numbers as the value stores them? UINT64_MAX: nowhere. */
    uint64_t (*place)(const void *from, const pl_graph *, pl_id);
    /* Puts the files' pages at these addresses, as many as fit. Asks for no memory. */
    pl_status (*map)(const void *from, void *at, uint64_t bytes, pl_error *);
    /* Are the files that are mapped what they were? PL_E_STORAGE. */
    pl_status (*check)(const void *from, pl_error *);
    /* The path of the file that has this byte of them. Safe in a handler of signals. NULL: none has. */
    const char *(*file_at)(const void *from, uint64_t offset);
} pl_brought_weights;

enum { PL_DATA_SAID_BYTES = 400 };

/* In the identity, 1: all samples are validated, for a run that was not trained on any of them. */
#define PL_FACT_WHOLE "whole"

/* A calibration goes through the first `samples` samples of the training part `passes` times. */
typedef struct pl_calibration_work {
    uint64_t samples, passes;
} pl_calibration_work;

struct pl_data {
    const pl_data_kind *kind;
    const pl_source *source;          /* NULL: the command reads no samples */
    uint32_t at_once;                 /* samples at a time that the caller brings then; 0: none */
    const char *path;                 /* what sentences call it if it has a source: the path of its file, or words */
    char piece[24];                   /* of the work, done by this process: "shape-3"; "": all of it */
    const struct pl_block_sink *sink; /* where results go; NULL: the command keeps none */
    const void *for_rows; /* what the dataset's own kind of files (pl_rows_kind) needs to read them; NULL: nothing */
    pl_facts identity;    /* hashes of what it was made from */
    pl_facts extents;     /* what shapes of the model depend on */
    /* Work whose shapes differ is done in groups, each by a plan of its own: how many there are, and how many items
     * (steps of the source) the group has that the data are opened for. 0 groups: one plan does all. */
    uint32_t groups;
    uint64_t group_items, group_samples; /* samples of all those items together: texts, realisations */
    /* File of weights that the model begins with; NULL: it makes its own, or has a checkpoint's. A file of the whole
     * model takes the place of a checkpoint. */
    const char *weights;
    const struct pl_weights_part *weights_part; /* NULL: the whole model */
    const pl_brought_weights *brought;          /* those of a model that is never trained here; NULL: there are none */
    bool weights_exceed_f16;                    /* some do: a search leaves that type out */
    const char *instead;           /* what a plan uses in place of missing samples: "texts of a grammar"; or NULL */
    char said[PL_DATA_SAID_BYTES]; /* what they are, for people: "30 texts: lines of t.txt"; "": nothing is said */
    bool has_less;                 /* than its config asks for, which is a warning */
    pl_calibration_work calibration;
    double limit_seconds; /* a run ends by itself after so long, to be resumed; 0: none */
    /* For the planner: */
    pl_facts validation; /* of the held-out part, what the command evaluates */
    const char *file;    /* what the plan calls its file on disk: "token file"; or NULL */
    uint64_t file_bytes;
    int held; /* descriptor of a nameless file that a run reads; the plan's as soon as there is one. 0: none */
    uint64_t kernel_cache_bytes; /* of what a run reads and writes there: in the kernel's cache, at most */
};

/* Are samples read, and is there such a part? */
static inline bool pl_data_has(const pl_data *d, pl_part part) { return d->source && d->source->steps_per_epoch[part]; }
static inline void pl_data_close(pl_data *d)
{
    if (d) d->kind->close(d);
}

#endif
