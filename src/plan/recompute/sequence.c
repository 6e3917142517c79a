/* Sequences of computations: what they cost, what they hold, and how they are polished.
 *
 * Position i computes node[i]: an *instance* of that value, which lives until its last use before the next instance.
 * Nothing can hold less for the same sequence, so peak and frees follow from it. */
#include "graph.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* What follows from a sequence, by position. */
typedef struct trace {
    uint32_t *last;   /* position of the last use; the position itself when unused; `count` when kept */
    uint32_t *before; /* position of the instance before this one; RECOMPUTE_NO_NODE: the first */
    int64_t *at;      /* bytes while it is computed */
    uint32_t *latest; /* by node: position of the instance met last */
    int64_t *freed;   /* bytes whose last use is at this position */
    bool *wanted;     /* by node: scratch of drop_unused */
} trace;

int recompute_sequence_append(recompute_sequence *s, uint32_t node)
{
    if (pl_grow(&s->node, &s->capacity, s->count, sizeof *s->node)) return -1;
    s->node[s->count++] = node;
    return 0;
}

void recompute_sequence_void(recompute_sequence *s)
{
    s->count = 0;
    s->cost = INFINITY;
    s->peak = INT64_MAX;
}

void recompute_sequence_deinit(recompute_sequence *s)
{
    pl_free(s->node);
    *s = (recompute_sequence){0};
}

static pl_status no_memory(size_t count, pl_error *err)
{
    return pl_fail(err, PL_E_NOMEM, "no memory for a schedule of %zu computations", count);
}

pl_status recompute_sequence_copy(recompute_sequence *to, const recompute_sequence *from, pl_error *err)
{
    if (to->capacity < from->count) {
        uint32_t *grown = pl_realloc(to->node, from->count, sizeof *grown);
        if (!grown) return no_memory(from->count, err);
        to->node = grown;
        to->capacity = from->count;
    }
    if (from->count) memcpy(to->node, from->node, from->count * sizeof *to->node);
    to->count = from->count;
    to->cost = from->cost;
    to->peak = from->peak;
    return PL_OK;
}

static void trace_deinit(trace *t)
{
    pl_free(t->last);
    pl_free(t->before);
    pl_free(t->at);
    pl_free(t->latest);
    pl_free(t->freed);
    pl_free(t->wanted);
}

/* Room for this sequence, and for what is left of it when some is taken out. */
static pl_status trace_init(trace *t, const recompute_graph *g, const recompute_sequence *s, pl_error *err)
{
    t->last = pl_alloc(s->count, sizeof *t->last);
    t->before = pl_alloc(s->count, sizeof *t->before);
    t->at = pl_alloc(s->count, sizeof *t->at);
    t->latest = pl_alloc(g->count, sizeof *t->latest);
    t->freed = pl_alloc(s->count, sizeof *t->freed);
    t->wanted = pl_alloc(g->count, sizeof *t->wanted);
    if (t->last && t->before && t->at && t->latest && t->freed && t->wanted) return PL_OK;
    trace_deinit(t);
    return no_memory(s->count, err);
}

static void find_lives(trace *t, const recompute_graph *g, const recompute_sequence *s)
{
    for (uint32_t v = 0; v < g->count; v++) t->latest[v] = RECOMPUTE_NO_NODE;
    for (uint32_t i = 0; i < s->count; i++) {
        uint32_t v = s->node[i];
        for (uint32_t k = g->dep_begin[v]; k < g->dep_begin[v + 1]; k++) {
            uint32_t from = t->latest[g->dep[k]];
            if (t->last[from] < i) t->last[from] = i; /* kept: stays at the end */
        }
        t->before[i] = t->latest[v];
        t->latest[v] = i;
        t->last[i] = g->keep[v] ? (uint32_t)s->count : i;
    }
}

static void find_bytes(trace *t, const recompute_graph *g, recompute_sequence *s)
{
    int64_t held = g->fixed;
    s->cost = 0;
    s->peak = g->fixed;
    memset(t->freed, 0, s->count * sizeof *t->freed);
    for (uint32_t i = 0; i < s->count; i++)
        if (t->last[i] < s->count) t->freed[t->last[i]] += g->size[s->node[i]];
    for (uint32_t i = 0; i < s->count; i++) {
        uint32_t v = s->node[i];
        s->cost += g->cost[v];
        t->at[i] = held + g->size[v] + g->work[v];
        if (t->at[i] > s->peak) s->peak = t->at[i];
        held += g->size[v] - t->freed[i];
    }
}

pl_status recompute_sequence_measure(const recompute_graph *g, recompute_sequence *s, pl_error *err)
{
    trace t;
    PL_TRY(trace_init(&t, g, s, err));
    find_lives(&t, g, s);
    find_bytes(&t, g, s);
    trace_deinit(&t);
    return PL_OK;
}

/* From the last to the first: an instance stays if it is the first of its value, or somebody behind it reads it. Was
 * anything taken out? */
static bool drop_unused(trace *t, const recompute_graph *g, recompute_sequence *s)
{
    uint32_t out = (uint32_t)s->count;
    bool *wanted = t->wanted;
    memset(wanted, 0, g->count * sizeof *wanted);
    for (uint32_t i = out; i-- > 0;) {
        uint32_t v = s->node[i];
        if (t->before[i] != RECOMPUTE_NO_NODE && !wanted[v]) continue;
        wanted[v] = false;
        for (uint32_t k = g->dep_begin[v]; k < g->dep_begin[v + 1]; k++) wanted[g->dep[k]] = true;
        s->node[--out] = v;
    }
    s->count -= out;
    if (out && s->count) memmove(s->node, s->node + out, s->count * sizeof *s->node);
    return out > 0;
}

/* Takes out computations that nobody uses; never raises cost or peak. The trace is then that of what is left. */
static void prune(trace *t, const recompute_graph *g, recompute_run *run, recompute_sequence *s)
{
    find_lives(t, g, s);
    if (!recompute_run_look(run) && drop_unused(t, g, s)) find_lives(t, g, s);
    find_bytes(t, g, s);
}

/* Is there room for the value all the time between its last use and position i, where it is computed again? */
static bool room_between(const trace *t, const recompute_graph *g, recompute_run *run, const recompute_sequence *s,
                         uint32_t i)
{
    int64_t room = g->budget - g->size[s->node[i]];
    uint32_t begin = t->last[t->before[i]] + 1, q = begin;
    while (q < i && t->at[q] <= room) q++;
    recompute_run_step(run, q - begin);
    return q >= i;
}

static uint32_t best_refill(const trace *t, const recompute_graph *g, recompute_run *run, const recompute_sequence *s)
{
    uint32_t best = RECOMPUTE_NO_NODE;
    for (uint32_t i = 0; i < s->count; i++) {
        if (recompute_run_step(run, 1)) return RECOMPUTE_NO_NODE;
        if (t->before[i] == RECOMPUTE_NO_NODE) continue;
        if (best != RECOMPUTE_NO_NODE && g->cost[s->node[i]] <= g->cost[s->node[best]]) continue;
        if (room_between(t, g, run, s, i)) best = i;
    }
    return best;
}

/* The trace is that of the sequence, and stays so. */
static void refill(trace *t, const recompute_graph *g, recompute_run *run, recompute_sequence *s)
{
    for (uint32_t i; (i = best_refill(t, g, run, s)) != RECOMPUTE_NO_NODE;) {
        memmove(s->node + i, s->node + i + 1, (s->count - i - 1) * sizeof *s->node);
        s->count--;
        prune(t, g, run, s);
        if (recompute_run_spend(run, 40 * s->count)) return;
    }
}

/* Where any schedule will do and the clock runs, there is better use for the time. */
static bool wants_refill(const recompute_run *run)
{
    return run->options->refill && !(run->options->first_that_fits && run->clock.now);
}

enum { LATE_COUNT_MAX = 4000000 }; /* a longer one is not even measured when the time is over */

pl_status recompute_sequence_polish(const recompute_graph *g, recompute_run *run, recompute_sequence *s, pl_error *err)
{
    trace t;
    if (run->out_of_time && s->count > LATE_COUNT_MAX && s->count > g->count) recompute_sequence_void(s);
    if (s->count < g->count) return PL_OK; /* void */
    PL_TRY(trace_init(&t, g, s, err));
    if (run->options->prune) {
        prune(&t, g, run, s);
    } else {
        find_lives(&t, g, s);
        find_bytes(&t, g, s);
    }
    recompute_run_spend(run, 20 * s->count);
    if (s->peak <= g->budget && wants_refill(run) && s->count != g->count) refill(&t, g, run, s);
    trace_deinit(&t);
    return PL_OK;
}

/* A value computed and never read is freed at once, the inputs of a step behind it. */
static size_t put_frees(const trace *t, const recompute_graph *g, const recompute_sequence *s, uint32_t i,
                        pl_recompute_step *steps)
{
    uint32_t v = s->node[i];
    size_t count = 0;
    steps[count++] = (pl_recompute_step){PL_RECOMPUTE_COMPUTE, v};
    for (uint32_t k = g->dep_begin[v]; k < g->dep_begin[v + 1]; k++) {
        uint32_t d = g->dep[k];
        if (t->last[t->latest[d]] == i) steps[count++] = (pl_recompute_step){PL_RECOMPUTE_FREE, d};
    }
    if (t->last[i] == i) steps[count++] = (pl_recompute_step){PL_RECOMPUTE_FREE, v};
    return count;
}

pl_status recompute_sequence_steps(const recompute_graph *g, const recompute_sequence *s, pl_recompute_step **steps,
                                   size_t *count, pl_error *err)
{
    trace t;
    PL_TRY(trace_init(&t, g, s, err));
    *count = 0;
    *steps = pl_alloc(2 * s->count, sizeof **steps); /* each instance is freed once at most */
    if (*steps) {
        find_lives(&t, g, s);
        for (uint32_t i = 0; i < s->count; i++) {
            t.latest[s->node[i]] = i;
            *count += put_frees(&t, g, s, i, *steps + *count);
        }
    }
    trace_deinit(&t);
    return *steps ? PL_OK : no_memory(s->count, err);
}
