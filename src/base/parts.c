#include "base/parts.h"

#include <link.h>
#include <stdio.h>
#include <string.h>

#include "base/process.h"
#include "base/size.h"

/* Where the linker put them (cmake/parts.cmake); all NULL where it was not asked to, as in a program of tests: then
 * nothing is left out. */
#define BOUNDS(name, kind)                                                                                             \
    extern const char pl_part_##name##_##kind[] __attribute__((weak, visibility("hidden")));                           \
    extern const char pl_part_##name##_##kind##_end[] __attribute__((weak, visibility("hidden")));
#define PL_PART_ROW(name) BOUNDS(name, code) BOUNDS(name, constants) BOUNDS(name, zeros)
#include "base/parts.def"
#undef PL_PART_ROW
extern const char pl_unwind_end[] __attribute__((weak, visibility("hidden")));

typedef struct bounds {
    const char *begin, *end;
} bounds;

typedef struct part {
    const char *name;
    bounds of[3];
} part;

static const part parts[PL_PART_COUNT] = {
#define OF(name, kind)                                                                                                 \
    {                                                                                                                  \
        pl_part_##name##_##kind, pl_part_##name##_##kind##_end                                                         \
    }
#define PL_PART_ROW(name) [PL_PART_NUMBER_##name] = {#name, {OF(name, code), OF(name, constants), OF(name, zeros)}},
#include "base/parts.def"
#undef PL_PART_ROW
    [PL_PART_NUMBER_loading] = {"loading", {{NULL, NULL}}},
};

typedef struct list {
    pl_part_range *range;
    size_t count;
} list;

/* Whole pages of [begin, end): what shares a page with something else is held with it. */
static void add(list *to, uintptr_t begin, uintptr_t end, int zeros)
{
    begin = pl_align_up(begin, PL_PAGE_BYTES);
    end &= ~(uintptr_t)(PL_PAGE_BYTES - 1);
    if (begin >= end) return;
    size_t at = to->count++;
    for (; at > 0 && to->range[at - 1].begin > begin; at--) to->range[at] = to->range[at - 1];
    to->range[at] = (pl_part_range){begin, end, zeros};
}

/* Of the program, which is listed first. Its relocations are read before main() for the last time, for all symbols are
 * bound then (-z now); nothing here unwinds its stack. */
static int add_loading(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    const ElfW(Dyn) *dynamic = NULL;
    uintptr_t unwind = 0, rela = 0, rela_bytes = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const uintptr_t at = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC) dynamic = (const void *)at;
        if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME) unwind = at;
    }
    for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
        if (dynamic->d_tag == DT_RELA) rela = dynamic->d_un.d_ptr; /* the loader has made an address of it */
        if (dynamic->d_tag == DT_RELASZ) rela_bytes = dynamic->d_un.d_val;
    }
    if (rela < info->dlpi_addr) rela += info->dlpi_addr;
    add(context, rela, rela + rela_bytes, 0);
    if (unwind && unwind < (uintptr_t)pl_unwind_end) add(context, unwind, (uintptr_t)pl_unwind_end, 0);
    return 1;
}

size_t pl_parts_left_out(pl_parts held, pl_part_range range[PL_PART_RANGES_MAX])
{
    list found = {range, 0};
    if (!pl_unwind_end) return 0;
    for (int i = 0; i < PL_PART_COUNT; i++)
        for (int k = 0; k < 3 && !(held >> i & 1); k++)
            add(&found, (uintptr_t)parts[i].of[k].begin, (uintptr_t)parts[i].of[k].end, k == 2);
    if (!(held & PL_PART(loading))) (void)dl_iterate_phdr(add_loading, &found);
    return found.count;
}

pl_parts pl_parts_of_isa(pl_isa isa)
{
    switch (isa) {
    case PL_ISA_AMX:
        return PL_PART(amx) | PL_PART(avx512_bf16) | PL_PART(avx512);
    case PL_ISA_AVX512_BF16:
        return PL_PART(avx512_bf16) | PL_PART(avx512);
    case PL_ISA_AVX512:
        return PL_PART(avx512);
    case PL_ISA_AVX2:
        return PL_PART(avx2);
    case PL_ISA_REF:
        return PL_PART(ref);
    default:
        return PL_PART(baseline);
    }
}

void pl_parts_print(pl_parts held, char to[PL_PARTS_NAMES_BYTES])
{
    int n = 0;
    to[0] = 0;
    for (int i = 0; i < PL_PART_COUNT; i++)
        if (held >> i & 1)
            n += snprintf(to + n, (size_t)(PL_PARTS_NAMES_BYTES - n), "%s%s", n ? "," : "", parts[i].name);
}

int pl_parts_parse(const char *names, pl_parts *held)
{
    *held = 0;
    for (size_t bytes; *names; names += bytes + (names[bytes] == ',')) {
        int i = 0;
        bytes = strcspn(names, ",");
        while (i < PL_PART_COUNT && (strlen(parts[i].name) != bytes || strncmp(parts[i].name, names, bytes) != 0)) i++;
        if (i == PL_PART_COUNT) return -1;
        *held |= (pl_parts)1 << i;
    }
    return 0;
}
