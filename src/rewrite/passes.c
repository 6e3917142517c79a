#include "rewrite/passes.h"

typedef struct work {
    pl_graph *g;
    const pl_rewrites *r;
    pl_id train, evaluate; /* PL_NONE: the graph has none */
    bool trains;           /* train has nodes */
} work;

static bool has_nodes(const pl_graph *g, pl_id program)
{
    for (size_t i = 0; i < g->node_count && program != PL_NONE; i++)
        if (!g->node[i].dead && pl_region_program(g, g->node[i].region) == program) return true;
    return false;
}

static pl_status precision(const work *w, pl_error *err)
{
    return w->train == PL_NONE ? PL_OK : pl_rewrite_precision(w->g, w->train, w->r->precision, err);
}

static pl_status chunk(const work *w, pl_error *err)
{
    const int64_t rows = w->r->feed_forward_rows;
    if (rows && w->train != PL_NONE) PL_TRY(pl_rewrite_chunk_feed_forward(w->g, w->train, rows, err));
    if (rows && w->evaluate != PL_NONE) PL_TRY(pl_rewrite_chunk_feed_forward(w->g, w->evaluate, rows, err));
    return PL_OK;
}

static pl_status layer_major(const work *w, pl_error *err)
{
    pl_layer_major how = {w->r->layer_major, w->r->layer_major_keep, w->r->trips};
    return w->r->layer_major && w->trains ? pl_rewrite_layer_major(w->g, w->train, &how, err) : PL_OK;
}

static pl_status recompute(const work *w, pl_error *err)
{
    if (w->train == PL_NONE) return PL_OK;
    switch (w->r->recompute) {
    case PL_RECOMPUTE_NOTHING:
        return PL_OK;
    case PL_RECOMPUTE_CHEAP:
        return pl_rewrite_recompute_cheap(w->g, w->train, err);
    case PL_RECOMPUTE_FULL:
        return pl_rewrite_recompute_full(w->g, w->train, err);
    case PL_RECOMPUTE_LISTED:
        return pl_rewrite_recompute(w->g, w->r->decision, err);
    }
    return PL_OK;
}

static pl_status optimizer_state(const work *w, pl_error *err)
{
    return pl_rewrite_optimizer_state(w->g, w->r->moments, err);
}

static pl_status drop_unread(const work *w, pl_error *err)
{
    return w->r->layer_major && w->trains ? pl_rewrite_drop_unread(w->g, w->train, err) : PL_OK;
}

static pl_status fuse(const work *w, pl_error *err) { return pl_rewrite_fuse(w->g, err); }

static pl_status bind_batch(const work *w, pl_error *err)
{
    const pl_id programs[] = {w->train, w->evaluate};
    for (int i = 0; i < 2; i++)
        if (programs[i] != PL_NONE)
            PL_TRY(pl_rewrite_bind_batch(w->g, programs[i], w->r->micro_batch, "micro", w->r->trips, err));
    return PL_OK;
}

static pl_status update_order(const work *w, pl_error *err)
{
    bool early = w->r->layer_major || w->r->update_early;
    return early && w->trains ? pl_rewrite_update_order(w->g, w->train, err) : PL_OK;
}

static pl_status in_place(const work *w, pl_error *err) { return pl_rewrite_in_place(w->g, err); }

static pl_status mark_saved(const work *w, pl_error *err) { return pl_rewrite_mark_saved(w->g, err); }

static const struct {
    const char *name;
    pl_status (*run)(const work *, pl_error *);
} passes[PL_PASS_COUNT] = {
    [PL_PASS_PRECISION] = {"precision", precision},
    [PL_PASS_CHUNK] = {"feed-forward in chunks", chunk},
    [PL_PASS_LAYER_MAJOR] = {"layer-major", layer_major},
    [PL_PASS_RECOMPUTE] = {"recompute", recompute},
    [PL_PASS_OPTIMIZER_STATE] = {"optimizer state", optimizer_state},
    [PL_PASS_DROP_UNREAD] = {"drop unread", drop_unread},
    [PL_PASS_FUSE] = {"fuse", fuse},
    [PL_PASS_BIND_BATCH] = {"bind batch", bind_batch},
    [PL_PASS_UPDATE_ORDER] = {"update order", update_order},
    [PL_PASS_IN_PLACE] = {"in place", in_place},
    [PL_PASS_MARK_SAVED] = {"mark saved", mark_saved},
};

const char *pl_pass_name(pl_pass pass) { return passes[pass].name; }

pl_status pl_rewrite_passes(pl_graph *g, const pl_rewrites *r, pl_pass first, pl_pass end, pl_error *err)
{
    work w = {
        .g = g, .r = r, .train = pl_graph_find_program(g, "train"), .evaluate = pl_graph_find_program(g, "evaluate")};
    w.trains = has_nodes(g, w.train);
    for (pl_pass pass = first; pass < end; pass++) {
        if (r->without >> pass & 1) continue;
        PL_TRY(passes[pass].run(&w, err));
        if (r->after) r->after(r->context, pass, g);
    }
    return PL_OK;
}
