#include "store/npy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *descr_of(pl_dtype dtype)
{
    switch (dtype) {
    case PL_DTYPE_F64:
        return "<f8";
    case PL_DTYPE_F32:
        return "<f4";
    case PL_DTYPE_F16:
        return "<f2";
    case PL_DTYPE_I64:
        return "<i8";
    case PL_DTYPE_I32:
        return "<i4";
    case PL_DTYPE_I16:
        return "<i2";
    case PL_DTYPE_BF16:
    case PL_DTYPE_U16:
        return "<u2";
    case PL_DTYPE_I8:
        return "|i1";
    default:
        return "|u1";
    }
}

size_t pl_npy_header(pl_dtype dtype, uint64_t text_bytes, uint32_t rank, const uint64_t *shape,
                     char header[PL_NPY_HEADER_MAX])
{
    enum { FIXED = 10 };
    static const char magic[8] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0};
    char descr[24];
    snprintf(descr, sizeof descr, "%s", descr_of(dtype));
    if (text_bytes) snprintf(descr, sizeof descr, "|S%" PRIu64, text_bytes);
    int used = FIXED + snprintf(header + FIXED, PL_NPY_HEADER_MAX - FIXED,
                                "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (uint32_t i = 0; i < rank; i++)
        used += snprintf(header + used, (size_t)(PL_NPY_HEADER_MAX - used), "%" PRIu64 ", ", shape[i]);
    used += snprintf(header + used, (size_t)(PL_NPY_HEADER_MAX - used), "), }");
    size_t all = ((size_t)used + 1 + 63) / 64 * 64;
    memset(header + used, ' ', all - (size_t)used);
    header[all - 1] = '\n';
    memcpy(header, magic, sizeof magic);
    header[8] = (char)((all - FIXED) & 255);
    header[9] = (char)((all - FIXED) >> 8);
    return all;
}
