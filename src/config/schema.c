/* sections.def read as arrays, and looking rows up. Some 200 rows: a linear search is fast enough for a config. */
#include "config/schema.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- words ---- */

#define PL_SYSTEM_ROW(id, name)
#define PL_ARCH_ROW(id, name, system) #name,
static const char *const arch_words[] = {
#include "config/systems.def"
};
#undef PL_ARCH_ROW
#define PL_ARCH_ROW(id, name, system) PL_SYSTEM_##system,
static const pl_config_system arch_systems[] = {
#include "config/systems.def"
};
#undef PL_SYSTEM_ROW
#undef PL_ARCH_ROW

#define WORD(constant, word) word,
#define BIT(constant, word)  word,
#define WORDS(name, ...)     static const char *const name##_words[] = {__VA_ARGS__};
#define BITS(name, ...)      static const char *const name##_words[] = {__VA_ARGS__};
#define WORDS_OR_PATH(name, file, ...)                                                                                 \
    static const char *const name##_words[] = {__VA_ARGS__};                                                           \
    _Static_assert(sizeof(pl_config_##name) == sizeof(pl_config_name_or_path), "it is read and written as one");
#define FIELD(record, member, room, word) {.name = word, .offset = offsetof(pl_config_##record, member), .bytes = room},
#define RECORD(name, most, ...)                                                                                        \
    static const pl_config_field name##_fields[] = {__VA_ARGS__};                                                      \
    _Static_assert(offsetof(pl_config_##name##s, item) == sizeof(int64_t), "it is read and written as one");
#include "config/sections.def"

/* ---- the words that rows use ---- */

enum {
    AUTO = PL_CONFIG_FLAG_AUTO,
    NONE = PL_CONFIG_FLAG_NONE,
    ZERO_IS_AUTO = PL_CONFIG_FLAG_ZERO_IS_AUTO,
    OVER_MIN = PL_CONFIG_FLAG_OVER_MIN,
    UNDER_MAX = PL_CONFIG_FLAG_UNDER_MAX,
    NUMERICS = PL_CONFIG_FLAG_NUMERICS,
    BEGUN = PL_CONFIG_FLAG_BEGUN,
    HELD_OUT = PL_CONFIG_FLAG_HELD_OUT,
    READ_FILE = PL_CONFIG_FLAG_READ_FILE,
    WRITTEN_FILE = PL_CONFIG_FLAG_WRITTEN_FILE,
    WHOLE = PL_CONFIG_FLAG_WHOLE,
    ODD = PL_CONFIG_FLAG_ODD,
    DISTINCT = PL_CONFIG_FLAG_DISTINCT,
    NO_EFFECT = PL_CONFIG_FLAG_NO_EFFECT,
    KEPT = PL_CONFIG_FLAG_KEPT,
    LATER = PL_CONFIG_FLAG_LATER,
    SOME = PL_CONFIG_FLAG_SOME,
    LINES = PL_CONFIG_FLAG_LINES,
    PRECISION = PL_CONFIG_FLAG_PRECISION,
    FROZEN = PL_CONFIG_FLAG_FROZEN,
    WEIGHTS = PL_CONFIG_FLAG_WEIGHTS,
    ASIDE = PL_CONFIG_FLAG_ASIDE,
    UNSAID = PL_CONFIG_FLAG_UNSAID | PL_CONFIG_FLAG_LATER,
    PROMPT = PL_CONFIG_FLAG_PROMPT,
    ENCODING = PL_CONFIG_FLAG_ENCODING,
    CHUNK = PL_CONFIG_FLAG_CHUNK,
    SEQUENCES = PL_CONFIG_FLAG_SEQUENCES,
    TENSORS = PL_CONFIG_FLAG_TENSORS,
    MODEL = PL_CONFIG_FLAG_MODEL | PL_CONFIG_FLAG_NUMERICS,
};

enum {
#define PL_COMMAND_ROW(id, ...) id = PL_CONFIG_BY_##id,
#include "plimsoll/commands.def"
#undef PL_COMMAND_ROW
    SAMPLES = PL_CONFIG_BY_SAMPLES,
    EXPORT = PL_CONFIG_BY_EXPORT,
    EVERY = PL_CONFIG_BY_ANY,
};

/* Commands by what they use: a new one reads what it needs without a change in the rows of the keys. */
#define PL_COMMAND_ROW(id, name, other, typed, summary, uses) id##_USES = uses,
enum {
#include "plimsoll/commands.def"
#undef PL_COMMAND_ROW
};
#define BY_USE(id, of, wanted) | ((id##_USES & (of)) == (wanted) ? PL_CONFIG_BY_##id : 0)
enum {
    DATA = 0
#define PL_COMMAND_ROW(id, ...) BY_USE(id, PL_USES_DATA | PL_USES_RESULTS, PL_USES_DATA)
#include "plimsoll/commands.def"
#undef PL_COMMAND_ROW
    ,
    PARTS = 0
#define PL_COMMAND_ROW(id, ...) BY_USE(id, PL_USES_DATA | PL_USES_WHOLE_BATCH | PL_USES_CALIBRATION, PL_USES_DATA)
#include "plimsoll/commands.def"
#undef PL_COMMAND_ROW
    ,
    BATCHES = 0
#define PL_COMMAND_ROW(id, ...) BY_USE(id, PL_USES_DATA | PL_USES_CALIBRATION | PL_USES_RESULTS, PL_USES_DATA)
#include "plimsoll/commands.def"
#undef PL_COMMAND_ROW
    ,
    USERS = 0
#define PL_COMMAND_ROW(id, ...) BY_USE(id, PL_USES_WEIGHTS | PL_USES_GRADIENT, PL_USES_WEIGHTS)
#include "plimsoll/commands.def"
#undef PL_COMMAND_ROW
    ,
    GRADIENT = 0
#define PL_COMMAND_ROW(id, ...) BY_USE(id, PL_USES_GRADIENT, PL_USES_GRADIENT)
#include "plimsoll/commands.def"
#undef PL_COMMAND_ROW
};

#define IS(value)  (1u << (value))
#define SYSTEM(id) (1u << PL_SYSTEM_##id)
#define ARCH(id)   (1u << PL_ARCH_##id)
enum { EVERY_SYSTEM = (1 << PL_SYSTEM_COUNT) - 1, EVERY_ARCH = (1 << PL_ARCH_COUNT) - 1 };
/* Systems whose models are trained. */
enum { TRAINED = EVERY_SYSTEM & ~(SYSTEM(ROLLOUT) | SYSTEM(CAPSULES) | SYSTEM(PRETRAINED)) };

/* The four members of a pl_config_use, before those that the section excludes are removed. */
#define ALWAYS                     EVERY_SYSTEM, EVERY_ARCH, NULL, 0
#define SYSTEMS(bits)              bits, EVERY_ARCH, NULL, 0
#define ARCHS(bits)                EVERY_SYSTEM, bits, NULL, 0
#define WHEN(section, key, values) EVERY_SYSTEM, EVERY_ARCH, &pl_config_keys[PL_CONFIG_KEY_##section##_##key], values

enum {
#define SECTION(section, systems, help) SYSTEMS_OF_##section = systems,
#include "config/sections.def"
#define SECTION(section, systems, help)       ARCHS_OF_##section = EVERY_ARCH,
#define NUMBER_DIMENSION(section, archs, ...) ARCHS_OF_##section = archs,
#define WORD_DIMENSION(section, archs, ...)   ARCHS_OF_##section = archs,
#include "config/sections.def"
};

/* The default of a list. In parentheses, so that its commas do not separate arguments of the row. */
#define ITEMS(...)                                                                                                     \
    (&(const pl_config_list){.count = sizeof((double[]){__VA_ARGS__}) / sizeof(double), .item = {__VA_ARGS__}})
#define NO_ITEMS NULL

/* NAME(s) is the section's own name, or what `#define NAME_s , "outer.s"` says: then that is the second argument. */
#define SECOND(first, second, ...) second
#define SECOND_OF(...)             SECOND(__VA_ARGS__)
#define NAME(s)                    SECOND_OF(NAME_##s, #s, ~)
#define PREFIX(s)                  SECOND_OF(PREFIX_##s, NAME(s) ".", ~)

/* ---- the arrays ---- */

const pl_config_section pl_config_sections[] = {
#define SECTION(s, systems, text)                         {.name = NAME(s), .help = text},
#define DIMENSION(s, text)                                {.name = NAME(s), .help = text, .is_dimension = true},
#define WORD_DIMENSION(s, a, c, list, text)               DIMENSION(s, text)
#define NUMBER_DIMENSION(s, a, t, b, c, lo, hi, fl, text) DIMENSION(s, text)
#include "config/sections.def"
};

/* `use` comes in as four. */
#define ROW(kind, s, k, opt, fl, who, text, systems, archs, key, values)                                               \
    .section = &pl_config_sections[PL_CONFIG_SECTION_##s], .name = #k, .path = PREFIX(s) #k, .option = opt,            \
    .help = text, .type = PL_CONFIG_##kind, .flags = fl, .offset = offsetof(pl_config, s.k),                           \
    .bytes = sizeof((pl_config *)0)->s.k, .use = {SYSTEMS_OF_##s & (systems), ARCHS_OF_##s & (archs), key, values},    \
    .readers = who

const pl_config_key pl_config_keys[] = {
#define INT(s, k, opt, def, lo, hi, fl, use, by, text)                                                                 \
    {ROW(INT, s, k, opt, fl, by, text, use), .default_int = def, .min_int = lo, .max_int = hi},
#define BYTES(s, k, opt, def, lo, hi, fl, use, by, text)                                                               \
    {ROW(BYTES, s, k, opt, fl, by, text, use), .default_int = (int64_t)(def), .min_int = lo, .max_int = hi},
#define REAL(s, k, opt, def, lo, hi, fl, use, by, text)                                                                \
    {ROW(REAL, s, k, opt, fl, by, text, use), .default_real = def, .min_real = lo, .max_real = hi},
#define BOOL(s, k, opt, def, fl, use, by, text) {ROW(BOOL, s, k, opt, fl, by, text, use), .default_int = def},
#define BOOL_OR_AUTO(s, k, opt, def, fl, use, by, text)                                                                \
    {ROW(BOOL, s, k, opt, (fl) | AUTO, by, text, use), .default_int = def},
#define ENUM(s, k, opt, def, list, fl, use, by, text)                                                                  \
    {ROW(ENUM, s, k, opt, fl, by, text, use), .default_int = def, .names = list##_words,                               \
     .name_count = COUNT(list##_words)},
#define SET(s, k, opt, list, fl, use, by, text)                                                                        \
    {ROW(SET, s, k, opt, fl, by, text, use), .names = list##_words, .name_count = COUNT(list##_words)},
#define LIST(s, k, opt, def, least, most, lo, hi, fl, use, by, text)                                                   \
    {ROW(LIST, s, k, opt, fl, by, text, use),                                                                          \
     .default_list = def,                                                                                              \
     .min_items = least,                                                                                               \
     .max_items = most,                                                                                                \
     .min_real = lo,                                                                                                   \
     .max_real = hi},
#define WORD_LIST(s, k, opt, def, list, fl, use, by, text)                                                             \
    {ROW(LIST, s, k, opt, fl, by, text, use), .default_list = def,   .min_items = 1,                                   \
     .max_items = PL_CONFIG_LIST_ITEMS,       .names = list##_words, .name_count = COUNT(list##_words)},
#define TEXT(s, k, opt, fl, use, by, text)       {ROW(TEXT, s, k, opt, fl, by, text, use)},
#define NOTE(s, k, opt, fl, use, by, text)       {ROW(TEXT, s, k, opt, fl, by, text, use)},
#define PATH(s, k, opt, word, fl, use, by, text) {ROW(PATH, s, k, opt, fl, by, text, use), .empty_word = word},
#define NAME_OR_PATH(s, k, opt, def, list, fl, use, by, text)                                                          \
    {ROW(NAME_OR_PATH, s, k, opt, fl, by, text, use), .default_int = def, .names = list##_words,                       \
     .name_count = COUNT(list##_words)},
#define RECORDS(of, k, record, fl, use, by, text)                                                                      \
    {ROW(RECORDS, of, k, NULL, fl, by, text, use),                                                                     \
     .min_items = 1,                                                                                                   \
     .max_items = COUNT(((pl_config_##record##s *)0)->item),                                                           \
     .fields = record##_fields,                                                                                        \
     .field_count = COUNT(record##_fields),                                                                            \
     .item_bytes = sizeof(pl_config_##record)},
#include "config/sections.def"
};

const pl_config_system_default pl_config_defaults[] = {
#define DEFAULT(systems, s, k, value)                                                                                  \
    {systems, PL_CONFIG_KEY_##s##_##k, .number = (int64_t)(value), .real = (double)(value)},
#include "config/sections.def"
};

const pl_config_what_if pl_config_what_ifs[] = {
#define WHAT_IF(s, k, how, value, effect)                                                                              \
    {PL_CONFIG_KEY_##s##_##k, PL_CONFIG_HOW_##how, value, PL_CONFIG_EFFECT_##effect},
#include "config/sections.def"
};

const pl_config_what_if pl_config_smaller[] = {
#define SMALLER(s, k, value, effect) {PL_CONFIG_KEY_##s##_##k, PL_CONFIG_HOW_WORD, value, PL_CONFIG_EFFECT_##effect},
#include "config/sections.def"
};

const pl_config_key_id pl_config_shares[] = {
#define SHARE(s, k) PL_CONFIG_KEY_##s##_##k,
#include "config/sections.def"
};

_Static_assert(sizeof(pl_config_arch) == sizeof(int), "enums are read and written as int");
_Static_assert(sizeof(pl_config_switch) != sizeof(bool), "a key that is true, false or auto is told by its size");

/* ---- looking up ---- */

const pl_config_key *pl_config_find(const char *path)
{
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++)
        if (strcmp(key->path, path) == 0) return key;
    return NULL;
}

const pl_config_key *pl_config_find_for(const pl_config *c, const char *path)
{
    static const struct {
        const char *name;
        pl_config_flag flag;
    } tags[] = {{"<precision>", PL_CONFIG_FLAG_PRECISION}, {"<frozen>", PL_CONFIG_FLAG_FROZEN},
                {"<weights>", PL_CONFIG_FLAG_WEIGHTS},     {"<prompt>", PL_CONFIG_FLAG_PROMPT},
                {"<encoding>", PL_CONFIG_FLAG_ENCODING},   {"<chunk>", PL_CONFIG_FLAG_CHUNK},
                {"<sequences>", PL_CONFIG_FLAG_SEQUENCES}};
    if (path[0] != '<') return pl_config_find(path);
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END && strcmp(path, tags[i].name) == 0;
             key++)
            if (key->flags & (uint32_t)tags[i].flag && pl_config_is_used(c, key)) return key;
    return NULL;
}

const pl_config_section *pl_config_find_section(const char *name, size_t bytes)
{
    for (int i = 0; i < PL_CONFIG_SECTION_COUNT; i++)
        if (strlen(pl_config_sections[i].name) == bytes && memcmp(pl_config_sections[i].name, name, bytes) == 0)
            return &pl_config_sections[i];
    return NULL;
}

bool pl_config_holds_sections(const char *name, size_t bytes)
{
    for (int i = 0; i < PL_CONFIG_SECTION_COUNT; i++)
        if (strncmp(pl_config_sections[i].name, name, bytes) == 0 && pl_config_sections[i].name[bytes] == '.')
            return true;
    return false;
}

uint32_t pl_config_depth(const char *name)
{
    uint32_t words = *name != 0;
    for (; *name; name++) words += *name == '.';
    return words;
}

const char *pl_config_level_of(const char *name, uint32_t i, size_t *bytes)
{
    while (i--) name = strchr(name, '.') + 1;
    *bytes = strcspn(name, ".");
    return name;
}

uint32_t pl_config_shared_levels(const char *a, const char *b)
{
    uint32_t shared = 0;
    for (; shared < pl_config_depth(a) && shared < pl_config_depth(b); shared++) {
        size_t x, y;
        const char *left = pl_config_level_of(a, shared, &x), *right = pl_config_level_of(b, shared, &y);
        if (x != y || memcmp(left, right, x) != 0) break;
    }
    return shared;
}

/* Every system may have keys outside of any section, in a nameless one of its own. */
static bool is_same_place(const pl_config_section *a, const pl_config_section *b)
{
    return a == b || (!a->name[0] && !b->name[0]);
}

const pl_config_key *pl_config_find_in(const pl_config_section *section, const char *name)
{
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++)
        if ((!section || is_same_place(key->section, section)) && strcmp(key->name, name) == 0) return key;
    return NULL;
}

const pl_config_system_default *pl_config_find_default(const pl_config_key *key, pl_config_system system)
{
    for (const pl_config_system_default *d = pl_config_defaults; d < PL_CONFIG_DEFAULTS_END; d++)
        if (&pl_config_keys[d->key] == key && d->systems & IS(system)) return d;
    return NULL;
}

pl_config_origin *pl_config_origin_of(pl_config *cfg, const pl_config_key *key)
{
    return &cfg->origins[key - pl_config_keys];
}

const pl_config_origin *pl_config_origin_at(const pl_config *cfg, const pl_config_key *key)
{
    return &cfg->origins[key - pl_config_keys];
}

const void *pl_config_value_of(const pl_config *cfg, const pl_config_key *key)
{
    return (const char *)cfg + key->offset;
}

bool pl_config_value_equal(const pl_config *a, const pl_config *b, const pl_config_key *key)
{
    return pl_config_same_value(key, pl_config_value_of(a, key), pl_config_value_of(b, key));
}

bool pl_config_is_default(const pl_config *cfg, const pl_config_key *key)
{
    pl_config_value by_default;
    if (key->type == PL_CONFIG_RECORDS) return pl_config_record_count(pl_config_value_of(cfg, key)) == 0;
    pl_config_default_value(key, pl_config_system_of(cfg), &by_default);
    return pl_config_same_value(key, pl_config_value_of(cfg, key), &by_default);
}

/* ---- who uses a key ---- */

pl_config_system pl_config_system_of(const pl_config *cfg) { return arch_systems[cfg->model.arch]; }

pl_config_system pl_config_first_system(void)
{
    return arch_systems[pl_config_keys[PL_CONFIG_KEY_model_arch].default_int];
}

uint32_t pl_config_archs_in(uint32_t systems)
{
    uint32_t archs = 0;
    for (int arch = 0; arch < PL_ARCH_COUNT; arch++)
        if (systems >> arch_systems[arch] & 1) archs |= IS(arch);
    return archs;
}

uint32_t pl_config_archs_of(const pl_config_key *key) { return pl_config_archs_in(key->use.systems) & key->use.archs; }

uint32_t pl_config_archs_of_section(const pl_config_section *section)
{
    uint32_t archs = 0;
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++)
        if (key->section == section) archs |= pl_config_archs_of(key);
    return archs;
}

const pl_config_key *pl_config_unused_by(const pl_config *cfg, const pl_config_key *key)
{
    const pl_config_key *by = key->use.by;
    int value; /* the enum, or the kind that a NAME_OR_PATH begins with */
    if (!(pl_config_archs_of(key) & IS(cfg->model.arch))) return &pl_config_keys[PL_CONFIG_KEY_model_arch];
    if (!by) return NULL;
    const pl_config_key *above = pl_config_unused_by(cfg, by);
    if (above) return above;
    memcpy(&value, pl_config_value_of(cfg, by), sizeof value);
    return key->use.values & IS(value) ? NULL : by;
}

bool pl_config_is_used(const pl_config *cfg, const pl_config_key *key) { return !pl_config_unused_by(cfg, key); }

static bool is_trained(const pl_config *cfg) { return TRAINED >> pl_config_system_of(cfg) & 1; }

bool pl_config_counts(const pl_config *cfg, const pl_config_key *key)
{
    return pl_config_is_used(cfg, key) && (!is_trained(cfg) || key->readers & PL_CONFIG_BY_TRAIN);
}

bool pl_config_is_aside(const pl_config *cfg, const pl_config_key *key)
{
    return key->flags & PL_CONFIG_FLAG_ASIDE && is_trained(cfg);
}

bool pl_config_is_read(const pl_config *cfg, const pl_config_key *key, pl_config_reader by)
{
    if (key->readers & by) return by == PL_CONFIG_BY_ENCODE || !pl_config_is_aside(cfg, key);
    return by == PL_CONFIG_BY_TRAIN && key->readers & PL_CONFIG_BY_SAMPLES && cfg->train.sample_every > 0;
}

const pl_config_key *pl_config_find_held_out(const pl_config *cfg)
{
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++)
        if (key->flags & PL_CONFIG_FLAG_HELD_OUT && pl_config_is_used(cfg, key)) return key;
    return NULL;
}

const pl_config_key *pl_config_find_nothing_held_out(const pl_config *cfg)
{
    const pl_config_key *key = pl_config_find_held_out(cfg);
    pl_config_value value = {0};
    if (!key) return NULL;
    memcpy(&value, pl_config_value_of(cfg, key), key->bytes);
    return (key->type == PL_CONFIG_REAL ? value.real == 0 : value.number == 0) ? key : NULL;
}

const char *pl_config_path_at(const pl_config *cfg, const pl_config_key *key)
{
    const char *at = (const char *)cfg + key->offset;
    int kind;
    if (key->type == PL_CONFIG_PATH) return at;
    if (key->type != PL_CONFIG_NAME_OR_PATH) return NULL;
    memcpy(&kind, at, sizeof kind);
    return kind == (int)key->name_count ? at + offsetof(pl_config_name_or_path, path) : NULL;
}

char *pl_config_path_of(pl_config *cfg, const pl_config_key *key) { return (char *)pl_config_path_at(cfg, key); }
