/* Running a model on files: what plimsoll infer does. Which files, what comes of them and where it goes say the keys
 * infer.* of the config. */
#ifndef PLIMSOLL_INFER_H
#define PLIMSOLL_INFER_H

#include "plimsoll/run.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pl_inferred {
    uint64_t items;
    uint64_t not_finite;                              /* numbers of the results that are infinite or NaN */
    double seconds;                                   /* of the work, reading and writing with it */
    double median_seconds, p95_seconds, most_seconds; /* of an item, with infer.latency; else 0 */
} pl_inferred;

/* The run of a plan for PL_COMMAND_INFER. Lines of JSON come as PL_EVENT_TEXT where no file is named for them. A file
 * is whole or not there. PL_E_STOPPED after a stop. */
PL_API PL_MUST_USE pl_status pl_run_infer(pl_run *, pl_inferred *, pl_error *);

#ifdef __cplusplus
}
#endif
#endif
