/* The header of a .npy file (NumPy's format, version 1.0): one array, row-major, little endian. bf16, which NumPy
 * lacks, is written as u16. */
#ifndef PL_STORE_NPY_H
#define PL_STORE_NPY_H

#include <stddef.h>
#include <stdint.h>

#include "ir/types.h"

enum { PL_NPY_HEADER_MAX = 512 };

/* Writes the header and returns its bytes, a multiple of 64; text_bytes: of each text, 0: numbers. */
size_t pl_npy_header(pl_dtype, uint64_t text_bytes, uint32_t rank, const uint64_t *shape,
                     char header[PL_NPY_HEADER_MAX]);

#endif
