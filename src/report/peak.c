/* What is alive at the peak and would not have to be: everything but the persistent values. */
#include "report/account.h"

#include <stdlib.h>

static int compare_alive(const void *left, const void *right)
{
    const pl_report_alive *a = left, *b = right;
    if (a->block->bytes != b->block->bytes) return a->block->bytes < b->block->bytes ? 1 : -1;
    if (a->value != b->value) return a->value < b->value ? -1 : 1;
    return a->node < b->node ? -1 : a->node > b->node;
}

/* Lists them when `list` is not NULL; returns how many there are. */
static size_t collect(const pl_plan *p, pl_report_alive *list)
{
    const pl_graph *g = p->graph;
    size_t count = 0;
    for (size_t i = 0; i < g->value_count; i++) {
        if (g->value[i].program == PL_NONE || !pl_report_is_alive(&p->value[i], p->arena->peak_position)) continue;
        if (list) list[count] = (pl_report_alive){&p->value[i], (pl_id)i, PL_NONE};
        count++;
    }
    for (size_t i = 0; i < g->node_count; i++) {
        if (!pl_report_is_alive(&p->workspace[i], p->arena->peak_position)) continue;
        if (list) list[count] = (pl_report_alive){&p->workspace[i], PL_NONE, (pl_id)i};
        count++;
    }
    return count;
}

pl_status pl_report_alive_at_peak(const pl_plan *p, pl_report_alive **alive, size_t *count, pl_error *err)
{
    *count = collect(p, NULL);
    *alive = pl_alloc(*count + 1, sizeof **alive);
    if (!*alive) return pl_fail(err, PL_E_NOMEM, "no memory to list the values alive at the peak");
    collect(p, *alive);
    qsort(*alive, *count, sizeof **alive, compare_alive);
    return PL_OK;
}
