/* What the runner needs to know besides the plan, as plain values: it sees no config. Paths and texts are the caller's
 * and outlive the session. */
#ifndef PL_RUN_SETTINGS_H
#define PL_RUN_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/words.h"
#include "store/checkpoint.h"
#include "store/run_files.h"

typedef enum pl_lr_kind { PL_LR_CONSTANT, PL_LR_LINEAR, PL_LR_COSINE, PL_LR_PLATEAU } pl_lr_kind;

/* lr(step) for steps from 0: warm-up lr·(step+1)/warmup, then the kind's curve down to min_ratio·lr. */
typedef struct pl_lr_schedule {
    pl_lr_kind kind;
    double lr, min_ratio;
    uint64_t warmup, steps;
    /* plateau: evaluations without a relative improvement of 1e-4 before lr is multiplied by factor */
    uint64_t patience;
    double factor;
} pl_lr_schedule;

/* The plateau's memory: saved with the run. */
typedef struct pl_plateau {
    double best, scale;
    uint64_t bad;
} pl_plateau;

double pl_lr_at(const pl_lr_schedule *, const pl_plateau *, uint64_t step);
void pl_plateau_init(pl_plateau *);
void pl_plateau_update(pl_plateau *, const pl_lr_schedule *, double loss);

typedef struct pl_run_settings {
    const char *out;         /* folder of the run */
    const pl_run_data *data; /* what such folders hold */
    const pl_words *words;
    uint32_t batch, micro_batch;
    uint64_t steps;
    pl_lr_schedule lr;
    uint64_t eval_every, eval_batches, checkpoint_every, sample_every, log_every; /* steps; 0 = never */
    /* evaluations in a row without a loss that is lower by early_min_delta, after which a training ends; 0: never */
    uint64_t early_patience;
    double early_min_delta;
    uint32_t keep_last;
    bool keep_best, tensorboard;
    bool may_begin, may_resume; /* where the folder has no checkpoint; where it has one */
    uint64_t model_hash, plan_hash;
    const char *config_text; /* for the record of checkpoints */
    const char *kept_config; /* that config with absolute paths, for the folder; NULL: none is written */
    /* NULL, or asked before a training resumes from a checkpoint and loads its numbers: may it, and which values that
     * decide numbers have changed? They go to *changes, "" for none; the text is its own. */
    pl_status (*goes_on)(void *context, const pl_saved *, const char **changes, pl_error *);
    void *goes_on_context;
    bool begins_first, needs_saved; /* for a command that does not train: initial values, or those of the data's file,
                                       whatever was trained; a checkpoint, or it fails (PL_E_DATA) */
    const char *held_out;           /* the config's key for how much is held out; NULL: there is none */
    const void *own;                /* what the system tells its own jobs */
    const char *trace_path;         /* NULL: none */
    const char *checkpoint; /* a command that does not train: this checkpoint folder instead of the best or latest */
    const char *init_from;  /* a training that begins: the folder of the run whose weights it begins with; NULL: none */
    const char *part_from;  /* likewise, after those: the folder of a run with a part of the model; NULL: none */
    const char *part;       /* how the names of that part's tensors begin */
    const char *part_too;   /* likewise, for another part that is there; NULL: none */
    const char *part_key;   /* the config key that names that folder */
    const char *part_sizes; /* keys that say how large its tensors are: "denoiser.channels and denoiser.depth" */
    const char *to;         /* the file that a job writes its result to, if it does */
} pl_run_settings;

#endif
