/* The programs of a plan: where each begins and ends, its own peak, what it computes and how long that takes. */
#include "report/account.h"

#include <stdlib.h>
#include <string.h>

#include "ir/op.h"

static void add_nodes(const pl_plan *p, const uint64_t *alive, pl_report_program *program)
{
    const pl_graph *g = p->graph;
    for (uint64_t i = program->first; i < program->last; i++) {
        const pl_node *n = &g->node[i];
        if (alive[i] > program->peak_bytes) program->peak_bytes = alive[i], program->peak_position = i;
        if (!n->dead) program->flops += pl_op_rule_of(n->op)->cost(g, n).flops * (double)pl_node_trips(g, n);
    }
}

pl_status pl_report_programs_create(const pl_plan *p, const uint64_t *alive, pl_report_programs *programs,
                                    pl_error *err)
{
    const pl_graph *g = p->graph;
    *programs = (pl_report_programs){.item = pl_alloc(g->region_count + 1, sizeof *programs->item)};
    if (!programs->item) return pl_fail(err, PL_E_NOMEM, "no memory to list the plan's programs");
    for (size_t i = 0; i < g->region_count; i++) {
        if (g->region[i].parent != PL_NONE) continue;
        pl_report_program *program = &programs->item[programs->count++];
        *program = (pl_report_program){.region = (pl_id)i, .seconds = pl_plan_program_seconds(p, (pl_id)i)};
        pl_plan_program_span(g, (pl_id)i, &program->first, &program->last);
        program->peak_position = program->first;
        add_nodes(p, alive, program);
    }
    return PL_OK;
}

void pl_report_programs_deinit(pl_report_programs *programs)
{
    pl_free(programs->item);
    *programs = (pl_report_programs){0};
}

static int compare_kinds(const void *left, const void *right)
{
    const pl_report_kind *a = left, *b = right;
    if (a->seconds != b->seconds) return a->seconds < b->seconds ? 1 : -1;
    if (a->flops != b->flops) return a->flops < b->flops ? 1 : -1;
    return a->op < b->op ? -1 : a->op > b->op;
}

size_t pl_report_kinds(const pl_plan *p, pl_id program, pl_report_kind *kind)
{
    const pl_graph *g = p->graph;
    size_t count = 0;
    for (int op = 0; op < PL_OP_COUNT; op++) kind[op] = (pl_report_kind){.op = (pl_op)op};
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        if (n->dead || pl_region_program(g, n->region) != program) continue;
        pl_cost cost = pl_op_rule_of(n->op)->cost(g, n);
        uint64_t trips = pl_node_trips(g, n);
        pl_report_kind *k = &kind[n->op];
        k->nodes++;
        k->runs += trips;
        k->seconds = k->seconds < 0 || p->seconds[i] < 0 ? -1 : k->seconds + p->seconds[i] * (double)trips;
        if (p->estimated && p->estimated[i] && p->seconds[i] > 0) k->is_estimated = true;
        k->flops += cost.flops * (double)trips;
        k->bytes += cost.bytes * (double)trips;
    }
    for (int op = 0; op < PL_OP_COUNT; op++)
        if (kind[op].nodes) kind[count++] = kind[op];
    qsort(kind, count, sizeof *kind, compare_kinds);
    return count;
}
