/* Running a trained model, or one with given weights: on files, as plimsoll infer does, or in the caller's memory.
 *
 * In the caller's memory, in a host program:
 *     pl_infer_plan      what the model takes, gives and needs is known; nothing large is held
 *     pl_infer_load      its weights are read into one block of memory, and everything has run once
 *     pl_infer_bind      where inputs are read from and outputs go, each as often as wanted
 *     pl_infer_step      one batch; from the load on nothing asks for memory
 *     pl_infer_close */
#ifndef PLIMSOLL_INFER_H
#define PLIMSOLL_INFER_H

#include "plimsoll/run.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- on files: which, what comes of them and where it goes say the keys infer.* of the config ---- */

typedef struct pl_inferred {
    uint64_t items;
    uint64_t not_finite; /* numbers of the results that are infinite or NaN */
    double seconds;      /* of the work, reading and writing with it */
    double run_seconds;  /* of that, of the batches alone: files are not opened, synced and closed in it */
    double median_seconds, p95_seconds, most_seconds; /* of an item, with infer.latency; else 0 */
} pl_inferred;

/* The run of a plan for PL_COMMAND_INFER. Lines of JSON come as PL_EVENT_TEXT where no file is named for them. A file
 * is whole or not there. PL_E_STOPPED after a stop. */
PL_API PL_MUST_USE pl_status pl_run_infer(pl_run *, pl_inferred *, pl_error *);

/* ---- in the caller's memory ---- */

typedef struct pl_infer pl_infer;

typedef struct pl_infer_options {
    const char *model;       /* a config file, or the folder of a run; NULL: */
    const pl_config *config; /* this config, whose infer.files are not looked at */
    const char *checkpoint;  /* this checkpoint's folder instead of the run's best or latest; may be NULL */
    bool seeded;             /* first values, whatever was trained */
    uint32_t batch;          /* items at once; 0: one */
    uint32_t threads;        /* 0: as the config says */
} pl_infer_options;

/* An input or an output. Numbers lie row-major, the items of a batch behind each other. */
typedef struct pl_infer_value {
    const char *name; /* "images", "logits": docs/export.md has those of each system */
    bool is_input;
    bool is_whole; /* int32_t, ids, −1 for none; else float */
    uint32_t rank;
    uint64_t dim[6]; /* the batch first */
    uint64_t bytes;  /* of all of it */
} pl_infer_value;

/* PL_E_UNSUPPORTED: a model that has no such program; PL_E_BUDGET: it does not fit memory.budget. */
PL_API PL_MUST_USE pl_status pl_infer_plan(const pl_infer_options *, pl_infer **, pl_error *);
/* What pl_infer_load wants. */
PL_API uint64_t pl_infer_bytes(const pl_infer *);
/* memory: so many bytes, aligned to 64, the model's until it is closed; NULL: the heap's. PL_E_DATA: nothing was
 * trained, or the weights are damaged or of another model. */
PL_API PL_MUST_USE pl_status pl_infer_load(pl_infer *, void *memory, uint64_t bytes, pl_error *);
/* Both, on the heap. */
PL_API PL_MUST_USE pl_status pl_infer_open(const pl_infer_options *, pl_infer **, pl_error *);

PL_API size_t pl_infer_values(const pl_infer *);
PL_API pl_infer_value pl_infer_value_at(const pl_infer *, size_t); /* inputs first; below pl_infer_values */
/* Each step reads the input from there, or writes the output there, as many bytes as its value has, wherever they lie:
 * PL_E_USAGE for another number of bytes or a name that is none. Outputs that are bound to nothing stay inside. */
PL_API PL_MUST_USE pl_status pl_infer_bind(pl_infer *, const char *name, void *at, uint64_t bytes, pl_error *);
/* PL_E_USAGE where an input is bound to nothing; PL_E_DATA for an id that the model has not got; PL_E_STORAGE where
 * files were written to that are mapped (model.weights). */
PL_API PL_MUST_USE pl_status pl_infer_step(pl_infer *, pl_error *);
PL_API void pl_infer_close(pl_infer *); /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
