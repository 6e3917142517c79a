/* Where the time of a program goes, by components (ir/components.h). The clock is read where one component ends and the
 * next begins, and nowhere else; each stretch between two readings belongs to one component, so that their sum is the
 * time from begin to end, whatever is called in between. It asks for no memory and changes nothing but itself. */
#ifndef PL_RUN_CLOCK_H
#define PL_RUN_CLOCK_H

#include "ir/components.h"

typedef struct pl_run_clock {
    const pl_components *components;
    double (*now)(void);
    double seconds[PL_COMPONENTS_MAX]; /* so far, of all runs */
    double since;                      /* when the current one began */
    uint8_t current;                   /* PL_COMPONENT_NONE: the first has not begun */
} pl_run_clock;

static inline void pl_run_clock_begin(pl_run_clock *c)
{
    c->current = PL_COMPONENT_NONE;
    c->since = c->now();
}

static inline void pl_run_clock_leave(pl_run_clock *c)
{
    if (c->current == PL_COMPONENT_NONE) return;
    const double now = c->now();
    c->seconds[c->current] += now - c->since;
    c->since = now;
}

static inline void pl_run_clock_enter(pl_run_clock *c, uint32_t node)
{
    const uint8_t to = c->components->of[node];
    if (to == c->current) return;
    pl_run_clock_leave(c);
    c->current = to;
}

#endif
