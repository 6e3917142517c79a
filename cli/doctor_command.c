/* A command under the doctor's eyes. It is started by posix_spawn, so that what is looked at is the command and never a
 * copy of the doctor; signals are waited for, not handled, so a look is never interrupted. */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "child.h"
#include "command.h"
#include "doctor.h"
#include "out.h"

extern char **environ;

static const int passed_on[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

static void fill_set(sigset_t *set)
{
    (void)sigemptyset(set);
    (void)sigaddset(set, SIGCHLD);
    for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++) (void)sigaddset(set, passed_on[i]);
}

/* What the terminal sends (Ctrl-C) reaches the command by itself: both are of its foreground group. */
static void pass_on(pid_t child, int number, const siginfo_t *info)
{
    if (number && number != SIGCHLD && info->si_code <= 0) (void)kill(child, number);
}

static bool has_ended(pid_t child, int *state, struct rusage *usage)
{
    pid_t got = wait4(child, state, WNOHANG, usage);
    return got == child || (got < 0 && errno != EINTR);
}

/* exec keeps the high-water mark of the process that called it, which is the doctor itself here: a figure no larger
 * than the doctor's own says nothing about the command. */
static uint64_t kernel_peak(const struct rusage *usage, const struct rusage *own)
{
    return usage->ru_maxrss > own->ru_maxrss ? (uint64_t)usage->ru_maxrss * 1024 : 0;
}

static pl_status look(pl_cli_watch *w, pid_t child, pl_doctor **doctor, bool *alive, pl_error *err)
{
    pl_status status = *doctor ? PL_OK : pl_doctor_open(child, true, doctor, err);
    if (status == PL_OK) status = pl_doctor_look(*doctor, alive, err);
    if (status == PL_OK && *alive) pl_cli_watch_show(w, *doctor, false);
    return status;
}

/* Until the command has ended. What could not be seen (PL_E_DATA) may be there at the next look; behind any other
 * failure there is none. */
static pl_status watch(pl_cli_watch *w, pid_t child, const sigset_t *set, pl_doctor **doctor, int *state,
                       struct rusage *usage, pl_error *err)
{
    bool alive = true;
    pl_status status = PL_E_DATA;
    for (;;) {
        siginfo_t info = {0};
        if (alive && (status == PL_OK || status == PL_E_DATA)) status = look(w, child, doctor, &alive, err);
        bool looks = alive && status == PL_OK;
        pass_on(child, pl_cli_watch_wait(set, looks ? pl_cli_watch_pause(w, *doctor) : w->interval_s, &info), &info);
        if (has_ended(child, state, usage)) return status;
    }
}

pl_status pl_cli_watch_command(pl_cli_watch *w, char **argv, pl_doctor **doctor, int *exit_code, pl_error *err)
{
    sigset_t set, before;
    struct rusage usage = {0}, own = {0};
    pid_t child;
    int state = 0;
    *doctor = NULL;
    fill_set(&set);
    (void)sigprocmask(SIG_BLOCK, &set, &before);
    (void)getrusage(RUSAGE_SELF, &own);
    int error = pl_cli_spawn(argv[0], NULL, argv, environ, &before, &child);
    if (error) {
        (void)sigprocmask(SIG_SETMASK, &before, NULL);
        *exit_code = error == ENOENT ? 127 : 126;
        return pl_cli_error(err, PL_E_USAGE, "%.200s cannot be started: %s", argv[0],
                            error == ENOENT ? "there is no such command" : strerror(error));
    }
    pl_status status = watch(w, child, &set, doctor, &state, &usage, err);
    *exit_code = pl_cli_exit_code_of(state);
    if (*doctor) pl_doctor_set_kernel_peak(*doctor, kernel_peak(&usage, &own));
    if (*doctor) pl_cli_watch_show(w, *doctor, true);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return status;
}
