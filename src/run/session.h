/* A session: a plan made real. Memory is mapped and touched, threads exist, every kernel has run once, files are open;
 * then it is "committed", and what follows (the jobs, saving) asks for no memory.
 *
 *   pl_session_open      arena, threads, program, ring of data, what the jobs need, checkpoints
 *   pl_session_commit    every call of every program once; weights: first values, or those of a checkpoint; then sealed
 *   pl_session_run_job   the work (jobs/)
 *   pl_session_close
 *
 * Everything that happens is told to a listener; the session prints nothing. */
#ifndef PL_RUN_SESSION_H
#define PL_RUN_SESSION_H

#include "plimsoll/run.h"

#include "base/predicted.h"
#include "ir/components.h"
#include "plan/plan.h"
#include "run/job.h"
#include "run/lockdown.h"
#include "store/block_file.h"

typedef struct pl_session_options {
    const pl_plan *plan;
    const pl_run_settings *settings;
    const pl_data *data; /* open as long as the session */
    pl_job_list jobs;
    /* What the system reads off a loss (at most PL_LOSS_METRICS_MAX); NULL: nothing. */
    size_t (*metrics)(double loss, const pl_facts *validation, pl_loss_metric *);
    /* And off what the program "evaluate" gave out; at most PL_LOSS_METRICS_MAX together. Asks for no memory. NULL:
     * nothing. */
    size_t (*measure)(const pl_data *, const pl_predicted *, pl_loss_metric *);
    /* Writes the rows, with what they are of, into a file. Asks for no memory. NULL: it has no such file. */
    pl_status (*keep_predictions)(const pl_data *, const float *predictions, uint64_t count, const char *path,
                                  pl_error *);
    pl_memory_owners *owners; /* of the process; NULL in a host program: nothing is registered or measured */
    void *memory; /* in a host program: where the arena of the process's memory is, aligned as a plan's; NULL: its heap
                     has it */
    uint64_t memory_bytes;
    pl_lockdown_mode lockdown;
    pl_listener listener; /* may be NULL */
    void *context;
    const volatile int *stop; /* becomes nonzero when the run should end after this step; may be NULL */
} pl_session_options;

pl_status pl_session_open(const pl_session_options *, pl_session **, pl_error *);
/* For the planner: asks the heap for what open does, without threads, arenas and files, calls `opened` while it is
 * held, and gives it back. */
pl_status pl_session_rehearse(const pl_session_options *, void (*opened)(void *context), void *context, pl_error *);
/* Likewise for loading a checkpoint of the plan's graph, of which no more is asked for; goes_on may be NULL. */
typedef pl_status pl_session_goes_on(void *context, const pl_saved *, pl_error *);
pl_status pl_session_rehearse_load(const pl_session_options *, pl_session_goes_on *, void *context, pl_error *);
pl_status pl_session_commit(pl_session *, pl_error *);
/* One of its jobs. PL_E_USAGE when the session does not have it. */
pl_status pl_session_run_job(pl_session *, const pl_job *, pl_error *);
void *pl_session_job_state(const pl_session *, const pl_job *); /* NULL: it does not have that job */
void pl_session_close(pl_session *);

/* Called before and after each node (done) of the programs that run from now on, while its values are there; NULL:
 * not. */
typedef void pl_session_watcher(void *context, uint32_t node, bool done);
void pl_session_watch(pl_session *, pl_session_watcher *, void *context);

/* What the system reads off the loss of an evaluation that was just made, and off its predictions. */
size_t pl_session_find_metrics(const pl_session *, double loss, pl_loss_metric *);
uint64_t pl_session_results_left(const pl_session *); /* blocks that are not done */
uint64_t pl_session_minor_faults(const pl_session *); /* since the second step of this process */
uint64_t pl_session_items(const pl_session *);        /* that were gone through, those of the runs before it included */
double pl_session_seconds(const pl_session *);        /* since "committed" */
double pl_session_step_seconds(const pl_session *);   /* median of the measured steps; 0 when there were none */

/* ---- where the time went: session_run.c ---- */
typedef struct pl_session_spent {
    double seconds;
    uint64_t count; /* how often */
} pl_session_spent;
/* Of a training: whole steps, and what comes between them. */
typedef enum pl_spent {
    PL_SPENT_STEPS,
    PL_SPENT_EVALUATING,
    PL_SPENT_SHOWING,
    PL_SPENT_SAVING,
    PL_SPENT_COUNT
} pl_spent;
const char *pl_spent_name(pl_spent); /* "evaluating" */
/* Of the program that the session runs again and again, since "committed". */
typedef struct pl_session_times {
    pl_id program; /* PL_NONE: there is none */
    const pl_components *components;
    const double *seconds;         /* [components], of all runs */
    pl_session_spent runs;         /* of the program */
    const pl_session_spent *spent; /* [PL_SPENT_COUNT] */
    uint64_t first;                /* steps that were made before */
} pl_session_times;
pl_session_times pl_session_find_times(const pl_session *);

/* Were files that are mapped written to? PL_E_STORAGE. */
pl_status pl_session_check_files(const pl_session *, pl_error *);
/* Page faults since "committed": those of mapped files, where nothing of the process was swapped out. */
pl_process_faults pl_session_faults(const pl_session *);
/* The mapped file that an address belongs to; NULL: none. For a handler of signals (SIGBUS): the file was cut off, or
 * cannot be read any more. */
const char *pl_session_file_at(const pl_session *, const void *address);

void *pl_session_value(const pl_session *, const char *name);
void *pl_session_address(const pl_session *, pl_id value); /* the same by its place in the plan's graph */

/* Which file of a checkpoint holds a value of the graph; of a weight that has an average the other one does. */
typedef enum pl_session_kept { PL_KEPT_NOT, PL_KEPT_WITH_MODEL, PL_KEPT_WITH_STATE } pl_session_kept;
pl_session_kept pl_session_keeps(const pl_graph *, pl_id value);

/* For the planner: has the file of weights of these data, if there is one, what a model with this graph takes?
 * PL_E_DATA. */
pl_status pl_session_check_weights(const pl_graph *, const pl_data *, pl_error *);

/* ---- staging: what the session keeps in the arena besides the graph's own values; the plan must hold these ---- */
typedef struct pl_session_staging {
    const char *name;
    uint64_t bytes; /* 0: there is no such value */
    pl_role role;
} pl_session_staging;
/* What checkpoints take, in `staging` and on disk. For graphs in a row that keep the same tensors it is computed only
 * once; begins zeroed, and serves one set of settings. */
typedef struct pl_session_disk {
    uint64_t tensors; /* hash of the list; 0: none yet */
    uint64_t scratch_bytes, disk_bytes, checkpoint_bytes;
} pl_session_disk;
/* What a command that works on so many samples at once has in hand of its results. */
pl_block_use pl_session_block_use(const pl_run_settings *, const struct pl_block_sink *);
#define PL_STAGING_LOADER     "staging.loader"
#define PL_STAGING_CHECKPOINT "staging.checkpoint"
#define PL_STAGING_TRACE      "staging.trace"
#define PL_STAGING_RESULTS    "staging.results"
enum { PL_SESSION_TWO_SLOTS_MAX_BYTES = 4 << 20, PL_SESSION_STAGING_MAX = 4 + PL_JOBS_MAX };
/* graph: its weights and optimizer state say what checkpoints hold; keep_last 0: none are written. *count rows. */
pl_status pl_session_measure_staging(const pl_graph *, const pl_run_settings *, const pl_data *, const pl_job_list *,
                                     pl_session_staging[PL_SESSION_STAGING_MAX], size_t *count, pl_session_disk *,
                                     pl_error *);

#endif
