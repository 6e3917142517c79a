#include <string.h>

#include "models/model.h"
#include "systems/clouds.h"
#include "systems/clouds_stages.h"

static bool is_there(const pl_config *c, const char *name)
{
    for (int64_t i = 0; i < c->clouds.flights.count; i++)
        if (strcmp(c->clouds.flights.item[i].name, name) == 0) return true;
    return false;
}

/* `name` is what is said to be a flight by the key. */
static pl_status check_name(const pl_config *c, const char *key, const char *name, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    pl_str names = {0};
    if (!name[0] || is_there(c, name)) return PL_OK;
    for (int64_t i = 0; i < c->clouds.flights.count; i++)
        pl_str_printf(&names, "%s%s", i ? ", " : "", c->clouds.flights.item[i].name);
    const pl_status status = pl_fail(err, PL_E_CONFIG, "%s: %s: there is no flight %.100s; flights has %.300s",
                                     pl_config_where(c, key, where, sizeof where), key, name, pl_str_text(&names));
    pl_str_deinit(&names);
    return status;
}

/* A stage is one word of three, and its flight. */
static pl_status check_stage(const pl_config *c, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const char *stage = c->clouds.stage, *needs = NULL;
    const size_t fold = strlen(PL_CLOUDS_LOO);
    if (!stage[0]) return PL_OK;
    if (strncmp(stage, PL_CLOUDS_LOO, fold) == 0 && stage[fold]) return check_name(c, "stage", stage + fold, err);
    if (strcmp(stage, PL_CLOUDS_PRETRAIN) == 0 && !c->clouds.pretrain_flight[0]) needs = "pretrain_flight";
    if (strcmp(stage, PL_CLOUDS_FINAL) == 0 && !c->clouds.validation_flight[0]) needs = "validation_flight";
    pl_config_where(c, "stage", where, sizeof where);
    if (needs) return pl_fail(err, PL_E_CONFIG, "%s: stage %s needs %s: name a flight there", where, stage, needs);
    if (strcmp(stage, PL_CLOUDS_PRETRAIN) == 0 || strcmp(stage, PL_CLOUDS_FINAL) == 0) return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "%s: stage is %.100s; pretrain, final, or loo- and the name of a flight was expected", where, stage);
}

/* What judges the final training must be new to it. */
static pl_status check_final(const pl_config *c, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const char *held_out = c->clouds.validation_flight;
    const bool in_pretraining = c->clouds.pretrain && strcmp(held_out, c->clouds.pretrain_flight) == 0,
               in_training = strcmp(held_out, c->clouds.overweight_flight) == 0;
    if (!c->clouds.final || !held_out[0] || !(in_pretraining || in_training)) return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "%s: validation_flight and %s are both %s, but what judges the final training must be new to it; "
                   "choose another one",
                   pl_config_where(c, "validation_flight", where, sizeof where),
                   in_pretraining ? "pretrain_flight" : "overweight_flight", held_out);
}

static pl_status check_swath(const pl_config *c, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const double begin = c->clouds.swath_slice.item[0], end = c->clouds.swath_slice.item[1];
    if (begin < end) return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "%s: swath_slice [%g, %g] has no rows; it begins with the first and ends before "
                   "the second",
                   pl_config_where(c, "swath_slice", where, sizeof where), begin, end);
}

pl_status pl_clouds_check(const pl_config *c, pl_error *err)
{
    PL_TRY(check_swath(c, err));
    PL_TRY(check_final(c, err));
    if (c->clouds.flights.count > 0) { /* without, what needs flights says so */
        PL_TRY(check_name(c, "pretrain_flight", c->clouds.pretrain_flight, err));
        PL_TRY(check_name(c, "validation_flight", c->clouds.validation_flight, err));
        PL_TRY(check_name(c, "overweight_flight", c->clouds.overweight_flight, err));
        PL_TRY(check_stage(c, err));
    }
    return pl_model_check(c, err);
}
