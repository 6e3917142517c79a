/* What writing and reading share: the names and widths of the element types. */
#include "store/safetensors.h"

#include <inttypes.h>
#include <string.h>

#include "base/size.h"
#include "base/str.h"

static const struct {
    const char *name;
    uint32_t bytes;
} dtypes[PL_ST_DTYPE_COUNT] = {
    [PL_ST_BOOL] = {"BOOL", 1},       [PL_ST_U8] = {"U8", 1},           [PL_ST_I8] = {"I8", 1},
    [PL_ST_F8_E5M2] = {"F8_E5M2", 1}, [PL_ST_F8_E4M3] = {"F8_E4M3", 1}, [PL_ST_F8_E8M0] = {"F8_E8M0", 1},
    [PL_ST_I16] = {"I16", 2},         [PL_ST_U16] = {"U16", 2},         [PL_ST_F16] = {"F16", 2},
    [PL_ST_BF16] = {"BF16", 2},       [PL_ST_I32] = {"I32", 4},         [PL_ST_U32] = {"U32", 4},
    [PL_ST_F32] = {"F32", 4},         [PL_ST_F64] = {"F64", 8},         [PL_ST_I64] = {"I64", 8},
    [PL_ST_U64] = {"U64", 8},         [PL_ST_C64] = {"C64", 8},
};

const char *pl_st_dtype_name(pl_st_dtype dtype) { return dtypes[dtype].name; }
uint32_t pl_st_dtype_bytes(pl_st_dtype dtype) { return dtypes[dtype].bytes; }

int pl_st_dtype_parse(const char *text, pl_st_dtype *dtype)
{
    for (int i = 0; i < PL_ST_DTYPE_COUNT; i++) {
        if (strcmp(text, dtypes[i].name) != 0) continue;
        *dtype = (pl_st_dtype)i;
        return 0;
    }
    return -1;
}

int pl_st_dtype_real(pl_st_dtype dtype, pl_real *real)
{
    if (dtype != PL_ST_F32 && dtype != PL_ST_BF16 && dtype != PL_ST_F16) return -1;
    *real = dtype == PL_ST_F32 ? PL_REAL_F32 : dtype == PL_ST_BF16 ? PL_REAL_BF16 : PL_REAL_F16;
    return 0;
}

pl_encoding pl_st_dtype_encoding(pl_st_dtype dtype)
{
    switch (dtype) {
    case PL_ST_F32:
    case PL_ST_F64:
        return PL_ENCODING_F32;
    case PL_ST_F16:
        return PL_ENCODING_F16;
    case PL_ST_BF16:
        return PL_ENCODING_BF16;
    default:
        return PL_ENCODING_COUNT;
    }
}

/* A zero anywhere makes the tensor empty, whatever the other sizes multiply to. */
int pl_st_tensor_bytes(pl_st_dtype dtype, uint32_t rank, const uint64_t *shape, uint64_t *bytes)
{
    *bytes = 0;
    for (uint32_t i = 0; i < rank; i++)
        if (shape[i] == 0) return 0;
    *bytes = pl_st_dtype_bytes(dtype);
    for (uint32_t i = 0; i < rank; i++)
        if (pl_size_mul(*bytes, shape[i], bytes)) return -1;
    return *bytes > INT64_MAX ? -1 : 0;
}

const char *pl_st_shape_print(pl_st_dtype dtype, uint32_t rank, const uint64_t *shape, char *text, size_t room)
{
    pl_str s = pl_str_fixed(text, room);
    pl_str_printf(&s, "%s [", pl_st_dtype_name(dtype));
    for (uint32_t i = 0; i < rank; i++) pl_str_printf(&s, "%s%" PRIu64, i ? ", " : "", shape[i]);
    pl_str_append(&s, "]");
    return text;
}
