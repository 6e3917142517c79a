/* The header of a .npy file (NumPy's format, versions 1.0, 2.0 and 3.0): one array, row-major, little endian. */
#ifndef PL_DATA_INFER_NPY_H
#define PL_DATA_INFER_NPY_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef enum pl_npy_number {
    PL_NPY_F64,
    PL_NPY_F32,
    PL_NPY_F16,
    PL_NPY_U8,
    PL_NPY_I8,
    PL_NPY_U16,
    PL_NPY_I16,
    PL_NPY_U32,
    PL_NPY_I32,
    PL_NPY_I64,
    PL_NPY_NUMBERS
} pl_npy_number;

enum { PL_NPY_DIMS_MAX = 8, PL_NPY_TEXT_MAX = 4096 /* of a header that is read; NumPy writes some 120 */ };

typedef struct pl_npy_array {
    pl_npy_number number;
    uint32_t rank;
    uint64_t dim[PL_NPY_DIMS_MAX];
    uint64_t at; /* where its numbers begin in the file */
} pl_npy_array;

const char *pl_npy_number_name(pl_npy_number); /* "f4" */
uint64_t pl_npy_number_bytes(pl_npy_number);

/* head: the first bytes of the file, as many as it has up to PL_NPY_TEXT_MAX; name: for the sentence. PL_E_DATA where
 * it is none, is not row-major or little endian, or has not as many bytes as it says. */
pl_status pl_npy_parse(const char *name, const char *head, size_t bytes, uint64_t file_bytes, pl_npy_array *,
                       pl_error *);
pl_status pl_npy_look(const char *path, pl_npy_array *, pl_error *);

#endif
