/* Streams a sampler's windows into a ring of slots by a second thread, one micro-batch a slot.
 *
 *      thread  ──fill──> [slot][slot][slot] ──next──> the step ──release──> free again
 *
 * All memory is the caller's (pl_loader_bytes, pl_loader_init) but the thread's stack, whose size the caller gives.
 * After pl_loader_start neither side asks for memory, and what has been read leaves the page cache. One loader serves
 * several streams one after the other (training, evaluation, training again): pl_loader_begin starts one at any step.
 */
#ifndef PL_DATA_LOADER_H
#define PL_DATA_LOADER_H

#include "data/sampler.h"
#include "data/tokens.h"

typedef struct pl_loader pl_loader;

typedef struct pl_loader_options {
    const pl_tokens *tokens;               /* open, and open as long as the loader lives */
    uint32_t micro_batch, sequence, slots; /* rows, tokens a row, slots (2 or more hide the reading) */
    uint64_t stack_bytes;                  /* of the thread; 65536 is enough */
    /* Called by the thread itself before anything else, or NULL: to book its stack. A failure comes up in start. */
    pl_status (*thread_begins)(void *context, pl_error *);
    void *context;
} pl_loader_options;

/* One micro-batch. Rows and targets past what there is: token 0, target −1. */
typedef struct pl_batch {
    const int32_t *tokens, *targets; /* [micro_batch, sequence]; NULL when the stream has ended */
    uint64_t step;
    uint32_t micro, micro_count; /* this is number `micro` of micro_count in the step */
    uint64_t first_sample;       /* global number of the first row: step · batch + micro · micro_batch */
    uint64_t counted;            /* targets that are not −1 */
} pl_batch;

/* Bytes of memory a loader needs; 0 when the numbers overflow. */
uint64_t pl_loader_bytes(const pl_loader_options *);
/* memory: aligned to 64, pl_loader_bytes long. */
pl_status pl_loader_init(void *memory, const pl_loader_options *, pl_loader **, pl_error *);
/* Creates the thread (its stack is mapped here) and waits until it runs. Signals are blocked in it. */
pl_status pl_loader_start(pl_loader *, pl_error *);
/* From here on `next` gives the micro-batches of steps first_step … end_step − 1 of this sampler (copied; its sequence
 * is the loader's). What an earlier stream had left is dropped. */
pl_status pl_loader_begin(pl_loader *, const pl_sampler *, uint64_t first_step, uint64_t end_step, pl_error *);
/* Waits for the next micro-batch; it stays valid until released. A failed read comes up here, in its place. */
pl_status pl_loader_next(pl_loader *, pl_batch *, pl_error *);
void pl_loader_release(pl_loader *);
/* Ends and joins the thread. The memory is the caller's again. NULL is fine. */
void pl_loader_deinit(pl_loader *);

#endif
