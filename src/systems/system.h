/* A system ties a model, a dataset and a task together: all that the core asks of a kind of work, in const rows.
 * systems/ is the only folder that sees config, data, model and jobs at once; a row lies in a file of its own (text.c),
 * and config/systems.def lists the rows.
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

/* Of the identity: the data are those of this item alone, of which a witness is wanted and no results. */
#define PL_FACT_WITNESS "witness"

#define PL_PAGE_EVERY UINT64_MAX

/* What a page about results is to show, and of what. */
typedef struct pl_page_wish {
    const pl_block_reader *results;
    const char *path; /* of them, as the page says it */
    uint64_t only;    /* the fields of this item; PL_PAGE_EVERY: of some */
    const pl_process_told *told;
    size_t told_count;
    pl_facts made; /* hashes of what the config only names */
    const pl_config
        *given; /* the whole config, as the last run had it; NULL: it is not known, for the reason in `why` */
    const char *why;
} pl_page_wish;

/* Where samples come from. A dataset and a model are joined by their ports: what its source offers is what the model's
 * programs load (api/compile_ports.c). What a member may leave out is NULL. */
typedef struct pl_dataset {
    /* Is it the one that this command of the config is for? NULL: where no other of its system is. */
    bool (*is_meant)(const pl_config *, pl_command);
    /* Loads the module that reading needs, for good; the process begins with that (pl_process_begin), so that what it
     * holds is part of the plan. */
    pl_status (*load_module)(const char *further, pl_error *);
    /* Where this config needs a further module, which load_module is then given: "SYSTEM:FURTHER", a constant; else
     * NULL. */
    const char *(*further_module)(const pl_config *);
    pl_status (*prepare)(pl_preparation *, pl_progress, void *context, pl_error *);
    const char *const *files; /* its files in the folder of a run: names, NULL after the last */
    const char *magic;        /* how the file begins that it prepares; NULL: it prepares no file */
    const char *record;       /* the file that its name alone tells to be a run's; NULL: there is no such file */
    const pl_words *words;    /* for its items; NULL: those of its system */
    /* What no single key of it can tell. PL_E_CONFIG. */
    pl_status (*check)(const pl_config *, pl_error *);
    /* What pl_check_folder asks beyond the core's questions. */
    pl_status (*check_folder)(pl_preparation *, pl_command, pl_error *);
    /* The config names its files as the folder of the run keeps them. */
    pl_status (*keep)(pl_config *, pl_error *);
    /* planned: the identity of the data in the plan that is run, for those who work on a part of them at a time; NULL
     * where there is no plan yet. Which of the command's jobs are done stands in the list. */
    pl_status (*open)(const pl_config *, pl_command, pl_data_use, const pl_facts *planned, pl_data **, pl_error *);
    /* What the model depends on alone, without samples: so it is exported where its data are not. The config outlives
     * it. */
    pl_status (*open_model)(const pl_config *, pl_data **, pl_error *);
    /* The config no longer names data that its model does not depend on, so that it runs on files without them. */
    void (*forget_data)(pl_config *);
    /* The kind of files on which it alone can run a model, and what it says about an item of them beyond what the
     * model gives out. */
    const pl_rows_kind *rows;
    pl_infer_say *say_inferred;
    /* Completes an input of the model where files hold it as those did that it was trained on: how it is scaled. NULL:
     * files hold what the model takes. `of`: the data, opened without samples, which outlive the port. */
    void (*scale_input)(const pl_config *, const pl_data *of, pl_infer_port *);
} pl_dataset;

enum { PL_STAGE_SETS_MAX = 24 };

typedef struct pl_override {
    const char *key; /* of the config */
    char value[PL_STAGE_NAME_BYTES];
} pl_override;

/* One of several trainings of a config: what the config says differently for it. */
typedef struct pl_stage_row {
    char name[PL_STAGE_NAME_BYTES];
    bool alone;       /* it is made where the stage key names it, and not with the others */
    const char *what; /* "the training of the denoiser": errors say that it set a key */
    /* The training whose weights it begins with, "" for none, and the key that names its folder. By hand that key may
     * name another folder; of several trainings only the first begins as the config says. */
    char begins_with[PL_STAGE_NAME_BYTES];
    const char *begin_key;
    const char *shared_key; /* names a folder; where the config leaves it empty, it is that of all trainings. NULL */
    pl_override set[PL_STAGE_SETS_MAX];
    uint32_t sets;
} pl_stage_row;

/* What is done with model and data. What a member may leave out is NULL. */
typedef struct pl_task {
    const pl_job *job[PL_COMMAND_COUNT]; /* NULL: it has not got that command */
    const pl_job *show;                  /* has something to show of the weights, between the steps of a training */
    bool in_epochs; /* trained in epochs: evaluated after each, and warm after a tenth of the steps at most */
    uint64_t (*epochs)(const pl_config *); /* that a training makes; NULL: train.epochs */
    /* What is read off a loss, at most PL_LOSS_METRICS_MAX. `validation` as the plan has it. */
    size_t (*metrics)(double loss, const pl_facts *validation, pl_loss_metric *);
    /* Likewise off predictions, where its program "evaluate" gives some out (a STORE of f32, rows in order; those past
     * the end of the part come last; of its further inputs a histogram is kept). */
    size_t (*measure)(const pl_data *, const pl_predicted *, pl_loss_metric *);
    const pl_metric_chart *charts; /* of such metrics, for pages; the last has no title */
    /* Writes the rows, with what they are of, into a file of lines. Asks for no memory. */
    pl_status (*keep_predictions)(const pl_data *, const float *predictions, uint64_t count, const char *path,
                                  pl_error *);
    /* What its own jobs are told (settings->own), in a block for pl_free; texts in it are the config's. */
    pl_status (*tell_jobs)(const pl_config *, void **own, pl_error *);
    /* Several trainings in one config (plimsoll/stages.h): that of number k, in their order; false: there are no more.
     * `stage_key` of the config names one of them, "" all. NULL: it is always one. */
    bool (*stage)(const pl_config *, uint32_t k, pl_stage_row *);
    const char *stage_key;
    /* What those have brought whose predictions are in `out`. PL_E_DATA: none has. */
    pl_status (*report_stages)(const pl_config *, const char *out, pl_doc *, pl_error *);
    /* What there is to show of results that the config made. PL_E_DATA when they are others. */
    pl_status (*page)(const pl_config *, const pl_page_wish *, pl_doc *, pl_error *);
    bool keeps_config; /* the page needs the whole config of results, which is kept beside them, paths absolute */
} pl_task;

/* Those of each task that trains. */
#define PL_JOBS_OF_TRAINED                                                                                             \
    [PL_COMMAND_TRAIN] = &pl_job_train, [PL_COMMAND_EVALUATE] = &pl_job_evaluate,                                      \
    [PL_COMMAND_GRADIENTS] = &pl_job_gradients, [PL_COMMAND_QUANTIZE] = &pl_job_quantize_evaluate,                     \
    [PL_COMMAND_INFER] = &pl_job_infer

enum { PL_SYSTEM_DATASETS_MAX = 4 };

/* The model is that of the arch (pl_model_family). */
typedef struct pl_system {
    pl_words words;
    /* Those of this config, constants; NULL: `words` are those of all, but where a dataset has its own. */
    const pl_words *(*words_of)(const pl_config *);
    /* What no single key can tell, beyond what the model asks. PL_E_CONFIG. NULL: nothing. */
    pl_status (*check)(const pl_config *, pl_error *);
    const pl_dataset *dataset[PL_SYSTEM_DATASETS_MAX + 1]; /* at least one; NULL after the last */
    const pl_task *task;
} pl_system;

/* ---- open.c ---- */
/* The row's `open`, and what is alike in all systems: a file of weights in place of a checkpoint (run.weights), how
 * many samples a calibration sees. The config outlives the data. */
pl_status pl_system_open(const pl_config *, pl_command, pl_data_use, const pl_facts *planned, pl_data **, pl_error *);
/* Of that the file of weights: a command that trains nothing begins with it in place of a checkpoint. */
pl_status pl_system_take_weights(const pl_config *, pl_command, pl_data *, pl_error *);
pl_real pl_system_narrowest(const pl_config *); /* that weights of a trained model in use must do as */
/* Samples of a step of a model that is trained: a calibration takes one at a time. */
int64_t pl_system_batch(const pl_config *, pl_command);
uint64_t pl_system_epochs(const pl_config *); /* of a training */

/* ---- calibration.c ---- */
/* What is held out judges it: the system evaluates, and samples are its own. Else what comes out does. */
bool pl_system_judges_calibration(const pl_config *);
/* Of the file of weights in 8 bits. */
pl_status pl_system_find_quantized(const pl_config *, char path[PL_FILE_PATH_MAX], pl_error *);
/* Which samples it sees, and how often. PL_E_DATA: there are none. */
pl_status pl_system_plan_calibration(const pl_config *, pl_data *, pl_error *);
/* What the jobs of a command are told (settings->own): a calibration's in all systems the same, else tell_jobs. */
pl_status pl_system_tell_jobs(const pl_config *, pl_command, void **own, pl_error *);

/* ---- inputs.c ---- */
/* Inputs for a model that is run on files (`of`: its data, opened without any): PREFIX.NAME.npy with so many items
 * each. They are samples of what is held out, else of the config's other data; of a system that has none, or whose
 * samples cannot be read, they are random numbers. `said` tells which, in words. */
enum { PL_INPUTS_SAID_BYTES = 700 };
pl_status pl_system_write_inputs(const pl_config *, const pl_infer_data *of, uint64_t items, const char *prefix,
                                 char said[PL_INPUTS_SAID_BYTES], pl_error *);

/* ---- outputs.c ---- */
/* What infer wrote as PREFIX.NAME.npy, against what it wrote as WIDE.NAME.npy of the same items. */
typedef struct pl_output_difference {
    const char *name;                 /* of the output, a constant */
    double difference;                /* the root of Σ(y − y_wide)² / Σ y_wide² */
    bool has_cosine;                  /* rows (the last dimension) have two numbers or more */
    double mean_cosine, least_cosine; /* of a row with its own of the other */
} pl_output_difference;
enum { PL_OUTPUTS_MAX = PL_FACE_STORED_MAX + PL_FACE_SCORED_MAX };
pl_status pl_system_compare_outputs(const pl_config *, const char *prefix, const char *wide,
                                    pl_output_difference[PL_OUTPUTS_MAX], size_t *count, pl_error *);

/* ---- system.c ---- */
const pl_system *pl_system_of(const pl_config *);
const pl_dataset *pl_dataset_of(const pl_config *, pl_command);
/* That of the first command, for what all commands of a config have in common: what the folder of its run keeps, the
 * module that its processes begin with, its words. */
const pl_dataset *pl_dataset_of_run(const pl_config *);
const pl_task *pl_task_of(const pl_config *);
const pl_words *pl_system_words(const pl_config *);
extern const pl_run_data pl_system_data;            /* of the datasets of all systems */
const char *pl_system_name(const pl_config *);      /* as in systems.def */
const pl_system *pl_system_named(const char *name); /* NULL: there is none of that name */
/* PL_E_USAGE, naming those that there are, when it has no such command. */
pl_status pl_system_require(const pl_config *, pl_command, pl_error *);
/* Those that have the command: bits 1 << PL_SYSTEM_…. */
uint32_t pl_systems_with(pl_command);
/* The first of the table of commands that it has. */
pl_command pl_system_first_command(const pl_config *);
/* Its own first, then those between its steps. PL_E_USAGE when the system has no such command. */
pl_status pl_system_find_jobs(const pl_config *, pl_command, const pl_data *, pl_job_list *, pl_error *);
pl_loss_metric pl_system_perplexity(double loss); /* of a model of tokens */

/* ---- held_out.c ---- */
/* PL_E_CONFIG when something is asked for that needs a validation part, and nothing is held out. */
pl_status pl_system_check_held_out(const pl_config *, pl_error *);

/* ---- stages.c: several trainings of one config ---- */
/* For who fills a row: the config's `key` is this in it. */
void pl_stage_set(pl_stage_row *, const char *key, const char *fmt, ...) PL_PRINTF(3, 4);
/* What the stage key says; "": nothing. */
const char *pl_system_named_stage(const pl_config *);
/* Number k of those that the command makes: all, or the one that is named. false: there are no more. */
bool pl_system_find_stage(const pl_config *, uint32_t k, pl_stage_row *);
/* How many of all of them come before the one of this name. */
uint32_t pl_system_stages_before(const pl_config *, const char *name);
/* Is there a training of the name that the stage key says? PL_E_CONFIG. */
pl_status pl_system_check_stage(const pl_config *, pl_error *);
/* Named by hand a training may come before its time: PL_E_DATA where what it begins with does not exist. */
pl_status pl_system_check_begun(const pl_config *, pl_error *);
/* The config becomes that of the row, but for its folder: run.out is still that of all. */
pl_status pl_system_take_stage(pl_config *, const pl_stage_row *, pl_error *);
/* Does the command line say this key about the training that it names? Of several it speaks to all. */
bool pl_system_is_said(const pl_config *, const char *key);
/* The file of predictions in the folder `out` of all trainings, which is there as soon as the one of this name is
 * done. */
pl_status pl_system_find_predictions(const char *out, const char *name, char path[PL_FILE_PATH_MAX], bool *is_done,
                                     pl_error *err);
pl_status pl_system_require_done(const char *out, uint32_t done, pl_error *); /* PL_E_DATA: none is */

/* ---- show_facts.c: a table of facts, which ends with pl_doc_table_end; its rows ---- */
void pl_system_show_facts(pl_doc *);
void pl_system_show_fact(pl_doc *, const char *name, const char *fmt, ...) PL_PRINTF(3, 4);
void pl_system_show_key(pl_doc *, const pl_config *, const char *name, const char *path);
/* A folded section: all keys that decide the numbers of that command. */
void pl_system_show_keys(pl_doc *, const pl_config *, pl_config_reader);

#define PL_SYSTEM_ROW(id, name) extern const pl_system pl_system_##name;
#define PL_ARCH_ROW(id, name, system)
#include "config/systems.def"
#undef PL_SYSTEM_ROW
#undef PL_ARCH_ROW

#endif
