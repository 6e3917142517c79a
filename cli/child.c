#include "child.h"

#include <sys/wait.h>

#include "signals.h"

/* The command gets the signals as they were before this one began, but for a SIGCHLD that was ignored: the kernel
 * would throw the exit code away, and a program that needs to know may not expect to inherit it (exec in POSIX). */
int pl_cli_spawn(const char *file, const posix_spawn_file_actions_t *actions, char *const *argv,
                 char *const *environment, const sigset_t *mask, pid_t *child)
{
    posix_spawnattr_t attributes;
    int error = posix_spawnattr_init(&attributes);
    if (error) return error;
    (void)signal(SIGCHLD, SIG_DFL);
    (void)posix_spawnattr_setsigmask(&attributes, mask);
    (void)posix_spawnattr_setsigdefault(&attributes, pl_signals_changed());
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    error = posix_spawnp(child, file, actions, &attributes, argv, environment);
    (void)posix_spawnattr_destroy(&attributes);
    return error;
}

int pl_cli_exit_code_of(int state) { return WIFSIGNALED(state) ? 128 + WTERMSIG(state) : WEXITSTATUS(state); }
