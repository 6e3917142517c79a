/* Every bit of a text that decides something, or so many of them drawn, is flipped, one at a time: what comes of it is
 * refused as damaged, or means the same. */
#ifndef TESTS_SUPPORT_FLIP_H
#define TESTS_SUPPORT_FLIP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "support/seed.h"

/* True: the text was refused as damaged, or read as what it was. */
typedef bool flip_reader(void *context, const char *text, size_t bytes);

/* All bits of the first `head` bytes and of the last `tail` (marks, versions, checksums), and `sample` of all. */
static inline void flip_bits(const char *text, size_t bytes, size_t head, size_t tail, size_t sample, flip_reader *read,
                             void *context)
{
    const uint64_t seed = test_seed(0, NULL);
    uint64_t drawn = seed;
    char *copy = malloc(bytes + 1);
    assert_non_null(copy);
    memcpy(copy, text, bytes);
    copy[bytes] = 0;
    const bool whole = head + tail + sample / 8 >= bytes;
    const size_t ends = whole ? 8 * bytes : 8 * (head + tail), all = ends + (whole ? 0 : sample);
    for (size_t i = 0; i < all; i++) {
        size_t bit = i < 8 * head || whole ? i : 8 * (bytes - tail) + (i - 8 * head);
        drawn = drawn * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        if (i >= ends) bit = (size_t)((drawn >> 16) % (8 * bytes));
        copy[bit / 8] ^= (char)(1 << bit % 8);
        if (!read(context, copy, bytes))
            fail_msg("bit %zu of byte %zu (seed %llu): another text is read as sound", bit % 8, bit / 8,
                     (unsigned long long)seed);
        copy[bit / 8] ^= (char)(1 << bit % 8);
    }
    free(copy);
}

#endif
