/* What figures are valid for: processor, instruction set, cores, and the kernels. The kernels are known by a hash of
 * the machine code of the executable (or library) they are in, as it lies in memory: position-independent code has no
 * relocations, so it is the same in every process, and any change of a kernel, compiler or option changes it. */
#include <link.h>
#include <string.h>

#include "base/machine.h"
#include "calibrate/table.h"

enum { CACHE_BYTES = 32 << 20 }; /* of the last level, where the machine does not tell */

typedef struct code {
    uintptr_t inside; /* an address of the code that is meant */
    uint64_t hash;
} code;

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static uint64_t hash_bytes(const unsigned char *at, size_t bytes)
{
    uint64_t hash = bytes, word;
    for (; bytes >= sizeof word; at += sizeof word, bytes -= sizeof word) {
        memcpy(&word, at, sizeof word);
        hash = mix(hash, word);
    }
    for (; bytes; at++, bytes--) hash = mix(hash, *at);
    return hash;
}

static int hash_module(struct dl_phdr_info *module, size_t size, void *context)
{
    (void)size;
    code *c = context;
    for (int i = 0; i < module->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &module->dlpi_phdr[i];
        uintptr_t begin = module->dlpi_addr + h->p_vaddr;
        if (h->p_type != PT_LOAD || !(h->p_flags & PF_X) || c->inside < begin || c->inside >= begin + h->p_filesz)
            continue;
        c->hash = hash_bytes((const unsigned char *)begin, h->p_filesz);
        return 1;
    }
    return 0;
}

pl_status pl_calibration_machine_read(pl_calibration_machine *m, pl_error *err)
{
    pl_machine machine;
    PL_TRY(pl_machine_read("", &machine, err));
    code c = {.inside = (uintptr_t)&pl_backend_exec};
    dl_iterate_phdr(hash_module, &c);
    *m = (pl_calibration_machine){.cores = machine.cores,
                                  .kernels = c.hash,
                                  .cache_bytes = machine.cache_bytes,
                                  .is_virtual = machine.is_virtual};
    if (m->cache_bytes == 0) m->cache_bytes = CACHE_BYTES;
    memcpy(m->cpu, machine.cpu_name, sizeof m->cpu);
    strncpy(m->isa, pl_isa_name(machine.isa), sizeof m->isa - 1);
    return PL_OK;
}
