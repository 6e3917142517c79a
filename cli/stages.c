#include "stages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "out.h"

/* The folder of all stages, for the processes after the first. */
static const char begun[] = "PLIMSOLL_INTERNAL_STAGES";

const char *pl_cli_stages_folder(void) { return getenv(begun); }

static pl_status check_begun(const char *before, const char *now, pl_error *err)
{
    if (!before || strcmp(before, now) == 0) return PL_OK;
    return pl_cli_error(err, PL_E_CONFIG,
                        "the config was changed while this ran: its stages were in %.300s and would now be in %.300s; "
                        "begin the command again for those that you want",
                        before, now);
}

static pl_status name_stage(const pl_stage *stage, pl_status status, pl_error *err)
{
    const pl_error why = *err;
    const bool is_last = status != PL_E_BUDGET || stage->number == stage->count;
    return pl_cli_error(err, status, "%.700s (%s, %u of %u trainings)%s", why.text, stage->name, stage->number,
                        stage->count, is_last ? "" : "; those after it were not planned yet");
}

/* Most data are shared by all stages: what is wrong with them is not specific to the first training, which finds it. */
static pl_status check_stage(const pl_cli_command *command, const pl_cli_input *in, const pl_talk *talk,
                             const pl_config *whole, const pl_stage *first, uint32_t k, pl_error *err)
{
    pl_stage stage = {0};
    pl_plan *plan = NULL;
    pl_cli_input later = *in;
    later.config = pl_config_copy(whole);
    if (!later.config) return pl_cli_error(err, PL_E_NOMEM, "no memory for the config");
    pl_status status = pl_stage_ahead(later.config, k, &stage, err);
    if (status == PL_OK && stage.count)
        status = pl_cli_make_plan(command->name, &later, PL_COMMAND_TRAIN, talk, &plan, err);
    pl_plan_destroy(plan);
    pl_config_destroy(later.config);
    const bool of_all = k + 1 == first->number && status != PL_E_BUDGET;
    return status == PL_OK || !stage.count || of_all ? status : name_stage(&stage, status, err);
}

/* What cannot fit is refused before the first training begins, not when its turn comes. What is wrong with a later one
 * may be wrong with the first, too, and is then reported for that. */
static pl_status check_later(const pl_cli_command *command, const pl_cli_input *in, const pl_talk *talk,
                             const pl_config *whole, const pl_stage *first, pl_error *err)
{
    pl_status status = PL_OK;
    for (uint32_t k = first->number; status == PL_OK && k < first->count; k++)
        status = check_stage(command, in, talk, whole, first, k, err);
    if (status == PL_OK || status == PL_E_STOPPED) return status;
    const pl_error why = *err;
    const pl_status of_first = check_stage(command, in, talk, whole, first, first->number - 1, err);
    if (of_first != PL_OK) return of_first;
    *err = why;
    return status;
}

static pl_status find(const pl_cli_command *command, pl_cli_input *in, const pl_talk *talk, const pl_config *whole,
                      pl_stage *stage, pl_error *err)
{
    const char *before = getenv(begun);
    pl_status status = pl_stage_find(in->config, before ? PL_STAGE_GO_ON : PL_STAGE_BEGIN, stage, err);
    if (status != PL_OK || stage->count == 0) return status;
    status = check_begun(before, in->out, err);
    const bool begins = !before && !stage->all_done;
    if (status == PL_OK && begins) status = pl_cli_introduce_run(command->name, in, talk, err);
    /* before the stages count as begun: to make a plan, the process may restart */
    if (status == PL_OK && begins) status = check_later(command, in, talk, whole, stage, err);
    if (status == PL_OK && setenv(begun, in->out, 1) != 0)
        status = pl_cli_error(err, PL_E_NOMEM, "no memory to name the stages to the next process");
    if (status != PL_OK || stage->all_done) return status;
    return pl_config_run_folder(in->config, in->out, sizeof in->out, err);
}

pl_status pl_cli_take_stage(const pl_cli_command *command, pl_cli_input *in, const pl_talk *talk, pl_stage *stage,
                            pl_error *err)
{
    pl_config *whole = pl_config_copy(in->config);
    if (!whole) return pl_cli_error(err, PL_E_NOMEM, "no memory for the config");
    pl_status status = find(command, in, talk, whole, stage, err);
    pl_config_destroy(whole);
    return status;
}

static pl_status keep(const pl_cli_input *in, pl_stage_form form, const char *name, char path[PATH_MAX], pl_error *err)
{
    char *text = NULL;
    size_t bytes = 0;
    int n = snprintf(path, PATH_MAX, "%s/%s", in->out, name);
    if (n < 0 || n >= PATH_MAX) return pl_cli_error(err, PL_E_USAGE, "%s: the path is too long", in->out);
    pl_status status = pl_stage_report(in->config, form, &text, &bytes, err);
    if (status == PL_OK) status = pl_text_save(path, text, bytes, err);
    pl_text_free(text);
    return status;
}

static pl_status print(const pl_cli_input *in, pl_error *err)
{
    char *text = NULL;
    size_t bytes = 0;
    pl_status status = pl_stage_report(in->config, PL_STAGE_TEXT, &text, &bytes, err);
    if (status == PL_OK) status = pl_put_kept(text, bytes, err);
    pl_text_free(text);
    return status;
}

/* Files first: standard output may have no reader. */
int pl_cli_conclude_stages(const pl_cli_input *in, const pl_talk *talk)
{
    pl_error err = {0};
    char json[PATH_MAX], page[PATH_MAX];
    pl_status status = keep(in, PL_STAGE_JSON, "results.json", json, &err);
    if (status == PL_OK) status = keep(in, PL_STAGE_HTML, "results.html", page, &err);
    if (status == PL_OK) status = print(in, &err);
    if (status == PL_OK && !talk->quiet) pl_say("kept: %s, %s\n", json, page);
    return status == PL_OK ? 0 : pl_cli_complain("train", status, &err);
}

/* ---- one of them, planned alone ---- */

/* The config of its training number k in *named; NULL where there is no such training. */
static pl_status look_ahead(const pl_config *config, uint32_t k, pl_stage *stage, pl_config **named, pl_error *err)
{
    *named = pl_config_copy(config);
    if (!*named) return pl_cli_error(err, PL_E_NOMEM, "no memory for the config");
    pl_status status = pl_stage_ahead(*named, k, stage, err);
    if (status == PL_OK && stage->count) return PL_OK;
    pl_config_destroy(*named);
    *named = NULL;
    return status;
}

/* The output is about one training only. */
static pl_status tell_others(const pl_cli_command *command, const pl_config *config, uint32_t count, pl_error *err)
{
    pl_say("plimsoll %s: this config is %u trainings, and what follows is of its own keys; --stage NAME plans one of "
           "them:",
           command->name, count);
    for (uint32_t k = 0; k < count; k++) {
        pl_stage stage;
        pl_config *named;
        pl_status status = look_ahead(config, k, &stage, &named, err);
        if (status != PL_OK) return pl_say("\n"), status;
        if (named) pl_say("%s %s", k ? "," : "", stage.name);
        pl_config_destroy(named);
    }
    pl_say("\n");
    return PL_OK;
}

pl_status pl_cli_name_stage(pl_cli_input *in, uint32_t *count, pl_error *err)
{
    pl_stage stage = {0};
    pl_config *named;
    const pl_status status = look_ahead(in->config, 0, &stage, &named, err);
    *count = stage.count;
    if (status != PL_OK || !named) return status;
    if (stage.count > 1) return pl_config_destroy(named), PL_OK;
    pl_config_destroy(in->config);
    in->config = named;
    return pl_config_run_folder(in->config, in->out, sizeof in->out, err);
}

pl_status pl_cli_plan_stage(const pl_cli_command *command, pl_cli_input *in, pl_error *err)
{
    uint32_t count;
    const pl_status status = pl_cli_name_stage(in, &count, err);
    return status == PL_OK && count > 1 ? tell_others(command, in->config, count, err) : status;
}
