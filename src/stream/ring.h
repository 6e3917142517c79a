/* A ring of slots that threads fill from a source ahead of the work.
 *
 *      threads  ──fill──> [slot][slot][slot] ──next──> the step ──release──> free again
 *
 * Slots have numbers; threads take them in order, fill them side by side, and `next` hands them out in order. All
 * memory is the caller's (pl_ring_bytes, pl_ring_init) but the threads' stacks, whose size the caller gives. After
 * pl_ring_start nothing asks for memory. One ring serves several streams one after the other (training, evaluation,
 * training again): pl_ring_begin starts one at any step.
 *
 * However slow the threads are, each slot comes once and in its place; so does a fill that fails, and one that ends its
 * thread (pthread_exit in a library that it calls): PL_E_INTERNAL. Later streams are filled by the threads that are
 * left; when none is, each begins with that failure. Nothing else ends a thread: in fills, too, cancelling it is
 * disabled, and thread_begins has to return. tests/unit/stream/test_ring_schedules.c goes through all interleavings. */
#ifndef PL_STREAM_RING_H
#define PL_STREAM_RING_H

#include "stream/source.h"

typedef struct pl_ring pl_ring;

typedef struct pl_ring_options {
    const pl_source *source; /* lives as long as the ring */
    uint32_t micro_batch;    /* samples a slot */
    uint32_t slots;          /* one more than threads hides the filling */
    uint32_t threads;        /* that fill; at least 1 */
    uint64_t stack_bytes;    /* of a thread; 65536 is enough for text */
    /* Called by each thread itself before anything else, one after the other, or NULL: to book its stack. A failure
     * comes up in start. */
    pl_status (*thread_begins)(void *context, pl_error *);
    void *context;
} pl_ring_options;

/* Bytes of memory that a ring needs. PL_E_CONFIG when it is not possible: no slots, or numbers that overflow. */
pl_status pl_ring_bytes(const pl_ring_options *, uint64_t *bytes, pl_error *);
/* memory: aligned to 64, pl_ring_bytes long. */
pl_status pl_ring_init(void *memory, const pl_ring_options *, pl_ring **, pl_error *);
/* Creates the threads (their stacks are mapped here) and waits until they run. Signals are blocked in them. */
pl_status pl_ring_start(pl_ring *, pl_error *);
/* From here on `next` gives the micro-batches of steps first_step … end_step − 1 of a part. Waits for what is being
 * filled of an earlier stream; what that had left is dropped. */
void pl_ring_begin(pl_ring *, pl_part, uint64_t first_step, uint64_t end_step);
/* Waits for the next micro-batch; it stays valid until released. A failed fill comes up here, in its place. */
pl_status pl_ring_next(pl_ring *, pl_slot *, pl_error *);
void pl_ring_release(pl_ring *);
/* Ends and joins the threads. The memory is the caller's again. NULL is fine. */
void pl_ring_deinit(pl_ring *);

#endif
