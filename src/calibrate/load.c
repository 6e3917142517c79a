/* Whether others used the processors meanwhile: this thread's own time against that on the wall, and what the kernel
 * counts as stolen by whoever shares the machine below. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "backend/peak.h"
#include "calibrate/table.h"

/* Stolen time is counted in hundredths of a second: of fewer nothing can be said. */
enum { TICKS_MIN = 20, IDLE_FIELD = 3, WAIT_FIELD = 4, STOLEN_FIELD = 7, STAT_FIELDS = 8, PROBES_MAX = 1200 };
#define STOLEN_SHARE  0.02 /* a share below which it is no matter */
#define PROBE_SECONDS 0.02
#define PROBE_ROUNDS  INT64_C(10000)
#define QUIET_SLOWED  1.15

double pl_seconds_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int pl_seconds_compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The first line of /proc/stat: user nice system idle iowait irq softirq steal, in ticks, of all processors. Only those
 * that something ran, or wanted to run: of many idle processors the share that one loses would be nothing. */
static void read_ticks(pl_load *l)
{
    char text[512] = "";
    unsigned long long field[STAT_FIELDS] = {0};
    l->stolen = l->ticks = 0;
    const int fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    const ssize_t bytes = read(fd, text, sizeof text - 1);
    (void)close(fd);
    if (bytes <= 0) return;
    if (sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &field[0], &field[1], &field[2], &field[3],
               &field[4], &field[5], &field[6], &field[7]) != STAT_FIELDS)
        return;
    for (int i = 0; i < STAT_FIELDS; i++)
        if (i != IDLE_FIELD && i != WAIT_FIELD) l->ticks += field[i];
    l->stolen = field[STOLEN_FIELD];
}

void pl_load_begin(pl_load *l)
{
    read_ticks(l);
    l->own_seconds = pl_seconds_of(CLOCK_THREAD_CPUTIME_ID);
    l->wall_seconds = pl_seconds_of(CLOCK_MONOTONIC);
}

double pl_load_slowed(const pl_load *begun)
{
    const double wall = pl_seconds_of(CLOCK_MONOTONIC) - begun->wall_seconds;
    const double own = pl_seconds_of(CLOCK_THREAD_CPUTIME_ID) - begun->own_seconds;
    return own > 0 && wall > own ? wall / own : 1;
}

double pl_load_stolen(const pl_load *begun)
{
    pl_load now;
    read_ticks(&now);
    const uint64_t ticks = now.ticks - begun->ticks, stolen = now.stolen - begun->stolen;
    if (now.ticks < begun->ticks + TICKS_MIN || now.stolen < begun->stolen || stolen >= ticks) return 1;
    const double share = (double)stolen / (double)ticks;
    return share > STOLEN_SHARE ? 1 / (1 - share) : 1;
}

long pl_load_switches(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) ? 0 : usage.ru_nivcsw;
}

int pl_calibration_at_once(const pl_calibration *c)
{
    return c->options.team.threads < c->machine.cores ? c->options.team.threads : c->machine.cores;
}

/* As many threads as have a core compute for a while: from none of them it is taken away, but for a clock's tick. */
bool pl_calibration_is_quiet(const pl_calibration *c)
{
    const pl_team team = {pl_calibration_at_once(c), c->options.team.isa};
    pl_load load;
    (void)pl_peak_exec(team, PL_ARITHMETIC_F32, 1); /* the team is there */
    const long before = pl_load_switches();
    pl_load_begin(&load);
    for (int i = 0; i < PROBES_MAX && pl_seconds_of(CLOCK_MONOTONIC) - load.wall_seconds < PROBE_SECONDS; i++)
        (void)pl_peak_exec(team, PL_ARITHMETIC_F32, PROBE_ROUNDS);
    return pl_load_slowed(&load) < QUIET_SLOWED && pl_load_switches() - before <= team.threads;
}
