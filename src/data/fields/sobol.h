/* Sobol points: a sequence in [0, 1)^d of which every beginning fills the cube evenly, point n computed from n alone.
 *
 * The construction is Bratley and Fox's (1988) with Antonov and Saleev's Gray code and the direction numbers of Joe and
 * Kuo ("Constructing Sobol sequences with better two-dimensional projections", 2008; list new-joe-kuo-6), 32 bits deep:
 * x_{n+1} = x_n ^ v_c, c the lowest zero bit of n, from x_0 = 0; so x_n is the xor of the v_i over the bits of the Gray
 * code n ^ n >> 1. The first n points of a sequence are the first n of any longer one: to take the next power of two
 * and use n of them is the same as to take n.
 *
 * Scrambled: each dimension's digits go through a random lower triangular binary matrix with a unit diagonal, then get
 * a random digital shift (Matousek 1998). A beginning of 2^k points still has exactly one in each 2^k-th of each axis.
 * Both come from Philox by (seed, dimension): part of the data's identity, never of a hidden state. */
#ifndef PL_DATA_SOBOL_H
#define PL_DATA_SOBOL_H

#include <stdint.h>

#include "base/error.h"

enum { PL_SOBOL_DIMENSIONS = 64, PL_SOBOL_BITS = 32 };

typedef struct pl_sobol {
    uint32_t dimensions;
    uint32_t direction[PL_SOBOL_DIMENSIONS][PL_SOBOL_BITS];
    uint32_t shift[PL_SOBOL_DIMENSIONS];
} pl_sobol;

/* Not scrambled. PL_E_CONFIG for no dimension, or more than the table has. */
pl_status pl_sobol_init(pl_sobol *, uint32_t dimensions, pl_error *);
/* Once, behind init. */
void pl_sobol_scramble(pl_sobol *, uint64_t seed);
/* Point n, a number for each dimension: multiples of 2^-32 below 1. */
void pl_sobol_point(const pl_sobol *, uint32_t n, double *u);

#endif
