/* The doctor for callers of the library. */
#include <stdlib.h>
#include <unistd.h>

#include "api/api.h"
#include "doctor/doctor.h"

/* In a PID namespace that kept the /proc of another, number N is somebody else's there. */
static pl_status check_proc(pl_error *err)
{
    char own[32] = "";
    if (readlink("/proc/self", own, sizeof own - 1) > 0 && strtol(own, NULL, 10) == (long)getpid()) return PL_OK;
    return pl_fail(
        err, PL_E_UNSUPPORTED,
        "/proc is not mounted, or belongs to another PID namespace, where the same number is another process: "
        "mount it (mount -t proc proc /proc; unshare --mount-proc does)");
}

pl_status pl_doctor_open(int process_id, bool tree, pl_doctor **doctor, pl_error *err)
{
    pl_doctor_process process;
    *doctor = NULL;
    PL_TRY(check_proc(err));
    PL_TRY(pl_doctor_process_read("", (pid_t)process_id, &process, err));
    pl_doctor *d = pl_alloc(1, sizeof *d);
    pl_doctor_sample *samples = pl_alloc(PL_DOCTOR_SAMPLES_MAX, sizeof *samples);
    if (!d || !samples) {
        pl_free(d);
        pl_free(samples);
        pl_doctor_process_deinit(&process);
        return pl_fail(err, PL_E_NOMEM, "no memory to watch process %d", process_id);
    }
    d->id = process.id;
    d->asked_id = process_id;
    d->start_ticks = process.start_ticks;
    d->tree = tree;
    d->sample = samples;
    d->merged = 1;
    pl_doctor_process_deinit(&process);
    *doctor = d;
    return PL_OK;
}

void pl_doctor_close(pl_doctor *d)
{
    if (!d) return;
    pl_doctor_moment_deinit(&d->peak);
    pl_doctor_moment_deinit(&d->last);
    pl_free(d->sample);
    pl_free(d);
}

pl_status pl_doctor_look(pl_doctor *d, bool *alive, pl_error *err) { return pl_doctor_watch_look(d, alive, err); }

pl_doctor_now pl_doctor_count(const pl_doctor *d)
{
    const pl_doctor_sample *s = d->sample_count ? &d->sample[d->sample_count - 1] : &(pl_doctor_sample){0};
    return (pl_doctor_now){s->bytes, d->most_bytes, s->seconds, s->processes, d->looks, d->look_cost, !d->peak.known};
}

void pl_doctor_set_kernel_peak(pl_doctor *d, uint64_t bytes) { d->command_peak_bytes = bytes; }

pl_status pl_doctor_text(const pl_doctor *d, pl_doctor_form form, pl_doctor_when when, char **text, size_t *bytes,
                         pl_error *err)
{
    const pl_doctor_moment *m = when == PL_DOCTOR_PEAK && d->peak.known ? &d->peak : &d->last;
    pl_str s = {0};
    pl_status status = d->last.known ? pl_doctor_write(d, form, m, &s, err)
                                     : pl_fail(err, PL_E_DATA, "process %d has not been looked at", (int)d->id);
    if (status == PL_OK) return pl_give_text(&s, text, bytes, err);
    pl_str_deinit(&s);
    return status;
}
