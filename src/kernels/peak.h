/* Loops that do nothing but multiply and add on registers: what a processor can do at most. */
#ifndef PL_KERNELS_PEAK_H
#define PL_KERNELS_PEAK_H

#include <stdint.h>

typedef struct pl_peak_loop {
    void (*run)(int64_t rounds); /* NULL: there is no loop for these numbers at this level */
    int operations;              /* of a round, two for each multiply-add */
} pl_peak_loop;

#define PL_PEAK_LOOP(name, bytes, step)                                                                                \
    typedef float name##_vector __attribute__((vector_size(bytes)));                                                   \
    __attribute__((noinline)) static void name(int64_t rounds)                                                         \
    {                                                                                                                  \
        name##_vector a[12], t = {0}, x = (name##_vector){0} + 0.999f, y = (name##_vector){0} + 1e-3f;                 \
        _Pragma("GCC unroll 12") for (int i = 0; i < 12; i++) a[i] = x;                                                \
        for (int64_t r = 0; r < rounds; r++) {                                                                         \
            step(0) step(1) step(2) step(3) step(4) step(5) step(6) step(7) step(8) step(9) step(10) step(11)          \
        }                                                                                                              \
        _Pragma("GCC unroll 12") for (int i = 0; i < 12; i++) __asm__ volatile("" : : PL_PEAK_REGISTER(a[i]));         \
        (void)y, (void)t;                                                                                              \
    }

#if defined(__x86_64__)
#define PL_PEAK_REGISTER "x"
/* A product and a sum: what the levels below avx2 have. */
#define PL_PEAK_SEPARATE(i) __asm__ volatile("mulps %1, %0\n\taddps %2, %0" : "+x"(a[i]) : "x"(x), "x"(y));
#else
#define PL_PEAK_REGISTER "w"
#define PL_PEAK_SEPARATE(i)                                                                                            \
    a[i] = a[i] * x + y;                                                                                               \
    __asm__ volatile("" : "+w"(a[i]));
#endif

#endif
