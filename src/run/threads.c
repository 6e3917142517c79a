#include "run/threads.h"

#include <errno.h>
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/procfile.h"

enum { STACK_BYTES_UNKNOWN = 8 << 20 };

/* The team that OpenMP keeps for the calling thread's next region: those are not asked for twice, for under a limit on
 * memory or on threads there may be room for one team and not for two. */
static _Thread_local int kept = 1;

/* libgomp ends the program when it cannot create a thread; so the system is asked first, with threads that only wait
 * for each other. Their stacks are a mapping of ours, given back: glibc's cache would keep them, and libomp, which
 * wants each of another size, would not take them from there. */
typedef struct probe {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool over;
} probe;

static void *wait_for_end(void *argument)
{
    probe *p = argument;
    pthread_mutex_lock(&p->lock);
    while (!p->over) pthread_cond_wait(&p->changed, &p->lock);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* 0, or what the system says; *count is how many threads it gave. */
static int start_probes(probe *p, int wanted, char *stacks, size_t stack_bytes, pthread_t *thread, int *count)
{
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    for (*count = 0; error == 0 && *count < wanted; *count += error == 0) {
        error = pthread_attr_setstack(&attributes, stacks + (size_t)*count * stack_bytes, stack_bytes);
        if (error == 0) error = pthread_create(&thread[*count], &attributes, wait_for_end, p);
    }
    pthread_attr_destroy(&attributes);
    return error;
}

static void end_probes(probe *p, const pthread_t *thread, int count)
{
    pthread_mutex_lock(&p->lock);
    p->over = true;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < count; i++) pthread_join(thread[i], NULL);
}

/* What a thread's stack is when nobody says otherwise (pl_process_prepare has). */
static size_t default_stack_bytes(void)
{
    pthread_attr_t attributes;
    size_t bytes = 0;
    if (pthread_getattr_default_np(&attributes)) return STACK_BYTES_UNKNOWN;
    if (pthread_attr_getstacksize(&attributes, &bytes)) bytes = 0;
    pthread_attr_destroy(&attributes);
    return bytes ? bytes : STACK_BYTES_UNKNOWN;
}

/* While there is room for them: what is asked for later may take it. */
static void start_team(int threads)
{
    atomic_int started = 0;
#pragma omp parallel num_threads(threads)
    atomic_fetch_add(&started, 1);
    kept = threads;
}

static int count_missing(int threads) { return threads > kept ? threads - kept : 0; }

uint64_t pl_threads_missing_bytes(int threads) { return (uint64_t)count_missing(threads) * default_stack_bytes(); }

static pl_status refuse_threads(int threads, int helpers, int granted, int error, pl_error *err)
{
    const int most = granted - helpers;
    pl_fail(err, PL_E_NOMEM, "the system refuses thread %d of %d (%s): ", granted + 1, threads + helpers,
            strerror(error));
    if (most >= 1) pl_error_append(err, "give `run.threads` %d, or ", most);
    pl_error_append(err, "raise the limit (ulimit -u, pids.max of the control group, memory for their stacks)");
    return PL_E_NOMEM;
}

pl_status pl_threads_probe(int threads, int helpers, pl_error *err)
{
    const int further = count_missing(threads) + helpers;
    if (threads > PL_THREADS_MAX || threads - 1 + helpers >= PL_PROCESS_THREADS_MAX)
        return pl_fail(err, PL_E_USAGE, "%d threads asked for: 1 to %d are possible", threads, PL_THREADS_MAX);
    if (threads < 2) return PL_OK; /* no team: who starts helpers asks for them */
    probe p = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    pthread_t thread[PL_PROCESS_THREADS_MAX];
    size_t stack_bytes = default_stack_bytes(), bytes = stack_bytes * (size_t)further;
    int count = 0, error = 0;
    if (further == 0) return start_team(threads), PL_OK;
    char *stacks =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (stacks == MAP_FAILED) {
        error = errno;
    } else {
        error = start_probes(&p, further, stacks, stack_bytes, thread, &count);
        end_probes(&p, thread, count);
        munmap(stacks, bytes);
    }
    if (error == 0) return start_team(threads), PL_OK;
    return refuse_threads(threads, helpers, threads + helpers - further + count, error, err);
}

/* They end by themselves; the kernel's list says when. Whoever has threads of another kind waits in vain, but not
 * long. */
void pl_threads_end(void)
{
    enum { LOOKS_MAX = 200 };
    const struct timespec pause = {.tv_nsec = 1000000};
    uint64_t threads = 0;
    if (omp_in_parallel() || omp_pause_resource_all(omp_pause_hard)) return;
    kept = 1;
    for (int i = 0; i < LOOKS_MAX && pl_procfile_find("/proc/self/status", "Threads", &threads) && threads > 1; i++)
        nanosleep(&pause, NULL);
}

int pl_threads_limit(void)
{
    int limit = omp_get_thread_limit();
    return limit < PL_THREADS_MAX ? limit : PL_THREADS_MAX;
}

/* Measured, rounded up. libomp 14, which clang's code calls: 42 KiB as it is loaded, 13.3 KiB a thread, and at its
 * first call a mask of cores of 1 MiB, given back when the number of cores is known. libgomp 12: 0.6 KiB a thread. */
uint64_t pl_threads_heap_bytes(int threads)
{
#ifdef __clang__
    return ((uint64_t)1 << 20) + (48 << 10) + (uint64_t)threads * (14 << 10);
#else
    return (uint64_t)threads * 2048;
#endif
}

static pl_status set_openmp(int threads, pl_error *err)
{
    if (threads < 1 || threads > PL_THREADS_MAX) {
        return pl_fail(err, PL_E_USAGE, "%d threads asked for: 1 to %d are possible", threads, PL_THREADS_MAX);
    }
    if (omp_in_parallel()) return pl_fail(err, PL_E_USAGE, "the team cannot be created inside of a parallel region");
    if (omp_get_thread_limit() < threads) {
        return pl_fail(err, PL_E_USAGE,
                       "%d threads asked for, but OMP_THREAD_LIMIT allows %d: ask for fewer or unset it", threads,
                       omp_get_thread_limit());
    }
    omp_set_dynamic(0);
    omp_set_max_active_levels(1);
    omp_set_num_threads(threads);
    return PL_OK;
}

pl_status pl_threads_create(int threads, int helpers, const pl_process_options *options, pl_memory_owners *owners,
                            pl_error *err)
{
    PL_TRY(set_openmp(threads, err));
    if (threads == 1) return PL_OK; /* the caller alone: no region is ever opened */
    PL_TRY(pl_threads_probe(threads, helpers, err));
    pl_status status = PL_OK;
    int got = 0;
#pragma omp parallel num_threads(threads)
    {
        if (omp_get_thread_num() == 0) {
            got = omp_get_num_threads();
        } else {
            pl_error own = {0};
            if (pl_process_adopt_thread(options, owners, &own) != PL_OK) {
#pragma omp critical(pl_threads_error)
                {
                    status = own.status;
                    if (err) *err = own;
                }
            }
        }
    }
    if (status == PL_OK && got != threads) {
        return pl_fail(err, PL_E_USAGE, "OpenMP gives %d threads where %d are asked for: check the OMP_ variables", got,
                       threads);
    }
    return status;
}

/* 1 when the calling thread's frame lies in a registered stack. */
static int on_registered_stack(const pl_memory_owners *owners)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    for (size_t i = 0; i < owners->count; i++) {
        const pl_memory_range *range = &owners->range[i];
        if (here >= range->begin && here < range->end) return range->kind == PL_MEMORY_THREAD_STACK;
    }
    return 0;
}

pl_status pl_threads_check(int threads, const pl_memory_owners *owners, pl_error *err)
{
    if (threads == 1) return PL_OK;
    int known = 1;
#pragma omp parallel num_threads(threads) reduction(+ : known)
    if (omp_get_thread_num() != 0) known += on_registered_stack(owners);
    if (known == threads) return PL_OK;
    return pl_fail(err, PL_E_INTERNAL,
                   "%d of %d threads run on stacks that were planned: the team was ended and created again", known,
                   threads);
}
