/* The judge of schedules. Shares nothing with the planners: it walks through the steps with one bit a node and adds up
 * what is resident. The rules are those of docs/recompute.md, each with its sentence. */
#include <inttypes.h>

#include "plimsoll/recompute.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/size.h"

typedef struct residency {
    const pl_recompute_problem *problem;
    bool *resident, *ran; /* by node */
    uint64_t bytes, peak; /* fixed included */
    double cost;
    size_t step; /* the one being looked at, from 1 as in a file */
} residency;

static pl_status compute(residency *r, uint32_t v, pl_error *err)
{
    const pl_recompute_node *node = &r->problem->nodes[v];
    uint64_t at;
    if (r->resident[v])
        return pl_fail(err, PL_E_INTERNAL, "step %zu computes node %" PRIu32 ", which is resident", r->step, v);
    for (size_t k = 0; k < node->dep_count; k++)
        if (!r->resident[node->deps[k]])
            return pl_fail(err, PL_E_INTERNAL,
                           "step %zu computes node %" PRIu32 ", but its input %" PRIu32 " is not resident", r->step, v,
                           node->deps[k]);
    if (pl_size_add(r->bytes, node->size, &r->bytes) || pl_size_add(r->bytes, node->work, &at))
        return pl_fail(err, PL_E_INTERNAL, "step %zu holds more than 2^64 bytes", r->step);
    if (at > r->peak) r->peak = at;
    r->cost += node->cost;
    r->resident[v] = r->ran[v] = true;
    return PL_OK;
}

static pl_status release(residency *r, uint32_t v, pl_error *err)
{
    if (!r->resident[v])
        return pl_fail(err, PL_E_INTERNAL, "step %zu frees node %" PRIu32 ", which is not resident", r->step, v);
    if (r->problem->nodes[v].keep)
        return pl_fail(err, PL_E_INTERNAL, "step %zu frees node %" PRIu32 ", which is to be kept", r->step, v);
    r->resident[v] = false;
    r->bytes -= r->problem->nodes[v].size;
    return PL_OK;
}

static pl_status walk(residency *r, const pl_recompute_step *steps, size_t step_count, pl_error *err)
{
    size_t count = r->problem->node_count;
    for (size_t i = 0; i < step_count; i++) {
        r->step = i + 1;
        if (steps[i].node >= count)
            return pl_fail(err, PL_E_INTERNAL, "step %zu names node %" PRIu32 "; there are %zu", r->step, steps[i].node,
                           count);
        PL_TRY(steps[i].action == PL_RECOMPUTE_COMPUTE ? compute(r, steps[i].node, err)
                                                       : release(r, steps[i].node, err));
    }
    for (size_t v = 0; v < count; v++)
        if (!r->ran[v]) return pl_fail(err, PL_E_INTERNAL, "node %zu is never computed", v);
    return PL_OK;
}

pl_status pl_recompute_validate(const pl_recompute_problem *problem, const pl_recompute_step *steps, size_t step_count,
                                double *cost, uint64_t *peak, pl_error *err)
{
    residency r = {.problem = problem, .bytes = problem->fixed, .peak = problem->fixed};
    pl_status status;
    r.resident = pl_alloc(problem->node_count, sizeof *r.resident);
    r.ran = pl_alloc(problem->node_count, sizeof *r.ran);
    status = r.resident && r.ran ? walk(&r, steps, step_count, err)
                                 : pl_fail(err, PL_E_NOMEM, "no memory to judge %zu nodes", problem->node_count);
    pl_free(r.resident);
    pl_free(r.ran);
    if (cost) *cost = r.cost;
    if (peak) *peak = r.peak;
    return status;
}
