#include "rewrite/int8_sites.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/quantize.h"
#include "ir/op.h"

typedef struct finder {
    const pl_graph *g;
    pl_id program;   /* PL_NONE: all of them */
    bool *refused;   /* [values] a weight that somebody reads otherwise */
    uint32_t *uses;  /* [values] of a weight in `counted`, so far */
    pl_id counted;   /* program */
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

/* Always run, and not into a window of something else. */
static bool stands_alone(const pl_graph *g, const pl_node *n)
{
    const pl_value *y = &g->value[n->linear.y];
    return n->predicate == PL_NONE && y->view_of == PL_NONE && y->update_of == PL_NONE;
}

static bool is_layer(const finder *f, const pl_node *n)
{
    const pl_graph *g = f->g;
    if (n->dead || n->op != PL_OP_LINEAR) return false;
    if (f->program != PL_NONE && pl_region_program(g, n->region) != f->program) return false;
    const pl_value *x = &g->value[n->linear.x];
    return stands_alone(g, n) && x->dtype == PL_DTYPE_F32 && pl_value_is_contiguous(x) &&
           is_matrix(g, n->linear.weight);
}

/* Whoever reads one, but such a layer in that place, needs it as it is. What writes it gives its first values. */
static void refuse_others(finder *f)
{
    const pl_graph *g = f->g;
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        for (int k = 0; k < PL_NODE_IN_MAX && !n->dead; k++)
            if (n->in[k] != PL_NONE && !(k == PL_IN_OF(linear, weight) && is_layer(f, n)))
                f->refused[pl_value_root(g, n->in[k])] = true;
    }
}

static pl_status refuse_unlike(finder *f, const pl_graph *like, pl_error *err)
{
    pl_int8_sites theirs;
    bool *is_theirs = pl_alloc(like->value_count + 1, sizeof *is_theirs);
    if (!is_theirs) return pl_fail(err, PL_E_NOMEM, "no memory to find the layers of 8 bits");
    const pl_status status = pl_int8_sites_find(like, PL_NONE, NULL, &theirs, err);
    if (status != PL_OK) return pl_free(is_theirs), status;
    for (size_t i = 0; i < like->node_count; i++)
        if (theirs.of[i] != PL_NONE) is_theirs[pl_value_root(like, like->node[i].linear.weight)] = true;
    for (size_t i = 0; i < f->g->value_count; i++) {
        if (f->g->value[i].role != PL_ROLE_WEIGHT) continue;
        const pl_id same = pl_graph_find_value(like, f->g->value[i].name);
        f->refused[i] |= same == PL_NONE || !is_theirs[same];
    }
    pl_int8_sites_deinit(&theirs);
    pl_free(is_theirs);
    return PL_OK;
}

/* Each program has the sites of its own from the first on: what is built alike has the same in all. */
static uint32_t count_use(finder *f, pl_id node, pl_id weight)
{
    const pl_id program = pl_region_program(f->g, f->g->node[node].region);
    if (program != f->counted) memset(f->uses, 0, f->g->value_count * sizeof *f->uses);
    f->counted = program;
    return f->uses[weight]++;
}

/* Whatever is named after a weight has the whole name. */
static pl_status check_name(const finder *f, pl_id weight, pl_error *err)
{
    const char *name = f->g->value[weight].name;
    if (strlen(name) <= PL_INT8_WEIGHT_BYTES) return PL_OK;
    return pl_fail(err, PL_E_UNSUPPORTED,
                   "the weight \"%.60s...\" has a name of %zu bytes; in 8 bits it may have %d at most", name,
                   strlen(name), PL_INT8_WEIGHT_BYTES);
}

static pl_status add_layer(finder *f, pl_id node, pl_error *err)
{
    pl_int8_sites *s = f->sites;
    const pl_linear_args *a = &f->g->node[node].linear;
    const pl_id x = a->x, weight = pl_value_root(f->g, a->weight);
    const uint32_t use = count_use(f, node, weight);
    PL_TRY(check_name(f, weight, err));
    if (f->where[x] == PL_NONE) {
        if (pl_grow(&s->site, &s->capacity, s->count, sizeof *s->site))
            return pl_fail(err, PL_E_NOMEM, "no memory to find the layers of 8 bits");
        f->where[x] = (uint32_t)s->count;
        s->site[s->count++] = (pl_int8_site){x, node, weight, use};
    }
    s->of[node] = f->where[x];
    return PL_OK;
}

static pl_status find(finder *f, const pl_graph *like, pl_error *err)
{
    const pl_graph *g = f->g;
    for (size_t i = 0; i < g->value_count; i++) f->where[i] = PL_NONE;
    refuse_others(f);
    if (like) PL_TRY(refuse_unlike(f, like, err));
    for (size_t i = 0; i < g->node_count; i++) {
        f->sites->of[i] = PL_NONE;
        if (is_layer(f, &g->node[i]) && !f->refused[pl_value_root(g, g->node[i].linear.weight)])
            PL_TRY(add_layer(f, (pl_id)i, err));
    }
    return PL_OK;
}

pl_status pl_int8_sites_find(const pl_graph *g, pl_id program, const pl_graph *like, pl_int8_sites *sites,
                             pl_error *err)
{
    finder f = {.g = g, .program = program, .counted = PL_NONE, .sites = sites};
    *sites = (pl_int8_sites){0};
    sites->of = pl_alloc(g->node_count + 1, sizeof *sites->of);
    f.refused = pl_alloc(g->value_count + 1, sizeof *f.refused);
    f.uses = pl_alloc(g->value_count + 1, sizeof *f.uses);
    f.where = pl_alloc(g->value_count + 1, sizeof *f.where);
    pl_status status = sites->of && f.refused && f.uses && f.where
                           ? find(&f, like, err)
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
    snprintf(name, PL_INT8_NAME_BYTES, "%s.input.%" PRIu32, g->value[s->weight].name, s->use);
    return name;
}
