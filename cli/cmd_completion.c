/* plimsoll completion: scripts for shells, made from the same tables as the help. */
#include <string.h>

#include "command.h"
#include "out.h"

static const char about[] =
    "Prints a script:  bash  source <(plimsoll completion bash)\n"
    "                  zsh   plimsoll completion zsh > \"${fpath[1]}/_plimsoll\"\n"
    "                  fish  plimsoll completion fish > ~/.config/fish/completions/plimsoll.fish\n";

/* Calls put with each "--option" of the config that the command takes: those of its help text. */
static pl_status each_config_option(const pl_cli_command *c,
                                    pl_status (*put)(const pl_cli_command *, const char *name, size_t, pl_error *),
                                    pl_error *err)
{
    char *text = NULL;
    pl_status status = c->takes_config ? pl_cli_config_help(c, &text, NULL, err) : PL_OK;
    for (const char *line = text; status == PL_OK && line; line = strchr(line, '\n')) {
        if (*line == '\n') line++;
        if (strncmp(line, "  --", 4) != 0 || strncmp(line, "  --set ", 8) == 0) continue;
        status = put(c, line + 2, strcspn(line + 2, " ,\n"), err);
    }
    pl_text_free(text);
    return status;
}

static pl_status put_word(const pl_cli_command *c, const char *name, size_t bytes, pl_error *err)
{
    (void)c;
    return pl_put_format(err, " %.*s", (int)bytes, name);
}

static pl_status put_fish_word(const pl_cli_command *c, const char *name, size_t bytes, pl_error *err)
{
    return pl_put_format(err, "complete -c plimsoll -n '__fish_seen_subcommand_from %s' -l %.*s\n", c->name,
                         (int)bytes - 2, name + 2);
}

static pl_status put_options(const pl_cli_command *c, pl_error *err)
{
    pl_status status = PL_OK;
    for (size_t i = 0; i < c->option_count && status == PL_OK; i++)
        status = pl_put_format(err, "%s ", c->options[i].name);
    return status == PL_OK ? pl_put_text("--help", err) : status;
}

/* ---- bash, and zsh through its bashcompinit ---- */

static pl_status put_bash_case(const pl_cli_command *c, pl_error *err)
{
    pl_status status = pl_put_format(err, "        %s) words='", c->name);
    if (status == PL_OK) status = put_options(c, err);
    if (status == PL_OK && c == &pl_cli_completion) status = pl_put_text(" bash zsh fish", err);
    if (status == PL_OK && c == &pl_cli_help) status = pl_put_text(" '\"$commands\"'", err);
    if (status == PL_OK && c->takes_config) status = pl_put_text(" --set", err);
    if (status == PL_OK) status = each_config_option(c, put_word, err);
    return status == PL_OK ? pl_put_text("' ;;\n", err) : status;
}

static pl_status put_bash(pl_error *err)
{
    pl_status status = pl_put_text("_plimsoll() {\n    local current=${COMP_WORDS[COMP_CWORD]} words= commands='", err);
    for (size_t i = 0; i < pl_cli_command_count && status == PL_OK; i++)
        status = pl_put_format(err, "%s ", pl_cli_commands[i]->name);
    if (status == PL_OK)
        status = pl_put_text("'\n    case ${COMP_CWORD}:${COMP_WORDS[1]} in\n        1:*) words=\"$commands --help "
                             "--version\" ;;\n    esac\n"
                             "    ((COMP_CWORD > 1)) && case ${COMP_WORDS[1]} in\n",
                             err);
    for (size_t i = 0; i < pl_cli_command_count && status == PL_OK; i++)
        status = put_bash_case(pl_cli_commands[i], err);
    if (status != PL_OK) return status;
    return pl_put_text("    esac\n    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
                       "    ((COMP_CWORD > 1)) && [[ $current != -* ]] && COMPREPLY+=($(compgen -f -- \"$current\"))\n "
                       "   return 0\n}\n"
                       "complete -o filenames -F _plimsoll plimsoll\n",
                       err);
}

static pl_status put_zsh(pl_error *err)
{
    pl_status status = pl_put_text("#compdef plimsoll\nautoload -U +X bashcompinit && bashcompinit\n", err);
    return status == PL_OK ? put_bash(err) : status;
}

/* ---- fish ---- */

/* A help line inside single quotes. */
static pl_status put_quoted(const char *text, pl_error *err)
{
    pl_status status = pl_put_text("'", err);
    for (; *text && status == PL_OK; text++) status = *text == '\'' ? pl_put_text("\\'", err) : pl_put(text, 1, err);
    return status == PL_OK ? pl_put_text("'\n", err) : status;
}

static pl_status put_fish_command(const pl_cli_command *c, pl_error *err)
{
    pl_status status = pl_put_format(err, "complete -c plimsoll -n __fish_use_subcommand -a %s -d ", c->name);
    if (status == PL_OK) status = put_quoted(c->summary, err);
    for (size_t i = 0; i < c->option_count && status == PL_OK; i++) {
        const pl_cli_option *o = &c->options[i];
        status = pl_put_format(err, "complete -c plimsoll -n '__fish_seen_subcommand_from %s' -l %s%s -d ", c->name,
                               o->name + 2, o->value ? " -r" : "");
        if (status == PL_OK) status = put_quoted(o->help, err);
    }
    return status;
}

static pl_status put_fish(pl_error *err)
{
    pl_status status = PL_OK;
    for (size_t i = 0; i < pl_cli_command_count && status == PL_OK; i++)
        status = put_fish_command(pl_cli_commands[i], err);
    for (size_t i = 0; i < pl_cli_command_count && status == PL_OK; i++)
        status = each_config_option(pl_cli_commands[i], put_fish_word, err);
    if (status != PL_OK) return status;
    return pl_put_text("complete -c plimsoll -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'\n", err);
}

static int run(const pl_cli_command *command, int argc, char **argv)
{
    pl_cli_arguments a;
    pl_error err = {0};
    pl_status status = pl_cli_parse(command, argc, argv, &a, &err);
    const char *shell = status == PL_OK && a.operand_count == 1 ? a.operand[0] : "";
    if (status != PL_OK) return pl_cli_complain(command->name, status, &err);
    if (strcmp(shell, "bash") == 0)
        status = put_bash(&err);
    else if (strcmp(shell, "zsh") == 0)
        status = put_zsh(&err);
    else if (strcmp(shell, "fish") == 0)
        status = put_fish(&err);
    else
        status = pl_cli_error(&err, PL_E_USAGE, "which shell? plimsoll completion bash, zsh or fish");
    return status == PL_OK ? 0 : pl_cli_complain(command->name, status, &err);
}

const pl_cli_command pl_cli_completion = {.name = "completion",
                                          .operands = "bash|zsh|fish",
                                          .summary = "print a script that completes words in a shell",
                                          .text = about,
                                          .run = run};
