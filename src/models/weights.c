/* How large the weights are, without building a deep model: the blocks of a model are alike (but for the first), so a
 * model of one block and one of two say what each further block adds. The figures come from the graphs, the only place
 * where shapes stand. */
#include <string.h>

#include "base/size.h"
#include "models/model.h"

static pl_status count_at(pl_config *c, int64_t layers, const pl_facts *extents, uint64_t *bytes, pl_error *err)
{
    pl_graph *g;
    c->model.layers = layers;
    PL_TRY(pl_model_build(c, extents, &g, err));
    int over = 0;
    *bytes = 0;
    for (size_t i = 0; i < g->value_count; i++)
        if (g->value[i].role == PL_ROLE_WEIGHT) over |= pl_size_add(*bytes, pl_value_bytes(g, (pl_id)i), bytes);
    pl_graph_destroy(g);
    return over ? pl_fail(err, PL_E_CONFIG, "the weights overflow 64 bits; make the model smaller") : PL_OK;
}

pl_status pl_model_count_weights(const pl_config *config, const pl_facts *extents, uint64_t *bytes, pl_error *err)
{
    uint64_t one = 0, two = 0, more;
    int64_t layers = config->model.layers;
    pl_status status;
    pl_config *c = pl_alloc(1, sizeof *c);
    if (!c) return pl_fail(err, PL_E_NOMEM, "no memory to count the weights");
    *c = *config;
    PL_TRY_DONE(count_at(c, 1, extents, &one, err));
    PL_TRY_DONE(count_at(c, 2, extents, &two, err));
    *bytes = one;
    if (layers > 1 && (pl_size_mul(two - one, (uint64_t)layers - 1, &more) || pl_size_add(one, more, bytes)))
        PL_TRY_DONE(pl_fail(err, PL_E_CONFIG, "the weights overflow 64 bits; make the model smaller"));
done:
    pl_free(c);
    return status;
}
