/* Which of two sequences is better, and the best so far. */
#include "graph.h"

bool recompute_is_better(const recompute_graph *g, const recompute_sequence *s, const recompute_sequence *than)
{
    bool fits = s->peak <= g->budget, other_fits = than->peak <= g->budget;
    if (fits != other_fits) return fits;
    if (fits) return s->cost < than->cost;
    return s->peak < than->peak || (s->peak == than->peak && s->cost < than->cost);
}

pl_status recompute_best_offer(recompute_best *best, const recompute_graph *g, recompute_run *run,
                               recompute_sequence *s, const char *method, pl_error *err)
{
    PL_TRY(recompute_sequence_polish(g, run, s, err));
    if (best->method && !recompute_is_better(g, s, &best->sequence)) return PL_OK;
    PL_TRY(recompute_sequence_copy(&best->sequence, s, err));
    best->fits = s->peak <= g->budget;
    best->method = method;
    return PL_OK;
}
