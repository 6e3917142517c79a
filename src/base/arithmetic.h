/* The numbers that a product multiplies: they decide its instructions, and so how fast it can be at most. */
#ifndef PL_BASE_ARITHMETIC_H
#define PL_BASE_ARITHMETIC_H

typedef enum pl_arithmetic {
    PL_ARITHMETIC_F32, /* f16, too: it is widened first */
    PL_ARITHMETIC_BF16,
    PL_ARITHMETIC_INT8,
    PL_ARITHMETIC_SIGNS,
    PL_ARITHMETIC_COUNT
} pl_arithmetic;

#endif
