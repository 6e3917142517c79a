#include "page.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "out.h"
#include "signals.h"

/* In a small cgroup a page that does not fit is refused as any memory is; without the fence the kernel would end the
 * process. */
static pl_status fence(pl_error *err)
{
    pl_config *config = pl_config_create();
    if (!config) return pl_cli_error(err, PL_E_NOMEM, "no memory");
    pl_status status = pl_planner_fence(config, err);
    pl_config_destroy(config);
    return status;
}

static pl_status write_page(const char *results, char page[PATH_MAX], pl_error *err)
{
    char *text = NULL;
    size_t bytes = 0;
    pl_status status = pl_results_page_path(results, page, PATH_MAX, err);
    if (status == PL_OK) status = fence(err);
    if (status == PL_OK) status = pl_results_page_check(results, page, err);
    if (status == PL_OK) status = pl_results_report(results, PL_RESULTS_NONE, &text, &bytes, err);
    if (status == PL_OK) status = pl_page_save(page, text, bytes, err);
    pl_text_free(text);
    return status;
}

void pl_page_make(const char *results, int quiet)
{
    char page[PATH_MAX] = "";
    pl_error err = {0};
    pl_status status = write_page(results, page, &err);
    if (status == PL_OK && quiet == 0) pl_say("page: %s\n", page);
    if (status != PL_OK && quiet < 2)
        pl_say("warning: the results are complete, but their page %.300s was not made: %.900s\n", page, err.text);
}

pl_status pl_page_exec(const char *results, int quiet, pl_error *err)
{
    char *argv[] = {"plimsoll", PL_CLI_PAGER, (char *)results, quiet == 0 ? "0" : quiet == 1 ? "1" : "2", NULL};
    pl_signals_hold();
    execv("/proc/self/exe", argv);
    return pl_cli_error(err, PL_E_UNSUPPORTED, "the page cannot be made by a process of its own: %s", strerror(errno));
}

int pl_page_run(int argc, char **argv)
{
    if (argc != 3) return pl_cli_usage("", PL_CLI_PAGER " is internal; use plimsoll results report", "");
    pl_signals_leave();
    pl_page_make(argv[1], atoi(argv[2]));
    return 0;
}
