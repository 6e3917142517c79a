/* What the team does at most, in the table like a kernel: seconds of so many operations, or bytes, the least of many
 * short runs of the whole team. Where others use the machine no run may have all cores alone; then one thread's own
 * processor time tells of operations, times the threads that have a core (of memory it does not, which threads share),
 * and the entry is marked, so that it is measured again on a quiet machine. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/peak.h"
#include "calibrate/table.h"
#include "ir/op.h"

/* A run is of about a millisecond; memory is read in more than caches hold, where measuring may take so much. */
enum { RUNS = 16, READS = 6, WAKES = 5, WAKE_AFTER_NS = 20000000 };
#define ROUNDS INT64_C(200000)
/* Where a few rounds take as long, on a processor that is emulated, more of them add nothing, nor do more runs. */
#define RUN_LONG   1e-3 /* seconds */
#define ALL_LONG   0.2
#define WAKE       "wake"
#define WAKE_LEAST 1e-7
#define WAKE_APART 2   /* times the median: then something came between */
#define UNIT       1e9 /* operations, or bytes, that an entry's seconds are of */
#define READ_MIN   (UINT64_C(64) << 10)
#define ALONE      1.15 /* a run that took no longer than so many times the team's share of a thread was undisturbed */

typedef struct work {
    pl_arithmetic what;
    const void *memory; /* NULL: products */
    uint64_t bytes;
    int64_t rounds;
} work;

/* How many units the team does. */
static double run(const work *w, pl_team team)
{
    if (!w->memory) return pl_peak_exec(team, w->what, w->rounds) / UNIT;
    pl_read_exec(team, w->memory, w->bytes);
    return (double)w->bytes / UNIT;
}

static int64_t find_rounds(pl_arithmetic what, pl_isa isa)
{
    const pl_team one = {1, isa};
    for (int64_t rounds = ROUNDS / 100; rounds < ROUNDS; rounds *= 10) {
        const double begin = pl_seconds_of(CLOCK_THREAD_CPUTIME_ID);
        (void)pl_peak_exec(one, what, rounds);
        if (pl_seconds_of(CLOCK_THREAD_CPUTIME_ID) - begin > RUN_LONG) return rounds;
    }
    return ROUNDS;
}

static void measure(const pl_calibration *c, const work *w, int runs, pl_calibration_entry *e)
{
    const pl_team one = {1, c->options.team.isa};
    double team = 0, alone = 0, spent = 0;
    (void)run(w, c->options.team); /* the team is there */
    for (int i = 0; i < runs && spent < ALL_LONG; i++) {
        double begin = pl_seconds_of(CLOCK_MONOTONIC), units = run(w, c->options.team);
        const double seconds = units > 0 ? (pl_seconds_of(CLOCK_MONOTONIC) - begin) / units : 0;
        if (i == 0 || seconds < team) team = seconds;
        begin = pl_seconds_of(CLOCK_THREAD_CPUTIME_ID), units = run(w, one);
        const double took = pl_seconds_of(CLOCK_THREAD_CPUTIME_ID) - begin, own = units > 0 ? took / units : 0;
        if (i == 0 || own < alone) alone = own;
        spent += took;
    }
    alone /= pl_calibration_at_once(c);
    const bool disturbed = alone > 0 && team > ALONE * alone && !pl_calibration_is_quiet(c);
    *e = (pl_calibration_entry){.seconds = disturbed && !w->memory ? alone : team,
                                .samples = (uint64_t)runs,
                                .busy = disturbed ? PL_CALIBRATION_BUSY : 1,
                                .fresh = true};
}

static bool is_there(pl_calibration *c, const char *key)
{
    return pl_calibration_is_known(c, pl_calibration_touch(c, key));
}

static pl_status keep(pl_calibration *c, const char *key, const pl_calibration_entry *e, pl_error *err)
{
    PL_TRY(pl_calibration_put(c, key, e, err));
    (void)pl_calibration_touch(c, key);
    c->changed = true;
    return PL_OK;
}

static pl_status find(pl_calibration *c, const char *key, work *w, int runs, double *rate, pl_error *err)
{
    pl_calibration_entry e;
    if (!is_there(c, key)) {
        if (!w->memory) w->rounds = find_rounds(w->what, c->options.team.isa);
        measure(c, w, runs, &e);
        PL_TRY(keep(c, key, &e, err));
    }
    const double seconds = pl_calibration_find(c, key)->seconds;
    *rate = seconds > 0 ? UNIT / seconds : 0;
    return PL_OK;
}

/* ---- what there is to measure ---- */

static void print_key(const pl_calibration *c, const char *what, uint64_t bytes, char key[PL_CALIBRATION_KEY_BYTES])
{
    const pl_team team = c->options.team;
    pl_str s = pl_str_fixed(key, PL_CALIBRATION_KEY_BYTES);
    pl_str_printf(&s, PL_CALIBRATION_RATE "%s", what);
    if (bytes) pl_str_printf(&s, " %" PRIu64, bytes);
    pl_str_printf(&s, " %d %s", team.threads, pl_isa_name(team.isa));
}

static void operations_key(const pl_calibration *c, pl_arithmetic what, char key[PL_CALIBRATION_KEY_BYTES])
{
    static const char *const names[PL_ARITHMETIC_COUNT] = {"f32", "bf16", "int8", "signs"};
    print_key(c, names[what], 0, key);
}

/* More than caches hold, where measuring may take so much; else a power of two: the room is never twice the same. */
static uint64_t bytes_to_read(const pl_calibration *c)
{
    const uint64_t most = c->options.bytes_max, wanted = 2 * c->machine.cache_bytes;
    uint64_t bytes = READ_MIN;
    if (most >= PL_CALIBRATION_BYTES_MAX) bytes = most < wanted ? most : wanted;
    while (2 * bytes <= most && 2 * bytes <= wanted) bytes *= 2;
    return bytes;
}

static bool wakes(const pl_calibration *c) { return c->options.team.threads > 1; }

/* Products of 16 bits are a choice that is made later. */
static bool uses(const pl_graph *g, pl_arithmetic what)
{
    for (size_t i = 0; g && i < g->node_count; i++)
        if (!g->node[i].dead && pl_node_arithmetic(g, &g->node[i]) == what) return true;
    return what <= PL_ARITHMETIC_BF16;
}

bool pl_calibration_will_compute(pl_calibration *c, const pl_graph *g)
{
    char key[PL_CALIBRATION_KEY_BYTES];
    bool will = false;
    for (int what = 0; what < PL_ARITHMETIC_COUNT; what++) {
        operations_key(c, (pl_arithmetic)what, key);
        will |= uses(g, (pl_arithmetic)what) && !is_there(c, key);
    }
    print_key(c, "memory", bytes_to_read(c), key);
    will |= !is_there(c, key);
    print_key(c, WAKE, 0, key);
    will |= wakes(c) && !is_there(c, key);
    for (size_t i = 0; i < c->count; i++) will |= c->entry[i].busy >= PL_CALIBRATION_BUSY;
    return will;
}

/* ---- measured ---- */

static pl_status find_operations(pl_calibration *c, pl_arithmetic what, pl_error *err)
{
    char key[PL_CALIBRATION_KEY_BYTES];
    operations_key(c, what, key);
    return find(c, key, &(work){.what = what}, RUNS, &c->rates.operations[what], err);
}

static pl_status find_bytes(pl_calibration *c, pl_error *err)
{
    char key[PL_CALIBRATION_KEY_BYTES];
    const uint64_t bytes = bytes_to_read(c);
    print_key(c, "memory", bytes, key);
    const bool known = is_there(c, key);
    unsigned char *memory = known ? NULL : pl_alloc(bytes, 1);
    if (!known && !memory) return pl_fail(err, PL_E_NOMEM, "no memory to measure how fast memory is read");
    if (memory) memset(memory, 1, bytes);
    const pl_status status = find(c, key, &(work){.memory = memory, .bytes = bytes}, READS, &c->rates.bytes, err);
    pl_free(memory);
    c->rates.cache_bytes = (double)c->machine.cache_bytes;
    return status;
}

/* Where one thread has worked alone the others sleep, and to wake them takes a region longer. Here they may spin for
 * milliseconds before they sleep; in a run they do for microseconds (base/process_exec.c). */
static void measure_wake(pl_calibration *c, pl_calibration_entry *e)
{
    static const uint64_t memory[1024];
    double sample[WAKES];
    for (int i = 0; i < WAKES; i++) {
        nanosleep(&(struct timespec){.tv_nsec = WAKE_AFTER_NS}, NULL);
        const double asleep = pl_seconds_of(CLOCK_MONOTONIC);
        pl_read_exec(c->options.team, memory, sizeof memory);
        const double awake = pl_seconds_of(CLOCK_MONOTONIC);
        pl_read_exec(c->options.team, memory, sizeof memory);
        sample[i] = 2 * awake - asleep - pl_seconds_of(CLOCK_MONOTONIC);
    }
    qsort(sample, WAKES, sizeof *sample, pl_seconds_compare);
    const double median = fmax(sample[WAKES / 2], WAKE_LEAST);
    const bool disturbed = sample[WAKES - 1] > WAKE_APART * median && !pl_calibration_is_quiet(c);
    *e = (pl_calibration_entry){
        .seconds = median, .samples = WAKES, .busy = disturbed ? PL_CALIBRATION_BUSY : 1, .fresh = true};
}

static pl_status find_wake(pl_calibration *c, pl_error *err)
{
    char key[PL_CALIBRATION_KEY_BYTES];
    pl_calibration_entry e;
    print_key(c, WAKE, 0, key);
    if (!wakes(c)) return PL_OK;
    if (!is_there(c, key)) {
        measure_wake(c, &e);
        PL_TRY(keep(c, key, &e, err));
    }
    c->rates.wake_seconds = pl_calibration_find(c, key)->seconds;
    return PL_OK;
}

pl_status pl_calibration_find_rates(pl_calibration *c, const pl_graph *g, pl_error *err)
{
    for (int what = 0; what < PL_ARITHMETIC_COUNT; what++)
        if (uses(g, (pl_arithmetic)what)) PL_TRY(find_operations(c, (pl_arithmetic)what, err));
    PL_TRY(find_wake(c, err));
    return find_bytes(c, err);
}

/* A rate of memory that other processes slowed down while it was measured is not used. Operations were timed by the
 * thread's own clock, which other processes do not slow down. */
static double recall(pl_calibration *c, const char *key, bool may_be_disturbed)
{
    const pl_calibration_entry *e = is_there(c, key) ? pl_calibration_find(c, key) : NULL;
    const bool is_disturbed = e && e->busy >= PL_CALIBRATION_BUSY && !may_be_disturbed;
    return e && e->seconds > 0 && !is_disturbed ? UNIT / e->seconds : 0;
}

bool pl_calibration_recall_rates(pl_calibration *c)
{
    char key[PL_CALIBRATION_KEY_BYTES];
    for (int what = 0; what < PL_ARITHMETIC_COUNT; what++) {
        operations_key(c, (pl_arithmetic)what, key);
        c->rates.operations[what] = recall(c, key, true);
    }
    print_key(c, "memory", bytes_to_read(c), key);
    c->rates.bytes = recall(c, key, false);
    return c->rates.operations[PL_ARITHMETIC_F32] > 0 && c->rates.bytes > 0;
}

pl_rates pl_calibration_rates(const pl_calibration *c) { return c->rates; }
