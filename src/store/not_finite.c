/* All bits of the exponent are set in an infinity or a NaN, and in nothing else. */
#include "store/not_finite.h"

#include <string.h>

#define COUNT(name, word, exponent)                                                                                    \
    static uint64_t name(const char *data, uint64_t bytes)                                                             \
    {                                                                                                                  \
        uint64_t found = 0;                                                                                            \
        for (uint64_t at = 0; at + sizeof(word) <= bytes; at += sizeof(word)) {                                        \
            word bits;                                                                                                 \
            memcpy(&bits, data + at, sizeof bits);                                                                     \
            found += (bits & (exponent)) == (exponent);                                                                \
        }                                                                                                              \
        return found;                                                                                                  \
    }
COUNT(count_f16, uint16_t, 0x7c00u)
COUNT(count_bf16, uint16_t, 0x7f80u)
COUNT(count_f32, uint32_t, 0x7f800000u)
COUNT(count_f64, uint64_t, 0x7ff0000000000000u)

uint64_t pl_not_finite_count(pl_dtype dtype, const void *data, uint64_t bytes)
{
    switch (dtype) {
    case PL_DTYPE_F16:
        return count_f16(data, bytes);
    case PL_DTYPE_BF16:
        return count_bf16(data, bytes);
    case PL_DTYPE_F32:
        return count_f32(data, bytes);
    case PL_DTYPE_F64:
        return count_f64(data, bytes);
    default:
        return 0;
    }
}
