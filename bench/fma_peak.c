#include "fma_peak.h"

#include "backend/peak.h"
#include "bench.h"

/* About two milliseconds: on a machine that others use, too, some of the runs have all their threads' cores alone. */
static double rate_of(pl_team team, pl_arithmetic what)
{
    const double start = bench_seconds(), operations = pl_peak_exec(team, what, 1000000);
    return operations / (bench_seconds() - start);
}

static double best_of(pl_team team, pl_arithmetic what)
{
    double best = 0;
    for (int i = 0; i < (bench_is_brief() ? 5 : 100); i++) {
        const double rate = rate_of(team, what);
        if (rate > best) best = rate;
    }
    return best;
}

double bench_fma_rate(pl_team team) { return rate_of(team, PL_ARITHMETIC_F32); }
double bench_fma_peak(pl_team team) { return best_of(team, PL_ARITHMETIC_F32); }
double bench_pairs_peak(pl_team team) { return team.isa == PL_ISA_AVX512_BF16 ? best_of(team, PL_ARITHMETIC_BF16) : 0; }
double bench_vnni_peak(pl_team team)
{
    return pl_isa_extras(team.isa) & PL_ISA_VNNI ? best_of(team, PL_ARITHMETIC_INT8) : 0;
}
