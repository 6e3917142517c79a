#include "pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "out.h"
#include "signals.h"

/* A pager that is not there loses no text: cat shows what it did not read. */
static const char by_default[] = "if command -v less >/dev/null; then exec less -FRX; else exec cat; fi";
static const char chosen[] = "eval \"$PAGER\"; if [ $? -eq 127 ]; then exec cat; fi";

static void become_pager(int input, const char *script)
{
    const sigset_t *changed = pl_signals_changed();
    for (int number = 1; number < NSIG; number++)
        if (sigismember(changed, number) == 1) (void)signal(number, SIG_DFL);
    if (dup2(input, STDIN_FILENO) >= 0) execl("/bin/sh", "sh", "-c", script, (char *)NULL);
    _exit(127);
}

pl_pager pl_pager_begin(void)
{
    const char *pager = getenv("PAGER");
    int ends[2];
    pl_pager p = {0};
    if (!pl_is_terminal(STDOUT_FILENO) || (pager && (!*pager || strcmp(pager, "cat") == 0))) return p;
    if (pipe2(ends, O_CLOEXEC)) return p;
    p.output = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    p.child = p.output < 0 ? -1 : fork();
    if (p.child == 0) become_pager(ends[0], pager ? chosen : by_default);
    if (p.child > 0 && dup2(ends[1], STDOUT_FILENO) < 0) p.child = -1; /* it sees an empty text */
    if (p.child > 0) {
        (void)signal(SIGPIPE, SIG_IGN);
        (void)signal(SIGINT, SIG_IGN); /* it is the pager's */
    }
    close(ends[0]);
    close(ends[1]);
    if (p.child < 0) p.child = 0;
    return p;
}

int pl_pager_end(pl_pager *p)
{
    if (!p->child) return 0;
    (void)dup2(p->output, STDOUT_FILENO);
    close(p->output);
    while (waitpid(p->child, NULL, 0) < 0 && errno == EINTR) {
    }
    return 1;
}
