/* The configuration of a command: defaults, a YAML file, environment variables and options, checked together. */
#ifndef PLIMSOLL_CONFIG_H
#define PLIMSOLL_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "plimsoll/status.h"
#include "plimsoll/words.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pl_config pl_config;

/* A config with every default; NULL when memory is refused. The caller's to destroy. */
PL_API pl_config *pl_config_create(void);
PL_API pl_config *pl_config_copy(const pl_config *); /* likewise, with the same values */
PL_API void pl_config_destroy(pl_config *);          /* NULL is fine */

/* Values come from, weakest first: default, file, environment, command line; a weaker source never replaces a stronger
 * one, in whatever order these are called. Errors are PL_E_CONFIG (or PL_E_USAGE) and name file:line:column, variable
 * or option. A pretrained model stands for the config that names it: a folder that has a config.json, a GGUF file. */
PL_API pl_status pl_config_load_file(pl_config *, const char *path, pl_error *);
/* The path that a model's name means, into room bytes: the name itself where a file or folder is there, else, for a
 * name such as "Qwen/Qwen2.5-0.5B", its newest download in `hub`, the cache of Hugging Face's libraries (NULL: there is
 * none). PL_E_CONFIG: there is neither; the sentence says which files to fetch. */
PL_API PL_MUST_USE pl_status pl_model_find(const char *name, const char *hub, char *path, size_t room, pl_error *);
/* Keys that take weights may name a folder, which has model.safetensors or the model.safetensors.index.json of several
 * files, or a download in `hub` likewise: they become that file's path. A name of nothing stays, and whoever needs the
 * file says so; so does the folder of a part's weights, which a saved run does not need. PL_E_DATA, PL_E_UNSUPPORTED: a
 * folder has no such file. */
PL_API PL_MUST_USE pl_status pl_config_find_weights(pl_config *, const char *hub, pl_error *);
/* "section.key" as on the command line; origin is the name that errors give to the source of the value. */
PL_API pl_status pl_config_set(pl_config *, const char *key, const char *value, const char *origin, pl_error *);
/* Takes every option it knows out of argv; what remains, in order, is argv[0 … *argc). */
PL_API pl_status pl_config_apply_args(pl_config *, int *argc, char **argv, pl_error *);
/* PLIMSOLL_…=value; envp ends with NULL. */
PL_API pl_status pl_config_apply_env(pl_config *, char *const *envp, pl_error *);
/* Whether that reads this entry, "NAME=value". It passes over what begins with PLIMSOLL_TEST_ or PLIMSOLL_INTERNAL_,
 * and what Kubernetes and Docker name after a service called plimsoll (PLIMSOLL_SERVICE_HOST, PLIMSOLL_PORT=tcp://…).
 */
PL_API bool pl_config_is_variable(const char *entry);
/* The option that sets this key, without its dashes: "batch_size" of "train.batch_size"; NULL: it has none. */
PL_API const char *pl_config_option_of(const char *key);
/* Was the key set by the command line, or by pl_config_set? */
PL_API bool pl_config_is_option(const pl_config *, const char *key);
/* Do the values go together? Call it last. */
PL_API pl_status pl_config_check(const pl_config *, pl_error *);
/* What to write in place of an option, "--warmup_ratio=0.1", that other programs have and this one has not; NULL: it is
 * none that is known. */
PL_API const char *pl_config_instead_of(const char *option);
/* For people who look for something: all about the keys of this name, Plimsoll's or another program's, and a line for
 * each key that speaks of it. An empty text: there is none. */
PL_API PL_MUST_USE pl_status pl_config_about(const char *word, char **text, size_t *bytes, pl_error *);
/* The error for an unknown option: PL_E_USAGE with a "did you mean"; own: the caller's own options. */
PL_API pl_status pl_config_unknown_option(const char *word, const char *const *own, size_t own_count, pl_error *);

/* The names that this config's system has for what it counts. */
PL_API const pl_words *pl_config_words(const pl_config *);

/* The folder in which the run of this config keeps its files (run.out, or runs/NAME), into room bytes. */
PL_API PL_MUST_USE pl_status pl_config_run_folder(const pl_config *, char *path, size_t room, pl_error *);

typedef enum pl_config_form {
    PL_CONFIG_YAML,     /* every value; reads back */
    PL_CONFIG_JSON,     /* likewise */
    PL_CONFIG_HELP,     /* the options, for a terminal */
    PL_CONFIG_MARKDOWN, /* the reference */
    PL_CONFIG_SCHEMA,   /* JSON Schema of the YAML file */
    /* YAML as a run keeps it in its folder: paths are absolute, so that it reads the same from any folder, and a file
     * of which the run keeps a copy in its folder is that copy. It ends with a checksum: one that was edited is refused
     * when it is read, unless its first line and its last are taken out */
    PL_CONFIG_KEPT,
    /* For shell completion, one line per key: "run.isa --isa auto ref baseline …": the key, its option or -, and its
     * possible values where they are words */
    PL_CONFIG_OPTIONS,
    /* "simulation.device, logging.level": the keys that are set for other programs and have no effect here; "": none */
    PL_CONFIG_WITHOUT_EFFECT,
} pl_config_form;

/* Text in a block that pl_text_free gives back. */
PL_API pl_status pl_config_text(const pl_config *, pl_config_form, char **text, size_t *bytes, pl_error *);
PL_API void pl_text_free(char *text); /* NULL is fine */
/* Writes text so that nothing half-written is ever seen under this name; a link to a regular file is followed. Neither
 * asks for memory. */
PL_API PL_MUST_USE pl_status pl_text_save(const char *path, const char *text, size_t bytes, pl_error *);
/* The same with a page in HTML, but only in the place of another page, of an empty file or of none: PL_E_USAGE where
 * something else is. check asks that before a page is made, and whether a file can be made there at all. */
PL_API PL_MUST_USE pl_status pl_page_check(const char *path, pl_error *);
PL_API PL_MUST_USE pl_status pl_page_save(const char *path, const char *page, size_t bytes, pl_error *);
/* The same as save with the contents of an open file. */
PL_API PL_MUST_USE pl_status pl_text_copy(const char *path, int descriptor, pl_error *);

/* A file that is about to be read or written, and its name in error messages ("--html"). */
typedef enum pl_file_role {
    PL_FILE_READ,
    PL_FILE_WRITTEN,
    PL_FILE_CLOSED, /* a folder: nothing else is written in its place, in it or below */
} pl_file_role;
typedef struct pl_file_use {
    const char *path, *name;
    pl_file_role role;
} pl_file_use;
/* PL_E_USAGE when a file to be written is also read or is written twice, by whatever paths. Paths that are NULL, "" or
 * "-" are skipped. */
PL_API PL_MUST_USE pl_status pl_files_check(const pl_file_use *, size_t count, pl_error *);
/* The files that a config names, in the order of its keys: how many there are; at most `room` are written. The paths
 * are the config's own. */
PL_API size_t pl_config_files(const pl_config *, pl_file_use *, size_t room);
/* Names of what its system keeps in the folder of a run, besides what every run keeps; NULL after the last. */
PL_API const char *const *pl_config_kept_files(const pl_config *);

#ifdef __cplusplus
}
#endif
#endif
