/* Rows of a file for one input of a model: item after item, each read by its number into the form of the port (port.h).
 * What kinds of files there are is a table in rows.c: a new one is a file here and a row there. One that needs a
 * system's own data (a tokenizer) lies in its room, and comes with the port. */
#ifndef PL_DATA_INFER_ROWS_H
#define PL_DATA_INFER_ROWS_H

#include "data/infer/port.h"

typedef struct pl_rows pl_rows;

/* What can be said of an item that is not read as it was meant: a word, and of several "… are longer than a page". */
typedef struct pl_rows_remark {
    const char *word, *text;
} pl_rows_remark;

enum { PL_ROWS_REMARKS_MAX = 8 };

typedef struct pl_rows_kind {
    const char *what; /* "NumPy array" */
    /* Is it one? head: its first bytes, up to PL_ROWS_HEAD_BYTES. */
    bool (*is_mine)(const pl_infer_port *, const char *head, size_t bytes);
    /* Looks at the file: fills count and what it needs. PL_E_DATA where it does not fit the port. */
    pl_status (*open)(pl_rows *, pl_error *);
    /* One item, in the form of the port; by one thread at a time. Asks for no memory. PL_E_DATA for numbers that
     * are none (not finite, no id, no brightness), naming the item. scratch: PL_ROWS_SCRATCH_BYTES of the thread. */
    pl_status (*read)(const pl_rows *, uint64_t row, void *to, void *scratch, pl_error *);
    void (*close)(pl_rows *); /* what open has begun, also where it failed; NULL: nothing */
    /* What read may remark: bit i of *rows->remark is the i-th, with a NULL behind the last; NULL: nothing. */
    const pl_rows_remark *remarks;
} pl_rows_kind;

enum { PL_ROWS_HEAD_BYTES = 16, PL_ROWS_SCRATCH_BYTES = 64 << 10, PL_ROWS_OWN_BYTES = 96 };

struct pl_rows {
    const pl_rows_kind *kind;
    const pl_infer_port *port;
    const char *path;
    uint64_t count;                          /* items in it */
    uint64_t bytes;                          /* of the file, as it was looked at */
    uint8_t *remark;                         /* 0 before a reading; what is remarked is added */
    _Alignas(8) char own[PL_ROWS_OWN_BYTES]; /* of the kind */
};

/* path and port outlive it. For pl_rows_close, also when it fails. */
pl_status pl_rows_open(const char *path, const pl_infer_port *, pl_rows *, pl_error *);
static inline pl_status pl_rows_read(const pl_rows *r, uint64_t row, void *to, void *scratch, pl_error *err)
{
    return r->kind->read(r, row, to, scratch, err);
}

static inline void pl_rows_close(pl_rows *r)
{
    if (r->kind && r->kind->close) r->kind->close(r);
}

/* "f32 [count, 3, 224, 224]": what a file of this input has, for sentences. */
const char *pl_infer_port_text(const pl_infer_port *, char *text, size_t room);

extern const pl_rows_kind pl_rows_npy;

#endif
