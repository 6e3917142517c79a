/* Exact search: A* over states (which nodes ever ran, which results are resident).
 *
 *  - A result is dropped only when room is needed, and then only a smallest set that makes room (no member could stay):
 *    whatever a schedule drops earlier can be dropped then. Results that nobody will need again are dropped for free.
 *  - A node whose result nobody reads runs as soon as it can without dropping anything: it is in nobody's way.
 *  - The estimate of the cost to come is what must still run: every node that never ran, and what is missing for those,
 *    closed over dependencies. It never exceeds the truth (it ignores the budget), so the first complete state taken
 *    from the heap is a cheapest schedule.
 *  - States that cannot be below the best schedule known are not kept; if nothing is left, that one is optimal.
 *
 * Where any schedule within the budget will do, ways cost nothing, and the state that is nearest to the end is taken
 * first: that leads down to a schedule soon, or proves that there is none.
 *
 * When it stops at its limits, the least estimate in the heap is a lower bound on the cost. */
#include "states.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"

typedef struct search {
    const recompute_graph *g;
    recompute_run *run;
    states *all;
    uint32_t words;
    bool any;          /* whatever fits will do, at any cost */
    uint64_t work_end; /* of run->work */
    double ceiling;    /* states at or above it are not kept */
    uint64_t *inputs;  /* [count][words] */
    uint64_t *readers; /* [count][words] */
    uint64_t *kept;    /* [words] */
    uint32_t *by_size; /* nodes, the largest first */
    uint32_t parent;   /* the state being expanded */
    double parent_cost;
    uint64_t ran[STATE_WORDS_MAX], held[STATE_WORDS_MAX], useful[STATE_WORDS_MAX]; /* of it */
    pl_error *err;
} search;

static bool has(const uint64_t *set, uint32_t v) { return set[v / 64] >> (v % 64) & 1; }
static void set_bit(uint64_t *set, uint32_t v) { set[v / 64] |= UINT64_C(1) << (v % 64); }
static void clear_bit(uint64_t *set, uint32_t v) { set[v / 64] &= ~(UINT64_C(1) << (v % 64)); }

static bool meets(const uint64_t *a, const uint64_t *b, uint32_t words)
{
    for (uint32_t w = 0; w < words; w++)
        if (a[w] & b[w]) return true;
    return false;
}

static bool contains(const uint64_t *outer, const uint64_t *inner, uint32_t words)
{
    for (uint32_t w = 0; w < words; w++)
        if (inner[w] & ~outer[w]) return false;
    return true;
}

/* The cost of all that must still run: from the last node to the first, whoever never ran or is read by such. */
static double cost_to_come(const search *s, const uint64_t *ran, const uint64_t *held)
{
    uint64_t needed[STATE_WORDS_MAX] = {0};
    double cost = 0;
    recompute_run_spend(s->run, 4 * s->g->count);
    if (!s->run->options->exact_bound) return 0;
    for (uint32_t w = s->words; w-- > 0;) {
        uint64_t here =
            w + 1 < s->words || s->g->count % 64 == 0 ? ~UINT64_C(0) : (UINT64_C(1) << s->g->count % 64) - 1;
        needed[w] |= here & ~ran[w];
        for (uint64_t todo; (todo = needed[w] & ~held[w]) != 0;) {
            uint32_t bit = 63 - (uint32_t)__builtin_clzll(todo), v = 64 * w + bit;
            cost += s->g->cost[v];
            for (uint32_t k = 0; k <= w; k++) needed[k] |= s->inputs[(size_t)v * s->words + k];
            needed[w] &= ~(UINT64_C(1) << bit);
            needed[w] &= (UINT64_C(1) << bit) - 1;
        }
    }
    return cost;
}

/* Who may still be read: a reader never ran, or may itself be wanted again. */
static void find_useful(const search *s, const uint64_t *ran, uint64_t *useful)
{
    uint64_t readers[STATE_WORDS_MAX] = {0};
    memset(useful, 0, s->words * sizeof *useful);
    for (uint32_t w = 0; w < s->words; w++) readers[w] = ~ran[w];
    for (uint32_t v = s->g->count; v-- > 0;) {
        if (!meets(s->readers + (size_t)v * s->words, readers, s->words)) continue;
        set_bit(useful, v);
        set_bit(readers, v);
    }
}

static int64_t bytes_of(const search *s, const uint64_t *set)
{
    int64_t bytes = 0;
    for (uint32_t w = 0; w < s->words; w++)
        for (uint64_t rest = set[w]; rest; rest &= rest - 1)
            bytes += s->g->size[64 * w + (uint32_t)__builtin_ctzll(rest)];
    return bytes;
}

typedef struct eviction {
    uint32_t node;         /* to be computed when there is room */
    const uint32_t *may;   /* who may go, the largest first */
    const int64_t *behind; /* bytes of this one and all behind it */
    uint32_t count;
    uint64_t ran[STATE_WORDS_MAX], held[STATE_WORDS_MAX];
    uint64_t stays[STATE_WORDS_MAX]; /* what is not dead once the node has run */
    bool full;                       /* a limit is reached: no room for states, or no work left */
} eviction;

static pl_status offer(search *s, eviction *e)
{
    state_record record = {s->parent_cost, 0, s->parent, e->node};
    uint64_t held[STATE_WORDS_MAX];
    states_answer answer = STATES_KNOWN;
    memcpy(held, e->held, sizeof held);
    set_bit(held, e->node);
    for (uint32_t w = 0; w < s->words; w++) held[w] &= e->stays[w];
    if (!s->any) record.cost += s->g->cost[e->node]; /* else all ways are alike */
    e->full |= recompute_run_spend(s->run, 150) || s->run->work >= s->work_end;
    uint32_t known = states_find(s->all, e->ran, held);
    if (known != STATE_NONE && states_record(s->all, known)->cost <= record.cost) return PL_OK;
    record.to_come = known == STATE_NONE ? cost_to_come(s, e->ran, held) : states_record(s->all, known)->to_come;
    if (state_estimate(&record) < s->ceiling) answer = states_offer(s->all, e->ran, held, record);
    e->full |= answer == STATES_FULL;
    if (answer == STATES_NO_MEMORY) return pl_fail(s->err, PL_E_NOMEM, "no memory for the exact search");
    return PL_OK;
}

/* All smallest sets among may[from …] that free so many bytes. Taken from the largest on, a set is smallest exactly
 * when it lacked room before its last member. */
static pl_status evict(search *s, eviction *e, uint32_t from, int64_t bytes)
{
    if (bytes <= 0) return offer(s, e);
    for (uint32_t k = from; k < e->count && e->behind[k] >= bytes && !e->full; k++) {
        clear_bit(e->held, e->may[k]);
        PL_TRY(evict(s, e, k + 1, bytes - s->g->size[e->may[k]]));
        set_bit(e->held, e->may[k]);
    }
    return PL_OK;
}

static pl_status compute_next(search *s, uint32_t v, int64_t held_bytes, bool *full)
{
    uint32_t may[RECOMPUTE_EXACT_NODES_MAX];
    int64_t behind[RECOMPUTE_EXACT_NODES_MAX + 1] = {0};
    eviction e = {.node = v, .may = may, .behind = behind};
    memcpy(e.ran, s->ran, sizeof e.ran);
    memcpy(e.held, s->held, sizeof e.held);
    set_bit(e.ran, v);
    find_useful(s, e.ran, e.stays);
    for (uint32_t w = 0; w < s->words; w++)
        e.stays[w] = s->run->options->exact_dead ? e.stays[w] | s->kept[w] : ~UINT64_C(0);
    int64_t lacking = held_bytes + s->g->size[v] + s->g->work[v] - s->g->budget;
    for (uint32_t k = 0; k < s->g->count && lacking > 0; k++) {
        uint32_t u = s->by_size[k];
        if (!has(s->held, u) || has(s->kept, u) || has(s->inputs + (size_t)v * s->words, u)) continue;
        may[e.count++] = u;
    }
    for (uint32_t k = e.count; k-- > 0;) behind[k] = behind[k + 1] + s->g->size[may[k]];
    PL_TRY(evict(s, &e, 0, lacking));
    *full |= e.full;
    return PL_OK;
}

static bool is_ready(const search *s, uint32_t v)
{
    return !has(s->held, v) && contains(s->held, s->inputs + (size_t)v * s->words, s->words);
}

/* A result that nobody reads leaves nothing behind: where there is room for it, it may as well run now. One such node,
 * or the count. */
static uint32_t find_leaf(const search *s, int64_t held_bytes)
{
    const recompute_graph *g = s->g;
    for (uint32_t v = 0; v < g->count && s->run->options->exact_leaves; v++) {
        if (g->use_begin[v] != g->use_begin[v + 1] || g->keep[v] || has(s->ran, v) || !is_ready(s, v)) continue;
        if (held_bytes + g->size[v] + g->work[v] <= g->budget) return v;
    }
    return g->count;
}

static pl_status expand(search *s, uint32_t state, bool *full)
{
    s->parent = state;
    s->parent_cost = states_record(s->all, state)->cost;
    memcpy(s->ran, states_ran(s->all, state), s->words * sizeof *s->ran);
    memcpy(s->held, states_held(s->all, state), s->words * sizeof *s->held);
    find_useful(s, s->ran, s->useful);
    int64_t bytes = s->g->fixed + bytes_of(s, s->held);
    *full |= recompute_run_spend(s->run, 100 + 8 * s->g->count) || s->run->work >= s->work_end;
    uint32_t leaf = find_leaf(s, bytes);
    if (leaf < s->g->count) return compute_next(s, leaf, bytes, full);
    for (uint32_t v = 0; v < s->g->count && !*full; v++)
        if ((!has(s->ran, v) || has(s->useful, v)) && is_ready(s, v)) PL_TRY(compute_next(s, v, bytes, full));
    return PL_OK;
}

static bool is_complete(const search *s, uint32_t state)
{
    uint32_t count = 0;
    for (uint32_t w = 0; w < s->words; w++) count += (uint32_t)__builtin_popcountll(states_ran(s->all, state)[w]);
    return count == s->g->count;
}

static pl_status take_way(const search *s, uint32_t state, recompute_best *best)
{
    recompute_sequence way = {0};
    pl_status status = PL_OK;
    for (; states_record(s->all, state)->parent != STATE_NONE; state = states_record(s->all, state)->parent)
        if (recompute_sequence_append(&way, states_record(s->all, state)->node))
            PL_TRY_DONE(pl_fail(s->err, PL_E_NOMEM, "no memory for a schedule of %zu computations", way.count));
    for (size_t a = 0, b = way.count; a + 1 < b; a++) {
        uint32_t swap = way.node[a];
        way.node[a] = way.node[--b];
        way.node[b] = swap;
    }
    status = recompute_best_offer(best, s->g, s->run, &way, "exact search", s->err);
done:
    recompute_sequence_deinit(&way);
    return status;
}

static pl_status search_on(search *s, recompute_best *best, recompute_proof *proof, double *bound)
{
    const uint64_t nothing[STATE_WORDS_MAX] = {0};
    bool full = false;
    double start = cost_to_come(s, nothing, nothing);
    if (start >= s->ceiling) {
        *proof = RECOMPUTE_BEST_IS_OPTIMAL;
        return PL_OK;
    }
    if (states_offer(s->all, nothing, nothing, (state_record){0, start, STATE_NONE, STATE_NONE}) != STATES_KEPT)
        return pl_fail(s->err, PL_E_NOMEM, "no memory for the exact search");
    for (;;) {
        uint32_t state = states_take(s->all);
        if (state == STATE_NONE) {
            *proof = best->fits ? RECOMPUTE_BEST_IS_OPTIMAL : RECOMPUTE_NONE_FITS;
            *bound = best->sequence.cost;
            return PL_OK;
        }
        double least = state_estimate(states_record(s->all, state));
        if (!s->any && least > *bound) *bound = least;
        if (is_complete(s, state)) {
            PL_TRY(take_way(s, state, best));
            if (!s->any) *proof = RECOMPUTE_BEST_IS_OPTIMAL;
            return PL_OK;
        }
        PL_TRY(expand(s, state, &full));
        if (full) return PL_OK;
    }
}

static void fill_sets(search *s)
{
    const recompute_graph *g = s->g;
    for (uint32_t v = 0; v < g->count; v++) {
        if (g->keep[v]) set_bit(s->kept, v);
        for (uint32_t k = g->dep_begin[v]; k < g->dep_begin[v + 1]; k++) {
            set_bit(s->inputs + (size_t)v * s->words, g->dep[k]);
            set_bit(s->readers + (size_t)g->dep[k] * s->words, v);
        }
        uint32_t place = v; /* by insertion: few nodes */
        for (; place > 0 && g->size[s->by_size[place - 1]] < g->size[v]; place--)
            s->by_size[place] = s->by_size[place - 1];
        s->by_size[place] = v;
    }
}

pl_status recompute_exact(const recompute_graph *g, recompute_run *run, bool any, uint64_t work, recompute_best *best,
                          recompute_proof *proof, double *bound, pl_error *err)
{
    search s = {
        .g = g, .run = run, .words = (g->count + 63) / 64, .any = any, .work_end = run->work + work, .err = err};
    pl_status status = PL_OK;
    *proof = RECOMPUTE_OPEN;
    *bound = g->base_cost;
    if (g->count == 0 || g->count > RECOMPUTE_EXACT_NODES_MAX) return PL_OK;
    s.ceiling = best->fits ? best->sequence.cost : INFINITY;
    if (any && best->fits) return PL_OK;
    s.all = states_create(s.words, run->options->exact_states);
    s.inputs = pl_alloc(g->count, s.words * sizeof *s.inputs);
    s.readers = pl_alloc(g->count, s.words * sizeof *s.readers);
    s.kept = pl_alloc(s.words, sizeof *s.kept);
    s.by_size = pl_alloc(g->count, sizeof *s.by_size);
    if (!s.all || !s.inputs || !s.readers || !s.kept || !s.by_size)
        PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "no memory for the exact search over %" PRIu32 " nodes", g->count));
    fill_sets(&s);
    PL_TRY_DONE(search_on(&s, best, proof, bound));
done:
    states_destroy(s.all);
    pl_free(s.inputs);
    pl_free(s.readers);
    pl_free(s.kept);
    pl_free(s.by_size);
    return status;
}
