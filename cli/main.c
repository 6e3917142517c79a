/* The command `plimsoll`. */
#include <signal.h>
#include <string.h>

#include "command.h"
#include "out.h"
#include "runner.h"

static int unknown_command(const char *name)
{
    pl_error err = {0};
    const pl_cli_command *near = pl_cli_nearest(name);
    if (near)
        pl_cli_error(&err, PL_E_USAGE, "there is no command %.60s; did you mean %s?", name, near->name);
    else
        pl_cli_error(&err, PL_E_USAGE, "there is no command %.60s; see plimsoll help", name);
    return pl_cli_complain("", PL_E_USAGE, &err);
}

static int print_version(void)
{
    pl_error err = {0};
    pl_status status = pl_put_text("plimsoll " PL_CLI_VERSION "\n", &err);
    return status == PL_OK ? 0 : pl_cli_complain("", status, &err);
}

static int dispatch(int argc, char **argv)
{
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) return pl_cli_print_overview();
    if (strcmp(name, "--version") == 0) return print_version();
    if (strcmp(name, PL_CLI_RUNNER) == 0) return pl_cli_run(argc - 1, argv + 1);
    const pl_cli_command *command = pl_cli_find(name);
    if (!command) return unknown_command(name);
    if (pl_cli_wants_help(argc - 1, argv + 1)) return pl_cli_print_help(command);
    return command->run(command, argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    pl_error err = {0};
    pl_status status = pl_process_start(&err);
    if (status != PL_OK) return pl_cli_complain("", status, &err);
    (void)signal(SIGUSR1, SIG_IGN); /* asks a runner for its ledger; must not end what plans, or a runner that begins */
    (void)signal(SIGXFSZ, SIG_IGN); /* a file beyond the limit of sizes is an error with a sentence, in a runner too */
    if (argc >= 2) return dispatch(argc, argv);
    pl_cli_error(&err, PL_E_USAGE, "a command is missing; see plimsoll help");
    return pl_cli_complain("", PL_E_USAGE, &err);
}
