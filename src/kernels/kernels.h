/* The table of kernels: one row of kernels.def gives a kernel its prototype at every level, its slot in pl_kernels and
 * its place in each level's table.
 *
 *   kernels/kernels.def     PL_ROW(void, add, (int64_t count, const float *a, const float *b, float *y))
 *   kernels/ref/….c         void PL_KERNEL(add)(…) { … }     scalar reference, always built:  pl_kernel_add_ref
 *   kernels/cpu/….c         void PL_KERNEL(add)(…) { … }     built once per level:            pl_kernel_add_avx2 …
 *   backend/….c             pl_kernels_get(team.isa)->add(…)
 *
 * A row without a definition at some level does not link, so no table has a hole. Kernels are serial and pure: they
 * see pointers, sizes and strides, never a graph, a lock or the heap. */
#ifndef PL_KERNELS_KERNELS_H
#define PL_KERNELS_KERNELS_H

#include <stdint.h>

#include "base/isa.h"
#include "base/activation.h"
#include "base/arithmetic.h"
#include "base/narrow.h"
#include "kernels/adamw.h"
#include "kernels/attention.h"
#include "kernels/channel_norm.h"
#include "kernels/dropout.h"
#include "kernels/pool.h"
#include "kernels/rollout.h"
#include "kernels/rope.h"
#include "kernels/spectrum.h"
#include "kernels/vecmath.h"
#include "kernels/words.h"

#ifndef PL_SUFFIX
#define PL_SUFFIX ref
#endif
#define PL_KERNEL_JOIN_AGAIN(name, suffix) pl_kernel_##name##_##suffix
#define PL_KERNEL_JOIN(name, suffix)       PL_KERNEL_JOIN_AGAIN(name, suffix)
#define PL_KERNEL(name)                    PL_KERNEL_JOIN(name, PL_SUFFIX)

typedef struct pl_kernels {
#define PL_ROW(type, name, arguments) type(*name) arguments;
#include "kernels/kernels.def"
#undef PL_ROW
} pl_kernels;

#define PL_ROW(type, name, arguments)                                                                                  \
    type pl_kernel_##name##_ref arguments;                                                                             \
    type pl_kernel_##name##_baseline arguments;                                                                        \
    type pl_kernel_##name##_avx2 arguments;                                                                            \
    type pl_kernel_##name##_avx512 arguments;
#include "kernels/kernels.def"
#undef PL_ROW

/* The tables themselves; a level that this architecture does not have is declared but not defined. */
extern const pl_kernels pl_kernel_table_ref, pl_kernel_table_baseline, pl_kernel_table_avx2, pl_kernel_table_avx512;

/* The level's table, or the best one below it that this processor can run. */
const pl_kernels *pl_kernels_get(pl_isa);

#endif
