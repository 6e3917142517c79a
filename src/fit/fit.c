#include "fit/fit.h"

#include <stdio.h>
#include <string.h>

#include "fit/recompute.h"

enum { CANDIDATES_MAX = 16, TOKENS_ENOUGH = 512 }; /* beyond that many rows a GEMM gains nothing (bench_gemm) */

/* Divisors of the batch, the largest first, up to the size at which larger ones gain nothing; always 1. */
static int find_candidates(const pl_fit_options *o, int64_t candidate[CANDIDATES_MAX])
{
    int count = 0;
    if (o->given.micro_batch) {
        candidate[0] = o->given.micro_batch;
        return 1;
    }
    int64_t most = o->sequence < TOKENS_ENOUGH ? TOKENS_ENOUGH / o->sequence : 1;
    for (int64_t m = most < o->batch ? most : o->batch; m > 1 && count < CANDIDATES_MAX - 1; m--)
        if (o->batch % m == 0) candidate[count++] = m;
    candidate[count++] = 1;
    return count;
}

/* The largest values alive at the plan's peak, in words. */
static void describe_peak(const pl_plan *p, char *text, size_t room)
{
    size_t used = 0;
    uint64_t below = UINT64_MAX;
    text[0] = 0;
    for (int rank = 0; rank < 3; rank++) {
        pl_id best = PL_NONE;
        for (size_t i = 0; i < p->graph->value_count; i++) {
            const pl_block *b = &p->value[i];
            bool alive = b->bytes && b->first <= p->peak_position && p->peak_position < b->last && b->bytes < below;
            if (alive && (best == PL_NONE || b->bytes > p->value[best].bytes)) best = (pl_id)i;
        }
        if (best == PL_NONE || used >= room) return;
        below = p->value[best].bytes;
        used += (size_t)snprintf(text + used, room - used, "%s%s (%llu bytes)", rank ? ", " : "",
                                 p->graph->value[best].name, (unsigned long long)below);
    }
}

static pl_status refuse(const pl_plan *smallest, const pl_fit_options *o, pl_error *err)
{
    char alive[400], change[200];
    uint64_t need = pl_plan_charged_bytes(smallest), by_role[PL_ROLE_COUNT] = {0};
    describe_peak(smallest, alive, sizeof alive);
    for (size_t i = 0; i < smallest->graph->value_count; i++)
        by_role[smallest->graph->value[i].role] += smallest->value[i].bytes;
    uint64_t state = by_role[PL_ROLE_WEIGHT] + by_role[PL_ROLE_GRADIENT] + by_role[PL_ROLE_OPTIMIZER];
    if (o->given.micro_batch > 1)
        snprintf(change, sizeof change, "set train.micro_batch to auto");
    else if (state > o->budget_bytes)
        snprintf(change, sizeof change,
                 "weights, gradients and optimizer state alone are %llu bytes: a smaller model.width or model.layers "
                 "is needed",
                 (unsigned long long)state);
    else
        snprintf(change, sizeof change, "raise the budget to %llu bytes, or make model.sequence or model.width smaller",
                 (unsigned long long)need);
    return pl_fail(err, PL_E_BUDGET,
                   "the smallest plan needs %llu bytes charged (resident, page tables, kernel, files being written), "
                   "%llu more than the budget of %llu; largest at its peak: %s; %s",
                   (unsigned long long)need, (unsigned long long)(need - o->budget_bytes),
                   (unsigned long long)o->budget_bytes, alive, change);
}

pl_status pl_fit_try(const pl_graph *graph, const pl_fit_options *o, const pl_choice *c, pl_plan **plan,
                     pl_plan **smallest, pl_error *err)
{
    pl_plan *p;
    PL_TRY(pl_fit_candidate(graph, o, c, &p, err));
    bool again = p->huge_pages && pl_plan_charged_bytes(p) > o->budget_bytes;
    if (pl_plan_charged_bytes(p) <= o->budget_bytes) {
        *plan = p;
    } else if (!*smallest || pl_plan_charged_bytes(p) < pl_plan_charged_bytes(*smallest)) {
        pl_plan_destroy(*smallest);
        *smallest = p;
    } else {
        pl_plan_destroy(p);
    }
    if (!again) return PL_OK;
    pl_choice small_pages = *c; /* what rounding to huge ones costs may be what is missing */
    small_pages.huge_pages = false;
    return pl_fit_try(graph, o, &small_pages, plan, smallest, err);
}

pl_status pl_fit(const pl_graph *graph, const pl_fit_options *o, pl_plan **plan, pl_error *err)
{
    int64_t candidate[CANDIDATES_MAX];
    pl_plan *smallest = NULL;
    pl_status status = PL_OK;
    int count = find_candidates(o, candidate);
    *plan = NULL;
    for (int i = 0; i < count && !*plan; i++) {
        pl_choice choice = o->given;
        choice.micro_batch = candidate[i];
        PL_TRY_DONE(pl_fit_try(graph, o, &choice, plan, &smallest, err));
    }
    if (!*plan && o->plan_recompute && o->given.layer_major == 0) /* its decisions are made for one region */
        PL_TRY_DONE(pl_recompute_search(graph, o, candidate[count - 1], plan, &smallest, err));
    if (!*plan) status = refuse(smallest, o, err);
done:
    pl_plan_destroy(smallest);
    return status;
}
