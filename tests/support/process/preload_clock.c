/* LD_PRELOAD: a clock that moves by one step whenever somebody looks at it, and not otherwise. A plan that is made
 * under it "measures" its kernels in a tenth of the time, undisturbed, and each one takes the same, whatever else the
 * machine does:
 * what is in the calibration file then is no measurement, but no matter of chance either. Plans that are made later,
 * without it, find their kernels known. PL_PRELOAD_CLOCK_STEP_NS: another step. */
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Of the seconds that a process may measure at most (PL_CALIBRATION_TOTAL_SECONDS_MAX) the largest search of cli/fit
 * takes two thirds so and leaves nothing unknown; steps of a millisecond took nine tenths, shorter ones cost time. */
#define STEP_NS UINT64_C(500000)

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *t)
{
    static _Atomic uint64_t looks;
    if (clock != CLOCK_MONOTONIC) return (int)syscall(SYS_clock_gettime, clock, t);
    const char *given = getenv("PL_PRELOAD_CLOCK_STEP_NS");
    uint64_t step = given ? strtoull(given, NULL, 10) : STEP_NS;
    uint64_t now = step * atomic_fetch_add(&looks, 1);
    *t = (struct timespec){.tv_sec = (time_t)(now / 1000000000), .tv_nsec = (long)(now % 1000000000)};
    return 0;
}

/* Nobody else takes the processor away. */
__attribute__((visibility("default"))) int getrusage(__rusage_who_t who, struct rusage *usage)
{
    const int rc = (int)syscall(SYS_getrusage, who, usage);
    if (rc == 0) usage->ru_nivcsw = 0;
    return rc;
}
