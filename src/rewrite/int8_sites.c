#include "rewrite/int8_sites.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/quantize.h"
#include "ir/op.h"

typedef struct finder {
    const pl_graph *g;
    pl_id program;
    bool *refused;   /* [values] a weight that somebody reads otherwise */
    uint32_t *uses;  /* [values] of a weight, so far */
    uint32_t *where; /* [values] the site of what comes to layers; PL_NONE: none yet */
    pl_int8_sites *sites;
} finder;

static bool is_whole(const pl_graph *g, pl_id value)
{
    const pl_value *v = &g->value[value];
    return pl_value_is_contiguous(v) && pl_value_bytes(g, value) == pl_value_bytes(g, pl_value_root(g, value));
}

static bool is_matrix(const pl_graph *g, pl_id value)
{
    const pl_value *v = &g->value[value];
    return g->value[pl_value_root(g, value)].role == PL_ROLE_WEIGHT && v->dtype == PL_DTYPE_F32 && v->shape.rank == 2 &&
           v->shape.dim[1] <= PL_INT8_K_MAX && is_whole(g, value);
}

static bool is_layer(const finder *f, const pl_node *n)
{
    const pl_graph *g = f->g;
    return !n->dead && n->op == PL_OP_LINEAR && pl_region_program(g, n->region) == f->program &&
           g->value[n->in[0]].dtype == PL_DTYPE_F32 && pl_value_is_contiguous(&g->value[n->in[0]]) &&
           is_matrix(g, n->in[1]);
}

/* Whoever reads one, but such a layer in that place, needs it as it is. What writes it gives its first values. */
static void refuse_others(finder *f)
{
    const pl_graph *g = f->g;
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        for (int k = 0; k < PL_NODE_IN_MAX && !n->dead; k++)
            if (n->in[k] != PL_NONE && !(k == 1 && is_layer(f, n))) f->refused[pl_value_root(g, n->in[k])] = true;
    }
}

static pl_status add_layer(finder *f, pl_id node, pl_error *err)
{
    pl_int8_sites *s = f->sites;
    const pl_id x = f->g->node[node].in[0], weight = pl_value_root(f->g, f->g->node[node].in[1]);
    const uint32_t use = f->uses[weight]++;
    if (f->where[x] == PL_NONE) {
        if (pl_grow(&s->site, &s->capacity, s->count, sizeof *s->site))
            return pl_fail(err, PL_E_NOMEM, "no memory to find the layers of 8 bits");
        f->where[x] = (uint32_t)s->count;
        s->site[s->count++] = (pl_int8_site){x, node, weight, use};
    }
    s->of[node] = f->where[x];
    return PL_OK;
}

static pl_status find(finder *f, pl_error *err)
{
    const pl_graph *g = f->g;
    for (size_t i = 0; i < g->value_count; i++) f->where[i] = PL_NONE;
    refuse_others(f);
    for (size_t i = 0; i < g->node_count; i++) {
        f->sites->of[i] = PL_NONE;
        if (is_layer(f, &g->node[i]) && !f->refused[pl_value_root(g, g->node[i].in[1])])
            PL_TRY(add_layer(f, (pl_id)i, err));
    }
    return PL_OK;
}

pl_status pl_int8_sites_find(const pl_graph *g, pl_id program, pl_int8_sites *sites, pl_error *err)
{
    finder f = {.g = g, .program = program, .sites = sites};
    *sites = (pl_int8_sites){0};
    sites->of = pl_alloc(g->node_count + 1, sizeof *sites->of);
    f.refused = pl_alloc(g->value_count + 1, sizeof *f.refused);
    f.uses = pl_alloc(g->value_count + 1, sizeof *f.uses);
    f.where = pl_alloc(g->value_count + 1, sizeof *f.where);
    pl_status status = sites->of && f.refused && f.uses && f.where
                           ? find(&f, err)
                           : pl_fail(err, PL_E_NOMEM, "no memory to find the layers of 8 bits");
    pl_free(f.refused);
    pl_free(f.uses);
    pl_free(f.where);
    if (status != PL_OK) pl_int8_sites_deinit(sites);
    return status;
}

void pl_int8_sites_deinit(pl_int8_sites *s)
{
    pl_free(s->site);
    pl_free(s->of);
    *s = (pl_int8_sites){0};
}

const char *pl_int8_site_name(const pl_graph *g, const pl_int8_site *s, char name[PL_INT8_NAME_BYTES])
{
    snprintf(name, PL_INT8_NAME_BYTES, "%.250s.input.%" PRIu32, g->value[s->weight].name, s->use);
    return name;
}
