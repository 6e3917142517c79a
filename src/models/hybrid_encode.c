/* A trained model of arch hybrid that gives out its capsules, as arch capsules does (models/capsules.c). What comes
 * behind the capsules (reasoner, planner, heads) is no part of it.
 *
 * Ports of the data, in this order: "pages" u8 [B,H,W], "remarks" u8 [B]. "encode" stores, in f16, sketches [B,K,D],
 * checksums [B,K,R] and children [B,K,m,D], and the remarks as they came; for a witness (the extent "witness") the
 * pages, too. */
#include "models/hybrid.h"

enum { PAGES, REMARKS, PORTS };

bool pl_hybrid_can_be_used(const pl_config *c)
{
    return pl_hybrid_aim_of(c) == PL_HYBRID_READS && !pl_hybrid_has_noise(c) && !pl_hybrid_has_policy(c);
}

pl_status pl_hybrid_check_used(const pl_config *c, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const char *only = pl_hybrid_aim_key(c);
    if (pl_hybrid_can_be_used(c)) return PL_OK;
    if (only)
        return pl_fail(err, PL_E_CONFIG,
                       "%s: %s makes the config that of another training, whose model reads no pages of others; take "
                       "the folder of the training task or finetune",
                       pl_config_where(c, only, where, sizeof where), only);
    if (pl_hybrid_has_policy(c))
        return pl_fail(err, PL_E_CONFIG,
                       "%s: dataset.use_policy lets a policy choose how each page is drawn, from its words, which only "
                       "the training's own pages have; train with false",
                       pl_config_where(c, "dataset.use_policy", where, sizeof where));
    return pl_fail(err, PL_E_CONFIG,
                   "%s: reading.noise %g adds noise to pages, and those of others are read without any; train with 0",
                   pl_config_where(c, "reading.noise", where, sizeof where), c->reading.noise);
}

static pl_id rounded(const pl_hybrid *k, pl_id x, const char *name)
{
    pl_builder *b = &k->m->b;
    pl_cast_args a = pl_cast_none;
    if (b->status != PL_OK) return PL_NONE;
    a.x = x;
    a.y = pl_build_temporary(b, PL_ROLE_TEMPORARY, PL_DTYPE_F16, b->graph->value[x].shape, "encode.%s", name);
    return pl_build_cast(b, &a);
}

static void load_pages(const pl_hybrid *k, pl_id port[PORTS])
{
    pl_builder *b = &k->m->b;
    pl_load_args load = pl_load_none;
    pl_builder_enter(b, "data");
    load.port[PAGES] = port[PAGES] = pl_build_temporary(b, PL_ROLE_TEMPORARY, PL_DTYPE_U8,
                                                        pl_shape_of(3, PL_B(1), k->side, k->side), "encode.pages");
    load.port[REMARKS] = port[REMARKS] =
        pl_build_temporary(b, PL_ROLE_TEMPORARY, PL_DTYPE_U8, pl_shape_of(1, PL_B(1)), "encode.remarks");
    pl_build_load(b, &load);
    if (b->status == PL_OK) b->graph->node[b->graph->node_count - 1].wait = 1; /* the ring's slot is filled */
    pl_builder_leave(b);
}

static void give_out(const pl_hybrid *k, const pl_hybrid_capsules *c, const pl_id port[PORTS])
{
    pl_builder *b = &k->m->b;
    pl_store_args store = pl_store_none;
    int count = 0;
    pl_builder_enter(b, "results");
    store.port[count++] = rounded(k, c->sketches, "sketches");
    store.port[count++] = rounded(k, c->checksums, "checksums");
    store.port[count++] = rounded(k, c->children, "children");
    store.port[count++] = port[REMARKS];
    if (pl_facts_value(k->m->extents, "witness", 0)) store.port[count++] = port[PAGES];
    pl_build_store(b, &store);
    pl_builder_leave(b);
}

pl_status pl_hybrid_build_encode(pl_hybrid *k)
{
    pl_hybrid_capsules c = {.is_asked = true, .sketches = PL_NONE};
    pl_id port[PORTS];
    pl_model_begin_program(k->m, "encode");
    k->m->training = false;
    k->told = NULL, k->carried = NULL;
    pl_hybrid_forget_ports(k);
    pl_hybrid_begin_fusion(k);
    load_pages(k, port);
    pl_hybrid_encode(k, pl_hybrid_see(k, pl_hybrid_make_pages(k, port[PAGES])), &c);
    give_out(k, &c, port);
    return k->m->b.status;
}
