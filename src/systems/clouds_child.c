#include "systems/clouds_child.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct message {
    bool ended;
    char flight[PL_FRAMES_NAME_BYTES];
    uint64_t done, all; /* pictures; 0 of 0: it begins to read a flight */
    pl_status status;   /* at its end */
    pl_error err;
} message;

_Static_assert(sizeof(message) <= PIPE_BUF, "a message is written as one");

/* ---- the child ---- */

static bool send_message(int to, const message *m)
{
    ssize_t n;
    do n = write(to, m, sizeof *m);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof *m;
}

/* Nobody listens any more: it is enough. */
static bool tell(void *context, const char *flight, uint64_t done, uint64_t all)
{
    message m = {.done = done, .all = all};
    snprintf(m.flight, sizeof m.flight, "%s", flight);
    return send_message(*(const int *)context, &m);
}

/* Others' handlers must not catch what ends it, nor go on from there. */
static void take_signals(void)
{
    static const int deadly[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++) signal(deadly[i], SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
}

static void work_and_exit(pl_clouds_work work, const pl_clouds_options *o, uint64_t key, int to)
{
    pl_clouds_options own = *o;
    message last = {.ended = true};
    take_signals();
    own.progress = tell, own.context = &to;
    last.status = work(&own, key, &last.err);
    (void)send_message(to, &last);
    _exit(0);
}

/* ---- who waits for it ---- */

/* The next one; false: there will be none. */
static bool receive(int from, message *m)
{
    size_t have = 0;
    while (have < sizeof *m) {
        const ssize_t n = read(from, (char *)m + have, sizeof *m - have);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        have += (size_t)n;
    }
    return true;
}

/* Until its end, or until who is told says that it is enough. */
static pl_status listen_to(const pl_clouds_options *o, int from, message *m, pl_error *err)
{
    message next;
    while (!m->ended && receive(from, &next)) {
        *m = next;
        if (m->ended || !m->done || !o->progress || o->progress(o->context, m->flight, m->done, m->all)) continue;
        return pl_fail(err, PL_E_STOPPED, "stopped at picture %llu of %llu, of flight %s", (unsigned long long)m->done,
                       (unsigned long long)m->all, m->flight);
    }
    return PL_OK;
}

/* What it left goes; it held the lock that we hold. */
static pl_status name_death(const pl_clouds_options *o, const message *m, int how, pl_error *err)
{
    char left[PL_FILE_TEMPORARY_MAX];
    const int number = WIFSIGNALED(how) ? WTERMSIG(how) : 0;
    const char *flight = m->flight[0] ? m->flight : o->flight[0].name;
    snprintf(left, sizeof left, "%s%s", o->path, PL_FILE_TEMPORARY);
    unlink(left);
    if (number == SIGSEGV || number == SIGBUS || number == SIGABRT || number == SIGFPE || number == SIGILL)
        return pl_fail(err, PL_E_DATA,
                       "flight %s: one of its files is damaged, so that libhdf5 crashed on it (signal %d); fetch them "
                       "anew, or find out with h5dump which one it is",
                       flight, number);
    return pl_fail(
        err, PL_E_NOMEM,
        "flight %s: the process that read its files was ended (signal %d), by somebody or for want of memory; "
        "begin again with more of it",
        flight, number);
}

static pl_status wait_for(pid_t child, const pl_clouds_options *o, int from, pl_error *err)
{
    message m = {0};
    int how = 0;
    const pl_status stopped = listen_to(o, from, &m, err);
    close(from);
    while (waitpid(child, &how, 0) < 0 && errno == EINTR) {
    }
    if (stopped != PL_OK) return stopped;
    if (!m.ended) return name_death(o, &m, how, err);
    return m.status == PL_OK ? PL_OK : pl_fail(err, m.status, "%s", m.err.text);
}

pl_status pl_clouds_in_child(pl_clouds_work work, const pl_clouds_options *o, uint64_t key, pl_error *err)
{
    int ends[2];
    if (pipe(ends) != 0)
        return pl_fail(err, PL_E_STORAGE, "no pipe to a process that reads flights: %s", strerror(errno));
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        work_and_exit(work, o, key, ends[1]);
    }
    const int why = errno;
    close(ends[1]);
    if (child > 0) return wait_for(child, o, ends[0], err);
    close(ends[0]);
    return pl_fail(err, PL_E_NOMEM, "no process that reads flights can be started: %s; end others", strerror(why));
}
