/* Where the results of a model on files go: a line of JSON for each item, to a file or to who listens, or a .npy file
 * for each output. Files are whole or not there. Nothing asks for memory. */
#ifndef PL_JOBS_INFER_SINK_H
#define PL_JOBS_INFER_SINK_H

#include "base/file.h"
#include "data/infer/infer_data.h"
#include "ir/graph.h"
#include "run/session.h"

enum { PL_INFER_TEXT_BYTES = 64 << 10, PL_INFER_SAID_BYTES = 16 << 10 };

typedef struct pl_infer_sink {
    pl_session *s;
    const pl_infer_output *output;
    size_t outputs;
    const pl_data *of; /* that `say` is told */
    pl_infer_say *say; /* or NULL */
    bool brief, in_file, in_arrays;
    pl_file_writer file[PL_NODE_IN_MAX];
    size_t open;
    uint64_t not_finite; /* numbers so far */
    char text[PL_INFER_TEXT_BYTES];
    size_t bytes;
    char said[PL_INFER_SAID_BYTES];
    char head[6 * PL_FILE_PATH_MAX + 320]; /* of a line: a byte of a path may become "\u001f" */
} pl_infer_sink;

/* to: the file of lines, or NULL; arrays: what the names of .npy files begin with, or NULL. items: that will come. */
pl_status pl_infer_sink_open(pl_infer_sink *, const char *to, const char *arrays, uint64_t items, pl_error *);
/* Item `number`, or the next part of it. source: where it came from, bytes that may be anything. */
pl_status pl_infer_sink_put(pl_infer_sink *, uint64_t number, const char *source, const pl_infer_item *, pl_error *);
pl_status pl_infer_sink_flush(pl_infer_sink *, pl_error *);
/* complete: the files are there now; else nothing is. May be called again. */
pl_status pl_infer_sink_close(pl_infer_sink *, bool complete, pl_error *);

#endif
