/* A subcommand's own words: its options by the table, the rest operands. '-' and '_' are the same in names, as they are
 * in the options of the config. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

static bool same_name(const char *word, const char *name, size_t bytes)
{
    if (strlen(name) != bytes) return false;
    for (size_t i = 0; i < bytes; i++)
        if (word[i] != name[i] && !((word[i] == '_' || word[i] == '-') && (name[i] == '_' || name[i] == '-')))
            return false;
    return true;
}

static size_t find_option(const pl_cli_command *command, const char *word)
{
    size_t bytes = strcspn(word, "=");
    for (size_t i = 0; i < command->body->option_count; i++)
        if (same_name(word, command->body->options[i].name, bytes) ||
            (command->body->options[i].other && same_name(word, command->body->options[i].other, bytes)))
            return i;
    return PL_CLI_OPTIONS_MAX;
}

/* How many commands have this option; their names, "eval, infer and verify", in the order of the help. */
static size_t list_owners(const char *word, char *text, size_t room)
{
    const pl_cli_command *c;
    size_t owners = 0, told = 0, used = 0;
    text[0] = 0;
    for (size_t i = 0; (c = pl_cli_at(i)); i++) owners += find_option(c, word) != PL_CLI_OPTIONS_MAX;
    for (size_t i = 0; (c = pl_cli_at(i)); i++) {
        if (find_option(c, word) == PL_CLI_OPTIONS_MAX) continue;
        const int n = snprintf(text + used, room - used, "%s%s",
                               told == 0            ? ""
                               : told + 1 == owners ? " and "
                                                    : ", ",
                               c->name);
        used += n > 0 && (size_t)n < room - used ? (size_t)n : 0;
        told++;
    }
    return owners;
}

static pl_status unknown(const pl_cli_command *command, const char *word, pl_error *err)
{
    char owners[400];
    const bool is_known = command->config != PL_CLI_NONE && pl_config_instead_of(word);
    if (!is_known && list_owners(word, owners, sizeof owners))
        return pl_cli_error(err, PL_E_USAGE, "unknown option %.200s: it is one of plimsoll %s, not of plimsoll %s",
                            word, owners, command->name);
    const char *own[PL_CLI_OPTIONS_MAX + 1];
    for (size_t i = 0; i < command->body->option_count; i++) own[i] = command->body->options[i].name;
    own[command->body->option_count] = "--help";
    if (command->config != PL_CLI_NONE)
        return pl_config_unknown_option(word, own, command->body->option_count + 1, err);
    return pl_cli_error(err, PL_E_USAGE, "unknown option %.200s; see plimsoll help %s", word, command->name);
}

/* "--quiet" is no value, lest a file gets that name. */
static bool is_option(const char *word)
{
    return strncmp(word, "--", 2) == 0 && (!word[2] || isalpha((unsigned char)word[2]));
}

/* Of an option that takes a value: stands there one, behind its '=' or as the next word? */
static pl_status check_value(const pl_cli_option *option, const char *word, const char *next, pl_error *err)
{
    if (strchr(word, '=') || (next && !is_option(next))) return PL_OK;
    if (!next)
        return pl_cli_error(err, PL_E_USAGE, "%s needs a value: %s %s", option->name, option->name, option->value);
    return pl_cli_error(err, PL_E_USAGE, "%s needs a value: %s %s; %.200s is an option (as a value: %s=%.200s)",
                        option->name, option->name, option->value, next, option->name, next);
}

static pl_status take_option(const pl_cli_command *command, int argc, char **argv, int *at, pl_cli_arguments *a,
                             pl_error *err)
{
    const char *word = argv[*at], *equals = strchr(word, '=');
    size_t i = find_option(command, word);
    if (i == PL_CLI_OPTIONS_MAX) return unknown(command, word, err);
    const pl_cli_option *option = &command->body->options[i];
    if (option->value && a->value[i])
        return pl_cli_error(err, PL_E_USAGE, "%s is given twice; give it once", option->name);
    a->value[i] = "";
    if (!option->value) return equals ? pl_cli_error(err, PL_E_USAGE, "%s takes no value", option->name) : PL_OK;
    const pl_status status = check_value(option, word, *at + 1 < argc ? argv[*at + 1] : NULL, err);
    if (status != PL_OK) return status;
    a->value[i] = equals ? equals + 1 : argv[++*at];
    if (a->value[i][0]) return PL_OK;
    return pl_cli_error(err, PL_E_USAGE, "%s has an empty value: %s %s", option->name, option->name, option->value);
}

/* Where many may come they are moved together in argv: words that were read already give the room. */
static pl_status take_operand(const pl_cli_command *command, char *word, pl_cli_arguments *a, pl_error *err)
{
    if (a->operand_count < PL_CLI_OPERANDS_MAX)
        a->operand[a->operand_count] = word;
    else if (!command->body->takes_many)
        return pl_cli_error(err, PL_E_USAGE, "too many arguments: %.200s; see plimsoll help %s", word, command->name);
    if (command->body->takes_many) a->all[a->operand_count] = word;
    a->operand_count++;
    return PL_OK;
}

static bool takes_part(const pl_cli_option *option, const char *value)
{
    return option->excludes && value && (!option->value || strcmp(value, "-") == 0);
}

/* What is asked for is done or refused, never left out without a word. */
static pl_status check_exclusive(const pl_cli_command *command, const pl_cli_arguments *a, pl_error *err)
{
    const pl_cli_option *first = NULL;
    for (size_t i = 0; i < command->body->option_count; i++) {
        const pl_cli_option *option = &command->body->options[i];
        if (!takes_part(option, a->value[i])) continue;
        if (first)
            return pl_cli_error(err, PL_E_USAGE, "%s%s and %s%s exclude each other; give one of them", first->name,
                                first->value ? " -" : "", option->name, option->value ? " -" : "");
        first = option;
    }
    return PL_OK;
}

pl_status pl_cli_parse(const pl_cli_command *command, int argc, char **argv, pl_cli_arguments *a, pl_error *err)
{
    bool options = true;
    *a = (pl_cli_arguments){.all = argv + 1};
    for (int i = 1; i < argc; i++) {
        pl_status status;
        if (options && strcmp(argv[i], "--") == 0) {
            options = false;
            continue;
        }
        if (options && argv[i][0] == '-' && argv[i][1])
            status = take_option(command, argc, argv, &i, a, err);
        else
            status = take_operand(command, argv[i], a, err);
        if (status != PL_OK) return status;
    }
    return check_exclusive(command, a, err);
}

/* Word `from` comes to place `to` before it; those between move on. */
static void bring_forward(char **argv, int from, int to)
{
    char *word = argv[from];
    memmove(argv + to + 1, argv + to, (size_t)(from - to) * sizeof *argv);
    argv[to] = word;
}

pl_status pl_cli_own_first(const pl_cli_command *command, int argc, char **argv, int *own, pl_error *err)
{
    *own = 0;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        size_t k = find_option(command, argv[i]);
        if (k == PL_CLI_OPTIONS_MAX) continue;
        const pl_cli_option *option = &command->body->options[k];
        if (option->value) { /* if it is missing nothing else becomes it */
            const pl_status status = check_value(option, argv[i], i + 1 < argc ? argv[i + 1] : NULL, err);
            if (status != PL_OK) return status;
        }
        const bool next = option->value && !strchr(argv[i], '=');
        bring_forward(argv, i, ++*own);
        if (next) bring_forward(argv, ++i, ++*own);
    }
    return PL_OK;
}

pl_cli_help_form pl_cli_wants_help(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0) return PL_CLI_HELP_ALL;
        if (strcmp(argv[i], "-h") == 0) return PL_CLI_HELP_BRIEF;
    }
    return PL_CLI_HELP_NONE;
}

int pl_cli_usage(const char *command, const char *what, const char *which)
{
    pl_error err = {0};
    pl_status status = pl_cli_error(&err, PL_E_USAGE, "%s%.200s; try plimsoll %s --help", what, which, command);
    return pl_cli_complain(command, status, &err);
}

static int expected(const char *command, const char *option, const char *what, const char *value)
{
    char text[160];
    snprintf(text, sizeof text, "%s expects %s, not ", option, what);
    return pl_cli_usage(command, text, value);
}

int pl_cli_read_size(const char *command, const char *option, const char *value, uint64_t *bytes)
{
    if (pl_place_parse_size(value, bytes) == 0 && *bytes <= INT64_MAX) return 0;
    return expected(command, option, "a size such as 1048576 or 500MB", value);
}

int pl_cli_read_seconds(const char *command, const char *option, const char *value, double *seconds)
{
    char *end;
    *seconds = strtod(value, &end);
    if (end != value && !*end && *seconds > 0 && isfinite(*seconds)) return 0;
    return expected(command, option, "a number of seconds above 0", value);
}
