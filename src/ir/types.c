#include "ir/types.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NAME_DTYPE(c, name, bytes)  name,
#define BYTES_DTYPE(c, name, bytes) bytes,
#define NAME_ROLE(c, name)          name,
static const char *const dtype_names[] = {PL_DTYPES(NAME_DTYPE)};
static const unsigned char dtype_bytes[] = {PL_DTYPES(BYTES_DTYPE)};
static const char *const role_names[] = {PL_ROLES(NAME_ROLE)};

static int find(const char *text, const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(text, names[i]) == 0) return i;
    return -1;
}

const char *pl_dtype_name(pl_dtype t) { return dtype_names[t]; }
uint64_t pl_dtype_bytes(pl_dtype t) { return dtype_bytes[t]; }
const char *pl_role_name(pl_role r) { return role_names[r]; }

int pl_dtype_parse(const char *text, pl_dtype *t)
{
    int i = find(text, dtype_names, PL_DTYPE_COUNT);
    if (i >= 0) *t = (pl_dtype)i;
    return i < 0 ? -1 : 0;
}

int pl_role_parse(const char *text, pl_role *r)
{
    int i = find(text, role_names, PL_ROLE_COUNT);
    if (i >= 0) *r = (pl_role)i;
    return i < 0 ? -1 : 0;
}

pl_shape pl_shape_of(uint32_t rank, ...)
{
    pl_shape s = {.rank = rank};
    va_list args;
    va_start(args, rank);
    for (uint32_t i = 0; i < rank; i++) {
        int64_t n = va_arg(args, int64_t);
        if (n < 0) s.symbolic |= 1u << i;
        s.dim[i] = n < 0 ? -n : n;
    }
    va_end(args);
    return s;
}

bool pl_shape_equal(const pl_shape *a, const pl_shape *b)
{
    if (a->rank != b->rank || a->symbolic != b->symbolic) return false;
    return memcmp(a->dim, b->dim, a->rank * sizeof *a->dim) == 0;
}

uint64_t pl_shape_elems(const pl_shape *s)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < s->rank; i++)
        if (__builtin_mul_overflow(n, (uint64_t)s->dim[i], &n)) return UINT64_MAX;
    return n;
}

int64_t pl_shape_rows(const pl_shape *s)
{
    int64_t n = 1;
    for (uint32_t i = 0; i + 1 < s->rank; i++) n *= s->dim[i];
    return n;
}

void pl_shape_print(const pl_shape *s, pl_str *out)
{
    for (uint32_t i = 0; i < s->rank; i++) {
        bool symbolic = s->symbolic >> i & 1;
        pl_str_append_bytes(out, i ? "," : "[", 1);
        if (!symbolic || s->dim[i] != 1) pl_str_int(out, s->dim[i]);
        if (symbolic) pl_str_append_bytes(out, "B", 1);
    }
    pl_str_append(out, s->rank ? "]" : "[]");
}

const char *pl_shape_text(const pl_shape *s, char *buf, unsigned room)
{
    pl_str text = pl_str_fixed(buf, room);
    pl_shape_print(s, &text);
    return buf;
}
