#include "base/child.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct message {
    bool ended;
    pl_status status; /* at its end */
    pl_error err;
    char note[PL_CHILD_NOTE_BYTES]; /* before it */
} message;

static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
enum { CRASHES = sizeof crashes / sizeof *crashes };

bool pl_child_crashed(int number)
{
    for (int i = 0; i < CRASHES; i++)
        if (crashes[i] == number) return true;
    return false;
}

/* All of it or nothing, as packets are; false: nobody listens any more. */
static bool give(int to, const void *data, size_t bytes)
{
    ssize_t n;
    do n = send(to, data, bytes, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)bytes;
}

static bool take(int from, void *data, size_t bytes)
{
    ssize_t n;
    do n = recv(from, data, bytes, 0);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)bytes;
}

/* ---- the child ---- */

bool pl_child_tell(int channel, const void *note, size_t bytes)
{
    char heard;
    message m = {0};
    assert(bytes <= sizeof m.note);
    memcpy(m.note, note, bytes);
    return give(channel, &m, sizeof m) && take(channel, &heard, sizeof heard);
}

/* Others' handlers must not catch what ends it, nor go on from there. */
static void work_and_exit(const pl_child_work *w, pid_t parent, int channel)
{
    message last = {.ended = true};
    for (int i = 0; i < CRASHES; i++) signal(crashes[i], SIG_DFL);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(1);
    last.status = w->work(w->context, channel, &last.err);
    (void)give(channel, &last, sizeof last);
    _exit(0);
}

/* ---- who waits for it ---- */

/* Until it has told its end, is dead, or is to end. */
static pl_status listen_to(const pl_child_work *w, int from, message *m, pl_error *err)
{
    while (take(from, m, sizeof *m) && !m->ended) {
        if (w->hear) PL_TRY(w->hear(w->context, m->note, err));
        (void)give(from, "", 1);
    }
    return PL_OK;
}

static pl_status wait_for(pid_t child, const pl_child_work *w, int from, int *ended_by, pl_error *err)
{
    message m = {0};
    int how = 0;
    const pl_status heard = listen_to(w, from, &m, err);
    close(from);
    while (waitpid(child, &how, 0) < 0 && errno == EINTR) {
    }
    PL_TRY(heard);
    *ended_by = m.ended ? 0 : WIFSIGNALED(how) ? WTERMSIG(how) : SIGKILL;
    if (*ended_by)
        return pl_fail(err, PL_E_INTERNAL, "a process that this one waited for was ended by signal %d", *ended_by);
    return m.status == PL_OK ? PL_OK : pl_fail(err, m.status, "%s", m.err.text);
}

pl_status pl_child_run(const pl_child_work *w, int *ended_by, pl_error *err)
{
    int ends[2];
    *ended_by = 0;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return pl_fail(err, PL_E_STORAGE, "no socket to a process that reads files: %s; close others", strerror(errno));
    const pid_t parent = getpid(), child = fork();
    const int why = errno;
    if (child == 0) {
        close(ends[0]);
        work_and_exit(w, parent, ends[1]);
    }
    close(ends[1]);
    if (child > 0) return wait_for(child, w, ends[0], ended_by, err);
    close(ends[0]);
    return pl_fail(err, PL_E_NOMEM, "no process that reads files can be started: %s; end others", strerror(why));
}
