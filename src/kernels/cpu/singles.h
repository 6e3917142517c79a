/* Numbers of f32 as words: the `word` of gemm_tiles.h and attention_tile.h where there are no pairs.h. */
#ifndef PL_KERNELS_CPU_SINGLES_H
#define PL_KERNELS_CPU_SINGLES_H

#include "kernels/cpu/vec.h"

#define TILE_TARGET
typedef float word;
typedef pl_vf words;

PL_V_INLINE words load_words(const word *p) { return pl_v_load(p); }
PL_V_INLINE words set_word(word x) { return pl_v_set(x); }
PL_V_INLINE pl_vf multiply_add(words a, words b, pl_vf sums) { return pl_v_fma(a, b, sums); }

#endif
