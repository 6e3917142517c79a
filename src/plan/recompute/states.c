#include "states.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

typedef struct entry {
    double estimate;
    uint32_t ran_count, state;
} entry;

struct states {
    uint32_t words;
    size_t count, capacity, most;
    state_record *record;
    uint64_t *sets;  /* ran and held, one behind the other */
    uint32_t *table; /* open addressing; a power of two, at most half full */
    size_t table_size;
    entry *heap;
    size_t heap_count, heap_capacity;
};

enum { FIRST_STATES = 1024 };

static uint64_t *set_of(const states *s, size_t state) { return s->sets + state * 2 * s->words; }
const uint64_t *states_ran(const states *s, uint32_t state) { return set_of(s, state); }
const uint64_t *states_held(const states *s, uint32_t state) { return set_of(s, state) + s->words; }
const state_record *states_record(const states *s, uint32_t state) { return &s->record[state]; }

states *states_create(uint32_t words, size_t most)
{
    states *s = pl_alloc(1, sizeof *s);
    if (!s) return NULL;
    *s = (states){.words = words, .capacity = FIRST_STATES, .most = most < STATE_NONE ? most : STATE_NONE - 1};
    s->table_size = 2 * FIRST_STATES;
    s->record = pl_alloc(s->capacity, sizeof *s->record);
    s->sets = pl_alloc(s->capacity, 2 * words * sizeof *s->sets);
    s->table = pl_alloc(s->table_size, sizeof *s->table);
    if (s->record && s->sets && s->table) {
        memset(s->table, 0xff, s->table_size * sizeof *s->table);
        return s;
    }
    states_destroy(s);
    return NULL;
}

void states_destroy(states *s)
{
    if (!s) return;
    pl_free(s->record);
    pl_free(s->sets);
    pl_free(s->table);
    pl_free(s->heap);
    pl_free(s);
}

static uint64_t hash_of(const uint64_t *sets, uint32_t words)
{
    uint64_t h = 0;
    for (uint32_t w = 0; w < words; w++) {
        h = (h ^ sets[w]) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 29;
    }
    h *= UINT64_C(0xbf58476d1ce4e5b9);
    return h ^ h >> 32;
}

/* The slot that holds the state, or the empty one where it belongs. */
static size_t find_slot(const states *s, const uint64_t *sets)
{
    size_t mask = s->table_size - 1, slot = hash_of(sets, 2 * s->words) & mask;
    while (s->table[slot] != STATE_NONE && memcmp(set_of(s, s->table[slot]), sets, 2 * s->words * sizeof *sets) != 0)
        slot = (slot + 1) & mask;
    return slot;
}

static int grow(states *s)
{
    size_t capacity = 2 * s->capacity;
    state_record *record = pl_realloc(s->record, capacity, sizeof *record);
    if (record) s->record = record;
    uint64_t *sets = pl_realloc(s->sets, capacity, 2 * s->words * sizeof *sets);
    if (sets) s->sets = sets;
    uint32_t *table = pl_alloc(2 * capacity, sizeof *table);
    if (!record || !sets || !table) return pl_free(table), -1;
    pl_free(s->table);
    s->table = table;
    s->table_size = 2 * capacity;
    s->capacity = capacity;
    memset(table, 0xff, s->table_size * sizeof *table);
    for (uint32_t k = 0; k < s->count; k++) table[find_slot(s, set_of(s, k))] = k;
    return 0;
}

static bool before(entry a, entry b)
{
    if (a.estimate != b.estimate) return a.estimate < b.estimate;
    return a.ran_count != b.ran_count ? a.ran_count > b.ran_count : a.state < b.state;
}

static int push(states *s, entry e)
{
    if (pl_grow(&s->heap, &s->heap_capacity, s->heap_count, sizeof *s->heap)) return -1;
    size_t i = s->heap_count++;
    for (; i > 0 && before(e, s->heap[(i - 1) / 2]); i = (i - 1) / 2) s->heap[i] = s->heap[(i - 1) / 2];
    s->heap[i] = e;
    return 0;
}

static entry pop(states *s)
{
    entry top = s->heap[0], moved = s->heap[--s->heap_count];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < s->heap_count; i = child) {
        if (child + 1 < s->heap_count && before(s->heap[child + 1], s->heap[child])) child++;
        if (!before(s->heap[child], moved)) break;
        s->heap[i] = s->heap[child];
    }
    s->heap[i] = moved;
    return top;
}

static void join(const states *s, const uint64_t *ran, const uint64_t *held, uint64_t *sets)
{
    memcpy(sets, ran, s->words * sizeof *sets);
    memcpy(sets + s->words, held, s->words * sizeof *sets);
}

uint32_t states_find(const states *s, const uint64_t *ran, const uint64_t *held)
{
    uint64_t sets[2 * STATE_WORDS_MAX];
    join(s, ran, held, sets);
    return s->table[find_slot(s, sets)];
}

states_answer states_offer(states *s, const uint64_t *ran, const uint64_t *held, state_record record)
{
    uint64_t sets[2 * STATE_WORDS_MAX];
    entry e = {state_estimate(&record), 0, 0};
    join(s, ran, held, sets);
    size_t slot = find_slot(s, sets);
    e.state = s->table[slot];
    if (e.state != STATE_NONE && s->record[e.state].cost <= record.cost) return STATES_KNOWN;
    if (e.state == STATE_NONE) {
        if (s->count >= s->most) return STATES_FULL;
        if (s->count == s->capacity) {
            if (grow(s)) return STATES_NO_MEMORY;
            slot = find_slot(s, sets);
        }
        e.state = s->table[slot] = (uint32_t)s->count++;
        memcpy(set_of(s, e.state), sets, 2 * s->words * sizeof *sets);
    }
    s->record[e.state] = record;
    for (uint32_t w = 0; w < s->words; w++) e.ran_count += (uint32_t)__builtin_popcountll(ran[w]);
    return push(s, e) ? STATES_NO_MEMORY : STATES_KEPT;
}

uint32_t states_take(states *s)
{
    while (s->heap_count) {
        entry e = pop(s);
        if (e.estimate == state_estimate(&s->record[e.state]))
            return e.state; /* else a cheaper way was found meanwhile */
    }
    return STATE_NONE;
}

double states_least(const states *s) { return s->heap_count ? s->heap[0].estimate : INFINITY; }
