/* A trained model of arch hybrid that gives out its capsules, as arch capsules does (models/capsules.c). What comes
 * after the capsules (reasoner, planner, heads) is no part of it.
 *
 * Ports of the data, in this order: "pages" u8 [B,H,W], "remarks" u8 [B]. "encode" stores, in f16, sketches [B,K,D],
 * checksums [B,K,R] and children [B,K,m,D], and the remarks as they came; for a witness (the extent "witness") the
 * pages, too. */
#include "models/hybrid.h"

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
    return pl_net_cast(k->n, x, PL_DTYPE_F16, "encode.%s", name);
}

static void give_out(const pl_hybrid *k, const pl_hybrid_capsules *c, pl_id pages, pl_id remarks)
{
    pl_builder *b = &k->n->b;
    pl_store_args store = pl_store_none;
    int count = 0;
    pl_builder_enter(b, "results");
    store.port[count++] = rounded(k, c->sketches, "sketches");
    store.port[count++] = rounded(k, c->checksums, "checksums");
    store.port[count++] = rounded(k, c->children, "children");
    store.port[count++] = remarks;
    if (pl_facts_value(k->m->extents, "witness", 0)) store.port[count++] = pages;
    pl_build_store(b, &store);
    pl_builder_leave(b);
}

pl_status pl_hybrid_build_encode(pl_hybrid *k)
{
    pl_hybrid_capsules c = {.is_asked = true, .sketches = PL_NONE};
    const pl_model_port ports[] = {{"pages", PL_DTYPE_U8, pl_shape_of(3, PL_B(1), k->side, k->side)},
                                   {"remarks", PL_DTYPE_U8, pl_shape_of(1, PL_B(1))}};
    pl_id load[2];
    pl_model_begin_program(k->m, "encode");
    k->n->training = false;
    k->told = NULL, k->carried = NULL;
    pl_hybrid_forget_ports(k);
    pl_hybrid_begin_fusion(k);
    PL_TRY(pl_model_load(k->m, ports, 2, load));
    pl_hybrid_encode(k, pl_hybrid_see(k, pl_hybrid_make_pages(k, load[0])), &c);
    give_out(k, &c, load[0], load[1]);
    return k->n->b.status;
}
