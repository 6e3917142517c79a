/* Rates of a team where nothing was measured: what its instruction set can do in a cycle, at the clock that the system
 * names. Processors of one level differ by a factor of two (units for multiply-adds, clocks under load, channels to
 * memory), so estimates that rest on this say so. */
#include "calibrate/calibrate.h"

#define HERTZ           2.5e9 /* where the clock is not named */
#define THREAD_BYTES    1e10  /* a second: what one core of a server gets from memory; a laptop's gets more */
#define TEAM_BYTES_MOST 1e11
#define AMX_TIMES       8 /* f32's rate: two tiles of bf16 */

/* Two operations for each multiply-add of two units; without such an instruction, one product and one sum. */
static double operations_a_cycle(pl_isa isa)
{
    static const double operations[PL_ISA_COUNT] = {[PL_ISA_REF] = 2,     [PL_ISA_BASELINE] = 8,     [PL_ISA_AVX2] = 32,
                                                    [PL_ISA_AVX512] = 64, [PL_ISA_AVX512_BF16] = 64, [PL_ISA_AMX] = 64};
    return operations[isa];
}

pl_rates pl_rates_guess(pl_team team, double hertz)
{
    const double f32 = team.threads * operations_a_cycle(team.isa) * (hertz > 0 ? hertz : HERTZ);
    const double bytes = team.threads * THREAD_BYTES;
    pl_rates r = {.bytes = bytes < TEAM_BYTES_MOST ? bytes : TEAM_BYTES_MOST};
    for (int what = 0; what < PL_ARITHMETIC_COUNT; what++) r.operations[what] = f32;
    if (team.isa == PL_ISA_AMX) r.operations[PL_ARITHMETIC_BF16] = AMX_TIMES * f32;
    return r;
}
