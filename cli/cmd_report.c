/* plimsoll report: where the time of a run went. */

#include "command.h"
#include "out.h"

enum { JSON, HTML };
static const pl_cli_option own_options[] = {
    [JSON] = {"--json", NULL, "print it as JSON (schema plimsoll.times/1)", true},
    [HTML] = {"--html", "FILE", "write a page of it (- for stdout)", true},
};

static const char about[] =
    "Prints the table of times that a run left when it ended or was stopped: for each component of the model (and its "
    "backward pass, and the update) the time of a step, measured and predicted, what it computes, its share of the "
    "machine's rate, and the least time that could take. Beside the steps: evaluating, saving. FOLDER is that of a "
    "training, or of a rollout or encoding, or their results. A run that went on shows its last part. The page of a "
    "training of arch hybrid has its gates by step, too.\n";

static pl_status report(const pl_cli_arguments *a, pl_error *err)
{
    const char *html = a->value[HTML];
    const pl_times_form form = html ? PL_TIMES_HTML : a->value[JSON] ? PL_TIMES_JSON : PL_TIMES_TEXT;
    char *text = NULL;
    size_t bytes = 0;
    pl_status status = pl_times_report(a->operand[0], form, &text, &bytes, err);
    if (status == PL_OK) status = pl_put_to(html, pl_page_save, text, bytes, err);
    pl_text_free(text);
    return status;
}

static int run(const pl_cli_command *command, int argc, char **argv)
{
    pl_cli_arguments a;
    pl_error err = {0};
    if (pl_cli_parse(command, argc, argv, &a, &err) != PL_OK) return pl_cli_complain("report", err.status, &err);
    if (a.operand_count != 1) return pl_cli_usage("report", "the folder of one run, or its results, is expected", "");
    pl_status status = report(&a, &err);
    return status == PL_OK ? 0 : pl_cli_complain("report", status, &err);
}

const pl_cli_body pl_cli_report = {
    .text = about, .options = own_options, .option_count = sizeof own_options / sizeof *own_options, .run = run};
