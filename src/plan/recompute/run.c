/* The limits of a run, and the clock. */
#include <math.h>
#include <time.h>

#include "graph.h"

static double now(void *context)
{
    struct timespec t;
    (void)context;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

recompute_clock recompute_clock_begin(double seconds)
{
    recompute_clock clock = {.begin = now(NULL)};
    if (!(seconds > 0)) return clock;
    clock.now = now;
    clock.deadline = clock.begin + seconds;
    return clock;
}

double recompute_clock_spent(const recompute_clock *clock) { return now(NULL) - clock->begin; }

double recompute_clock_left(const recompute_clock *clock)
{
    if (!clock->now) return INFINITY;
    return fmax(0, clock->deadline - clock->now(clock->context));
}

recompute_run recompute_run_begin(const pl_recompute_options *options, const recompute_clock *clock)
{
    return (recompute_run){.options = options,
                           .clock = *clock,
                           .work_limit = options->work_limit,
                           .next_look = clock->now ? 0 : UINT64_MAX};
}

bool recompute_run_look(recompute_run *run)
{
    enum { STEPS_PER_LOOK = 1000000 }; /* some milliseconds */
    if (!run->clock.now) return false;
    run->next_look = run->steps + STEPS_PER_LOOK;
    run->out_of_time |= run->clock.now(run->clock.context) > run->clock.deadline;
    return run->out_of_time;
}

bool recompute_run_spend(recompute_run *run, uint64_t work)
{
    run->work += work;
    return recompute_run_step(run, work) || run->work >= run->work_limit;
}

/* A step takes a nanosecond or two. With a clock all greedy passes together must leave time for what follows them. */
bool recompute_run_is_lost(const recompute_run *run, uint64_t steps)
{
    enum { SHARE = 32 };
    double limit = run->clock.now ? 1e9 * (run->clock.deadline - run->clock.begin) / SHARE : 2e9;
    return (double)steps > limit;
}
