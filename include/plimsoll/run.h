/* Running a plan.
 *
 * A process of its own (what the command does, so that memory is as planned to the page):
 *     pl_process_start, pl_runner_exec(lock file)  →  in the new process: pl_process_start,
 *     pl_runner_prepare(lock file), pl_plan_load, pl_run_open, pl_run_train …, pl_run_ledger, pl_run_close
 *
 * Inside a host program (its memory is its own affair; nothing process-wide is changed):
 *     pl_plan_make or pl_plan_load, pl_run_open with host set, pl_run_train …, pl_run_close
 *
 * After pl_run_open has returned, training, evaluating, generating and saving ask for no memory. */
#ifndef PLIMSOLL_RUN_H
#define PLIMSOLL_RUN_H

#include <stdbool.h>
#include <stddef.h>

#include "plimsoll/plan.h"
#include "plimsoll/words.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum pl_event_kind {
    /* All memory is in hand; step: done so far (a resumed run). text: the keys that decide numbers and changed at
     * the resume, "train.learning_rate 0.001 (0.003 before)"; mostly empty. */
    PL_EVENT_COMMITTED,
    PL_EVENT_STEP,      /* loss, lr, items_per_second, every train.log_every steps */
    PL_EVENT_EVALUATED, /* loss: of the validation part */
    PL_EVENT_SAVED,     /* text: the checkpoint's name */
    PL_EVENT_TEXT,      /* generated text, piece by piece: whole UTF-8 characters unless the model made broken ones. Of
                           generate the first is empty: nothing is refused any more, and the prompt is being read */
    PL_EVENT_TEXT_END,  /* told: of generate */
    PL_EVENT_WARNING,   /* text */
    PL_EVENT_STOPPED,   /* a stop was asked for; the state is saved */
    PL_EVENT_FINISHED,
    /* The run is alive: about ten times a second at most, and after the first step, however long steps and validations
     * take. loss, lr, items_per_second: of the last step that is done, NaN before there is one. */
    PL_EVENT_TICK,
    PL_EVENT_NOTE, /* text: what the run works on */
    PL_EVENT_ROW,  /* text: a line of a table, as people read it; cells: the same for programs, none in its head */
} pl_event_kind;

/* Of a row of a table: a text, or, where that is NULL, a number or a truth (0, 1). */
typedef struct pl_cell {
    const char *key, *text;
    double number;
    bool is_truth;
} pl_cell;

/* Where a metric is shown. */
typedef enum pl_metric_use {
    PL_METRIC_IN_FILE = 1 << 0,   /* a line of metrics.jsonl about a validation has it */
    PL_METRIC_AT_STEPS = 1 << 1,  /* shown beside the loss of a step */
    PL_METRIC_VALIDATED = 1 << 2, /* shown beside that of a validation */
} pl_metric_use;

/* What a system reads off a loss: perplexity, bits per byte. */
typedef struct pl_loss_metric {
    const char *key, *words, *brief; /* "bits_per_byte", "bits per byte", "bits/byte" */
    int decimals, brief_decimals; /* that are worth showing; brief_decimals -1: as many as its size leaves room for */
    uint32_t uses;                /* pl_metric_use bits; always where a command is asked for the loss alone */
    double value;
} pl_loss_metric;
enum { PL_LOSS_METRICS_MAX = 20 };

/* How a generated text came to its end. */
typedef enum pl_text_ended {
    PL_TEXT_AT_LENGTH,   /* generate.tokens */
    PL_TEXT_AT_STOP,     /* one of generate.stop, which is not told */
    PL_TEXT_AT_END,      /* a token of the model's that ends a text, which is not told either */
    PL_TEXT_AT_CONTEXT,  /* a pretrained model's context is full */
    PL_TEXT_INTERRUPTED, /* a stop was asked for */
} pl_text_ended;
typedef struct pl_text_told {
    uint64_t prompt_tokens, tokens;
    double first_seconds, seconds; /* from the prompt to the first token and to the last */
    pl_text_ended ended;
} pl_text_told;

typedef struct pl_event {
    pl_event_kind kind;
    uint64_t step, steps; /* done, of all */
    double epoch;
    double loss, lr, best_loss;
    const pl_words *words;        /* the names of items and samples */
    uint64_t items;               /* trained on, in all */
    double items_per_second;      /* since the last report */
    double seconds;               /* since "committed" */
    const pl_loss_metric *metric; /* what the system reads off `loss`; valid during the call */
    size_t metrics;
    const char *text; /* not terminated; valid during the call */
    size_t text_bytes;
    const char *table;   /* row: the name of its table, */
    const pl_cell *cell; /* and what stands in it; valid during the call */
    size_t cells;
    uint64_t part, parts; /* tick: parts of the step or validation done (each pass of a micro-batch is one) */
    /* Of results: there, written before or in this run, and when all is done; 0, 0: the command keeps none. */
    uint64_t there_bytes, result_bytes;
    bool validating; /* tick: the parts belong to a validation */
    bool is_saved;   /* training: there is a checkpoint to go on from, that of saved_step */
    uint64_t saved_step;
    const pl_text_told *told; /* text_end; valid during the call */
} pl_event;

/* Called from the thread that runs; must not ask for memory after PL_EVENT_COMMITTED. */
typedef void (*pl_listener)(void *context, const pl_event *);

/* ---- a process of its own ---- */

/* When the environment tells malloc how to behave (MALLOC_…, GLIBC_TUNABLES with glibc.malloc…), replaces this process
 * by one without those variables, so that planner and runner begin alike; else PL_OK at once. A program that plans for
 * a process of its own calls it first in main(). */
PL_API PL_MUST_USE pl_status pl_process_restart_plain(char *const *argv, char *const *envp, pl_error *);
/* First thing in main(). */
PL_API PL_MUST_USE pl_status pl_process_start(pl_error *);
/* Some systems need a library that others shall not hold (one that draws text): then planner and runner begin with it,
 * so that it is part of the plan. Its name, or NULL; and pl_process_start with that one loaded before (NULL: none). */
PL_API const char *pl_config_module(const pl_config *);
PL_API PL_MUST_USE pl_status pl_process_begin(const char *module, pl_error *);
/* Replaces this process by a new one of the same program with these words, without what tells malloc how to behave.
 * Returns only on failure. */
PL_API PL_MUST_USE pl_status pl_process_restart(char *const *argv, char *const *envp, pl_error *);
/* A process that prepares and plans, to be replaced by its runner, limits itself to what its cgroup's limit leaves: a
 * request for more is then refused (PL_E_NOMEM); without this the kernel would kill the process. Call it once, before
 * pl_prepare. After PL_E_NOMEM, pl_planner_fence_struck says whether that limit was the cause. */
PL_API PL_MUST_USE pl_status pl_planner_fence(const pl_config *, pl_error *);
PL_API bool pl_planner_fence_struck(void);
/* May the plan be held here, now, in place of this process? Checks more than pl_plan_check_machine: what others in the
 * cgroup are already charged for, and what is free on the machine. OpenMP's idle threads, which the runner would not
 * have, are ended first. `files`: the folder or file that this run writes to, or that of all trainings of a command:
 * what lies there in memory (tmpfs) is counted in the plan, and no others' then. PL_E_BUDGET. */
PL_API PL_MUST_USE pl_status pl_runner_check(const pl_plan *, const char *files, pl_error *);
/* What planning has made ready for the run (pictures, HDF5) lies in a file without a name that the plan holds open:
 * with this it stays open in the process that pl_runner_exec makes. Without effect on other plans. */
PL_API PL_MUST_USE pl_status pl_runner_hand_on(const pl_plan *, pl_error *);
/* Replaces this process by a fresh one of the same executable with these arguments (argv ends with NULL). Returns only
 * on failure. */
PL_API PL_MUST_USE pl_status pl_runner_exec(const char *lock_path, char *const *argv, char *const *envp, pl_error *);
/* In the new process, before anything else: heap, stacks, program and libraries are made as planned. */
PL_API PL_MUST_USE pl_status pl_runner_prepare(const char *lock_path, pl_error *);

/* ---- a run ---- */

typedef struct pl_run pl_run;

/* A plan serves a run that begins and the same run when it goes on; the run is told which of the two it is. */
typedef enum pl_resume {
    PL_RESUME_AS_PLANNED, /* as run.resume of the config that was planned says */
    PL_RESUME_NO,         /* begin; refused where the folder holds a run (PL_E_STORAGE) */
    PL_RESUME_YES,        /* go on; refused where there is no checkpoint (PL_E_DATA) */
    PL_RESUME_AUTO,       /* go on where there is a checkpoint, else begin */
} pl_resume;

typedef struct pl_run_options {
    bool host;                /* inside a host program */
    pl_listener listener;     /* may be NULL */
    void *context;            /* for the listener */
    const volatile int *stop; /* becomes nonzero when the run should stop after this step; may be NULL */
    /* NULL or "": off; "kill", "count": a filter that forbids memory calls after "committed". */
    const char *test_seccomp;
    /* evaluate, generate, gradients: this checkpoint folder instead of the run's best or latest */
    const char *checkpoint;
    pl_resume resume; /* train */
} pl_run_options;

/* Opens, maps, touches and executes everything once; the weights are the first values or those of a checkpoint; then
 * the run is committed. The plan must outlive the run. A training keeps its config in its folder (config.yaml), so that
 * the command can use that folder, too; PL_E_STORAGE where another config.yaml is there, without a run beside it. */
PL_API PL_MUST_USE pl_status pl_run_open(const pl_plan *, const pl_run_options *, pl_run **, pl_error *);
/* Trains to the last step. PL_E_STOPPED after a stop (the state is saved), PL_E_DIVERGED when the loss is not finite,
 * PL_E_STORAGE when metrics or a checkpoint cannot be written (in the first case the state is saved). */
PL_API PL_MUST_USE pl_status pl_run_train(pl_run *, pl_error *);
/* Runs the command that the plan is for; the listener hears all that it reports. */
PL_API PL_MUST_USE pl_status pl_run_work(pl_run *, pl_error *);
/* Mean loss per item of the validation part. */
PL_API PL_MUST_USE pl_status pl_run_evaluate(pl_run *, double *loss, uint64_t *items, pl_error *);

/* What such an evaluation of a pretrained model found. */
typedef struct pl_text_score {
    uint64_t window, stride;             /* tokens; stride 0: chunks, of which the second half is judged */
    uint64_t texts, text_tokens, judged; /* judged: tokens whose loss is in the mean */
    double loss;                         /* nats, their mean */
    double perplexity, error;            /* error: the standard error of the perplexity, as llama.cpp computes it */
    double bits_per_byte;                /* by the mean length of the text's tokens */
    double seconds, tokens_per_second;   /* tokens that went through the model */
    bool has_choices;                    /* then of items with choices, else of texts: */
    uint64_t items, choices, answers;    /* answers: items that name theirs; of these were right */
    uint64_t right, right_normalized;    /* … the likeliest choice, and the likeliest for its length */
} pl_text_score;
/* PL_E_USAGE where the run is of another model. */
PL_API PL_MUST_USE pl_status pl_run_scored(const pl_run *, pl_text_score *, pl_error *);
PL_API bool pl_run_scores(const pl_run *); /* is it such an evaluation? */
/* All that there is was judged: a text that the run was not trained on has no validation part, but is one. */
PL_API bool pl_run_judges_all(const pl_run *);
/* Writes what the system reads off such a loss and returns how many metrics that is, at most PL_LOSS_METRICS_MAX. */
PL_API size_t pl_run_metrics(const pl_run *, double loss, pl_loss_metric *);
/* The predictions of that evaluation, a line for each sample, into a file, which is whole or not there. PL_E_USAGE
 * where the model gives none out. Asks for no memory. */
PL_API PL_MUST_USE pl_status pl_run_write_predictions(pl_run *, const char *path, pl_error *);
PL_API const pl_words *pl_run_words(const pl_run *);
/* Blocks of its results that are still to be made: by a further plan and run, for operators of another shape. */
PL_API uint64_t pl_run_results_left(const pl_run *);
PL_API const char *pl_run_results_path(const pl_run *); /* NULL: it keeps none */
PL_API bool pl_config_has_page(const pl_config *);
PL_API bool pl_run_has_page(const pl_run *); /* can pl_results_report show its results? */
/* Before planning: a pretrained model may come with settings of sampling. Keys of generate that nobody has set are set
 * so, as by the command line; `said` tells which: "temperature 0.6, top_p 0.9", "" for none. */
PL_API PL_MUST_USE pl_status pl_config_take_sampling(pl_config *, char *said, size_t room, pl_error *);
/* The texts behind generate.prompt or prompt_file. PL_E_STOPPED after a stop. */
PL_API PL_MUST_USE pl_status pl_run_generate(pl_run *, pl_error *);
/* The texts behind another prompt, as often as wanted: of a plan whose config has generate.interactive. The n-th text
 * of a run draws the same numbers whatever came before. With generate.chat it is the user's next message of one chat.
 * PL_E_USAGE where the prompt is longer than 4096 tokens, or the chat fills its context; PL_E_DATA where the chat's
 * template or the tokenizer refuses it. */
PL_API PL_MUST_USE pl_status pl_run_answer(pl_run *, const char *prompt, size_t bytes, pl_error *);
PL_API PL_MUST_USE pl_status pl_run_write_gradients(pl_run *, const char *path, pl_error *);

typedef struct pl_run_verdict {
    bool as_planned; /* |measured − planned| ≤ the larger of 1 % and 1 MB, resident */
    uint64_t planned_bytes, measured_bytes, peak_bytes, unexplained_bytes;
    /* With model.weights mmap: of the files' pages, which are in none of those but the peak, so many are resident now;
     * page faults since the work began, and those among them that waited for the disk (what else faults was swapped
     * out). Else 0, but for the faults. */
    uint64_t mapped_files_bytes, mapped_files_faults, mapped_files_disk_faults;
    uint64_t minor_faults_since_step_2; /* page faults after the second step */
    double planned_step_seconds, measured_step_seconds;
} pl_run_verdict;

typedef enum pl_ledger_form { PL_LEDGER_REPORT, PL_LEDGER_JSON } pl_ledger_form;
/* Measures the process now, mapping by mapping, and writes planned and measured side by side into the caller's memory
 * (128 KiB suffice for some 100 rows; cut and terminated when room is short). Asks for no memory. Either text or
 * verdict may be NULL. PL_E_USAGE in a host program, and where room is short: the verdict is there then. */
PL_API PL_MUST_USE pl_status pl_run_ledger(pl_run *, pl_ledger_form, char *text, size_t room, pl_run_verdict *,
                                           pl_error *);
/* Leaves a line about it beside the results of a command that keeps some (PL_USES_RESULTS), for the page about them;
 * else does nothing. Asks for no memory. */
PL_API PL_MUST_USE pl_status pl_run_tell(const pl_run *, const pl_run_verdict *, pl_error *);
/* With model.weights mmap: the file that is mapped at this address; NULL: none is. A file that becomes shorter, or
 * cannot be read any more, ends in SIGBUS; a program that wants to say so asks this in its handler, which is safe. */
PL_API const char *pl_run_file_at(const pl_run *, const void *address);
PL_API void pl_run_close(pl_run *); /* NULL is fine */

/* Item `item` of a command that keeps results (PL_USES_RESULTS), so many steps of it, into a folder: everything that
 * another program needs to do the same, and what came out here. For operators: weights.safetensors, parameters.json,
 * field.npy, noise.npy, states.npy, metrics.npy; parameters.json comes last: where it is, all are whole. Plans and runs
 * in this process. PL_E_CONFIG when there is no such item or it has not got so many steps; PL_E_STOPPED, and nothing is
 * written, when *stop becomes nonzero (NULL: it does not). */
PL_API PL_MUST_USE pl_status pl_witness_write(const pl_config *, pl_command, uint64_t item, uint64_t steps,
                                              const char *folder, const volatile int *stop, pl_error *);

/* ---- programs on the caller's memory ---- */

typedef struct pl_program pl_program;
/* memory: pl_plan_arena_bytes bytes, aligned to 64. The plan and the memory must outlive the program. */
PL_API PL_MUST_USE pl_status pl_program_create(const pl_plan *, void *memory, uint64_t bytes, pl_program **,
                                               pl_error *);
PL_API void pl_program_destroy(pl_program *);
/* The bytes of a value of the graph by its name ("transformer.wte.weight", "input.lr", "train.loss"), or NULL. */
PL_API void *pl_program_find(const pl_program *, const char *name);

#ifdef __cplusplus
}
#endif
#endif
