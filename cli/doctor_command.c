/* A command under the doctor's eyes. It is started by posix_spawn, so that what is looked at is the command and never a
 * copy of the doctor; signals are waited for, not handled, so a look is never interrupted. */
#include <errno.h>
#include <spawn.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

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

/* The command gets the signals as they were before the doctor began. 0, or errno. */
static int start(char **argv, const sigset_t *mask, pid_t *child)
{
    posix_spawnattr_t attributes;
    sigset_t defaults;
    int error = posix_spawnattr_init(&attributes);
    if (error) return error;
    (void)sigemptyset(&defaults);
    (void)sigaddset(&defaults, SIGUSR1); /* the two that main ignores */
    (void)sigaddset(&defaults, SIGXFSZ);
    (void)posix_spawnattr_setsigmask(&attributes, mask);
    (void)posix_spawnattr_setsigdefault(&attributes, &defaults);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    error = posix_spawnp(child, argv[0], NULL, &attributes, argv, environ);
    (void)posix_spawnattr_destroy(&attributes);
    return error;
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

static void look(pl_cli_watch *w, pl_doctor *doctor, bool *alive)
{
    pl_error ignored = {0};
    if (doctor && *alive && pl_doctor_look(doctor, alive, &ignored) != PL_OK) *alive = false;
    if (doctor && *alive) pl_cli_watch_show(w, doctor, false);
}

static int watch(pl_cli_watch *w, pid_t child, const sigset_t *set, pl_doctor *doctor, struct rusage *usage)
{
    bool alive = doctor != NULL;
    int state = 0;
    for (;;) {
        siginfo_t info = {0};
        look(w, doctor, &alive);
        pass_on(child, pl_cli_watch_wait(set, alive ? pl_cli_watch_pause(w, doctor) : w->interval_s, &info), &info);
        if (has_ended(child, &state, usage)) return state;
    }
}

static int exit_code_of(int state) { return WIFSIGNALED(state) ? 128 + WTERMSIG(state) : WEXITSTATUS(state); }

pl_status pl_cli_watch_command(pl_cli_watch *w, char **argv, pl_doctor **doctor, int *exit_code, pl_error *err)
{
    sigset_t set, before;
    struct rusage usage = {0}, own = {0};
    pl_error ended = {0};
    pid_t child;
    *doctor = NULL;
    fill_set(&set);
    (void)sigprocmask(SIG_BLOCK, &set, &before);
    (void)getrusage(RUSAGE_SELF, &own);
    int error = start(argv, &before, &child);
    if (error) {
        (void)sigprocmask(SIG_SETMASK, &before, NULL);
        *exit_code = error == ENOENT ? 127 : 126;
        return pl_cli_error(err, PL_E_USAGE, "%.200s cannot be started: %s", argv[0],
                            error == ENOENT ? "there is no such command" : strerror(error));
    }
    if (pl_doctor_open(child, true, doctor, &ended) != PL_OK) *doctor = NULL; /* ended at once */
    *exit_code = exit_code_of(watch(w, child, &set, *doctor, &usage));
    if (*doctor) pl_doctor_set_kernel_peak(*doctor, kernel_peak(&usage, &own));
    if (*doctor) pl_cli_watch_show(w, *doctor, true);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return PL_OK;
}
