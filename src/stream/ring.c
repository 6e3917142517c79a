/* One lock and two conditions. Of a stream's slots, counted from 0, [0, taken) are over and [0, handed) were given to a
 * thread; a slot's place in the ring is its number modulo the ring. Threads fill without the lock. */
#include "stream/ring.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "base/size.h"

/* What is kept of a slot; the rest follows from its number. */
typedef struct place {
    uint64_t counted;
    bool filled;
} place;

typedef struct worker {
    struct pl_ring *ring;
    pthread_t thread;
    void *scratch;
} worker;

struct pl_ring {
    pl_ring_options options;
    pl_source_layout layout;
    uint64_t slot_bytes;
    pthread_mutex_t lock;
    pthread_cond_t to_threads, to_consumer;
    uint32_t created, running, filling; /* threads: to be joined, that have begun and not ended, that fill */
    bool stop;
    pl_part part;
    uint64_t first_step, slots; /* of the stream */
    uint32_t micro_count;
    uint64_t handed, taken;
    pl_status status;   /* of the stream */
    uint64_t failed_at; /* with which slot it ended */
    pl_error error;
    worker *worker; /* [threads] */
    place *place;   /* [slots] */
    uint8_t *bytes; /* [slots][ports] */
};

/* ---- memory ---- */

static uint64_t head_bytes(const pl_ring_options *o)
{
    return pl_align_up(sizeof(pl_ring) + o->threads * sizeof(worker) + o->slots * sizeof(place), 64);
}

/* Every port begins a cache line. */
static int slot_bytes_of(const pl_source_layout *l, uint64_t *bytes)
{
    *bytes = 0;
    for (uint32_t k = 0; k < l->ports; k++) {
        if (pl_size_add(l->port[k].bytes, *bytes + 63, bytes)) return -1;
        *bytes = *bytes / 64 * 64;
    }
    return 0;
}

static pl_status measure(const pl_ring_options *o, pl_source_layout *l, uint64_t *slot, uint64_t *bytes, pl_error *err)
{
    uint64_t slots, scratch;
    if (o->slots == 0 || o->threads == 0 || o->micro_batch == 0)
        return pl_fail(err, PL_E_CONFIG, "a ring of %u slots of %u samples for %u threads is not possible", o->slots,
                       o->micro_batch, o->threads);
    PL_TRY(o->source->kind->describe(o->source, o->micro_batch, l, err));
    if (!slot_bytes_of(l, slot) && !pl_size_mul(*slot, o->slots, &slots) &&
        !pl_size_mul(pl_align_up(l->scratch_bytes, 64), o->threads, &scratch) && !pl_size_add(slots, scratch, &slots) &&
        !pl_size_add(slots, head_bytes(o), bytes))
        return PL_OK;
    return pl_fail(err, PL_E_CONFIG, "%u slots of %u samples are more than 2^64 bytes", o->slots, o->micro_batch);
}

pl_status pl_ring_bytes(const pl_ring_options *o, uint64_t *bytes, pl_error *err)
{
    pl_source_layout layout;
    uint64_t slot;
    return measure(o, &layout, &slot, bytes, err);
}

pl_status pl_ring_init(void *memory, const pl_ring_options *o, pl_ring **ring, pl_error *err)
{
    pl_source_layout layout;
    uint64_t slot = 0, bytes = 0;
    PL_TRY(measure(o, &layout, &slot, &bytes, err));
    assert((uintptr_t)memory % 64 == 0);
    memset(memory, 0, bytes); /* touches all of it */
    pl_ring *r = *ring = memory;
    r->options = *o;
    r->layout = layout;
    r->slot_bytes = slot;
    r->worker = (worker *)(r + 1);
    r->place = (place *)(r->worker + o->threads);
    uint8_t *at = (uint8_t *)memory + head_bytes(o);
    for (uint32_t i = 0; i < o->threads; i++, at += pl_align_up(layout.scratch_bytes, 64)) {
        r->worker[i] = (worker){.ring = r, .scratch = at};
        if (o->source->kind->prepare) o->source->kind->prepare(o->source, at);
    }
    r->bytes = at;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->to_threads, NULL);
    pthread_cond_init(&r->to_consumer, NULL);
    return PL_OK;
}

/* Of a slot all that follows from its number. */
static pl_slot slot_of(const pl_ring *r, uint64_t number)
{
    pl_slot s = {.ports = r->layout.ports,
                 .part = r->part,
                 .step = r->first_step + number / r->micro_count,
                 .micro = (uint32_t)(number % r->micro_count),
                 .micro_count = r->micro_count,
                 .rows = r->options.micro_batch};
    uint8_t *at = r->bytes + number % r->options.slots * r->slot_bytes;
    s.first_sample = s.step * r->options.source->batch + (uint64_t)s.micro * s.rows;
    for (uint32_t k = 0; k < s.ports; k++) {
        s.port[k] = r->layout.port[k];
        s.port[k].at = at;
        at += pl_align_up(s.port[k].bytes, 64);
    }
    return s;
}

/* ---- the threads ---- */

/* Has the lock. */
static bool work_waits(const pl_ring *r)
{
    return r->status == PL_OK && r->handed < r->slots && r->handed - r->taken < r->options.slots;
}

/* Has the lock: the slot is ready, or the stream ends with it, unless it has ended with an earlier one. */
static void publish(pl_ring *r, uint64_t number, uint64_t counted, pl_status status, const pl_error *error)
{
    place *p = &r->place[number % r->options.slots];
    if (status == PL_OK) {
        *p = (place){.counted = counted, .filled = true};
    } else if (r->status == PL_OK || number < r->failed_at) {
        r->status = status;
        r->failed_at = number;
        r->error = *error;
    }
    pthread_cond_signal(&r->to_consumer);
}

/* Has the lock: an error of the ring's own. */
static pl_status thread_ended(const pl_ring *r, pl_error *error)
{
    return pl_fail(error, PL_E_INTERNAL, "a thread that reads the %s has ended; start again",
                   r->options.source->kind->name);
}

typedef struct task {
    pl_ring *ring;
    uint64_t number;
} task;

/* Called by a thread that ends in a fill: its slot fails, and it is counted no more. */
static void give_up(void *argument)
{
    const task *t = argument;
    pl_error error = {0};
    pthread_mutex_lock(&t->ring->lock);
    t->ring->filling--;
    t->ring->running--;
    publish(t->ring, t->number, 0, thread_ended(t->ring, &error), &error);
    pthread_mutex_unlock(&t->ring->lock);
}

/* Without the lock. */
static pl_status fill(task t, void *scratch, pl_slot *slot, pl_error *error)
{
    const pl_source *source = t.ring->options.source;
    pl_status status;
    pthread_cleanup_push(give_up, &t);
    status = source->kind->fill(source, scratch, slot, error);
    pthread_cleanup_pop(0);
    return status;
}

/* Has the lock, lets it go while it fills. */
static void fill_one(pl_ring *r, void *scratch)
{
    pl_error error = {0};
    uint64_t number = r->handed++;
    pl_slot slot = slot_of(r, number);
    r->filling++;
    pthread_mutex_unlock(&r->lock);
    pl_status status = fill((task){r, number}, scratch, &slot, &error);
    pthread_mutex_lock(&r->lock);
    r->filling--;
    publish(r, number, slot.counted, status, &error);
}

/* Has the lock: one thread after the other is booked. */
static void begin_thread(pl_ring *r)
{
    pl_error error = {0};
    pl_status status = r->options.thread_begins ? r->options.thread_begins(r->options.context, &error) : PL_OK;
    if (status != PL_OK && r->status == PL_OK) r->status = status, r->error = error;
    r->running++;
    pthread_cond_signal(&r->to_consumer);
}

static void *run(void *argument)
{
    worker *w = argument;
    pl_ring *r = w->ring;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL); /* a wait would end with the lock */
    pthread_mutex_lock(&r->lock);
    begin_thread(r);
    while (!r->stop) {
        if (work_waits(r))
            fill_one(r, w->scratch);
        else
            pthread_cond_wait(&r->to_threads, &r->lock);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* ---- the consumer ---- */

static int create_thread(pl_ring *r, worker *w)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    int error = pthread_attr_init(&attributes);
    if (error) return error;
    error = pthread_attr_setstacksize(&attributes, r->options.stack_bytes);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (!error) error = pthread_create(&w->thread, &attributes, run, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return error;
}

pl_status pl_ring_start(pl_ring *r, pl_error *err)
{
    for (uint32_t i = 0; i < r->options.threads; i++, r->created++) {
        int error = create_thread(r, &r->worker[i]);
        if (error)
            return pl_fail(err, error == EINVAL ? PL_E_CONFIG : PL_E_NOMEM,
                           "the %s's thread with a stack of %" PRIu64 " bytes could not be created: %s",
                           r->options.source->kind->name, r->options.stack_bytes, strerror(error));
    }
    pthread_mutex_lock(&r->lock); /* what the C library does at a thread's beginning is done when this returns */
    while (r->running < r->created) pthread_cond_wait(&r->to_consumer, &r->lock);
    pl_status status = r->status;
    pthread_mutex_unlock(&r->lock);
    return status == PL_OK ? PL_OK : pl_fail(err, status, "%s", r->error.text);
}

void pl_ring_begin(pl_ring *r, pl_part part, uint64_t first_step, uint64_t end_step)
{
    const uint32_t batch = r->options.source->batch;
    pthread_mutex_lock(&r->lock);
    r->handed = r->slots; /* nothing more of the earlier stream */
    while (r->filling) pthread_cond_wait(&r->to_consumer, &r->lock);
    r->part = part;
    r->first_step = first_step;
    r->micro_count = (batch - 1) / r->options.micro_batch + 1;
    if (pl_size_mul(end_step > first_step ? end_step - first_step : 0, r->micro_count, &r->slots))
        r->slots = UINT64_MAX; /* nobody lives to see it */
    r->handed = r->taken = 0;
    r->failed_at = 0;
    r->status = r->running ? PL_OK : thread_ended(r, &r->error);
    for (uint32_t i = 0; i < r->options.slots; i++) r->place[i].filled = false;
    pthread_cond_broadcast(&r->to_threads);
    pthread_mutex_unlock(&r->lock);
}

/* Has the lock: nothing is to be waited for. */
static bool is_decided(const pl_ring *r)
{
    return r->taken == r->slots || r->place[r->taken % r->options.slots].filled ||
           (r->status != PL_OK && r->failed_at == r->taken);
}

pl_status pl_ring_next(pl_ring *r, pl_slot *slot, pl_error *err)
{
    pl_status status = PL_OK;
    pthread_mutex_lock(&r->lock);
    while (!is_decided(r)) pthread_cond_wait(&r->to_consumer, &r->lock);
    const place *p = &r->place[r->taken % r->options.slots];
    *slot = (pl_slot){0};
    if (r->taken == r->slots) {
        /* the end */
    } else if (p->filled) {
        *slot = slot_of(r, r->taken);
        slot->counted = p->counted;
    } else {
        status = pl_fail(err, r->status, "%s", r->error.text);
    }
    pthread_mutex_unlock(&r->lock);
    return status;
}

void pl_ring_release(pl_ring *r)
{
    pthread_mutex_lock(&r->lock);
    place *p = &r->place[r->taken % r->options.slots];
    assert(p->filled);
    p->filled = false;
    r->taken++;
    pthread_cond_signal(&r->to_threads);
    pthread_mutex_unlock(&r->lock);
}

void pl_ring_deinit(pl_ring *r)
{
    if (!r) return;
    pthread_mutex_lock(&r->lock);
    r->stop = true;
    pthread_cond_broadcast(&r->to_threads);
    pthread_mutex_unlock(&r->lock);
    for (uint32_t i = 0; i < r->created; i++) pthread_join(r->worker[i].thread, NULL);
    r->created = 0;
    pthread_cond_destroy(&r->to_threads);
    pthread_cond_destroy(&r->to_consumer);
    pthread_mutex_destroy(&r->lock);
}
