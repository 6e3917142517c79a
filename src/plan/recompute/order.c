/* A topological order that keeps little alive: of the nodes that are ready, the one that lets the resident bytes grow
 * least (its result, less the inputs that nobody else still waits for) runs next; of equals the earliest.
 *
 * The ready nodes stand in a heap. What a node lets the bytes grow by only falls: when it becomes the last that waits
 * for an input. */
#include "graph.h"

#include "base/alloc.h"

typedef struct list {
    const recompute_graph *g;
    uint32_t *heap, *place; /* who may run; by node: where in the heap, RECOMPUTE_NO_NODE: not there */
    uint32_t *waits;        /* by node: inputs not yet computed */
    uint32_t *users;        /* by node: readers that did not run yet */
    int64_t *growth;        /* by node, while it is ready */
    bool *ran;
    uint32_t count;
} list;

static bool before(const list *l, uint32_t a, uint32_t b)
{
    return l->growth[a] != l->growth[b] ? l->growth[a] < l->growth[b] : a < b;
}

static void put(list *l, uint32_t at, uint32_t v)
{
    l->heap[at] = v;
    l->place[v] = at;
}

/* v belongs at `at` or nearer to the top. */
static void rise(list *l, uint32_t at, uint32_t v)
{
    for (; at > 0 && before(l, v, l->heap[(at - 1) / 2]); at = (at - 1) / 2) put(l, at, l->heap[(at - 1) / 2]);
    put(l, at, v);
}

static uint32_t take_best(list *l)
{
    uint32_t best = l->heap[0], moved = l->heap[--l->count], at = 0;
    l->place[best] = RECOMPUTE_NO_NODE;
    if (l->count == 0) return best;
    for (uint32_t child; (child = 2 * at + 1) < l->count; at = child) {
        if (child + 1 < l->count && before(l, l->heap[child + 1], l->heap[child])) child++;
        if (!before(l, l->heap[child], moved)) break;
        put(l, at, l->heap[child]);
    }
    put(l, at, moved);
    return best;
}

static void make_ready(list *l, uint32_t v)
{
    const recompute_graph *g = l->g;
    l->growth[v] = g->use_begin[v] == g->use_begin[v + 1] && !g->keep[v] ? 0 : g->size[v];
    for (uint32_t k = g->dep_begin[v]; k < g->dep_begin[v + 1]; k++) {
        uint32_t d = g->dep[k];
        if (l->users[d] == 1 && !g->keep[d]) l->growth[v] -= g->size[d];
    }
    rise(l, l->count++, v);
}

/* Of d's readers one is left: if it is ready, it looks better now. */
static void prefer_last_reader(list *l, uint32_t d)
{
    const recompute_graph *g = l->g;
    uint32_t k = g->use_begin[d];
    while (l->ran[g->use[k]]) k++;
    uint32_t reader = g->use[k];
    if (l->place[reader] == RECOMPUTE_NO_NODE) return;
    l->growth[reader] -= g->size[d];
    rise(l, l->place[reader], reader);
}

static void mark_done(list *l, uint32_t v)
{
    const recompute_graph *g = l->g;
    l->ran[v] = true;
    for (uint32_t k = g->dep_begin[v]; k < g->dep_begin[v + 1]; k++)
        if (--l->users[g->dep[k]] == 1 && !g->keep[g->dep[k]]) prefer_last_reader(l, g->dep[k]);
    for (uint32_t k = g->use_begin[v]; k < g->use_begin[v + 1]; k++)
        if (--l->waits[g->use[k]] == 0) make_ready(l, g->use[k]);
}

static void find_order(list *l, uint32_t *order)
{
    const recompute_graph *g = l->g;
    for (uint32_t v = 0; v < g->count; v++) {
        l->place[v] = RECOMPUTE_NO_NODE;
        l->waits[v] = g->dep_begin[v + 1] - g->dep_begin[v];
        l->users[v] = g->use_begin[v + 1] - g->use_begin[v];
    }
    for (uint32_t v = 0; v < g->count; v++)
        if (l->waits[v] == 0) make_ready(l, v);
    for (uint32_t t = 0; t < g->count; t++) {
        order[t] = take_best(l);
        mark_done(l, order[t]);
    }
}

pl_status recompute_order_low_peak(const recompute_graph *g, uint32_t *order, pl_error *err)
{
    size_t n = g->count;
    list l = {.g = g,
              .heap = pl_alloc(n, sizeof *l.heap),
              .place = pl_alloc(n, sizeof *l.place),
              .waits = pl_alloc(n, sizeof *l.waits),
              .users = pl_alloc(n, sizeof *l.users),
              .growth = pl_alloc(n, sizeof *l.growth),
              .ran = pl_alloc(n, sizeof *l.ran)};
    bool ok = l.heap && l.place && l.waits && l.users && l.growth && l.ran;
    if (ok) find_order(&l, order);
    pl_free(l.heap);
    pl_free(l.place);
    pl_free(l.waits);
    pl_free(l.users);
    pl_free(l.growth);
    pl_free(l.ran);
    return ok ? PL_OK : pl_fail(err, PL_E_NOMEM, "no memory to order %zu nodes", n);
}
