/* plimsoll quantize: a calibration and the weights that come of it, in a planned process. */
#include "planning.h"
#include "signals.h"
#include "stages.h"

enum { CALIBRATE, CHECKPOINT, QUIET, VERBOSE, LEDGER };
static const pl_cli_option options[] = {
    [CALIBRATE] = {"--calibrate", "FILE", "what infer takes, instead of the training part; of more inputs a FILE each"},
    [CHECKPOINT] = {"--checkpoint", "DIR", "a checkpoint's folder; default: the run's best, else its latest"},
    [QUIET] = {"--quiet", NULL, "say nothing but warnings and errors", true},
    [VERBOSE] = {"--verbose", NULL, "print the whole report of the plan first", true},
    [LEDGER] = {"--ledger", NULL, "print planned and measured memory at the end, and where the time went"},
};

static const char about[] =
    "Lets samples of the training part go through a trained model, or texts through an encoder, sees what comes "
    "to each of its linear layers, and writes its weights with those layers in 8 bits: a file that eval, generate, "
    "infer and encode take with --weights FILE. With --calibrate the samples are items of files, as infer takes them: "
    "the data of the config need not be there. Norms, softmax, activations and convolutions stay in float32. Tables "
    "say what that costs each layer, the worst first, which range what comes to it has, and what the loss of what is "
    "held out is in f32 and in 8 bits (of an encoder, and of files: how alike what comes out is); --keep_f32 leaves "
    "the worst as they are. On one instruction set the same samples give the same file, to the last bit. What does not "
    "fit memory.budget is refused "
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

/* It has no effect without files. */
static pl_status check_scratch(const pl_cli_input *in, pl_error *err)
{
    char files[2];
    pl_status status = pl_cli_setting(in->config, "quantization", "files", files, sizeof files, err);
    if (status != PL_OK || files[0] || !pl_config_is_option(in->config, "infer.scratch")) return status;
    return pl_cli_error(err, PL_E_USAGE, "--scratch is of files to calibrate with, and none is named (--calibrate)");
}

/* Behind the config stand further files, of other inputs or of the same. */
static pl_status take_files(const pl_cli_input *in, pl_error *err)
{
    static char files[4096];
    const pl_cli_arguments *a = &in->arguments;
    const char *first = a->value[CALIBRATE];
    const bool in_config = pl_config_is_option(in->config, "quantization.files");
    if (!first && a->operand_count > 1)
        return pl_cli_error(err, PL_E_USAGE,
                            "one config only, but there is also %.200s; files to calibrate with stand "
                            "behind --calibrate",
                            a->operand[1]);
    if (first && in_config)
        return pl_cli_error(err, PL_E_USAGE,
                            "--calibrate and --set quantization.files both name the files; leave one out");
    if (!first) return check_scratch(in, err);
    pl_status status = pl_cli_join_names(in, first, files, sizeof files, err);
    return status == PL_OK ? pl_config_set(in->config, "quantization.files", files, "--calibrate", err) : status;
}

static int run(const pl_cli_command *command, int argc, char **argv)
{
    pl_cli_input in;
    pl_error err = {0};
    pl_call call = {.command = command};
    uint32_t stages;
    pl_signals_outlive_readers();
    pl_status status = pl_cli_load(command, argc, argv, 0, &in, &err);
    if (status == PL_OK) status = pl_cli_name_stage(&in, &stages, &err);
    if (status == PL_OK) status = check_trained(&in, &err);
    if (status == PL_OK) status = take_files(&in, &err);
    call.word[PL_CALL_CHECKPOINT] = in.arguments.value[CHECKPOINT];
    const pl_manner manner = {.quiet = in.arguments.value[QUIET],
                              .verbose = in.arguments.value[VERBOSE],
                              .ledger = in.arguments.value[LEDGER],
                              .sums_up = true};
    return pl_cli_finish(&in, status, &manner, &call, &err);
}

const pl_cli_body pl_cli_quantize = {.text = about,
                                     .options = options,
                                     .option_count = sizeof options / sizeof *options,
                                     .takes_many = true,
                                     .run = run};
