/* One plan's two steps. Whatever the rewrites have done, what stays between steps has the names that the model and the
 * optimizer gave it; so the plain plan's list of such values is everybody's list.
 *
 * The gradient is read from the first moment, for some plans have none at the end of a step: m' = β1·m + (1 − β1)·g,
 * with the same m, so a difference of gradients is that of the moments divided by 1 − β1. */
#include "api/verify.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/narrow.h"
#include "ir/properties.h"
#include "ir/op.h"
#include "base/checksum.h"

/* The largest relative error of one rounding; half of the smallest number above 0. */
#define BF16_UNIT         0x1p-8
#define F16_UNIT          0x1p-11
#define F16_SMALLEST_HALF 0x1p-25

static bool stays(const pl_graph *g, pl_id id)
{
    const pl_value *v = &g->value[id];
    bool kept = v->role == PL_ROLE_WEIGHT || v->role == PL_ROLE_OPTIMIZER || v->role == PL_ROLE_AVERAGE ||
                v->role == PL_ROLE_STATE;
    return kept && v->program == PL_NONE && pl_value_root(g, id) == id;
}

/* The first moment of a weight, in f32. */
static bool tells_gradient(const pl_graph *g, pl_id id)
{
    if (!stays(g, id) || g->value[id].role != PL_ROLE_OPTIMIZER || g->value[id].dtype != PL_DTYPE_F32) return false;
    for (size_t i = 0; i < g->node_count; i++)
        if (pl_op_rule_of(g->node[i].op)->optimizer && pl_value_root(g, g->node[i].adamw.m) == id) return true;
    return false;
}

/* The same value of the plan that is being run. */
static pl_status find(const pl_verify_plain *p, const pl_plan *plan, pl_session *s, pl_id id, const void **data,
                      uint64_t *bytes, pl_error *err)
{
    const pl_value *v = &p->plan->graph->value[id];
    pl_id there = pl_graph_find_value(plan->graph, v->name);
    *data = there == PL_NONE ? NULL : pl_session_value(s, v->name);
    *bytes = pl_value_bytes(p->plan->graph, id);
    if (*data && pl_value_bytes(plan->graph, there) == *bytes && plan->graph->value[there].dtype == v->dtype)
        return PL_OK;
    return pl_fail(err, PL_E_INTERNAL, "%s is not the same value in both plans; this is a fault of a rewrite", v->name);
}

static pl_status sum_bits(const pl_verify_plain *p, const pl_plan *plan, pl_session *s, double loss, uint64_t *bits,
                          pl_error *err)
{
    const void *data;
    uint64_t bytes;
    pl_checksum sum;
    pl_checksum_init(&sum);
    pl_checksum_update(&sum, &loss, sizeof loss);
    for (size_t i = 0; i < p->plan->graph->value_count; i++) {
        if (!stays(p->plan->graph, (pl_id)i)) continue;
        PL_TRY(find(p, plan, s, (pl_id)i, &data, &bytes, err));
        pl_checksum_update(&sum, data, bytes);
    }
    *bits = pl_checksum_value(&sum);
    return PL_OK;
}

/* ---- gradients ---- */

static pl_status keep(pl_verify_plain *p, pl_session *s, pl_error *err)
{
    const pl_graph *g = p->plan->graph;
    const void *data;
    uint64_t bytes;
    p->moment = pl_alloc(g->value_count + 1, sizeof *p->moment);
    if (!p->moment) return pl_fail(err, PL_E_NOMEM, "no memory for the gradients to compare with");
    for (size_t i = 0; i < g->value_count; i++) {
        if (!tells_gradient(g, (pl_id)i)) continue;
        PL_TRY(find(p, p->plan, s, (pl_id)i, &data, &bytes, err));
        p->moment[i] = pl_alloc(1, bytes);
        if (!p->moment[i]) return pl_fail(err, PL_E_NOMEM, "no memory for the gradients to compare with");
        memcpy(p->moment[i], data, bytes);
    }
    return PL_OK;
}

typedef struct squares {
    double difference, size; /* sums over all gradients */
} squares;

/* A difference that is no number counts as infinite. */
static void compare_one(const float *a, const float *b, uint64_t count, double *difference, double *largest,
                        squares *sum)
{
    *difference = *largest = 0;
    for (uint64_t i = 0; i < count; i++) {
        double d = fabs((double)a[i] - (double)b[i]), size = fabs((double)b[i]);
        sum->difference += d * d;
        sum->size += size * size;
        if (!(d <= *difference)) *difference = isnan(d) ? INFINITY : d;
        if (size > *largest) *largest = size;
    }
}

/* Steps whose gradients overflowed, so that there was no update. */
static int32_t count_skipped(pl_session *s)
{
    const int32_t *skipped = pl_session_value(s, PL_SKIPPED_STEPS);
    return skipped ? *skipped : 0;
}

static pl_status compare(const pl_verify_plain *p, const pl_plan *plan, pl_session *s, pl_verify_outcome *o,
                         pl_error *err)
{
    const void *data;
    uint64_t bytes;
    double difference, largest;
    bool any = false;
    squares sum = {0};
    for (size_t i = 0; i < p->plan->graph->value_count; i++) {
        if (!p->moment[i]) continue;
        PL_TRY(find(p, plan, s, (pl_id)i, &data, &bytes, err));
        compare_one(data, p->moment[i], bytes / sizeof(float), &difference, &largest, &sum);
        any = true;
        difference /= 1 - p->config->train.beta1;
        double share = difference > 0 ? difference / (largest / (1 - p->config->train.beta1)) : 0;
        if (difference > o->difference) o->difference = difference;
        if (share > o->share) o->share = share, o->gradient = p->plan->graph->value[i].name + 2;
    }
    o->norm_share = sum.difference > 0 ? sqrt(sum.difference / sum.size) : 0;
    if (!any || o->skipped) o->difference = o->share = o->norm_share = NAN, o->gradient = "";
    return PL_OK;
}

/* ---- roundings ---- */

typedef struct roundings {
    const pl_graph *g;
    pl_session *session;
    pl_id program;
    double
        *share; /* [nodes] the largest that one output was off by, norm by norm, squared; 0: it rounds to no 16 bits */
} roundings;

/* By what share of its norm rounding moved the value, squared: each number by up to u of itself, or, where f16 has no
 * smaller number, by half of its smallest. What is all 0 there may have been anything that small: then 1. */
static double share_of(const roundings *r, pl_id value)
{
    const pl_value *v = &r->g->value[value];
    if (v->dtype == PL_DTYPE_BF16) return BF16_UNIT * BF16_UNIT;
    const uint16_t *x = pl_value_is_contiguous(v) ? pl_session_value(r->session, v->name) : NULL;
    uint64_t elems = pl_shape_elems(&v->shape);
    double sum = 0;
    for (uint64_t i = 0; i < elems && x; i++) sum += pow(pl_f32_of_f16(x[i]), 2);
    double below = x ? (double)elems * F16_SMALLEST_HALF * F16_SMALLEST_HALF : 0;
    return F16_UNIT * F16_UNIT + fmin(below == 0 ? 0 : below / sum, 1);
}

static bool is_narrow(const pl_graph *g, pl_id value)
{
    return value != PL_NONE && (g->value[value].dtype == PL_DTYPE_BF16 || g->value[value].dtype == PL_DTYPE_F16);
}

static void look(roundings *r, uint32_t node)
{
    const pl_node *n = &r->g->node[node];
    if (pl_region_program(r->g, n->region) != r->program || !is_narrow(r->g, pl_node_result(n))) return;
    for (int k = 0; k < PL_NODE_OUT_MAX; k++)
        if (is_narrow(r->g, n->out[k])) r->share[node] = fmax(r->share[node], share_of(r, n->out[k]));
}

/* ---- a run ---- */

/* What is looked at beside the values that stay; each may be NULL. */
typedef struct looks {
    roundings *roundings;
    pl_verify_update *update;
} looks;

static void watch(void *context, uint32_t node, bool done)
{
    const looks *l = context;
    if (l->update) pl_verify_update_see(l->update, node, done);
    if (l->roundings && done) look(l->roundings, node);
}

static pl_status watched_step(pl_session *s, looks *l, double *loss, pl_error *err)
{
    if (l->update) pl_verify_update_begin(l->update);
    if (l->update || l->roundings) pl_session_watch(s, watch, l);
    pl_status status = pl_train_steps(s, 1, loss, err);
    pl_session_watch(s, NULL, NULL);
    if (l->update && status == PL_OK) pl_verify_update_end(l->update);
    return status;
}

/* The first step of a plain plan, and what its roundings amount to. */
static pl_status step_and_look(const pl_plan *plan, pl_session *s, pl_verify_update *update, pl_verify_outcome *o,
                               pl_error *err)
{
    const pl_graph *g = plan->graph;
    roundings r = {.g = g, .session = s, .program = pl_graph_find_trained(g)};
    r.share = pl_alloc(g->node_count + 1, sizeof *r.share);
    if (!r.share) return pl_fail(err, PL_E_NOMEM, "no memory for the roundings of %zu nodes", g->node_count);
    pl_status status = watched_step(s, &(looks){&r, update}, &o->loss[0], err);
    for (size_t i = 0; i < g->node_count; i++) o->rounding += r.share[i];
    o->rounding = sqrt(o->rounding);
    pl_free(r.share);
    return status;
}

/* What to do beside the steps; `list` names the values, the rest may be NULL. */
typedef struct task {
    const pl_verify_plain *list, *with;
    pl_verify_plain *into;
    pl_verify_update *update;
} task;

static pl_status take_steps(const task *t, const pl_plan *plan, pl_session *s, pl_verify_outcome *o, pl_error *err)
{
    int32_t skipped = count_skipped(s);
    for (int step = 0; step < PL_VERIFY_STEPS; step++) {
        if (step == 0 && t->into)
            PL_TRY(step_and_look(plan, s, t->update, o, err));
        else
            PL_TRY(watched_step(s, &(looks){NULL, t->update}, &o->loss[step], err));
        if (step == 0) o->skipped = count_skipped(s) > skipped;
        PL_TRY(sum_bits(t->list, plan, s, o->loss[step], &o->bits[step], err));
        if (step == 0 && t->with) PL_TRY(compare(t->with, plan, s, o, err));
        if (step == 0 && t->into) PL_TRY(keep(t->into, s, err));
    }
    return PL_OK;
}

static pl_status run_apart(task *t, const pl_plan *plan, pl_session *s, pl_verify_outcome *o, pl_error *err)
{
    const char *name;
    PL_TRY(pl_verify_update_create(t->list->config, plan, s, &t->update, err));
    pl_status status = take_steps(t, plan, s, o, err);
    o->update_share = pl_verify_update_share(t->update, &name);
    snprintf(o->update, sizeof o->update, "%s", name);
    pl_verify_update_destroy(t->update);
    return status;
}

static pl_status run(task t, bool again, const pl_plan *plan, const char *checkpoint, pl_verify_outcome *o,
                     pl_error *err)
{
    pl_run *run = NULL;
    *o = (pl_verify_outcome){.gradient = ""};
    PL_TRY(pl_room_check_beside(plan, pl_verify_update_bytes(plan), err));
    PL_TRY(pl_run_open_apart(plan, checkpoint, NULL, &run, err));
    pl_session *s = pl_run_session(run);
    pl_status status = again ? take_steps(&t, plan, s, o, err) : run_apart(&t, plan, s, o, err);
    pl_run_close(run);
    return status;
}

pl_status pl_verify_run(const pl_verify_plain *with, const pl_plan *plan, const char *checkpoint, pl_verify_outcome *o,
                        pl_error *err)
{
    return run((task){.list = with, .with = with}, false, plan, checkpoint, o, err);
}

pl_status pl_verify_run_again(const pl_verify_plain *with, const pl_plan *plan, const char *checkpoint,
                              pl_verify_outcome *o, pl_error *err)
{
    return run((task){.list = with}, true, plan, checkpoint, o, err);
}

pl_status pl_verify_run_plain(const pl_verify_plain *with, pl_verify_plain *plain, const char *checkpoint,
                              pl_verify_outcome *o, pl_error *err)
{
    return run((task){.list = plain, .with = with, .into = plain}, false, plain->plan, checkpoint, o, err);
}

bool pl_verify_same(const pl_verify_outcome *a, const pl_verify_outcome *b)
{
    return memcmp(a->bits, b->bits, sizeof a->bits) == 0;
}

void pl_verify_plain_deinit(pl_verify_plain *p)
{
    for (size_t i = 0; p->moment && i < p->plan->graph->value_count; i++) pl_free(p->moment[i]);
    pl_free(p->moment);
    pl_plan_destroy(p->plan);
    *p = (pl_verify_plain){0};
}
