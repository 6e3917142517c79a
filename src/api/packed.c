#include "api/packed.h"

#include <stdio.h>

#include "base/binary.h"
#include "base/quantize.h"
#include "rewrite/rewrite.h"
#include "store/weights.h"

static bool has(const void *file, const char *weight, const char *ending)
{
    char name[PL_ST_TEXT_MAX];
    const int bytes = snprintf(name, sizeof name, "%s%s", weight, ending);
    return bytes < (int)sizeof name && pl_safetensors_find(file, name);
}

static bool is_packed(const void *file, const char *weight) { return has(file, weight, PL_INT8_PACKED); }
static bool is_binary(const void *file, const char *weight) { return has(file, weight, PL_BINARY_PACKED); }

pl_status pl_graph_take_packed(pl_graph *g, pl_id program, const char *path, size_t *packed, pl_error *err)
{
    pl_safetensors *file;
    pl_status status = PL_OK;
    PL_TRY(pl_safetensors_open(path, &file, err));
    *packed = pl_weights_count_packed(file);
    if (*packed) status = pl_rewrite_unfold(g, program, err);
    if (*packed && status == PL_OK) status = pl_rewrite_int8(g, program, &(pl_int8_choice){is_packed, file}, err);
    if (status == PL_OK) status = pl_rewrite_binary(g, &(pl_packed_choice){is_binary, file}, err);
    pl_safetensors_destroy(file);
    return status;
}
