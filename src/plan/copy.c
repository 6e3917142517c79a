/* A plan as its text would be read, without the text: what a reader holds is known from it in a tenth of the time.
 *
 * Invariant: it asks for the same blocks of memory as parse.c, in the same sizes (tests/property/plan/test_text.c
 * holds the two against each other), and prints the same text. */
#include <string.h>

#include "plan/plan.h"

static void *copied(const void *from, size_t count, size_t size)
{
    void *to = pl_alloc(count + 1, size);
    if (to && count) memcpy(to, from, count * size);
    return to;
}

/* Read a line at a time, so the last one is a line, too. */
static char *copied_config(const char *text)
{
    size_t bytes = text ? strlen(text) : 0;
    bool open = bytes && text[bytes - 1] != '\n';
    char *copy = pl_alloc(bytes + open + 1, 1);
    if (copy && bytes) memcpy(copy, text, bytes);
    if (copy && open) copy[bytes] = '\n';
    return copy;
}

pl_status pl_plan_copy_as_read(const pl_plan *from, pl_plan **plan, pl_error *err)
{
    pl_plan *p = pl_alloc(1, sizeof *p);
    if (!p) return pl_fail(err, PL_E_NOMEM, "no memory for a copy of the plan");
    *p = *from;
    p->budget[0] = p->data[0] = 0;
    p->estimated = NULL;
    p->time = NULL;
    p->graph = pl_graph_copy_as_read(from->graph);
    p->names = pl_pool_create();
    bool named = p->names != NULL;
    for (uint32_t k = 0; k < from->graph->space_count && named; k++) {
        p->arena[k].heuristic = pl_pool_strdup(p->names, from->arena[k].heuristic);
        named = p->arena[k].heuristic != NULL;
    }
    p->value = copied(from->value, from->graph->value_count, sizeof *p->value);
    p->workspace = copied(from->workspace, from->graph->node_count, sizeof *p->workspace);
    p->seconds = copied(from->seconds, from->graph->node_count, sizeof *p->seconds);
    p->config = copied_config(from->config);
    if (p->graph && named && p->value && p->workspace && p->seconds && p->config) {
        *plan = p;
        return PL_OK;
    }
    pl_plan_destroy(p);
    return pl_fail(err, PL_E_NOMEM, "no memory for a copy of the plan");
}
