/* What evaluation tells of each sample: of many gates variance and mean, of one gate the gate, of ways the scores. */
#include "models/hybrid.h"

#include "base/rollout.h"
#include "base/told.h"

static pl_id absent(const pl_hybrid *k, double value, int64_t columns)
{
    return pl_hybrid_fill(k, PL_DTYPE_F32, value, pl_shape_of(2, PL_B(1), columns));
}

/* Gates are above 0, so their mean magnitude is their mean. */
pl_id pl_hybrid_spread(const pl_hybrid *k, pl_id gates)
{
    pl_id all = PL_NONE, two = PL_NONE;
    _Static_assert(PL_FIELD_MEAN_MAGNITUDE == PL_FIELD_VARIANCE + 1, "a slice of two columns");
    if (gates == PL_NONE) return absent(k, PL_TOLD_ABSENT, 2);
    pl_id image = pl_model_view(k->m, gates, pl_shape_of(4, PL_B(1), (int64_t)1, k->tokens, (int64_t)1));
    pl_build_node(&k->m->b, PL_OP_FIELD_METRICS, NULL, 1, &image, 1, &all);
    return pl_build_node(&k->m->b, PL_OP_SLICE, (pl_attr[]){pl_attr_i(PL_FIELD_VARIANCE), pl_attr_i(2)}, 1, &all, 1,
                         &two);
}

pl_id pl_hybrid_tell(const pl_hybrid *k, pl_id right)
{
    const pl_hybrid_told *t = k->told;
    const bool plans = k->m->config->latent_planning.enable_latent_planning;
    const int64_t ways = plans ? k->m->config->latent_planning.latent_num_paths : 0;
    pl_id part[7] = {right, t->halt}, out = PL_NONE;
    int parts = 2;
    pl_builder_enter(&k->m->b, "told");
    part[parts++] = pl_hybrid_spread(k, t->fusion_gates);
    part[parts++] = pl_hybrid_spread(k, t->adapter_gates);
    part[parts++] = t->planner_gate == PL_NONE
                        ? absent(k, PL_TOLD_ABSENT, 1)
                        : pl_model_view(k->m, t->planner_gate, pl_shape_of(2, PL_B(1), (int64_t)1));
    if (ways) part[parts++] = pl_model_view(k->m, t->scores, pl_shape_of(2, PL_B(1), ways));
    if (ways < PL_TOLD_WAYS_MAX) part[parts++] = absent(k, PL_TOLD_NO_WAY, PL_TOLD_WAYS_MAX - ways);
    pl_build_node(&k->m->b, PL_OP_CONCAT, NULL, parts, part, 1, &out);
    pl_builder_leave(&k->m->b);
    return out;
}
