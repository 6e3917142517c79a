/* The configuration of a command as plain typed values.
 *
 * One table (schema.def) has a row per key: name, type, default, range, help, long option, when it is used, what it
 * changes. The loader, the defaults, --help, docs/config.md, the JSON Schema and the canonical printing are all read
 * off that table, so they cannot disagree. Values come from, weakest first: the default, the YAML file, the
 * environment, the command line; a weaker source never replaces a stronger one, in whatever order the calls are made.
 * Where each value came from is remembered, so that an error found later still names the line or the option that caused
 * it.
 *
 * pl_config needs no heap: it is copied with = and its values are compared with pl_config_equal. It is some 30 kB: keep
 * one, pass a pointer. Paths are relative to the current folder. */
#ifndef PL_CONFIG_CONFIG_H
#define PL_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plimsoll/plan.h"

#include "base/error.h"
#include "base/json.h"
#include "base/str.h"

/* An integer that the program chooses itself ("auto" in the file). */
#define PL_CONFIG_AUTO INT64_C(-1)
/* The two words a budget can be instead of a number of bytes. */
#define PL_CONFIG_BYTES_AUTO (UINT64_MAX - 1)
#define PL_CONFIG_BYTES_NONE UINT64_MAX

enum {
    PL_CONFIG_TEXT_BYTES = 4096, /* room of a string or path, the zero included */
    PL_CONFIG_FILE_MAX_BYTES = 1000000,
    PL_CONFIG_KEYS_MAX = 96, /* room in the table of origins */
    /* What other folders can do at most; src/api/compile_options.c holds their own numbers against these. */
    PL_CONFIG_THREADS_MAX = 64,
    PL_CONFIG_BPE_VOCABULARY_MAX = 65535,
    PL_CONFIG_VOCABULARY_MAX = 1 << 20,
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
typedef enum pl_config_norm { PL_NORM_LAYER_NORM, PL_NORM_RMS_NORM } pl_config_norm;
typedef enum pl_config_activation {
    PL_ACTIVATION_GELU,
    PL_ACTIVATION_SILU,
    PL_ACTIVATION_RELU,
    PL_ACTIVATION_TANH,
} pl_config_activation;
typedef enum pl_config_tokenizer_kind {
    PL_CONFIG_TOKENIZER_BPE,
    PL_CONFIG_TOKENIZER_BYTES,
    PL_CONFIG_TOKENIZER_CHARS,
    PL_CONFIG_TOKENIZER_FILE, /* a tokenizer.json */
} pl_config_tokenizer_kind;
typedef enum pl_config_schedule {
    PL_SCHEDULE_COSINE,
    PL_SCHEDULE_LINEAR,
    PL_SCHEDULE_CONSTANT,
    PL_SCHEDULE_PLATEAU,
} pl_config_schedule;
typedef enum pl_config_checkpointing {
    PL_CHECKPOINTING_OFF,
    PL_CHECKPOINTING_AUTO,
    PL_CHECKPOINTING_FULL
} pl_config_checkpointing;
typedef enum pl_config_optimizer { PL_OPTIMIZER_ADAMW } pl_config_optimizer;
typedef enum pl_config_mixed { PL_MIXED_AUTO, PL_MIXED_OFF, PL_MIXED_BF16, PL_MIXED_FP16 } pl_config_mixed;
typedef enum pl_config_early { PL_EARLY_AUTO, PL_EARLY_ON, PL_EARLY_OFF } pl_config_early;
typedef enum pl_config_optimizer_state {
    PL_OPTIMIZER_STATE_AUTO,
    PL_OPTIMIZER_STATE_F32,
    PL_OPTIMIZER_STATE_BF16,
    PL_OPTIMIZER_STATE_8BIT,
} pl_config_optimizer_state;
typedef enum pl_config_huge_pages { PL_HUGE_PAGES_AUTO, PL_HUGE_PAGES_OFF } pl_config_huge_pages;
typedef enum pl_config_isa {
    PL_CONFIG_ISA_AUTO,
    PL_CONFIG_ISA_REF,
    PL_CONFIG_ISA_BASELINE,
    PL_CONFIG_ISA_AVX2,
    PL_CONFIG_ISA_AVX512,
    PL_CONFIG_ISA_AVX512_BF16,
} pl_config_isa;
typedef enum pl_config_switch { PL_SWITCH_OFF, PL_SWITCH_ON, PL_SWITCH_AUTO } pl_config_switch; /* false, true, auto */
typedef enum pl_config_progress {
    PL_PROGRESS_AUTO,
    PL_PROGRESS_BAR,
    PL_PROGRESS_PLAIN,
    PL_PROGRESS_JSON,
} pl_config_progress;
typedef enum pl_config_log { PL_LOG_ERROR, PL_LOG_WARN, PL_LOG_INFO, PL_LOG_DEBUG } pl_config_log;
typedef enum pl_config_dump { /* bits of run.dump */
                              PL_DUMP_MODEL = 1 << 0,
                              PL_DUMP_GRAD = 1 << 1,
                              PL_DUMP_REWRITE = 1 << 2,
                              PL_DUMP_PLAN = 1 << 3,
                              PL_DUMP_PROGRAM = 1 << 4,
} pl_config_dump;

typedef enum pl_config_allow { /* bits of fit.allow */
                               PL_ALLOW_OPTIMIZER_BF16 = 1 << 0,
                               PL_ALLOW_OPTIMIZER_8BIT = 1 << 1,
                               PL_ALLOW_BF16 = 1 << 2,
                               PL_ALLOW_FP16 = 1 << 3,
} pl_config_allow;

typedef struct pl_config_model {
    pl_config_arch arch;
    int64_t vocab_size; /* or PL_CONFIG_AUTO: the tokenizer's */
    int64_t width;
    int64_t layers;
    int64_t heads;        /* gpt */
    int64_t feed_forward; /* gpt; or PL_CONFIG_AUTO: 4·width (pl_config_feed_forward) */
    int64_t sequence;     /* tokens per sequence */
    int64_t window;       /* mlp: how many tokens it sees */
    pl_config_norm norm;
    pl_config_activation activation;
    bool bias;           /* the feed-forward's or hidden linears */
    bool attention_bias; /* the attention's linears */
    bool tie_embeddings;
    double dropout;
    double norm_eps;
    double init_std;
} pl_config_model;

typedef struct pl_config_tokenizer {
    pl_config_tokenizer_kind kind;
    char path[PL_CONFIG_TEXT_BYTES]; /* of the tokenizer.json when kind is PL_CONFIG_TOKENIZER_FILE, else "" */
} pl_config_tokenizer;

typedef struct pl_config_data {
    char text[PL_CONFIG_TEXT_BYTES]; /* "" = none given (pl_config_require) */
    pl_config_tokenizer tokenizer;
    int64_t vocab_size;               /* what bpe learns */
    char cache[PL_CONFIG_TEXT_BYTES]; /* folder of token files; "" = auto */
    double validation_fraction;
} pl_config_data;

typedef struct pl_config_train {
    int64_t batch_size;  /* sequences per update */
    int64_t micro_batch; /* sequences at once, or PL_CONFIG_AUTO */
    pl_config_early update_in_backward;
    pl_config_checkpointing gradient_checkpointing;
    int64_t layer_major;       /* blocks of a group, 0 = off, or PL_CONFIG_AUTO */
    int64_t layer_major_keep;  /* groups, 0 = none, or PL_CONFIG_AUTO */
    int64_t feed_forward_rows; /* 0 = off, or PL_CONFIG_AUTO */
    int64_t steps;             /* or PL_CONFIG_AUTO: from epochs. Wins over epochs when both are given */
    int64_t epochs;
    double learning_rate;
    pl_config_schedule schedule;
    double min_lr_ratio;
    int64_t warmup_steps; /* or PL_CONFIG_AUTO: 2 % of the steps */
    int64_t plateau_patience;
    double plateau_factor;
    pl_config_optimizer optimizer;
    pl_config_optimizer_state optimizer_state;
    double beta1, beta2, epsilon, weight_decay;
    double grad_clip; /* 0 = off */
    pl_config_mixed mixed_precision;
    int64_t seed;
    int64_t eval_every; /* steps, or PL_CONFIG_AUTO */
    int64_t eval_batches;
    int64_t checkpoint_every; /* steps, or PL_CONFIG_AUTO */
    int64_t keep_last;
    bool keep_best;
    int64_t sample_every; /* steps; 0 = never */
    int64_t log_every;    /* steps, or PL_CONFIG_AUTO */
    bool tensorboard;
} pl_config_train;

typedef struct pl_config_generate {
    char prompt[PL_CONFIG_TEXT_BYTES]; /* "" = none */
    int64_t tokens;
    double temperature; /* 0 = always the likeliest token */
    int64_t top_k;      /* 0 = off */
    double top_p;       /* 1 = off */
    int64_t seed;
} pl_config_generate;

typedef struct pl_config_memory {
    uint64_t budget;       /* bytes, PL_CONFIG_BYTES_AUTO or PL_CONFIG_BYTES_NONE */
    uint64_t thread_stack; /* bytes */
    pl_config_huge_pages huge_pages;
} pl_config_memory;

typedef struct pl_config_fit {
    uint32_t allow; /* PL_ALLOW_* bits */
} pl_config_fit;

typedef struct pl_config_run {
    int64_t threads; /* or PL_CONFIG_AUTO: the cores this process may use (0 in the file means the same) */
    pl_config_isa isa;
    char out[PL_CONFIG_TEXT_BYTES]; /* "" = auto: runs/NAME (pl_config_run_folder) */
    pl_config_switch resume;
    pl_config_progress progress;
    char trace[PL_CONFIG_TEXT_BYTES]; /* "" = none */
    uint32_t dump;                    /* PL_DUMP_* bits */
    pl_config_log log;
} pl_config_run;

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
    char by[56];           /* the option or variable, "--batch_size"; "" for files */
} pl_config_origin;

struct pl_config {
    pl_config_model model;
    pl_config_data data;
    pl_config_train train;
    pl_config_generate generate;
    pl_config_memory memory;
    pl_config_fit fit;
    pl_config_run run;
    /* not values: */
    char file[PL_CONFIG_TEXT_BYTES]; /* the name of the loaded text, "" when none was */
    pl_config_origin origins[PL_CONFIG_KEYS_MAX];
};

/* ---- config.c: defaults, setting one key, resolving ---- */
void pl_config_default(pl_config *);
/* Sets "section.key" as the command line would; origin is what errors call it ("--set", "--batch_size"). */
pl_status pl_config_set(pl_config *, const char *path, const char *value, const char *origin, pl_error *);
bool pl_config_equal(const pl_config *, const pl_config *); /* the values, not where they came from */
/* "gpt.yaml:3:15", "--batch_size", "PLIMSOLL_TRAIN_SEED" or "the default" into buf; returns buf. */
const char *pl_config_where(const pl_config *, const char *path, char *buf, size_t room);
bool pl_config_is_set(const pl_config *, const char *path); /* by file, environment or command line */
/* Fails with a sentence that says how to give it when the path or string at `path` is empty: "train needs data.text …".
 */
pl_status pl_config_require(const pl_config *, const char *path, const char *command, pl_error *);
int64_t pl_config_feed_forward(const pl_config *);       /* auto resolved */
pl_config_system pl_config_system_of(const pl_config *); /* that model.arch belongs to */
/* run.out, or runs/NAME with NAME the config file's name without folder and ending ("runs/plimsoll" when no file). */
pl_status pl_config_run_folder(const pl_config *, char *path, size_t room, pl_error *);
/* A hash of everything that decides which weights fit and what they mean. The same for the same values in any build. */
uint64_t pl_config_hash_model(const pl_config *);
/* The same over everything that decides the numbers of a run (model, data, optimizer, seeds). */
uint64_t pl_config_hash_numerics(const pl_config *);

/* ---- resume.c ---- */
/* Each fails naming the first key that differs from the saved run's: that belongs to the model; that decides numbers
 * and is settled by the first step. */
pl_status pl_config_check_same_model(const pl_config *saved, const pl_config *now, pl_error *);
pl_status pl_config_check_begun(const pl_config *saved, const pl_config *now, pl_error *);
/* The other keys that decide numbers and differ: "train.learning_rate 0.001 (0.003 before), …". */
void pl_config_print_changes(const pl_config *saved, const pl_config *now, pl_str *);

/* ---- load.c: YAML (JSON as pl_config_json writes it included) ---- */
/* One text per config. What was set from a stronger source stays. On failure the config is unchanged. */
pl_status pl_config_load_text(pl_config *, const char *name, const char *text, size_t bytes, pl_error *);
pl_status pl_config_load_file(pl_config *, const char *path, pl_error *);

/* ---- override.c: command line and environment ---- */
/* Takes every option of the schema (--batch_size 8, --batch-size=8, --resume, --no-resume, --set a.b=c) out of argv and
 * applies it; what remains, in order, is the caller's: argv[0 … *argc). "--" and what follows stay. */
pl_status pl_config_apply_args(pl_config *, int *argc, char **argv, pl_error *);
/* For an option that nobody knows: PL_E_USAGE with a did-you-mean among the schema's and the caller's own ("--json").
 */
pl_status pl_config_unknown_option(const char *word, const char *const *own, size_t own_count, pl_error *);
/* PLIMSOLL_TRAIN_BATCH_SIZE=8, or PLIMSOLL_BATCH_SIZE=8 where --batch_size exists. envp ends with NULL. An unknown
 * PLIMSOLL_… variable is an error, but those that begin with PLIMSOLL_TEST_ or PLIMSOLL_INTERNAL_ are nobody's here. */
pl_status pl_config_apply_env(pl_config *, char *const *envp, pl_error *);

/* Who reads a key: a bit for each command that runs a plan, in the order of pl_command. */
typedef enum pl_config_reader {
#define PL_COMMAND_ROW(id, ...) PL_CONFIG_BY_##id = 1 << PL_COMMAND_##id,
#include "plimsoll/commands.def"
#undef PL_COMMAND_ROW
    PL_CONFIG_BY_SAMPLES = 1 << PL_COMMAND_COUNT, /* train, when it writes samples */
    PL_CONFIG_BY_ANY = (2 << PL_COMMAND_COUNT) - 1,
} pl_config_reader;

/* ---- check.c: what no single key can tell ---- */
/* PL_E_USAGE for the first option of the command line that the command does not read. */
pl_status pl_config_check_options(const pl_config *, pl_config_reader, pl_error *);
/* Keys that the chosen architecture does not use, sums and products that overflow, values that contradict each other.
 */
pl_status pl_config_check(const pl_config *, pl_error *);

/* ---- print.c: appended to the string; check out->failed at the end ---- */
void pl_config_print_yaml(const pl_config *, pl_str *); /* loads back to an equal config */
void pl_config_json(const pl_config *, pl_json *);      /* an object; loads back as well */

/* ---- document.c ---- */
void pl_config_print_help(pl_str *);                      /* the options part of --help, at most 80 columns */
void pl_config_print_help_of(pl_config_reader, pl_str *); /* the same, of one command */
void pl_config_print_options(pl_str *);                   /* PL_CONFIG_OPTIONS: for shell completion */
void pl_config_print_markdown(pl_str *);                  /* docs/config.md */
void pl_config_print_json_schema(pl_str *);               /* draft 2020-12 */

#endif
