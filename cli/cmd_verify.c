/* plimsoll verify: numbers for others to check. */
#include <string.h>

#include "planning.h"

enum { GRADIENTS, CHECKPOINT, LEDGER };
static const pl_cli_option options[] = {
    [GRADIENTS] = {"--gradients", "FILE", "write a batch, its loss and every gradient as safetensors"},
    [CHECKPOINT] = {"--checkpoint", "DIR",
                    "a checkpoint's folder; default: the run's best, else its latest, else first weights"},
    [LEDGER] = {"--ledger", NULL, "print planned and measured memory at the end, to stderr"},
};

static const char about[] = "Writes one batch (inputs, targets), the loss and the gradient of every weight at the "
                            "current weights, so that anyone\n"
                            "can compare them with another framework, and prints what is in the file.\n";

static int run(const pl_cli_command *command, int argc, char **argv)
{
    pl_cli_input in;
    pl_talk talk;
    pl_error err = {0};
    pl_call call = {.name = "verify"};
    pl_status status = pl_cli_load(command, argc, argv, 0, &in, &err);
    call.word[PL_CALL_TO] = in.arguments.value[GRADIENTS];
    call.word[PL_CALL_CHECKPOINT] = in.arguments.value[CHECKPOINT];
    call.word[PL_CALL_LEDGER] = in.arguments.value[LEDGER] ? "1" : NULL;
    if (status == PL_OK && !call.word[PL_CALL_TO])
        status = pl_cli_error(&err, PL_E_USAGE, "nothing to verify: plimsoll verify --gradients FILE CONFIG");
    if (status == PL_OK && strcmp(call.word[PL_CALL_TO], "-") == 0)
        status = pl_cli_error(&err, PL_E_USAGE, "--gradients - is no file: they are binary; give the name of one");
    if (status == PL_OK && call.word[PL_CALL_CHECKPOINT])
        status = pl_cli_require_trained(&in, call.word[PL_CALL_CHECKPOINT], &err);
    if (status == PL_OK) status = pl_talk_read(in.config, false, false, &talk, &err);
    int code = status == PL_OK ? pl_cli_start(&in, PL_COMMAND_GRADIENTS, &talk, false, &call)
                               : pl_cli_complain(command->name, status, &err);
    pl_cli_release(&in);
    return code;
}

const pl_cli_command pl_cli_verify = {.name = "verify",
                                      .operands = "CONFIG|FOLDER",
                                      .summary = "write gradients for others to check",
                                      .text = about,
                                      .options = options,
                                      .option_count = sizeof options / sizeof *options,
                                      .takes_config = true,
                                      .of_command = true,
                                      .command = PL_COMMAND_GRADIENTS,
                                      .run = run};
