/* plimsoll train: plans, then trains in a process that holds exactly what was planned. */
#include <limits.h>
#include <string.h>

#include "again.h"
#include "out.h"
#include "signals.h"
#include "stages.h"

enum { QUIET, VERBOSE, LOCK, LEDGER, OVERWRITE };
static const pl_cli_option options[] = {
    [QUIET] = {"--quiet", NULL, "say nothing but warnings and errors", true},
    [VERBOSE] = {"--verbose", NULL, "print the whole report of the plan first", true},
    [LEDGER] = {"--ledger", NULL, "print planned and measured memory at the end, and where the time went"},
    [LOCK] = {"--lock", "PLAN", "run this plan, as plimsoll fit --lock or plan --out-lock wrote it"},
    [OVERWRITE] = {"--overwrite", NULL,
                   "start over: the checkpoints of the run in the folder are removed once the new one is planned"},
};

static const char about[] =
    "Prepares the data (once), plans where every byte will go, and trains. What does not fit memory.budget is "
    "refused before anything large is taken (exit 3). In the folder of the run (--out): checkpoints/ with "
    "model.safetensors, metrics.jsonl, TensorBoard events, config.yaml, plan.lock, plan.html, report.json, "
    "the ledger at the end, times.json, where the time went, and starts.jsonl, how it was started (plimsoll report).\n"
    "\n"
    "Ctrl-C, SIGTERM or SIGHUP finishes the step, saves, prints the command that goes on from there, bit for bit, and "
    "ends with 130, 143 or 75. A second Ctrl-C or SIGTERM, half a second later or more, leaves at once and says which "
    "checkpoint is the last; where there is none it ends with 1. Before the first step the first one leaves at once, "
    "and there is nothing to resume. A step that takes long says so. SIGUSR1 prints the ledger.\n"
    "\n"
    "--resume goes on from the newest checkpoint. It is refused where there is none, where more steps are made than "
    "are asked for, and with settings that may not change (docs/config.md, \"decides\"); what else decides numbers and "
    "is another value is said. A run that is complete says so and ends with 0. --resume=auto begins where there is no "
    "checkpoint: a container starts, and starts again, with\n"
    "  train CONFIG --lock PLAN --resume=auto\n"
    "--overwrite starts over in a folder that holds a run: its checkpoints are removed when the new one is planned.\n"
    "\n"
    "A config of cloud heights or chains of thought, or of pages with n2n_pretrain.enabled or "
    "finetune.enabled, may mean several trainings: each has a folder in "
    "that of the run, and is then judged by what was held out; the table of all is printed at the end and kept as "
    "results.json and results.html. --stage NAME makes one of them; of pages there are denoiser "
    "and policy, too, which are made by name alone. All are planned before the first begins.\n";

/* What one does with a model that is trained: a command for a shell. */
static const char *find_next(const pl_cli_input *in, char text[PL_AGAIN_BYTES])
{
    pl_error none;
    const bool writes = pl_command_require(PL_COMMAND_GENERATE, in->config, &none) == PL_OK;
    pl_line line = {text, PL_AGAIN_BYTES, 0};
    const char *const *words;
    pl_again_add_word(&line, pl_again_words(&words) ? words[0] : "plimsoll");
    pl_line_add(&line, writes ? " generate " : " eval ");
    pl_again_add_word(&line, in->out);
    if (writes) pl_line_add(&line, " --prompt \"The \"");
    return line.bytes + 1 < line.room ? text : NULL;
}

/* A stage that is trained is evaluated. */
static int start(const pl_cli_command *command, const pl_cli_input *in, const pl_talk *talk, const pl_stage *stage)
{
    const bool evaluates = stage->count && stage->command == PL_COMMAND_EVALUATE;
    pl_call call = {.command = evaluates ? pl_cli_find("eval") : command,
                    .plan = evaluates ? NULL : in->arguments.value[LOCK]};
    if (stage->count) call.word[PL_CALL_STAGE] = stage->name;
    if (evaluates) call.word[PL_CALL_TO] = stage->predictions;
    const bool is_last = stage->number == stage->count; /* 0 of 0: it is the only training */
    char then[PL_AGAIN_BYTES];
    if (talk->quiet == 0 && !evaluates && is_last) call.word[PL_CALL_SUMMARY] = "1";
    if (in->arguments.value[LEDGER] && !evaluates && is_last) call.word[PL_CALL_LEDGER] = "1";
    if (stage->count == 0) call.word[PL_CALL_THEN] = find_next(in, then);
    if (stage->count && talk->quiet == 0)
        pl_say("\n%s (%u of %u): %s\n", stage->name, stage->number, stage->count,
               stage->was_changed ? "predictions.csv is not as it was written: what was held out, again"
               : evaluates        ? "what was held out"
                                  : "training");
    return pl_cli_start(in, talk, !evaluates, &call);
}

static pl_status check_lock(const pl_cli_input *in, const pl_stage *stage, pl_error *err)
{
    if (stage->count <= 1 || !in->arguments.value[LOCK]) return PL_OK;
    return pl_cli_error(err, PL_E_USAGE,
                        "--lock runs a plan of one training, and this config has %u: say which with --stage",
                        stage->count);
}

/* The run in the folder goes when nothing that a plan finds can stop the new one. */
static pl_status start_over(const pl_cli_command *command, pl_cli_input *in, const pl_talk *talk, pl_error *err)
{
    uint32_t trainings;
    pl_plan *plan = NULL;
    if (!in->arguments.value[OVERWRITE]) return PL_OK;
    if (strcmp(in->resume, "false") != 0)
        return pl_cli_error(err, PL_E_USAGE, "--overwrite starts over and --resume goes on; give one of them");
    char init_from[PATH_MAX];
    if (in->arguments.value[LOCK])
        return pl_cli_error(err, PL_E_USAGE,
                            "--overwrite plans anew and --lock runs a plan that was made; give one of them");
    pl_status status = pl_cli_setting(in->config, "train", "init_from", init_from, sizeof init_from, err);
    if (status == PL_OK && init_from[0] && strcmp(init_from, "none") != 0)
        return pl_cli_error(
            err, PL_E_USAGE,
            "--overwrite would remove a run before it is known whether the new one can begin with %.300s; "
            "choose another folder with --out",
            init_from);
    if (status == PL_OK) status = pl_cli_name_stage(in, &trainings, err);
    if (status == PL_OK && trainings)
        return pl_cli_error(
            err, PL_E_USAGE,
            "--overwrite is of a config that is one training, and this one is %u; remove %.300s, or choose "
            "another folder with --out",
            trainings, in->out);
    if (status == PL_OK) status = pl_cli_make_plan(command->name, in, PL_COMMAND_TRAIN, talk, &plan, err);
    pl_plan_destroy(plan);
    return status == PL_OK ? pl_forget_run(in->config, err) : status;
}

static int run(const pl_cli_command *command, int argc, char **argv)
{
    pl_cli_input in;
    pl_talk talk;
    pl_stage stage = {0};
    pl_error err = {0};
    pl_signals_outlive_readers();
    pl_status status = pl_cli_load(command, argc, argv, 0, &in, &err);
    if (status == PL_OK)
        status = pl_talk_read(in.config, in.arguments.value[QUIET], in.arguments.value[VERBOSE], &talk, &err);
    if (status == PL_OK) status = start_over(command, &in, &talk, &err);
    if (status == PL_OK) status = pl_cli_take_stage(command, &in, &talk, &stage, &err);
    if (status == PL_OK) status = check_lock(&in, &stage, &err);
    if (status == PL_OK && !stage.all_done) status = pl_cli_check_new_run(&in, &err);
    int code = status != PL_OK  ? pl_cli_complain(command->name, status, &err)
               : stage.all_done ? pl_cli_conclude_stages(&in, &talk)
                                : start(command, &in, &talk, &stage);
    pl_cli_release(&in);
    return code;
}

const pl_cli_body pl_cli_train = {
    .text = about, .options = options, .option_count = sizeof options / sizeof *options, .run = run};
