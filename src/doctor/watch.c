/* Looking again and again. Every look gives a sample; a full reading of the largest process is made when it is cheap
 * beside the time since the last one, or, a little dearer, when memory has grown, so that there is one of the fullest
 * moment and one of the last. Samples are merged in pairs when their room is used up: the larger of both stays, so a
 * peak is never lost. */
#include <string.h>

#include "doctor/doctor.h"

enum { CHEAP = 20, GROWING = 4 };        /* a reading may take a twentieth of the time, a fifth while memory grows */
#define GROWTH_BYTES ((uint64_t)1 << 20) /* and 1 % */

void pl_doctor_moment_deinit(pl_doctor_moment *m)
{
    if (m->known) pl_doctor_process_deinit(&m->process);
    pl_free(m->member);
    *m = (pl_doctor_moment){0};
}

static void merge_pairs(pl_doctor *d)
{
    for (size_t i = 0; i < d->sample_count / 2; i++) {
        const pl_doctor_sample *a = &d->sample[2 * i], *b = a + 1;
        d->sample[i] = b->bytes > a->bytes ? *b : *a;
    }
    d->sample_count /= 2;
    d->merged *= 2;
    d->in_last = d->merged;
}

static void add_sample(pl_doctor *d, pl_doctor_sample s)
{
    d->looks++;
    if (s.bytes > d->most_bytes) d->most_bytes = s.bytes, d->most_seconds = s.seconds;
    if (d->sample_count && d->in_last < d->merged) {
        pl_doctor_sample *last = &d->sample[d->sample_count - 1];
        if (s.bytes > last->bytes) *last = s;
        d->in_last++;
        return;
    }
    if (d->sample_count == PL_DOCTOR_SAMPLES_MAX) merge_pairs(d);
    d->sample[d->sample_count++] = s;
    d->in_last = 1;
}

static const pl_doctor_member *largest(const pl_doctor_member *list, size_t count)
{
    const pl_doctor_member *most = list;
    for (size_t i = 1; i < count; i++)
        if (list[i].resident_bytes > most->resident_bytes) most = &list[i];
    return most;
}

static const pl_doctor_moment *fullest(const pl_doctor *d) { return d->peak.known ? &d->peak : &d->last; }

static bool is_due(const pl_doctor *d, uint64_t bytes)
{
    if (!d->last.known) return true;
    double since = pl_doctor_seconds() - d->snapshot_at;
    if (since >= CHEAP * d->snapshot_cost) return true;
    if (since < GROWING * d->snapshot_cost) return false;
    uint64_t most = fullest(d)->bytes;
    return bytes > most && bytes - most > GROWTH_BYTES + most / 100;
}

/* d->last is always the newest; d->peak is used only while the fullest is another one. */
static void keep(pl_doctor *d, const pl_doctor_moment *m)
{
    if (!d->last.known || m->bytes >= fullest(d)->bytes) {
        pl_doctor_moment_deinit(&d->peak);
        pl_doctor_moment_deinit(&d->last);
    } else if (d->peak.known) {
        pl_doctor_moment_deinit(&d->last);
    } else {
        d->peak = d->last;
    }
    d->last = *m;
}

/* Takes the list. */
static pl_status take_snapshot(pl_doctor *d, double seconds, uint64_t bytes, pl_doctor_member *list, size_t count,
                               pl_error *err)
{
    pl_doctor_moment m = {.known = true, .seconds = seconds, .bytes = bytes, .member = list, .member_count = count};
    pl_status status = pl_doctor_process_read("", largest(list, count)->id, &m.process, err);
    if (status != PL_OK) {
        pl_free(list);
        return status;
    }
    d->snapshot_at = pl_doctor_seconds();
    d->snapshot_cost = m.process.cost_seconds;
    keep(d, &m);
    return PL_OK;
}

pl_status pl_doctor_watch_look(pl_doctor *d, bool *alive, pl_error *err)
{
    pl_doctor_member *list;
    size_t count;
    uint64_t bytes = 0;
    double begin = pl_doctor_seconds(), worked = pl_doctor_work_seconds();
    *alive = false;
    pl_status status = pl_doctor_tree_read("", d->id, d->tree, &list, &count, err);
    if (status == PL_E_DATA && d->looks) return PL_OK;
    PL_TRY(status);
    if (list[0].start_ticks != d->start_ticks) { /* the number is another process's now */
        pl_free(list);
        return d->looks ? PL_OK : pl_fail(err, PL_E_DATA, "process %d has ended", (int)d->id);
    }
    for (size_t i = 0; i < count; i++) bytes += list[i].proportional_bytes;
    if (!d->looks) d->began = begin;
    d->look_cost = pl_doctor_work_seconds() - worked; /* a full reading is not in it: is_due keeps that in bounds */
    if (is_due(d, bytes))
        status = take_snapshot(d, begin - d->began, bytes, list, count, err);
    else
        pl_free(list);
    if (status == PL_E_DATA && d->last.known) status = PL_OK; /* ended while it was read: the next look sees it */
    PL_TRY(status);
    add_sample(d, (pl_doctor_sample){begin - d->began, bytes, (uint32_t)count}); /* behind a look there is a report */
    *alive = true;
    return PL_OK;
}
