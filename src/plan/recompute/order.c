/* A topological order that keeps little alive: of the nodes that are ready, the one that lets the resident bytes grow
 * least (its result, less the inputs that nobody else still waits for) runs next; of equals the earliest. What a ready
 * node lets the bytes grow by only falls: when it becomes the last that waits for an input. */
#include "heap.h"

#include "base/alloc.h"

typedef struct list {
    const recompute_graph *g;
    recompute_heap ready;
    uint32_t *waits; /* by node: inputs not yet computed */
    uint32_t *users; /* by node: readers that did not run yet */
    int64_t *growth; /* by node, while it is ready */
    bool *ran;
} list;

static bool grows_less(const void *owner, uint32_t a, uint32_t b)
{
    const list *l = owner;
    return l->growth[a] != l->growth[b] ? l->growth[a] < l->growth[b] : a < b;
}

static void make_ready(list *l, uint32_t v)
{
    const recompute_graph *g = l->g;
    l->growth[v] = g->use_begin[v] == g->use_begin[v + 1] && !g->keep[v] ? 0 : g->size[v];
    for (uint32_t k = g->dep_begin[v]; k < g->dep_begin[v + 1]; k++) {
        uint32_t d = g->dep[k];
        if (l->users[d] == 1 && !g->keep[d]) l->growth[v] -= g->size[d];
    }
    recompute_heap_place(&l->ready, v);
}

/* Of d's readers one is left: if it is ready, it looks better now. */
static void prefer_last_reader(list *l, uint32_t d)
{
    const recompute_graph *g = l->g;
    uint32_t k = g->use_begin[d];
    while (l->ran[g->use[k]]) k++;
    uint32_t reader = g->use[k];
    if (!recompute_heap_holds(&l->ready, reader)) return;
    l->growth[reader] -= g->size[d];
    recompute_heap_place(&l->ready, reader);
}

static void mark_done(list *l, uint32_t v)
{
    const recompute_graph *g = l->g;
    l->ran[v] = true;
    recompute_heap_remove(&l->ready, v);
    for (uint32_t k = g->dep_begin[v]; k < g->dep_begin[v + 1]; k++)
        if (--l->users[g->dep[k]] == 1 && !g->keep[g->dep[k]]) prefer_last_reader(l, g->dep[k]);
    for (uint32_t k = g->use_begin[v]; k < g->use_begin[v + 1]; k++)
        if (--l->waits[g->use[k]] == 0) make_ready(l, g->use[k]);
}

static void find_order(list *l, uint32_t *order)
{
    const recompute_graph *g = l->g;
    for (uint32_t v = 0; v < g->count; v++) {
        l->waits[v] = g->dep_begin[v + 1] - g->dep_begin[v];
        l->users[v] = g->use_begin[v + 1] - g->use_begin[v];
    }
    for (uint32_t v = 0; v < g->count; v++)
        if (l->waits[v] == 0) make_ready(l, v);
    for (uint32_t t = 0; t < g->count; t++) {
        order[t] = l->ready.node[0];
        mark_done(l, order[t]);
    }
}

pl_status recompute_order_low_peak(const recompute_graph *g, uint32_t *order, pl_error *err)
{
    size_t n = g->count;
    list l = {.g = g,
              .waits = pl_alloc(n, sizeof *l.waits),
              .users = pl_alloc(n, sizeof *l.users),
              .growth = pl_alloc(n, sizeof *l.growth),
              .ran = pl_alloc(n, sizeof *l.ran)};
    l.ready = (recompute_heap){.before = grows_less, .owner = &l};
    bool ok = recompute_heap_init(&l.ready, g->count) == 0 && l.waits && l.users && l.growth && l.ran;
    if (ok) find_order(&l, order);
    recompute_heap_deinit(&l.ready);
    pl_free(l.waits);
    pl_free(l.users);
    pl_free(l.growth);
    pl_free(l.ran);
    return ok ? PL_OK : pl_fail(err, PL_E_NOMEM, "no memory to order %zu nodes", n);
}
