/* schema.def read as an array, and looking rows up. Some 70 rows: a linear search is fast enough for a config. */
#include "config/schema.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

#define PL_SYSTEM_ROW(id, name)
#define PL_ARCH_ROW(id, name, system) #name,
static const char *const arch_names[] = {
#include "config/systems.def"
};
#undef PL_ARCH_ROW
#define PL_ARCH_ROW(id, name, system) PL_SYSTEM_##system,
static const pl_config_system arch_systems[] = {
#include "config/systems.def"
};
#undef PL_SYSTEM_ROW
#undef PL_ARCH_ROW
static const char *const norm_names[] = {"layer_norm", "rms_norm"};
static const char *const activation_names[] = {"gelu", "silu", "relu", "tanh"};
static const char *const tokenizer_names[] = {"bpe", "bytes", "chars"};
static const char *const schedule_names[] = {"cosine", "linear", "constant", "plateau"};
static const char *const checkpointing_names[] = {"off", "auto", "full"};
static const char *const optimizer_names[] = {"adamw"};
static const char *const mixed_names[] = {"auto", "off", "bf16", "fp16"};
static const char *const early_names[] = {"auto", "on", "off"};
static const char *const optimizer_state_names[] = {"auto", "f32", "bf16", "8bit"};
static const char *const huge_pages_names[] = {"auto", "off"};
static const char *const isa_names[] = {"auto", "ref", "baseline", "avx2", "avx512", "avx512_bf16"};
static const char *const progress_names[] = {"auto", "bar", "plain", "json"};
static const char *const allow_names[] = {"optimizer_bf16", "optimizer_8bit", "bf16", "fp16"};
static const char *const dump_names[] = {"model", "grad", "rewrite", "plan", "program"};
static const char *const log_names[] = {"error", "warn", "info", "debug"};

enum {
    AUTO = PL_CONFIG_FLAG_AUTO,
    NONE = PL_CONFIG_FLAG_NONE,
    ZERO_IS_AUTO = PL_CONFIG_FLAG_ZERO_IS_AUTO,
    OVER_MIN = PL_CONFIG_FLAG_OVER_MIN,
    UNDER_MAX = PL_CONFIG_FLAG_UNDER_MAX,
    NUMERICS = PL_CONFIG_FLAG_NUMERICS,
    BEGUN = PL_CONFIG_FLAG_BEGUN,
    MODEL = PL_CONFIG_FLAG_MODEL | PL_CONFIG_FLAG_NUMERICS,
};

enum {
    TRAIN = PL_CONFIG_BY_TRAIN,
    EVAL = PL_CONFIG_BY_EVALUATE,
    GENERATE = PL_CONFIG_BY_GENERATE,
    VERIFY = PL_CONFIG_BY_GRADIENTS,
    SAMPLES = PL_CONFIG_BY_SAMPLES,
    EVERY = PL_CONFIG_BY_ANY,
};

/* As initialisers: the rows name them by token. */
#define INIT_USE_ANY                                                                                                   \
    {                                                                                                                  \
        NULL, 0                                                                                                        \
    }
#define INIT_USE_GPT                                                                                                   \
    {                                                                                                                  \
        "model.arch", 1u << PL_ARCH_GPT                                                                                \
    }
#define INIT_USE_MLP                                                                                                   \
    {                                                                                                                  \
        "model.arch", 1u << PL_ARCH_MLP                                                                                \
    }
#define INIT_USE_BPE                                                                                                   \
    {                                                                                                                  \
        "data.tokenizer", 1u << PL_CONFIG_TOKENIZER_BPE                                                                \
    }
#define INIT_USE_PLATEAU                                                                                               \
    {                                                                                                                  \
        "train.schedule", 1u << PL_SCHEDULE_PLATEAU                                                                    \
    }
#define INIT_USE_DECAY                                                                                                 \
    {                                                                                                                  \
        "train.schedule", 1u << PL_SCHEDULE_COSINE | 1u << PL_SCHEDULE_LINEAR | 1u << PL_SCHEDULE_PLATEAU              \
    }

#define FIELD(s, k) ((pl_config *)0)->s.k
#define ROW(kind, s, k, opt, fl, when, who, text)                                                                      \
    .section = #s, .name = #k, .path = #s "." #k, .option = opt, .help = text, .type = PL_CONFIG_##kind, .flags = fl,  \
    .offset = offsetof(pl_config, s.k), .bytes = sizeof FIELD(s, k), .use = INIT_##when, .readers = who

/* The field's C type is what the row's kind reads and writes: anything else does not compile. */
#define CHECKED(s, k, type, value) _Generic(FIELD(s, k), type : (value))

#define SECTION(name, text)
#define INT(s, k, opt, def, lo, hi, fl, when, who, text)                                                               \
    {ROW(INT, s, k, opt, fl, when, who, text), .default_int = CHECKED(s, k, int64_t, def), .min_int = lo,              \
     .max_int = hi},
#define BYTES(s, k, opt, def, lo, hi, fl, when, who, text)                                                             \
    {ROW(BYTES, s, k, opt, fl, when, who, text), .default_int = (int64_t)CHECKED(s, k, uint64_t, def), .min_int = lo,  \
     .max_int = hi},
#define REAL(s, k, opt, def, lo, hi, fl, when, who, text)                                                              \
    {ROW(REAL, s, k, opt, fl, when, who, text), .default_real = CHECKED(s, k, double, def), .min_real = lo,            \
     .max_real = hi},
#define BOOL(s, k, opt, def, fl, when, who, text)                                                                      \
    {ROW(BOOL, s, k, opt, fl, when, who, text), .default_int = CHECKED(s, k, bool, def)},
#define BOOL_OR_AUTO(s, k, opt, def, fl, when, who, text)                                                              \
    {ROW(BOOL, s, k, opt, (fl) | AUTO, when, who, text), .default_int = CHECKED(s, k, pl_config_switch, def)},
#define ENUM(s, k, opt, def, list, fl, when, who, text)                                                                \
    {ROW(ENUM, s, k, opt, fl, when, who, text), .default_int = def, .names = list, .name_count = COUNT(list)},
#define SET(s, k, opt, list, fl, when, who, text)                                                                      \
    {ROW(SET, s, k, opt, fl, when, who, text), .names = list, .name_count = CHECKED(s, k, uint32_t, COUNT(list))},
#define TEXT(s, k, opt, fl, when, who, text)       {ROW(TEXT, s, k, opt, fl, when, who, text)},
#define PATH(s, k, opt, word, fl, when, who, text) {ROW(PATH, s, k, opt, fl, when, who, text), .empty_word = word},
#define NAME_OR_PATH(s, k, opt, def, list, fl, when, who, text)                                                        \
    {ROW(NAME_OR_PATH, s, k, opt, fl, when, who, text), .default_int = def, .names = list,                             \
     .name_count = CHECKED(s, k, pl_config_tokenizer, COUNT(list))},

const pl_config_key pl_config_keys[] = {
#include "config/schema.def"
};
const size_t pl_config_key_count = COUNT(pl_config_keys);
_Static_assert(COUNT(pl_config_keys) <= PL_CONFIG_KEYS_MAX, "raise PL_CONFIG_KEYS_MAX");
_Static_assert(sizeof(pl_config_arch) == sizeof(int), "enums are read and written as int");
_Static_assert(sizeof(pl_config_switch) != sizeof(bool), "a key that is true, false or auto is told by its size");

#undef SECTION
#undef INT
#undef BYTES
#undef REAL
#undef BOOL
#undef BOOL_OR_AUTO
#undef ENUM
#undef SET
#undef TEXT
#undef PATH
#undef NAME_OR_PATH
#define SECTION(section_name, text) {.name = #section_name, .help = text},
#define INT(...)
#define BYTES(...)
#define REAL(...)
#define BOOL(...)
#define BOOL_OR_AUTO(...)
#define ENUM(...)
#define SET(...)
#define TEXT(...)
#define PATH(...)
#define NAME_OR_PATH(...)

const pl_config_section pl_config_sections[] = {
#include "config/schema.def"
};
const size_t pl_config_section_count = COUNT(pl_config_sections);

pl_config_system pl_config_system_of(const pl_config *cfg) { return arch_systems[cfg->model.arch]; }

const pl_config_key *pl_config_find(const char *path)
{
    for (size_t i = 0; i < pl_config_key_count; i++)
        if (strcmp(pl_config_keys[i].path, path) == 0) return &pl_config_keys[i];
    return NULL;
}

const pl_config_key *pl_config_find_in(const char *section, const char *name)
{
    for (size_t i = 0; i < pl_config_key_count; i++) {
        const pl_config_key *key = &pl_config_keys[i];
        if ((!section || strcmp(key->section, section) == 0) && strcmp(key->name, name) == 0) return key;
    }
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

bool pl_config_is_used(const pl_config *cfg, const pl_config_key *key)
{
    if (!key->use.path) return true;
    int value; /* the enum, or the kind that a NAME_OR_PATH begins with */
    memcpy(&value, (const char *)cfg + pl_config_find(key->use.path)->offset, sizeof value);
    return key->use.mask >> value & 1;
}

bool pl_config_is_read(const pl_config *cfg, const pl_config_key *key, pl_config_reader by)
{
    if (key->readers & by) return true;
    return by == PL_CONFIG_BY_TRAIN && key->readers & PL_CONFIG_BY_SAMPLES && cfg->train.sample_every > 0;
}

const char *pl_config_path_at(const pl_config *cfg, const pl_config_key *key)
{
    const char *at = (const char *)cfg + key->offset;
    int kind;
    if (key->type == PL_CONFIG_PATH) return at;
    if (key->type != PL_CONFIG_NAME_OR_PATH) return NULL;
    memcpy(&kind, at, sizeof kind);
    return kind == (int)key->name_count ? at + offsetof(pl_config_tokenizer, path) : NULL;
}

char *pl_config_path_of(pl_config *cfg, const pl_config_key *key) { return (char *)pl_config_path_at(cfg, key); }
