/* The command `plimsoll`. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "again.h"
#include "command.h"
#include "out.h"
#include "page.h"
#include "planning.h"
#include "runner.h"
#include "signals.h"

extern char **environ;

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

static pl_status print_version(int argc, char **argv, pl_error *err)
{
    char *text;
    size_t bytes;
    const bool json = argc == 3 && strcmp(argv[2], "--json") == 0;
    if (argc > 2 && !json)
        return pl_cli_error(err, PL_E_USAGE, "--version takes nothing but --json, not %.60s", argv[argc - 1]);
    pl_status status = pl_version_text(json ? PL_VERSION_JSON : PL_VERSION_TEXT, &text, &bytes, err);
    if (status != PL_OK) return status;
    status = pl_put(text, bytes, err);
    pl_text_free(text);
    return status;
}

static bool asks_version(const char *word)
{
    static const char *const words[] = {"--version", "-v", "-V", "version"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(word, words[i]) == 0) return true;
    return false;
}

static int dispatch(int argc, char **argv)
{
    const char *name = argv[1];
    const pl_cli_help_form help = pl_cli_wants_help(argc, argv);
    if (help && (name[0] == '-' || asks_version(name))) {
        const pl_cli_command *asked = argc > 2 ? pl_cli_find(argv[2]) : NULL; /* plimsoll -h train */
        return asked ? pl_cli_print_help(asked, help) : pl_cli_print_overview(help);
    }
    if (asks_version(name)) {
        pl_error err = {0};
        const pl_status status = print_version(argc, argv, &err);
        return status == PL_OK ? 0 : pl_cli_complain("", status, &err);
    }
    if (strcmp(name, PL_CLI_RUNNER) == 0) return pl_cli_run(argc - 1, argv + 1);
    if (strcmp(name, PL_CLI_PAGER) == 0) return pl_page_run(argc - 1, argv + 1);
    const pl_cli_command *command = pl_cli_find(name);
    if (!command) return unknown_command(name);
    if (pl_cli_wants_help(argc - 1, argv + 1)) return pl_cli_print_help(command, help);
    return command->body->run(command, argc - 1, argv + 1);
}

/* A descriptor that was closed (`2>&-`) would be the next file's that is opened, and talk would go into a plan or a
 * checkpoint. O_PATH holds its place, needs no /dev, and every read and write of it still fails. For what is started
 * from here (the doctor's command, a runner, which begins with this too) it is closed as before. */
static int hold_standard_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) != fd) return -1;
    return 0;
}

/* Only these know a planned heap; the doctor must pass on the environment that it got. */
static bool plans(const char *name)
{
    const pl_cli_command *command = name ? pl_cli_find(name) : NULL;
    return command && command->config != PL_CLI_NONE;
}

/* What the command needs of its process before it does anything. */
static pl_status start(char **argv, pl_error *err)
{
    if (hold_standard_descriptors())
        return pl_cli_error(err, PL_E_UNSUPPORTED, "standard input, output and errors cannot be held open: %s",
                            strerror(errno));
    pl_status status = plans(argv[0] ? argv[1] : NULL) ? pl_process_restart_plain(argv, environ, err) : PL_OK;
    return status == PL_OK ? pl_process_begin(getenv(PL_CLI_MODULE), err) : status;
}

int main(int argc, char **argv)
{
    pl_error err = {0};
    pl_status status = start(argv, &err);
    if (status != PL_OK) return pl_cli_complain("", status, &err);
    pl_signals_ignore();
    pl_cli_adopt_results();
    pl_again_note(argc, argv);
    return argc >= 2 ? dispatch(argc, argv) : pl_cli_print_overview(PL_CLI_HELP_BRIEF);
}
