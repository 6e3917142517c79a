/* Greedy: run the nodes in a given order; when room is needed, drop the resident value with the least
 *
 *     cost to compute it again now / (size × (distance to its next use)^p)
 *
 * and compute again on demand, deepest first. It is the rule of DTR (Kirisame et al., ICLR'21) made offline: the
 * distance to the next use is known, staleness need not stand for it (Belady). Memory grows with the nodes only.
 *
 * Invariant: a node on the stack has all its inputs pinned, so what was computed for it is not dropped before it ran.
 *
 * What is computed for one node may drop what the next one needs, so a pass may compute some values as often as there
 * are ways through the graph: for ever. Beyond COMPUTATIONS_PER_NODE_MAX it makes no more room. If it circles on within
 * one node all the same, it is lost: nothing is dropped any more, not even what is dead, and no node computed more than
 * once from there. */
#include "heap.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"

enum { COMPUTATIONS_PER_NODE_MAX = 40, COMPUTATIONS_PER_NODE_OVER = 400, COMPUTATIONS_MAX = 1000000 };

/* Beyond so many nodes, the values that may go stand in a heap instead of being looked at one and all for each drop. A
 * score there may be of an earlier moment: it is found again for the first ones only. While a value is untouched its
 * next use comes nearer and what it was computed from goes, so that its score grows: the first one then is the least,
 * but for values that became cheaper because something they need was computed again. */
enum { SCAN_NODES_MAX = 16384, WALK_MAX = 64, TRIES_MAX = 16 };

typedef struct frame {
    uint32_t node, next; /* inputs before `next` (in g->dep) are there */
} frame;

typedef struct greedy {
    const recompute_graph *g;
    recompute_run *run;
    recompute_sequence *out;
    const double *weight;   /* by node: makes its loss heavier or lighter; NULL: all alike */
    uint32_t *position;     /* by node: in the order */
    uint32_t *next_use;     /* by node: index into by_position, of the next reader in the order */
    uint32_t *by_position;  /* as g->use, each row sorted by position */
    uint32_t *resident;     /* list */
    uint32_t *slot;         /* by node: place in that list; RECOMPUTE_NO_NODE: not resident */
    uint32_t *pins;         /* by node */
    uint32_t *seen, *stack; /* of the walk that adds up costs */
    frame *frames;
    recompute_heap queue; /* beyond SCAN_NODES_MAX: what may go, the least score first */
    double *score;        /* by node in the queue */
    uint32_t resident_count, seen_mark, now;
    int64_t held, budget;
    unsigned twice_p;
    uint64_t first_step; /* run->steps as it began */
    bool over;           /* the budget */
    bool lost;
} greedy;

static bool is_resident(const greedy *w, uint32_t v) { return w->slot[v] != RECOMPUTE_NO_NODE; }

static void put(greedy *w, uint32_t v)
{
    w->slot[v] = w->resident_count;
    w->resident[w->resident_count++] = v;
    w->held += w->g->size[v];
}

static void drop(greedy *w, uint32_t v)
{
    uint32_t last = w->resident[--w->resident_count];
    w->resident[w->slot[v]] = last;
    w->slot[last] = w->slot[v];
    w->slot[v] = RECOMPUTE_NO_NODE;
    w->held -= w->g->size[v];
    if (w->score) recompute_heap_remove(&w->queue, v);
}

/* Position of the next reader, at or behind the node that is being worked for; the count when there is none. */
static uint32_t next_use(greedy *w, uint32_t v)
{
    uint32_t *k = &w->next_use[v];
    while (*k < w->g->use_begin[v + 1] && w->by_position[*k] < w->now) ++*k;
    return *k < w->g->use_begin[v + 1] ? w->by_position[*k] : w->g->count;
}

/* What computing v again would cost now, with all that is missing for it; gives up above `most`, and behind so many
 * nodes. */
static double cost_now(greedy *w, uint32_t v, double most, uint32_t nodes)
{
    const recompute_graph *g = w->g;
    uint32_t depth = 0;
    uint64_t steps = 0;
    double cost = 0;
    w->seen[v] = ++w->seen_mark;
    for (w->stack[depth++] = v; depth > 0 && cost <= most && nodes > 0; nodes--) {
        uint32_t u = w->stack[--depth];
        cost += g->cost[u];
        for (uint32_t k = g->dep_begin[u]; k < g->dep_begin[u + 1]; k++) {
            uint32_t d = g->dep[k];
            if (is_resident(w, d) || w->seen[d] == w->seen_mark) continue;
            w->seen[d] = w->seen_mark;
            w->stack[depth++] = d;
        }
        w->run->work += 4;
        steps += 4 + g->dep_begin[u + 1] - g->dep_begin[u];
    }
    w->run->steps += steps;
    return cost;
}

/* Size × distance^p: what dropping it brings. */
static double gain(const greedy *w, uint32_t v, uint32_t use)
{
    double distance = (double)(use - w->now + 1), bytes = (double)w->g->size[v];
    if (w->weight) bytes /= w->weight[v];
    switch (w->twice_p) {
    case 0:
        return bytes;
    case 1:
        return bytes * sqrt(distance);
    case 2:
        return bytes * distance;
    default:
        return bytes * distance * sqrt(distance);
    }
}

static uint32_t scan_for_victim(greedy *w)
{
    uint32_t victim = RECOMPUTE_NO_NODE;
    double least = INFINITY;
    w->run->work += 3 * (uint64_t)w->resident_count;
    for (uint32_t r = 0; r < w->resident_count; r++) {
        uint32_t v = w->resident[r];
        if (recompute_run_step(w->run, 3)) return RECOMPUTE_NO_NODE;
        if (w->pins[v] || w->g->keep[v] || w->g->size[v] == 0) continue;
        double bytes = gain(w, v, next_use(w, v));
        if (w->g->cost[v] > least * bytes) continue; /* the walk can only add to it */
        double score = cost_now(w, v, least * bytes, UINT32_MAX) / bytes;
        if (score > least || (score == least && v > victim)) continue;
        least = score;
        victim = v;
    }
    return victim;
}

static bool goes_before(const void *owner, uint32_t a, uint32_t b)
{
    const greedy *w = owner;
    return w->score[a] != w->score[b] ? w->score[a] < w->score[b] : a < b;
}

static double score_now(greedy *w, uint32_t v)
{
    return cost_now(w, v, INFINITY, WALK_MAX) / gain(w, v, next_use(w, v));
}

/* Whenever v was touched, and may go. */
static void queue_up(greedy *w, uint32_t v)
{
    if (!w->score || !is_resident(w, v) || w->pins[v] || w->g->keep[v] || w->g->size[v] == 0) return;
    w->score[v] = score_now(w, v);
    recompute_heap_place(&w->queue, v);
}

static uint32_t take_from_queue(greedy *w)
{
    for (uint32_t tries = 0; w->queue.count > 0;) {
        uint32_t v = w->queue.node[0];
        if (w->pins[v]) { /* comes back when it was read */
            recompute_heap_remove(&w->queue, v);
            continue;
        }
        double score = score_now(w, v);
        if (score <= w->score[v] || tries++ == TRIES_MAX) return v;
        w->score[v] = score;
        recompute_heap_place(&w->queue, v);
        w->run->work += 50;
        if (recompute_run_step(w->run, 50)) break;
    }
    return RECOMPUTE_NO_NODE;
}

static uint32_t find_victim(greedy *w) { return w->score ? take_from_queue(w) : scan_for_victim(w); }

static void make_room(greedy *w, int64_t bytes)
{
    while (w->held + bytes > w->budget) {
        uint32_t victim = find_victim(w);
        if (victim == RECOMPUTE_NO_NODE) { /* the peak will say so */
            w->over = true;
            return;
        }
        drop(w, victim);
    }
}

static void free_if_dead(greedy *w, uint32_t v)
{
    if (!w->lost && is_resident(w, v) && !w->pins[v] && !w->g->keep[v] && next_use(w, v) == w->g->count) drop(w, v);
}

static void let_go(greedy *w, uint32_t v)
{
    free_if_dead(w, v);
    queue_up(w, v);
}

static void pin_inputs(greedy *w, uint32_t v)
{
    for (uint32_t k = w->g->dep_begin[v]; k < w->g->dep_begin[v + 1]; k++) w->pins[w->g->dep[k]]++;
}

/* The more nodes, the less often each. */
static bool is_long(const greedy *w)
{
    size_t count = w->out->count, n = w->g->count;
    return count / COMPUTATIONS_PER_NODE_MAX > n || (n > SCAN_NODES_MAX && count > 4 * n + COMPUTATIONS_MAX);
}

/* Much too long, and over the budget anyhow; or longer than can be of use; or it had its share of the steps. */
static bool is_lost(const greedy *w)
{
    if (w->lost || !is_long(w)) return w->lost;
    if (w->over && w->out->count / COMPUTATIONS_PER_NODE_OVER > w->g->count) return true;
    return w->out->count > COMPUTATIONS_MAX || recompute_run_is_lost(w->run, w->run->steps - w->first_step);
}

/* v has all its inputs. */
static pl_status compute(greedy *w, uint32_t v, pl_error *err)
{
    const recompute_graph *g = w->g;
    make_room(w, g->size[v] + g->work[v]);
    if (recompute_sequence_append(w->out, v))
        return pl_fail(err, PL_E_NOMEM, "no memory for a schedule of %zu computations", w->out->count);
    put(w, v);
    for (uint32_t k = g->dep_begin[v]; k < g->dep_begin[v + 1]; k++) w->pins[g->dep[k]]--;
    return PL_OK;
}

static bool push_missing(greedy *w, frame *top, uint32_t *depth)
{
    for (; top->next < w->g->dep_begin[top->node + 1]; top->next++) {
        uint32_t d = w->g->dep[top->next];
        if (is_resident(w, d)) continue;
        w->frames[(*depth)++] = (frame){d, w->g->dep_begin[d]};
        pin_inputs(w, d);
        return true;
    }
    return false;
}

/* Computes the node of this position with all that it takes. */
static pl_status reach(greedy *w, uint32_t target, pl_error *err)
{
    uint32_t depth = 0;
    w->frames[depth++] = (frame){target, w->g->dep_begin[target]};
    pin_inputs(w, target);
    while (depth > 0 && !w->run->out_of_time) {
        frame *top = &w->frames[depth - 1];
        if (push_missing(w, top, &depth)) continue;
        uint32_t v = top->node;
        PL_TRY(compute(w, v, err));
        recompute_run_step(w->run, 10 + 4 * (w->g->dep_begin[v + 1] - w->g->dep_begin[v]));
        if ((w->lost = is_lost(w))) w->budget = INT64_MAX;
        depth--;
        w->now += v == target; /* what it read is dead unless somebody comes behind it */
        for (uint32_t k = w->g->dep_begin[v]; k < w->g->dep_begin[v + 1]; k++) let_go(w, w->g->dep[k]);
        let_go(w, v);
    }
    return PL_OK;
}

static int compare_positions(const void *left, const void *right)
{
    const uint32_t *a = left, *b = right;
    return *a < *b ? -1 : *a > *b;
}

/* Readers come in the order of the graph: mostly that is the order. */
static void sort_positions(uint32_t *row, uint32_t count)
{
    for (uint32_t k = 1; k < count; k++)
        if (row[k] < row[k - 1]) {
            qsort(row, count, sizeof *row, compare_positions);
            return;
        }
}

static pl_status allocate(greedy *w, pl_error *err)
{
    size_t n = w->g->count, uses = w->g->use_begin[n];
    w->position = pl_alloc(n, sizeof *w->position);
    w->next_use = pl_alloc(n, sizeof *w->next_use);
    w->by_position = pl_alloc(uses, sizeof *w->by_position);
    w->resident = pl_alloc(n, sizeof *w->resident);
    w->slot = pl_alloc(n, sizeof *w->slot);
    w->pins = pl_alloc(n, sizeof *w->pins);
    w->seen = pl_alloc(n, sizeof *w->seen);
    w->stack = pl_alloc(n, sizeof *w->stack);
    w->frames = pl_alloc(n, sizeof *w->frames);
    if (n > SCAN_NODES_MAX) {
        w->score = pl_alloc(n, sizeof *w->score);
        w->queue = (recompute_heap){.before = goes_before, .owner = w};
        if (!w->score || recompute_heap_init(&w->queue, w->g->count))
            return pl_fail(err, PL_E_NOMEM, "no memory to plan %zu nodes", n);
    }
    if (w->position && w->next_use && w->by_position && w->resident && w->slot && w->pins && w->seen && w->stack &&
        w->frames)
        return PL_OK;
    return pl_fail(err, PL_E_NOMEM, "no memory to plan %zu nodes", n);
}

static void release(greedy *w)
{
    pl_free(w->position);
    pl_free(w->next_use);
    pl_free(w->by_position);
    pl_free(w->resident);
    pl_free(w->slot);
    pl_free(w->pins);
    pl_free(w->seen);
    pl_free(w->stack);
    pl_free(w->frames);
    pl_free(w->score);
    recompute_heap_deinit(&w->queue);
}

static void begin(greedy *w, const uint32_t *order)
{
    const recompute_graph *g = w->g;
    for (uint32_t t = 0; t < g->count; t++) w->position[order[t]] = t;
    for (uint32_t v = 0; v < g->count; v++) {
        uint32_t *row = w->by_position + g->use_begin[v], count = g->use_begin[v + 1] - g->use_begin[v];
        for (uint32_t k = 0; k < count; k++) row[k] = w->position[g->use[g->use_begin[v] + k]];
        sort_positions(row, count);
        w->next_use[v] = g->use_begin[v];
        w->slot[v] = RECOMPUTE_NO_NODE;
    }
    w->held = g->fixed;
    w->out->count = 0;
    w->first_step = w->run->steps;
}

pl_status recompute_greedy(const recompute_graph *g, recompute_run *run, const uint32_t *order, unsigned twice_p,
                           const double *weight, recompute_sequence *out, pl_error *err)
{
    greedy w = {.g = g, .run = run, .out = out, .weight = weight, .budget = g->budget, .twice_p = twice_p};
    pl_status status = allocate(&w, err);
    if (status == PL_OK) begin(&w, order);
    for (uint32_t t = 0; t < g->count && status == PL_OK && !run->out_of_time; t++) {
        w.now = t;
        if (!is_resident(&w, order[t])) status = reach(&w, order[t], err);
        if (is_long(&w)) w.budget = INT64_MAX; /* come to an end, somehow */
    }
    if (run->out_of_time) recompute_sequence_void(out);
    release(&w);
    return status;
}
