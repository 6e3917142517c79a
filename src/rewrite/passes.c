#include "rewrite/passes.h"

#include "ir/properties.h"

typedef struct work {
    pl_graph *g;
    const pl_rewrites *r;
} work;

/* Of which programs a pass is. */
typedef bool is_meant(const pl_graph *, pl_id program);
typedef pl_status rewrite_program(const work *, pl_id program, pl_error *);

static pl_status rewrite_each(const work *w, is_meant *meant, rewrite_program *rewrite, pl_error *err)
{
    for (pl_id p = 0; p < w->g->region_count; p++)
        if (w->g->region[p].parent == PL_NONE && meant(w->g, p)) PL_TRY(rewrite(w, p, err));
    return PL_OK;
}

static pl_status share(const work *w, pl_id program, pl_error *err)
{
    return pl_rewrite_share_sums(w->g, program, err);
}

static pl_status share_sums(const work *w, pl_error *err)
{
    return w->r->shared_sums ? rewrite_each(w, pl_program_is_trained, share, err) : PL_OK;
}

static pl_status narrow(const work *w, pl_id program, pl_error *err)
{
    return pl_rewrite_precision(w->g, program, w->r->precision, err);
}

/* And not the one that makes first values. */
static bool is_used(const pl_graph *g, pl_id program)
{
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        if (n->dead || pl_region_program(g, n->region) != program) continue;
        for (int k = 0; k < PL_NODE_OUT_MAX && n->out[k] != PL_NONE; k++) {
            const pl_value *v = &g->value[pl_value_root(g, n->out[k])];
            if (v->role == PL_ROLE_WEIGHT && v->program == PL_NONE) return false;
        }
    }
    return true;
}

/* A training of which all is frozen is one, too. */
static bool has_training(const pl_graph *g)
{
    const pl_id train = pl_graph_find_program(g, "train");
    for (size_t i = 0; i < g->node_count && train != PL_NONE; i++)
        if (!g->node[i].dead && pl_region_program(g, g->node[i].region) == train) return true;
    return pl_graph_find_trained(g) != PL_NONE;
}

/* Beside a training the other programs are as the model is. */
static pl_status precision(const work *w, pl_error *err)
{
    return rewrite_each(w, has_training(w->g) ? pl_program_is_trained : is_used, narrow, err);
}

static pl_status chunk_program(const work *w, pl_id program, pl_error *err)
{
    return pl_rewrite_chunk_feed_forward(w->g, program, w->r->feed_forward_rows, err);
}

static pl_status chunk_convolutions(const work *w, pl_id program, pl_error *err)
{
    return pl_rewrite_chunk_convolutions(w->g, program, w->r->convolution_limit, err);
}

static pl_status chunk(const work *w, pl_error *err)
{
    if (w->r->feed_forward_rows) PL_TRY(rewrite_each(w, pl_program_loads, chunk_program, err));
    return rewrite_each(w, pl_program_is_trained, chunk_convolutions, err);
}

static pl_status tile(const work *w, pl_id program, pl_error *err)
{
    pl_layer_major how = {w->r->layer_major, w->r->layer_major_keep, w->r->trips};
    return pl_rewrite_layer_major(w->g, program, &how, err);
}

static pl_status layer_major(const work *w, pl_error *err)
{
    return w->r->layer_major ? rewrite_each(w, pl_program_is_trained, tile, err) : PL_OK;
}

static pl_status frozen_storage(const work *w, pl_error *err)
{
    return pl_rewrite_frozen_storage(w->g, w->r->frozen, err);
}

static pl_status recompute_by_rule(const work *w, pl_id program, pl_error *err)
{
    return w->r->recompute == PL_RECOMPUTE_CHEAP ? pl_rewrite_recompute_cheap(w->g, program, err)
                                                 : pl_rewrite_recompute_full(w->g, program, err);
}

static pl_status recompute(const work *w, pl_error *err)
{
    if (w->r->recompute == PL_RECOMPUTE_NOTHING) return PL_OK;
    if (w->r->recompute == PL_RECOMPUTE_LISTED) return pl_rewrite_recompute(w->g, w->r->decision, err);
    return rewrite_each(w, pl_program_is_trained, recompute_by_rule, err);
}

static pl_status optimizer_state(const work *w, pl_error *err)
{
    return pl_rewrite_optimizer_state(w->g, w->r->moments, err);
}

static pl_status drop(const work *w, pl_id program, pl_error *err)
{
    return pl_rewrite_drop_unread(w->g, program, err);
}

static pl_status drop_outputs(const work *w, pl_id program, pl_error *err)
{
    return pl_rewrite_drop_unread_outputs(w->g, program, err);
}

static pl_status drop_unread(const work *w, pl_error *err)
{
    if (w->r->layer_major) PL_TRY(rewrite_each(w, pl_program_is_trained, drop, err));
    return rewrite_each(w, pl_program_is_trained, drop_outputs, err);
}

static pl_status fuse(const work *w, pl_error *err) { return pl_rewrite_fuse(w->g, err); }

static pl_status int8_hidden(const work *w, pl_error *err) { return pl_rewrite_int8_hidden(w->g, err); }

/* Nodes or none: the values of a program that is not planned are bound as well. */
static bool has_batch(const pl_graph *g, pl_id program)
{
    for (size_t i = 0; i < g->value_count; i++)
        if (g->value[i].program == program && g->value[i].shape.symbolic) return true;
    return false;
}

static pl_status bind(const work *w, pl_id program, pl_error *err)
{
    return pl_rewrite_bind_batch(w->g, program, w->r->micro_batch, "micro", w->r->trips, err);
}

static pl_status bind_batch(const work *w, pl_error *err) { return rewrite_each(w, has_batch, bind, err); }

static pl_status order(const work *w, pl_id program, pl_error *err)
{
    return pl_rewrite_update_order(w->g, program, err);
}

static pl_status update_order(const work *w, pl_error *err)
{
    bool early = w->r->layer_major || w->r->update_early;
    return early ? rewrite_each(w, pl_program_is_trained, order, err) : PL_OK;
}

static pl_status in_place(const work *w, pl_error *err) { return pl_rewrite_in_place(w->g, err); }

static pl_status mark_saved(const work *w, pl_error *err) { return pl_rewrite_mark_saved(w->g, err); }

static const struct {
    const char *name;
    pl_status (*run)(const work *, pl_error *);
} passes[PL_PASS_COUNT] = {
    [PL_PASS_SHARE_SUMS] = {"shared sums", share_sums},
    [PL_PASS_PRECISION] = {"precision", precision},
    [PL_PASS_CHUNK] = {"chunks", chunk},
    [PL_PASS_LAYER_MAJOR] = {"layer-major", layer_major},
    [PL_PASS_FROZEN_STORAGE] = {"frozen storage", frozen_storage},
    [PL_PASS_RECOMPUTE] = {"recompute", recompute},
    [PL_PASS_OPTIMIZER_STATE] = {"optimizer state", optimizer_state},
    [PL_PASS_DROP_UNREAD] = {"drop unread", drop_unread},
    [PL_PASS_FUSE] = {"fuse", fuse},
    [PL_PASS_INT8_HIDDEN] = {"hidden int8", int8_hidden},
    [PL_PASS_BIND_BATCH] = {"bind batch", bind_batch},
    [PL_PASS_UPDATE_ORDER] = {"update order", update_order},
    [PL_PASS_IN_PLACE] = {"in place", in_place},
    [PL_PASS_MARK_SAVED] = {"mark saved", mark_saved},
};

const char *pl_pass_name(pl_pass pass) { return passes[pass].name; }

pl_status pl_rewrite_passes(pl_graph *g, const pl_rewrites *r, pl_pass first, pl_pass end, pl_error *err)
{
    const work w = {.g = g, .r = r};
    for (pl_pass pass = first; pass < end; pass++) {
        if (r->without >> pass & 1) continue;
        PL_TRY(passes[pass].run(&w, err));
        if (r->after) r->after(r->context, pass, g);
    }
    return PL_OK;
}
