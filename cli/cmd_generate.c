/* plimsoll generate: text from a trained model, in a process of its own with a plan of its own. */
#include "planning.h"

enum { CHECKPOINT, LEDGER, VERBOSE, PROMPT_BYTES = 8192 };
static const pl_cli_option options[] = {
    [CHECKPOINT] = {"--checkpoint", "DIR", "a checkpoint's folder; default: the run's best, else its latest"},
    [LEDGER] = {"--ledger", NULL, "print planned and measured memory at the end, to stderr"},
    [VERBOSE] = {"--verbose", NULL, "print the report of the plan first, to stderr"},
};

static const char about[] =
    "Writes the prompt and the model's continuation to stdout, as it comes. CONFIG is the run's config file or "
    "the folder of the run. The same seed gives the same text.\n";

static int start(const pl_cli_command *command, const pl_cli_input *in)
{
    char prompt[PROMPT_BYTES];
    pl_talk talk;
    pl_error err = {0};
    pl_call call = {.command = command};
    pl_status status = pl_cli_require_trained(in, in->arguments.value[CHECKPOINT], false, &err);
    if (status == PL_OK) status = pl_talk_read(in->config, false, in->arguments.value[VERBOSE], &talk, &err);
    if (status == PL_OK) status = pl_cli_setting(in->config, "generate", "prompt", prompt, sizeof prompt, &err);
    if (status != PL_OK) return pl_cli_complain(command->name, status, &err);
    call.word[PL_CALL_CHECKPOINT] = in->arguments.value[CHECKPOINT];
    call.word[PL_CALL_LEDGER] = in->arguments.value[LEDGER] ? "1" : NULL;
    call.word[PL_CALL_PROMPT] = prompt;
    return pl_cli_start(in, &talk, false, &call);
}

static int run(const pl_cli_command *command, int argc, char **argv)
{
    pl_cli_input in;
    pl_error err = {0};
    pl_status status = pl_cli_load(command, argc, argv, 0, &in, &err);
    int code = status == PL_OK ? start(command, &in) : pl_cli_complain(command->name, status, &err);
    pl_cli_release(&in);
    return code;
}

const pl_cli_body pl_cli_generate = {
    .text = about, .options = options, .option_count = sizeof options / sizeof *options, .run = run};
