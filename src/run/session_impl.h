/* The inside of a session, shared by the files that work on it. */
#ifndef PL_RUN_SESSION_IMPL_H
#define PL_RUN_SESSION_IMPL_H

#include "ir/inputs.h"
#include "run/arena.h"
#include "run/clock.h"
#include "run/program.h"
#include "run/session.h"
#include "run/trace.h"
#include "store/block_sink.h"
#include "store/checkpoint.h"
#include "store/folder.h"
#include "store/metrics.h"
#include "store/tensorboard.h"
#include "store/weights.h"
#include "stream/ring.h"

#define PL_SESSION_TICK_SECONDS 0.1
enum { PL_SESSION_STEPS_KEPT = 512 };

struct pl_session {
    pl_session_options o;
    const pl_run_settings *settings;
    pl_job_list jobs;
    void *job_state[PL_JOBS_MAX]; /* each one's */
    size_t jobs_begun;            /* those whose open was called */
    pl_id init;                   /* the program that gives first values; PL_NONE when the plan has none */
    const pl_words *words;
    char rate_key[48]; /* of metrics: "items_per_second" by the system's word */
    pl_arena arena[PL_SPACES_MAX];
    void *host_memory[PL_SPACES_MAX]; /* instead of the arenas in a host program */
    pl_memory_range *ranges;          /* for stacks that do not fit the process's own register; NULL: all fit */
    pl_program *program;
    pl_ring *ring;           /* NULL: the command reads no samples */
    pl_block_file *results;  /* NULL: the command keeps none */
    pl_safetensors *weights; /* from elsewhere, for the model to begin with; NULL: it makes its own */

    /* files of the run */
    int lock;
    pl_st_entry *model_entry, *state_entry;
    pl_record record, record_shape;
    pl_record_counter counter[1 + PL_JOB_COUNTERS_MAX]; /* items, then those of the job */
    pl_checkpoint_spec spec;
    pl_checkpoint *checkpoint;
    bool writes_checkpoints;
    pl_metrics metrics;
    pl_tensorboard tensorboard;
    pl_trace *trace;
    const char *changes;   /* values that differ from those before a resume; NULL: not resumed */
    pl_error metrics_lost; /* why a line of metrics.jsonl could not be written; then no more are */

    /* progress, all of it saved; a job has its own besides */
    uint64_t step, items_seen, saved_step;

    /* inputs and outputs of the programs, in the arena */
    void *input[PL_INPUT_COUNT]; /* NULL: the graph has none */
    float *loss_scale;           /* state of f16 while training, saved; NULL: none */
    int32_t *good_steps;
    int32_t *skipped_steps; /* for a program with an update, saved; NULL: none */

    /* the last evaluation's, in planned staging; count 0: it had none */
    pl_predicted predicted;

    double committed_at, reported_at;
    uint64_t reported_items;
    double step_seconds[PL_SESSION_STEPS_KEPT]; /* ring of the last ones */
    uint64_t steps_timed;
    uint64_t faults_at_step_2;
    pl_process_faults faults_at_commit;

    /* where the time goes */
    pl_id timed; /* the program timed by components; PL_NONE: none */
    pl_components components;
    pl_run_clock clock;
    pl_session_spent timed_runs, spent[PL_SPENT_COUNT];

    pl_id running;               /* the program that runs */
    pl_slot slot;                /* the slot whose data it has; its ports are gone */
    pl_session_watcher *watcher; /* NULL: none */
    void *watcher_context;

    /* what a tick tells */
    double ticked_at, part_seconds; /* the last program with parts */
    uint64_t part, parts;           /* trips of its regions: one for each pass over a micro-batch */
    bool validating;
    double last_loss, last_lr, last_rate;
};

void pl_session_tell(pl_session *, pl_event);
void pl_session_warn(pl_session *, const char *text);
bool pl_session_should_stop(const pl_session *);
/* Items of a step that enter the loss. */
static inline uint64_t pl_session_counted(const pl_session *s, pl_part part, uint64_t step)
{
    return s->o.data->source->kind->count(s->o.data->source, part, step);
}
double pl_session_epoch(const pl_session *); /* 0 where no samples are read */

/* ---- what jobs are made of ---- */
/* PL_E_DATA when the plan has no such program. */
pl_status pl_session_find_program(const pl_session *, const char *name, pl_id *program, pl_error *);
/* Where the sum of the losses of a program lies. PL_E_DATA when it has none. */
pl_status pl_session_find_loss(const pl_session *, pl_id program, const double **loss, pl_error *);
/* Inputs; nothing where the graph has none of the kind. */
void pl_session_set_real(pl_session *, pl_input, float);
void pl_session_set_integer(pl_session *, pl_input, int64_t);
/* A step's number, from 0, and how many items count in it. */
void pl_session_set_step(pl_session *, uint64_t step, uint64_t counted);
/* PL_EVENT_TICK, unless the last one was less than PL_SESSION_TICK_SECONDS ago. */
void pl_session_tick(pl_session *, double now);
double pl_session_wall_seconds(void); /* since 1970, for files that others read */
pl_status pl_session_run_program(pl_session *, pl_id program, bool single_trip, pl_error *);

/* Books the time since `began` as spent on this. */
void pl_session_spend(pl_session *, pl_spent, double began);

/* Into the trace if there is one. If it cannot be written, the run goes on without it, after a warning. */
void pl_session_trace(pl_session *, const char *name, const char *category, double begin, double end);

void pl_session_close_trace(pl_session *);

/* ---- session_values.c ---- */
bool pl_session_has_nodes(const pl_session *, pl_id program);
void pl_session_find_values(pl_session *);
pl_status pl_session_check_values(const pl_session *, pl_error *);
/* Ids are not checked one by one: the source gives a bound for them, the graph the bound that they need. */
pl_status pl_session_check_ids(const pl_session *, pl_error *);

/* ---- session_weights.c ---- */
/* Do these data bring the whole model? Then no checkpoint is looked for. */
static inline bool pl_session_begins_with_file(const pl_data *d)
{
    return d->brought || (d->weights && (!d->weights_part || d->weights_part->is_larger));
}
pl_status pl_session_open_weights(pl_session *, pl_error *); /* before commit, after the lists of tensors */
pl_status pl_session_take_weights(pl_session *, pl_error *); /* into their places */
/* session_binary.c: checks the weights that such a node reads as bits. PL_E_DATA. */
pl_status pl_session_check_binary(const pl_session *, const pl_node *, pl_error *);
/* Checks what no header tells about weights in 8 bits: those of such a node, with their range. PL_E_DATA. */
pl_status pl_session_check_packed(const pl_graph *, const pl_node *, const char *path, const void *packed,
                                  const float *range, pl_error *);
/* A model that was read lies in the averages, if there are any: training begins with them. */
void pl_session_begin_at_averages(pl_session *);
/* Gives the frozen weights' current state to a source that keeps what they make of its samples. */
pl_status pl_session_make_known(pl_session *, pl_error *);

/* ---- session_files.c ---- */
pl_ring_options pl_session_ring_options(const pl_source *, const pl_run_settings *); /* stacks and booking extra */
pl_status pl_session_open_results(pl_session *, pl_error *);                         /* before commit */
/* A value of the graph as a tensor of a file; data stay NULL without a program. */
pl_status pl_session_fill_entry(const pl_graph *, const pl_program *, pl_id, pl_st_entry *, pl_error *);
/* Lists of what is kept with the model and with the state; data stay NULL without a program. */
pl_status pl_session_lists(const pl_graph *, const pl_program *, pl_st_entry **model, size_t *models,
                           pl_st_entry **state, size_t *states, pl_error *);
pl_status pl_session_list_tensors(pl_session *, pl_error *); /* the same, for its own plan */
/* A counter of the record must lie in [least, most]; NaN does not. */
pl_status pl_session_check_counter(const pl_saved *, const char *key, double otherwise, double least, double most,
                                   pl_error *);
pl_status pl_session_open_files(pl_session *, pl_error *); /* before commit */
void pl_session_tell_of_locks(pl_session *);
pl_status pl_session_load(pl_session *, bool *loaded, pl_error *); /* weights, state and progress of a checkpoint */
pl_status pl_session_begin_from(pl_session *, pl_error *); /* weights alone, of the runs that the settings name */
pl_status pl_session_save(pl_session *, pl_error *);
void pl_session_close_files(pl_session *);

#endif
