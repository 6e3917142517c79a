/* A system ties a model, a dataset and a task together: all that the core needs to know about a kind of work, in const
 * rows. systems/ is the only folder that sees config, data, model and jobs at once; a row lies in a file of its own
 * (text.c), and config/systems.def lists the rows.
 *
 *   prepare   before planning: from what the user has to what the source reads, once, in bounded memory
 *   open      planner and runner: the data of one command
 *   jobs      what runs then; the programs of their lists are what is planned */
#ifndef PL_SYSTEMS_SYSTEM_H
#define PL_SYSTEMS_SYSTEM_H

#include "base/narrow.h"
#include "base/parts.h"
#include "base/predicted.h"
#include "config/config.h"
#include "data/infer/infer_data.h"
#include "ir/face.h"
#include "jobs/jobs.h"
#include "models/model.h"
#include "plimsoll/run.h"
#include "plimsoll/stages.h"
#include "store/block_file.h"
#include "store/beside.h"
#include "store/run_files.h"
#include "show/chart.h"
#include "show/doc.h"
#include "stream/data.h"
#include "systems/preparation.h"

/* What the data are opened for. */
typedef enum pl_data_use {
    PL_DATA_FOR_PLAN, /* `validation` is to be known */
    PL_DATA_FOR_RUN,
} pl_data_use;

/* In the identity: the data are those of this item alone, for a witness instead of results. */
#define PL_FACT_WITNESS "witness"

#define PL_PAGE_EVERY UINT64_MAX

/* What a page about results is to show, and which results. */
typedef struct pl_page_wish {
    const pl_block_reader *results;
    const char *path; /* the results', as shown on the page */
    uint64_t only;    /* fields of this item; PL_PAGE_EVERY: of some items */
    const pl_process_told *told;
    size_t told_count;
    pl_facts made;          /* hashes of what the config only names */
    const pl_config *given; /* the whole config, as the last run had it; NULL: not known, for the reason in `why` */
    const char *why;
} pl_page_wish;

/* Where samples come from. A dataset and a model are joined by their ports: what its source offers is what the model's
 * programs load (api/compile_ports.c). Members that are optional may be NULL. */
typedef struct pl_dataset {
    /* Is it the dataset for this command of the config? NULL: if no other of its system is. */
    bool (*is_meant)(const pl_config *, pl_command);
    /* Loads the module that reading needs, for good; the process begins with that (pl_process_begin), so that the
     * module's memory is part of the plan. */
    pl_status (*load_module)(const char *further, pl_error *);
    /* A further module that this config needs, then passed to load_module: "SYSTEM:FURTHER", a constant; else NULL. */
    const char *(*further_module)(const pl_config *);
    pl_status (*prepare)(pl_preparation *, pl_progress, void *context, pl_error *);
    const char *const *files; /* its files in the folder of a run: names, NULL after the last */
    const char *magic;        /* how the file that it prepares begins; NULL: it prepares none */
    const char *record;       /* the file that is known as a run's by its name alone; NULL: none */
    const pl_words *words;    /* what its items are called; NULL: as in its system */
    /* Checks that need several of its keys. PL_E_CONFIG. */
    pl_status (*check)(const pl_config *, pl_error *);
    /* pl_check_folder's checks beyond the core's. */
    pl_status (*check_folder)(pl_preparation *, pl_command, pl_error *);
    /* Makes the config name its files as the folder of the run keeps them. */
    pl_status (*keep)(pl_config *, pl_error *);
    /* planned: the identity of the data in the plan that is run, for systems that work on a part of the data at a time;
     * NULL where there is no plan yet. Which of the command's jobs are done stands in the list. */
    pl_status (*open)(const pl_config *, pl_command, pl_data_use, const pl_facts *planned, pl_data **, pl_error *);
    /* Opens only what the model depends on, without samples: so it can be exported where its data are missing. The
     * config outlives it. */
    pl_status (*open_model)(const pl_config *, pl_data **, pl_error *);
    /* Makes the config no longer name data that its model does not depend on, so that it runs on files without them. */
    void (*forget_data)(pl_config *);
    /* The kind of files on which only it can run a model, and what it says about such an item besides the model's
     * outputs. */
    const pl_rows_kind *rows;
    pl_infer_say *say_inferred;
    /* Completes an input of the model where files hold it in the form of the training data: how it is scaled. NULL:
     * files hold what the model takes. `of`: the data, opened without samples, which outlive the port. */
    void (*scale_input)(const pl_config *, const pl_data *of, pl_infer_port *);
    /* What a model that the config names is, as its files say. NULL: the config describes its model itself. */
    pl_status (*describe)(const pl_config *, pl_doc *, pl_error *);
} pl_dataset;

enum { PL_STAGE_SETS_MAX = 24 };

typedef struct pl_override {
    const char *key; /* of the config */
    char value[PL_STAGE_NAME_BYTES];
} pl_override;

/* One of several trainings of a config: what the config says differently for it. */
typedef struct pl_stage_row {
    char name[PL_STAGE_NAME_BYTES];
    bool alone;       /* it runs only when the stage key names it, not with the others */
    const char *what; /* "the training of the denoiser": errors say that it set a key */
    /* The training whose weights it begins with, "" for none, and the key that names its folder. A training run by hand
     * may name another folder; of several trainings only the first begins as the config says. */
    char begins_with[PL_STAGE_NAME_BYTES];
    const char *begin_key;
    const char *shared_key; /* names a folder; where the config leaves it empty, that of all trainings. NULL: none */
    pl_override set[PL_STAGE_SETS_MAX];
    uint32_t sets;
} pl_stage_row;

/* What is done with model and data. Members that are optional may be NULL. */
typedef struct pl_task {
    const pl_job *job[PL_COMMAND_COUNT]; /* NULL: it does not have that command */
    const pl_job *show;                  /* shows something about the weights between the steps of a training */
    bool in_epochs; /* trained in epochs: evaluated after each; warm-up is at most a tenth of the steps */
    uint64_t (*epochs)(const pl_config *); /* of a training; NULL: train.epochs */
    /* Metrics derived from a loss, at most PL_LOSS_METRICS_MAX. `validation` is the plan's. */
    size_t (*metrics)(double loss, const pl_facts *validation, pl_loss_metric *);
    /* Likewise from predictions, if its program "evaluate" outputs some (a STORE of f32, rows in order; those past the
     * end of the part come last; a histogram of its further inputs is kept). */
    size_t (*measure)(const pl_data *, const pl_predicted *, pl_loss_metric *);
    const pl_metric_chart *charts; /* charts of such metrics, for pages; the last has no title */
    /* Writes the rows, each with what it is about, to a file of lines. Asks for no memory. */
    pl_status (*keep_predictions)(const pl_data *, const float *predictions, uint64_t count, const char *path,
                                  pl_error *);
    /* What its own jobs are given (settings->own), in a block for pl_free; texts in it are the config's. */
    pl_status (*tell_jobs)(const pl_config *, void **own, pl_error *);
    /* pl_config_take_sampling of such a config; NULL: files say nothing of it. */
    pl_status (*take_sampling)(pl_config *, char *said, size_t room, pl_error *);
    /* Several trainings in one config (plimsoll/stages.h): training number k, in their order; false: there are no more.
     * `stage_key` of the config names one of them, "" all. NULL: there is always only one. */
    bool (*stage)(const pl_config *, uint32_t k, pl_stage_row *);
    const char *stage_key;
    /* The results of those whose predictions are in `out`. PL_E_DATA: there are none. */
    pl_status (*report_stages)(const pl_config *, const char *out, pl_doc *, pl_error *);
    /* Shows results that the config made. PL_E_DATA when they are another config's. */
    pl_status (*page)(const pl_config *, const pl_page_wish *, pl_doc *, pl_error *);
    pl_command plans;  /* what plan and others are about, unless told; 0: the first of the table that it has */
    bool keeps_config; /* the page needs the whole config of results, which is kept next to them, with absolute paths */
} pl_task;

/* The jobs of every task that trains. */
#define PL_JOBS_OF_TRAINED                                                                                             \
    [PL_COMMAND_TRAIN] = &pl_job_train, [PL_COMMAND_EVALUATE] = &pl_job_evaluate,                                      \
    [PL_COMMAND_GRADIENTS] = &pl_job_gradients, [PL_COMMAND_QUANTIZE] = &pl_job_quantize_evaluate,                     \
    [PL_COMMAND_INFER] = &pl_job_infer

enum { PL_SYSTEM_DATASETS_MAX = 4 };

/* The model is that of the arch (pl_model_family). */
typedef struct pl_system {
    pl_words words;
    /* The words for this config, constants; NULL: `words` serve all, unless a dataset has its own. */
    const pl_words *(*words_of)(const pl_config *);
    /* Checks that need several keys, beyond the model's. PL_E_CONFIG. NULL: none. */
    pl_status (*check)(const pl_config *, pl_error *);
    const pl_dataset *dataset[PL_SYSTEM_DATASETS_MAX + 1]; /* at least one; NULL after the last */
    const pl_task *task;
} pl_system;

/* ---- open.c ---- */
/* The row's `open`, and what all systems have in common: a file of weights in place of a checkpoint (run.weights), how
 * many samples a calibration sees. The config outlives the data. */
pl_status pl_system_open(const pl_config *, pl_command, pl_data_use, const pl_facts *planned, pl_data **, pl_error *);
/* Its part for the file of weights: a command that trains nothing begins with it in place of a checkpoint. */
pl_status pl_system_take_weights(const pl_config *, pl_command, pl_data *, pl_error *);
pl_real pl_system_narrowest(const pl_config *); /* the type that must hold a trained model's weights in use */
/* Samples per step of a model that is trained: a calibration takes one at a time. */
int64_t pl_system_batch(const pl_config *, pl_command);
uint64_t pl_system_epochs(const pl_config *); /* of a training */

/* ---- calibration.c ---- */
/* Do held-out data judge it? They do if the system evaluates and samples are its own; else outputs do. */
bool pl_system_judges_calibration(const pl_config *);
/* The path of the file of 8-bit weights. */
pl_status pl_system_find_quantized(const pl_config *, char path[PL_FILE_PATH_MAX], pl_error *);
/* Which samples a calibration sees, and how often. PL_E_DATA: there are none. */
pl_status pl_system_plan_calibration(const pl_config *, pl_data *, pl_error *);
/* What the jobs of a command are given (settings->own): for a calibration the same in all systems, else tell_jobs. */
pl_status pl_system_tell_jobs(const pl_config *, pl_command, void **own, pl_error *);

/* ---- inputs.c ---- */
/* Inputs for a model that runs on files (`of`: its data, opened without any): PREFIX.NAME.npy with so many items each.
 * They are held-out samples, else samples of the config's other data; in a system without samples, or whose samples
 * cannot be read, random numbers. `said` tells which, in words. */
enum { PL_INPUTS_SAID_BYTES = 700 };
pl_status pl_system_write_inputs(const pl_config *, const pl_infer_data *of, uint64_t items, const char *prefix,
                                 char said[PL_INPUTS_SAID_BYTES], pl_error *);

/* ---- outputs.c ---- */
/* Compares what infer wrote as PREFIX.NAME.npy with what it wrote as WIDE.NAME.npy for the same items. */
typedef struct pl_output_difference {
    const char *name;                 /* the output's, a constant */
    double difference;                /* the root of Σ(y − y_wide)² / Σ y_wide² */
    bool has_cosine;                  /* rows (the last dimension) have two numbers or more */
    double mean_cosine, least_cosine; /* of a row with its counterpart */
} pl_output_difference;
enum { PL_OUTPUTS_MAX = PL_FACE_STORED_MAX + PL_FACE_SCORED_MAX };
pl_status pl_system_compare_outputs(const pl_config *, const char *prefix, const char *wide,
                                    pl_output_difference[PL_OUTPUTS_MAX], size_t *count, pl_error *);

/* ---- system.c ---- */
const pl_system *pl_system_of(const pl_config *);
const pl_dataset *pl_dataset_of(const pl_config *, pl_command);
/* The first command's dataset, for what all commands of a config have in common: what the folder of its run keeps, the
 * module that its processes begin with, its words. */
const pl_dataset *pl_dataset_of_run(const pl_config *);
const pl_task *pl_task_of(const pl_config *);
const pl_words *pl_system_words(const pl_config *);
extern const pl_run_data pl_system_data;            /* for the datasets of all systems */
const char *pl_system_name(const pl_config *);      /* as in systems.def */
const pl_system *pl_system_named(const char *name); /* NULL: none has that name */
/* PL_E_USAGE, naming the existing ones, when it has no such command. */
pl_status pl_system_require(const pl_config *, pl_command, pl_error *);
/* The systems that have the command: bits 1 << PL_SYSTEM_…. */
uint32_t pl_systems_with(pl_command);
/* The first of the table of commands that it has. */
pl_command pl_system_first_command(const pl_config *);
/* The command's own jobs first, then those between its steps. PL_E_USAGE when the system has no such command. */
pl_status pl_system_find_jobs(const pl_config *, pl_command, const pl_data *, pl_job_list *, pl_error *);
pl_loss_metric pl_system_perplexity(double loss); /* for a model of tokens */

/* ---- held_out.c ---- */
/* PL_E_CONFIG when something that needs a validation part is asked for, and nothing is held out. */
pl_status pl_system_check_held_out(const pl_config *, pl_error *);

/* ---- stages.c: several trainings of one config ---- */
/* For filling a row: sets the config's `key` in it. */
void pl_stage_set(pl_stage_row *, const char *key, const char *fmt, ...) PL_PRINTF(3, 4);
/* The value of the stage key; "": not set. */
const char *pl_system_named_stage(const pl_config *);
/* Number k of the trainings that the command makes: all, or the named one. false: there are no more. */
bool pl_system_find_stage(const pl_config *, uint32_t k, pl_stage_row *);
/* How many of all trainings come before the one of this name. */
uint32_t pl_system_stages_before(const pl_config *, const char *name);
/* Does the training that the stage key names exist? PL_E_CONFIG. */
pl_status pl_system_check_stage(const pl_config *, pl_error *);
/* A training named by hand may come too early: PL_E_DATA if what it begins with does not exist. */
pl_status pl_system_check_begun(const pl_config *, pl_error *);
/* Makes the config that of the row, except for its folder: run.out is still that of all. */
pl_status pl_system_take_stage(pl_config *, const pl_stage_row *, pl_error *);
/* Does the command line set this key for the training that it names? If there are several, it applies to all. */
bool pl_system_is_said(const pl_config *, const char *key);
/* The file of predictions in the folder `out` of all trainings, which exists as soon as the training of this name is
 * done. */
pl_status pl_system_find_predictions(const char *out, const char *name, char path[PL_FILE_PATH_MAX], bool *is_done,
                                     pl_error *err);
pl_status pl_system_require_done(const char *out, uint32_t done, pl_error *); /* PL_E_DATA: none is */

/* ---- show_facts.c: a table of facts, ended by pl_doc_table_end; its rows ---- */
void pl_system_show_facts(pl_doc *);
void pl_system_show_fact(pl_doc *, const char *name, const char *fmt, ...) PL_PRINTF(3, 4);
void pl_system_show_key(pl_doc *, const pl_config *, const char *name, const char *path);
/* A folded section: all keys that decide that command's numbers. */
void pl_system_show_keys(pl_doc *, const pl_config *, pl_config_reader);

#define PL_SYSTEM_ROW(id, name) extern const pl_system pl_system_##name;
#define PL_ARCH_ROW(id, name, system)
#include "config/systems.def"
#undef PL_SYSTEM_ROW
#undef PL_ARCH_ROW

#endif
