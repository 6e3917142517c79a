/* Which instruction sets this processor has and this run may use. Kernels are built once per level and chosen at run
 * time; PLIMSOLL_ISA=baseline|avx2|avx512|avx512_bf16|amx (or ref, the scalar reference) lowers the choice, never
 * raises it. avx512_bf16 is avx512 with an instruction that multiplies pairs of bf16; amx multiplies tiles of them
 * where a product has tiles, and widens them elsewhere. */
#ifndef PL_BASE_ISA_H
#define PL_BASE_ISA_H

typedef enum pl_isa {
    PL_ISA_REF,
    PL_ISA_BASELINE,
    PL_ISA_AVX2,
    PL_ISA_AVX512,
    PL_ISA_AVX512_BF16,
    PL_ISA_AMX,
    PL_ISA_COUNT
} pl_isa;

pl_isa pl_isa_of_machine(void);           /* the highest level the processor and the operating system support */
pl_isa pl_isa_fastest(void);              /* the one that run.isa: auto takes; at most that of the machine */
const char *pl_isa_name(pl_isa);          /* "ref", "baseline", "avx2", "avx512", "avx512_bf16", "amx" */
int pl_isa_parse(const char *, pl_isa *); /* 0 on success */

#endif
