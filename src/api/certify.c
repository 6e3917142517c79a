/* When nothing fits: what would make it fit. Each thing that the config forbids, or has decided, is set free alone, and
 * the search is run again; no kernel is measured, so a time is known only where the table has it. */
#include <string.h>

#include "api/choice.h"
#include "api/compile.h"
#include "config/schema.h"

typedef enum when { ALWAYS, ONLY, BUT } when; /* set where the key of the axis is `word`, or where it is not */

typedef struct trial {
    pl_choice_key of;
    when when;
    const char *word;
    const char *path, *value;
} trial;

static const trial trials[] = {
#define PL_AXIS_TRIAL(id, when, word, path, value) {PL_CHOICE_##id, when, word, path, value},
#include "fit/axes.def"
};
enum { TRIALS = sizeof trials / sizeof *trials };
_Static_assert(TRIALS + 1 <= PL_FIT_PERMISSIONS_MAX, "raise PL_FIT_PERMISSIONS_MAX");

/* No axis; but then weights may be updated before all gradients are there. */
static const trial without_clip = {PL_CHOICE_UPDATE, ALWAYS, "", "train.grad_clip", "0"};

/* A key that the model does not have, or nobody reads now, cannot help. */
static bool may_help(const trial *t, const pl_config *c, const pl_config_key *key, pl_command command)
{
    char text[PL_CHOICE_TEXT_BYTES], under[PL_CHOICE_TEXT_BYTES] = "";
    const pl_choice_key above = pl_choice_rows[t->of].under;
    if (!key || !pl_config_is_read(c, key, (pl_config_reader)(1u << command))) return false;
    if (!pl_choice_is_used(c, t->of)) return false;
    pl_choice_text(c, t->of, text);
    if (above != PL_CHOICE_NO_KEY) pl_choice_text(c, above, under);
    return strcmp(under, "0") != 0 && (t->when == ALWAYS || (strcmp(text, t->word) == 0) == (t->when == ONLY));
}

/* What a search ended with: a plan, the smallest plan, or, where state alone is too large, neither. */
static pl_fit_permission permission_of(const trial *t, const pl_config_key *key, const pl_fit_result *r,
                                       const pl_plan *plan)
{
    pl_fit_permission p = {.key = key->path, .value = t->value, .fits = plan != NULL, .seconds = -1};
    size_t shown = plan ? r->chosen : r->least;
    if (shown == PL_FIT_NONE) return p;
    p.charged_bytes = r->point[shown].charged_bytes;
    p.seconds = r->point[shown].seconds;
    p.work = r->point[shown].work;
    return p;
}

/* Sets the key, in addition to what is allowed already; `fresh` is false when that changes nothing. */
static pl_status give(const trial *t, const pl_config_key *key, const pl_config *before, pl_config *c, bool *fresh,
                      pl_error *err)
{
    *c = *before;
    PL_TRY(pl_config_set(c, key->path, t->value, "fit", err));
    c->fit.allow |= before->fit.allow;
    *fresh = !pl_config_equal(c, before);
    return PL_OK;
}

static pl_status try_one(const pl_config *config, const pl_compile_options *o, const trial *t, pl_fit_result *into,
                         pl_error *err)
{
    pl_error why = {0};
    pl_fit_result r;
    pl_plan *plan = NULL;
    bool fresh = false;
    const pl_config_key *key = pl_config_find_for(config, t->path);
    if (!may_help(t, config, key, o->command)) return PL_OK;
    pl_config *c = pl_config_create();
    if (!c) return pl_fail(err, PL_E_NOMEM, "no memory to try %s", key->path);
    pl_compile_options how = *o;
    how.everything = false;
    pl_status given = give(t, key, config, c, &fresh, err), status = PL_OK;
    if (given == PL_OK && fresh) status = pl_compile(c, &how, &r, &plan, &why);
    pl_config_destroy(c);
    if (given != PL_OK || !fresh) return given;
    if (status == PL_OK || status == PL_E_BUDGET)
        into->permission[into->permission_count++] = permission_of(t, key, &r, plan);
    pl_plan_destroy(plan);
    pl_fit_result_deinit(&r);
    /* A key that another one needs cannot be left to the search (an early update with micro-batches, layer_major). */
    bool judged = status == PL_OK || status == PL_E_BUDGET || status == PL_E_CONFIG;
    return judged ? PL_OK : pl_fail(err, status, "%s", why.text);
}

static bool is_cheaper(const pl_fit_permission *a, const pl_fit_permission *b)
{
    return a->seconds >= 0 && b->seconds >= 0 ? a->seconds < b->seconds : a->work < b->work;
}

/* In the keys' order. */
static pl_status try_keys(const pl_config *config, const pl_compile_options *o, bool numbers, pl_fit_result *r,
                          pl_error *err)
{
    for (pl_choice_key key = 0; key < PL_CHOICE_KEYS; key++)
        for (size_t i = 0; i < TRIALS && pl_choice_rows[key].numbers == numbers; i++)
            if (trials[i].of == key) PL_TRY(try_one(config, o, &trials[i], r, err));
    return PL_OK;
}

/* What changes no numbers comes first: it wins a tie in cost. */
static pl_status try_all(const pl_config *config, const pl_compile_options *o, pl_fit_result *r, pl_error *err)
{
    PL_TRY(try_keys(config, o, false, r, err));
    PL_TRY(try_one(config, o, &without_clip, r, err));
    PL_TRY(try_keys(config, o, true, r, err));
    r->cheapest = PL_FIT_NONE;
    for (size_t i = 0; i < r->permission_count; i++)
        if (r->permission[i].fits &&
            (r->cheapest == PL_FIT_NONE || is_cheaper(&r->permission[i], &r->permission[r->cheapest])))
            r->cheapest = i;
    return PL_OK;
}

/* Data opened once serve all trials; but groups have shapes of their own, which a key may change. */
static pl_status try_alike(const pl_config *config, const pl_compile_options *o, pl_fit_result *r, pl_error *err)
{
    pl_compile_options how = *o;
    PL_TRY(pl_open_data(config, o->command, PL_DATA_FOR_PLAN, NULL, &how.data, err));
    pl_status status = try_all(config, &how, r, err);
    pl_data_close(how.data);
    return status;
}

pl_status pl_certify(const pl_config *config, const pl_compile_options *o, pl_fit_result *r, pl_error *err)
{
    pl_compile_options how = *o;
    how.measured = true;
    return how.group ? try_all(config, &how, r, err) : try_alike(config, &how, r, err);
}

pl_status pl_try_numbers(const pl_config *config, const pl_compile_options *o, pl_fit_result *r, pl_error *err)
{
    return try_keys(config, o, true, r, err);
}
