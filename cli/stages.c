#include "stages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "out.h"

/* The folder of all stages, for the processes that come behind the first. */
static const char begun[] = "PLIMSOLL_INTERNAL_STAGES";

static pl_status check_begun(const char *before, const char *now, pl_error *err)
{
    if (!before || strcmp(before, now) == 0) return PL_OK;
    return pl_cli_error(err, PL_E_CONFIG,
                        "the config was changed while this ran: its stages were in %.300s and would now be in %.300s; "
                        "begin the command again for those that you want",
                        before, now);
}

pl_status pl_cli_take_stage(pl_cli_input *in, pl_stage *stage, pl_error *err)
{
    const char *before = getenv(begun);
    pl_status status = pl_stage_find(in->config, before ? PL_STAGE_GO_ON : PL_STAGE_BEGIN, stage, err);
    if (status != PL_OK || stage->count == 0) return status;
    status = check_begun(before, in->out, err);
    if (status == PL_OK && setenv(begun, in->out, 1) != 0)
        status = pl_cli_error(err, PL_E_NOMEM, "no memory to name the stages to the next process");
    if (status != PL_OK || stage->all_done) return status;
    return pl_config_run_folder(in->config, in->out, sizeof in->out, err);
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
    if (status == PL_OK) status = pl_put(text, bytes, err);
    pl_text_free(text);
    return status;
}

int pl_cli_conclude_stages(const pl_cli_input *in, const pl_talk *talk)
{
    pl_error err = {0};
    char json[PATH_MAX], page[PATH_MAX];
    pl_status status = print(in, &err);
    if (status == PL_OK) status = keep(in, PL_STAGE_JSON, "results.json", json, &err);
    if (status == PL_OK) status = keep(in, PL_STAGE_HTML, "results.html", page, &err);
    if (status == PL_OK && !talk->quiet) pl_say("kept: %s, %s\n", json, page);
    return status == PL_OK ? 0 : pl_cli_complain("train", status, &err);
}
