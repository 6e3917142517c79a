/* LD_PRELOAD: a clock that moves by one step whenever somebody looks at it, and not otherwise. A plan that is made
 * under it "measures" its kernels in a tenth of the time, undisturbed, and each one takes the same, whatever else the
 * machine does:
 * what is in the calibration file then is no measurement, but no matter of chance either. Plans that are made later,
 * without it, find their kernels known. PL_PRELOAD_CLOCK_STEP_NS: another step. PL_PRELOAD_CLOCK_BUSY=N: others leave
 * the process an N-th of the time. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Of the seconds that a process may measure at most (PL_CALIBRATION_TOTAL_SECONDS_MAX) the largest search of cli/fit
 * takes two thirds so and leaves nothing unknown; steps of a millisecond took nine tenths, shorter ones cost time. */
#define STEP_NS UINT64_C(500000)
#define BUSY    "PL_PRELOAD_CLOCK_BUSY"

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *given = getenv(name);
    return given ? strtoull(given, NULL, 10) : otherwise;
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *t)
{
    static _Atomic uint64_t looks;
    const bool own = clock == CLOCK_THREAD_CPUTIME_ID || clock == CLOCK_PROCESS_CPUTIME_ID;
    if (clock != CLOCK_MONOTONIC && !own) return (int)syscall(SYS_clock_gettime, clock, t);
    uint64_t step = number_of("PL_PRELOAD_CLOCK_STEP_NS", STEP_NS);
    uint64_t now = step * (own ? atomic_load(&looks) / number_of(BUSY, 1) : atomic_fetch_add(&looks, 1));
    *t = (struct timespec){.tv_sec = (time_t)(now / 1000000000), .tv_nsec = (long)(now % 1000000000)};
    return 0;
}

/* Nobody else takes the processor away; or somebody does all the time. */
__attribute__((visibility("default"))) int getrusage(__rusage_who_t who, struct rusage *usage)
{
    const int rc = (int)syscall(SYS_getrusage, who, usage);
    static _Atomic long asked;
    if (rc == 0) usage->ru_nivcsw = number_of(BUSY, 1) > 1 ? atomic_fetch_add(&asked, 1) : 0;
    return rc;
}

/* Nor does whoever shares the machine below: what is stolen of it is told nowhere. */
__attribute__((visibility("default"))) int open(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    const mode_t mode = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    if (strcmp(path, "/proc/stat") == 0) return errno = ENOENT, -1;
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}
