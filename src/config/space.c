/* What the keys of a rollout's config cannot tell one by one: dimensions of the parameter space whose fields contradict
 * each other, and the like. Each sentence begins with the place of the key that is likeliest to be wrong. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "config/schema.h"

static const pl_config_section *section_of(pl_config_dimension_id id)
{
    static const pl_config_section_id sections[] = {
#define NUMBER_DIMENSION(section, ...) PL_CONFIG_SECTION_##section,
#define WORD_DIMENSION(section, ...)   PL_CONFIG_SECTION_##section,
#include "config/sections.def"
    };
    return &pl_config_sections[sections[id]];
}

/* NULL: the dimension has no such field. */
static const void *field(const pl_config *cfg, const pl_config_section *section, const char *name)
{
    const pl_config_key *key = pl_config_find_in(section, name);
    return key ? pl_config_value_of(cfg, key) : NULL;
}

pl_config_dimension pl_config_dimension_of(const pl_config *cfg, pl_config_dimension_id id)
{
    const pl_config_section *s = section_of(id);
    const bool *log_scale = field(cfg, s, "log_scale");
    const pl_config_list *bounds = field(cfg, s, "bounds");
    pl_config_dimension d = {.path = s->name,
                             .name = strrchr(s->name, '.') + 1,
                             .is_used = pl_config_is_used(cfg, pl_config_find_in(s, "type")),
                             .is_words = pl_config_find_in(s, "choices")->names != NULL,
                             .log_scale = log_scale && *log_scale,
                             .bounds = bounds && bounds->count == 2 ? bounds : NULL,
                             .choices = field(cfg, s, "choices"),
                             .weights = field(cfg, s, "weights")};
    memcpy(&d.type, field(cfg, s, "type"), sizeof d.type);
    return d;
}

/* ---- a dimension ---- */

/* The place of one of its fields. */
static const char *place(const pl_config *cfg, const pl_config_dimension *d, const char *name,
                         char where[PL_CONFIG_WHERE_BYTES])
{
    char path[128];
    snprintf(path, sizeof path, "%s.%s", d->path, name);
    return pl_config_where(cfg, path, where, PL_CONFIG_WHERE_BYTES);
}

/* What numbers it has: words, integers with gaps, integers, reals. */
static pl_status check_type(const pl_config *cfg, const pl_config_dimension *d, pl_error *err)
{
    static const char *const words[] = {"integer", "continuous", "choice", "boolean"};
    char where[PL_CONFIG_WHERE_BYTES];
    const pl_config_key *choices = pl_config_find_in(pl_config_find_section(d->path, strlen(d->path)), "choices");
    const bool whole = choices->flags & PL_CONFIG_FLAG_WHOLE, odd = choices->flags & PL_CONFIG_FLAG_ODD;
    const bool fits = d->type == PL_CONFIG_DIMENSION_CHOICE ||
                      (d->type == PL_CONFIG_DIMENSION_INTEGER && whole && !odd) ||
                      (d->type == PL_CONFIG_DIMENSION_CONTINUOUS && !whole && !d->is_words);
    if (fits) return PL_OK;
    return pl_fail(err, PL_E_CONFIG, "%s: %s is of type %s; it can be %s", place(cfg, d, "type", where), d->path,
                   words[d->type],
                   d->is_words || odd ? "choice"
                   : whole            ? "integer or choice"
                                      : "continuous or choice");
}

static pl_status check_bounds(const pl_config *cfg, const pl_config_dimension *d, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    if (!d->bounds)
        return pl_fail(err, PL_E_CONFIG, "%s: %s has no bounds; write \"bounds: [least, largest]\" under it",
                       place(cfg, d, "type", where), d->path);
    const double low = d->bounds->item[0], high = d->bounds->item[1];
    if (low > high)
        return pl_fail(err, PL_E_CONFIG, "%s: the bounds of %s begin at %g, above their end %g; write the least first",
                       place(cfg, d, "bounds", where), d->path, low, high);
    if (d->log_scale && low <= 0)
        return pl_fail(err, PL_E_CONFIG,
                       "%s: %s has a log scale, and bounds that begin at %g; begin above 0, or take log_scale out",
                       place(cfg, d, "bounds", where), d->path, low);
    return PL_OK;
}

static pl_status check_weights(const pl_config *cfg, const pl_config_dimension *d, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    double sum = 0;
    if (d->choices->count == 0)
        return pl_fail(err, PL_E_CONFIG, "%s: %s has no choices; write \"choices: […]\" under it",
                       place(cfg, d, "type", where), d->path);
    if (d->weights->count == 0) return PL_OK;
    place(cfg, d, "weights", where);
    if (d->weights->count != d->choices->count)
        return pl_fail(err, PL_E_CONFIG, "%s: %s has %d weight%s and %d choice%s; give one for each", where, d->path,
                       (int)d->weights->count, pl_plural((uint64_t)d->weights->count), (int)d->choices->count,
                       pl_plural((uint64_t)d->choices->count));
    for (int64_t i = 0; i < d->weights->count; i++) sum += d->weights->item[i];
    if (fabs(sum - 1) <= 1e-6) return PL_OK;
    return pl_fail(err, PL_E_CONFIG, "%s: the weights of %s sum to %.9g, not to 1; %s", where, d->path, sum,
                   sum > 0 ? "divide each by that" : "give at least one of them more than 0");
}

static pl_status check_dimension(const pl_config *cfg, const pl_config_dimension *d, pl_error *err)
{
    PL_TRY(check_type(cfg, d, err));
    return d->type == PL_CONFIG_DIMENSION_CHOICE ? check_weights(cfg, d, err) : check_bounds(cfg, d, err);
}

/* ---- the rest ---- */

static pl_status check_fields(const pl_config *cfg, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    double sum = 0;
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++)
        if (key->section == &pl_config_sections[PL_CONFIG_SECTION_ic_type_weights])
            sum += *(const double *)pl_config_value_of(cfg, key);
    if (cfg->input_generation.method == PL_CONFIG_FIELD_SAMPLED && sum <= 0)
        return pl_fail(err, PL_E_CONFIG,
                       "%s: fields are sampled by weights, and simulation.input_generation.ic_type_weights gives none "
                       "above 0; write \"localized: 1\" or others under it",
                       pl_config_where(cfg, "simulation.input_generation.method", where, sizeof where));
    if (cfg->localized.min_width > cfg->localized.max_width)
        return pl_fail(err, PL_E_CONFIG,
                       "%s: blobs have a min_width of %g and a max_width of %g; take at most that, at least this",
                       pl_config_blame(cfg, "simulation.input_generation.localized.min_width",
                                       "simulation.input_generation.localized.max_width", where),
                       cfg->localized.min_width, cfg->localized.max_width);
    return PL_OK;
}

static pl_status check_update(const pl_config *cfg, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const pl_config_list *clamp = &cfg->update.clamp;
    if (clamp->count == 0 || clamp->item[0] < clamp->item[1]) return PL_OK;
    return pl_fail(err, PL_E_CONFIG, "%s: simulation.update.clamp holds states between %g and %g; %s",
                   pl_config_where(cfg, "simulation.update.clamp", where, sizeof where), clamp->item[0], clamp->item[1],
                   clamp->item[0] > clamp->item[1] ? "write the less first" : "give two different numbers");
}

pl_config_store pl_config_store_of(const pl_config *cfg)
{
    if (cfg->dataset.store != PL_CONFIG_STORE_AUTO) return cfg->dataset.store;
    return cfg->storage.store_trajectories ? PL_CONFIG_STORE_BOTH : PL_CONFIG_STORE_FEATURES;
}

pl_status pl_config_check_space(const pl_config *cfg, pl_error *err)
{
    if (!pl_config_is_used(cfg, &pl_config_keys[PL_CONFIG_KEY_update_policy_type])) return PL_OK;
    for (int i = 0; i < PL_CONFIG_DIMENSION_COUNT; i++) {
        const pl_config_dimension d = pl_config_dimension_of(cfg, (pl_config_dimension_id)i);
        if (d.is_used) PL_TRY(check_dimension(cfg, &d, err));
    }
    PL_TRY(check_fields(cfg, err));
    return check_update(cfg, err);
}

/* What stands for it here, of its help: "no effect here: the processor computes"; "" when nothing does. */
static const char *reason_of(const pl_config_key *key)
{
    const char *colon = strstr(key->help, ": ");
    return colon ? colon + 2 : "";
}

/* Behind the last key that has it. */
static void end_reason(const char *last, const char *next, pl_str *out)
{
    if (*last && strcmp(last, next) != 0) pl_str_printf(out, " (%s)", last);
}

void pl_config_print_without_effect(const pl_config *cfg, pl_str *out)
{
    const char *last = NULL;
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++) {
        if (!(key->flags & PL_CONFIG_FLAG_NO_EFFECT) || !pl_config_is_set(cfg, key->path)) continue;
        const char *reason = reason_of(key);
        if (last) end_reason(last, reason, out);
        pl_str_printf(out, "%s%s", last ? ", " : "", key->path);
        last = reason;
    }
    if (last) end_reason(last, "", out);
}
