/* plimsoll completion: scripts for shells, made from the same tables as the help. */
#include <string.h>

#include "command.h"
#include "out.h"

static const char about[] = "Prints a script that completes commands, options and their values:\n"
                            "\n"
                            "  bash  source <(plimsoll completion bash)\n"
                            "  zsh   plimsoll completion zsh > \"${fpath[1]}/_plimsoll\"\n"
                            "  fish  plimsoll completion fish > ~/.config/fish/completions/plimsoll.fish\n";

/* ---- the keys of the config: lines "run.isa --isa auto ref" (PL_CONFIG_OPTIONS), and the help that says who reads
 * them ---- */

typedef struct key {
    const char *path, *option, *words; /* in the line, without their ends; option "-": none */
    size_t path_bytes, option_bytes, words_bytes;
} key;

typedef struct tables {
    char *keys, *help;
} tables;

static void release(tables *t)
{
    pl_text_free(t->keys);
    pl_text_free(t->help);
}

/* c NULL: the keys alone. */
static pl_status load(const pl_cli_command *c, tables *t, pl_error *err)
{
    pl_config *config = pl_config_create();
    *t = (tables){0};
    pl_status status = config ? pl_config_text(config, PL_CONFIG_OPTIONS, &t->keys, NULL, err)
                              : pl_cli_error(err, PL_E_NOMEM, "no memory for the script");
    if (status == PL_OK && c && c->config != PL_CLI_NONE) status = pl_cli_config_help(c, &t->help, NULL, err);
    pl_config_destroy(config);
    return status;
}

/* The next line, or false. */
static bool next_key(const char **line, key *k)
{
    const char *p = *line, *end = strchr(p, '\n');
    if (!end) return false;
    *k = (key){.path = p, .path_bytes = strcspn(p, " ")};
    k->option = p + k->path_bytes + 1;
    k->option_bytes = strcspn(k->option, " \n");
    k->words = k->option + k->option_bytes;
    k->words += *k->words == ' ';
    k->words_bytes = (size_t)(end - k->words);
    *line = end + 1;
    return true;
}

/* Is there a line of the help that begins so: "  --isa " or "  --set model.norm="? */
static bool has_row(const char *help, const char *before, const char *name, size_t bytes)
{
    size_t n = strlen(before);
    for (const char *p = help; p && *p; p = strchr(p, '\n'), p += p != NULL)
        if (strncmp(p, before, n) == 0 && strncmp(p + n, name, bytes) == 0 && strchr(" ,=", p[n + bytes])) return true;
    return false;
}

static bool is_taken(const tables *t, const key *k)
{
    return has_row(t->help, k->option_bytes > 1 ? "  " : "  --set ", k->option_bytes > 1 ? k->option : k->path,
                   k->option_bytes > 1 ? k->option_bytes : k->path_bytes);
}

/* The values that an option of a truth value has are its two names. */
static bool is_switch(const key *k) { return k->words_bytes == 10 && strncmp(k->words, "true false", 10) == 0; }

/* " model.norm=" for each key that the command takes. */
static pl_status put_keys(const tables *t, pl_error *err)
{
    pl_status status = PL_OK;
    key k;
    for (const char *line = t->keys; status == PL_OK && next_key(&line, &k);)
        if (is_taken(t, &k)) status = pl_put_format(err, " %.*s=", (int)k.path_bytes, k.path);
    return status;
}

/* Calls put with each "--option" of the config that the command takes: those of its help text. */
static pl_status each_config_option(const pl_cli_command *c, const tables *t,
                                    pl_status (*put)(const pl_cli_command *, const tables *, const char *name, size_t,
                                                     pl_error *),
                                    pl_error *err)
{
    pl_status status = PL_OK;
    for (const char *line = t->help; status == PL_OK && line; line = strchr(line, '\n')) {
        if (*line == '\n') line++;
        if (strncmp(line, "  --", 4) != 0 || strncmp(line, "  --set ", 8) == 0) continue;
        status = put(c, t, line + 2, strcspn(line + 2, " ,\n"), err);
    }
    return status;
}

static pl_status put_options(const pl_cli_command *c, pl_error *err)
{
    pl_status status = PL_OK;
    for (size_t i = 0; i < c->body->option_count && status == PL_OK; i++)
        status = pl_put_format(err, "%s ", c->body->options[i].name);
    return status == PL_OK ? pl_put_text("--help", err) : status;
}

/* ---- bash, and zsh through its bashcompinit ---- */

static pl_status put_word(const pl_cli_command *c, const tables *t, const char *name, size_t bytes, pl_error *err)
{
    (void)c, (void)t;
    return pl_put_format(err, " %.*s", (int)bytes, name);
}

static pl_status put_bash_case(const pl_cli_command *c, pl_error *err)
{
    tables t;
    pl_status status = load(c, &t, err);
    if (status == PL_OK) status = pl_put_format(err, "        %s) words='", c->name);
    if (status == PL_OK) status = put_options(c, err);
    if (status == PL_OK && c->body == &pl_cli_help) status = pl_put_text(" '\"$commands\"'", err);
    if (status == PL_OK && c->config != PL_CLI_NONE) status = pl_put_text(" --set", err);
    if (status == PL_OK) status = each_config_option(c, &t, put_word, err);
    if (status == PL_OK) status = pl_put_text("'", err);
    if (status == PL_OK && c->config != PL_CLI_NONE) status = pl_put_text(" keys='", err);
    if (status == PL_OK && c->config != PL_CLI_NONE) status = put_keys(&t, err);
    if (status == PL_OK && c->config != PL_CLI_NONE) status = pl_put_text("'", err);
    if (status == PL_OK && c->body->first)
        status = pl_put_format(err, "; ((COMP_CWORD == 2)) && words+=' %s'", c->body->first);
    release(&t);
    return status == PL_OK ? pl_put_text(" ;;\n", err) : status;
}

/* "--isa|run.isa) words='auto ref' ;;": of the commands' own options, then of the config's. */
static pl_status put_bash_values(pl_error *err)
{
    tables t;
    key k;
    pl_status status = load(NULL, &t, err);
    const pl_cli_command *c;
    for (size_t i = 0; status == PL_OK && (c = pl_cli_at(i)); i++)
        for (size_t n = 0; n < c->body->option_count && status == PL_OK; n++) {
            const pl_cli_option *o = &c->body->options[n];
            if (o->words) status = pl_put_format(err, "        %s) words='%s' ;;\n", o->name, o->words);
        }
    for (const char *line = t.keys; status == PL_OK && next_key(&line, &k);) {
        bool both = k.option_bytes > 1 && !is_switch(&k);
        if (k.words_bytes)
            status = pl_put_format(err, "        %.*s%s%.*s) words='%.*s' ;;\n", both ? (int)k.option_bytes : 0,
                                   k.option, both ? "|" : "", (int)k.path_bytes, k.path, (int)k.words_bytes, k.words);
    }
    release(&t);
    return status;
}

/* The shell takes "--isa=avx2" apart at the sign: the option then is the word before it. */
static pl_status put_bash(pl_error *err)
{
    const pl_cli_command *c;
    pl_status status = pl_put_text(
        "_plimsoll() {\n    local current=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD-1]} words= keys= "
        "commands='",
        err);
    for (size_t i = 0; status == PL_OK && (c = pl_cli_at(i)); i++) status = pl_put_format(err, "%s ", c->name);
    if (status == PL_OK)
        status = pl_put_text("'\n    if [[ $current == = ]]; then current=\n"
                             "    elif [[ $option == = ]]; then option=${COMP_WORDS[COMP_CWORD-2]}\n    fi\n"
                             "    ((COMP_CWORD > 1)) && case $option in\n",
                             err);
    if (status == PL_OK) status = put_bash_values(err);
    if (status == PL_OK)
        status = pl_put_text("    esac\n    if [[ -n $words ]]; then\n"
                             "        COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
                             "        ((${#COMPREPLY[@]})) || COMPREPLY=($(compgen -f -- \"$current\"))\n"
                             "        return 0\n    fi\n"
                             "    case ${COMP_CWORD}:${COMP_WORDS[1]} in\n        1:*) words=\"$commands --help "
                             "--version\" ;;\n    esac\n"
                             "    ((COMP_CWORD > 1)) && case ${COMP_WORDS[1]} in\n",
                             err);
    for (size_t i = 0; status == PL_OK && (c = pl_cli_at(i)); i++) status = put_bash_case(c, err);
    if (status != PL_OK) return status;
    return pl_put_text("    esac\n    if [[ $option == --set ]]; then\n"
                       "        COMPREPLY=($(compgen -W \"$keys\" -- \"$current\"))\n"
                       "        compopt -o nospace 2>/dev/null\n        return 0\n    fi\n"
                       "    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
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

static pl_status put_fish_word(const pl_cli_command *c, const tables *t, const char *name, size_t bytes, pl_error *err)
{
    key k;
    pl_status status = pl_put_format(err, "complete -c plimsoll -n '__fish_seen_subcommand_from %s' -l %.*s", c->name,
                                     (int)bytes - 2, name + 2);
    for (const char *line = t->keys; status == PL_OK && next_key(&line, &k);)
        if (k.option_bytes == bytes && strncmp(k.option, name, bytes) == 0 && k.words_bytes && !is_switch(&k))
            status = pl_put_format(err, " -x -a '%.*s'", (int)k.words_bytes, k.words);
    return status == PL_OK ? pl_put_text("\n", err) : status;
}

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
    for (size_t i = 0; i < c->body->option_count && status == PL_OK; i++) {
        const pl_cli_option *o = &c->body->options[i];
        char help[PL_CLI_HELP_BYTES];
        status = pl_put_format(err, "complete -c plimsoll -n '__fish_seen_subcommand_from %s' -l %s%s -d ", c->name,
                               o->name + 2,
                               o->words   ? " -x"
                               : o->value ? " -r"
                                          : "");
        if (status == PL_OK) status = put_quoted(pl_cli_option_help(o, help), err);
        if (status == PL_OK && o->words)
            status = pl_put_format(err, "complete -c plimsoll -n '__fish_seen_subcommand_from %s' -l %s -x -a '%s'\n",
                                   c->name, o->name + 2, o->words);
    }
    return status;
}

static pl_status put_fish_config(const pl_cli_command *c, pl_error *err)
{
    tables t;
    pl_status status = load(c, &t, err);
    if (status == PL_OK) status = each_config_option(c, &t, put_fish_word, err);
    if (status == PL_OK && c->config != PL_CLI_NONE)
        status = pl_put_format(err, "complete -c plimsoll -n '__fish_seen_subcommand_from %s' -l set -x -a '", c->name);
    if (status == PL_OK && c->config != PL_CLI_NONE) status = put_keys(&t, err);
    if (status == PL_OK && c->config != PL_CLI_NONE) status = pl_put_text("'\n", err);
    release(&t);
    return status;
}

static pl_status put_fish(pl_error *err)
{
    const pl_cli_command *c;
    pl_status status = PL_OK;
    for (size_t i = 0; status == PL_OK && (c = pl_cli_at(i)); i++) status = put_fish_command(c, err);
    for (size_t i = 0; status == PL_OK && (c = pl_cli_at(i)); i++) status = put_fish_config(c, err);
    for (size_t i = 0; status == PL_OK && (c = pl_cli_at(i)); i++)
        if (c->body->first)
            status = pl_put_format(err,
                                   "complete -c plimsoll -n '__fish_seen_subcommand_from %s; and not "
                                   "__fish_seen_subcommand_from %s' -a '%s'\n",
                                   c->name, c->body->first, c->body->first);
    return status;
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

const pl_cli_body pl_cli_completion = {.text = about, .first = "bash zsh fish", .run = run};
