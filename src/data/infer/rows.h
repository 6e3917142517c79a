/* Rows of a file for one input of a model: item after item, each read by its number into the form of the port (port.h).
 * The kinds of files are a table in rows.c: a new one is a file here and a row there. One that needs a system's own
 * data (a tokenizer) lies in that system's folder, and comes with the port.
 *
 * Kinds read by libraries that ask for memory (pictures, HDF5) are made ready before planning: their numbers go into a
 * file without a name (staging.h), and rows are read from an array there. */
#ifndef PL_DATA_INFER_ROWS_H
#define PL_DATA_INFER_ROWS_H

#include <time.h>

#include "base/file.h"
#include "data/infer/npy.h"
#include "data/infer/port.h"

typedef struct pl_rows pl_rows;
struct pl_stager; /* staging.h */

/* What can be said of an item that cannot be read as intended: a word, and for several "… are longer than a page". */
typedef struct pl_rows_remark {
    const char *word, *text;
} pl_rows_remark;

/* Which part of an item a row is. An item longer than a row comes in several in sequence, each of which begins with
 * some of the numbers of the previous one. */
typedef struct pl_rows_part {
    uint64_t item;  /* number in the file */
    uint64_t again; /* numbers at its beginning that were in the previous row; 0: it is the first */
    bool is_last;
} pl_rows_part;

enum { PL_ROWS_REMARKS_MAX = 8, PL_ROWS_ENDS_MAX = 5 };

typedef struct pl_rows_kind {
    const char *what; /* "NumPy array" */
    /* Is it one? head: its first bytes, up to PL_ROWS_HEAD_BYTES. */
    bool (*is_mine)(const pl_infer_port *, const char *head, size_t bytes);
    /* Can it serve such an input? NULL: any. Others are recognized, too, and refused by a sentence of their own. */
    bool (*suits)(const pl_infer_port *);
    /* Makes the file ready: puts its numbers, and says what they are; such a kind has neither open nor read. NULL: it
     * is read as it is. PL_E_DATA where it does not fit the port. */
    pl_status (*stage)(struct pl_stager *, const pl_rows *, pl_error *);
    /* Looks at the file: fills count and what it needs. PL_E_DATA where it does not fit the port. */
    pl_status (*open)(pl_rows *, pl_error *);
    /* One item, in the form of the port; by one thread at a time. Asks for no memory. PL_E_DATA for bad numbers (not
     * finite, not an id, not a brightness), naming the item. scratch: PL_ROWS_SCRATCH_BYTES of the thread. */
    pl_status (*read)(const pl_rows *, uint64_t row, void *to, void *scratch, pl_error *);
    void (*close)(pl_rows *); /* undoes open, also where that failed; NULL: nothing to do */
    /* How names of such files end, without the dot; NULL after the last. */
    const char *ends[PL_ROWS_ENDS_MAX + 1];
    /* What read may remark: bit i of *rows->remark is the i-th; NULL after the last. NULL: nothing. */
    const pl_rows_remark *remarks;
} pl_rows_kind;

enum { PL_ROWS_HEAD_BYTES = 16, PL_ROWS_SCRATCH_BYTES = 64 << 10, PL_ROWS_OWN_BYTES = 96 };

struct pl_rows {
    const pl_rows_kind *kind;
    const pl_infer_port *port;
    const char *path;                        /* as it was given; for HDF5 FILE:/DATASET */
    int fd;                                  /* where it was made ready; 0: it is read as it is */
    uint64_t count;                          /* rows in it */
    uint64_t items;                          /* items in the rows; 0: each row is one */
    uint64_t bytes;                          /* of the file when it was looked at */
    struct timespec written;                 /* time of the last change, likewise */
    uint64_t records_at, records_bytes;      /* in fd: texts made ready (rows_records.c); 0: none */
    uint8_t *remark;                         /* 0 before a read, which adds its remarks */
    pl_rows_part *part;                      /* set by a read where there are fewer items than rows */
    _Alignas(8) char own[PL_ROWS_OWN_BYTES]; /* the kind's own state */
};

/* The file that a name means, and what follows it ("/images" in "f.h5:/images"; NULL: nothing). A file with the whole
 * name comes first. PL_E_USAGE: the path is too long. */
pl_status pl_rows_split(const char *name, char path[PL_FILE_PATH_MAX], const char **dataset, pl_error *);
/* What kind of file it is, and how long: not yet opened. path and port outlive it. */
pl_status pl_rows_find(const char *path, const pl_infer_port *, pl_rows *, pl_error *);
/* Likewise, and then opened. For pl_rows_close, also when it fails. */
pl_status pl_rows_open(const char *path, const pl_infer_port *, pl_rows *, pl_error *);
/* One that was made ready: its numbers lie at array->at in fd, which outlives it; bytes: of the original file. */
pl_status pl_rows_open_staged(const char *path, const pl_infer_port *, int fd, const pl_npy_array *, uint64_t bytes,
                              pl_rows *, pl_error *);
/* Does an array fit the port? Fills count, and what reading needs. PL_E_DATA, with what it is and what was wanted. */
pl_status pl_rows_fit_array(pl_rows *, const pl_npy_array *, pl_error *);
/* One whose texts were made ready (rows_records.c). */
pl_status pl_rows_open_records(const char *path, const pl_infer_port *, int fd, const pl_npy_array *, uint64_t bytes,
                               pl_rows *, pl_error *);
/* Is it a file of records, or compressed? By its name, its first bytes and what the user said. */
bool pl_rows_are_records(const pl_infer_port *, const char *path, const char *head, size_t bytes);
/* Opens the file to read rows of it. PL_E_DATA: it has changed since it was looked at, and each read could find other
 * numbers. */
pl_status pl_rows_reopen(const pl_rows *, int *fd, pl_error *);
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

extern const pl_rows_kind pl_rows_npy, pl_rows_picture, pl_rows_hdf5, pl_rows_records;

#endif
