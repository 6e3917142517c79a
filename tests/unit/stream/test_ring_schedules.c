/* All interleavings of small rings. The ring's own code runs here on coroutines; pthread's calls are replaced by ones
 * that ask an explorer what happens next: who gets the lock, whom a signal wakes, who wakes for no reason, which fill
 * fails or ends its thread, when the consumer leaves the stream. It goes through all answers depth-first, each time
 * from the beginning, until every state has been seen and every step out of it taken.
 *
 * Why that is all of them: what threads share they touch with the lock (a change made without it is found), so what
 * one does from taking the lock to letting it go is one step; the order of these steps, of the two halves of a fill,
 * and of two looks at a slot that the consumer holds makes all the difference there is. A state is kept whole (struct
 * key), not as a hash: the ring, its slots' bytes, and where everybody stands, a thread's local variables being given
 * by its place in the code and its slot's number. Threads but for their order are alike until they are joined. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <cmocka.h>

#include "stream/source.h"
#include "support/program.h"

/* ---- pthread's calls, as the explorer has them ---- */

static void sim_lock(int line);
static void sim_unlock(void);
static void sim_wait(const void *condition, int line);
static void sim_signal(const void *condition);
static void sim_broadcast(const void *condition);
static int sim_create(pthread_t *, void *(*function)(void *), void *argument);
static void sim_join(pthread_t, int line);
static void sim_cleanup(void (*)(void *), void *argument);

#define pthread_mutex_init(m, a)           ((void)(m))
#define pthread_mutex_destroy(m)           ((void)(m))
#define pthread_mutex_lock(m)              ((void)(m), sim_lock(__LINE__))
#define pthread_mutex_unlock(m)            ((void)(m), sim_unlock())
#define pthread_cond_init(c, a)            ((void)(c))
#define pthread_cond_destroy(c)            ((void)(c))
#define pthread_cond_wait(c, m)            ((void)(m), sim_wait(c, __LINE__))
#define pthread_cond_signal(c)             sim_signal(c)
#define pthread_cond_broadcast(c)          sim_broadcast(c)
#define pthread_attr_init(a)               ((void)(a), 0)
#define pthread_attr_setstacksize(a, n)    ((void)(a), (void)(n), 0)
#define pthread_attr_destroy(a)            ((void)(a))
#define pthread_sigmask(how, set, old)     ((void)(set), (void)(old))
#define pthread_setcancelstate(state, old) ((void)(state))
#define pthread_create(t, a, f, x)         ((void)(a), sim_create(t, f, x))
#define pthread_join(t, result)            sim_join(t, __LINE__)
#undef pthread_cleanup_push
#undef pthread_cleanup_pop
#define pthread_cleanup_push(f, x)   sim_cleanup(f, x)
#define pthread_cleanup_pop(execute) sim_cleanup(NULL, NULL)
/* The library's ring is in this program, too. */
#define pl_ring_bytes   sim_ring_bytes
#define pl_ring_init    sim_ring_init
#define pl_ring_start   sim_ring_start
#define pl_ring_begin   sim_ring_begin
#define pl_ring_next    sim_ring_next
#define pl_ring_release sim_ring_release
#define pl_ring_deinit  sim_ring_deinit

#include "stream/ring.c"

enum { THREADS = 3, SLOTS = 3, MICROS = 4, STREAMS = 3, ACTORS = THREADS + 1, STACK = 65536, TRAIL = 4096 };

/* What is broken on purpose, to see that the explorer finds it. */
typedef enum breakage {
    SOUND,
    BROADCAST_WAKES_ONE,
    SIGNAL_IS_LOST,
    WAIT_IN_TWO_STEPS,
    FILL_IN_NEXT_SLOT,
    FILL_TOO_LATE,
    END_UNNOTICED,
    BREAKAGES
} breakage;

typedef struct setup {
    uint32_t threads, slots, batch, steps, streams; /* a slot is one sample: batch · steps of them in a stream */
    uint32_t failures, ends;                        /* at most so many fills fail, end their thread */
    bool spurious;                                  /* waits may end for no reason, any number of times */
    uint32_t refused_thread, failing_thread;        /* cannot be created, cannot begin; 0: none */
    breakage broken;
} setup;

typedef enum stand { ABSENT, READY, WAITS, JOINS, ENDED } stand;
typedef enum outcome { NOT_FILLED, FILLED, FAILED, THREAD_ENDED } outcome;

typedef struct actor {
    ucontext_t context;
    stand stand;
    int line;       /* of ring.c, where it goes on; negative: outside of it */
    const void *on; /* the condition */
    unsigned target;
    uint32_t number, stream; /* of the slot that it fills, from 1; 0: none */
    void (*cleanup)(void *);
    void *cleanup_argument;
    void *(*function)(void *);
    void *argument;
} actor;

typedef struct key {
    uint8_t ring[32], bytes[SLOTS], owner[SLOTS], outcomes[STREAMS][MICROS], consumer[8];
    uint64_t thread[THREADS];
} key;

/* One run from the beginning. */
static struct {
    actor actor[ACTORS]; /* 0 is the consumer */
    unsigned me, holder; /* ACTORS: nobody */
    uint8_t shared[32];  /* the ring as it was when the lock was let go */
    uint8_t outcomes[STREAMS][MICROS];
    uint8_t owner[SLOTS]; /* 0: nobody, 1: a thread, 2: the consumer */
    uint32_t failed, ended, began, stream, at;
    uint8_t phase;
    bool begins, entered, idle; /* begin is called, has had the lock; no thread is left */
    const char *fault;
} sim;

/* The whole search. */
static struct {
    setup setup;
    struct {
        uint8_t choice, of;
    } trail[TRAIL];
    uint32_t length, position;
    key *seen; /* open addressing */
    bool *full;
    uint64_t room, states, runs;
} search;

static ucontext_t scheduler;
static _Alignas(64) uint8_t stacks[ACTORS][STACK], memory[4096];
static pl_ring *ring;

/* ---- choices ---- */

static void leave(void) { swapcontext(&sim.actor[sim.me].context, &scheduler); }

/* The run ends here. */
static void violated(const char *what)
{
    sim.fault = what;
    if (sim.me != ACTORS) leave();
}

static void demand(bool holds, const char *what)
{
    if (!holds) violated(what);
}

static uint32_t choose(uint32_t of)
{
    if (of < 2) return 0;
    if (search.position == search.length) {
        if (search.length == TRAIL) violated("a run without end");
        search.trail[search.length].choice = 0;
        search.trail[search.length++].of = (uint8_t)of;
    }
    if (search.trail[search.position].of != of) violated("a run that is repeated went another way");
    return search.trail[search.position++].choice;
}

/* The last choice that has another answer gets it. */
static bool backtrack(void)
{
    while (search.length && search.trail[search.length - 1].choice + 1 == search.trail[search.length - 1].of)
        search.length--;
    if (search.length) search.trail[search.length - 1].choice++;
    return search.length > 0;
}

/* Others may go on. */
static void pause_at(int line)
{
    sim.actor[sim.me].line = line;
    leave();
}

/* ---- the lock, the conditions, the threads ---- */

/* What the lock guards. The numbers are small. */
static void pack_ring(uint8_t out[32])
{
    const pl_ring *r = ring;
    const uint64_t field[] = {r->running,     r->filling, r->stop,  r->part,   r->first_step, r->slots,
                              r->micro_count, r->handed,  r->taken, r->status, r->failed_at};
    uint32_t n = 0;
    memset(out, 0, 32);
    for (; n < sizeof field / sizeof field[0]; n++) out[n] = (uint8_t)field[n];
    for (uint32_t i = 0; i < r->options.slots; i++) {
        out[n++] = r->place[i].filled;
        out[n++] = (uint8_t)r->place[i].counted;
    }
    out[n] = (uint8_t)r->error.text[0];
}

static void take_lock(void)
{
    uint8_t now[32];
    demand(sim.holder == ACTORS, "the lock is taken twice");
    sim.holder = sim.me;
    pack_ring(now);
    demand(memcmp(now, sim.shared, sizeof now) == 0, "the ring was changed without the lock");
}

static void let_go(void)
{
    demand(sim.holder == sim.me, "the lock is let go by one who has not got it");
    sim.holder = ACTORS;
    pack_ring(sim.shared);
}

static void sim_lock(int line)
{
    pause_at(line);
    sim.actor[sim.me].number = 0; /* what it filled becomes known */
    take_lock();
    if (sim.me == 0) sim.entered = sim.begins;
}

static void sim_unlock(void) { let_go(); }

static void sim_wait(const void *condition, int line)
{
    let_go();
    if (search.setup.broken == WAIT_IN_TWO_STEPS) pause_at(-line);
    sim.actor[sim.me].stand = WAITS;
    sim.actor[sim.me].on = condition;
    pause_at(line);
    take_lock();
}

static void wake(actor *a) { a->stand = READY, a->on = NULL; }

static void sim_signal(const void *condition)
{
    actor *waiting[ACTORS];
    uint32_t n = 0;
    demand(sim.holder == sim.me, "a signal without the lock");
    for (uint32_t i = 0; i < ACTORS; i++)
        if (sim.actor[i].stand == WAITS && sim.actor[i].on == condition) waiting[n++] = &sim.actor[i];
    if (n && search.setup.broken != SIGNAL_IS_LOST) wake(waiting[choose(n)]);
}

static void sim_broadcast(const void *condition)
{
    if (search.setup.broken == BROADCAST_WAKES_ONE) {
        sim_signal(condition);
        return;
    }
    for (uint32_t i = 0; i < ACTORS; i++)
        if (sim.actor[i].stand == WAITS && sim.actor[i].on == condition) wake(&sim.actor[i]);
}

static void sim_cleanup(void (*function)(void *), void *argument)
{
    sim.actor[sim.me].cleanup = function;
    sim.actor[sim.me].cleanup_argument = argument;
}

static void end_actor(void)
{
    demand(sim.holder != sim.me, "an end with the lock");
    sim.actor[sim.me].stand = ENDED;
    sim.actor[sim.me].number = 0;
    pause_at(0);
}

/* pthread_exit */
static void end_thread_in_fill(void)
{
    actor *a = &sim.actor[sim.me];
    if (a->cleanup && search.setup.broken != END_UNNOTICED) a->cleanup(a->cleanup_argument);
    end_actor();
}

static void actor_main(void)
{
    sim.actor[sim.me].function(sim.actor[sim.me].argument);
    end_actor();
}

static void make_actor(unsigned i, void *(*function)(void *), void *argument)
{
    actor *a = &sim.actor[i];
    getcontext(&a->context);
    a->context.uc_stack.ss_sp = stacks[i];
    a->context.uc_stack.ss_size = STACK;
    a->context.uc_link = NULL;
    a->function = function;
    a->argument = argument;
    a->stand = READY;
    makecontext(&a->context, actor_main, 0);
}

static int sim_create(pthread_t *thread, void *(*function)(void *), void *argument)
{
    unsigned i = 1;
    while (sim.actor[i].stand != ABSENT) i++;
    if (i == search.setup.refused_thread) return EAGAIN;
    *thread = i;
    make_actor(i, function, argument);
    return 0;
}

static void sim_join(pthread_t thread, int line)
{
    sim.actor[0].stand = JOINS;
    sim.actor[0].target = (unsigned)thread;
    pause_at(line);
    sim.actor[0].stand = READY;
}

/* ---- the source ---- */

static uint64_t value_of(uint32_t stream, uint64_t number) { return 1 + stream * MICROS + number; }

static pl_status describe(const pl_source *s, uint32_t micro_batch, pl_source_layout *l, pl_error *e)
{
    (void)s, (void)e;
    *l = (pl_source_layout){.port = {{"value", PL_DTYPE_I64, micro_batch * 8, 0, NULL}}, .ports = 1};
    return PL_OK;
}

static outcome draw_outcome(void)
{
    const bool may_fail = sim.failed < search.setup.failures, may_end = sim.ended < search.setup.ends;
    uint32_t choice = choose(1 + may_fail + may_end);
    outcome o = choice == 0 ? FILLED : choice == 1 && may_fail ? FAILED : THREAD_ENDED;
    sim.failed += o == FAILED;
    sim.ended += o == THREAD_ENDED;
    return o;
}

/* Stream s is one of steps 10 s …, of part s modulo 2. */
static void check_asked(const pl_slot *s, uint32_t stream, uint64_t number, uint32_t where)
{
    demand(sim.holder == ACTORS, "a fill with the lock");
    demand(stream == sim.stream || (sim.begins && !sim.entered && stream + 1 == sim.stream),
           "a fill of a stream that is over");
    demand(number < search.setup.batch * search.setup.steps, "a fill behind the end");
    demand(s->part == (pl_part)(stream % 2) && s->first_sample == s->step * search.setup.batch + s->micro,
           "a fill with wrong numbers");
    demand(sim.outcomes[stream][number] == NOT_FILLED, "a slot is filled twice");
    demand(sim.owner[where] == 0, "a fill of a slot that somebody has");
}

static pl_status fill_it(const pl_source *source, void *scratch, pl_slot *s, pl_error *e)
{
    (void)source, (void)scratch;
    actor *a = &sim.actor[sim.me];
    uint32_t stream = (uint32_t)s->step / 10, where = (uint32_t)(((uint8_t *)s->port[0].at - ring->bytes) / 64);
    uint64_t number = (s->step % 10) * search.setup.batch + s->micro, *at = s->port[0].at;
    check_asked(s, stream, number, where);
    outcome o = draw_outcome();
    sim.outcomes[stream][number] = (uint8_t)o;
    sim.owner[where] = 1;
    a->number = (uint32_t)number + 1, a->stream = stream;
    *at = 0xEE;
    if (search.setup.broken == FILL_IN_NEXT_SLOT)
        at = (uint64_t *)(ring->bytes + (where + 1) % ring->options.slots * 64);
    if (search.setup.broken != FILL_TOO_LATE) pause_at(-1);
    demand(sim.owner[where] == 1, "two have a slot");
    if (search.setup.broken != FILL_TOO_LATE) *at = value_of(stream, number);
    sim.owner[where] = 0;
    s->counted = number + 1;
    if (o == THREAD_ENDED) end_thread_in_fill();
    return o == FILLED ? PL_OK : pl_fail(e, PL_E_DATA, "%u", (unsigned)number);
}

static uint64_t count(const pl_source *s, pl_part part, uint64_t step) { return (void)s, (void)part, step; }

static const pl_source_kind kind = {.name = "toy", .describe = describe, .fill = fill_it, .count = count};
static pl_source source = {.kind = &kind};

static pl_status begin_or_fail(void *context, pl_error *e)
{
    (void)context;
    return ++sim.began == search.setup.failing_thread ? pl_fail(e, PL_E_NOMEM, "this one cannot begin") : PL_OK;
}

/* ---- the consumer ---- */

static bool threads_are_left(void)
{
    for (uint32_t i = 1; i <= search.setup.threads; i++)
        if (sim.actor[i].stand != ENDED) return true;
    return false;
}

static void check_bytes(const pl_slot *s)
{
    demand(*(uint64_t *)s->port[0].at == value_of(sim.stream, sim.at), "a slot has other bytes than its own");
}

static void check_slot(const pl_slot *s)
{
    demand(sim.at < search.setup.batch * search.setup.steps, "a slot behind the end");
    demand(sim.outcomes[sim.stream][sim.at] == FILLED, "a slot that was not filled");
    demand(s->part == (pl_part)(sim.stream % 2) && s->step == sim.stream * 10 + sim.at / search.setup.batch &&
               s->micro == sim.at % search.setup.batch && s->counted == sim.at + 1,
           "a slot out of its order");
    check_bytes(s);
}

static void check_failure(pl_status status, const pl_error *e)
{
    outcome o = sim.outcomes[sim.stream][sim.at];
    if (status == PL_E_DATA)
        demand(o == FAILED && e->text[0] == (char)('0' + sim.at), "a failure that is not this slot's");
    else
        demand(status == PL_E_INTERNAL && (o == THREAD_ENDED || (sim.at == 0 && sim.idle)), "a failure of no fill");
}

/* Looks twice at what it holds. May leave the stream with it. False: the stream is over. */
static bool take_one(void)
{
    pl_slot s;
    pl_error e;
    pl_status status = pl_ring_next(ring, &s, &e);
    if (status != PL_OK) {
        check_failure(status, &e);
        return false;
    }
    if (s.ports == 0) {
        demand(sim.at == search.setup.batch * search.setup.steps, "an end before the end");
        return false;
    }
    uint32_t where = sim.at % search.setup.slots;
    check_slot(&s);
    demand(sim.owner[where] == 0, "a slot that is being filled");
    sim.owner[where] = 2;
    sim.phase = 1;
    pause_at(-2);
    check_bytes(&s);
    sim.owner[where] = 0;
    if (choose(2)) return false;
    pl_ring_release(ring);
    sim.at++;
    return true;
}

static void go_through_stream(uint32_t stream)
{
    sim.stream = stream, sim.at = 0;
    sim.begins = true, sim.entered = sim.idle = false;
    pl_ring_begin(ring, stream % 2, stream * 10, stream * 10 + search.setup.steps);
    sim.begins = false, sim.idle = !threads_are_left();
    for (uint32_t i = 1; i <= search.setup.threads; i++)
        demand(!sim.actor[i].number || sim.actor[i].stream == stream, "a fill of the earlier stream goes on");
    do sim.phase = 0;
    while (choose(2) == 0 && take_one());
}

static void *consume(void *argument)
{
    pl_error e;
    pl_status status = pl_ring_start(ring, &e);
    bool must_fail = search.setup.refused_thread || search.setup.failing_thread;
    demand((status == PL_OK) == !must_fail, "start says something else");
    for (uint32_t i = 0; i < search.setup.streams && !must_fail; i++) go_through_stream(i);
    sim.phase = 2;
    pl_ring_deinit(ring);
    for (uint32_t i = 1; i < ACTORS; i++)
        demand(sim.actor[i].stand == ENDED || sim.actor[i].stand == ABSENT, "a thread outlives the ring");
    return argument;
}

/* ---- states ---- */

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Where one stands. */
static uint64_t pack_actor(const actor *a)
{
    uint64_t on = a->on == &ring->to_threads ? 1 : a->on == &ring->to_consumer ? 2 : 0;
    return (uint64_t)(a->line + 32768) << 32 | (uint64_t)a->stand << 24 | on << 16 | a->number << 8 | a->stream;
}

static void make_key(key *k)
{
    memset(k, 0, sizeof *k);
    pack_ring(k->ring);
    for (uint32_t i = 0; i < search.setup.slots; i++) k->bytes[i] = ring->bytes[i * 64];
    memcpy(k->owner, sim.owner, sizeof k->owner);
    memcpy(k->outcomes, sim.outcomes, sizeof k->outcomes);
    uint64_t consumer = pack_actor(&sim.actor[0]);
    memcpy(k->consumer, &consumer, 8);
    k->consumer[7] = (uint8_t)(sim.at | sim.phase << 3 | sim.stream << 5 | sim.begins << 7);
    k->consumer[6] = (uint8_t)(sim.actor[0].target | (sim.began & 3) << 4 | (uint32_t)sim.idle << 7);
    for (uint32_t i = 0; i < THREADS; i++) k->thread[i] = pack_actor(&sim.actor[i + 1]);
    if (sim.actor[0].stand != JOINS) qsort(k->thread, THREADS, sizeof k->thread[0], compare);
}

static uint64_t hash(const key *k)
{
    uint64_t h = 0, word;
    for (size_t i = 0; i < sizeof *k / 8; i++) {
        memcpy(&word, (const uint8_t *)k + i * 8, 8);
        h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 29;
    }
    return h;
}

static bool insert(const key *k);

static void grow(void)
{
    key *old = search.seen;
    bool *full = search.full;
    uint64_t room = search.room;
    search.room = room ? room * 4 : 4096;
    search.seen = malloc(search.room * sizeof(key));
    search.full = calloc(search.room, 1);
    assert_true(search.seen && search.full);
    search.states = 0;
    for (uint64_t i = 0; i < room; i++)
        if (full[i]) insert(&old[i]);
    free(old), free(full);
}

static bool insert(const key *k)
{
    if (search.states * 2 >= search.room) grow();
    uint64_t i = hash(k) & (search.room - 1);
    for (; search.full[i]; i = (i + 1) & (search.room - 1))
        if (memcmp(&search.seen[i], k, sizeof *k) == 0) return false;
    search.seen[i] = *k, search.full[i] = true;
    search.states++;
    return true;
}

/* ---- the search ---- */

static bool can_go_on(const actor *a)
{
    return a->stand == READY || (a->stand == JOINS && sim.actor[a->target].stand == ENDED);
}

/* A thread waits, none is about to look, and there is work: the ring would fill with fewer threads than it has. */
static bool one_sleeps_over_work(void)
{
    uint32_t waiting = 0, looking = 0;
    for (uint32_t i = 1; i < ACTORS; i++) {
        waiting += sim.actor[i].stand == WAITS;
        looking += sim.actor[i].stand == READY && !sim.actor[i].number;
    }
    return waiting && !looking && work_waits(ring);
}

/* One step of one actor. False: nothing is left to be seen of this run. */
static bool step(void)
{
    unsigned who[ACTORS];
    uint32_t n = 0;
    key k;
    if (sim.actor[0].stand == ENDED) return false;
    make_key(&k);
    if (search.position == search.length && !insert(&k)) return false;
    for (unsigned i = 0; i < ACTORS; i++)
        if (can_go_on(&sim.actor[i])) who[n++] = i;
    if (n == 0) violated("nobody can go on");
    if (one_sleeps_over_work()) violated("a thread sleeps while there is work");
    for (unsigned i = 0; i < ACTORS && search.setup.spurious; i++)
        if (sim.actor[i].stand == WAITS) who[n++] = i;
    if (sim.fault) return false;
    sim.me = who[choose(n)];
    if (sim.actor[sim.me].stand == WAITS) wake(&sim.actor[sim.me]);
    swapcontext(&scheduler, &sim.actor[sim.me].context);
    sim.me = ACTORS;
    return !sim.fault;
}

static void run_once(void)
{
    pl_error e;
    pl_ring_options o = {.source = &source, .micro_batch = 1, .stack_bytes = STACK, .thread_begins = begin_or_fail};
    o.slots = search.setup.slots, o.threads = search.setup.threads;
    memset(&sim, 0, sizeof sim);
    sim.me = sim.holder = ACTORS;
    source.batch = search.setup.batch;
    assert_int_equal(pl_ring_init(memory, &o, &ring, &e), PL_OK);
    pack_ring(sim.shared);
    make_actor(0, consume, NULL);
    search.position = 0;
    while (step()) {
    }
    search.runs++;
}

/* What goes wrong, or NULL. */
static const char *explore(setup s)
{
    memset(&search, 0, sizeof search);
    search.setup = s;
    grow();
    do run_once();
    while (!sim.fault && backtrack());
    free(search.seen), free(search.full);
    printf("%u threads, %u slots, %u of %u micro-batches, %u failures, %u ends%s: %" PRIu64 " states, %" PRIu64
           " runs%s%s\n",
           s.threads, s.slots, s.streams, s.batch * s.steps, s.failures, s.ends, s.spurious ? ", spurious" : "",
           search.states, search.runs, sim.fault ? ": " : "", sim.fault ? sim.fault : "");
    return sim.fault;
}

static void expect_sound(setup s)
{
    if (explore(s)) fail_msg("%s", sim.fault);
}

static bool soak;

/* ---- the tests ---- */

/* One stream, and the consumer leaves the ring at any moment. */
static void test_every_schedule(void **state)
{
    (void)state;
    for (uint32_t threads = 1; threads <= 3; threads++)
        for (uint32_t slots = 1; slots <= 3; slots++)
            for (uint32_t micros = 2; micros <= (soak ? 4 : 3); micros++)
                for (int spurious = soak ? 0 : 1; spurious < 2; spurious++) {
                    setup s = {.threads = threads, .slots = slots, .streams = 1, .spurious = spurious};
                    s.steps = micros == 4 ? 2 : 1, s.batch = micros / s.steps;
                    s.failures = soak ? 2 : 1, s.ends = soak;
                    expect_sound(s);
                }
    expect_sound((setup){.threads = 2, .slots = 3, .batch = 2, .steps = 2, .streams = 1, .failures = 2});
}

/* And from a stream to the next at any moment. */
static void test_streams_follow_one_another(void **state)
{
    (void)state;
    for (uint32_t threads = 1; threads <= (soak ? 3 : 2); threads++)
        for (uint32_t slots = 1; slots <= (soak ? 3 : 2); slots++) {
            setup s = {.threads = threads, .slots = slots, .steps = 1, .streams = 2, .failures = 1, .spurious = true};
            s.batch = soak ? 3 : 2;
            expect_sound(s);
        }
    if (soak) expect_sound((setup){.threads = 2, .slots = 2, .batch = 2, .steps = 1, .streams = 3, .failures = 1});
}

/* All of them may end: the next stream then begins with that. */
static void test_threads_that_end(void **state)
{
    (void)state;
    expect_sound((setup){.threads = 1, .slots = 2, .batch = 2, .steps = 1, .streams = 2, .ends = 1, .spurious = true});
    expect_sound((setup){.threads = 2, .slots = 2, .batch = 2, .steps = 1, .streams = 2, .ends = 2});
}

static void test_start_that_fails(void **state)
{
    (void)state;
    for (uint32_t i = 1; i <= 3; i++) {
        setup s = {.threads = 3, .slots = 2, .batch = 2, .steps = 1, .streams = 1, .spurious = true};
        s.refused_thread = i;
        expect_sound(s);
        s.refused_thread = 0, s.failing_thread = i;
        expect_sound(s);
    }
}

/* The explorer finds what is wrong, whatever it is. */
static void test_what_is_broken_is_found(void **state)
{
    (void)state;
    for (breakage b = SOUND + 1; b < BREAKAGES; b++) {
        setup s = {.threads = 2, .slots = 2, .batch = 3, .steps = 1, .streams = 1, .ends = b == END_UNNOTICED};
        s.broken = b;
        if (!explore(s)) fail_msg("breakage %d is not found", b);
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_schedule),          cmocka_unit_test(test_streams_follow_one_another),
        cmocka_unit_test(test_threads_that_end),        cmocka_unit_test(test_start_that_fails),
        cmocka_unit_test(test_what_is_broken_is_found),
    };
    soak = argc > 1 && strcmp(argv[1], "all") == 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
