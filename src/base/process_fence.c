/* A fence around a process that prepares and plans: it may take what its limit leaves and no more, so that what cannot
 * be planned here is refused with a sentence, where the kernel would end the process without a word.
 *
 * The kernel counts for us: RLIMIT_DATA bounds private writable memory, touched or not. So the fence can refuse a
 * little early and never late; what takes much more than it touches (stacks of 8 MB) is made smaller first. The limit
 * is soft and survives exec: it is taken back before the runner starts. */
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/resource.h>

#include "base/alloc.h"
#include "base/process_image.h"
#include "base/procfile.h"

enum { FENCED_STACK_BYTES = 256 << 10 };

static bool fenced;
static struct rlimit before;
static uint64_t fence_bytes;
static atomic_bool struck;

static uint64_t held_bytes(void)
{
    uint64_t held = 0;
    pl_procfile_find("/proc/self/status", "VmData", &held);
    return held;
}

uint64_t pl_process_fence_left(void)
{
    if (!fenced) return UINT64_MAX;
    uint64_t held = held_bytes();
    return fence_bytes > held ? fence_bytes - held : 0;
}

/* Was it the fence, or does the system refuse for a reason of its own? */
static void hear_refusal(uint64_t bytes)
{
    if (pl_process_fence_left() < bytes + PL_HUGE_PAGE_BYTES) atomic_store(&struck, true);
}

static void shrink_stacks(void)
{
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes)) return;
    if (pthread_attr_setstacksize(&attributes, FENCED_STACK_BYTES) == 0) (void)pthread_setattr_default_np(&attributes);
    pthread_attr_destroy(&attributes);
}

void pl_process_fence(uint64_t bytes, int threads)
{
    struct rlimit limit;
    uint64_t stacks = (uint64_t)(threads > 1 ? threads - 1 : 0) * FENCED_STACK_BYTES;
    if (fenced || bytes > UINT64_MAX - stacks || getrlimit(RLIMIT_DATA, &before)) return;
    limit = before;
    limit.rlim_cur = bytes + stacks;
    if (before.rlim_cur != RLIM_INFINITY && before.rlim_cur <= limit.rlim_cur) return; /* there is a lower one */
    shrink_stacks();
    mallopt(M_ARENA_MAX, 1);
    fence_bytes = limit.rlim_cur;
    fenced = setrlimit(RLIMIT_DATA, &limit) == 0;
    if (fenced) pl_alloc_tell_refusals(hear_refusal);
}

void pl_process_fence_open(void)
{
    if (!fenced) return;
    (void)setrlimit(RLIMIT_DATA, &before);
    pl_alloc_tell_refusals(NULL);
    fenced = false;
}

pl_status pl_process_read_pages_singly(pl_error *err)
{
    pl_image image;
    PL_TRY(pl_image_read(&image, err));
    pl_image_stop_read_ahead(&image);
    return PL_OK;
}

bool pl_process_fence_struck(void) { return atomic_load(&struck); }

uint64_t pl_process_data_limit(void)
{
    struct rlimit limit = before;
    if (!fenced && getrlimit(RLIMIT_DATA, &limit)) return UINT64_MAX;
    return limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
}
