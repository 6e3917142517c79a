/* Work handed out without locks: a number of equal units, taken by any free thread, in pieces that shrink towards the
 * end (half of a fair share of what is left, then less). The pieces are a fixed sequence and a ticket says which one is
 * meant; taking a ticket is one atomic addition. Who computes what never changes a result, so the sequence may depend
 * on the number of threads. */
#ifndef PL_BACKEND_TICKETS_H
#define PL_BACKEND_TICKETS_H

#include <stdint.h>

typedef struct pl_tickets {
    uint64_t next;
    uint8_t fill[56]; /* a cache line of its own */
} pl_tickets;

typedef struct pl_share { /* one thread's place in the sequence: starts as {.units, .threads} with the rest zero */
    int64_t units, threads;
    uint64_t ticket;    /* whose piece [begin, end) is */
    int64_t begin, end; /* half-open */
    int started;
} pl_share;

static inline void pl_share_advance(pl_share *s)
{
    int64_t left = s->units - s->end, fair = s->threads == 1 ? left : left / (2 * s->threads);
    s->begin = s->end;
    s->end += fair > 1 ? fair : left > 0;
}

/* The next piece into [begin, end); 0 when nothing is left. */
static inline int pl_share_next(pl_share *s, pl_tickets *tickets)
{
    uint64_t mine = __atomic_fetch_add(&tickets->next, 1, __ATOMIC_RELAXED);
    if (!s->started) pl_share_advance(s), s->started = 1;
    for (; s->ticket < mine && s->begin < s->units; s->ticket++) pl_share_advance(s);
    return s->begin < s->units;
}

#endif
