/* Defaults, setting one key, where a value came from, and what follows from several keys. */
#include "config/config.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "config/schema.h"

pl_config *pl_config_create(void)
{
    pl_config *c = pl_alloc(1, sizeof *c);
    if (c) pl_config_default(c);
    return c;
}

pl_config *pl_config_copy(const pl_config *from)
{
    pl_config *c = pl_alloc(1, sizeof *c);
    if (c) *c = *from;
    return c;
}

void pl_config_destroy(pl_config *c) { pl_free(c); }

int64_t pl_config_feed_forward(const pl_config *cfg)
{
    return cfg->model.feed_forward == PL_CONFIG_AUTO ? 4 * cfg->model.width : cfg->model.feed_forward;
}

int64_t pl_config_batch(const pl_config *cfg) { return cfg->train.batch_size * cfg->train.gradient_accumulation_steps; }

void pl_config_default(pl_config *cfg)
{
    memset(cfg, 0, sizeof *cfg);
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++)
        pl_config_default_value(key, pl_config_system_of(cfg), (char *)cfg + key->offset);
}

/* Keys that nobody has set have the defaults of their system, which model.arch decides: it has just changed. */
static void follow_system(pl_config *cfg)
{
    for (const pl_config_system_default *d = pl_config_defaults; d < PL_CONFIG_DEFAULTS_END; d++) {
        const pl_config_key *key = &pl_config_keys[d->key];
        if (pl_config_origin_at(cfg, key)->level == PL_CONFIG_FROM_DEFAULT)
            pl_config_default_value(key, pl_config_system_of(cfg), (char *)cfg + key->offset);
    }
}

/* By a file, a variable or an option: what a program sets by itself says nothing about the arch. */
static bool is_said(const pl_config_origin *from)
{
    return from->level != PL_CONFIG_FROM_DEFAULT &&
           (from->level != PL_CONFIG_FROM_COMMAND_LINE || strncmp(from->by, "--", 2) == 0);
}

/* Where model.arch is not set: the default, or, when its system does not read some key that was set, the first arch of
 * the one system that reads all of them. It depends on what was set, not on the order. */
static pl_config_arch implied_arch(const pl_config *cfg)
{
    uint32_t archs = (1u << PL_ARCH_COUNT) - 1;
    const pl_config_arch by_default = (pl_config_arch)pl_config_keys[PL_CONFIG_KEY_model_arch].default_int;
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++)
        if (is_said(pl_config_origin_at(cfg, key))) archs &= pl_config_archs_that_read(cfg, key);
    if (!archs || archs & pl_config_archs_in(1u << pl_config_first_system())) return by_default;
    const pl_config_arch first = (pl_config_arch)__builtin_ctz(archs);
    for (pl_config_system system = 0; system < PL_SYSTEM_COUNT; system++) {
        const uint32_t own = pl_config_archs_in(1u << system);
        if (own >> first & 1) return archs & ~own ? by_default : first;
    }
    return by_default;
}

/* After any key was set: updates what depends on the system. */
static void follow_keys(pl_config *cfg, const pl_config_origin *set, pl_config_system before)
{
    if (is_said(set) &&
        pl_config_origin_at(cfg, &pl_config_keys[PL_CONFIG_KEY_model_arch])->level == PL_CONFIG_FROM_DEFAULT)
        cfg->model.arch = implied_arch(cfg);
    if (pl_config_system_of(cfg) != before) follow_system(cfg);
}

static bool is_held(const pl_config *cfg, const pl_config_key *key, const pl_config_origin *origin)
{
    return pl_config_origin_at(cfg, key)->level > origin->level;
}

pl_status pl_config_assign(pl_config *cfg, const pl_config_key *key, pl_config_scalar s, const pl_config_origin *origin,
                           const char *where, pl_error *err)
{
    pl_config_value ignored;
    const pl_config_system before = pl_config_system_of(cfg);
    if (is_held(cfg, key, origin)) return pl_config_parse_value(key, s, &ignored, where, err);
    PL_TRY(pl_config_parse_value(key, s, (char *)cfg + key->offset, where, err));
    *pl_config_origin_of(cfg, key) = *origin;
    follow_keys(cfg, origin, before);
    return PL_OK;
}

void pl_config_note_refused(pl_config *cfg, const pl_config_key *key, pl_config_level level, const char *by)
{
    pl_config_origin from = {.level = level, .is_refused = true};
    if (pl_config_origin_at(cfg, key)->level > level) return;
    snprintf(from.by, sizeof from.by, "%s", by);
    *pl_config_origin_of(cfg, key) = from;
}

void pl_config_assign_items(pl_config *cfg, const pl_config_key *key, const void *value, const pl_config_origin *origin)
{
    if (is_held(cfg, key, origin)) return;
    memmove((char *)cfg + key->offset, value, key->bytes);
    *pl_config_origin_of(cfg, key) = *origin;
    follow_keys(cfg, origin, pl_config_system_of(cfg));
}

/* The path that was probably meant, or NULL. In a section that exists only the key is compared, with the section's
 * keys: the common beginning would make everything look alike. */
static const char *nearest_path(const char *path)
{
    const char *dot = strrchr(path, '.'), *name = dot ? dot + 1 : path, *nearest = NULL;
    const pl_config_section *section = dot ? pl_config_find_section(path, (size_t)(dot - path)) : NULL;
    const pl_config_key *same_name = pl_config_find_in(NULL, name);
    size_t best = SIZE_MAX;
    if (same_name) return same_name->path; /* the section is wrong, or missing */
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++) {
        if (section && key->section != section) continue;
        if (pl_nearer(section ? name : path, section ? key->name : key->path, &best)) nearest = key->path;
    }
    return nearest;
}

/* "unknown key "model.layer"; did you mean "model.layers"?" */
static pl_status unknown_path(const char *path, const char *origin, pl_error *err)
{
    char shown[64];
    const pl_config_section *section = pl_config_find_section(path, strlen(path));
    for (const pl_config_key *key = pl_config_keys; section && key < PL_CONFIG_KEYS_END; key++)
        if (key->section == section)
            return pl_fail(err, PL_E_CONFIG, "%s: %s is a section; set one of its keys, such as %s", origin, path,
                           key->path);
    const char *near = nearest_path(path);
    pl_config_shown(path, strlen(path), shown);
    if (near) return pl_fail(err, PL_E_CONFIG, "%s: unknown key \"%s\"; did you mean \"%s\"?", origin, shown, near);
    return pl_fail(err, PL_E_CONFIG, "%s: unknown key \"%s\"; a key is written section.key, such as train.batch_size",
                   origin, shown);
}

pl_status pl_config_set(pl_config *cfg, const char *path, const char *value, const char *origin, pl_error *err)
{
    const pl_config_key *key = pl_config_find(path);
    const pl_config_alias *alias = key ? NULL : pl_config_find_alias_at(path);
    if (alias && alias->key && !alias->means) key = alias->key;
    if (!key && alias) return pl_fail(err, PL_E_CONFIG, "%s: \"%s\" is no key here: %s", origin, path, alias->help);
    if (!key) return unknown_path(path, origin, err);
    pl_config_origin from = {.level = PL_CONFIG_FROM_COMMAND_LINE};
    snprintf(from.by, sizeof from.by, "%s", origin);
    return pl_config_assign(cfg, key, (pl_config_scalar){value, strlen(value), PL_CONFIG_RAW}, &from, origin, err);
}

/* Steps override epochs from a source of equal strength; but --epochs overrides the steps of the file. */
pl_status pl_config_settle(pl_config *cfg, pl_error *err)
{
    const pl_config_origin epochs = *pl_config_origin_at(cfg, pl_config_find("train.epochs"));
    const pl_config_level steps = pl_config_origin_at(cfg, pl_config_find("train.steps"))->level;
    if (steps == PL_CONFIG_FROM_DEFAULT || epochs.level <= steps) return PL_OK;
    return pl_config_set(cfg, "train.steps", "auto", epochs.by, err);
}

bool pl_config_equal(const pl_config *a, const pl_config *b)
{
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++)
        if (!pl_config_value_equal(a, b, key) && !pl_config_is_meant_for_another(a, key) &&
            !pl_config_is_meant_for_another(b, key))
            return false;
    return true;
}

const char *pl_config_where(const pl_config *cfg, const char *path, char *buf, size_t room)
{
    const pl_config_key *key = pl_config_find(path);
    const pl_config_origin *from = key ? pl_config_origin_at(cfg, key) : NULL;
    if (!from || from->level == PL_CONFIG_FROM_DEFAULT)
        snprintf(buf, room, "the default");
    else if (from->level == PL_CONFIG_FROM_FILE)
        snprintf(buf, room, "%s:%u:%u", cfg->file, from->line, from->column);
    else
        snprintf(buf, room, "%s", from->by);
    return buf;
}

const char *pl_config_option_of(const char *path)
{
    const pl_config_key *key = pl_config_find(path);
    return key ? key->option : NULL;
}

bool pl_config_is_set(const pl_config *cfg, const char *path)
{
    const pl_config_key *key = pl_config_find(path);
    return key && pl_config_origin_at(cfg, key)->level != PL_CONFIG_FROM_DEFAULT;
}

bool pl_config_is_option(const pl_config *cfg, const char *path)
{
    const pl_config_key *key = pl_config_find(path);
    return key && pl_config_origin_at(cfg, key)->level == PL_CONFIG_FROM_COMMAND_LINE;
}

pl_status pl_config_require(const pl_config *cfg, const char *path, const char *command, pl_error *err)
{
    const pl_config_key *key = pl_config_find(path);
    const char *file = cfg->file, *colon = file[0] ? ": " : "";
    if (!key || (key->type != PL_CONFIG_TEXT && key->type != PL_CONFIG_PATH && key->type != PL_CONFIG_RECORDS))
        return pl_fail(err, PL_E_INTERNAL, "pl_config_require: \"%s\" is not a text or a path of the schema", path);
    if (key->type == PL_CONFIG_RECORDS && pl_config_record_count(pl_config_value_of(cfg, key))) return PL_OK;
    if (key->type == PL_CONFIG_RECORDS)
        return pl_fail(err, PL_E_CONFIG, "%s%s%s needs %s: write \"%s:\" in the config file and under it \"- %s: …\"",
                       file, colon, command, path, path, key->fields[0].name);
    if (((const char *)cfg)[key->offset]) return PL_OK;
    if (!key->section->name[0])
        return pl_fail(err, PL_E_CONFIG, "%s%s%s needs %s: write \"%s: …\" in the config file, or give `%s` …", file,
                       colon, command, path, path, path);
    return pl_fail(err, PL_E_CONFIG, "%s%s%s needs %s: write \"%s: …\" under %s in the config file, or give `%s` …",
                   file, colon, command, path, key->name, key->section->name, path);
}

/* Whether the path contains a folder of this name. */
static bool has_folder(const char *path, const char *name)
{
    const size_t bytes = strlen(name);
    for (; *path; path += strspn(path, "/")) {
        const size_t here = strcspn(path, "/");
        if (here == bytes && memcmp(path, name, bytes) == 0) return true;
        path += here;
    }
    return false;
}

pl_status pl_config_run_folder(const pl_config *cfg, char *path, size_t room, pl_error *err)
{
    int needed;
    const char *save_name =
        pl_config_is_used(cfg, &pl_config_keys[PL_CONFIG_KEY_clouds_save_name]) ? cfg->clouds.save_name : "";
    if (cfg->run.out[0]) {
        const bool in_it = save_name[0] && !has_folder(cfg->run.out, save_name);
        needed = snprintf(path, room, "%s%s%s", cfg->run.out, in_it ? "/" : "", in_it ? save_name : "");
    } else if (save_name[0]) {
        needed = snprintf(path, room, "runs/%s", save_name);
    } else {
        const char *slash = strrchr(cfg->file, '/'), *name = slash ? slash + 1 : cfg->file;
        const char *dot = strrchr(name, '.');
        size_t bytes = dot && dot > name ? (size_t)(dot - name) : strlen(name);
        if (bytes == 0) name = "plimsoll", bytes = strlen(name);
        needed = snprintf(path, room, "runs/%.*s", (int)bytes, name);
    }
    if (needed < 0 || (size_t)needed >= room)
        return pl_fail(err, PL_E_USAGE,
                       "the name of the run's folder is longer than %zu bytes; give a shorter `run.out`", room - 1);
    return PL_OK;
}

pl_status pl_config_run_path(const pl_config *cfg, const char *name, char path[PL_FILE_PATH_MAX], pl_error *err)
{
    char folder[PL_FILE_PATH_MAX];
    PL_TRY(pl_config_run_folder(cfg, folder, sizeof folder, err));
    return pl_path_join(path, PL_FILE_PATH_MAX, folder, name, err);
}

pl_isa pl_config_find_isa(const pl_config *cfg)
{
    static const pl_isa isas[] = {[PL_CONFIG_ISA_REF] = PL_ISA_REF,
                                  [PL_CONFIG_ISA_BASELINE] = PL_ISA_BASELINE,
                                  [PL_CONFIG_ISA_AVX2] = PL_ISA_AVX2,
                                  [PL_CONFIG_ISA_AVX512] = PL_ISA_AVX512,
                                  [PL_CONFIG_ISA_AVX512_BF16] = PL_ISA_AVX512_BF16,
                                  [PL_CONFIG_ISA_AMX] = PL_ISA_AMX};
    const pl_isa best = pl_isa_of_machine(), asked = isas[cfg->run.isa];
    if (cfg->run.isa == PL_CONFIG_ISA_AUTO) return pl_isa_fastest();
    return asked < best ? asked : best;
}

/* ---- hashes: FNV-1a over key, zero byte, value; independent of the layout of the struct and of other keys ---- */

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ ((const unsigned char *)data)[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t hash_text(uint64_t hash, const char *text) { return hash_bytes(hash, text, strlen(text) + 1); }

/* A tokenizer's file only counts as a file: its own hash says which one it is (run.json), wherever it lies. */
static uint64_t hash_value(uint64_t hash, const pl_config *cfg, const pl_config_key *key)
{
    const void *at = pl_config_value_of(cfg, key);
    uint32_t index;
    memcpy(&index, at, sizeof index);
    switch (key->type) {
    case PL_CONFIG_TEXT:
    case PL_CONFIG_PATH:
        return hash_text(hash, at);
    case PL_CONFIG_ENUM:
        return hash_text(hash, pl_config_saved_word(key, index));
    case PL_CONFIG_RECORDS:
        for (int64_t i = 0; i < pl_config_record_count(at); i++)
            for (size_t f = 0; f < key->field_count; f++)
                hash = hash_text(hash, pl_config_record_text(key, at, i, &key->fields[f]));
        return hash;
    case PL_CONFIG_NAME_OR_PATH:
        return index < key->name_count ? hash_text(hash, key->names[index]) : hash_text(hash, "a file");
    default:
        return hash_bytes(hash, at, key->bytes);
    }
}

static uint64_t hash_flagged(const pl_config *cfg, uint32_t flag)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++) {
        if (!(key->flags & flag) || !pl_config_counts(cfg, key)) continue;
        if (key->flags & PL_CONFIG_FLAG_LATER && pl_config_is_default(cfg, key)) continue;
        hash = hash_value(hash_text(hash, pl_config_saved_path(key)), cfg, key);
    }
    return hash;
}

int pl_config_sequences(const pl_config *c)
{
    enum { SEVERAL = 8 };
    const int usual = c->generate.prompts[0] ? SEVERAL : 1;
    return c->generate.batch == PL_CONFIG_AUTO ? usual : (int)c->generate.batch;
}

uint64_t pl_config_hash_model(const pl_config *cfg) { return hash_flagged(cfg, PL_CONFIG_FLAG_MODEL); }
uint64_t pl_config_hash_numerics(const pl_config *cfg) { return hash_flagged(cfg, PL_CONFIG_FLAG_NUMERICS); }
