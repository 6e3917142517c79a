/* TensorBoard event files, scalars only: for people who like its curves. metrics.jsonl stays the source of truth.
 *
 * A file is a row of records (TFRecord: u64 length, u32 masked crc32c of it, the bytes, u32 masked crc32c of them),
 * each an Event in protobuf's wire format (tensorflow/core/util/event.proto, framework/summary.proto), encoded by hand:
 *
 *   Event    1: wall_time double   2: step int64   3: file_version string   5: Summary   7: SessionLog
 *   Summary  1: Value { 1: tag string   2: simple_value float }
 *
 * Each event is one write(2) from a fixed buffer; no memory is asked for. A start of a run makes a file of its own, at
 * its first event: one that writes none leaves none. The file begins by telling TensorBoard to forget what earlier
 * files say from the step on that comes next. */
#ifndef PL_STORE_TENSORBOARD_H
#define PL_STORE_TENSORBOARD_H

#include "base/file.h"
#include "store/metrics.h"

enum { PL_TENSORBOARD_RECORD_BYTES = 8192 };

/* The open file; fields are private. Lives wherever the caller puts it; zeroed is closed. */
typedef struct pl_tensorboard {
    int fd, is_open; /* is_open: between open and close; fd −1: nothing was written yet */
    uint64_t bytes, first_step;
    double began;
    const char *folder;
    char path[PL_FILE_PATH_MAX];
    unsigned char record[PL_TENSORBOARD_RECORD_BYTES];
} pl_tensorboard;

/* Nothing on disk yet. The folder's name must outlive it. first_step: the number of the step that comes next,
 * or 0: nothing is to be forgotten. wall_time: seconds since 1970. */
void pl_tensorboard_open(pl_tensorboard *, const char *folder, double wall_time, uint64_t first_step);

/* One event with all the values; the first makes folder/events.out.tfevents.<seconds at open>.<host>.<process>.<n>. On
 * failure (a full disk) the file is as it was before the event. */
pl_status pl_tensorboard_write(pl_tensorboard *, double wall_time, uint64_t step, const pl_metric *values, size_t count,
                               pl_error *);
void pl_tensorboard_close(pl_tensorboard *); /* harmless when closed */

#endif
