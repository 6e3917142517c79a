#include <string.h>

#include "rewrite/rewrite.h"

pl_status pl_rewrite_keep_programs(pl_graph *g, const char *const *names, size_t count, pl_error *err)
{
    (void)err;
    for (size_t i = 0; i < g->node_count; i++) {
        const char *name = g->region[pl_region_program(g, g->node[i].region)].name;
        bool kept = false;
        for (size_t k = 0; k < count; k++) kept |= strcmp(name, names[k]) == 0;
        if (!kept) g->node[i].dead = true;
    }
    pl_graph_sweep(g);
    return PL_OK;
}
