/* What the team does at most, in the table like a kernel: seconds of so many operations, or bytes, the least of many
 * short runs of the whole team. Where others use the machine no run may have all cores alone; then one thread's own
 * processor time tells, times the threads, and the entry is marked, so that it is measured again on a quiet machine. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "backend/peak.h"
#include "calibrate/table.h"
#include "ir/op.h"

/* A run is of about a millisecond; memory is read in more than caches hold, where measuring may take so much. */
enum { RUNS = 16, READS = 6 };
#define ROUNDS   INT64_C(200000)
#define UNIT     1e9 /* operations, or bytes, that an entry's seconds are of */
#define READ_MIN (UINT64_C(64) << 10)
#define ALONE    1.15 /* a run that took no longer than so many times the team's share of one thread was undisturbed */

typedef struct work {
    pl_arithmetic what;
    const void *memory; /* NULL: products */
    uint64_t bytes;
} work;

/* How many units the team does. */
static double run(const work *w, pl_team team)
{
    if (!w->memory) return pl_peak_exec(team, w->what, ROUNDS) / UNIT;
    pl_read_exec(team, w->memory, w->bytes);
    return (double)w->bytes / UNIT;
}

static void measure(const pl_calibration *c, const work *w, int runs, pl_calibration_entry *e)
{
    const pl_team one = {1, c->options.team.isa};
    double team = 0, alone = 0;
    (void)run(w, c->options.team); /* the team is there */
    for (int i = 0; i < runs; i++) {
        double begin = pl_seconds_of(CLOCK_MONOTONIC), units = run(w, c->options.team);
        const double seconds = units > 0 ? (pl_seconds_of(CLOCK_MONOTONIC) - begin) / units : 0;
        if (i == 0 || seconds < team) team = seconds;
        begin = pl_seconds_of(CLOCK_THREAD_CPUTIME_ID), units = run(w, one);
        const double own = units > 0 ? (pl_seconds_of(CLOCK_THREAD_CPUTIME_ID) - begin) / units : 0;
        if (i == 0 || own < alone) alone = own;
    }
    alone /= c->options.team.threads;
    const bool disturbed = alone > 0 && team > ALONE * alone && !pl_calibration_is_quiet(c);
    *e = (pl_calibration_entry){
        .seconds = disturbed ? alone : team, .samples = (uint64_t)runs, .busy = disturbed ? PL_CALIBRATION_BUSY : 1};
}

static pl_status find(pl_calibration *c, const char *key, const work *w, int runs, double *rate, pl_error *err)
{
    pl_calibration_entry e;
    if (!pl_calibration_is_known(c, pl_calibration_touch(c, key))) {
        measure(c, w, runs, &e);
        PL_TRY(pl_calibration_put(c, key, &e, err));
        (void)pl_calibration_touch(c, key);
        c->changed = true;
    }
    const double seconds = pl_calibration_find(c, key)->seconds;
    *rate = seconds > 0 ? UNIT / seconds : 0;
    return PL_OK;
}

/* ---- operations ---- */

static pl_status find_operations(pl_calibration *c, pl_arithmetic what, pl_error *err)
{
    static const char *const names[PL_ARITHMETIC_COUNT] = {"f32", "bf16", "int8", "signs"};
    char key[PL_CALIBRATION_KEY_BYTES];
    const pl_team team = c->options.team;
    snprintf(key, sizeof key, PL_CALIBRATION_RATE "%s %d %s", names[what], team.threads, pl_isa_name(team.isa));
    return find(c, key, &(const work){.what = what}, RUNS, &c->rates.operations[what], err);
}

/* Products of 16 bits are a choice that is made later. */
static bool uses(const pl_graph *g, pl_arithmetic what)
{
    for (size_t i = 0; g && i < g->node_count; i++)
        if (!g->node[i].dead && pl_node_arithmetic(g, &g->node[i]) == what) return true;
    return what <= PL_ARITHMETIC_BF16;
}

/* ---- bytes ---- */

static pl_status find_bytes(pl_calibration *c, pl_error *err)
{
    char key[PL_CALIBRATION_KEY_BYTES];
    const pl_team team = c->options.team;
    uint64_t bytes = 2 * c->machine.cache_bytes;
    if (bytes > c->options.bytes_max) bytes = c->options.bytes_max;
    bytes = bytes > READ_MIN ? bytes / READ_MIN * READ_MIN : READ_MIN;
    snprintf(key, sizeof key, PL_CALIBRATION_RATE "memory %llu %d %s", (unsigned long long)bytes, team.threads,
             pl_isa_name(team.isa));
    const bool known = pl_calibration_is_known(c, pl_calibration_touch(c, key));
    unsigned char *memory = known ? NULL : pl_alloc(bytes, 1);
    if (!known && !memory) return pl_fail(err, PL_E_NOMEM, "no memory to measure how fast memory is read");
    if (memory) memset(memory, 1, bytes);
    const pl_status status = find(c, key, &(const work){.memory = memory, .bytes = bytes}, READS, &c->rates.bytes, err);
    pl_free(memory);
    c->rates.cache_bytes = (double)c->machine.cache_bytes;
    return status;
}

pl_status pl_calibration_find_rates(pl_calibration *c, const pl_graph *g, pl_error *err)
{
    for (int what = 0; what < PL_ARITHMETIC_COUNT; what++)
        if (uses(g, (pl_arithmetic)what)) PL_TRY(find_operations(c, (pl_arithmetic)what, err));
    return find_bytes(c, err);
}

pl_rates pl_calibration_rates(const pl_calibration *c) { return c->rates; }
