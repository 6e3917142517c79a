/* Opening, asking, closing. Measuring is replay.c, the file is file.c. */
#include "calibrate/calibrate.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "calibrate/table.h"
#include "ir/op.h"

enum { FINISHED_SECONDS = 24 * 3600 }; /* a note on a job holds for so long */

pl_status pl_calibration_open(const char *path, const pl_calibration_options *options, pl_calibration **calibration,
                              pl_error *err)
{
    pl_status status;
    pl_calibration *c = pl_alloc(1, sizeof *c);
    if (!c) return pl_fail(err, PL_E_NOMEM, "no memory for the calibration");
    c->options = *options;
    if (c->options.bytes_max == 0) c->options.bytes_max = PL_CALIBRATION_BYTES_MAX;
    if (!(c->options.seconds_max > 0)) c->options.seconds_max = PL_CALIBRATION_SECONDS_MAX;
    if (!(c->options.total_seconds_max > 0)) c->options.total_seconds_max = PL_CALIBRATION_TOTAL_SECONDS_MAX;
    if (path && strlen(path) < sizeof c->path)
        strcpy(c->path, path);
    else if (path)
        snprintf(c->warning, sizeof c->warning, "the calibration is not kept: its path is longer than %zu bytes",
                 sizeof c->path - 1);
    pl_calibration_recall_init(&c->recall);
    PL_TRY_DONE(pl_calibration_machine_read(&c->machine, err));
    PL_TRY_DONE(pl_calibration_read(c, err));
    *calibration = c;
    return PL_OK;
done:
    pl_calibration_close(c);
    return status;
}

void pl_calibration_close(pl_calibration *c)
{
    if (!c) return;
    pl_calibration_clear(c);
    pl_free(c);
}

const char *pl_calibration_warning(const pl_calibration *c) { return c->warning; }
bool pl_calibration_has_news(const pl_calibration *c) { return c->has_measured && !c->changed && c->path[0]; }
size_t pl_calibration_count(const pl_calibration *c) { return c->count; }
const char *pl_calibration_file(const pl_calibration *c) { return c->path; }

uint64_t pl_calibration_held_bytes(const pl_calibration *c)
{
    uint64_t bytes = c->capacity * sizeof *c->entry + c->slot_count * sizeof *c->slot;
    for (size_t i = 0; i < c->count; i++) bytes += strlen(c->entry[i].key) + 1 + PL_ALLOC_HEADER_BYTES;
    return bytes;
}

double pl_calibration_measured_seconds(const pl_calibration *c) { return c->measured_seconds; }

/* ---- jobs ---- */

/* Kept among the kernels' times, under a key that no kernel has. */
static void finished_key(char key[PL_CALIBRATION_KEY_BYTES], const char *job)
{
    snprintf(key, PL_CALIBRATION_KEY_BYTES, PL_CALIBRATION_FINISHED "%s", job);
}

/* A clock that was set back makes a note of the future; it is none. */
static bool is_fresh(const pl_calibration_entry *note)
{
    const uint64_t now = (uint64_t)time(NULL);
    return note && note->at <= now && now - note->at < FINISHED_SECONDS;
}

bool pl_calibration_is_finished(pl_calibration *c, const char *job)
{
    char key[PL_CALIBRATION_KEY_BYTES];
    finished_key(key, job);
    const pl_calibration_entry *note = pl_calibration_touch(c, key);
    return is_fresh(note) && (note->busy < PL_CALIBRATION_BUSY || !pl_calibration_is_quiet(c));
}

static double busiest_in_use(const pl_calibration *c)
{
    double most = 1;
    for (size_t i = 0; i < c->count; i++)
        if (c->entry[i].used && c->entry[i].at == 0 && c->entry[i].busy > most) most = c->entry[i].busy;
    return most;
}

pl_status pl_calibration_finish(pl_calibration *c, const char *job, pl_error *err)
{
    char key[PL_CALIBRATION_KEY_BYTES];
    finished_key(key, job);
    if (is_fresh(pl_calibration_find(c, key)) && !c->has_measured) return PL_OK;
    const pl_calibration_entry note = {.samples = 1, .busy = busiest_in_use(c), .at = (uint64_t)time(NULL)};
    PL_TRY(pl_calibration_put(c, key, &note, err));
    (void)pl_calibration_touch(c, key);
    c->changed = true;
    return PL_OK;
}

void pl_calibration_measure_busy_again(pl_calibration *c)
{
    bool any = false;
    for (size_t i = 0; i < c->count; i++) any |= c->entry[i].at == 0 && c->entry[i].busy >= PL_CALIBRATION_BUSY;
    c->again = any && pl_calibration_is_quiet(c);
}

/* ---- kernels ---- */

static const pl_calibration_entry *entry_in(pl_calibration *c, const pl_graph *g, const pl_node *n)
{
    char memory[PL_CALIBRATION_KEY_BYTES];
    pl_str key = pl_str_fixed(memory, sizeof memory);
    pl_calibration_key(g, n, &c->options, &key);
    return key.failed ? NULL : pl_calibration_touch(c, memory);
}

/* What was not measured where it stands may have been in another pass: a forward node that is computed again among the
 * backward ones. Its caches differ, its work does not. */
const pl_calibration_entry *pl_calibration_entry_of(pl_calibration *c, const pl_graph *g, const pl_node *n)
{
    const pl_calibration_entry *e = entry_in(c, g, n);
    for (int phase = 0; phase < PL_PHASE_COUNT && !e; phase++) {
        pl_node other = *n;
        other.phase = (pl_phase)phase;
        e = entry_in(c, g, &other);
    }
    return e;
}

/* What goes in and out is a copy of a few kilobytes that no kernel makes. */
double pl_calibration_seconds(pl_calibration *c, const pl_graph *g, const pl_node *n)
{
    if (pl_op_is_outside(n->op)) return 0;
    const pl_calibration_entry *e = pl_calibration_recall_entry(c, g, n);
    return e ? e->seconds : -1;
}

/* ---- as a cost model ---- */

double pl_calibration_cost(void *calibration, const pl_graph *g, const pl_node *n)
{
    return pl_calibration_predict(calibration, g, n).seconds;
}

pl_duration pl_calibration_range(void *calibration, const pl_graph *g, const pl_node *n)
{
    return pl_calibration_predict(calibration, g, n);
}
