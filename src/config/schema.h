/* The schema table as data. Private to config/ and its tests. */
#ifndef PL_CONFIG_SCHEMA_H
#define PL_CONFIG_SCHEMA_H

#include "config/config.h"

typedef enum pl_config_type {
    PL_CONFIG_INT,
    PL_CONFIG_BYTES,
    PL_CONFIG_REAL,
    PL_CONFIG_BOOL,
    PL_CONFIG_ENUM,
    PL_CONFIG_SET,
    PL_CONFIG_TEXT,
    PL_CONFIG_PATH,
    PL_CONFIG_NAME_OR_PATH,
} pl_config_type;

typedef enum pl_config_flag {
    PL_CONFIG_FLAG_AUTO = 1 << 0,
    PL_CONFIG_FLAG_NONE = 1 << 1,
    PL_CONFIG_FLAG_ZERO_IS_AUTO = 1 << 2,
    PL_CONFIG_FLAG_OVER_MIN = 1 << 3,
    PL_CONFIG_FLAG_UNDER_MAX = 1 << 4,
    PL_CONFIG_FLAG_MODEL = 1 << 5,
    PL_CONFIG_FLAG_NUMERICS = 1 << 6,
    PL_CONFIG_FLAG_BEGUN = 1 << 7,
} pl_config_flag;

/* A key is read when the enum at `path` is one of the values in `mask` (bit i = value i); path NULL: always. */
typedef struct pl_config_use {
    const char *path;
    uint32_t mask;
} pl_config_use;

typedef struct pl_config_key {
    const char *section, *name;
    const char *path;   /* "section.name" */
    const char *option; /* or NULL */
    const char *help;
    pl_config_type type;
    uint32_t flags; /* pl_config_flag bits */
    size_t offset, bytes;
    int64_t default_int; /* INT, BYTES (its bits), BOOL, ENUM, NAME_OR_PATH */
    double default_real;
    int64_t min_int, max_int; /* INT, BYTES; both ends belong to the range */
    double min_real, max_real;
    const char *const *names; /* ENUM, SET, NAME_OR_PATH */
    size_t name_count;
    const char *empty_word; /* PATH: how "" is written */
    pl_config_use use;
    uint32_t readers; /* pl_config_reader bits */
} pl_config_key;

typedef struct pl_config_section {
    const char *name, *help;
} pl_config_section;

extern const pl_config_key pl_config_keys[];
extern const size_t pl_config_key_count;
extern const pl_config_section pl_config_sections[];
extern const size_t pl_config_section_count;

/* The row of "section.name", or NULL. */
const pl_config_key *pl_config_find(const char *path);
/* The row of `name` in `section`, or NULL; with section NULL the first row of that name. */
const pl_config_key *pl_config_find_in(const char *section, const char *name);
pl_config_origin *pl_config_origin_of(pl_config *, const pl_config_key *);
const pl_config_origin *pl_config_origin_at(const pl_config *, const pl_config_key *);
/* Whether the program reads this key under the config's other values. */
bool pl_config_is_used(const pl_config *, const pl_config_key *);
/* Whether this command does. */
bool pl_config_is_read(const pl_config *, const pl_config_key *, pl_config_reader);

/* Where the name of a file stands in the key's value; NULL when it is no such key, or says a word instead. */
char *pl_config_path_of(pl_config *, const pl_config_key *);
const char *pl_config_path_at(const pl_config *, const pl_config_key *);

/* ---- value.c: one value as text, both ways ---- */
typedef enum pl_config_style {
    PL_CONFIG_PLAIN,  /* a YAML scalar without quotes: typed by the YAML 1.2 core schema */
    PL_CONFIG_QUOTED, /* a YAML scalar with quotes, or a block: text */
    PL_CONFIG_RAW,    /* from an option or a variable: whatever the key wants */
} pl_config_style;

typedef struct pl_config_scalar {
    const char *text; /* terminated; may hold further zeros */
    size_t bytes;
    pl_config_style style;
} pl_config_scalar;

/* "256KiB": exact, reads back as the same number. */
const char *pl_config_format_size(uint64_t bytes, char *buf, size_t room);
/* Reads the text into the key's field. Errors begin with `where`. The field is unchanged on failure. */
pl_status pl_config_parse_value(pl_config *, const pl_config_key *, pl_config_scalar, const char *where, pl_error *);
/* Adds the bit called `text` to a SET's bits. */
pl_status pl_config_parse_set_item(const pl_config_key *, pl_config_scalar, uint32_t *bits, const char *where,
                                   pl_error *);
void pl_config_assign_default(pl_config *, const pl_config_key *);
bool pl_config_value_equal(const pl_config *, const pl_config *, const pl_config_key *);
/* The canonical YAML text of the value. */
void pl_config_print_value(const pl_config *, const pl_config_key *, pl_str *);
void pl_config_json_value(const pl_config *, const pl_config_key *, pl_json *);
/* Of a key that is true or false, or auto as well. */
pl_config_switch pl_config_switch_of(const pl_config *, const pl_config_key *);
/* "an integer from 1 to 64, or auto" into buf; returns buf. */
const char *pl_config_expected(const pl_config_key *, char *buf, size_t room);
/* Text of unknown origin for a message: at most 40 bytes, no control characters. Returns buf (64 bytes). */
const char *pl_config_shown(const char *text, size_t bytes, char *buf);
/* Whether the bytes are UTF-8 that YAML can carry; else *bad is the offset of the first byte that is not. */
bool pl_config_is_text(const char *text, size_t bytes, size_t *bad);
/* True for what YAML reads as "no value": nothing, ~, null. */
bool pl_config_is_null(pl_config_scalar);

/* Sets the value and its origin unless a stronger source has set it (then it is only validated). */
pl_status pl_config_assign(pl_config *, const pl_config_key *, pl_config_scalar, const pl_config_origin *,
                           const char *where, pl_error *);

#endif
