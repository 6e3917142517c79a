#include <string.h>

#include "rewrite/rewrite.h"

static void bind_shape(pl_shape *s, int64_t batch)
{
    for (uint32_t i = 0; i < s->rank; i++)
        if (s->symbolic >> i & 1) s->dim[i] *= batch;
    s->symbolic = 0;
}

pl_status pl_rewrite_bind_batch(pl_graph *g, pl_id program, int64_t batch, const char *region, uint64_t trips,
                                pl_error *err)
{
    if (batch < 1 || batch > INT32_MAX)
        return pl_fail(err, PL_E_USAGE, "a micro-batch of %lld sequences is out of range", (long long)batch);
    for (size_t i = 0; i < g->value_count; i++) {
        pl_value *v = &g->value[i];
        const pl_id owner = g->value[pl_value_root(g, (pl_id)i)].program;
        if (owner != program && owner != PL_NONE) continue;
        bool whole = v->view_of == PL_NONE;
        bind_shape(&v->shape, batch);
        if (whole) pl_value_default_strides(v);
    }
    g->region[program].batch = batch;
    for (size_t i = 0; i < g->region_count && region; i++)
        if (pl_region_program(g, (pl_id)i) == program && strcmp(g->region[i].name, region) == 0)
            g->region[i].trip = trips;
    return PL_OK;
}
