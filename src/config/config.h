/* The configuration of a command as plain typed values.
 *
 * One table (sections.def) has a row per key: name, type, default, range, help, long option, when it is used, what it
 * changes. The fields below, the loader, the defaults, --help, docs/config.md, the JSON Schema and the canonical
 * printing are all read off that table, so they cannot disagree. Values come from, weakest first: the default, the YAML
 * file, the environment, the command line; a weaker source never replaces a stronger one, in whatever order the calls
 * are made. Where each value came from is remembered, so that an error found later still names the line or the option
 * that caused it.
 *
 * pl_config holds no pointers: it is copied with = and its values are compared with pl_config_equal. It is some 107 kB,
 * too much for a stack: keep one on the heap, pass a pointer. Paths are relative to the current folder. */
#ifndef PL_CONFIG_CONFIG_H
#define PL_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plimsoll/plan.h"

#include "base/error.h"
#include "base/file.h"
#include "base/isa.h"
#include "base/json.h"
#include "base/str.h"

/* An integer that the program chooses itself ("auto" in the file). */
#define PL_CONFIG_AUTO INT64_C(-1)
/* The two words a budget can be instead of a number of bytes. */
#define PL_CONFIG_BYTES_AUTO (UINT64_MAX - 1)
#define PL_CONFIG_BYTES_NONE UINT64_MAX

enum {
    PL_CONFIG_TEXT_BYTES = 4096,                       /* room for a string or path, the zero included */
    PL_CONFIG_NOTE_BYTES = 256,                        /* room for a note */
    PL_CONFIG_LIST_ITEMS = 16,                         /* room in a list */
    PL_CONFIG_WHERE_BYTES = PL_CONFIG_TEXT_BYTES + 32, /* room for a value's place */
    PL_CONFIG_FILE_MAX_BYTES = 1000000,
    /* The most that other folders can do; src/api/compile_options.c checks these against their own limits. */
    PL_CONFIG_THREADS_MAX = 1024,
    PL_CONFIG_BPE_VOCABULARY_MAX = 65535,
    PL_CONFIG_VOCABULARY_MAX = 1 << 20,
    PL_CONFIG_BATCH_MAX = 1 << 24,
};

/* Systems and their archs: systems.def. */
typedef enum pl_config_system {
#define PL_SYSTEM_ROW(id, name) PL_SYSTEM_##id,
#define PL_ARCH_ROW(id, name, system)
#include "config/systems.def"
#undef PL_SYSTEM_ROW
#undef PL_ARCH_ROW
    PL_SYSTEM_COUNT
} pl_config_system;
typedef enum pl_config_arch {
#define PL_SYSTEM_ROW(id, name)
#define PL_ARCH_ROW(id, name, system) PL_ARCH_##id,
#include "config/systems.def"
#undef PL_SYSTEM_ROW
#undef PL_ARCH_ROW
    PL_ARCH_COUNT
} pl_config_arch;
typedef enum pl_config_switch { PL_SWITCH_OFF, PL_SWITCH_ON, PL_SWITCH_AUTO } pl_config_switch; /* false, true, auto */
typedef char pl_config_chars[PL_CONFIG_TEXT_BYTES]; /* text padded with zeros, at least one; "" = none given */
typedef char pl_config_note[PL_CONFIG_NOTE_BYTES];
/* Numbers, or words as the values of their enum; zeros after them. */
typedef struct pl_config_list {
    int64_t count;
    double item[PL_CONFIG_LIST_ITEMS];
} pl_config_list;

/* The words of a section (PL_NORM_RMS_NORM in pl_config_norm) and the struct of its keys (pl_config_model). An integer
 * holds PL_CONFIG_AUTO for "auto", a set the bits of its words. */
#define WORD(constant, word) constant,
#define WORDS(name, ...)     typedef enum pl_config_##name{__VA_ARGS__} pl_config_##name;
/* The third constant sets the count back for the next BIT. */
#define BIT(constant, word) constant##_AT, constant = 1 << constant##_AT, constant##_PASSED = constant##_AT,
#define BITS(name, ...)     typedef enum pl_config_##name{__VA_ARGS__} pl_config_##name;
#define WORDS_OR_PATH(name, file, ...)                                                                                 \
    typedef enum pl_config_##name##_kind{__VA_ARGS__ file} pl_config_##name##_kind;                                    \
    typedef struct pl_config_##name {                                                                                  \
        pl_config_##name##_kind kind;                                                                                  \
        pl_config_chars path; /* "" for the other kinds */                                                             \
    } pl_config_##name;
#define FIELD(name, field, bytes, key) char field[bytes]; /* zeros after the text */
#define RECORD(name, most, ...)                                                                                        \
    typedef struct pl_config_##name {                                                                                  \
        __VA_ARGS__                                                                                                    \
    } pl_config_##name;                                                                                                \
    typedef struct pl_config_##name##s {                                                                               \
        int64_t count;                                                                                                 \
        pl_config_##name item[most]; /* zeros after the last */                                                        \
    } pl_config_##name##s;
#define SECTION(section, systems, help) typedef struct pl_config_##section {
#define KEY(type, section, key)         type key;
#define END(section)                                                                                                   \
    }                                                                                                                  \
    pl_config_##section;
#include "config/sections.def"

/* Numbers of the rows: PL_CONFIG_KEY_model_arch is that of model.arch. */
typedef enum pl_config_key_id {
#define KEY(type, section, key) PL_CONFIG_KEY_##section##_##key,
#include "config/sections.def"
    PL_CONFIG_KEY_COUNT
} pl_config_key_id;
typedef enum pl_config_section_id {
#define SECTION(section, systems, help) PL_CONFIG_SECTION_##section,
#include "config/sections.def"
    PL_CONFIG_SECTION_COUNT
} pl_config_section_id;

/* The dimensions of parameter_space, in the order of their keys. */
typedef enum pl_config_dimension_id {
#define NUMBER_DIMENSION(section, ...) PL_CONFIG_DIMENSION_##section,
#define WORD_DIMENSION(section, ...)   PL_CONFIG_DIMENSION_##section,
#include "config/sections.def"
    PL_CONFIG_DIMENSION_COUNT
} pl_config_dimension_id;

/* Where a value came from, weakest first. */
typedef enum pl_config_level {
    PL_CONFIG_FROM_DEFAULT,
    PL_CONFIG_FROM_FILE,
    PL_CONFIG_FROM_ENVIRONMENT,
    PL_CONFIG_FROM_COMMAND_LINE,
} pl_config_level;

typedef struct pl_config_origin {
    pl_config_level level;
    uint32_t line, column; /* in the file, from 1 */
    char by[80];           /* option or variable, "--batch_size"; in a file the other name used */
    bool is_refused;       /* this key cannot have what another key of the option took: an error where it is used */
} pl_config_origin;

struct pl_config {
#define SECTION(section, systems, help) pl_config_##section section;
#include "config/sections.def"
    /* not values: */
    char file[PL_CONFIG_TEXT_BYTES]; /* the name of the loaded text, "" when none was */
    pl_config_origin origins[PL_CONFIG_KEY_COUNT];
    bool is_stage;           /* one of several trainings: its folder lies in that of all (plimsoll/stages.h) */
    uint32_t earlier_stages; /* trainings before it, which leave their files there */
};

/* ---- config.c: defaults, setting one key, resolving ---- */
void pl_config_default(pl_config *);
/* Sets "section.key" as the command line would; origin is what errors call it ("--set", "--batch_size"). */
pl_status pl_config_set(pl_config *, const char *path, const char *value, const char *origin, pl_error *);
/* The values without their origins; but not what a shared option set in keys that another system uses. */
bool pl_config_equal(const pl_config *, const pl_config *);
/* "gpt.yaml:3:15", "--batch_size", "PLIMSOLL_TRAIN_SEED" or "the default" into buf; returns buf. */
const char *pl_config_where(const pl_config *, const char *path, char *buf, size_t room);
pl_isa pl_config_find_isa(const pl_config *);                  /* the level of run.isa on this machine */
const char *pl_config_option_of(const char *path);             /* without dashes; NULL: it has none */
bool pl_config_is_set(const pl_config *, const char *path);    /* by file, environment or command line */
bool pl_config_is_option(const pl_config *, const char *path); /* by the command line */
/* Fails with a sentence that says how to give it when the path, text or list of records at `path` is empty: "train
 * needs data.text …". */
pl_status pl_config_require(const pl_config *, const char *path, const char *command, pl_error *);
int64_t pl_config_feed_forward(const pl_config *);       /* model.feed_forward, auto resolved */
int64_t pl_config_batch(const pl_config *);              /* samples per update */
int pl_config_sequences(const pl_config *);              /* generate.batch, auto resolved */
pl_config_system pl_config_system_of(const pl_config *); /* that model.arch belongs to */
/* run.out, or runs/NAME with NAME the config file's name without folder and ending ("runs/plimsoll" when no file). With
 * a save_name it is the folder of that name there, or in runs/, unless run.out already has such a folder in it. */
pl_status pl_config_run_folder(const pl_config *, char *path, size_t room, pl_error *);
/* The path of `name` in it. */
pl_status pl_config_run_path(const pl_config *, const char *name, char path[PL_FILE_PATH_MAX], pl_error *);
/* A hash of everything that decides which weights fit and what they mean. The same for the same values in any build. */
uint64_t pl_config_hash_model(const pl_config *);
/* The same over everything that decides the numbers of a run (model, data, optimizer, seeds). */
uint64_t pl_config_hash_numerics(const pl_config *);

/* ---- space.c: what several keys of a rollout's config say together ---- */
typedef struct pl_config_dimension {
    const char *path, *name; /* "parameter_space.architecture.num_layers" and its end */
    pl_config_dimension_type type;
    bool is_used;  /* by the config's arch */
    bool is_words; /* choices are values of an enum */
    bool log_scale;
    const pl_config_list *bounds; /* two numbers, or NULL */
    const pl_config_list *choices, *weights;
} pl_config_dimension;
/* Pointers are into the config. */
pl_config_dimension pl_config_dimension_of(const pl_config *, pl_config_dimension_id);
pl_config_store pl_config_store_of(const pl_config *); /* dataset.store, auto resolved */
/* "simulation.device (the processor computes), logging.level": the keys that are set and have no effect, each group
 * with what holds instead; nothing when there are none. */
void pl_config_print_without_effect(const pl_config *, pl_str *);

/* ---- resume.c ---- */
/* Each fails naming the first key that differs from the saved run's: one that belongs to the model; one that decides
 * numbers and is settled by the first step. */
pl_status pl_config_check_same_model(const pl_config *saved, const pl_config *now, pl_error *);
pl_status pl_config_check_begun(const pl_config *saved, const pl_config *now, pl_error *);
/* The same for a file of weights, which says what they were `made` with. PL_E_DATA with the first key of the model that
 * differs; a key that either leaves to the program is not compared. */
pl_status pl_config_check_weights(const pl_config *made, const pl_config *now, const char *path, pl_error *);
/* The other keys that decide numbers and differ: "train.learning_rate 0.001 (0.003 before), …". */
void pl_config_print_changes(const pl_config *saved, const pl_config *now, pl_str *);

/* ---- load.c: YAML (JSON as pl_config_json writes it included) ---- */
/* One text per config. What was set from a stronger source stays. On failure the config is unchanged. */
pl_status pl_config_load_text(pl_config *, const char *name, const char *text, size_t bytes, pl_error *);
/* seal.c: a config as a run keeps it, between a mark and a checksum. Loading a text that has either checks both:
 * PL_E_DATA. */
void pl_config_begin_sealed(pl_str *);
void pl_config_end_sealed(pl_str *); /* the whole of the string */
pl_status pl_config_check_sealed(const char *name, const char *text, size_t bytes, pl_error *);
/* A pretrained model stands for the config that names it. */
pl_status pl_config_load_file(pl_config *, const char *path, pl_error *);
/* A folder that has a config.json, or a GGUF file. */
bool pl_config_is_pretrained(const char *path);

/* ---- override.c: command line and environment ---- */
/* Takes every option of the schema (--batch_size 8, --batch-size=8, --resume, --no-resume, --set a.b=c) out of argv and
 * applies it; what remains, in order, is the caller's: argv[0 … *argc). "--" and what follows stay. */
pl_status pl_config_apply_args(pl_config *, int *argc, char **argv, pl_error *);
/* What to write in place of another program's option, "--warmup_ratio=0.1"; NULL: the option is not a known one. */
const char *pl_config_instead_of(const char *option);
/* For an unknown option: PL_E_USAGE with a did-you-mean among the schema's and the caller's own ("--json"). */
pl_status pl_config_unknown_option(const char *word, const char *const *own, size_t own_count, pl_error *);
/* PLIMSOLL_TRAIN_BATCH_SIZE=8, or PLIMSOLL_BATCH_SIZE=8 where --batch_size exists. envp ends with NULL. An unknown
 * PLIMSOLL_… variable is an error. Ignored are those that begin with PLIMSOLL_TEST_ or PLIMSOLL_INTERNAL_, and those
 * that Kubernetes and Docker name after a service. */
pl_status pl_config_apply_env(pl_config *, char *const *envp, pl_error *);
bool pl_config_is_variable(const char *entry);

/* Who reads a key: a bit for each command that runs a plan, in the order of pl_command, and two more. */
typedef enum pl_config_reader {
#define PL_COMMAND_ROW(id, ...) PL_CONFIG_BY_##id = 1 << PL_COMMAND_##id,
#include "plimsoll/commands.def"
#undef PL_COMMAND_ROW
    PL_CONFIG_BY_SAMPLES = 1 << PL_COMMAND_COUNT, /* train, when it writes samples */
    PL_CONFIG_BY_EXPORT = 2 << PL_COMMAND_COUNT,  /* plans nothing; named where not every command reads a key */
    PL_CONFIG_BY_ANY = (4 << PL_COMMAND_COUNT) - 1,
} pl_config_reader;

/* ---- check.c: what cannot be seen from a single key ---- */
/* The place of a or b, whichever comes from the stronger source: of two contradicting values the likelier mistake. */
const char *pl_config_blame(const pl_config *, const char *a, const char *b, char where[PL_CONFIG_WHERE_BYTES]);
/* PL_E_USAGE for the first option of the command line that the command does not read. */
pl_status pl_config_check_options(const pl_config *, pl_config_reader, pl_error *);
/* The part of pl_config_check that needs no system: keys that the chosen architecture does not use, values that
 * contradict each other. */
pl_status pl_config_check_keys(const pl_config *, pl_error *);

/* ---- print.c: appended to the string; check out->failed at the end ---- */
void pl_config_print_own(const pl_config *, pl_str *); /* for people; loads back as an equal config */
/* As runs, plans and results keep it, and JSON too: with the names and words that keys first had (FORMER_NAME). */
void pl_config_print_yaml(const pl_config *, pl_str *);  /* likewise */
void pl_config_print_model(const pl_config *, pl_str *); /* only the keys that decide which weights fit */
void pl_config_json(const pl_config *, pl_json *);       /* an object; loads back as well */

/* ---- help.c ---- */
void pl_config_print_help(pl_str *); /* the options part of --help, at most 80 columns */
/* The same for one command, which these systems have: bits 1 << PL_SYSTEM_…. */
void pl_config_print_help_of(pl_config_reader, uint32_t systems, pl_str *);
/* A line for each of these options, "text batch_size", that it reads, in this order. */
void pl_config_print_brief_of(pl_config_reader, uint32_t systems, const char *options, pl_str *);
/* All about the keys of this name, ours or another program's, and a line for each that mentions it; else nothing. */
void pl_config_print_about(const char *word, pl_str *);

/* ---- document.c ---- */
void pl_config_print_options(pl_str *);     /* PL_CONFIG_OPTIONS: for shell completion */
void pl_config_print_markdown(pl_str *);    /* docs/config.md */
void pl_config_print_json_schema(pl_str *); /* draft 2020-12 */

#endif
