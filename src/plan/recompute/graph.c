/* Building and checking the planner's view of a problem, and its floor: what one node needs at least.
 *
 * Floor: when v runs, its inputs are resident, and so is every kept node that v depends on, however far away, because
 * it ran before. And at the end everything kept is resident. No order and no recomputation gets below. */
#include "graph.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/size.h"

enum { COUNT_MAX = 1 << 24 };
#define BYTES_MAX (INT64_MAX / 2)
#define COST_MAX  1e300

double recompute_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool recompute_run_spend(recompute_run *run, uint64_t work)
{
    enum { LOOK = 1000000 };
    run->work += work;
    if (run->deadline > 0 && run->work >= run->next_look) {
        run->next_look = run->work + LOOK;
        run->out_of_time |= recompute_now() > run->deadline;
    }
    return run->out_of_time || run->work >= run->work_limit;
}

static pl_status check_node(const pl_recompute_node *node, size_t i, pl_error *err)
{
    if (!(node->cost >= 0) || !isfinite(node->cost))
        return pl_fail(err, PL_E_DATA, "node %zu costs %g; expected a finite number, not negative", i, node->cost);
    for (size_t k = 0; k < node->dep_count; k++)
        if (node->deps[k] >= i)
            return pl_fail(err, PL_E_DATA, "node %zu depends on node %" PRIu32 "; nodes stand behind what they read", i,
                           node->deps[k]);
    return PL_OK;
}

static pl_status check_sums(const pl_recompute_problem *p, double *base_cost, pl_error *err)
{
    uint64_t bytes = p->fixed, work = 0;
    int over = 0;
    *base_cost = 0;
    for (size_t i = 0; i < p->node_count; i++) {
        over |= pl_size_add(bytes, p->nodes[i].size, &bytes);
        if (p->nodes[i].work > work) work = p->nodes[i].work;
        *base_cost += p->nodes[i].cost;
    }
    if (over | pl_size_add(bytes, work, &bytes) || bytes > BYTES_MAX)
        return pl_fail(err, PL_E_DATA, "all results together exceed 2^62 bytes; sizes are in bytes, no scaled numbers");
    if (*base_cost > COST_MAX) return pl_fail(err, PL_E_DATA, "all costs together exceed 1e300; give a larger unit");
    return PL_OK;
}

static pl_status check(const pl_recompute_problem *p, double *base_cost, uint64_t *dep_count, pl_error *err)
{
    if (p->node_count > COUNT_MAX)
        return pl_fail(err, PL_E_DATA, "%zu nodes; at most %d are taken", p->node_count, COUNT_MAX);
    for (size_t i = 0; i < p->node_count; i++) {
        PL_TRY(check_node(&p->nodes[i], i, err));
        *dep_count += p->nodes[i].dep_count;
    }
    if (*dep_count > UINT32_MAX) return pl_fail(err, PL_E_DATA, "more than 2^32 dependencies");
    return check_sums(p, base_cost, err);
}

static int compare_ids(const void *left, const void *right)
{
    const uint32_t *a = left, *b = right;
    return *a < *b ? -1 : *a > *b;
}

/* A dependency named twice counts once. */
static void fill_deps(recompute_graph *g, const pl_recompute_node *nodes)
{
    uint32_t end = 0;
    for (uint32_t v = 0; v < g->count; v++) {
        uint32_t *row = g->dep + end, count = 0;
        if (nodes[v].dep_count) memcpy(row, nodes[v].deps, nodes[v].dep_count * sizeof *row);
        if (nodes[v].dep_count > 1) qsort(row, nodes[v].dep_count, sizeof *row, compare_ids);
        for (uint32_t k = 0; k < nodes[v].dep_count; k++)
            if (count == 0 || row[count - 1] != row[k]) row[count++] = row[k];
        g->dep_begin[v] = end;
        end += count;
    }
    g->dep_begin[g->count] = end;
}

static void fill_uses(recompute_graph *g)
{
    for (uint32_t k = 0; k < g->dep_begin[g->count]; k++) g->use_begin[g->dep[k] + 1]++;
    for (uint32_t v = 0; v < g->count; v++) g->use_begin[v + 1] += g->use_begin[v];
    for (uint32_t v = g->count; v-- > 0;) /* from the last: each row is filled from its end */
        for (uint32_t k = g->dep_begin[v]; k < g->dep_begin[v + 1]; k++) {
            uint32_t d = g->dep[k];
            g->use[--g->use_begin[d + 1]] = v;
        }
    for (uint32_t v = 0; v < g->count; v++) g->use_begin[v] = g->use_begin[v + 1];
    g->use_begin[g->count] = g->dep_begin[g->count];
}

static void raise_floor(recompute_graph *g, int64_t bytes, uint32_t node)
{
    if (bytes <= g->floor) return;
    g->floor = bytes;
    g->floor_node = node;
}

/* Bytes of the kept nodes that v depends on from afar, beside its own inputs. `seen` holds v + 1 where it was met. */
static int64_t kept_before(const recompute_graph *g, uint32_t v, uint32_t *seen, uint32_t *stack)
{
    int64_t bytes = 0;
    uint32_t depth = 0;
    for (stack[depth++] = v; depth > 0;) {
        uint32_t u = stack[--depth];
        for (uint32_t k = g->dep_begin[u]; k < g->dep_begin[u + 1]; k++) {
            uint32_t d = g->dep[k];
            if (seen[d] == v + 1) continue;
            seen[d] = v + 1;
            stack[depth++] = d;
            if (g->keep[d] || u == v) bytes += g->size[d];
        }
    }
    return bytes;
}

static pl_status find_floor(recompute_graph *g, pl_error *err)
{
    enum { FAR_COUNT_MAX = 4096 }; /* the walk to all ancestors grows with the square */
    bool any_kept = false;
    int64_t kept = g->fixed;
    uint32_t *seen = pl_alloc((size_t)g->count + 1, sizeof *seen),
             *stack = pl_alloc((size_t)g->count + 1, sizeof *stack);
    pl_status status = PL_OK;
    if (!seen || !stack) PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "no memory to plan %" PRIu32 " nodes", g->count));
    for (uint32_t v = 0; v < g->count; v++) any_kept |= g->keep[v];
    g->floor_node = g->count;
    for (uint32_t v = 0; v < g->count; v++) {
        int64_t inputs = 0;
        for (uint32_t k = g->dep_begin[v]; k < g->dep_begin[v + 1]; k++) inputs += g->size[g->dep[k]];
        if (any_kept && g->count <= FAR_COUNT_MAX) inputs = kept_before(g, v, seen, stack);
        raise_floor(g, g->fixed + inputs + g->size[v] + g->work[v], v);
        if (g->keep[v]) kept += g->size[v];
    }
    raise_floor(g, kept, g->count);
done:
    pl_free(seen);
    pl_free(stack);
    return status;
}

static pl_status allocate(recompute_graph *g, uint64_t dep_count, pl_error *err)
{
    size_t n = g->count;
    g->cost = pl_alloc(n, sizeof *g->cost);
    g->size = pl_alloc(n, sizeof *g->size);
    g->work = pl_alloc(n, sizeof *g->work);
    g->keep = pl_alloc(n, sizeof *g->keep);
    g->dep_begin = pl_alloc(n + 1, sizeof *g->dep_begin);
    g->use_begin = pl_alloc(n + 1, sizeof *g->use_begin);
    g->dep = pl_alloc(dep_count, sizeof *g->dep);
    g->use = pl_alloc(dep_count, sizeof *g->use);
    if (g->cost && g->size && g->work && g->keep && g->dep_begin && g->use_begin && g->dep && g->use) return PL_OK;
    return pl_fail(err, PL_E_NOMEM, "no memory to plan %zu nodes", n);
}

pl_status recompute_graph_init(recompute_graph *g, const pl_recompute_problem *p, pl_error *err)
{
    uint64_t dep_count = 0;
    *g = (recompute_graph){0};
    PL_TRY(check(p, &g->base_cost, &dep_count, err));
    g->count = (uint32_t)p->node_count;
    PL_TRY(allocate(g, dep_count, err));
    g->fixed = (int64_t)p->fixed;
    g->budget = p->budget > BYTES_MAX ? BYTES_MAX : (int64_t)p->budget;
    for (uint32_t v = 0; v < g->count; v++) {
        g->cost[v] = p->nodes[v].cost;
        g->size[v] = (int64_t)p->nodes[v].size;
        g->work[v] = (int64_t)p->nodes[v].work;
        g->keep[v] = p->nodes[v].keep;
    }
    fill_deps(g, p->nodes);
    fill_uses(g);
    return find_floor(g, err);
}

void recompute_graph_deinit(recompute_graph *g)
{
    pl_free(g->cost);
    pl_free(g->size);
    pl_free(g->work);
    pl_free(g->keep);
    pl_free(g->dep_begin);
    pl_free(g->use_begin);
    pl_free(g->dep);
    pl_free(g->use);
}
