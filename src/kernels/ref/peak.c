/* The ceiling of the reference: a compiler may make vectors of four numbers of it. */
#include "kernels/kernels.h"
#include "kernels/peak.h"

PL_PEAK_LOOP(separate, 16, PL_PEAK_SEPARATE)

double PL_KERNEL(peak)(pl_isa isa, pl_arithmetic what, int64_t rounds)
{
    (void)isa;
    if (what > PL_ARITHMETIC_BF16) return 0;
    separate(rounds);
    return (double)rounds * 12 * 2 * 4;
}

uint64_t PL_KERNEL(read_words)(int64_t count, const uint64_t *x)
{
    uint64_t sum = 0;
    for (int64_t i = 0; i < count; i++) sum += x[i];
    return sum;
}
