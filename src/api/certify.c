/* When nothing fits: what would make it fit. Each thing that the config forbids, or has decided, is set free alone, and
 * the search is asked again; no kernel is measured, so that a time is known only where the table has it. */
#include "api/compile.h"

typedef struct trial {
    const char *key, *value;
    bool (*give)(pl_config *); /* false: it is so already */
} trial;

static bool allow(pl_config *c, uint32_t bit)
{
    bool fresh = !(c->fit.allow & bit);
    c->fit.allow |= bit;
    return fresh;
}

/* A permission counts where the key is left open; where it is set, to set it otherwise does. */
static bool give_optimizer_bf16(pl_config *c)
{
    return c->train.optimizer_state == PL_OPTIMIZER_STATE_AUTO && allow(c, PL_ALLOW_OPTIMIZER_BF16);
}

static bool give_optimizer_8bit(pl_config *c)
{
    return c->train.optimizer_state == PL_OPTIMIZER_STATE_AUTO && allow(c, PL_ALLOW_OPTIMIZER_8BIT);
}

static bool give_bf16(pl_config *c) { return c->train.mixed_precision == PL_MIXED_AUTO && allow(c, PL_ALLOW_BF16); }

static bool set_optimizer_8bit(pl_config *c)
{
    const pl_config_optimizer_state was = c->train.optimizer_state;
    c->train.optimizer_state = PL_OPTIMIZER_STATE_8BIT;
    return was == PL_OPTIMIZER_STATE_F32 || was == PL_OPTIMIZER_STATE_BF16;
}

static bool set_bf16(pl_config *c)
{
    bool whole = c->train.mixed_precision == PL_MIXED_OFF;
    c->train.mixed_precision = PL_MIXED_BF16;
    return whole;
}

/* Then weights may be updated before all gradients are there. */
static bool give_clip(pl_config *c)
{
    bool clips = c->train.grad_clip > 0;
    c->train.grad_clip = 0;
    return clips;
}

static bool give_micro_batch(pl_config *c)
{
    bool given = c->train.micro_batch != PL_CONFIG_AUTO && c->train.micro_batch != 1;
    c->train.micro_batch = PL_CONFIG_AUTO;
    return given;
}

static bool give_checkpointing(pl_config *c)
{
    bool given = c->train.gradient_checkpointing != PL_CHECKPOINTING_AUTO;
    c->train.gradient_checkpointing = PL_CHECKPOINTING_AUTO;
    return given;
}

static bool give_layer_major(pl_config *c)
{
    bool given = c->train.layer_major != PL_CONFIG_AUTO;
    c->train.layer_major = PL_CONFIG_AUTO;
    return given;
}

static bool give_layer_major_keep(pl_config *c)
{
    bool given = c->train.layer_major != 0 && c->train.layer_major_keep != PL_CONFIG_AUTO;
    c->train.layer_major_keep = PL_CONFIG_AUTO;
    return given;
}

static bool give_chunks(pl_config *c)
{
    bool given = c->train.feed_forward_rows != PL_CONFIG_AUTO;
    c->train.feed_forward_rows = PL_CONFIG_AUTO;
    return given;
}

static bool give_update(pl_config *c)
{
    bool given = c->train.update_in_backward != PL_EARLY_AUTO;
    c->train.update_in_backward = PL_EARLY_AUTO;
    return given;
}

static bool give_threads(pl_config *c)
{
    bool given = c->run.threads != PL_CONFIG_AUTO && c->run.threads != 1;
    c->run.threads = PL_CONFIG_AUTO;
    return given;
}

/* What changes no numbers comes first: of two that cost the same it is the better one. */
static const trial trials[] = {
    {"train.micro_batch", "auto", give_micro_batch},
    {"train.gradient_checkpointing", "auto", give_checkpointing},
    {"train.layer_major", "auto", give_layer_major},
    {"train.layer_major_keep", "auto", give_layer_major_keep},
    {"train.feed_forward_rows", "auto", give_chunks},
    {"train.update_in_backward", "auto", give_update},
    {"run.threads", "auto", give_threads},
    {"train.grad_clip", "0", give_clip},
    {"fit.allow", "bf16", give_bf16},
    {"train.mixed_precision", "bf16", set_bf16},
    {"fit.allow", "optimizer_bf16", give_optimizer_bf16},
    {"fit.allow", "optimizer_8bit", give_optimizer_8bit},
    {"train.optimizer_state", "8bit", set_optimizer_8bit},
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

static pl_status try_one(const pl_config *config, const pl_compile_options *o, const trial *t, pl_fit_result *into,
                         pl_error *err)
{
    pl_error why = {0};
    pl_fit_result r;
    pl_plan *plan = NULL;
    pl_config *c = pl_config_create();
    if (!c) return pl_fail(err, PL_E_NOMEM, "no memory to try %s", t->key);
    *c = *config;
    pl_compile_options how = *o;
    how.everything = false;
    how.measured = true;
    bool given = t->give(c);
    pl_status status = given ? pl_compile(c, &how, &r, &plan, &why) : PL_OK;
    pl_config_destroy(c);
    if (!given) return PL_OK;
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
