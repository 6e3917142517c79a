#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "command.h"
#include "doctor.h"
#include "format.h"
#include "out.h"

enum { PART = 20 }; /* looking may take a twentieth of the time */

/* Short ones at first, that a command of a tenth of a second is seen too. */
double pl_cli_watch_pause(const pl_cli_watch *w, const pl_doctor *doctor)
{
    pl_doctor_now now = pl_doctor_count(doctor);
    double pause = fmin(w->interval_s, fmax(now.seconds / 20, 0.002));
    return fmax(pause, (PART - 1) * now.cost_seconds);
}

int pl_cli_watch_wait(const sigset_t *set, double seconds, siginfo_t *info)
{
    struct timespec t = {.tv_sec = (time_t)seconds, .tv_nsec = (long)(1e9 * (seconds - floor(seconds)))};
    int number = sigtimedwait(set, info, &t);
    return number > 0 ? number : 0;
}

void pl_cli_watch_show(pl_cli_watch *w, const pl_doctor *doctor, bool end)
{
    char bytes[PL_FORMAT_BYTES], peak[PL_FORMAT_BYTES], seconds[PL_FORMAT_BYTES];
    pl_doctor_now now = pl_doctor_count(doctor);
    if (!w->show || (!end && now.looks > 1 && now.seconds < w->shown_s + 0.2)) return;
    w->shown_s = now.seconds;
    if (end)
        pl_say("\r\033[K");
    else
        pl_say("\r\033[K%s  %s  peak %s", pl_show_seconds(now.seconds, seconds), pl_show_bytes(now.bytes, bytes),
               pl_show_bytes(now.peak_bytes, peak));
}

pl_status pl_cli_watch_process(pl_cli_watch *w, pl_doctor *doctor, int *stopped_by, pl_error *err)
{
    sigset_t set, before;
    siginfo_t info;
    bool alive = true;
    pl_status status = PL_OK;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &set, &before);
    *stopped_by = 0;
    while (alive && !*stopped_by) {
        status = pl_doctor_look(doctor, &alive, err);
        if (status != PL_OK || !alive) break;
        pl_cli_watch_show(w, doctor, false);
        double left = w->length_s > 0 ? w->length_s - pl_doctor_count(doctor).seconds : INFINITY;
        if (left <= 0) break;
        *stopped_by = pl_cli_watch_wait(&set, fmin(pl_cli_watch_pause(w, doctor), left), &info);
    }
    pl_cli_watch_show(w, doctor, true);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return status;
}
