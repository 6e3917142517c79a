/* What the keys of a regression of cloud heights cannot tell one by one: names of flights that do not exist, trainings
 * whose keys contradict each other or that would see what they are judged by. Each sentence begins with the place of
 * the key that is most likely wrong. */
#include <string.h>

#include "config/schema.h"
#include "systems/clouds.h"

static const pl_config_flight *find_flight(const pl_config *cfg, const char *name)
{
    for (int64_t i = 0; i < cfg->clouds.flights.count; i++)
        if (strcmp(cfg->clouds.flights.item[i].name, name) == 0) return &cfg->clouds.flights.item[i];
    return NULL;
}

static const char *place(const pl_config *cfg, const char *path, char where[PL_CONFIG_WHERE_BYTES])
{
    return pl_config_where(cfg, path, where, PL_CONFIG_WHERE_BYTES);
}

static pl_status check_swath(const pl_config *cfg, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const double *row = cfg->clouds.swath_slice.item;
    if (row[0] < row[1]) return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "%s: swath_slice begins at row %.0f and ends before row %.0f; write the first row, then the one "
                   "behind the last",
                   place(cfg, "swath_slice", where), row[0], row[1]);
}

/* A run keeps its config for readers in other folders: what files are relative to must be said. */
static pl_status check_files(const pl_config *cfg, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const pl_config_key *key = &pl_config_keys[PL_CONFIG_KEY_clouds_flights];
    if (cfg->clouds.data_directory[0]) return PL_OK;
    for (int64_t i = 0; i < cfg->clouds.flights.count; i++)
        for (size_t f = 1; f < key->field_count; f++)
            if (pl_config_record_text(key, &cfg->clouds.flights, i, &key->fields[f])[0] != '/')
                return pl_fail(
                    err, PL_E_CONFIG,
                    "%s: flights[%d].%s is no absolute path, and data_directory does not say where it begins; "
                    "write \"data_directory: …\" in the config file, or give `data_directory` …",
                    place(cfg, "flights", where), (int)i + 1, key->fields[f].name);
    return PL_OK;
}

/* ---- names ---- */

static const char *nearest_flight(const pl_config *cfg, const char *name)
{
    const char *near = NULL;
    size_t best = SIZE_MAX;
    for (int64_t i = 0; i < cfg->clouds.flights.count; i++)
        if (pl_nearer(name, cfg->clouds.flights.item[i].name, &best)) near = cfg->clouds.flights.item[i].name;
    return near;
}

/* Without a list there is nothing to compare with: a command that needs it asks for it. */
static pl_status check_name(const pl_config *cfg, const char *path, const char *name, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES], shown[64], list[256];
    const pl_config_key *flights = &pl_config_keys[PL_CONFIG_KEY_clouds_flights];
    if (!name[0] || cfg->clouds.flights.count == 0 || find_flight(cfg, name)) return PL_OK;
    const char *near = nearest_flight(cfg, name);
    place(cfg, path, where);
    pl_config_shown(name, strlen(name), shown);
    if (near)
        return pl_fail(err, PL_E_CONFIG, "%s: %s names the flight \"%s\", which flights has not; did you mean \"%s\"?",
                       where, path, shown, near);
    pl_str names = pl_str_fixed(list, sizeof list);
    pl_config_print_record_names(flights, &cfg->clouds.flights, &names);
    return pl_fail(err, PL_E_CONFIG, "%s: %s names the flight \"%s\", which flights has not; it has %s", where, path,
                   shown, list);
}

pl_status pl_clouds_check_folder(const pl_config *cfg, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES], shown[64];
    const char *name = cfg->clouds.save_name;
    if (!name[0] || pl_config_is_folder_name(name)) return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "%s: save_name \"%s\" is no name of a folder; take letters, digits, _ and, not in front, - and .",
                   place(cfg, "save_name", where), pl_config_shown(name, strlen(name), shown));
}

/* ---- trainings ---- */

static const char *left_out(const pl_config *cfg)
{
    return strncmp(cfg->clouds.stage, "loo-", 4) == 0 ? cfg->clouds.stage + 4 : NULL;
}

static bool is_stage(const pl_config *cfg, const char *name) { return strcmp(cfg->clouds.stage, name) == 0; }

static pl_status check_stage(const pl_config *cfg, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES], shown[64];
    const char *stage = cfg->clouds.stage, *needs = NULL;
    if (left_out(cfg) && *left_out(cfg)) return check_name(cfg, "stage", left_out(cfg), err);
    if (is_stage(cfg, "pretrain") && !cfg->clouds.pretrain_flight[0]) needs = "pretrain_flight";
    if (is_stage(cfg, "final") && !cfg->clouds.validation_flight[0]) needs = "validation_flight";
    if (needs)
        return pl_fail(err, PL_E_CONFIG, "%s: the stage %s needs a flight; name it by %s", place(cfg, "stage", where),
                       stage, needs);
    if (!stage[0] || is_stage(cfg, "pretrain") || is_stage(cfg, "final")) return PL_OK;
    return pl_fail(
        err, PL_E_CONFIG,
        "%s: stage must be pretrain, final, or loo- and the name of a flight, not \"%s\"; leave it empty for "
        "all",
        place(cfg, "stage", where), pl_config_shown(stage, strlen(stage), shown));
}

static bool makes_final(const pl_config *cfg)
{
    return is_stage(cfg, "final") || (is_stage(cfg, "") && cfg->clouds.final && cfg->clouds.validation_flight[0]);
}

/* It never sees the validation flight, and neither did the weights that it begins with. */
static pl_status check_final(const pl_config *cfg, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const char *judge = cfg->clouds.validation_flight;
    if (!makes_final(cfg)) return PL_OK;
    if (cfg->clouds.pretrain && strcmp(cfg->clouds.pretrain_flight, judge) == 0)
        return pl_fail(err, PL_E_CONFIG,
                       "%s: pretrain_flight and validation_flight are both %s: the final training would begin from "
                       "weights that have seen what it is judged by; name another, or set pretrain to false",
                       pl_config_blame(cfg, "pretrain_flight", "validation_flight", where), judge);
    if (strcmp(cfg->clouds.overweight_flight, judge) == 0)
        return pl_fail(err, PL_E_CONFIG,
                       "%s: overweight_flight and validation_flight are both %s, and the final training never sees it; "
                       "name another, or take overweight_flight out",
                       pl_config_blame(cfg, "overweight_flight", "validation_flight", where), judge);
    return PL_OK;
}

static pl_status check_count(const pl_config *cfg, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const bool leaves_out = makes_final(cfg) || left_out(cfg) || (is_stage(cfg, "") && cfg->clouds.loo);
    if (cfg->clouds.flights.count != 1 || !leaves_out) return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "%s: flights has one flight, and a training that is judged by a flight of its own needs another to "
                   "learn from; add one, or set final and loo to false",
                   place(cfg, "flights", where));
}

/* Only for a plan without flights: flights say it themselves. */
static pl_status check_counted(const pl_config *cfg, const char *path, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    if (cfg->clouds.flights.count == 0 || pl_config_is_default(cfg, pl_config_find(path))) return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "%s: %s is of a plan without flights, and there are flights, which say it; take it out",
                   place(cfg, path, where), path);
}

pl_status pl_clouds_check_flights(const pl_config *cfg, pl_error *err)
{
    PL_TRY(check_swath(cfg, err));
    PL_TRY(check_files(cfg, err));
    PL_TRY(check_name(cfg, "pretrain_flight", cfg->clouds.pretrain_flight, err));
    PL_TRY(check_name(cfg, "validation_flight", cfg->clouds.validation_flight, err));
    PL_TRY(check_name(cfg, "overweight_flight", cfg->clouds.overweight_flight, err));
    PL_TRY(check_stage(cfg, err));
    PL_TRY(check_count(cfg, err));
    PL_TRY(check_counted(cfg, "count", err));
    PL_TRY(check_counted(cfg, "frame_width", err));
    return check_final(cfg, err);
}
