/* The last tokens of a text that is being written: a ring in the caller's memory, as large as the program looks back,
 * so that no window reads a token that a later one has taken the place of. */
#ifndef PL_JOBS_HISTORY_H
#define PL_JOBS_HISTORY_H

#include <stdint.h>

typedef struct pl_history {
    int32_t *ring; /* [room] */
    uint64_t room;
    uint64_t count; /* tokens so far */
} pl_history;

/* Tokens to remember for a program that takes `width` tokens at once; with a cache (width 1) of `places` places, half
 * of it is fed again when all are used. */
static inline uint64_t pl_history_room(uint64_t width, uint64_t places)
{
    return width > 1 ? width : places > 2 ? places / 2 : 1;
}

static inline void pl_history_add(pl_history *h, int32_t token) { h->ring[h->count++ % h->room] = token; }

/* index in [count − room, count); −1 before the beginning, which a wrapped (negative) index means too. */
static inline int32_t pl_history_at(const pl_history *h, uint64_t index)
{
    return index < h->count ? h->ring[index % h->room] : -1;
}

#endif
