/* plimsoll help: texts from the table, the config's options from the library's. */
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "out.h"

enum { LEFT = 32 };

static const char overview_end[] =
    "\n"
    "plimsoll help COMMAND tells more. CONFIG is a YAML file, or the folder of a run for the config that is kept "
    "there; "
    "plimsoll config --markdown prints its reference. Commands that take a CONFIG take the keys that they read as "
    "options, too. Data goes to stdout, messages to stderr.\n"
    "\n"
    "Exit codes: 0 done; 1 failure (no memory, a loss that is no longer finite, a machine that cannot do it); 2 wrong "
    "usage or config; 3 does not fit the memory; 4 data missing or damaged; 5 storage: a file cannot be read or "
    "written; 6 measured memory differs from the plan; 75 ended early by SIGHUP, 130 by SIGINT, 143 by SIGTERM: a "
    "training that was at work can be resumed then (where nothing was saved it ends with 1). A shell shows 141 "
    "(SIGPIPE) when the reader of the output left first (plimsoll plan x.yaml | head -3); train, rollout, "
    "encode, quantize and infer --to go on.\n";

/* A line of the text is a paragraph; one that begins with a space is left as it is. */
static pl_status put_paragraphs(const char *text, pl_error *err)
{
    pl_status status = PL_OK;
    while (*text && status == PL_OK) {
        size_t bytes = strcspn(text, "\n");
        if (*text == ' ')
            status = pl_put(text, bytes + 1, err);
        else
            status = pl_put_words(text, bytes, 0, "\n", err);
        text += bytes + (text[bytes] == '\n');
    }
    return status;
}

static pl_status put_row(const char *left, const char *help, pl_error *err)
{
    bool beside = strlen(left) + 2 <= LEFT;
    pl_status status = beside ? pl_put_format(err, "%-*s", LEFT, left) : pl_put_format(err, "%s\n%*s", left, LEFT, "");
    return status == PL_OK ? pl_put_words(help, strlen(help), LEFT, "\n", err) : status;
}

int pl_cli_print_overview(void)
{
    pl_error err = {0};
    char left[128];
    pl_status status = put_paragraphs(
        "Plimsoll trains and runs neural networks inside a memory budget: it knows where every byte of the process "
        "will go before the first step, and then runs exactly so.\n\nusage: plimsoll COMMAND [ARGUMENTS]\n\n",
        &err);
    const pl_cli_command *c;
    for (size_t i = 0; status == PL_OK && (c = pl_cli_at(i)); i++) {
        snprintf(left, sizeof left, "  %s %s", c->name, c->operands);
        status = put_row(left, c->summary, &err);
    }
    if (status == PL_OK) status = put_row("  --version", "print version and build (--json: as JSON)", &err);
    if (status == PL_OK) status = put_paragraphs(overview_end, &err);
    return status == PL_OK ? 0 : pl_cli_complain("help", status, &err);
}

const char *pl_cli_option_help(const pl_cli_option *o, char room[PL_CLI_HELP_BYTES])
{
    const char *gap = strstr(o->help, "%s"), *word = o->words;
    if (!gap) return o->help;
    size_t used = (size_t)snprintf(room, PL_CLI_HELP_BYTES, "%.*s", (int)(gap - o->help), o->help);
    for (size_t bytes; *word && used < PL_CLI_HELP_BYTES; word += bytes + (word[bytes] == ' ')) {
        bytes = strcspn(word, " ");
        const char *before = word == o->words ? "" : word[bytes] ? ", " : " or ";
        used += (size_t)snprintf(room + used, PL_CLI_HELP_BYTES - used, "%s%.*s%s", before, (int)bytes, word,
                                 word == o->words ? " (the default)" : "");
    }
    if (used < PL_CLI_HELP_BYTES) snprintf(room + used, PL_CLI_HELP_BYTES - used, "%s", gap + 2);
    return room;
}

static pl_status put_options(const pl_cli_command *c, pl_error *err)
{
    char left[128], help[PL_CLI_HELP_BYTES];
    pl_status status = pl_put_text("\nOptions:\n", err);
    for (size_t i = 0; i < c->body->option_count && status == PL_OK; i++) {
        const pl_cli_option *o = &c->body->options[i];
        snprintf(left, sizeof left, "  %s%s%s", o->name, o->value ? " " : "", o->value ? o->value : "");
        status = put_row(left, pl_cli_option_help(o, help), err);
    }
    return status == PL_OK ? put_row("  --help", "this text", err) : status;
}

pl_status pl_cli_config_help(const pl_cli_command *c, char **text, size_t *bytes, pl_error *err)
{
    if (c->config >= PL_CLI_PLANS) return pl_command_help(c->command, text, bytes, err);
    pl_config *config = pl_config_create();
    pl_status status = config ? pl_config_text(config, PL_CONFIG_HELP, text, bytes, err)
                              : pl_cli_error(err, PL_E_NOMEM, "no memory for the help");
    pl_config_destroy(config);
    return status;
}

static pl_status put_config_options(const pl_cli_command *c, pl_error *err)
{
    char *text = NULL;
    size_t bytes = 0;
    pl_status status = pl_cli_config_help(c, &text, &bytes, err);
    if (status == PL_OK) status = pl_put_text("\n", err);
    if (status == PL_OK) status = pl_put(text, bytes, err);
    pl_text_free(text);
    return status;
}

int pl_cli_print_help(const pl_cli_command *c)
{
    pl_error err = {0};
    pl_status status = pl_put_format(&err, "plimsoll %s: %s\n\nusage: plimsoll %s %s [options]\n", c->name, c->summary,
                                     c->name, c->operands);
    if (status == PL_OK && c->body->text) status = pl_put_text("\n", &err);
    if (status == PL_OK && c->body->text) status = put_paragraphs(c->body->text, &err);
    if (status == PL_OK) status = put_options(c, &err);
    if (status == PL_OK && c->config != PL_CLI_NONE) status = put_config_options(c, &err);
    return status == PL_OK ? 0 : pl_cli_complain("help", status, &err);
}

static int run(const pl_cli_command *command, int argc, char **argv)
{
    pl_cli_arguments a;
    pl_error err = {0};
    pl_status status = pl_cli_parse(command, argc, argv, &a, &err);
    if (status != PL_OK) return pl_cli_complain(command->name, status, &err);
    if (a.operand_count == 0) return pl_cli_print_overview();
    if (a.operand_count > 1) {
        pl_cli_error(&err, PL_E_USAGE, "one command only, but there is also %.200s", a.operand[1]);
        return pl_cli_complain(command->name, PL_E_USAGE, &err);
    }
    const pl_cli_command *about = pl_cli_find(a.operand[0]), *near = pl_cli_nearest(a.operand[0]);
    if (about) return pl_cli_print_help(about);
    pl_cli_error(&err, PL_E_USAGE, "there is no command %.60s; %s%s", a.operand[0],
                 near ? "did you mean " : "see plimsoll help", near ? near->name : "");
    return pl_cli_complain("help", PL_E_USAGE, &err);
}

const pl_cli_body pl_cli_help = {.run = run};
