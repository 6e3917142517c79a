/* The judge of plans: quadratic, shares no code with the placer. */
#include "backend/backend.h"
#include "base/size.h"
#include "plan/plan.h"

typedef struct named_block {
    const pl_block *block;
    const char *name;
} named_block;

static size_t all_blocks(const pl_plan *p, named_block *out)
{
    size_t count = 0;
    for (size_t i = 0; i < p->graph->value_count; i++)
        if (p->value[i].bytes) out[count++] = (named_block){&p->value[i], p->graph->value[i].name};
    for (size_t i = 0; i < p->graph->node_count; i++)
        if (p->workspace[i].bytes) out[count++] = (named_block){&p->workspace[i], pl_op_name(p->graph->node[i].op)};
    return count;
}

static bool overlap(const pl_block *a, const pl_block *b)
{
    bool together = a->first < b->last && b->first < a->last;
    return together && a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

static pl_status check_blocks(const pl_plan *p, const named_block *b, size_t count, pl_error *err)
{
    for (size_t i = 0; i < count; i++) {
        const pl_block *x = b[i].block;
        uint64_t end;
        if (pl_size_add(x->offset, x->bytes, &end) || end > p->arena_bytes || x->offset % PL_PLAN_ALIGNMENT ||
            x->first >= x->last)
            return pl_fail(err, PL_E_INTERNAL,
                           "plan: the block of %s lies outside the arena, is not aligned or has no life", b[i].name);
        for (size_t j = 0; j < i; j++)
            if (overlap(x, b[j].block))
                return pl_fail(err, PL_E_INTERNAL, "plan: %s and %s are alive together and overlap", b[i].name,
                               b[j].name);
    }
    return PL_OK;
}

/* A value has its bytes, and lives from the first to the last position at which somebody needs it (live.c). */
static pl_status check_lives(const pl_plan *p, const pl_block *need, pl_error *err)
{
    for (size_t i = 0; i < p->graph->value_count; i++) {
        const pl_block *b = &p->value[i];
        if (need[i].bytes == 0) continue;
        if (b->bytes < need[i].bytes)
            return pl_fail(err, PL_E_INTERNAL, "plan: %s needs %llu bytes and has %llu", p->graph->value[i].name,
                           (unsigned long long)need[i].bytes, (unsigned long long)b->bytes);
        if (b->first > need[i].first || b->last < need[i].last)
            return pl_fail(err, PL_E_INTERNAL, "plan: %s must live from %llu to %llu, not from %llu to %llu",
                           p->graph->value[i].name, (unsigned long long)need[i].first, (unsigned long long)need[i].last,
                           (unsigned long long)b->first, (unsigned long long)b->last);
    }
    return PL_OK;
}

static pl_status check_values(const pl_plan *p, pl_error *err)
{
    pl_block *need = pl_alloc(p->graph->value_count + 1, sizeof *need);
    if (!need) return pl_fail(err, PL_E_NOMEM, "no memory to check the plan");
    pl_status status = pl_plan_find_lives(p->graph, need, err);
    if (status == PL_OK) status = check_lives(p, need, err);
    pl_free(need);
    return status;
}

static pl_status check_node(const pl_plan *p, size_t position, pl_error *err)
{
    const pl_node *n = &p->graph->node[position];
    const pl_block *b = &p->workspace[position];
    uint64_t needed = 0;
    if (n->dead)
        return pl_fail(err, PL_E_INTERNAL, "plan: node %zu (%s) is dead, it would run", position, pl_op_name(n->op));
    PL_TRY(pl_backend_workspace_bytes(p->graph, n, p->team, &needed, err));
    if (needed == 0 || (b->bytes >= needed && b->first <= position && position < b->last)) return PL_OK;
    return pl_fail(err, PL_E_INTERNAL, "plan: node %zu (%s) has %llu bytes of workspace, its kernel needs %llu",
                   position, pl_op_name(n->op), (unsigned long long)b->bytes, (unsigned long long)needed);
}

pl_status pl_plan_check(const pl_plan *p, pl_error *err)
{
    if (p->team.threads < 1) return pl_fail(err, PL_E_INTERNAL, "plan: a team of %d threads", p->team.threads);
    PL_TRY(pl_graph_check(p->graph, PL_STAGE_BOUND, err));
    named_block *b = pl_alloc(p->graph->value_count + p->graph->node_count + 1, sizeof *b);
    if (!b) return pl_fail(err, PL_E_NOMEM, "no memory to check the plan");
    pl_status status = check_blocks(p, b, all_blocks(p, b), err);
    pl_free(b);
    if (status == PL_OK) status = check_values(p, err);
    for (size_t i = 0; i < p->graph->node_count && status == PL_OK; i++) status = check_node(p, i, err);
    return status;
}
