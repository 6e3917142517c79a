/* plimsoll encode: texts drawn as pages and encoded to capsules, in a planned process; or a witness of one text, in
 * this process. */
#include <limits.h>
#include <stdio.h>

#include "results_command.h"

enum { CHECKPOINT = PL_RESULTS_OWN };
static const pl_cli_option options[] = {
    [PL_RESULTS_QUIET] = {"--quiet", NULL, "say nothing but warnings and errors", true},
    [PL_RESULTS_VERBOSE] = {"--verbose", NULL, "print the whole report of the plan first", true},
    [PL_RESULTS_LEDGER] = {"--ledger", NULL, "print planned and measured memory at the end, and where the time went"},
    [PL_RESULTS_ONLY] = {"--only", "N", "with --witness: text N, counted from 0; default: 0"},
    [PL_RESULTS_WITNESS] = {"--witness", "DIR",
                            "write the weights, one text's page and its capsules into DIR, and no results: what "
                            "another program needs to repeat it"},
    [CHECKPOINT] = {"--checkpoint", "DIR",
                    "weights of this checkpoint of a trained model; default: the run's best, else its latest"},
};

static const char about[] =
    "Draws each text as a page, encodes it by the model of the config, and writes its capsules (sketches, checksums, "
    "children) into one file of results, block by block, so memory does not grow with the number of texts. The model "
    "is one of arch capsules, or one of arch hybrid that was trained: then CONFIG is the run's config file or its "
    "folder, and the texts are named by options or in the config (--texts). What the "
    "file has already is not made again: after a stop, a crash or a kill the same command goes on, and the file is the "
    "one that an undisturbed run would have made, whatever batch, threads and budget. What the disk has no room for is "
    "refused before anything runs (exit 5), what does not fit memory.budget before the first text (exit 3). Texts that "
    "a page cannot show as they are meant are drawn as well as it can, counted, and marked in the dataset remarks. "
    "When "
    "all is done, an HTML page about it lies beside the results; plimsoll results report makes it at any time.\n";

/* A checkpoint is a file of weights that also says which run they belong to. */
static pl_status take_checkpoint(const pl_cli_input *in, pl_error *err)
{
    char path[PATH_MAX];
    const char *checkpoint = in->arguments.value[CHECKPOINT];
    pl_error none = {0};
    const bool is_trained = pl_command_require(PL_COMMAND_TRAIN, in->config, &none) == PL_OK;
    if (!is_trained && checkpoint)
        return pl_cli_error(err, PL_E_USAGE,
                            "--checkpoint names weights of a model that is trained here; leave it out");
    pl_status status = is_trained ? pl_cli_require_trained(in, checkpoint, false, err) : PL_OK;
    if (status != PL_OK || !checkpoint) return status;
    const int n = snprintf(path, sizeof path, "%s/model.safetensors", checkpoint);
    if (n < 0 || n >= PATH_MAX) return pl_cli_error(err, PL_E_USAGE, "the path of the checkpoint is too long");
    return pl_config_set(in->config, "run.weights", path, "--checkpoint", err);
}

static int run(const pl_cli_command *command, int argc, char **argv)
{
    pl_cli_input in;
    pl_error err = {0};
    pl_status status = pl_results_command_load(command, argc, argv, &in, &err);
    if (status == PL_OK) status = take_checkpoint(&in, &err);
    return pl_results_command_finish(command, &in, PL_RESULTS_NO_STEPS, status, &err);
}

const pl_cli_body pl_cli_encode = {
    .text = about, .options = options, .option_count = sizeof options / sizeof *options, .run = run};
