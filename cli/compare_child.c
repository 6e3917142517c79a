/* A process of this executable, waited for: signals are waited for, not handled, so that the child is told of them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "compare.h"
#include "signals.h"

extern char **environ;

/* ---- starting ---- */

/* A child's config says everything: it already has the environment's settings, which would override it. What one
 * process of a command hands to the next is not for a child either. */
static char **environment(void)
{
    size_t count = 0, kept = 0;
    while (environ[count]) count++;
    char **e = calloc(count + 2, sizeof *e);
    for (size_t i = 0; e && i < count; i++)
        if (strncmp(environ[i], "PLIMSOLL_", 9) != 0 || strncmp(environ[i], "PLIMSOLL_TEST_", 14) == 0)
            e[kept++] = environ[i];
    if (e) e[kept] = (char *)(uintptr_t)PL_CLI_SENTENCE "=1";
    return e;
}

static const char *file_of(const char *folder, const char *name, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/%s", folder, name);
    return path;
}

static int redirect(const char *folder, const char *input, posix_spawn_file_actions_t *actions)
{
    enum { FLAGS = O_WRONLY | O_CREAT | O_TRUNC, MODE = 0600 };
    char out[PATH_MAX], err[PATH_MAX];
    int error = posix_spawn_file_actions_init(actions);
    if (error) return error;
    error = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, input, O_RDONLY, 0);
    if (!error)
        error = posix_spawn_file_actions_addopen(actions, STDOUT_FILENO, file_of(folder, "told", out), FLAGS, MODE);
    if (!error)
        error = posix_spawn_file_actions_addopen(actions, STDERR_FILENO, file_of(folder, "said", err), FLAGS, MODE);
    if (error) (void)posix_spawn_file_actions_destroy(actions);
    return error;
}

pl_status pl_compare_share_input(const pl_cli_input *in, char path[PL_CLI_NAMELESS_BYTES], pl_error *err)
{
    bool is_empty;
    return isatty(STDIN_FILENO) ? PL_OK : pl_cli_keep_input(in, path, &is_empty, err);
}

/* 0, or errno. */
static int start(const char *folder, const char *input, char *const *words, const sigset_t *mask, pid_t *child)
{
    posix_spawn_file_actions_t actions;
    char **e = environment();
    int error = e ? redirect(folder, input, &actions) : ENOMEM;
    if (!error) {
        error = pl_cli_spawn("/proc/self/exe", &actions, words, e, mask, child);
        (void)posix_spawn_file_actions_destroy(&actions);
    }
    free(e);
    return error;
}

/* ---- waiting ---- */

static sigset_t awaited(void)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGHUP);
    return set;
}

/* The first signal asks the child to stop, the next ends it. Returns the first; 0: none has come. */
static int await(pid_t child, const sigset_t *set, int *state)
{
    int first = 0;
    for (;;) {
        const pid_t got = waitpid(child, state, WNOHANG);
        if (got == child || (got < 0 && errno != EINTR)) return first;
        const int number = sigwaitinfo(set, NULL);
        if (number <= 0 || number == SIGCHLD) continue;
        (void)kill(child, first ? SIGKILL : number);
        first = first ? first : number;
    }
}

/* ---- its output ---- */

/* The last `room` − 1 bytes of the file. */
static void read_end(const char *folder, const char *name, char *text, size_t room)
{
    char path[PATH_MAX];
    text[0] = 0;
    const int fd = open(file_of(folder, name, path), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    const off_t end = lseek(fd, 0, SEEK_END), from = end > (off_t)room - 1 ? end - (off_t)(room - 1) : 0;
    const ssize_t n = end > 0 ? pread(fd, text, room - 1, from) : 0;
    text[n > 0 ? n : 0] = 0;
    close(fd);
}

static void keep_last_line(char *text)
{
    size_t bytes = strlen(text);
    while (bytes && text[bytes - 1] == '\n') text[--bytes] = 0;
    const char *line = strrchr(text, '\n');
    if (line) memmove(text, line + 1, strlen(line));
}

/* "plimsoll infer: sentence". */
static void read_sentence(const char *folder, const char *command, pl_compare_told *told)
{
    char said[4 * PL_ERROR_TEXT_BYTES], begins[64];
    read_end(folder, "said", said, sizeof said);
    keep_last_line(said);
    const int n = snprintf(begins, sizeof begins, "plimsoll %.40s: ", command);
    const char *sentence = strncmp(said, begins, (size_t)n) == 0 ? said + n : said;
    if (told->code > 128 && !sentence[0])
        snprintf(told->sentence, sizeof told->sentence, "its process was ended by signal %d", told->code - 128);
    else
        snprintf(told->sentence, sizeof told->sentence, "%.1000s", sentence[0] ? sentence : "its process failed");
}

void pl_compare_name_config(const char *path, const char *name, char sentence[PL_ERROR_TEXT_BYTES])
{
    char text[PL_ERROR_TEXT_BYTES];
    for (char *at = sentence; (at = strstr(at, path)); at += strlen(name)) {
        const char *rest = at + strlen(path);
        const size_t places = strspn(rest, ":0123456789");
        snprintf(text, sizeof text, "%s%s%s", name, places ? ":" : "", rest + places);
        snprintf(at, PL_ERROR_TEXT_BYTES - (size_t)(at - sentence), "%s", text);
    }
}

pl_status pl_compare_status_of(int code)
{
    const pl_status each[] = {PL_E_CONFIG, PL_E_BUDGET, PL_E_DATA, PL_E_STORAGE, PL_E_UNSUPPORTED};
    for (size_t i = 0; i < sizeof each / sizeof *each; i++)
        if (pl_status_exit_code(each[i]) == code) return each[i];
    return PL_E_UNSUPPORTED;
}

pl_status pl_compare_run_child(const char *folder, const char *input, const char *const *words, pl_compare_told *told,
                               pl_error *err)
{
    const sigset_t set = awaited();
    sigset_t before;
    pid_t child;
    int state = 0, signal_number = 0, error = 0;
    *told = (pl_compare_told){0};
    (void)sigprocmask(SIG_BLOCK, &set, &before);
    const bool begins = !pl_signal_stop; /* else it came between two children, and this one would not hear of it */
    if (begins) error = start(folder, input, (char *const *)(uintptr_t)words, &before, &child);
    if (begins && !error) signal_number = await(child, &set, &state);
    if (signal_number) (void)raise(signal_number); /* for the handler that notes it (signals.h) */
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    if (error) return pl_cli_error(err, PL_E_UNSUPPORTED, "a process cannot be started: %s", strerror(error));
    if (pl_signal_stop) return pl_cli_error(err, PL_E_STOPPED, "stopped");
    told->code = pl_cli_exit_code_of(state);
    read_end(folder, "told", told->line, sizeof told->line);
    keep_last_line(told->line);
    if (told->code) read_sentence(folder, words[1], told);
    return PL_OK;
}
