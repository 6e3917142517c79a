/* Damage to a text, from a seed: characters and digits replaced, pieces cut out, doubled or moved, lines dropped,
 * copied or swapped, numbers made absurd. */
#ifndef PL_TESTS_REFERENCE_MUTATE_H
#define PL_TESTS_REFERENCE_MUTATE_H

#include <stddef.h>
#include <stdint.h>

enum { MUTATE_ROOM = 4096 }; /* a mutation adds at most so many bytes */

/* `to` has room for bytes + MUTATE_ROOM; returns its length. */
size_t mutate(const char *from, size_t bytes, char *to, uint64_t seed);

#endif
