#include "results_command.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "page.h"
#include "planning.h"
#include "signals.h"

static pl_status read_count(const pl_cli_command *command, const pl_cli_arguments *a, int option,
                            unsigned long long otherwise, unsigned long long *to, pl_error *err)
{
    const char *text = a->value[option];
    char *end;
    *to = otherwise;
    if (!text) return PL_OK;
    if (!a->value[PL_RESULTS_WITNESS])
        return pl_cli_error(err, PL_E_USAGE, "%s goes with --witness DIR", command->body->options[option].name);
    errno = 0;
    *to = strtoull(text, &end, 10);
    if (text[0] >= '0' && text[0] <= '9' && !*end && !errno) return PL_OK;
    return pl_cli_error(err, PL_E_USAGE, "%s %.40s: a number was expected", command->body->options[option].name, text);
}

static int write_witness(const pl_cli_command *command, const pl_cli_input *in, unsigned long long only,
                         unsigned long long steps)
{
    pl_error err = {0};
    char trace[PATH_MAX];
    const char *folder = in->arguments.value[PL_RESULTS_WITNESS];
    pl_status status = pl_cli_setting(in->config, "run", "trace", trace, sizeof trace, &err);
    if (status == PL_OK && trace[0] && strcmp(trace, "none") != 0)
        status =
            pl_cli_error(&err, PL_E_USAGE, "run.trace %.200s: a witness has no trace; leave one of them out", trace);
    pl_signals_catch(); /* half-written files are removed */
    if (status == PL_OK) status = pl_prepare(in->config, command->command, NULL, NULL, &err);
    if (status == PL_OK)
        status = pl_witness_write(in->config, command->command, only, steps, folder, &pl_signal_stop, &err);
    pl_signals_leave();
    return status == PL_OK ? 0 : pl_cli_complain(command->name, status, &err);
}

static int make_page(const pl_cli_command *command, const pl_cli_input *in, const pl_talk *talk)
{
    pl_work_left results;
    pl_error err = {0};
    if (!pl_config_has_page(in->config)) return 0;
    pl_status status = pl_work_find_left(in->config, command->command, &results, &err);
    if (status != PL_OK) return pl_cli_complain(command->name, status, &err);
    pl_page_make(results.path, talk->quiet);
    return 0;
}

static int start(const pl_cli_command *command, const pl_cli_input *in, int steps_option)
{
    pl_talk talk;
    pl_error err = {0};
    pl_call call = {.command = command};
    unsigned long long only, steps = 1;
    pl_status status = read_count(command, &in->arguments, PL_RESULTS_ONLY, 0, &only, &err);
    if (status == PL_OK && steps_option >= 0)
        status = read_count(command, &in->arguments, steps_option, 1, &steps, &err);
    if (status == PL_OK && in->arguments.value[PL_RESULTS_WITNESS]) return write_witness(command, in, only, steps);
    if (status == PL_OK)
        status = pl_talk_read(in->config, in->arguments.value[PL_RESULTS_QUIET],
                              in->arguments.value[PL_RESULTS_VERBOSE], &talk, &err);
    if (status != PL_OK) return pl_cli_complain(command->name, status, &err);
    if (talk.quiet == 0) call.word[PL_CALL_SUMMARY] = "1";
    if (in->arguments.value[PL_RESULTS_LEDGER]) call.word[PL_CALL_LEDGER] = "1";
    int code = pl_cli_start(in, &talk, false, &call);
    return code ? code : make_page(command, in, &talk); /* returns 0 here where everything was done before */
}

pl_status pl_results_command_load(const pl_cli_command *command, int argc, char **argv, pl_cli_input *in, pl_error *err)
{
    pl_signals_outlive_readers();
    return pl_cli_load(command, argc, argv, 0, in, err);
}

int pl_results_command_finish(const pl_cli_command *command, pl_cli_input *in, int steps, pl_status status,
                              pl_error *err)
{
    const int code = status == PL_OK ? start(command, in, steps) : pl_cli_complain(command->name, status, err);
    pl_cli_release(in);
    return code;
}
