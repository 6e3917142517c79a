/* plimsoll report: what a run is and came to, or how several differ. */

#include <unistd.h>

#include "command.h"
#include "load.h"
#include "out.h"
#include "progress.h"

enum { JSON, HTML };
static const pl_cli_option own_options[] = {
    [JSON] =
        {"--json", NULL,
         "print its table of times as JSON (schema plimsoll.times/1); of several runs plimsoll.runs/1, of a pretrained "
         "model plimsoll.model/1",
         true},
    [HTML] = {"--html", "FILE", "write a page with curves (- for stdout)", true},
};

static const char about[] =
    "Tells what a training is and came to: the settings that differ from their defaults, loss, rate and learning rate "
    "over "
    "all steps, memory planned and measured, and for each component of the model (and its backward pass, and the "
    "update) "
    "the time of a step, measured and predicted, what it computes, its share of the machine's rate, and the least time "
    "that could take; then its files. With several folders: their losses in one chart, and a table of what differs. Of "
    "a "
    "rollout or an encoding (FOLDER, or their results) it is the table of times. A run that went on shows the times of "
    "its last part. The page of a training of arch hybrid has its gates by step, too. Of a pretrained model (a folder "
    "of "
    "Hugging Face's, a GGUF file): what it is, how its tensors are stored, and which tokens end a text.\n";

static pl_status report(const pl_cli_arguments *a, pl_error *err)
{
    const char *html = a->value[HTML];
    const pl_times_form form = html ? PL_TIMES_HTML : a->value[JSON] ? PL_TIMES_JSON : PL_TIMES_TEXT;
    char *text = NULL, found[PATH_MAX];
    size_t bytes = 0;
    pl_error ignored = {0};
    const bool is_download = a->operand_count == 1 && pl_cli_find_model(a->all[0], found, &ignored) == PL_OK;
    const char *const model = found, *const *paths = is_download ? &model : (const char *const *)a->all;
    pl_status status =
        pl_runs_report(paths, a->operand_count, form, pl_terminal_columns(STDOUT_FILENO),
                       pl_is_terminal(STDOUT_FILENO) && pl_color_wanted(STDOUT_FILENO), &text, &bytes, err);
    if (status == PL_OK) status = pl_put_to(html, pl_page_save, text, bytes, err);
    pl_text_free(text);
    return status;
}

static int run(const pl_cli_command *command, int argc, char **argv)
{
    pl_cli_arguments a;
    pl_error err = {0};
    if (pl_cli_parse(command, argc, argv, &a, &err) != PL_OK) return pl_cli_complain("report", err.status, &err);
    if (a.operand_count == 0) return pl_cli_usage("report", "the folder of a run, or its results, is expected", "");
    pl_status status = report(&a, &err);
    return status == PL_OK ? 0 : pl_cli_complain("report", status, &err);
}

const pl_cli_body pl_cli_report = {.text = about,
                                   .options = own_options,
                                   .option_count = sizeof own_options / sizeof *own_options,
                                   .takes_many = true,
                                   .run = run};
