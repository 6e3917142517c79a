/* The best sequence so far. */
#include "graph.h"

static bool is_better(const recompute_best *best, const recompute_sequence *s, bool fits)
{
    if (best->method == NULL || fits != best->fits) return best->method == NULL || fits;
    if (fits) return s->cost < best->sequence.cost;
    return s->peak < best->sequence.peak || (s->peak == best->sequence.peak && s->cost < best->sequence.cost);
}

pl_status recompute_best_offer(recompute_best *best, const recompute_graph *g, recompute_run *run,
                               recompute_sequence *s, const char *method, pl_error *err)
{
    PL_TRY(run->options->prune ? recompute_sequence_prune(g, s, err) : recompute_sequence_measure(g, s, err));
    bool fits = s->peak <= g->budget;
    if (fits && run->options->refill && s->count > g->count) PL_TRY(recompute_sequence_refill(g, run, s, err));
    if (!is_better(best, s, fits)) return PL_OK;
    PL_TRY(recompute_sequence_copy(&best->sequence, s, err));
    best->fits = fits;
    best->method = method;
    return PL_OK;
}
