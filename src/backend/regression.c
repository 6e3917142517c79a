/* Losses of regression: an item costs less than waking a thread, so one thread takes them in their order, in double.
 * The hard ones come out of a heap of all: the largest loss on top, of equal ones the first.
 * Workspace, where some are hard: [loss of each item: f64][heap of items: i64][is it hard: u8]. */
#include "backend/regression.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* The loss of an error, and its derivative by the prediction. */
typedef struct item {
    double loss, slope;
} item;

static double sign(double e) { return (e > 0) - (e < 0); }

static item huber(const pl_regression *r, double e)
{
    double a = fabs(e);
    if (a <= r->delta) return (item){0.5 * e * e, -e};
    return (item){r->delta * (a - 0.5 * r->delta), -r->delta * sign(e)};
}

static item power_of(const pl_regression *r, double e)
{
    double a = fabs(e), below = a > 0 ? pow(a, r->gamma - 1) : 0; /* |e|^(gamma − 1) */
    return (item){a * below, -r->gamma * below * sign(e)};
}

static item blend(double alpha, item a, item b)
{
    return (item){alpha * a.loss + (1 - alpha) * b.loss, alpha * a.slope + (1 - alpha) * b.slope};
}

static item times(double factor, item a) { return (item){factor * a.loss, factor * a.slope}; }

static item item_of(const pl_regression *r, double e)
{
    item square = {e * e, -2 * e}, absolute = {fabs(e), -sign(e)};
    double weight = e > 0 ? r->under_weight : 1;
    switch (r->kind) {
    case PL_REGRESSION_MSE:
        return square;
    case PL_REGRESSION_MAE:
        return absolute;
    case PL_REGRESSION_MSE_MAE:
        return blend(r->alpha, square, absolute);
    case PL_REGRESSION_HUBER_MAE:
        return blend(r->alpha, huber(r, e), power_of(r, e));
    case PL_REGRESSION_WEIGHTED_HUBER:
        return times(weight, huber(r, e));
    case PL_REGRESSION_WEIGHTED_HUBER_MAE:
        return blend(r->alpha, times(weight, huber(r, e)), power_of(r, e));
    default:
        return huber(r, e);
    }
}

static double error_of(const pl_regression_loss_call *c, int64_t i)
{
    return (double)c->target[i] - (double)pl_real_get(c->type, c->prediction, i);
}

/* ---- which are hard ---- */

typedef struct heap {
    const double *loss;
    int64_t *item, count;
} heap;

static bool comes_before(const heap *h, int64_t a, int64_t b)
{
    return h->loss[a] > h->loss[b] || (h->loss[a] == h->loss[b] && a < b);
}

static void sink(heap *h, int64_t at)
{
    for (int64_t below; (below = 2 * at + 1) < h->count; at = below) {
        if (below + 1 < h->count && comes_before(h, h->item[below + 1], h->item[below])) below++;
        if (!comes_before(h, h->item[below], h->item[at])) return;
        int64_t kept = h->item[at];
        h->item[at] = h->item[below], h->item[below] = kept;
    }
}

static bool has_hard(const pl_regression_loss_call *c) { return c->loss_of.share > 0 && c->loss_of.factor != 1; }

uint64_t pl_regression_loss_workspace_bytes(const pl_regression_loss_call *c, pl_team team)
{
    (void)team;
    return has_hard(c) ? (uint64_t)c->count * (sizeof(double) + sizeof(int64_t) + 1) : 0;
}

/* A loss that is not a number is larger than all. */
static void find_hard(const pl_regression_loss_call *c, double *loss, int64_t *order, uint8_t *hard)
{
    heap h = {loss, order, 0};
    for (int64_t i = 0; i < c->count; i++) {
        if (isnan(c->target[i])) continue;
        loss[i] = item_of(&c->loss_of, error_of(c, i)).loss;
        if (isnan(loss[i])) loss[i] = INFINITY;
        order[h.count++] = i;
    }
    int64_t wanted = (int64_t)(c->loss_of.share * (double)h.count);
    for (int64_t i = h.count / 2; i-- > 0;) sink(&h, i);
    memset(hard, 0, (size_t)c->count);
    for (int64_t k = 0; k < wanted; k++) {
        hard[order[0]] = 1;
        order[0] = order[--h.count];
        sink(&h, 0);
    }
}

void pl_regression_loss_exec(const pl_regression_loss_call *c, void *workspace, pl_team team)
{
    uint8_t *hard = NULL;
    double scale = c->dprediction ? (double)(*c->scale * (c->loss_scale ? *c->loss_scale : 1)) : 0;
    (void)team;
    if (has_hard(c)) {
        double *loss = workspace;
        int64_t *order = (int64_t *)(void *)(loss + c->count);
        hard = (uint8_t *)(order + c->count);
        find_hard(c, loss, order, hard);
    }
    for (int64_t i = 0; i < c->count; i++) {
        item one = isnan(c->target[i]) ? (item){0, 0} : item_of(&c->loss_of, error_of(c, i));
        if (hard && hard[i]) one = times(c->loss_of.factor, one);
        *c->loss += one.loss;
        if (c->dprediction) pl_real_put(c->type, c->dprediction, i, (float)(one.slope * scale));
    }
}
