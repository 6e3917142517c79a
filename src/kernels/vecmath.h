/* Functions that other kernels are built from, offered as a kernel of their own so that each level's accuracy can be
 * measured. */
#ifndef PL_KERNELS_VECMATH_H
#define PL_KERNELS_VECMATH_H

typedef enum pl_vecmath {
    PL_VECMATH_EXP,
    PL_VECMATH_EXP2, /* results below 2⁻¹²⁶ may be 0; arguments ≤ 127 */
    PL_VECMATH_LOG,  /* normal arguments > 0 */
    PL_VECMATH_ERF,
    PL_VECMATH_SIGMOID,
    PL_VECMATH_COUNT
} pl_vecmath;

#endif
