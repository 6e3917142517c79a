/* plimsoll train: plans, then trains in a process that holds exactly what was planned. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "planning.h"

enum { QUIET, VERBOSE };
static const pl_cli_option options[] = {
    [QUIET] = {"--quiet", NULL, "say nothing but warnings and errors", true},
    [VERBOSE] = {"--verbose", NULL, "print the whole report of the plan first", true},
};

static const char about[] =
    "Prepares the text (once), plans where every byte will go, and trains. What does not fit memory.budget is refused "
    "before\n"
    "anything large is taken (exit 3). In the folder of the run (--out): checkpoints/ with model.safetensors,\n"
    "metrics.jsonl, TensorBoard events, config.yaml, plan.lock, plan.html and report.json, the ledger at the end.\n"
    "\n"
    "Ctrl-C, SIGTERM or SIGHUP finishes the step, saves and ends with 130, 143 or 75; --resume goes on from there, bit "
    "for\n"
    "bit. A second Ctrl-C or SIGTERM leaves at once, and so does the first before the first step. A step that takes "
    "long says so.\n"
    "SIGUSR1 prints the ledger.\n";

/* A resumed run takes the micro-batch that the run began with unless told otherwise: sums in another order have other
 * last bits. When that does not fit any more (a smaller budget), planning says so and which key to set. */
static pl_status take_micro_batch(pl_cli_input *in, pl_error *err)
{
    char resume[8], micro[32], path[PATH_MAX];
    pl_status status = pl_cli_setting(in->config, "run", "resume", resume, sizeof resume, err);
    if (status == PL_OK) status = pl_cli_setting(in->config, "train", "micro_batch", micro, sizeof micro, err);
    if (status != PL_OK || strcmp(resume, "true") != 0 || strcmp(micro, "auto") != 0) return status;
    int n = snprintf(path, sizeof path, "%s/" PL_CLI_CONFIG_FILE, in->out);
    if (n < 0 || n >= PATH_MAX || access(path, R_OK)) return PL_OK; /* nothing to resume */
    pl_config *before = pl_config_create();
    if (!before) return pl_cli_error(err, PL_E_NOMEM, "no memory for the config");
    status = pl_config_load_file(before, path, err);
    if (status == PL_OK) status = pl_cli_setting(before, "train", "micro_batch", micro, sizeof micro, err);
    if (status == PL_OK && micro[0]) status = pl_config_set(in->config, "train.micro_batch", micro, path, err);
    pl_config_destroy(before);
    return status;
}

static int run(const pl_cli_command *command, int argc, char **argv)
{
    pl_cli_input in;
    pl_talk talk;
    pl_error err = {0};
    (void)signal(SIGPIPE, SIG_IGN); /* who reads along may leave; the run goes on (exec keeps this) */
    pl_status status = pl_cli_load(command, argc, argv, 0, &in, &err);
    if (status == PL_OK) status = pl_cli_check_new_run(&in, &err);
    if (status == PL_OK) status = take_micro_batch(&in, &err);
    if (status == PL_OK)
        status = pl_talk_read(in.config, in.arguments.value[QUIET], in.arguments.value[VERBOSE], &talk, &err);
    pl_call call = {.name = "train"};
    if (status == PL_OK && talk.quiet == 0) call.word[PL_CALL_LEDGER] = "1";
    int code = status == PL_OK ? pl_cli_start(&in, PL_COMMAND_TRAIN, &talk, true, &call)
                               : pl_cli_complain(command->name, status, &err);
    pl_cli_release(&in);
    return code;
}

const pl_cli_command pl_cli_train = {.name = "train",
                                     .operands = "CONFIG",
                                     .summary = "plan and train",
                                     .text = about,
                                     .options = options,
                                     .option_count = sizeof options / sizeof *options,
                                     .takes_config = true,
                                     .of_command = true,
                                     .command = PL_COMMAND_TRAIN,
                                     .run = run};
