/* thp_always COMMAND ARGUMENT…: runs the command while collapsing its mappings into huge pages again and again (see
 * collapse.h). The exit status is the command's; 77 when the machine does not allow the emulation. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/process/collapse.h"

int main(int argc, char **argv)
{
    if (argc < 2) return fprintf(stderr, "usage: thp_always COMMAND ARGUMENT…\n"), 2;
    pid_t child = fork();
    if (child < 0) return perror("fork"), 1;
    if (child == 0) {
        execvp(argv[1], argv + 1);
        perror(argv[1]);
        _exit(127);
    }
    int state = 0, allowed = 1;
    long rounds = 0, regions = 0;
    while (waitpid(child, &state, WNOHANG) == 0) {
        long got = collapse_process(child);
        if (got < 0 && (errno == EPERM || errno == ENOSYS)) allowed = 0;
        if (got > regions) regions = got;
        rounds++;
        usleep(20 * 1000);
    }
    fprintf(stderr, "thp_always: %ld rounds, at most %ld regions of 2 MiB collapsed%s\n", rounds, regions,
            allowed ? "" : "; NOT ALLOWED here, nothing is proven");
    if (WIFSIGNALED(state)) return 128 + WTERMSIG(state);
    return WEXITSTATUS(state) == 0 && !allowed ? 77 : WEXITSTATUS(state);
}
