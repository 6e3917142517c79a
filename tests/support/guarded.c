#include "support/guarded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/philox.h"

enum { GUARD_BYTES = 256, MAX_BLOCKS = 256, GUARD_PATTERN = 0xA5 };

static struct {
    unsigned char *block, *data;
    uint64_t bytes;
} blocks[MAX_BLOCKS];
static int block_count;

void *guarded_bytes(uint64_t bytes, uint64_t shift)
{
    assert_true(block_count < MAX_BLOCKS && shift < 64);
    unsigned char *block = malloc(bytes + 2 * GUARD_BYTES + 128);
    assert_non_null(block);
    unsigned char *data = (unsigned char *)(((uintptr_t)block + GUARD_BYTES + 63) & ~(uintptr_t)63) + shift;
    memset(data - GUARD_BYTES, GUARD_PATTERN, GUARD_BYTES);
    memset(data + bytes, GUARD_PATTERN, GUARD_BYTES);
    memset(data, 0xFF, bytes);
    blocks[block_count].block = block;
    blocks[block_count].data = data;
    blocks[block_count++].bytes = bytes;
    return data;
}

float *guarded_f32(int64_t count) { return guarded_bytes((uint64_t)count * sizeof(float), 0); }

/* Tests ask for the same numbers again and again: of the first streams those drawn before are kept. */
float *guarded_normal(int64_t count, uint64_t stream)
{
    enum { KEPT = 16 };
    static struct {
        float *x;
        int64_t count;
    } kept[KEPT];
    float *x = guarded_f32(count);
    if (stream < KEPT && kept[stream].x && count <= kept[stream].count)
        return memcpy(x, kept[stream].x, (size_t)count * sizeof(float));
    pl_philox rng = pl_philox_init(1, stream);
    pl_philox_normal_f32(&rng, 0, 0, 0, (uint64_t)count, x);
    if (stream >= KEPT) return x;
    free(kept[stream].x);
    kept[stream].x = malloc((size_t)count * sizeof(float) + 1);
    assert_non_null(kept[stream].x);
    kept[stream].count = count;
    memcpy(kept[stream].x, x, (size_t)count * sizeof(float));
    return x;
}

float *guarded_copy(const float *from, int64_t count)
{
    return memcpy(guarded_f32(count), from, (size_t)count * sizeof(float));
}

void guarded_check_all(void)
{
    for (int i = 0; i < block_count; i++)
        for (int j = 0; j < GUARD_BYTES; j++) {
            assert_int_equal(blocks[i].data[-1 - j], GUARD_PATTERN);
            assert_int_equal(blocks[i].data[blocks[i].bytes + (uint64_t)j], GUARD_PATTERN);
        }
}

void guarded_free_all(void)
{
    while (block_count > 0) free(blocks[--block_count].block);
}
