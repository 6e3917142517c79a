/* plimsoll rollout: random operators iterated from random fields, a planned process for each group of one shape, one
 * after the other; or a witness of one operator, in this process. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "page.h"
#include "planning.h"
#include "signals.h"

enum { QUIET, VERBOSE, ONLY, STEPS, WITNESS };
static const pl_cli_option options[] = {
    [QUIET] = {"--quiet", NULL, "say nothing but warnings and errors", true},
    [VERBOSE] = {"--verbose", NULL, "print the whole report of each plan first", true},
    [ONLY] = {"--only", "N", "with --witness: operator N, counted from 0; default: 0"},
    [STEPS] = {"--steps", "N", "with --witness: so many steps; default: 1"},
    [WITNESS] = {"--witness", "DIR",
                 "write what another program needs to repeat one operator into DIR, and no results"},
};

static const char about[] =
    "Draws operators from the parameter space of the config and iterates each from its initial field. States, or only "
    "what is measured of them, go into one file of results, block by block as they come, so memory does not grow with "
    "the number of steps. What the file has already is not made again: after a stop, a crash or a kill the same "
    "command goes on, and the file is the one that an undisturbed run would have made. Operators of one shape share a "
    "plan; what the disk has no room for is refused before anything runs (exit 5), what does not fit memory.budget "
    "before the operators of that shape do (exit 3). When all is done, a page with pictures lies beside the results; "
    "plimsoll results report makes one before.\n";

static pl_status read_count(const pl_cli_arguments *a, int option, unsigned long long otherwise, unsigned long long *to,
                            pl_error *err)
{
    const char *text = a->value[option];
    char *end;
    *to = otherwise;
    if (!text) return PL_OK;
    if (!a->value[WITNESS]) return pl_cli_error(err, PL_E_USAGE, "%s goes with --witness DIR", options[option].name);
    errno = 0;
    *to = strtoull(text, &end, 10);
    if (text[0] >= '0' && text[0] <= '9' && !*end && !errno) return PL_OK;
    return pl_cli_error(err, PL_E_USAGE, "%s %.40s: a number was expected", options[option].name, text);
}

static int write_witness(const pl_cli_command *command, const pl_cli_input *in, unsigned long long only,
                         unsigned long long steps)
{
    pl_error err = {0};
    char trace[PATH_MAX];
    const char *folder = in->arguments.value[WITNESS];
    pl_status status = pl_cli_setting(in->config, "run", "trace", trace, sizeof trace, &err);
    if (status == PL_OK && trace[0] && strcmp(trace, "none") != 0)
        status =
            pl_cli_error(&err, PL_E_USAGE, "run.trace %.200s: a witness has no trace; leave one of them out", trace);
    pl_signals_catch(); /* what is half written goes */
    if (status == PL_OK)
        status = pl_witness_write(in->config, command->command, only, steps, folder, &pl_signal_stop, &err);
    pl_signals_leave();
    return status == PL_OK ? 0 : pl_cli_complain(command->name, status, &err);
}

static int make_page(const pl_cli_command *command, const pl_cli_input *in, const pl_talk *talk)
{
    pl_work_left results;
    pl_error err = {0};
    pl_status status = pl_work_find_left(in->config, command->command, &results, &err);
    if (status != PL_OK) return pl_cli_complain(command->name, status, &err);
    pl_page_make(results.path, talk->quiet);
    return 0;
}

static int start(const pl_cli_command *command, const pl_cli_input *in)
{
    pl_talk talk;
    pl_error err = {0};
    pl_call call = {.command = command};
    unsigned long long only, steps;
    pl_status status = read_count(&in->arguments, ONLY, 0, &only, &err);
    if (status == PL_OK) status = read_count(&in->arguments, STEPS, 1, &steps, &err);
    if (status == PL_OK && in->arguments.value[WITNESS]) return write_witness(command, in, only, steps);
    if (status == PL_OK)
        status = pl_talk_read(in->config, in->arguments.value[QUIET], in->arguments.value[VERBOSE], &talk, &err);
    if (status != PL_OK) return pl_cli_complain(command->name, status, &err);
    if (talk.quiet == 0) call.word[PL_CALL_LEDGER] = "1";
    int code = pl_cli_start(in, &talk, false, &call);
    return code ? code : make_page(command, in, &talk); /* it comes back with 0 where all was done before */
}

static int run(const pl_cli_command *command, int argc, char **argv)
{
    pl_cli_input in;
    pl_error err = {0};
    pl_status status = pl_cli_load(command, argc, argv, 0, &in, &err);
    int code = status == PL_OK ? start(command, &in) : pl_cli_complain(command->name, status, &err);
    pl_cli_release(&in);
    return code;
}

const pl_cli_body pl_cli_rollout = {
    .text = about, .options = options, .option_count = sizeof options / sizeof *options, .run = run};
