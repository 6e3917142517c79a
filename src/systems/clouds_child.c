#include "systems/clouds_child.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct message {
    bool ended;
    char flight[PL_FRAMES_NAME_BYTES];
    uint64_t done, all; /* pictures; 0 of 0: it begins to read a flight */
    pl_status status;   /* at its end */
    pl_error err;
} message;

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

/* Goes on when it was heard: who is told decides before the next picture is made. */
static bool tell(void *context, const char *flight, uint64_t done, uint64_t all)
{
    const int to = *(const int *)context;
    char heard;
    message m = {.done = done, .all = all};
    snprintf(m.flight, sizeof m.flight, "%s", flight);
    return give(to, &m, sizeof m) && take(to, &heard, sizeof heard);
}

/* Others' handlers must not catch what ends it, nor go on from there. */
static void take_signals(void)
{
    static const int deadly[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++) signal(deadly[i], SIG_DFL);
}

static void work_and_exit(pl_clouds_work work, const pl_clouds_options *o, uint64_t key, int to)
{
    pl_clouds_options own = *o;
    message last = {.ended = true};
    take_signals();
    own.progress = tell, own.context = &to;
    last.status = work(&own, key, &last.err);
    (void)give(to, &last, sizeof last);
    _exit(0);
}

/* ---- who waits for it ---- */

/* Until its end, or until who is told says that it is enough. */
static pl_status listen_to(const pl_clouds_options *o, int from, message *m, pl_error *err)
{
    message next;
    while (!m->ended && take(from, &next, sizeof next)) {
        *m = next;
        const bool shown = !m->ended && m->done && o->progress;
        if (!shown || o->progress(o->context, m->flight, m->done, m->all)) {
            if (!m->ended) (void)give(from, "", 1);
            continue;
        }
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
        return pl_fail(
            err, PL_E_DATA,
            "flight %s: the process that read its files was ended by signal %d, a crash of libhdf5: perhaps it "
            "got no memory, or one of them is damaged; begin again with more memory, or find out with "
            "h5dump which one it is and fetch that anew",
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
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return pl_fail(err, PL_E_STORAGE, "no socket to a process that reads flights: %s", strerror(errno));
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
