/* What cannot be seen from a single key: keys that nothing reads, values that contradict each other, products that
 * overflow. Each sentence begins with the place of the value that is most likely the mistake: the one from the
 * strongest source. Ranges of single values were checked when they were read. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "config/schema.h"

static pl_config_level level_of(const pl_config *cfg, const char *path)
{
    return pl_config_origin_at(cfg, pl_config_find(path))->level;
}

const char *pl_config_blame(const pl_config *cfg, const char *a, const char *b, char where[PL_CONFIG_WHERE_BYTES])
{
    return pl_config_where(cfg, level_of(cfg, b) > level_of(cfg, a) ? b : a, where, PL_CONFIG_WHERE_BYTES);
}

/* ---- keys that are set and not read ---- */

bool pl_config_is_meant_for_another(const pl_config *cfg, const pl_config_key *key)
{
    char where[PL_CONFIG_WHERE_BYTES];
    pl_config_key_set keys;
    if (pl_config_is_used(cfg, key) || !pl_config_is_shared(key, pl_config_where(cfg, key->path, where, sizeof where)))
        return false;
    for (size_t count = pl_config_keys_of_place(where, keys), i = 0; i < count; i++)
        if (pl_config_is_used(cfg, keys[i])) return true;
    return false;
}

void pl_config_print_archs(uint32_t archs, pl_str *out)
{
    const char *const *names = pl_config_keys[PL_CONFIG_KEY_model_arch].names;
    const int last = 31 - __builtin_clz(archs);
    const char *comma = "";
    for (int i = 0; i <= last; i++) {
        if (!(archs >> i & 1)) continue;
        pl_str_printf(out, "%s%s", i == last && *comma ? " or " : comma, names[i]);
        comma = ", ";
    }
}

/* The config names no arch, so it has the first, and this key is another system's. For an option that holds only where
 * the file's keys allow that other system: else the option is the mistake. */
static bool is_arch_missing(const pl_config *cfg, const pl_config_key *key, const char *where)
{
    uint32_t archs = pl_config_archs_of(key);
    if (pl_config_is_set(cfg, "model.arch") || key->use.systems >> pl_config_system_of(cfg) & 1) return false;
    const bool by_option = strncmp(where, "--", 2) == 0;
    for (const pl_config_key *other = pl_config_keys; by_option && other < PL_CONFIG_KEYS_END; other++)
        if (pl_config_origin_at(cfg, other)->level == PL_CONFIG_FROM_FILE)
            archs &= pl_config_archs_that_read(cfg, other);
    return archs;
}

static pl_status ask_for_arch(const pl_config_key *key, const char *where, pl_error *err)
{
    char text[128];
    pl_str archs = pl_str_fixed(text, sizeof text);
    pl_config_print_archs(pl_config_archs_of(key), &archs);
    return pl_fail(
        err, PL_E_CONFIG, "%s: %s is read when model.arch is %s, and no arch is said: write \"arch: %s\" under model",
        where, key->path, text, pl_config_keys[PL_CONFIG_KEY_model_arch].names[__builtin_ctz(pl_config_archs_of(key))]);
}

pl_status pl_config_check_used(const pl_config *cfg, const pl_config_key *key, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const pl_config_key *by = pl_config_unused_by(cfg, key);
    if (!by || !pl_config_is_set(cfg, key->path)) return PL_OK;
    pl_config_where(cfg, key->path, where, sizeof where);
    if (pl_config_is_meant_for_another(cfg, key)) return PL_OK;
    const char *instead = pl_config_instead_of(where);
    if (!instead && is_arch_missing(cfg, key, where)) return ask_for_arch(key, where, err);
    pl_str value = {0};
    pl_config_print_value(by, pl_config_value_of(cfg, by), &value);
    pl_status status = pl_fail(err, PL_E_CONFIG, "%s: %s is not used when %s is %.200s; %s", where, key->path, by->path,
                               pl_str_text(&value), instead ? instead : "take it out");
    pl_str_deinit(&value);
    return status;
}

/* A key that is read, but was set by another name, in a section that belongs to a different arch. */
static pl_status check_alias(const pl_config *cfg, const pl_config_key *key, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    if (!pl_config_is_set(cfg, key->path) || !pl_config_is_used(cfg, key) ||
        pl_config_archs_that_read(cfg, key) >> cfg->model.arch & 1)
        return PL_OK;
    return pl_fail(err, PL_E_CONFIG, "%s: %s is not used when model.arch is %s; write \"%s\" under %s",
                   pl_config_where(cfg, key->path, where, sizeof where), pl_config_origin_at(cfg, key)->by,
                   pl_config_keys[PL_CONFIG_KEY_model_arch].names[cfg->model.arch], key->name, key->section->name);
}

/* The option set another key, too, which can have the value. */
static pl_status check_taken(const pl_config *cfg, const pl_config_key *key, pl_error *err)
{
    char expected[320];
    const pl_config_origin *from = pl_config_origin_at(cfg, key);
    if (!from->is_refused || !pl_config_is_used(cfg, key)) return PL_OK;
    return pl_fail(err, PL_E_CONFIG, "%s: %s must be %s", from->by, key->path,
                   pl_config_expected(key, expected, sizeof expected));
}

static pl_status check_all_used(const pl_config *cfg, pl_error *err)
{
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++) {
        PL_TRY(check_taken(cfg, key, err));
        PL_TRY(pl_config_check_used(cfg, key, err));
        PL_TRY(check_alias(cfg, key, err));
    }
    return PL_OK;
}

/* ---- the training ---- */

static pl_status check_batch(const pl_config *cfg, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const pl_config_train *t = &cfg->train;
    const int64_t batch = pl_config_batch(cfg);
    if (batch > PL_CONFIG_BATCH_MAX)
        return pl_fail(err, PL_E_CONFIG,
                       "%s: train.gradient_accumulation_steps %" PRId64 " times train.batch_size %" PRId64
                       " is more than %d samples; take fewer",
                       pl_config_blame(cfg, "train.gradient_accumulation_steps", "train.batch_size", where),
                       t->gradient_accumulation_steps, t->batch_size, PL_CONFIG_BATCH_MAX);
    if (t->micro_batch > batch)
        return pl_fail(err, PL_E_CONFIG,
                       "%s: train.micro_batch %" PRId64 " is more than train.batch_size%s %" PRId64
                       "; take at most that, or auto",
                       pl_config_blame(cfg, "train.micro_batch", "train.batch_size", where), t->micro_batch,
                       batch == t->batch_size ? "" : " times gradient_accumulation_steps,", batch);
    return PL_OK;
}

/* ---- options of the command line ---- */

/* "train, eval and verify do" */
static void print_readers(uint32_t readers, pl_str *out)
{
    static const struct {
        pl_config_reader bit;
        const char *typed;
    } row[] = {
#define PL_COMMAND_ROW(id, name, other, typed, ...) {PL_CONFIG_BY_##id, typed},
#include "plimsoll/commands.def"
#undef PL_COMMAND_ROW
        {PL_CONFIG_BY_EXPORT, "export"}};
    enum { ROWS = sizeof row / sizeof *row };
    int count = 0, told = 0;
    for (int i = 0; i < ROWS; i++) count += (readers & row[i].bit) != 0;
    for (int i = 0; i < ROWS; i++) {
        if (!(readers & row[i].bit)) continue;
        pl_str_printf(out, "%s%s", told == 0 ? "" : told + 1 == count ? " and " : ", ", row[i].typed);
        told++;
    }
    pl_str_append(out, count == 1 ? " does" : " do");
}

/* --seed belongs to two rows; it is enough that this arch reads one of them. */
static bool is_option_read(const pl_config *cfg, const pl_config_key *key, pl_config_reader by)
{
    pl_config_key_set keys;
    for (size_t count = pl_config_keys_of_place(pl_config_origin_at(cfg, key)->by, keys), i = 0; i < count; i++)
        if (pl_config_is_used(cfg, keys[i]) && pl_config_is_read(cfg, keys[i], by)) return true;
    return pl_config_is_read(cfg, key, by);
}

static pl_status refuse_option(const pl_config *cfg, const pl_config_key *key, const char *option, pl_config_reader by,
                               pl_error *err)
{
    char text[96];
    pl_str readers = pl_str_fixed(text, sizeof text);
    if (by == PL_CONFIG_BY_TRAIN && key->readers & PL_CONFIG_BY_SAMPLES)
        return pl_fail(err, PL_E_USAGE,
                       "%s: train reads %s only for samples of text; give --sample_every too, or take it away", option,
                       key->path);
    print_readers(pl_config_is_aside(cfg, key) ? PL_CONFIG_BY_ENCODE : key->readers, &readers);
    if (pl_config_instead_of(option))
        return pl_fail(err, PL_E_USAGE, "%s: this command does not read %s (%s); %s", option, key->path, text,
                       pl_config_instead_of(option));
    return pl_fail(err, PL_E_USAGE, "%s: this command does not read %s (%s); take it away", option, key->path, text);
}

pl_status pl_config_check_options(const pl_config *cfg, pl_config_reader by, pl_error *err)
{
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++) {
        const pl_config_origin *from = pl_config_origin_at(cfg, key);
        bool by_option = from->level == PL_CONFIG_FROM_COMMAND_LINE && strncmp(from->by, "--", 2) == 0;
        if (from->is_refused) continue; /* another key of the option took it */
        if (by_option && !is_option_read(cfg, key, by)) return refuse_option(cfg, key, from->by, by, err);
    }
    return PL_OK;
}

pl_status pl_config_check_keys(const pl_config *cfg, pl_error *err)
{
    PL_TRY(check_all_used(cfg, err));
    PL_TRY(pl_config_check_space(cfg, err));
    return check_batch(cfg, err);
}
