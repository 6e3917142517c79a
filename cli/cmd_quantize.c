/* plimsoll quantize: a calibration and the weights that come of it, in a planned process. */
#include "planning.h"
#include "stages.h"

enum { CHECKPOINT, QUIET, VERBOSE };
static const pl_cli_option options[] = {
    [CHECKPOINT] = {"--checkpoint", "DIR", "a checkpoint's folder; default: the run's best, else its latest"},
    [QUIET] = {"--quiet", NULL, "say nothing but warnings and errors", true},
    [VERBOSE] = {"--verbose", NULL, "print the whole report of the plan first", true},
};

static const char about[] =
    "Lets samples of the training part go through a trained model, or texts through an encoder, sees what comes "
    "to each of its linear layers, and writes its weights with those layers in 8 bits: a file that eval, generate, "
    "infer and encode take with --weights FILE. Norms, softmax, activations and convolutions stay in float32. Tables "
    "say what "
    "that "
    "costs each layer, the worst first, which range what comes to it has, and what the loss of what is held out is in "
    "f32 and in 8 bits (of an encoder: how alike its capsules are); --keep_f32 leaves the worst as they are. On one "
    "instruction set the same samples give the same file, to the last bit. What does not fit memory.budget is refused "
    "before anything large is taken (exit 3). CONFIG is the run's config file or the folder of the run. "
    "docs/quantize.md says what is done and how the file looks.\n";

/* An encoder is not trained: without a file of weights it has random ones. */
static pl_status check_trained(const pl_cli_input *in, pl_error *err)
{
    const char *checkpoint = in->arguments.value[CHECKPOINT];
    const bool is_trained = pl_command_does(pl_command_of(in->config), PL_USES_UPDATE);
    if (is_trained) return pl_cli_require_trained(in, checkpoint, false, err);
    if (!checkpoint) return PL_OK;
    return pl_cli_error(err, PL_E_USAGE, "--checkpoint is of models that are trained; name a file with --weights");
}

static int run(const pl_cli_command *command, int argc, char **argv)
{
    pl_cli_input in;
    pl_error err = {0};
    pl_call call = {.command = command};
    uint32_t stages;
    pl_status status = pl_cli_load(command, argc, argv, 0, &in, &err);
    if (status == PL_OK) status = pl_cli_name_stage(&in, &stages, &err);
    if (status == PL_OK) status = check_trained(&in, &err);
    call.word[PL_CALL_CHECKPOINT] = in.arguments.value[CHECKPOINT];
    const pl_manner manner = {
        .quiet = in.arguments.value[QUIET], .verbose = in.arguments.value[VERBOSE], .tells_ledger = true};
    return pl_cli_finish(&in, status, &manner, &call, &err);
}

const pl_cli_body pl_cli_quantize = {
    .text = about, .options = options, .option_count = sizeof options / sizeof *options, .run = run};
