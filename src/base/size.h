/* Byte counts are uint64_t and every sum and product of them is checked: an absurd size in a config is an error with a
 * sentence, never a small allocation. Both functions return 0 when the result fits, -1 on overflow. */
#ifndef PL_BASE_SIZE_H
#define PL_BASE_SIZE_H

#include <stdint.h>

static inline int pl_size_mul(uint64_t a, uint64_t b, uint64_t *product)
{
    return __builtin_mul_overflow(a, b, product) ? -1 : 0;
}
static inline int pl_size_add(uint64_t a, uint64_t b, uint64_t *sum)
{
    return __builtin_add_overflow(a, b, sum) ? -1 : 0;
}

/* Rounded up to a multiple of a power of two; saturates at the largest multiple. */
static inline uint64_t pl_align_up(uint64_t bytes, uint64_t alignment)
{
    return bytes > UINT64_MAX - (alignment - 1) ? UINT64_MAX & ~(alignment - 1)
                                                : (bytes + alignment - 1) & ~(alignment - 1);
}

#endif
