/* Numbers in the headers of files of ours, in the order of bytes of the machines that we run on (little-endian). */
#ifndef PL_BASE_BYTES_H
#define PL_BASE_BYTES_H

#include <stdint.h>
#include <string.h>

static inline uint32_t pl_get_u32(const uint8_t *from, size_t at)
{
    uint32_t value;
    memcpy(&value, from + at, sizeof value);
    return value;
}

static inline uint64_t pl_get_u64(const uint8_t *from, size_t at)
{
    uint64_t value;
    memcpy(&value, from + at, sizeof value);
    return value;
}

static inline void pl_put_u32(uint8_t *to, size_t at, uint32_t value) { memcpy(to + at, &value, sizeof value); }
static inline void pl_put_u64(uint8_t *to, size_t at, uint64_t value) { memcpy(to + at, &value, sizeof value); }

#endif
