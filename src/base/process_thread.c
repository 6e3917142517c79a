/* The stack of a thread: a mapping with a guard page at its low end and the thread's descriptor and static TLS at its
 * high end. The planned depth is counted from the high end, so that descriptor and TLS are inside of it.
 *
 *      [guard][ reserved, untouched … | touched: frames, TLS, descriptor ]   one row "thread stacks" sums them all */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "base/process_image.h"
#include "base/size.h"

pl_status pl_process_adopt_thread(const pl_process_options *options, pl_memory_owners *owners, pl_error *err)
{
    pthread_attr_t attributes;
    void *base = NULL;
    size_t bytes = 0;
    int error = pthread_getattr_np(pthread_self(), &attributes);
    if (error == 0) {
        error = pthread_attr_getstack(&attributes, &base, &bytes);
        pthread_attr_destroy(&attributes);
    }
    if (error) return pl_fail(err, PL_E_NOMEM, "the stack of a new thread cannot be found: %s", strerror(error));
    if (bytes < options->thread_stack_touched_bytes) {
        return pl_fail(err, PL_E_INTERNAL, "a thread has a stack of %zu bytes, of which %llu should be touched", bytes,
                       (unsigned long long)options->thread_stack_touched_bytes);
    }
    uintptr_t begin = (uintptr_t)base, end = pl_align_up(begin + bytes, PL_PAGE_BYTES); /* libomp asks for odd sizes */
    (void)madvise(base, bytes, MADV_NOHUGEPAGE);                                        /* second line behind prctl */
    if (pl_image_populate(end - options->thread_stack_touched_bytes, end, true)) {
        return pl_fail(err, PL_E_NOMEM, "%llu bytes of a thread's stack cannot be made resident: %s",
                       (unsigned long long)options->thread_stack_touched_bytes, strerror(errno));
    }
    return pl_memory_owners_add(owners, PL_MEMORY_THREAD_STACK, "thread stacks", base, bytes, err);
}
