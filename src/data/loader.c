/* One lock and two conditions. Slots [taken, filled) are ready, counted modulo the ring; the thread fills without the
 * lock and publishes under it. `stream` numbers the calls of begin: what was filled for an earlier stream is not
 * published. */
#include "data/loader.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "base/size.h"

struct pl_loader {
    pl_loader_options options;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t to_thread, to_consumer;
    int started, runs, stop;
    uint64_t stream;
    pl_sampler sampler;
    uint64_t next_step, end_step; /* what is filled next */
    uint32_t next_micro, micro_count;
    uint64_t filled, taken; /* slots since the stream began */
    pl_status status;       /* of the stream: set once, after the slots that were good */
    pl_error error;
    pl_tokens_reader reader; /* the thread's */
    pl_batch *slot;          /* [slots] */
    int32_t *ids;            /* [slots][tokens, targets][micro_batch · sequence] */
};

/* ---- memory ---- */

static uint64_t head_bytes(const pl_loader_options *o)
{
    return pl_align_up(sizeof(pl_loader) + (uint64_t)o->slots * sizeof(pl_batch), 64);
}

/* Bytes of one slot's tokens (or targets), padded to a cache line. */
static int ids_bytes(const pl_loader_options *o, uint64_t *bytes)
{
    if (pl_size_mul(o->micro_batch, o->sequence, bytes) || pl_size_mul(*bytes, sizeof(int32_t), bytes)) return -1;
    *bytes = pl_align_up(*bytes, 64);
    return 0;
}

uint64_t pl_loader_bytes(const pl_loader_options *o)
{
    uint64_t ids, ring, total;
    if (ids_bytes(o, &ids) || pl_size_mul(ids, 2 * (uint64_t)o->slots, &ring)) return 0;
    if (pl_size_add(ring, head_bytes(o) + pl_align_up(pl_tokens_reader_bytes(&o->tokens->info), 64), &total)) return 0;
    return total;
}

static int32_t *slot_ids(const pl_loader *l, uint64_t slot, int targets)
{
    uint64_t bytes = 0;
    ids_bytes(&l->options, &bytes);
    return l->ids + (slot * 2 + (uint64_t)targets) * (bytes / sizeof(int32_t));
}

pl_status pl_loader_init(void *memory, const pl_loader_options *o, pl_loader **out, pl_error *err)
{
    uint64_t bytes = pl_loader_bytes(o);
    if (o->slots == 0 || o->micro_batch == 0 || o->sequence == 0 || bytes == 0)
        return pl_fail(err, PL_E_CONFIG, "a loader with %u slots of %u × %u tokens is not possible", o->slots,
                       o->micro_batch, o->sequence);
    assert((uintptr_t)memory % 64 == 0);
    memset(memory, 0, bytes); /* touches all of it */
    pl_loader *l = *out = memory;
    l->options = *o;
    l->slot = (pl_batch *)(l + 1);
    uint8_t *at = (uint8_t *)memory + head_bytes(o);
    pl_tokens_reader_init(&l->reader, o->tokens, at);
    l->ids = (int32_t *)(at + pl_align_up(pl_tokens_reader_bytes(&o->tokens->info), 64));
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->to_thread, NULL);
    pthread_cond_init(&l->to_consumer, NULL);
    return PL_OK;
}

/* ---- the thread ---- */

static pl_status fill_row(pl_loader *l, pl_window window, int32_t *tokens, int32_t *targets, pl_error *err)
{
    uint32_t n = window.counted, length = l->options.sequence;
    if (n) {
        PL_TRY(pl_tokens_read(&l->reader, window.start, window.start + n, tokens, err));
        PL_TRY(pl_tokens_read(&l->reader, window.start + n, window.start + n + 1, targets + n - 1, err));
        memcpy(targets, tokens + 1, (n - 1) * sizeof *targets);
    }
    for (uint32_t i = n; i < length; i++) tokens[i] = 0, targets[i] = -1;
    return PL_OK;
}

static pl_status fill_slot(pl_loader *l, const pl_sampler *sampler, uint64_t slot, pl_batch *batch, pl_error *err)
{
    uint32_t rows = l->options.micro_batch, length = l->options.sequence;
    int32_t *tokens = slot_ids(l, slot, 0), *targets = slot_ids(l, slot, 1);
    batch->tokens = tokens;
    batch->targets = targets;
    batch->first_sample = batch->step * sampler->batch + (uint64_t)batch->micro * rows;
    batch->counted = 0;
    pl_status status = PL_OK;
    for (uint32_t row = 0; row < rows && status == PL_OK; row++) {
        uint64_t in_step = (uint64_t)batch->micro * rows + row;
        pl_window window =
            in_step < sampler->batch ? pl_sampler_window(sampler, batch->step, (uint32_t)in_step) : (pl_window){0};
        status = fill_row(l, window, tokens + (size_t)row * length, targets + (size_t)row * length, err);
        batch->counted += window.counted;
    }
    pl_tokens_drop_cache(l->options.tokens);
    return status;
}

/* Has the lock: is there something to fill? */
static int work_waits(const pl_loader *l)
{
    return l->status == PL_OK && l->next_step < l->end_step && l->filled - l->taken < l->options.slots;
}

/* Has the lock: the slot is ready, or the stream has failed at it. */
static void publish(pl_loader *l, uint64_t slot, const pl_batch *batch, pl_status status, const pl_error *error)
{
    if (status == PL_OK) {
        l->slot[slot] = *batch;
        l->filled++;
        if (++l->next_micro == l->micro_count) l->next_micro = 0, l->next_step++;
    } else {
        l->status = status;
        l->error = *error;
    }
    pthread_cond_signal(&l->to_consumer);
}

/* Has the lock, lets it go while it reads. */
static void fill_one(pl_loader *l)
{
    pl_error error = {0};
    pl_sampler sampler = l->sampler;
    uint64_t stream = l->stream, slot = l->filled % l->options.slots;
    pl_batch batch = {.step = l->next_step, .micro = l->next_micro, .micro_count = l->micro_count};
    pthread_mutex_unlock(&l->lock);
    pl_status status = fill_slot(l, &sampler, slot, &batch, &error);
    pthread_mutex_lock(&l->lock);
    if (stream == l->stream) publish(l, slot, &batch, status, &error);
}

static void *run(void *argument)
{
    pl_loader *l = argument;
    pl_status status = l->options.thread_begins ? l->options.thread_begins(l->options.context, &l->error) : PL_OK;
    pthread_mutex_lock(&l->lock);
    l->status = status;
    l->runs = 1;
    pthread_cond_signal(&l->to_consumer);
    while (!l->stop) {
        if (work_waits(l))
            fill_one(l);
        else
            pthread_cond_wait(&l->to_thread, &l->lock);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* ---- the consumer ---- */

static int create_thread(pl_loader *l)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    int error = pthread_attr_init(&attributes);
    if (error) return error;
    error = pthread_attr_setstacksize(&attributes, l->options.stack_bytes);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (!error) error = pthread_create(&l->thread, &attributes, run, l);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return error;
}

pl_status pl_loader_start(pl_loader *l, pl_error *err)
{
    int error = create_thread(l);
    if (error)
        return pl_fail(err, error == EINVAL ? PL_E_CONFIG : PL_E_NOMEM,
                       "the loader's thread with a stack of %llu bytes could not be created: %s",
                       (unsigned long long)l->options.stack_bytes, strerror(error));
    l->started = 1;
    pthread_mutex_lock(&l->lock); /* what the C library does at a thread's beginning is done when this returns */
    while (!l->runs) pthread_cond_wait(&l->to_consumer, &l->lock);
    pl_status status = l->status;
    pthread_mutex_unlock(&l->lock);
    return status == PL_OK ? PL_OK : pl_fail(err, status, "%s", l->error.text);
}

pl_status pl_loader_begin(pl_loader *l, const pl_sampler *sampler, uint64_t first_step, uint64_t end_step,
                          pl_error *err)
{
    if (sampler->sequence != l->options.sequence || sampler->end > l->options.tokens->info.count)
        return pl_fail(err, PL_E_INTERNAL,
                       "the loader was made for sequences of %u in %llu tokens, the sampler for %u in %llu",
                       l->options.sequence, (unsigned long long)l->options.tokens->info.count, sampler->sequence,
                       (unsigned long long)sampler->end);
    pthread_mutex_lock(&l->lock);
    l->stream++;
    l->sampler = *sampler;
    l->next_step = first_step;
    l->end_step = end_step;
    l->next_micro = 0;
    l->micro_count = (sampler->batch - 1) / l->options.micro_batch + 1;
    l->filled = l->taken = 0;
    l->status = PL_OK;
    pthread_cond_signal(&l->to_thread);
    pthread_mutex_unlock(&l->lock);
    return PL_OK;
}

pl_status pl_loader_next(pl_loader *l, pl_batch *batch, pl_error *err)
{
    pl_status status = PL_OK;
    pthread_mutex_lock(&l->lock);
    while (l->filled == l->taken && l->status == PL_OK && l->next_step < l->end_step)
        pthread_cond_wait(&l->to_consumer, &l->lock);
    *batch = (pl_batch){0};
    if (l->filled != l->taken)
        *batch = l->slot[l->taken % l->options.slots];
    else if (l->status != PL_OK)
        status = pl_fail(err, l->status, "%s", l->error.text);
    pthread_mutex_unlock(&l->lock);
    return status;
}

void pl_loader_release(pl_loader *l)
{
    pthread_mutex_lock(&l->lock);
    assert(l->taken < l->filled);
    l->taken++;
    pthread_cond_signal(&l->to_thread);
    pthread_mutex_unlock(&l->lock);
}

void pl_loader_deinit(pl_loader *l)
{
    if (!l) return;
    pthread_mutex_lock(&l->lock);
    l->stop = 1;
    pthread_cond_signal(&l->to_thread);
    pthread_mutex_unlock(&l->lock);
    if (l->started) pthread_join(l->thread, NULL);
    pthread_cond_destroy(&l->to_thread);
    pthread_cond_destroy(&l->to_consumer);
    pthread_mutex_destroy(&l->lock);
    l->started = 0;
}
