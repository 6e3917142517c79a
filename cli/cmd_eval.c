/* plimsoll eval: the loss of a trained model on the held-out part of the data. */
#include <string.h>

#include "planning.h"
#include "stages.h"

enum { CHECKPOINT, JSON, PREDICTIONS, LEDGER };
static const pl_cli_option options[] = {
    [CHECKPOINT] = {"--checkpoint", "DIR", "a checkpoint's folder; default: the run's best, else its latest"},
    [JSON] = {"--json", NULL, "the result as JSON (schema plimsoll.eval/1)"},
    [PREDICTIONS] = {"--predictions", "FILE",
                     "write what was predicted beside what is true, a line (CSV) for each sample; of "
                     "cloud heights"},
    [LEDGER] = {"--ledger", NULL, "print planned and measured memory at the end, to stderr"},
};

static const char about[] =
    "Prints the loss over the whole held-out part of the data (data.validation_fraction), and what its system reads "
    "off "
    "it: of a text perplexity, bits per token and per byte; of cloud heights errors in km. --text FILE judges another "
    "text than the run was trained on, all of it. CONFIG is the run's config file or the folder of the run, or a "
    "pretrained model (docs/own-models.md): of that the perplexity of --text FILE, by llama.cpp's protocol or "
    "(--protocol windows) that of transformers, or with --choices FILE the likelihood of each of several texts that "
    "may follow a prompt, a line of JSON for each prompt.\n";

static int run(const pl_cli_command *command, int argc, char **argv)
{
    pl_cli_input in;
    pl_error err = {0};
    pl_call call = {.command = command};
    uint32_t stages;
    pl_status status = pl_cli_load(command, argc, argv, 0, &in, &err);
    if (status == PL_OK) status = pl_cli_name_stage(&in, &stages, &err);
    if (status == PL_OK) status = pl_cli_keep_judged(&in, &err);
    if (status == PL_OK) status = pl_cli_require_trained(&in, in.arguments.value[CHECKPOINT], false, &err);
    call.word[PL_CALL_CHECKPOINT] = in.arguments.value[CHECKPOINT];
    call.word[PL_CALL_JSON] = in.arguments.value[JSON] ? "1" : NULL;
    call.word[PL_CALL_TO] = in.arguments.value[PREDICTIONS];
    call.word[PL_CALL_LEDGER] = in.arguments.value[LEDGER] ? "1" : NULL;
    return pl_cli_finish(&in, status, &(pl_manner){.keep = false}, &call, &err);
}

const pl_cli_body pl_cli_eval = {
    .text = about, .options = options, .option_count = sizeof options / sizeof *options, .run = run};
