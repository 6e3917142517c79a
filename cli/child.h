/* A command that this one starts and waits for. */
#ifndef PL_CLI_CHILD_H
#define PL_CLI_CHILD_H

#include <signal.h>
#include <spawn.h>
#include <sys/types.h>

/* file: looked for in PATH where it has no slash. actions: NULL: none. mask: of signals, as it was before this process
 * began to wait for some. 0, or errno. */
int pl_cli_spawn(const char *file, const posix_spawn_file_actions_t *actions, char *const *argv,
                 char *const *environment, const sigset_t *mask, pid_t *child);
int pl_cli_exit_code_of(int state); /* as wait gave it; 128 + signal */

#endif
