/* plimsoll help: texts from the table, the config's options from the library's. */
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "out.h"

enum { LEFT = 32 };

static const char overview_end[] =
    "\n"
    "plimsoll help COMMAND tells more. CONFIG is a YAML file, or the folder of a run for the config that is kept "
    "there;\n"
    "plimsoll config --markdown prints its reference. Commands that take a CONFIG take the keys that they read as "
    "options, too.\n"
    "Data goes to stdout, talk to stderr.\n"
    "\n"
    "Exit codes: 0 done; 1 failure (no memory, a loss that is no longer finite, a machine that cannot do it); 2 wrong\n"
    "usage or config; 3 does not fit the memory; 4 data missing or damaged; 5 storage: a file cannot be read or "
    "written;\n"
    "6 measured memory differs from the plan; 75 ended early by SIGHUP, 130 by\n"
    "SIGINT, 143 by SIGTERM: a training that was at work can be resumed then (where\n"
    "nothing was saved it ends with 1).\n"
    "A shell shows 141 (SIGPIPE) when who read the output left first (plimsoll plan x.yaml | head -3); train goes "
    "on.\n";

static pl_status put_row(const char *left, const char *help, pl_error *err)
{
    if (strlen(left) + 2 > LEFT) return pl_put_format(err, "%s\n%*s%s\n", left, LEFT, "", help);
    return pl_put_format(err, "%-*s%s\n", LEFT, left, help);
}

int pl_cli_print_overview(void)
{
    pl_error err = {0};
    char left[128];
    pl_status status = pl_put_text(
        "Plimsoll trains and runs neural networks inside a memory budget: it knows where every byte of the process\n"
        "will go before the first step, and then it is so.\n\nusage: plimsoll COMMAND [ARGUMENTS]\n\n",
        &err);
    for (size_t i = 0; i < pl_cli_command_count && status == PL_OK; i++) {
        const pl_cli_command *c = pl_cli_commands[i];
        snprintf(left, sizeof left, "  %s %s", c->name, c->operands);
        status = put_row(left, c->summary, &err);
    }
    if (status == PL_OK) status = put_row("  --version", "which version this is", &err);
    if (status == PL_OK) status = pl_put_text(overview_end, &err);
    return status == PL_OK ? 0 : pl_cli_complain("help", status, &err);
}

static pl_status put_options(const pl_cli_command *c, pl_error *err)
{
    char left[128];
    pl_status status = pl_put_text("\nOptions:\n", err);
    for (size_t i = 0; i < c->option_count && status == PL_OK; i++) {
        const pl_cli_option *o = &c->options[i];
        snprintf(left, sizeof left, "  %s%s%s", o->name, o->value ? " " : "", o->value ? o->value : "");
        status = put_row(left, o->help, err);
    }
    return status == PL_OK ? put_row("  --help", "this text", err) : status;
}

pl_status pl_cli_config_help(const pl_cli_command *c, char **text, size_t *bytes, pl_error *err)
{
    if (c->of_command) return pl_command_help(c->command, text, bytes, err);
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
    if (status == PL_OK && c->text) status = pl_put_format(&err, "\n%s", c->text);
    if (status == PL_OK) status = put_options(c, &err);
    if (status == PL_OK && c->takes_config) status = put_config_options(c, &err);
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

const pl_cli_command pl_cli_help = {
    .name = "help", .operands = "[COMMAND]", .summary = "tell about a command", .run = run};
