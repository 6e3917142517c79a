/* A stack that the kernel has joined with data. Neighbours of the same kind become one mapping, so the one that begins
 * with a thread's stack may go on with a block of malloc, or be an arena of which the stack is only the lowest part:
 *
 *       no access | readable, writable
 *         guard   |  stack  <sp>  |  somebody's data …       one mapping in smaps
 *                 |<--- usual --->|
 *
 * Where such a mapping is larger than the usual stack, it is read as two: below, the usual size, or as much above the
 * stack pointer; above, the rest, which is sorted as if it stood alone. Resident and swapped pages of the lower part
 * are counted in /proc/N/pagemap (bits 63 and 62; Documentation/admin-guide/mm/pagemap.rst); all other counts are
 * divided in proportion. The two parts add up to what smaps said. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "doctor/doctor.h"

enum { PATH_BYTES = 512, PAGE = 4096, CHUNK = 512 };

typedef struct pages {
    uint64_t present_bytes, swapped_bytes;
} pages;

static bool count_pages(int fd, uintptr_t begin, uintptr_t end, pages *p)
{
    uint64_t entry[CHUNK];
    *p = (pages){0};
    for (uintptr_t at = begin; at < end;) {
        size_t count = (end - at) / PAGE < CHUNK ? (end - at) / PAGE : CHUNK;
        ssize_t wanted = (ssize_t)(count * sizeof *entry);
        if (pread(fd, entry, (size_t)wanted, (off_t)(at / PAGE * sizeof *entry)) != wanted) return false;
        for (size_t i = 0; i < count; i++) {
            p->present_bytes += (entry[i] >> 63) * PAGE;
            p->swapped_bytes += (entry[i] >> 62 & 1) * PAGE;
        }
        at += count * PAGE;
    }
    return true;
}

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* whole × part / of, for part <= of */
static uint64_t share(uint64_t whole, uint64_t part, uint64_t of)
{
    return of ? (uint64_t)((double)whole * ((double)part / (double)of)) : 0;
}

static void divide(pl_doctor_map *low, pl_doctor_map *high, uintptr_t at, const pages *counted)
{
    const uint64_t *whole = high->bytes;
    uint64_t resident = least(counted->present_bytes, whole[PL_SMAPS_RSS]);
    uint64_t swapped = least(counted->swapped_bytes, whole[PL_SMAPS_SWAP]);
    for (int k = 0; k < PL_SMAPS_FIELDS; k++) {
        bool swap = k == PL_SMAPS_SWAP || k == PL_SMAPS_SWAP_PSS;
        uint64_t part =
            swap ? share(whole[k], swapped, whole[PL_SMAPS_SWAP]) : share(whole[k], resident, whole[PL_SMAPS_RSS]);
        low->bytes[k] = least(part, whole[k]);
    }
    low->bytes[PL_SMAPS_RSS] = resident;
    low->bytes[PL_SMAPS_SWAP] = swapped;
    for (int k = 0; k < PL_SMAPS_FIELDS; k++) high->bytes[k] -= low->bytes[k];
    low->end = high->begin = at;
    low->joined = true;
}

static uintptr_t end_of_stack(const pl_doctor_process *p, const pl_doctor_map *m, uintptr_t pointer)
{
    uint64_t usual = pl_doctor_usual_stack_bytes(p);
    if (usual < PAGE || pl_doctor_has_usual_stack_size(p, m)) return m->end;
    uintptr_t from = pointer - m->begin < usual ? m->begin : (pointer | (PAGE - 1)) + 1;
    return m->end - from > usual ? from + (usual & ~(uint64_t)(PAGE - 1)) : m->end;
}

static bool is_alone(const pl_doctor_process *p, const pl_doctor_map *m, const pl_doctor_thread *own)
{
    for (size_t i = 0; i < p->thread_count; i++) {
        const pl_doctor_thread *t = &p->thread[i];
        if (t != own && t->stack_pointer >= m->begin && t->stack_pointer < m->end) return false;
    }
    return true;
}

static pl_status divide_map(pl_doctor_process *p, size_t i, uintptr_t at, const pages *counted, pl_error *err)
{
    size_t capacity = p->map_count;
    if (pl_grow(&p->map, &capacity, p->map_count, sizeof *p->map))
        return pl_fail(err, PL_E_NOMEM, "no memory to read the mappings of process %d", (int)p->id);
    memmove(&p->map[i + 1], &p->map[i], (p->map_count - i) * sizeof *p->map);
    p->map_count++;
    divide(&p->map[i], &p->map[i + 1], at, counted);
    return PL_OK;
}

pl_status pl_doctor_divide_joined(const char *root, pl_doctor_process *p, pl_error *err)
{
    char path[PATH_BYTES];
    pages counted;
    pl_status status = PL_OK;
    snprintf(path, sizeof path, "%s/proc/%d/pagemap", root, (int)p->id);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return PL_OK; /* then the whole counts as a stack */
    for (size_t k = 0; k < p->thread_count && status == PL_OK; k++) {
        const pl_doctor_thread *t = &p->thread[k];
        size_t i = t->stack_pointer ? pl_doctor_find_map(p, t->stack_pointer) : SIZE_MAX;
        if (i == SIZE_MAX || !pl_doctor_may_be_stack(p, i) || *p->map[i].name) continue;
        uintptr_t at = end_of_stack(p, &p->map[i], t->stack_pointer);
        if (at < p->map[i].end && is_alone(p, &p->map[i], t) && count_pages(fd, p->map[i].begin, at, &counted))
            status = divide_map(p, i, at, &counted, err);
    }
    close(fd);
    return status;
}
