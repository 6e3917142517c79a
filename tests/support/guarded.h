/* Buffers of exact size between guard zones, for tests of kernels: what writes one byte too many is caught. Contents
 * start as not-a-number, so that what reads a byte nobody wrote is caught too. */
#ifndef PL_TESTS_GUARDED_H
#define PL_TESTS_GUARDED_H

#include <stdint.h>

/* `bytes` bytes, `shift` bytes behind an address aligned to 64. All live until guarded_free_all. */
void *guarded_bytes(uint64_t bytes, uint64_t shift);
float *guarded_f32(int64_t count);                     /* aligned to 64, all NaN */
float *guarded_normal(int64_t count, uint64_t stream); /* standard normal numbers of seed 1 */
float *guarded_copy(const float *from, int64_t count);
void guarded_check_all(void); /* fails the running test when a guard byte has changed */
void guarded_free_all(void);

#endif
