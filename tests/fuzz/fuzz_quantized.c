/* A file of weights in 8 bits, for a layer y[5] = x[7] Wᵀ + b that such a file may be of: as it is. What is taken is
 * multiplied with, and gives what its numbers, unpacked, give. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "base/quantize.h"
#include "fuzz/fuzz.h"
#include "store/weights.h"

enum { ROWS = 5, WIDTH = 7, PACKED_MAX = 4096 };

typedef struct layer {
    _Alignas(64) char packed[PACKED_MAX];
    float range[2], bias[ROWS];
} layer;

static pl_st_list list_of(layer *l, pl_st_entry entry[3])
{
    const uint64_t packed = pl_int8_packed_bytes(ROWS, WIDTH);
    FUZZ_CHECK(packed <= PACKED_MAX, "packed weights have %llu bytes", (unsigned long long)packed);
    entry[0] = (pl_st_entry){.name = "w" PL_INT8_PACKED,
                             .dtype = PL_ST_U8,
                             .rank = 1,
                             .shape = {packed},
                             .data = l->packed,
                             .bytes = packed};
    entry[1] = (pl_st_entry){
        .name = "w.input.0", .dtype = PL_ST_F32, .rank = 1, .shape = {2}, .data = l->range, .bytes = sizeof l->range};
    entry[2] = (pl_st_entry){
        .name = "b", .dtype = PL_ST_F32, .rank = 1, .shape = {ROWS}, .data = l->bias, .bytes = sizeof l->bias};
    return (pl_st_list){.entries = entry, .count = 3};
}

/* x is given as u8 of scale 1 and zero 3. */
static void check_product(const layer *l)
{
    static _Alignas(64) char workspace[1 << 16];
    int8_t w[ROWS * WIDTH];
    uint8_t x[8] = {0, 1, 2, 3, 100, 254, 255};
    float y[ROWS];
    const pl_team team = {.threads = 1, .isa = PL_ISA_BASELINE};
    const pl_int8_call call = {.m = 1,
                               .n = ROWS,
                               .k = WIDTH,
                               .x = x,
                               .ld_x = 8,
                               .x_scale = 1,
                               .x_zero = 3,
                               .packed = l->packed,
                               .c = y,
                               .ldc = ROWS};
    FUZZ_CHECK(pl_int8_workspace_bytes(&call, team) <= sizeof workspace, "the workspace is too small");
    pl_int8_exec(&call, workspace, team);
    pl_int8_unpack(ROWS, WIDTH, l->packed, w);
    for (int j = 0; j < ROWS; j++) {
        int32_t sum = 0;
        for (int p = 0; p < WIDTH; p++) sum += (x[p] - 3) * w[p * ROWS + j];
        const float wanted = (float)sum * ((const float *)(const void *)l->packed)[j];
        FUZZ_CHECK(y[j] == wanted || (isinf(y[j]) && isinf(wanted)), "row %d: %g, wanted %g", j, (double)y[j],
                   (double)wanted);
    }
}

static pl_status take(const pl_safetensors *s, layer *l, pl_error *err)
{
    pl_st_entry entry[3];
    const pl_st_list list = list_of(l, entry);
    uint64_t checksum;
    PL_TRY(pl_weights_match(s, NULL, &list, err));
    PL_TRY(pl_weights_check(s, NULL, PL_REAL_F32, &checksum, err));
    return pl_weights_load(s, NULL, &list, checksum, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static layer l;
    const uint64_t before = pl_alloc_live_blocks();
    pl_error err = {0};
    pl_safetensors *s = NULL;
    pl_status status = pl_safetensors_open(fuzz_file(0, data, size), &s, &err);
    if (status == PL_OK) status = take(s, &l, &err);
    if (status != PL_OK) fuzz_refused(status, &err, "", FUZZ_NAME);
    if (status == PL_OK && pl_int8_check(ROWS, WIDTH, l.packed) < 0) check_product(&l);
    pl_safetensors_destroy(s);
    FUZZ_CHECK(pl_alloc_live_blocks() == before, "blocks are held still");
    return 0;
}
