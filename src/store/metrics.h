/* metrics.jsonl: the source of truth of a run. One JSON object a line, "step" first, then what the caller gives; each
 * line is one write(2) from a fixed buffer, so a kill leaves whole lines and at most one torn one at the end.
 *
 * At a resume the file is cut back to the step of the checkpoint (lines of later steps, and a torn last line, go), so a
 * run that was killed and resumed writes the same lines as one that was not. For that, all lines of a step are written
 * before the checkpoint of that step, and steps never go down. */
#ifndef PL_STORE_METRICS_H
#define PL_STORE_METRICS_H

#include "base/file.h"
#include "base/str.h"

enum { PL_METRICS_LINE_BYTES = 4096 };

typedef struct pl_metric {
    const char *key;
    double value; /* whole numbers up to 2^53 are written as such; inf and nan as null */
} pl_metric;

/* The open file; fields are private. Lives wherever the caller puts it; zeroed is closed. */
typedef struct pl_metrics {
    int fd, is_open;
    uint64_t bytes, last_step;
    pl_str text; /* a line that is begun, in `line`; data NULL: none is */
    char path[PL_FILE_PATH_MAX];
    char line[PL_METRICS_LINE_BYTES];
} pl_metrics;

/* Opens (or makes) the file and keeps its lines up to last_step; PL_METRICS_NONE keeps none. PL_E_DATA, and nothing is
 * cut, when a line is not one of a run's. */
#define PL_METRICS_NONE UINT64_MAX
pl_status pl_metrics_open(pl_metrics *, const char *path, uint64_t last_step, pl_error *);

/* On failure (a full disk) the file is as it was before the line. */
pl_status pl_metrics_write(pl_metrics *, uint64_t step, const pl_metric *values, size_t count, pl_error *);

/* A line {"step":…,"sample":"…"} of a text that comes in pieces of whole characters: as much of it as a line has room
 * for. Nothing is written before its end; until then no other line is. */
pl_status pl_metrics_text(pl_metrics *, uint64_t step, const char *piece, size_t bytes, pl_error *);
pl_status pl_metrics_text_end(pl_metrics *, pl_error *);
void pl_metrics_text_drop(pl_metrics *); /* its end does not come */

/* Brings what was written to the disk: before a checkpoint, so that a power cut does not lose lines it stands for. */
pl_status pl_metrics_sync(pl_metrics *, pl_error *);
void pl_metrics_close(pl_metrics *); /* harmless when closed */

#endif
