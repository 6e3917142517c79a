/* The config as text of the plan: with what was chosen, and with room for what may be. */
#include <string.h>

#include "api/choice.h"
#include "api/compiler.h"
#include "base/alloc.h"

static pl_status print_decided(const pl_compiler *c, pl_config *copy, char **text, pl_error *err)
{
    pl_str printed = {0};
    if (!copy->run.out[0] && strlen(c->settings.out) < sizeof copy->run.out) strcpy(copy->run.out, c->settings.out);
    pl_config_print_yaml(copy, &printed);
    if (printed.failed) return pl_str_deinit(&printed), pl_fail(err, PL_E_NOMEM, "no memory for the plan's config");
    pl_free(*text);
    *text = printed.data;
    return PL_OK;
}

static pl_status copy_config(const pl_config *config, pl_config **copy, pl_error *err)
{
    *copy = pl_config_create();
    if (!*copy) return pl_fail(err, PL_E_NOMEM, "no memory for the plan's config");
    **copy = *config;
    return PL_OK;
}

/* What is staged for saving, and the heap, have room for the config with the longest words that may be chosen. They are
 * counted from the config as it was given, but for run.resume: of its words true, auto and false, false is the longest.
 * What this run will have decided, or has, makes no difference, so a run that goes on needs the bytes of the one that
 * began. */
pl_status pl_compiler_reserve_words(pl_compiler *c, const pl_config *given, pl_error *err)
{
    pl_config *copy;
    if (!pl_command_does(c->command, PL_USES_UPDATE)) return PL_OK;
    PL_TRY(copy_config(given, &copy, err));
    copy->run.resume = PL_SWITCH_OFF;
    pl_status status = pl_decide_longest(copy, err);
    if (status == PL_OK) status = print_decided(c, copy, &c->settings.config_text, err);
    c->settings.run.config_text = c->settings.config_text;
    pl_config_destroy(copy);
    return status;
}

pl_status pl_compiler_go_on(pl_compiler *c, pl_error *err)
{
    bool goes_on = pl_command_does(c->command, PL_USES_UPDATE) && c->config->run.resume != PL_SWITCH_OFF;
    if (!goes_on || !c->config->fit.allow) return PL_OK;
    PL_TRY(copy_config(c->config, &c->decided, err));
    c->config = c->decided;
    return pl_decide_as_kept(c->decided, err);
}

pl_status pl_compiler_keep_choice(const pl_compiler *c, const pl_choice *choice, pl_plan *plan, pl_error *err)
{
    pl_config *copy;
    if (!pl_command_does(c->command, PL_USES_UPDATE)) return PL_OK;
    PL_TRY(copy_config(c->config, &copy, err));
    pl_status status = pl_decide(copy, choice, err);
    if (status == PL_OK) status = print_decided(c, copy, &plan->config, err);
    plan->numerics_hash = pl_config_hash_numerics(copy);
    pl_config_destroy(copy);
    return status;
}
