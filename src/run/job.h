/* A job: the loop of one command over a committed session. It names the programs that it runs; others are not planned.
 * Jobs lie in jobs/, one file each; a system's row (systems/) lists its jobs. */
#ifndef PL_RUN_JOB_H
#define PL_RUN_JOB_H

#include "backend/backend.h"
#include "run/settings.h"
#include "stream/data.h"

typedef struct pl_session pl_session;

enum { PL_JOB_PROGRAMS_MAX = 4, PL_JOBS_MAX = 3, PL_JOB_COUNTERS_MAX = 8 };

typedef struct pl_job {
    const char *program[PL_JOB_PROGRAMS_MAX]; /* "init", "train"; NULL after the last */
    const pl_words *words;                    /* what it calls its items, except in keys; NULL: those of its system */
    /* The index in `program` of the one that runs again and again, whose time planning minimises. */
    size_t repeated;
    /* How often program k runs in all of the work that the data are opened for, in micro-batches of so many samples.
     * NULL: not known beforehand, so that nothing is predicted except for trainings. */
    double (*count_runs)(const pl_data *, uint32_t micro_batch, size_t k);
    /* What it keeps in the arena besides the graph's values: that value's name, and its size. NULL: nothing. */
    const char *staging;
    uint64_t (*staging_bytes)(const pl_graph *, const pl_run_settings *, const pl_data *); /* 0: nothing after all */
    uint64_t state_bytes; /* its own state; zeroed before open */
    /* Before commit; may ask for memory. close ends what open began, also when open failed. Either may be NULL. */
    pl_status (*open)(pl_session *, void *state, pl_error *);
    void (*close)(pl_session *, void *state);
    pl_status (*run)(pl_session *, void *state, pl_error *);
    /* Takes the outputs of a STORE node of its programs: the ports are valid during the call. NULL: none has one. */
    pl_status (*store)(pl_session *, void *state, const pl_store_call *, pl_error *);
    /* For a job that writes checkpoints: its progress besides the step, in their records. */
    const char *best_metric;                  /* the name of the metric whose best it keeps */
    const char *counter[PL_JOB_COUNTERS_MAX]; /* names of its numbers; NULL after the last */
    void (*note)(const pl_session *, const void *state, double counter[PL_JOB_COUNTERS_MAX], pl_record *);
    /* Resumes from there; PL_E_DATA for numbers that make no sense (pl_session_check_counter). */
    pl_status (*take_up)(pl_session *, void *state, const pl_saved *, pl_error *);
} pl_job;

/* A counter: 1 when nothing is left to do of the recorded work. */
#define PL_COUNTER_COMPLETE "complete"

/* The jobs of a session: first the command's own, then those that it runs between its steps. */
typedef struct pl_job_list {
    const pl_job *job[PL_JOBS_MAX];
    size_t count;
} pl_job_list;

#endif
