/* A job: the loop of one command over a committed session. It names the programs that it runs; others are not planned.
 * Jobs lie in jobs/, one file each; which ones a system has stands in its row (systems/). */
#ifndef PL_RUN_JOB_H
#define PL_RUN_JOB_H

#include "backend/backend.h"
#include "run/settings.h"
#include "stream/data.h"

typedef struct pl_session pl_session;

enum { PL_JOB_PROGRAMS_MAX = 4, PL_JOBS_MAX = 3, PL_JOB_COUNTERS_MAX = 8 };

typedef struct pl_job {
    const char *program[PL_JOB_PROGRAMS_MAX]; /* "init", "train"; NULL behind the last */
    const pl_words *words;                    /* for what it works on, but for keys; NULL: those of its system */
    /* Which of them is run again and again, so that its time is what planning makes small: its place in `program`. */
    size_t repeated;
    /* How often program k runs in all of the work that the data are opened for, in micro-batches of so many samples.
     * NULL: how much that is, is not known beforehand, and nothing is predicted but for what is trained. */
    double (*count_runs)(const pl_data *, uint32_t micro_batch, size_t k);
    /* What it keeps in the arena beside the graph's own values: the name of that value, and its size. NULL: nothing. */
    const char *staging;
    uint64_t (*staging_bytes)(const pl_graph *, const pl_run_settings *, const pl_data *); /* 0: nothing after all */
    uint64_t state_bytes; /* of its own; zeroed before open */
    /* Before commit; may ask for memory. What open has begun, close ends, also when it failed. Either may be NULL. */
    pl_status (*open)(pl_session *, void *state, pl_error *);
    void (*close)(pl_session *, void *state);
    pl_status (*run)(pl_session *, void *state, pl_error *);
    /* Takes what a STORE node of its programs gives out: the ports are there during the call. NULL: none has one. */
    pl_status (*store)(pl_session *, void *state, const pl_store_call *, pl_error *);
    /* Of a job that writes checkpoints: its progress beyond the step, in their records. */
    const char *best_metric;                  /* the name of what it keeps the best of */
    const char *counter[PL_JOB_COUNTERS_MAX]; /* names of its numbers; NULL behind the last */
    void (*note)(const pl_session *, const void *state, double counter[PL_JOB_COUNTERS_MAX], pl_record *);
    /* From there again; of numbers that make no sense PL_E_DATA (pl_session_check_counter). */
    pl_status (*take_up)(pl_session *, void *state, const pl_saved *, pl_error *);
} pl_job;

/* A counter: 1 where nothing is left to do of what the record is of. */
#define PL_COUNTER_COMPLETE "complete"

/* The jobs of a session: the command's own first, then those that it has done between its steps. */
typedef struct pl_job_list {
    const pl_job *job[PL_JOBS_MAX];
    size_t count;
} pl_job_list;

#endif
