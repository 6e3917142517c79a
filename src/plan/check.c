/* The judge of plans: quadratic, shares no code with the placer. */
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
        if (pl_size_add(x->offset, x->bytes, &end) || end > p->arena_bytes || x->offset % PL_PLAN_ALIGNMENT || x->first >= x->last)
            return pl_fail(err, PL_E_INTERNAL, "plan: the block of %s lies outside the arena, is not aligned or has no life", b[i].name);
        for (size_t j = 0; j < i; j++)
            if (overlap(x, b[j].block)) return pl_fail(err, PL_E_INTERNAL, "plan: %s and %s are alive together and overlap", b[i].name, b[j].name);
    }
    return PL_OK;
}

/* Every value that a node touches has bytes, and lives at that position. */
static pl_status check_covered(const pl_plan *p, pl_id value, size_t position, pl_error *err)
{
    if (value == PL_NONE) return PL_OK;
    const pl_block *b = &p->value[pl_value_root(p->graph, value)];
    bool fine = b->bytes >= pl_value_bytes(p->graph, pl_value_root(p->graph, value)) && b->first <= position && position < b->last;
    return fine ? PL_OK : pl_fail(err, PL_E_INTERNAL, "plan: node %zu uses %s, which has no block then", position, p->graph->value[value].name);
}

pl_status pl_plan_check(const pl_plan *p, pl_error *err)
{
    PL_TRY(pl_graph_check(p->graph, PL_STAGE_BOUND, err));
    named_block *b = pl_alloc(p->graph->value_count + p->graph->node_count + 1, sizeof *b);
    if (!b) return pl_fail(err, PL_E_NOMEM, "no memory to check the plan");
    pl_status status = check_blocks(p, b, all_blocks(p, b), err);
    pl_free(b);
    for (size_t i = 0; i < p->graph->node_count && status == PL_OK; i++) {
        const pl_node *n = &p->graph->node[i];
        for (int k = 0; k < PL_NODE_IN_MAX && status == PL_OK; k++) status = check_covered(p, n->in[k], i, err);
        for (int k = 0; k < PL_NODE_OUT_MAX && status == PL_OK; k++) status = check_covered(p, n->out[k], i, err);
    }
    return status;
}
