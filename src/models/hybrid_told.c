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
    pl_field_metrics_args all = pl_field_metrics_none;
    _Static_assert(PL_FIELD_MEAN_MAGNITUDE == PL_FIELD_VARIANCE + 1, "a slice of two columns");
    if (gates == PL_NONE) return absent(k, PL_TOLD_ABSENT, 2);
    all.x = pl_net_view(k->n, gates, pl_shape_of(4, PL_B(1), (int64_t)1, k->tokens, (int64_t)1));
    return pl_net_slice(k->n, pl_build_field_metrics(&k->n->b, &all), PL_FIELD_VARIANCE, 2);
}

pl_id pl_hybrid_tell(const pl_hybrid *k, pl_id right)
{
    const pl_hybrid_told *t = k->told;
    const bool plans = k->m->config->latent_planning.enable_latent_planning;
    const int64_t ways = plans ? k->m->config->latent_planning.latent_num_paths : 0;
    pl_concat_args row = pl_concat_none;
    pl_id *part = row.part;
    pl_builder_enter(&k->n->b, "told");
    *part++ = right, *part++ = t->halt;
    *part++ = pl_hybrid_spread(k, t->fusion_gates);
    *part++ = pl_hybrid_spread(k, t->adapter_gates);
    *part++ = t->planner_gate == PL_NONE ? absent(k, PL_TOLD_ABSENT, 1)
                                         : pl_net_view(k->n, t->planner_gate, pl_shape_of(2, PL_B(1), (int64_t)1));
    if (ways) *part++ = pl_net_view(k->n, t->scores, pl_shape_of(2, PL_B(1), ways));
    if (ways < PL_TOLD_WAYS_MAX) *part++ = absent(k, PL_TOLD_NO_WAY, PL_TOLD_WAYS_MAX - ways);
    pl_build_concat(&k->n->b, &row);
    pl_builder_leave(&k->n->b);
    return row.y;
}
