/* plimsoll infer --compare: each form of a model in processes of this executable, in turns, and the table of them. */
#ifndef PL_CLI_COMPARE_H
#define PL_CLI_COMPARE_H

#include <sys/types.h>

#include "planning.h"

/* The command's own options. NULL: not given. */
typedef struct pl_compare_words {
    const char *html, *json, *checkpoint, *seeded, *turns;
} pl_compare_words;

/* PL_E_USAGE: the word is not a number of turns. */
pl_status pl_cli_read_turns(const char *word, uint32_t *turns, pl_error *);
/* The whole command; files: the operands after the config. Returns the exit code. */
int pl_cli_compare(const pl_cli_command *, const pl_cli_input *, const pl_talk *, const pl_compare_words *);

/* ---- compare_folder.c: intermediate files, removed when the command ends ---- */
pl_status pl_compare_folder_make(char path[PATH_MAX], pl_error *);
void pl_compare_folder_remove(const char *path); /* "" is fine */

/* ---- compare_child.c ---- */
typedef struct pl_compare_told {
    int code;                           /* exit code; 128 + signal */
    char line[16384];                   /* the last line of standard output, without its newline; "" */
    char sentence[PL_ERROR_TEXT_BYTES]; /* why it failed; "" */
} pl_compare_told;

/* What children read one after another, each to its end: a copy of this command's standard input; nothing where that is
 * a terminal. */
#define PL_COMPARE_NO_INPUT "/dev/null"
pl_status pl_compare_share_input(const pl_cli_input *, char path[PL_CLI_NAMELESS_BYTES], pl_error *);
/* Runs `plimsoll WORDS…` and waits; input: the file that is its standard input. Its output goes to files in the folder.
 * PL_E_STOPPED: a signal came, which the child got, too. Any other outcome is in *told. */
pl_status pl_compare_run_child(const char *folder, const char *input, const char *const *words, pl_compare_told *told,
                               pl_error *);
/* A config that is removed when the command ends was written out from the user's: sentences name the user's file in its
 * place, without line numbers, which are not those of that file. */
void pl_compare_name_config(const char *path, const char *name, char sentence[PL_ERROR_TEXT_BYTES]);
/* The kind of a failure that ended with this exit code. */
pl_status pl_compare_status_of(int code);

#endif
