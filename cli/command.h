/* The subcommands: one row each in subcommands.def or plimsoll/commands.def, from which dispatch, help and shell
 * completion are made.
 *
 * The command is a customer of plimsoll's public headers and nothing else of the library. Data goes to stdout, talk to
 * stderr, both by write(2) from fixed buffers: after "committed" the process may ask for no memory, so no part of the
 * command uses stdio there. */
#ifndef PL_CLI_COMMAND_H
#define PL_CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "plimsoll/plimsoll.h"

enum { PL_CLI_OPTIONS_MAX = 16, PL_CLI_OPERANDS_MAX = 4 };

/* An option of the subcommand itself; those of the config are the library's. */
typedef struct pl_cli_option {
    const char *name;  /* "--json" */
    const char *value; /* what stands for its value in the help, or NULL: a switch */
    const char *help;  /* "%s" in it: the words, "a (the default), b or c" (pl_cli_option_help) */
    bool excludes;     /* the others of the command that have this, too; one that takes a value only as "-": stdout */
    const char *words; /* the values there are, for a shell to complete: "peak end"; NULL: any */
    const char *other; /* another name that is taken for it, "--to"; NULL: none */
} pl_cli_option;

/* What a subcommand does with a config; each does what those before it do. */
typedef enum pl_cli_config_use {
    PL_CLI_NONE,
    PL_CLI_READS, /* and with it options of the config: all, */
    PL_CLI_PLANS, /* or those that `command` reads */
    PL_CLI_RUNS,  /* starts the runner with it */
} pl_cli_config_use;

typedef struct pl_cli_command pl_cli_command;

struct pl_cli_arguments;

/* What cli/cmd_*.c bring. */
typedef struct pl_cli_body {
    const char *text; /* what the help says behind the summary, or NULL */
    const pl_cli_option *options;
    size_t option_count;
    const char *first;                                         /* words that the first operand can be; NULL: any */
    bool takes_many;                                           /* operands, however many */
    int (*run)(const pl_cli_command *, int argc, char **argv); /* argv[0] is the name; returns the exit code */
    /* Which options of the config it takes, by its own words; NULL: those that its command reads. PL_E_USAGE. */
    pl_status (*check_options)(const struct pl_cli_arguments *, const pl_config *, pl_error *);
} pl_cli_body;

#define PL_CLI_ROW(id, ...) extern const pl_cli_body pl_cli_##id;
#include "subcommands.def"
#undef PL_CLI_ROW
extern const pl_cli_body pl_cli_job; /* of all others */

struct pl_cli_command {
    const char *name, *operands; /* "train", "CONFIG" */
    const char *summary;         /* one line, for the list of subcommands */
    pl_cli_config_use config;
    pl_command command; /* of those that plan or run one */
    const pl_cli_body *body;
};

/* ---- commands.c ---- */
const pl_cli_command *pl_cli_at(size_t index);       /* in the order of the help; NULL behind the last */
const pl_cli_command *pl_cli_find(const char *name); /* NULL: none */
/* The subcommand that was probably meant, or NULL. */
const pl_cli_command *pl_cli_nearest(const char *name);

/* ---- arguments.c ---- */
typedef struct pl_cli_arguments {
    const char *value[PL_CLI_OPTIONS_MAX]; /* of command->options[i]; NULL: not given; "" for a switch */
    const char *operand[PL_CLI_OPERANDS_MAX];
    size_t operand_count;
    char **all; /* of a command that takes many: all operands */
} pl_cli_arguments;

/* Brings the command's own options, with their values, to the front of the words behind argv[0]; *own: how many words
 * they are. Where the config has an option of that name, too, it is the command's. PL_E_USAGE: one has no value. */
pl_status pl_cli_own_first(const pl_cli_command *, int argc, char **argv, int *own, pl_error *);
/* Options may stand before and behind operands; "--" ends them. Options of the config were taken out before. */
pl_status pl_cli_parse(const pl_cli_command *, int argc, char **argv, pl_cli_arguments *, pl_error *);
/* Does a word ask for help, -h or --help? */
typedef enum pl_cli_help_form { PL_CLI_HELP_NONE, PL_CLI_HELP_BRIEF, PL_CLI_HELP_ALL } pl_cli_help_form;
pl_cli_help_form pl_cli_wants_help(int argc, char **argv);
/* Says what is wrong with the words of a command and which they are, and where help is; returns exit code 2. */
int pl_cli_usage(const char *command, const char *what, const char *which);
/* An option's value: a size up to 2^63 - 1, or seconds above 0. Returns 0, or what pl_cli_usage returns. */
int pl_cli_read_size(const char *command, const char *option, const char *value, uint64_t *bytes);
int pl_cli_read_seconds(const char *command, const char *option, const char *value, double *seconds);

/* ---- cmd_help.c ---- */
enum { PL_CLI_HELP_BYTES = 256 };
/* What the help says of an option, itself or made in `room`. */
const char *pl_cli_option_help(const pl_cli_option *, char room[PL_CLI_HELP_BYTES]);
int pl_cli_print_help(const pl_cli_command *, pl_cli_help_form);
int pl_cli_print_overview(pl_cli_help_form);
/* The options of the config that this command takes; text in a block for pl_text_free. */
pl_status pl_cli_config_help(const pl_cli_command *, char **text, size_t *bytes, pl_error *);

/* ---- complain.c ---- */
/* A sentence of the command's own into the error; returns the status. */
pl_status pl_cli_error(pl_error *, pl_status, const char *format, ...) PL_PRINTF(3, 4);
/* "plimsoll train: sentence" to stderr, for people; in one line and with bytes as the library writes them where this
 * variable is set, for a command that reads it. Returns the exit code. */
#define PL_CLI_SENTENCE "PLIMSOLL_INTERNAL_SENTENCE"
int pl_cli_complain(const char *command, pl_status, const pl_error *);

#endif
