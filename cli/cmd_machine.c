/* plimsoll machine: what plans depend on, as a file for plimsoll plan --machine elsewhere. */
#include "load.h"
#include "out.h"

enum { OUTPUT };
static const pl_cli_option options[] = {
    [OUTPUT] = {"--output", "FILE", "write it there instead of printing it (- for stdout)", .other = "--out"},
};

static const char about[] =
    "Describes this machine as JSON (schema plimsoll.machine/1): processor, instruction set, cores, caches, memory, "
    "the "
    "limits of its container and of the process; and its rates, if an earlier plan measured them. Nothing is "
    "measured. plimsoll plan CONFIG --machine FILE plans for such a machine anywhere.\n";

static pl_status describe(const pl_cli_command *command, const pl_cli_arguments *a, pl_error *err)
{
    char cache[PATH_MAX];
    char *text = NULL;
    size_t bytes = 0;
    pl_status status = pl_cli_check_words(command, a, err);
    if (status == PL_OK) status = pl_machine_text(pl_cli_find_cache(cache), &text, &bytes, err);
    if (status == PL_OK) status = pl_put_to(a->value[OUTPUT], pl_text_save, text, bytes, err);
    pl_text_free(text);
    return status;
}

static int run(const pl_cli_command *command, int argc, char **argv)
{
    pl_cli_arguments a;
    pl_error err = {0};
    pl_status status = pl_cli_parse(command, argc, argv, &a, &err);
    if (status == PL_OK && a.operand_count)
        status = pl_cli_error(&err, PL_E_USAGE, "takes no operand, but there is %.200s", a.operand[0]);
    if (status == PL_OK) status = describe(command, &a, &err);
    return status == PL_OK ? 0 : pl_cli_complain(command->name, status, &err);
}

const pl_cli_body pl_cli_machine = {
    .text = about, .options = options, .option_count = sizeof options / sizeof *options, .run = run};
