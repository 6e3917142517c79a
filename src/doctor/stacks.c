/* Which mappings are stacks of threads, and which are arenas of malloc.
 *
 * A stack is known when the stack pointer of exactly one thread lies in an anonymous mapping that looks like a stack:
 * it has a guard (no access) right below, or the size that RLIMIT_STACK gives, or glibc has named it. Without a stack
 * pointer both marks together make a guess.
 *
 *       no access | readable, writable         stacks grow down:
 *         guard   |            ...<touched>    touched down to the deepest call ever made; the rest costs nothing
 *
 * An arena of glibc's malloc (malloc/arena.c: HEAP_MAX_SIZE) is 64 MiB of addresses at a multiple of 64 MiB, its
 * beginning writable, its rest without access. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/doctor.h"

#define ARENA_BYTES           ((uintptr_t)64 << 20)
#define DEFAULT_STACK_BYTES   ((uint64_t)8 << 20)
#define UNLIMITED_STACK_BYTES ((uint64_t)2 << 20) /* glibc's ARCH_STACK_DEFAULT_SIZE, where RLIMIT_STACK is unlimited */
#define GUARD_BYTES_MAX       ((uintptr_t)1 << 20)
#define NONE                  SIZE_MAX

bool pl_doctor_is_anonymous(const pl_doctor_map *m)
{
    return m->inode == 0 && m->protection[3] == 'p' && (!*m->name || strncmp(m->name, "[anon:", 6) == 0);
}

static bool has_protection(const pl_doctor_map *m, const char *wanted)
{
    return strncmp(m->protection, wanted, strlen(wanted)) == 0;
}

size_t pl_doctor_find_map(const pl_doctor_process *p, uintptr_t address)
{
    size_t low = 0, high = p->map_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (p->map[middle].end > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low < p->map_count && p->map[low].begin <= address ? low : NONE;
}

/* ---- stacks ---- */

static bool has_guard(const pl_doctor_process *p, size_t i)
{
    if (i == 0) return false;
    const pl_doctor_map *guard = &p->map[i - 1];
    return guard->end == p->map[i].begin && has_protection(guard, "---") && pl_doctor_is_anonymous(guard) &&
           guard->end - guard->begin <= GUARD_BYTES_MAX;
}

uint64_t pl_doctor_usual_stack_bytes(const pl_doctor_process *p)
{
    uint64_t limit = p->limit[PL_DOCTOR_LIMIT_STACK];
    return limit == PL_MACHINE_UNLIMITED ? UNLIMITED_STACK_BYTES : limit;
}

bool pl_doctor_has_usual_stack_size(const pl_doctor_process *p, const pl_doctor_map *m)
{
    uint64_t usual = pl_doctor_usual_stack_bytes(p), bytes = m->end - m->begin;
    return bytes == usual || bytes == usual + 4096 || bytes == DEFAULT_STACK_BYTES;
}

static bool is_named_stack(const pl_doctor_map *m)
{
    return strstr(m->name, "pthread stack") || strncmp(m->name, "[anon:stack", 11) == 0;
}

bool pl_doctor_may_be_stack(const pl_doctor_process *p, size_t i)
{
    const pl_doctor_map *m = &p->map[i];
    if (!has_protection(m, "rw") || !pl_doctor_is_anonymous(m)) return false;
    return is_named_stack(m) || (!*m->name && (has_guard(p, i) || pl_doctor_has_usual_stack_size(p, m)));
}

static void set_stack(pl_doctor_view *v, size_t map, const pl_doctor_thread *thread, bool is_main)
{
    const pl_doctor_map *m = &v->process->map[map];
    v->kind[map] = is_main ? PL_DOCTOR_MAIN_STACK : PL_DOCTOR_THREAD_STACKS;
    v->stack[v->stack_count++] = (pl_doctor_stack){.thread = thread ? thread->id : 0,
                                                   .name = thread ? thread->name : "?",
                                                   .begin = m->begin,
                                                   .end = m->end,
                                                   .reserved_bytes = m->end - m->begin,
                                                   .touched_bytes = m->bytes[PL_SMAPS_RSS],
                                                   .swap_bytes = m->bytes[PL_SMAPS_SWAP],
                                                   .main = is_main};
    v->guessed += !thread && !is_main;
}

typedef struct seen {
    size_t map, thread;
} seen;

static int by_map(const void *a, const void *b)
{
    size_t x = ((const seen *)a)->map, y = ((const seen *)b)->map;
    return (x > y) - (x < y);
}

/* Stack pointers, sorted by the mapping that they lie in. */
static size_t list_seen(pl_doctor_view *v, seen *list)
{
    const pl_doctor_process *p = v->process;
    size_t count = 0;
    for (size_t i = 0; i < p->thread_count; i++) {
        uintptr_t pointer = p->thread[i].stack_pointer;
        if (pointer)
            list[count++] = (seen){pl_doctor_find_map(p, pointer), i};
        else
            v->threads_unknown++;
    }
    if (count) qsort(list, count, sizeof *list, by_map);
    return count;
}

static bool is_main_stack(const pl_doctor_map *m) { return strcmp(m->name, "[stack]") == 0; }

static void take_seen(pl_doctor_view *v, const seen *list, size_t count)
{
    const pl_doctor_process *p = v->process;
    for (size_t i = 0, next; i < count; i = next) {
        for (next = i + 1; next < count && list[next].map == list[i].map;) next++;
        size_t map = list[i].map;
        if (map != NONE && is_main_stack(&p->map[map])) continue;
        if (map != NONE && next == i + 1 && pl_doctor_may_be_stack(p, map))
            set_stack(v, map, &p->thread[list[i].thread], false);
        else
            v->threads_elsewhere += next - i;
    }
}

static void take_others(pl_doctor_view *v)
{
    const pl_doctor_process *p = v->process;
    const pl_doctor_thread *first = p->thread_count && p->thread[0].id == p->id ? &p->thread[0] : NULL;
    for (size_t i = 0; i < p->map_count; i++) {
        const pl_doctor_map *m = &p->map[i];
        if (v->kind[i] != PL_DOCTOR_KIND_COUNT) continue;
        if (is_main_stack(m))
            set_stack(v, i, first, true);
        else if (pl_doctor_may_be_stack(p, i) &&
                 (is_named_stack(m) || (has_guard(p, i) && pl_doctor_has_usual_stack_size(p, m))))
            set_stack(v, i, NULL, false);
    }
}

static int by_address(const void *a, const void *b)
{
    uintptr_t x = ((const pl_doctor_stack *)a)->begin, y = ((const pl_doctor_stack *)b)->begin;
    return (x > y) - (x < y);
}

pl_status pl_doctor_find_stacks(pl_doctor_view *v, pl_error *err)
{
    const pl_doctor_process *p = v->process;
    seen *list = pl_alloc(p->thread_count + 1, sizeof *list);
    v->stack = pl_alloc(p->map_count + 1, sizeof *v->stack);
    if (!list || !v->stack) {
        pl_free(list);
        return pl_fail(err, PL_E_NOMEM, "no memory to look for the stacks of %zu threads", p->thread_count);
    }
    take_seen(v, list, list_seen(v, list));
    take_others(v);
    if (v->stack_count) qsort(v->stack, v->stack_count, sizeof *v->stack, by_address);
    pl_free(list);
    return PL_OK;
}

/* ---- arenas ---- */

/* The mapping behind the arena that begins with mapping i, or i when none begins there. */
static size_t arena_end(const pl_doctor_view *v, size_t i)
{
    const pl_doctor_process *p = v->process;
    uintptr_t begin = p->map[i].begin, at = begin;
    if (begin % ARENA_BYTES != 0 || !has_protection(&p->map[i], "rw")) return i;
    for (size_t k = i; k < p->map_count; k++) {
        const pl_doctor_map *m = &p->map[k];
        if (m->begin != at || !pl_doctor_is_anonymous(m) || v->kind[k] != PL_DOCTOR_KIND_COUNT) return i;
        at = m->end;
        if (at == begin + ARENA_BYTES) return has_protection(m, "---") ? k + 1 : i;
        if (at > begin + ARENA_BYTES || has_protection(m, "---")) return i;
    }
    return i;
}

static void set_arena(pl_doctor_view *v, size_t first, size_t last)
{
    const pl_doctor_process *p = v->process;
    pl_doctor_arena *a = &v->arena[v->arena_count++];
    *a = (pl_doctor_arena){.begin = p->map[first].begin, .reserved_bytes = p->map[last - 1].end - p->map[first].begin};
    for (size_t i = first; i < last; i++) {
        v->kind[i] = PL_DOCTOR_ARENAS;
        a->resident_bytes += p->map[i].bytes[PL_SMAPS_RSS];
    }
}

pl_status pl_doctor_find_arenas(pl_doctor_view *v, pl_error *err)
{
    v->arena = pl_alloc(v->process->map_count + 1, sizeof *v->arena);
    if (!v->arena) return pl_fail(err, PL_E_NOMEM, "no memory to look for arenas of malloc");
    for (size_t i = 0; i < v->process->map_count;) {
        size_t end = arena_end(v, i);
        bool named = strcmp(v->process->map[i].name, "[anon: glibc: malloc arena]") == 0;
        if (end == i && named) end = i + 1;
        if (end > i) set_arena(v, i, end);
        i = end > i ? end : i + 1;
    }
    return PL_OK;
}
