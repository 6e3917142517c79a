/* Results of runs: files of named arrays that are made in blocks, in the native, HDF5 or .npy form (docs/results.md).
 * Reading needs no other library, whatever the form.
 *
 *     pl_results *results;
 *     if (pl_results_open("out/rollout.h5", &results, &error) == PL_OK) {
 *         size_t energy = pl_results_find(results, "metrics/energy");
 *         uint64_t begin[] = {12, 0, 0}, end[] = {13, 1, 500};
 *         status = pl_results_read(results, energy, begin, end, values, sizeof values, &error);
 *         pl_results_close(results);
 *     }
 */
#ifndef PLIMSOLL_RESULTS_H
#define PLIMSOLL_RESULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plimsoll/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PL_RESULTS_NONE SIZE_MAX
enum { PL_RESULTS_RANK_MAX = 8, PL_RESULTS_AXES_MAX = 4 };

typedef struct pl_results pl_results;

/* Texts belong to the results. */
typedef struct pl_results_summary {
    const char *form;             /* "native", "hdf5", "npy" */
    const char *text;             /* JSON: what made them */
    uint64_t blocks, done;        /* portions in which they are made; those that are finished */
    uint64_t bytes, done_bytes;   /* of the data, without constants */
    uint64_t damaged_marks;       /* blocks of which it is not known whether they are finished: not counted as done */
    uint64_t first, share, whole; /* a part of a larger job: so many of `whole` from `first` on; 0: it is all */
    size_t datasets;
} pl_results_summary;

typedef struct pl_results_dataset {
    const char *name;  /* "metrics/energy" */
    const char *dtype; /* "f32", "f16", …; "text": of so many bytes as the last dimension has */
    uint32_t rank;
    uint64_t shape[PL_RESULTS_RANK_MAX];
    uint64_t element_bytes, bytes;
    uint32_t axes;                         /* so many of the first dimensions are cut into blocks */
    const char *axis[PL_RESULTS_AXES_MAX]; /* their names: "operator" */
    uint64_t blocks, done;                 /* 0 of 0: a constant */
} pl_results_dataset;

/* PL_E_DATA when it is no file of results, or its header is damaged. A run may be writing it. */
PL_API PL_MUST_USE pl_status pl_results_open(const char *path, pl_results **, pl_error *);
PL_API void pl_results_close(pl_results *); /* NULL is fine */

PL_API pl_results_summary pl_results_summarize(const pl_results *);
PL_API pl_results_dataset pl_results_at(const pl_results *, size_t dataset);
PL_API size_t pl_results_find(const pl_results *, const char *name); /* PL_RESULTS_NONE: there is none */

/* The part [begin, end) of a dataset; each has `rank` places. */
/* Is all of it finished? */
PL_API bool pl_results_is_done(const pl_results *, size_t dataset, const uint64_t *begin, const uint64_t *end);
/* Row-major into `bytes` bytes, which must be those of the part. PL_E_DATA names the first block of it that is not
 * finished. */
PL_API PL_MUST_USE pl_status pl_results_read(const pl_results *, size_t dataset, const uint64_t *begin,
                                             const uint64_t *end, void *to, uint64_t bytes, pl_error *);
/* Where the same part lies in the file itself, mapped to be read: nothing is copied, and of hundreds of gigabytes only
 * what is looked at comes into memory, which the kernel takes back when it needs it. The part must lie in one piece:
 * behind the first dimension that is cut to several places all others are whole. Row-major numbers of `dtype`, at
 * multiples of their size, little endian. *part is valid until pl_results_close. PL_E_DATA as above, and when the file
 * is shorter than it must be, which is looked at in each call; PL_E_USAGE when the part is not in one piece; PL_E_NOMEM
 * when the process has no addresses for the dataset.
 * Afterwards nothing stands between the program and the file: where somebody cuts it off, or the disk fails, the
 * program that looks there is sent SIGBUS, and what is damaged is read as it is. pl_results_read gives a status
 * instead, pl_results_check looks for damage. */
PL_API PL_MUST_USE pl_status pl_results_map(pl_results *, size_t dataset, const uint64_t *begin, const uint64_t *end,
                                            const void **part, pl_error *);
/* The same part as a .npy file. */
PL_API PL_MUST_USE pl_status pl_results_export(const pl_results *, size_t dataset, const uint64_t *begin,
                                               const uint64_t *end, const char *path, pl_error *);

/* Text in a block for pl_text_free: a table, or JSON (schema plimsoll.results/1). */
typedef enum pl_results_form { PL_RESULTS_TEXT, PL_RESULTS_JSON } pl_results_form;
PL_API PL_MUST_USE pl_status pl_results_print(const pl_results *, pl_results_form, char **text, size_t *bytes,
                                              pl_error *);

/* A page about the results, whole or not: what they are, pictures, curves, planned against measured. One HTML text for
 * itself, in a block for pl_text_free. `only`: the item (operator, text) that is shown, PL_RESULTS_NONE: some.
 * Results that are read meanwhile take some megabytes, however large they are. PL_E_DATA when no page is known
 * for results of this kind. */
PL_API PL_MUST_USE pl_status pl_results_report(const char *path, size_t only, char **text, size_t *bytes, pl_error *);
/* The results in the folder of a run, or `path` itself where it is results; into room bytes. PL_E_DATA when there are
 * none, PL_E_USAGE with their names when there are several. */
PL_API PL_MUST_USE pl_status pl_results_locate(const char *path, char *results, size_t room, pl_error *);
/* Where the page about them lies by itself: beside them, results.html. */
PL_API PL_MUST_USE pl_status pl_results_page_path(const char *results, char *page, size_t room, pl_error *);

/* PL_E_USAGE where a page that is written there ("-": nowhere) would replace the results, what lies beside them, or
 * what their config names: texts, weights. */
PL_API PL_MUST_USE pl_status pl_results_page_check(const char *results, const char *page, pl_error *);

typedef struct pl_results_checked {
    uint64_t blocks; /* that were read and compared with their hash: all that are finished */
    uint64_t bytes;
    uint64_t damaged;    /* blocks, constants and marks */
    uint64_t not_finite; /* numbers of sound blocks that are infinite or NaN: the run made them so */
} pl_results_checked;

/* Reads all that is finished. `tell` (or NULL) hears what is damaged: "states of operator 12, realisation 0, state
 * 25 to 49". With `repair` its mark is cleared, so that the run that goes on makes it again; nobody may be writing
 * then. */
PL_API PL_MUST_USE pl_status pl_results_check(const char *path, bool repair,
                                              void (*tell)(void *context, const char *name), void *context,
                                              pl_results_checked *, pl_error *);

/* The parts of a job as one. They must be complete, of one form, and together the whole of the job, in any order.
 * In HDF5 form: a new file of virtual datasets, which name the parts from its own folder; they stay where they are. In
 * the native and npy forms: the results that one run of all would have made, to the byte. Each block of the parts is
 * compared with its checksum and copied, so the disk has to have room for as much again (else PL_E_STORAGE, and nothing
 * is made); a block that is damaged is named, PL_E_DATA. Called again, it goes on where it ended.
 * `move`: what is on the disk in its new place is given back to it in the parts, which needs room for some hundred
 * megabytes beside the index; when all is done the parts are removed. Once begun, it has to be brought to its end: the
 * parts alone no longer hold everything. */
PL_API PL_MUST_USE pl_status pl_results_join(const char *path, const char *const *parts, size_t count, bool move,
                                             pl_error *);

#ifdef __cplusplus
}
#endif
#endif
