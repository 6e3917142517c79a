/* plimsoll fit: the fastest way to run inside a budget, why, and what other budgets would bring. */
#include <unistd.h>

#include "out.h"
#include "planning.h"
#include "progress.h"
#include "stages.h"

enum { JSON, HTML, LOCK, QUIET };
static const pl_cli_option options[] = {
    [JSON] = {"--json", NULL, "print what was found as JSON (schema plimsoll.fit/1) instead of the report", true},
    [HTML] = {"--html", "FILE", "write it as a page with pictures (- for stdout, instead of the report)", true},
    [LOCK] = {"--lock", "FILE", "write the chosen plan; plimsoll train CONFIG --lock FILE runs it (- likewise)", true},
    [QUIET] = {"--quiet", NULL, "no progress"},
};

static const char about[] =
    "Searches for the fastest way to train within --budget (all bytes that a container is charged for; auto: what "
    "this machine or container has free): micro-batches, what is computed again, the backward pass block by block "
    "over the whole batch, feed-forward layers in chunks, updates in the backward pass, threads, huge pages; and by "
    "leave of fit.allow what changes numbers. Prints the chosen plan and why, and the front: which budget buys which "
    "time. train with memory.budget does the same search on its way. Of a config that is not trained (rollouts) it "
    "searches the largest shape: how much is done at once, threads; other precisions are shown beside it. Prepares the "
    "data when that was not done, and "
    "measures kernels that were never measured here. When nothing fits, none is measured; what would make it fit is "
    "said, and the exit code is 3.\n";

static pl_status put_form(const pl_fit_answer *answer, pl_fit_form form, const char *path, pl_error *err)
{
    char *text = NULL;
    size_t bytes = 0;
    const bool here = !path || pl_is_stdout(path);
    pl_status status = pl_fit_text(answer, form, pl_terminal_columns(STDOUT_FILENO),
                                   here && form == PL_FIT_REPORT && pl_color_wanted(STDOUT_FILENO), &text, &bytes, err);
    if (status == PL_OK) status = pl_put_to(path, pl_page_save, text, bytes, err);
    pl_text_free(text);
    return status;
}

static pl_status put_lock(const pl_fit_answer *answer, const char *path, pl_error *err)
{
    char *text = NULL;
    size_t bytes = 0;
    if (!pl_is_stdout(path)) return pl_plan_save(pl_fit_plan(answer), path, err);
    pl_status status = pl_plan_text(pl_fit_plan(answer), PL_PLAN_LOCK, &text, &bytes, err);
    if (status == PL_OK) status = pl_put(text, bytes, err);
    pl_text_free(text);
    return status;
}

/* Files first: what is on stdout then is true when it is read. */
static pl_status put_all(const pl_fit_answer *answer, const char *const *value, pl_error *err)
{
    bool taken = pl_is_stdout(value[HTML]) || pl_is_stdout(value[LOCK]);
    pl_status status = PL_OK;
    if (value[LOCK] && pl_fit_plan(answer)) status = put_lock(answer, value[LOCK], err);
    if (status == PL_OK && value[HTML]) status = put_form(answer, PL_FIT_HTML, value[HTML], err);
    if (status != PL_OK || taken) return status;
    return put_form(answer, value[JSON] ? PL_FIT_JSON : PL_FIT_REPORT, NULL, err);
}

/* A plan of a part of the work is of no use to keep. */
static pl_status check_lock(const pl_cli_input *in, pl_error *err)
{
    if (!in->arguments.value[LOCK] || pl_command_does(pl_command_of(in->config), PL_USES_UPDATE)) return PL_OK;
    return pl_cli_error(err, PL_E_USAGE,
                        "--lock keeps a plan for train, which a config of this model.arch has not got");
}

/* When nothing fits there is something to show all the same, and the sentence comes last. */
static pl_status fit(const pl_cli_command *command, const pl_cli_input *in, pl_error *err)
{
    pl_talk talk;
    pl_fit_answer *answer = NULL;
    pl_error other = {0};
    pl_status status = check_lock(in, err);
    if (status == PL_OK) status = pl_talk_read(in->config, in->arguments.value[QUIET], false, &talk, err);
    if (status == PL_OK && pl_command_does(pl_command_of(in->config), PL_USES_UPDATE))
        status = pl_check_resume(in->config, err);
    if (status == PL_OK) status = pl_cli_make_fit(command->name, in, &talk, &answer, err);
    pl_status written = answer ? put_all(answer, in->arguments.value, &other) : PL_OK;
    pl_fit_destroy(answer);
    if (written != PL_OK) *err = other;
    return written != PL_OK ? written : status;
}

static int run(const pl_cli_command *command, int argc, char **argv)
{
    pl_cli_input in;
    pl_error err = {0};
    pl_status status = pl_cli_load(command, argc, argv, 0, &in, &err);
    if (status == PL_OK) status = pl_cli_plan_stage(command, &in, &err);
    if (status == PL_OK) status = fit(command, &in, &err);
    pl_cli_release(&in);
    return status == PL_OK ? 0 : pl_cli_complain(command->name, status, &err);
}

const pl_cli_body pl_cli_fit = {
    .text = about, .options = options, .option_count = sizeof options / sizeof *options, .run = run};
