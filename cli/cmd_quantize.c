/* plimsoll quantize: a calibration and the weights that come of it, in a planned process. */
#include "planning.h"

enum { QUIET, VERBOSE };
static const pl_cli_option options[] = {
    [QUIET] = {"--quiet", NULL, "say nothing but warnings and errors", true},
    [VERBOSE] = {"--verbose", NULL, "print the whole report of the plan first", true},
};

static const char about[] =
    "Lets texts go through an encoder, sees what comes to each of its layers, and writes its weights with those layers "
    "in 8 bits: a file that encoder.weights then names (plimsoll encode CONFIG --weights FILE). Norms, softmax and "
    "activations stay in float32. Two tables say what that costs each layer, the worst first, and which range what "
    "comes to it has; --keep_f32 leaves the worst as they are. On one instruction set the same texts give the same "
    "file, to the last bit. What does not fit memory.budget is refused before anything large is taken (exit 3). "
    "docs/quantize.md says what is done and how the file looks.\n";

static int run(const pl_cli_command *command, int argc, char **argv)
{
    pl_cli_input in;
    pl_talk talk;
    pl_error err = {0};
    pl_call call = {.command = command};
    pl_status status = pl_cli_load(command, argc, argv, 0, &in, &err);
    if (status == PL_OK)
        status = pl_talk_read(in.config, in.arguments.value[QUIET], in.arguments.value[VERBOSE], &talk, &err);
    if (status == PL_OK && talk.quiet == 0) call.word[PL_CALL_LEDGER] = "1";
    int code = status == PL_OK ? pl_cli_start(&in, &talk, false, &call) : pl_cli_complain(command->name, status, &err);
    pl_cli_release(&in);
    return code;
}

const pl_cli_body pl_cli_quantize = {
    .text = about, .options = options, .option_count = sizeof options / sizeof *options, .run = run};
