/* Plans: where every byte of a command goes, known before it runs. */
#ifndef PLIMSOLL_PLAN_H
#define PLIMSOLL_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "plimsoll/config.h"
#include "plimsoll/words.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pl_plan pl_plan;

/* PL_COMMAND_TRAIN, PL_COMMAND_EVALUATE, PL_COMMAND_GENERATE, and PL_COMMAND_GRADIENTS: one batch, its loss and every
 * gradient (plimsoll verify --gradients). */
typedef enum pl_command {
#define PL_COMMAND_ROW(id, ...) PL_COMMAND_##id,
#include "plimsoll/commands.def"
#undef PL_COMMAND_ROW
    PL_COMMAND_COUNT
} pl_command;

PL_API const char *pl_command_name(pl_command); /* "train" */
/* False when no command has that name. */
PL_API bool pl_command_parse(const char *name, pl_command *);

typedef enum pl_command_uses {
    PL_USES_DATA = 1 << 0,        /* reads samples: they must be prepared */
    PL_USES_GRADIENT = 1 << 1,    /* its program "train" is differentiated */
    PL_USES_UPDATE = 1 << 2,      /* and changes weights: it has optimizer state, checkpoints, files of a run */
    PL_USES_VALIDATION = 1 << 3,  /* reads the held-out part */
    PL_USES_TEXT = 1 << 4,        /* always writes text; other commands may, between their steps */
    PL_USES_WHOLE_BATCH = 1 << 5, /* takes the batch at once */
    PL_USES_WEIGHTS = 1 << 6,     /* begins with a checkpoint's weights; else with initial values, every time */
    PL_USES_CALIBRATION = 1 << 8, /* observes the inputs of layers that can run in 8 bits, and writes those layers */
    PL_USES_FILES = 1 << 9,       /* runs the model as others see it (its exported face) on the user's files */
    PL_USES_RESULTS = 1 << 7,     /* keeps results in a file of its own, and resumes where that ends */
} pl_command_uses;
/* Does the command use any of these? */
PL_API bool pl_command_does(pl_command, uint32_t uses);

/* model.arch decides which commands there are. PL_E_USAGE, naming those, when the config does not have this one. */
PL_API PL_MUST_USE pl_status pl_command_require(pl_command, const pl_config *, pl_error *);
/* The config's command where none is given: training, or else the first that it has. */
PL_API pl_command pl_command_of(const pl_config *);

/* Does the command read samples of the config's own data, so that they must be prepared (pl_prepare)? A calibration on
 * files (quantization.files) does not. */
PL_API bool pl_command_reads_samples(pl_command, const pl_config *);

/* The options of the command line (pl_config_apply_args) must be keys that the command reads: PL_E_USAGE names one that
 * is not. Keys in files and in the environment are not checked: several commands share them. */
PL_API PL_MUST_USE pl_status pl_command_check_options(pl_command, const pl_config *, pl_error *);
/* Like PL_CONFIG_HELP, but only what this command reads; text in a block for pl_text_free. */
PL_API PL_MUST_USE pl_status pl_command_help(pl_command, char **text, size_t *bytes, pl_error *);
/* A line for each of these options, "text batch_size steps", in this order; what it does not read is left out. */
PL_API PL_MUST_USE pl_status pl_command_brief(pl_command, const char *options, char **text, size_t *bytes, pl_error *);

/* Called now and then during long work; done and total are in the phase's own units. May be NULL. Returning false ends
 * the preparation of data, and the reading of pictures and HDF5 before planning, with PL_E_STOPPED, as if it had
 * failed; planning itself ignores it. */
typedef bool (*pl_progress)(void *context, const char *phase, uint64_t done, uint64_t total);

/* May the command work in the folder of the run? Refuses what the system of the config has no job for (PL_E_USAGE); to
 * train where another process is training (PL_E_STORAGE), or where there is a run and run.resume is false
 * (PL_E_STORAGE); whatever pl_check_resume refuses; and any command with other files than the run's weights were
 * trained with (PL_E_CONFIG; for text: its tokenizer). Quick; pl_prepare and pl_run_open refuse the same, later. */
PL_API PL_MUST_USE pl_status pl_check_folder(const pl_config *, pl_command, pl_error *);
/* Removes all checkpoints of the run in the config's folder, so that a training starts afresh there; does nothing where
 * there is no run. PL_E_STORAGE: somebody is training there, or it cannot be removed (a link stays). */
PL_API PL_MUST_USE pl_status pl_forget_run(const pl_config *, pl_error *);
/* May a training of this config resume the run in its folder? Always when run.resume is false. PL_E_DATA when it is
 * true and there is no checkpoint; PL_E_CONFIG when the run is another model's or past train.steps, or when the config
 * differs in what the run settled with its first step (docs/config.md, "decides"). */
PL_API PL_MUST_USE pl_status pl_check_resume(const pl_config *, pl_error *);

/* Makes sure that what the system prepares from its data for the command exists and is up to date, in bounded memory. A
 * failure leaves nothing behind. PL_E_DATA, PL_E_STORAGE.
 *
 * For a text: its tokenizer and token file; both stay in the run's folder (the token file in data.cache when that is
 * set), and neither text nor tokens are ever whole in memory. A folder that holds a run keeps its tokenizer and its
 * tokens: with run.resume another text is refused (PL_E_CONFIG); without it, the tokens of another text go to a
 * subfolder of their own, which data.cache then names.
 *
 * For flights (cloud heights): the file of prepared frames, in the run's folder or in `cache`. Every stage uses it
 * again while the flights' files and the keys that made it are the same.
 *
 * For texts to encode: their index, in the run's folder. */
PL_API PL_MUST_USE pl_status pl_prepare(pl_config *, pl_command, pl_progress, void *context, pl_error *);

/* The same for callers that only look, as `plimsoll plan` does. Until pl_prepared_undo, what was made in the run's
 * folder is there, and if anything was, no run begins there; then all of it is removed, with the folder. What lies
 * elsewhere (data.cache) stays. PL_E_STORAGE: something cannot be removed. */
typedef struct pl_prepared pl_prepared;
PL_API PL_MUST_USE pl_status pl_prepare_briefly(pl_config *, pl_command, pl_progress, void *context, pl_prepared **,
                                                pl_error *);
PL_API pl_status pl_prepared_undo(pl_prepared *, pl_error *); /* NULL is fine, for both */

/* Does the config's system prepare anything from its data for the command? */
PL_API bool pl_prepares(const pl_config *, pl_command);

/* How far the results of a command are, if it keeps any (PL_USES_RESULTS). */
typedef struct pl_work_left {
    uint64_t blocks, done; /* the file's; the next run makes those not done */
    char path[4096];
} pl_work_left;
/* Looks at the file, and creates none; one that was cut off or repaired is made whole first, and what it lost is not
 * done. PL_E_CONFIG when it holds the results of another config, PL_E_DATA when it is not such a file, PL_E_STORAGE
 * when the disk has no room for one, PL_E_USAGE when run.trace or an input lies where it or a file next to it comes. */
PL_API PL_MUST_USE pl_status pl_work_find_left(const pl_config *, pl_command, pl_work_left *, pl_error *);
/* The same, and creates a missing file, with all of its disk space reserved. A run needs it. */
PL_API PL_MUST_USE pl_status pl_work_reserve(const pl_config *, pl_command, pl_work_left *, pl_error *);

/* For work that several processes do one after another: keeps all others from the file until the last process that has
 * the descriptor ends. exec hands it on; the next process adopts it. PL_E_STORAGE: another process has it. */
PL_API PL_MUST_USE pl_status pl_work_hold(const pl_work_left *, int *descriptor, pl_error *);
PL_API void pl_work_adopt(int descriptor);

/* Does all of the command's work fit memory.budget? Where its parts have a plan each, since their shapes differ, all
 * are planned; else nothing is checked. PL_E_BUDGET names one that does not fit. */
PL_API PL_MUST_USE pl_status pl_work_check(const pl_config *, pl_command, pl_error *);

/* Plans the command. For work that is done in parts, the plan is the largest part's, and its report covers all: their
 * number, bytes and times. The data must be prepared where pl_command_reads_samples says so. Kernels that were never
 * measured on this machine are measured (calibration: some seconds, for work in parts at most a minute; at most 48 MiB;
 * kept in cache_folder unless that is NULL). Planning itself may take about 1 GiB, and no more than this machine has:
 * deeper models are refused at once (PL_E_BUDGET). PL_E_BUDGET when nothing fits memory.budget: the sentence says by
 * how many bytes, and what would fit. The plan is the caller's to destroy; NULL when it fails. */
PL_API PL_MUST_USE pl_status pl_plan_make(const pl_config *, pl_command, const char *cache_folder, pl_progress,
                                          void *context, pl_plan **, pl_error *);
/* Adds advice to a training plan, for its report: all of its work, what bounds the time, what single changes would
 * bring (each is planned, nothing is measured), risks with figures, and what is safe. To a plan of a pretrained model
 * that generates: what other contexts would take. Other plans already have advice, or need none: PL_OK. The config is
 * the plan's. */
PL_API PL_MUST_USE pl_status pl_plan_advise(const pl_config *, const char *cache_folder, pl_plan *, pl_error *);
/* A plan is made for its budget, not for this machine: with "none" (or a budget larger than the machine) only another
 * machine may be able to hold it. A caller that is about to run uses pl_plan_make_here, which at once refuses a model
 * whose weights and state alone are too large (the data must be prepared), and then asks pl_plan_check_machine.
 * PL_E_BUDGET with a sentence that names the limit: RAM and swap, the cgroup's, RLIMIT_AS or RLIMIT_DATA. */
PL_API PL_MUST_USE pl_status pl_plan_make_here(const pl_config *, pl_command, const char *cache_folder, pl_progress,
                                               void *context, pl_plan **, pl_error *);
PL_API PL_MUST_USE pl_status pl_plan_check_machine(const pl_plan *, pl_error *);
PL_API void pl_plan_destroy(pl_plan *); /* NULL is fine */

/* The lock file: the plan as text; runs exactly as printed. */
PL_API PL_MUST_USE pl_status pl_plan_save(const pl_plan *, const char *path, pl_error *);
PL_API PL_MUST_USE pl_status pl_plan_load(const char *path, pl_plan **, pl_error *);
/* Makes the config that of the plan, except run.progress, run.log and run.resume: a plan serves a new run and the same
 * run when it resumes. The config that a run keeps in its folder counts as that of its plan. PL_E_CONFIG names the
 * first key that was set to something other than what was planned, or that decides numbers and differs: such a plan is
 * not what was asked for. */
PL_API PL_MUST_USE pl_status pl_plan_take_config(const pl_plan *, pl_config *, pl_error *);

typedef enum pl_plan_form {
    PL_PLAN_REPORT, /* tables and the arena map, for a person */
    PL_PLAN_JSON,   /* schema plimsoll.plan/1 */
    PL_PLAN_HTML,   /* one page with pictures */
    PL_PLAN_LOCK,   /* what pl_plan_save writes */
    PL_PLAN_GRAPH,  /* the graph alone */
} pl_plan_form;
/* Text in a block for pl_text_free. */
PL_API PL_MUST_USE pl_status pl_plan_text(const pl_plan *, pl_plan_form, char **text, size_t *bytes, pl_error *);
/* The report for a terminal of so many columns (40 to 200 are used), with or without ANSI colours; is_short: only what
 * fits one screen. Text in a block for pl_text_free. */
typedef struct pl_plan_look {
    unsigned columns;
    bool color, is_short;
} pl_plan_look;
PL_API PL_MUST_USE pl_status pl_plan_report(const pl_plan *, const pl_plan_look *, char **text, size_t *bytes,
                                            pl_error *);

PL_API uint64_t pl_plan_arena_bytes(const pl_plan *);
PL_API uint64_t pl_plan_resident_bytes(const pl_plan *); /* the whole process's */
/* What a container is billed for: resident, page tables, kernel memory, the page cache of what is written. */
PL_API uint64_t pl_plan_charged_bytes(const pl_plan *);
/* "27.5 MB (auto: 29.4 MB by cgroup limit, less a reserve of 1.8 MB for others)"; "" where the budget is a size or
 * "none", and for a loaded plan. */
PL_API const char *pl_plan_budget_text(const pl_plan *);
PL_API double pl_plan_step_seconds(const pl_plan *); /* predicted for one training step; 0 when unknown */
PL_API int pl_plan_threads(const pl_plan *);
/* For one training step; 0 and 1 where the plan has none. The last micro-batch holds the rest of the batch: a batch of
 * 16 in micro-batches of 6 is 6 + 6 + 4. */
PL_API uint64_t pl_plan_batch(const pl_plan *);        /* samples in all */
PL_API uint64_t pl_plan_micro_batch(const pl_plan *);  /* samples at once */
PL_API uint64_t pl_plan_accumulation(const pl_plan *); /* micro-batches per step */
PL_API uint64_t pl_plan_parameters(const pl_plan *);
/* Of a pretrained model: how many tokens are read, and how many texts written, at once, where a budget made these fewer
 * than usual; else 0, also for a loaded plan. */
PL_API uint32_t pl_plan_lowered_chunk(const pl_plan *);
PL_API uint32_t pl_plan_lowered_sequences(const pl_plan *);
/* What its items and samples are called. */
PL_API const pl_words *pl_plan_words(const pl_plan *);

#ifdef __cplusplus
}
#endif
#endif
