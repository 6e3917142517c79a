#include "api/resume.h"

#include <string.h>

#include "api/choice.h"

/* The config of the saved run, and the one that goes on, both with what a search may decide decided. */
typedef struct pair {
    pl_config *before, *now;
} pair;

static void destroy(pair *p)
{
    pl_config_destroy(p->before);
    pl_config_destroy(p->now);
}

static pl_status read_pair(const pl_config *config, const pl_saved *saved, pair *p, bool *is_known, pl_error *err)
{
    static const pl_choice plain = {.moments = PL_DTYPE_F32, .precision = PL_DTYPE_F32, .frozen = PL_DTYPE_F32};
    pl_error why = {0};
    const char *text = saved->record->config;
    *p = (pair){pl_config_create(), pl_config_create()};
    *is_known = false;
    if (!p->before || !p->now) return pl_fail(err, PL_E_NOMEM, "no memory to read the config of %.350s", saved->path);
    pl_status status = pl_config_load_text(p->before, "run.json", text, strlen(text), &why);
    if (status == PL_E_NOMEM) return pl_fail(err, status, "%s", why.text);
    if (status != PL_OK) return PL_OK;
    *is_known = true;
    *p->now = *config;
    if (config->fit.allow) PL_TRY(pl_decide_as_kept(p->now, err));
    PL_TRY(pl_decide(p->now, &plain, err));
    return pl_decide(p->before, &plain, err);
}

static pl_status check(const pl_config *before, const pl_config *now, pl_error *err)
{
    if (pl_config_hash_model(before) != pl_config_hash_model(now)) PL_TRY(pl_config_check_same_model(before, now, err));
    return pl_config_check_begun(before, now, err);
}

pl_status pl_resume_check(const pl_config *config, const char *folder, const pl_saved *saved, pl_error *err)
{
    pair p;
    bool is_known;
    if (config->run.resume == PL_SWITCH_ON) PL_TRY(pl_saved_refuse_none(folder, saved, err));
    if (!saved->record) return PL_OK;
    pl_status status = read_pair(config, saved, &p, &is_known, err);
    if (status == PL_OK && is_known) status = check(p.before, p.now, err);
    destroy(&p);
    if (status != PL_OK || config->train.steps == PL_CONFIG_AUTO) return status;
    return pl_saved_refuse_past(folder, saved, (uint64_t)config->train.steps, err);
}

pl_status pl_resume_changes(const pl_config *config, const pl_saved *saved, char *text, size_t room, pl_error *err)
{
    pair p;
    bool is_known;
    pl_str out = pl_str_fixed(text, room);
    text[0] = 0;
    if (!saved->record) return PL_OK;
    pl_status status = read_pair(config, saved, &p, &is_known, err);
    if (status == PL_OK && is_known) pl_config_print_changes(p.before, p.now, &out);
    destroy(&p);
    return status;
}

/* The two of read_pair, and a third where a kept config says what was decided. */
pl_status pl_resume_rehearse(const pl_config *config, const pl_saved *saved, pl_error *err)
{
    const char *text = saved->record->config;
    pair p = {pl_config_create(), pl_config_create()};
    pl_config *kept = config->fit.allow ? pl_config_create() : NULL;
    pl_status status = PL_OK;
    if (!p.before || !p.now || (config->fit.allow && !kept))
        PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "no memory to rehearse a resume"));
    PL_TRY_DONE(pl_config_load_text(kept ? kept : p.before, "run.json", text, strlen(text), err));
done:
    pl_config_destroy(kept);
    destroy(&p);
    return status;
}
