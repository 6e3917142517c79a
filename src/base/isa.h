/* Which instruction sets this processor has and this run may use. Kernels are built once per level and chosen at run
 * time; PLIMSOLL_ISA=baseline|avx2|avx512|avx512_bf16|amx (or ref, the scalar reference) lowers the choice, never
 * raises it. avx512_bf16 is avx512 with an instruction that multiplies pairs of bf16; amx multiplies tiles of them
 * where a product has tiles, and widens them elsewhere.
 *
 * Some processors of a level have instructions beside it that add integers, which are exact in any order: using them
 * changes no bit of any result, so they need no level of their own. avx2 may have VNNI (as AVX-VNNI), avx512 and what
 * is above may have VNNI and VPOPCNTDQ, amx may have tiles of integers, too. A lowered level still takes those of its
 * own, never those of a higher one. */
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

/* Flags. */
typedef enum pl_isa_extra {
    PL_ISA_VNNI = 1,      /* vpdpbusd: four products of u8 and s8 into each sum */
    PL_ISA_VPOPCNTDQ = 2, /* vpopcntd: bits counted in each word of a vector */
    PL_ISA_AMX_INT8 = 4,  /* tdpbusd: the same products by tiles */
} pl_isa_extra;

pl_isa pl_isa_of_machine(void);           /* the highest level the processor and the operating system support */
pl_isa pl_isa_fastest(void);              /* the one that run.isa: auto takes; at most that of the machine */
int pl_isa_extras(pl_isa);                /* of the level on this machine: pl_isa_extra, ORed */
const char *pl_isa_name(pl_isa);          /* "ref", "baseline", "avx2", "avx512", "avx512_bf16", "amx" */
int pl_isa_parse(const char *, pl_isa *); /* 0 on success */

#endif
