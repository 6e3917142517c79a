/* The ceiling of this machine: multiply-adds on registers alone, all threads at once. */
#ifndef PL_BENCH_FMA_PEAK_H
#define PL_BENCH_FMA_PEAK_H

#include "kernels/team.h"

double bench_fma_peak(pl_team team); /* FLOP/s of the level's widest vectors; best of many short runs */
double
bench_pairs_peak(pl_team team); /* likewise of products of bf16, 4 FLOP a lane; 0 where there is no instruction */

#endif
