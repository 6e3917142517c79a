/* The register of owned addresses: a sorted table, so that a mapping finds its owners by one binary search. */
#include "base/process.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"

/* One register per process, so one lock serves. Threads use it only while they start. */
static pthread_mutex_t owners_lock = PTHREAD_MUTEX_INITIALIZER;

const char *pl_memory_kind_name(pl_memory_kind kind)
{
    static const char *const names[PL_MEMORY_KIND_COUNT] = {
        [PL_MEMORY_ARENA] = "arena",           [PL_MEMORY_THREAD_STACK] = "thread stacks",
        [PL_MEMORY_MAIN_STACK] = "main stack", [PL_MEMORY_HEAP] = "heap",
        [PL_MEMORY_PROGRAM] = "program",       [PL_MEMORY_LIBRARY] = "library",
        [PL_MEMORY_LOADER] = "loader",         [PL_MEMORY_VDSO] = "vdso",
        [PL_MEMORY_OTHER] = "unexplained",     [PL_MEMORY_FILES] = "mapped files",
    };
    return (unsigned)kind < PL_MEMORY_KIND_COUNT ? names[kind] : "?";
}

size_t pl_memory_owners_room(size_t stacks)
{
    return stacks > PL_MEMORY_STACKS_OWN ? PL_MEMORY_RANGES_OWN - PL_MEMORY_STACKS_OWN + stacks : 0;
}

void pl_memory_owners_move(pl_memory_owners *owners, pl_memory_range *memory, size_t room)
{
    pthread_mutex_lock(&owners_lock);
    pl_memory_range *to = memory ? memory : owners->own;
    size_t count = 0;
    for (size_t i = 0; i < owners->count; i++)
        if (memory || owners->range[i].kind != PL_MEMORY_THREAD_STACK) to[count++] = owners->range[i];
    owners->range = to;
    owners->room = memory ? room : PL_MEMORY_RANGES_OWN;
    owners->count = count;
    pthread_mutex_unlock(&owners_lock);
}

static pl_status insert(pl_memory_owners *owners, const pl_memory_range *added, pl_error *err)
{
    size_t place = 0;
    if (!owners->range) owners->range = owners->own, owners->room = PL_MEMORY_RANGES_OWN;
    while (place < owners->count && owners->range[place].begin < added->begin) place++;
    const pl_memory_range *before = place ? &owners->range[place - 1] : NULL;
    const pl_memory_range *after = place < owners->count ? &owners->range[place] : NULL;
    const pl_memory_range *clash = before && before->end > added->begin ? before
                                   : after && after->begin < added->end ? after
                                                                        : NULL;
    if (clash) {
        return pl_fail(err, PL_E_INTERNAL, "the memory of %s '%s' at %#lx overlaps that of %s '%s' at %#lx",
                       pl_memory_kind_name(added->kind), added->name, (unsigned long)added->begin,
                       pl_memory_kind_name(clash->kind), clash->name, (unsigned long)clash->begin);
    }
    if (owners->count == owners->room) {
        return pl_fail(err, PL_E_INTERNAL, "no room to register the memory of %s '%s': the table holds %zu ranges",
                       pl_memory_kind_name(added->kind), added->name, owners->room);
    }
    memmove(&owners->range[place + 1], &owners->range[place], (owners->count - place) * sizeof owners->range[0]);
    owners->range[place] = *added;
    owners->count++;
    return PL_OK;
}

pl_status pl_memory_owners_add(pl_memory_owners *owners, pl_memory_kind kind, const char *name, const void *begin,
                               uint64_t bytes, pl_error *err)
{
    pl_memory_range added = {(uintptr_t)begin & ~(uintptr_t)(PL_PAGE_BYTES - 1), 0, kind, ""};
    snprintf(added.name, sizeof added.name, "%s", name);
    bool impossible = bytes == 0 || __builtin_add_overflow((uintptr_t)begin, bytes, &added.end);
    added.end = pl_align_up(added.end, PL_PAGE_BYTES);
    if (impossible || added.end <= added.begin) {
        return pl_fail(err, PL_E_INTERNAL, "the memory of %s '%s' has an impossible size", pl_memory_kind_name(kind),
                       name);
    }
    pthread_mutex_lock(&owners_lock);
    pl_status status = insert(owners, &added, err);
    pthread_mutex_unlock(&owners_lock);
    return status;
}

void pl_memory_owners_remove(pl_memory_owners *owners, const void *begin)
{
    pthread_mutex_lock(&owners_lock);
    for (size_t i = 0; i < owners->count; i++) {
        if (owners->range[i].begin != ((uintptr_t)begin & ~(uintptr_t)(PL_PAGE_BYTES - 1))) continue;
        memmove(&owners->range[i], &owners->range[i + 1], (owners->count - i - 1) * sizeof owners->range[0]);
        owners->count--;
        break;
    }
    pthread_mutex_unlock(&owners_lock);
}

const pl_memory_row *pl_memory_find_row(const pl_memory_row *rows, size_t count, pl_memory_kind kind, const char *name)
{
    bool any = !name || kind == PL_MEMORY_PROGRAM; /* there is one, whatever its file is called by now */
    for (size_t i = 0; i < count; i++) {
        if (rows[i].kind == kind && (any || strcmp(rows[i].name, name) == 0)) return &rows[i];
    }
    return NULL;
}
