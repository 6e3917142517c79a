/* arrays.bin: what a training keeps of its own arrays (images, angles, target), so that a run needs no library, checks
 * no label again, and knows the files that this one was made from.
 *
 *     numbers that were made ready of HDF5, as data/infer/staging.h lays them out
 *     target [count], angles [count, 2]   f32, as the files have them
 *     sums [count]                        of each sample's images, as f32: xxh64
 *     record
 *
 * Images of .npy stay where they are. What identifies the data is a hash of the targets, angles and sums: the numbers,
 * whatever files they come in. */
#ifndef PL_DATA_ARRAYS_FILE_H
#define PL_DATA_ARRAYS_FILE_H

#include "base/origin.h"
#include "data/infer/rows.h"

enum { PL_ARRAYS_IMAGES, PL_ARRAYS_ANGLES, PL_ARRAYS_TARGET, PL_ARRAYS_FILES };
enum { PL_ARRAYS_ANGLE_COUNT = 2 };

typedef struct pl_arrays_source {
    pl_origin origin; /* zeros: there is no such file */
    uint64_t checksum;
} pl_arrays_source;

/* The record at the end of the file, as stored. */
typedef struct pl_arrays_record {
    char magic[8];
    uint64_t version, count, window, height, width;
    uint64_t labels_at;                /* where the targets begin */
    uint64_t content;                  /* hash of targets, angles and sums */
    uint64_t dataset[PL_ARRAYS_FILES]; /* hash of the dataset's name; 0: not an HDF5 file */
    uint64_t checksum;                 /* of everything before it */
    pl_arrays_source source[PL_ARRAYS_FILES];
} pl_arrays_record;

/* The name of a file of this kind in sentences: "arrays.images". A constant. */
const char *pl_arrays_key(int which);
/* What one sample has; PL_INFER_DIM_ANY where the file says it. */
pl_infer_port pl_arrays_port(int which, uint32_t window);
/* Bytes of the targets, angles and sums. */
uint64_t pl_arrays_label_bytes(uint64_t count);
uint64_t pl_arrays_dataset_hash(const char *dataset); /* NULL: 0 */
void pl_arrays_seal(pl_arrays_record *);
void pl_arrays_put_source(uint8_t *to, const pl_origin *);

/* PL_E_DATA where it is not one, or is damaged. *fd is for close, also when this fails; −1: there is no file. */
pl_status pl_arrays_open(const char *path, int *fd, pl_arrays_record *, pl_error *);
/* Rows of one of the files, and the port completed for them: read from `fd` if they were made ready there, else from
 * the file itself. For pl_rows_close, also when it fails. name and port outlive them. */
pl_status pl_arrays_open_rows(int fd, int which, const char *name, pl_infer_port *, pl_rows *, pl_error *);

#endif
