/* The ceiling of this machine: multiply-adds on registers alone, all threads at once. */
#ifndef PL_BENCH_FMA_PEAK_H
#define PL_BENCH_FMA_PEAK_H

#include "kernels/team.h"

double bench_fma_peak(pl_team team); /* FLOP/s of the level's widest vectors; best of many short runs */
double bench_fma_rate(pl_team team); /* likewise just now: one run of a few milliseconds */
/* Likewise of products of pairs of bf16, 4 FLOP a lane; 0 where there is no such instruction. */
double bench_pairs_peak(pl_team team);
/* Likewise of products of int8 where there is VNNI, or tiles. */
double bench_vnni_peak(pl_team team);

#endif
