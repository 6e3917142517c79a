/* When nothing fits: what would make it fit. Each thing that the config forbids, or has decided, is set free alone, and
 * the search is asked again; no kernel is measured, so that a time is known only where the table has it. */
#include "api/compile.h"

typedef struct trial {
    const char *key, *value;
    bool (*may_help)(const pl_config *); /* NULL: wherever the key has another value */
} trial;

/* A permission counts where the key is left open; where it is set, to set it otherwise does. */
static bool state_is_open(const pl_config *c) { return c->train.optimizer_state == PL_OPTIMIZER_STATE_AUTO; }
static bool state_is_set(const pl_config *c) { return c->train.optimizer_state != PL_OPTIMIZER_STATE_AUTO; }
static bool precision_is_open(const pl_config *c) { return c->train.mixed_precision == PL_MIXED_AUTO; }
static bool precision_is_whole(const pl_config *c) { return c->train.mixed_precision == PL_MIXED_OFF; }

/* One is the least already. */
static bool has_several_sequences(const pl_config *c) { return c->train.micro_batch != 1; }
static bool has_several_threads(const pl_config *c) { return c->run.threads != 1; }
static bool has_layer_major(const pl_config *c) { return c->train.layer_major != 0; }

/* What changes no numbers comes first: of two that cost the same it is the better one. */
static const trial trials[] = {
    {"train.micro_batch", "auto", has_several_sequences},
    {"train.gradient_checkpointing", "auto", NULL},
    {"train.layer_major", "auto", NULL},
    {"train.layer_major_keep", "auto", has_layer_major},
    {"train.feed_forward_rows", "auto", NULL},
    {"train.update_in_backward", "auto", NULL},
    {"run.threads", "auto", has_several_threads},
    {"train.grad_clip", "0", NULL}, /* then weights may be updated before all gradients are there */
    {"fit.allow", "bf16", precision_is_open},
    {"train.mixed_precision", "bf16", precision_is_whole},
    {"fit.allow", "optimizer_bf16", state_is_open},
    {"fit.allow", "optimizer_8bit", state_is_open},
    {"train.optimizer_state", "8bit", state_is_set},
};
_Static_assert(sizeof trials / sizeof *trials <= PL_FIT_PERMISSIONS_MAX, "raise PL_FIT_PERMISSIONS_MAX");

/* What a search ended with: a plan, the smallest one, or, where state alone is too large, neither. */
static pl_fit_permission permission_of(const trial *t, const pl_fit_result *r, const pl_plan *plan)
{
    pl_fit_permission p = {.key = t->key, .value = t->value, .fits = plan != NULL, .seconds = -1};
    size_t shown = plan ? r->chosen : r->least;
    if (shown == PL_FIT_NONE) return p;
    p.charged_bytes = r->point[shown].charged_bytes;
    p.seconds = r->point[shown].seconds;
    p.work = r->point[shown].work;
    return p;
}

/* Sets the key, beside what is allowed already; false in `fresh` when it was so before, or cannot help. */
static pl_status give(const trial *t, const pl_config *before, pl_config *c, bool *fresh, pl_error *err)
{
    *c = *before;
    *fresh = !t->may_help || t->may_help(before);
    PL_TRY(pl_config_set(c, t->key, t->value, "fit", err));
    c->fit.allow |= before->fit.allow;
    *fresh = *fresh && !pl_config_equal(c, before);
    return PL_OK;
}

static pl_status try_one(const pl_config *config, const pl_compile_options *o, const trial *t, pl_fit_result *into,
                         pl_error *err)
{
    pl_error why = {0};
    pl_fit_result r;
    pl_plan *plan = NULL;
    bool fresh = false;
    pl_config *c = pl_config_create();
    if (!c) return pl_fail(err, PL_E_NOMEM, "no memory to try %s", t->key);
    pl_compile_options how = *o;
    how.everything = false;
    how.measured = true;
    pl_status given = give(t, config, c, &fresh, err), status = PL_OK;
    if (given == PL_OK && fresh) status = pl_compile(c, &how, &r, &plan, &why);
    pl_config_destroy(c);
    if (given != PL_OK || !fresh) return given;
    if (status == PL_OK || status == PL_E_BUDGET)
        into->permission[into->permission_count++] = permission_of(t, &r, plan);
    pl_plan_destroy(plan);
    pl_fit_result_deinit(&r);
    /* A key that another one needs (an early update with micro-batches, layer_major) cannot be left to the search. */
    bool judged = status == PL_OK || status == PL_E_BUDGET || status == PL_E_CONFIG;
    return judged ? PL_OK : pl_fail(err, status, "%s", why.text);
}

static bool is_cheaper(const pl_fit_permission *a, const pl_fit_permission *b)
{
    return a->seconds >= 0 && b->seconds >= 0 ? a->seconds < b->seconds : a->work < b->work;
}

pl_status pl_certify(const pl_config *config, const pl_compile_options *o, pl_fit_result *r, pl_error *err)
{
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) PL_TRY(try_one(config, o, &trials[i], r, err));
    r->cheapest = PL_FIT_NONE;
    for (size_t i = 0; i < r->permission_count; i++)
        if (r->permission[i].fits &&
            (r->cheapest == PL_FIT_NONE || is_cheaper(&r->permission[i], &r->permission[r->cheapest])))
            r->cheapest = i;
    return PL_OK;
}
