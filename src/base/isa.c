#include "base/isa.h"

#include <string.h>

static const char *const names[PL_ISA_COUNT] = {"ref", "baseline", "avx2", "avx512", "avx512_bf16"};

const char *pl_isa_name(pl_isa isa) { return names[isa]; }

int pl_isa_parse(const char *text, pl_isa *isa)
{
    for (int i = 0; i < PL_ISA_COUNT; i++)
        if (strcmp(text, names[i]) == 0) return *isa = (pl_isa)i, 0;
    return -1;
}

pl_isa pl_isa_of_machine(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma"))
        return __builtin_cpu_supports("avx512bf16") ? PL_ISA_AVX512_BF16 : PL_ISA_AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return PL_ISA_AVX2;
#endif
    return PL_ISA_BASELINE;
}
