#include "base/isa.h"

#include "base/machine_file.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

static const char *const names[PL_ISA_COUNT] = {"ref", "baseline", "avx2", "avx512", "avx512_bf16", "amx"};

const char *pl_isa_name(pl_isa isa) { return names[isa]; }

int pl_isa_parse(const char *text, pl_isa *isa)
{
    for (int i = 0; i < PL_ISA_COUNT; i++)
        if (strcmp(text, names[i]) == 0) return *isa = (pl_isa)i, 0;
    return -1;
}

#if defined(__x86_64__)
enum { CPUID_AMX_BF16 = 1 << 22, CPUID_AMX_TILE = 1 << 24 }; /* of edx, leaf 7 */

/* The tiles' 8 KiB are no part of what the system saves of a thread until the process asks for it (Linux 5.16), once:
 * its threads and children have it, too. */
static bool ask_for_tiles(void)
{
    enum { REQUEST = 0x1023, TILE_DATA = 18 }; /* ARCH_REQ_XCOMP_PERM; Linux, Documentation/arch/x86/xstate.rst */
    unsigned a, b, c, d;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d & CPUID_AMX_BF16) || !(d & CPUID_AMX_TILE)) return false;
    return syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
}

/* What `ask` says, asked once: a virtual machine takes microseconds for each cpuid. */
static bool known(atomic_int *state, bool (*ask)(void))
{
    enum { UNKNOWN, NO, YES };
    int answer = atomic_load_explicit(state, memory_order_relaxed);
    if (answer == UNKNOWN) {
        answer = ask() ? YES : NO;
        atomic_store_explicit(state, answer, memory_order_relaxed);
    }
    return answer == YES;
}

static bool has_tiles(void)
{
    static atomic_int state;
    return known(&state, ask_for_tiles);
}
#endif

static bool is_described;
static pl_isa described_best, described_fastest;
static int described_extras;

void pl_isa_describe(pl_isa best, pl_isa fastest, int extras)
{
    is_described = true;
    described_best = best, described_fastest = fastest, described_extras = extras;
}

pl_isa pl_isa_of_machine(void)
{
    if (is_described) return described_best;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma"))
        return !__builtin_cpu_supports("avx512bf16") ? PL_ISA_AVX512 : has_tiles() ? PL_ISA_AMX : PL_ISA_AVX512_BF16;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return PL_ISA_AVX2;
#endif
    return PL_ISA_BASELINE;
}

#if defined(__x86_64__)
static bool ask_for_tiles_of_integers(void)
{
    enum { CPUID_AMX_INT8 = 1 << 25 }; /* of edx, leaf 7 */
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & CPUID_AMX_INT8);
}

static bool has_tiles_of_integers(void)
{
    static atomic_int state;
    return known(&state, ask_for_tiles_of_integers);
}

static bool ask_for_avx_vnni(void)
{
    enum { CPUID_AVX_VNNI = 1 << 4 }; /* of eax, leaf 7.1; not every compiler's __builtin_cpu_supports knows it */
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & CPUID_AVX_VNNI);
}

static bool has_avx_vnni(void)
{
    static atomic_int state;
    return known(&state, ask_for_avx_vnni);
}
#endif

int pl_isa_extras(pl_isa isa)
{
    int extras = 0;
    if (is_described) return isa == described_fastest ? described_extras : 0;
#if defined(__x86_64__)
    const pl_isa best = pl_isa_of_machine(), used = isa < best ? isa : best;
    if (used == PL_ISA_AVX2 && has_avx_vnni()) extras |= PL_ISA_VNNI;
    if (used >= PL_ISA_AVX512 && __builtin_cpu_supports("avx512vnni")) extras |= PL_ISA_VNNI;
    if (used >= PL_ISA_AVX512 && __builtin_cpu_supports("avx512vpopcntdq")) extras |= PL_ISA_VPOPCNTDQ;
    if (used == PL_ISA_AMX && extras & PL_ISA_VNNI && has_tiles_of_integers()) extras |= PL_ISA_AMX_INT8;
#else
    (void)isa;
#endif
    return extras;
}

#if defined(__x86_64__)
static bool is_intel(void)
{
    unsigned most, b, c, d;
    return __get_cpuid(0, &most, &b, &c, &d) && b == signature_INTEL_ebx && d == signature_INTEL_edx &&
           c == signature_INTEL_ecx;
}
#endif

/* Intel's processors execute VDPBF16PS at a quarter of the rate of f32 multiply-adds: with two products a lane that is
 * about half of f32's rate, of which widened operands reach 0.8 and more (bench_gemm --narrow, Emerald Rapids). The
 * vendor decides and no measurement, so that one machine always takes one level and makes the same bits. */
pl_isa pl_isa_fastest(void)
{
    const pl_isa best = pl_isa_of_machine();
    if (is_described) return described_fastest;
#if defined(__x86_64__)
    if (best == PL_ISA_AVX512_BF16 && is_intel()) return PL_ISA_AVX512;
#endif
    return best;
}
