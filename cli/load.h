/* A config from what the user gave: a file or the folder of a run, the environment, options. */
#ifndef PL_CLI_LOAD_H
#define PL_CLI_LOAD_H

#include <limits.h>

#include "command.h"

typedef struct pl_cli_input {
    pl_config *config;
    pl_cli_arguments arguments;
    char out[PATH_MAX];   /* folder of the run */
    char cache[PATH_MAX]; /* for the calibration; "": there is none */
    char resume[16];      /* run.resume as given; a stage's config resumes by itself */
} pl_cli_input;

/* Parses the words, loads the config named by operand `at` and checks it. The input is the caller's to release, also
 * after a failure. */
pl_status pl_cli_load(const pl_cli_command *, int argc, char **argv, size_t at, pl_cli_input *, pl_error *);
void pl_cli_release(pl_cli_input *);
/* Fails, with a sentence that says what to do, when there is no checkpoint in this folder (NULL: the run's).
 * may_be_seeded: the command has --seeded, too. */
pl_status pl_cli_require_trained(const pl_cli_input *, const char *checkpoint, bool may_be_seeded, pl_error *);
/* The path itself where something is there, else that of the download that a name on Hugging Face's hub means. */
pl_status pl_cli_find_model(const char *name, char path[PATH_MAX], pl_error *);
/* ---- files.c ---- */
/* PL_E_USAGE when a file to be written is also read, written twice or the run's; in is as loaded. */
pl_status pl_cli_check_words(const pl_cli_command *, const pl_cli_arguments *, pl_error *);
/* The same for a command that watches others: the program that it runs and those of its words that are files count as
 * read; without a command (NULL) the program of the process does. */
pl_status pl_cli_check_watched(const pl_cli_command *, const pl_cli_arguments *, char *const *watched, int pid,
                               pl_error *);
pl_status pl_cli_check_files(const pl_cli_command *, const pl_cli_input *, pl_error *);
/* PL_E_STORAGE when training in a folder that holds no run yet would overwrite files. */
pl_status pl_cli_check_new_run(const pl_cli_input *, pl_error *);

/* Is it a pretrained model that somebody brings? */
pl_status pl_cli_find_brought(const pl_cli_input *, bool *, pl_error *);

/* ---- names.c ---- */
/* Names of files for a key of the config, a line each: `first` (unless NULL) and the operands after the config. Where a
 * config cannot hold so many names, or such names, "@LIST": a file that has them, gone with the last of these
 * processes. "": there are none. PL_E_USAGE, PL_E_STORAGE. */
pl_status pl_cli_join_names(const pl_cli_input *, const char *first, char *text, size_t room, pl_error *);

/* A file in infer.scratch that has no name, but a path for this process and those that follow by exec; gone with the
 * last of them. PL_E_STORAGE, with errno. */
enum { PL_CLI_NAMELESS_BYTES = 32 };
pl_status pl_cli_open_nameless(const pl_cli_input *, char path[PL_CLI_NAMELESS_BYTES], int *fd, pl_error *);
/* Standard input, read to its end, in such a file. */
pl_status pl_cli_keep_input(const pl_cli_input *, char path[PL_CLI_NAMELESS_BYTES], bool *is_empty, pl_error *);

/* Where eval is to judge standard input by a pretrained model, which has no folder to keep it in: in such a file. */
pl_status pl_cli_keep_judged(const pl_cli_input *, pl_error *);

/* Where calibrations are kept, as the environment says, made where it was not there; "" and NULL: nowhere. */
const char *pl_cli_find_cache(char path[PATH_MAX]);
const char *pl_cli_cache(const pl_cli_input *); /* NULL: none */

/* The text of a key ("run", "progress"), cut to room; "" when the key is not set. */
pl_status pl_cli_setting(const pl_config *, const char *section, const char *key, char *text, size_t room, pl_error *);

/* A run's config, kept in its folder for generate and eval. */
#define PL_CLI_CONFIG_FILE "config.yaml"

#endif
