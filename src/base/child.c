#include "base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct message {
    pl_status status;
    pl_error err;
} message;
_Static_assert(sizeof(message) <= 4096, "a pipe takes it whole");

static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
enum { CRASHES = sizeof crashes / sizeof *crashes };

bool pl_child_crashed(int number)
{
    for (int i = 0; i < CRASHES; i++)
        if (crashes[i] == number) return true;
    return false;
}

/* Others' handlers must not catch what ends it, nor go on from there. */
static void work_and_exit(pl_child_work *work, void *context, pid_t parent, int to)
{
    message m = {0};
    for (int i = 0; i < CRASHES; i++) signal(crashes[i], SIG_DFL);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(1);
    m.status = work(context, &m.err);
    ssize_t n;
    do n = write(to, &m, sizeof m);
    while (n < 0 && errno == EINTR);
    _exit(0);
}

/* Until there is something to read, or nobody is any more who could write it. */
static void wait_long(int from, pl_child_wait *wait, void *context)
{
    struct pollfd end = {.fd = from, .events = POLLIN};
    for (int n; (n = poll(&end, 1, PL_CHILD_TELL_MS)) == 0 || (n < 0 && errno == EINTR);)
        if (n == 0) wait(context);
}

static pl_status wait_for(pid_t child, int from, int *ended_by, pl_error *err)
{
    message m;
    int how = 0;
    ssize_t n;
    do n = read(from, &m, sizeof m);
    while (n < 0 && errno == EINTR);
    close(from);
    while (waitpid(child, &how, 0) < 0 && errno == EINTR) {
    }
    *ended_by = n == (ssize_t)sizeof m ? 0 : WIFSIGNALED(how) ? WTERMSIG(how) : SIGKILL;
    if (*ended_by)
        return pl_fail(err, PL_E_INTERNAL, "a process that this one waited for was ended by signal %d", *ended_by);
    return m.status == PL_OK ? PL_OK : pl_fail(err, m.status, "%s", m.err.text);
}

pl_status pl_child_run(pl_child_work *work, pl_child_wait *wait, void *context, int *ended_by, pl_error *err)
{
    int ends[2];
    *ended_by = 0;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return pl_fail(err, PL_E_STORAGE, "no pipe to a process that reads files: %s; close others", strerror(errno));
    const pid_t parent = getpid(), child = fork();
    const int why = errno;
    if (child == 0) work_and_exit(work, context, parent, ends[1]);
    close(ends[1]);
    if (child > 0 && wait) wait_long(ends[0], wait, context);
    if (child > 0) return wait_for(child, ends[0], ended_by, err);
    close(ends[0]);
    return pl_fail(err, PL_E_NOMEM, "no process that reads files can be started: %s; end others", strerror(why));
}
