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
    PL_CONFIG_LIST,
    PL_CONFIG_TEXT,
    PL_CONFIG_PATH,
    PL_CONFIG_NAME_OR_PATH,
    PL_CONFIG_RECORDS,
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
    PL_CONFIG_FLAG_HELD_OUT = 1 << 8,
    PL_CONFIG_FLAG_READ_FILE = 1 << 9,
    PL_CONFIG_FLAG_WRITTEN_FILE = 1 << 10,
    PL_CONFIG_FLAG_WHOLE = 1 << 11,
    PL_CONFIG_FLAG_ODD = 1 << 12,
    PL_CONFIG_FLAG_DISTINCT = 1 << 13,
    PL_CONFIG_FLAG_NO_EFFECT = 1 << 14,
    PL_CONFIG_FLAG_KEPT = 1 << 15,
    PL_CONFIG_FLAG_LATER = 1 << 16,
    PL_CONFIG_FLAG_SOME = 1 << 17,
    PL_CONFIG_FLAG_LINES = 1 << 18,
    PL_CONFIG_FLAG_PRECISION = 1 << 19,
    PL_CONFIG_FLAG_FROZEN = 1 << 20,
    PL_CONFIG_FLAG_WEIGHTS = 1 << 21,
    PL_CONFIG_FLAG_ASIDE = 1 << 22,
    PL_CONFIG_FLAG_UNSAID = 1 << 23,
    PL_CONFIG_FLAG_PROMPT = 1 << 24,
    PL_CONFIG_FLAG_ENCODING = 1 << 25,
    PL_CONFIG_FLAG_CHUNK = 1 << 26,
    PL_CONFIG_FLAG_SEQUENCES = 1 << 27,
    PL_CONFIG_FLAG_TENSORS = 1 << 28,
} pl_config_flag;

/* The program reads a key when the config's system and arch are among these (bit i = number i), and, with `by`, only
 * when that key's value is among `values`. */
typedef struct pl_config_use {
    uint32_t systems, archs;
    const struct pl_config_key *by; /* an ENUM or NAME_OR_PATH, or NULL */
    uint32_t values;
} pl_config_use;

/* Sections may lie in sections: "sampling.sobol" is written under sobol:, and that under sampling:. The nameless one
 * has the keys outside of any section. */
typedef struct pl_config_section {
    const char *name, *help;
    bool is_dimension; /* part of parameter_space: its keys belong together, and help shows them in one line */
} pl_config_section;

/* A text of a record. */
typedef struct pl_config_field {
    const char *name;
    size_t offset, bytes; /* in the record */
} pl_config_field;

typedef struct pl_config_key {
    const pl_config_section *section;
    const char *name;
    const char *path;   /* "section.name"; the name alone outside of any section */
    const char *option; /* or NULL */
    const char *help;
    pl_config_type type;
    uint32_t flags; /* pl_config_flag bits */
    size_t offset, bytes;
    int64_t default_int; /* INT, BYTES (its bits), BOOL, ENUM, NAME_OR_PATH */
    double default_real;
    int64_t min_int, max_int; /* INT, BYTES; both ends belong to the range */
    double min_real, max_real;
    const pl_config_list *default_list; /* LIST; NULL: empty */
    uint32_t min_items, max_items;      /* LIST, RECORDS */
    const char *const *names;           /* ENUM, SET, NAME_OR_PATH; a LIST of words, which holds their numbers */
    size_t name_count;
    const char *empty_word;        /* PATH: how "" is written */
    const pl_config_field *fields; /* RECORDS; the first is the record's name */
    size_t field_count, item_bytes;
    pl_config_use use;
    uint32_t readers; /* pl_config_reader bits */
} pl_config_key;

/* Replaces the row's default in configs of these systems. */
typedef struct pl_config_system_default {
    uint32_t systems;
    pl_config_key_id key;
    int64_t number; /* what is not a REAL */
    double real;
} pl_config_system_default;

/* What other programs call a key, a place, a value: names.def. */
typedef struct pl_config_alias {
    const char *path;         /* "section.word"; alone: outside of any, in the key's own section, and as an option */
    const pl_config_key *key; /* NULL: nothing here, and help says what to write */
    const char *means;        /* a switch: the key's value when it is true; without a key: the only value accepted */
    const char *help;         /* "" when the key's help is enough */
    bool is_former;           /* a former name of the key: hashes and saved files keep it */
} pl_config_alias;
typedef struct pl_config_place {
    const char *path, *section;
} pl_config_place;
typedef struct pl_config_word {
    const pl_config_key *key;
    const char *word, *means; /* in upper or lower case; NULL: no value, and help says what to write */
    const char *help;
    bool is_former; /* a former word for the value, likewise */
} pl_config_word;

/* What a plan tries in addition to what was asked for (WHAT_IF, SMALLER in sections.def). */
typedef enum pl_config_how {
    PL_CONFIG_HOW_WORD,
    PL_CONFIG_HOW_TIMES,
    PL_CONFIG_HOW_LESS,
    PL_CONFIG_HOW_TEAM,
    PL_CONFIG_HOW_FILLERS
} pl_config_how;
typedef enum pl_config_effect { PL_CONFIG_EFFECT_SAME, PL_CONFIG_EFFECT_BITS, PL_CONFIG_EFFECT_OTHER } pl_config_effect;
typedef struct pl_config_what_if {
    pl_config_key_id key;
    pl_config_how how;
    const char *value;
    pl_config_effect effect;
} pl_config_what_if;

enum {
    PL_CONFIG_WHAT_IF_COUNT = 0
#define WHAT_IF(...) +1
#include "config/sections.def"
    ,
    PL_CONFIG_SMALLER_COUNT = 0
#define SMALLER(...) +1
#include "config/sections.def"
    ,
    PL_CONFIG_SHARE_COUNT = 0
#define SHARE(...) +1
#include "config/sections.def"
};
extern const pl_config_what_if pl_config_what_ifs[PL_CONFIG_WHAT_IF_COUNT];
extern const pl_config_what_if pl_config_smaller[PL_CONFIG_SMALLER_COUNT]; /* how: WORD */
extern const pl_config_key_id pl_config_shares[PL_CONFIG_SHARE_COUNT];

enum {
    PL_CONFIG_DEFAULT_COUNT = 0
#define DEFAULT(...) +1
#include "config/sections.def"
    ,
    PL_CONFIG_ALIAS_COUNT = 0
#define OTHER_NAME(...)   +1
#define FORMER_NAME(...)  +1
#define OTHER_SWITCH(...) +1
#define NO_NAME(...)      +1
#define SO_ANYWAY(...)    +1
#include "config/names.def"
    ,
    PL_CONFIG_PLACE_COUNT = 0
#define OTHER_PLACE(...) +1
#include "config/names.def"
    ,
    PL_CONFIG_WORD_COUNT = 0
#define OTHER_WORD(...)  +1
#define FORMER_WORD(...) +1
#define NO_WORD(...)     +1
#include "config/names.def"
};
extern const pl_config_system_default pl_config_defaults[PL_CONFIG_DEFAULT_COUNT];
extern const pl_config_alias pl_config_aliases[PL_CONFIG_ALIAS_COUNT];
extern const pl_config_place pl_config_places[PL_CONFIG_PLACE_COUNT];
extern const pl_config_word pl_config_other_words[PL_CONFIG_WORD_COUNT];
#define PL_CONFIG_DEFAULTS_END    (pl_config_defaults + PL_CONFIG_DEFAULT_COUNT)
#define PL_CONFIG_ALIASES_END     (pl_config_aliases + PL_CONFIG_ALIAS_COUNT)
#define PL_CONFIG_OTHER_WORDS_END (pl_config_other_words + PL_CONFIG_WORD_COUNT)

/* ---- names.c: other names, and options ---- */

/* By its path; by its word in that section, or one refused anywhere; by "section.word" in the same way. Or NULL. */
const pl_config_alias *pl_config_find_alias(const char *path);
const pl_config_alias *pl_config_find_alias_in(const pl_config_section *, const char *word);
const pl_config_alias *pl_config_find_alias_at(const char *path);
/* The section in which it stands, or NULL: outside of any. */
const pl_config_section *pl_config_section_of(const pl_config_alias *);
/* The word that stands for the key, or for what holds anyway, in a section of this name; NULL: none. */
const char *pl_config_alias_in(const pl_config_alias *, const char *section);
/* What a key and its value were called when runs were first saved, and still are in hashes, JSON and saved files. */
const char *pl_config_saved_path(const pl_config_key *);
const char *pl_config_saved_name(const pl_config_key *);
const char *pl_config_saved_word(const pl_config_key *, size_t index);
/* The keys that an option of this name sets, without its dashes, '-' and '_' being the same: those that have it, and
 * those with that name in other programs. Returns how many. */
enum { PL_CONFIG_SAME_OPTION_MAX = 8 };
typedef const pl_config_key *pl_config_key_set[PL_CONFIG_SAME_OPTION_MAX];
size_t pl_config_keys_of_option(const char *name, pl_config_key_set);
/* The same for a value's place as messages name it, "--batch-size" or "PLIMSOLL_BATCH_SIZE"; 0 for all others. */
size_t pl_config_keys_of_place(const char *where, pl_config_key_set);

/* The row with the key's own default in this system, or NULL. */
const pl_config_system_default *pl_config_find_default(const pl_config_key *, pl_config_system);

extern const pl_config_section pl_config_sections[PL_CONFIG_SECTION_COUNT];
extern const pl_config_key pl_config_keys[PL_CONFIG_KEY_COUNT];
#define PL_CONFIG_KEYS_END (pl_config_keys + PL_CONFIG_KEY_COUNT)

/* The row of "section.name", or NULL. */
const pl_config_key *pl_config_find(const char *path);
/* The same, or where `path` is "<precision>", "<frozen>", "<weights>" or "<prompt>" the key with that tag which
 * the config uses; NULL: none is. */
const pl_config_key *pl_config_find_for(const pl_config *, const char *path);
const pl_config_section *pl_config_find_section(const char *name, size_t bytes); /* or NULL */
/* Whether any section lies in one of this name, which need not be in the table itself. */
bool pl_config_holds_sections(const char *name, size_t bytes);
/* The words of a name: how many, the i-th with its length, how many two names share at the beginning. */
uint32_t pl_config_depth(const char *name);
const char *pl_config_level_of(const char *name, uint32_t i, size_t *bytes);
uint32_t pl_config_shared_levels(const char *a, const char *b);
/* The row of `name` in `section`, or NULL; with section NULL the first row of that name. */
const pl_config_key *pl_config_find_in(const pl_config_section *section, const char *name);
/* Set by an option that several rows share: the config does not use this key, but another one that it set. */
bool pl_config_is_meant_for_another(const pl_config *, const pl_config_key *);
/* Whether `where`, "--seed" or "PLIMSOLL_SEED", is the key's option and another key's as well. */
bool pl_config_is_shared(const pl_config_key *, const char *where);
pl_config_origin *pl_config_origin_of(pl_config *, const pl_config_key *);
const pl_config_origin *pl_config_origin_at(const pl_config *, const pl_config_key *);
pl_config_system pl_config_first_system(void); /* of a config that names no arch */
/* The archs of these systems, a bit for each; those that have this key. */
uint32_t pl_config_archs_in(uint32_t systems);
uint32_t pl_config_archs_of(const pl_config_key *);
uint32_t pl_config_archs_of_section(const pl_config_section *); /* that read any of its keys */
/* Those that read the key in the way it was set: by an option of several keys, by another name in a section. */
uint32_t pl_config_archs_that_read(const pl_config *, const pl_config_key *);
/* NULL when the program reads this key under the config's other values; else the key whose value keeps it from being
 * read. */
const pl_config_key *pl_config_unused_by(const pl_config *, const pl_config_key *);
bool pl_config_is_used(const pl_config *, const pl_config_key *);
/* Used, and it counts for the numbers of the config's runs: of a trained model, only what the training reads. */
bool pl_config_counts(const pl_config *, const pl_config_key *);
bool pl_config_is_aside(const pl_config *, const pl_config_key *); /* as ASIDE says in sections.def */
/* The key that says how much is held out for evaluation; NULL: the config's system has none. */
const pl_config_key *pl_config_find_held_out(const pl_config *);
/* The same key where it says 0; NULL: something is held out, or no key says how much. */
const pl_config_key *pl_config_find_nothing_held_out(const pl_config *);
/* Where the value lies. */
const void *pl_config_value_of(const pl_config *, const pl_config_key *);
bool pl_config_value_equal(const pl_config *, const pl_config *, const pl_config_key *);
bool pl_config_is_default(const pl_config *, const pl_config_key *);
/* Whether this command reads it. */
bool pl_config_is_read(const pl_config *, const pl_config_key *, pl_config_reader);

/* Where the name of a file stands in the key's value; NULL when the key has none, or a word in its place. */
char *pl_config_path_of(pl_config *, const pl_config_key *);
const char *pl_config_path_at(const pl_config *, const pl_config_key *);

/* ---- value.c: one value as text, both ways (print.c) ---- */

/* The layout of every WORDS_OR_PATH. */
typedef struct pl_config_name_or_path {
    int kind;
    pl_config_chars path;
} pl_config_name_or_path;

/* Room for the value of any key but RECORDS, which are too large for a stack. */
typedef union pl_config_value {
    int64_t number;
    double real;
    pl_config_list list;
    pl_config_name_or_path longest;
} pl_config_value;

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
/* Reads the text into the key's value. Errors begin with `where`. The value is unchanged on failure. */
pl_status pl_config_parse_value(const pl_config_key *, pl_config_scalar, void *value, const char *where, pl_error *);
/* Adds an item to the value of a SET or a LIST; after the last, checks that there are enough. */
pl_status pl_config_parse_item(const pl_config_key *, pl_config_scalar, void *value, const char *where, pl_error *);
pl_status pl_config_check_items(const pl_config_key *, const void *value, const char *where, pl_error *);
void pl_config_default_value(const pl_config_key *, pl_config_system, void *value);
bool pl_config_same_value(const pl_config_key *, const void *a, const void *b);
/* The canonical YAML text of the value. */
void pl_config_print_value(const pl_config_key *, const void *value, pl_str *);
void pl_config_print_saved_value(const pl_config_key *, const void *value, pl_str *); /* by its former word */
void pl_config_json_value(const pl_config_key *, const void *value, pl_json *);
/* "an integer from 1 to 64, or auto" into buf; returns buf. */
const char *pl_config_expected(const pl_config_key *, char *buf, size_t room);
/* Text of unknown origin for a message: at most 40 bytes, no control characters. Returns buf (64 bytes). */
const char *pl_config_shown(const char *text, size_t bytes, char *buf);
/* As the canonical YAML has it: in quotes unless no reader can take it for something else. */
void pl_config_print_text(const char *text, pl_str *);
/* Whether the bytes are UTF-8 that YAML can carry; else *bad is the offset of the first byte that is not. */
bool pl_config_is_text(const char *text, size_t bytes, size_t *bad);
/* True for what YAML reads as "no value": nothing, ~, null. */
bool pl_config_is_null(pl_config_scalar);

/* ---- config.c ---- */
/* An option or a variable of several keys gave a value that this key cannot have: an error where the key is used. */
void pl_config_note_refused(pl_config *, const pl_config_key *, pl_config_level, const char *by);
/* Settles which of two related keys wins by the strength of their sources; after each source of values. */
pl_status pl_config_settle(pl_config *, pl_error *);
/* Sets the value and its origin unless a stronger source has set it (then it is only validated). */
pl_status pl_config_assign(pl_config *, const pl_config_key *, pl_config_scalar, const pl_config_origin *,
                           const char *where, pl_error *);
/* The same for a SET or a LIST whose items have been read. */
void pl_config_assign_items(pl_config *, const pl_config_key *, const void *value, const pl_config_origin *);

/* ---- records.c: the value of a RECORDS ---- */

/* Whether a folder can have this name anywhere: letters, digits, _ and, not in front, - and . */
bool pl_config_is_folder_name(const char *text);

/* Every value begins with its count; records follow, item_bytes each. */
int64_t pl_config_record_count(const void *value);
const char *pl_config_record_text(const pl_config_key *, const void *value, int64_t i, const pl_config_field *);
/* "flights[2].iFileName", counted from 1; without a field "flights[2]". */
typedef char pl_config_record_path[96];
void pl_config_print_record_path(const pl_config_key *, int64_t i, const pl_config_field *, pl_config_record_path);
/* Writes the text into a field of the i-th record, which may be the one after the last. */
pl_status pl_config_parse_field(const pl_config_key *, int64_t i, const pl_config_field *, pl_config_scalar,
                                void *value, const char *where, pl_error *);
/* The record after the last is complete: it counts from here on. `given` has a bit for each field. */
pl_status pl_config_close_record(const pl_config_key *, uint32_t given, void *value, const char *where, pl_error *);
/* As blocks under a key `depth` levels deep; in one line. */
void pl_config_print_records(const pl_config_key *, const void *value, uint32_t depth, pl_str *);
void pl_config_print_records_in_line(const pl_config_key *, const void *value, pl_str *);
void pl_config_print_record_names(const pl_config_key *, const void *value, pl_str *);
void pl_config_json_records(const pl_config_key *, const void *value, pl_json *);
bool pl_config_same_record_names(const pl_config_key *, const void *a, const void *b);

/* ---- document.c ---- */
void pl_config_print_default(const pl_config_key *, pl_str *); /* of a config that names no arch */
/* "help (one of gelu, silu; default gelu)" */
void pl_config_describe(const pl_config_key *, pl_str *);

/* ---- load.c ---- */
/* What libyaml asks the heap for, at most, while it reads a text of so many bytes. */
uint64_t pl_config_parser_bytes(size_t text_bytes);

/* ---- space.c ---- */
/* Checks the keys of a parameter space and its rollouts together; nothing where they are not used. */
pl_status pl_config_check_space(const pl_config *, pl_error *);

/* ---- check.c ---- */
/* "gpt, mlp or clouds" */
void pl_config_print_archs(uint32_t archs, pl_str *);
/* PL_E_CONFIG for a key that is set and that the program does not read under the config's other values. */
pl_status pl_config_check_used(const pl_config *, const pl_config_key *, pl_error *);

#endif
