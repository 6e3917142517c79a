/* Infinities and NaN among stored numbers: counted, since a file of results takes them as they come. */
#ifndef PL_STORE_NOT_FINITE_H
#define PL_STORE_NOT_FINITE_H

#include "ir/types.h"

/* How many of `bytes` bytes of that type, little endian, wherever they lie; of integers 0. */
uint64_t pl_not_finite_count(pl_dtype, const void *data, uint64_t bytes);

#endif
