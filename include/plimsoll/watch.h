/* Watching a training from outside, as `plimsoll top` does: what the files in its folder say, and what /proc says of
 * the process that works there. Nothing is written, and no lock is taken. */
#ifndef PLIMSOLL_WATCH_H
#define PLIMSOLL_WATCH_H

#include <stddef.h>
#include <stdint.h>

#include "plimsoll/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum pl_watch_state {
    PL_WATCH_RUNS,     /* a process is at work in the folder */
    PL_WATCH_FINISHED, /* no process, and all steps are made */
    PL_WATCH_ENDED,    /* no process, and steps are left, or it is not known how many there are: stopped, or killed */
} pl_watch_state;

enum { PL_WATCH_POINTS_MAX = 128, PL_WATCH_PATH_BYTES = 4096, PL_WATCH_NAME_BYTES = 64 };

/* What is not known is NAN, or 0 where that is no value. */
typedef struct pl_watched {
    /* The folder that was named; of one that holds several trainings, that of the training at work, or of the last. */
    char folder[PL_WATCH_PATH_BYTES];
    pl_watch_state state;
    long process;         /* 0: none */
    uint64_t step, steps; /* made, of all; steps 0: not known */
    double epoch, loss, lr, seconds, seconds_left;
    char items[PL_WATCH_NAME_BYTES]; /* "tokens" */
    double items_per_second;
    double line_age_seconds; /* since the last line of metrics.jsonl was written */
    uint64_t validation_step;
    double validation_loss, best_validation_loss;
    double point[PL_WATCH_POINTS_MAX]; /* means of the loss over equal stretches, the oldest first */
    size_t points;
    uint64_t planned_bytes;               /* resident, of the whole process */
    uint64_t resident_bytes, peak_bytes;  /* as the kernel counts them now */
    char checkpoint[PL_WATCH_NAME_BYTES]; /* the last one that is whole; "": none */
    double checkpoint_age_seconds;
} pl_watched;

typedef struct pl_watch pl_watch;
/* PL_E_USAGE where the folder is not there, or no training was begun in it. */
PL_API PL_MUST_USE pl_status pl_watch_begin(const char *folder, pl_watch **, pl_error *);
/* Of metrics.jsonl only what is new is read. PL_E_USAGE as above, PL_E_STORAGE where a file cannot be read. */
PL_API PL_MUST_USE pl_status pl_watch_look(pl_watch *, pl_watched *, pl_error *);
PL_API void pl_watch_end(pl_watch *); /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
