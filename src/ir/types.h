/* What graphs are described in: ids, dtypes, roles, shapes. */
#ifndef PL_IR_TYPES_H
#define PL_IR_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

typedef uint32_t pl_id; /* index into one of the graph's arrays */
#define PL_NONE UINT32_MAX

/* Each list is written once and used by the enum, the printer and the parser. */
#define PL_DTYPES(X)                                                                                                   \
    X(F32, "f32", 4)                                                                                                   \
    X(BF16, "bf16", 2)                                                                                                 \
    X(F16, "f16", 2)                                                                                                   \
    X(F64, "f64", 8) X(I64, "i64", 8) X(I32, "i32", 4) X(I16, "i16", 2) X(U16, "u16", 2) X(U8, "u8", 1) X(I8, "i8", 1)

/* What a value is for. The order is the order of reports. */
#define PL_ROLES(X)                                                                                                    \
    X(WEIGHT, "weight")                                                                                                \
    X(GRADIENT, "gradient")                                                                                            \
    X(OPTIMIZER, "optimizer")                                                                                          \
    X(AVERAGE, "average")                                                                                              \
    X(STATE, "state")                                                                                                  \
    X(SAVED, "saved")                                                                                                  \
    X(TEMPORARY, "temporary")                                                                                          \
    X(WORKSPACE, "workspace") X(INPUT, "input") X(OUTPUT, "output") X(STAGING, "staging") X(IO, "io")

#define PL_ENUM_DTYPE(c, name, bytes) PL_DTYPE_##c,
typedef enum pl_dtype { PL_DTYPES(PL_ENUM_DTYPE) PL_DTYPE_COUNT } pl_dtype;
#define PL_ENUM_ROLE(c, name) PL_ROLE_##c,
typedef enum pl_role { PL_ROLES(PL_ENUM_ROLE) PL_ROLE_COUNT } pl_role;

const char *pl_dtype_name(pl_dtype);
uint64_t pl_dtype_bytes(pl_dtype);
static inline bool pl_dtype_is_real(pl_dtype d) { return d <= PL_DTYPE_F16; } /* f32, bf16, f16: what operators take */
int pl_dtype_parse(const char *, pl_dtype *);                                 /* 0 on success */
const char *pl_role_name(pl_role);
int pl_role_parse(const char *, pl_role *);

enum { PL_RANK_MAX = 6 };

/* Row-major. A dimension whose bit is set in `symbolic` stands for dim × B, where B is the batch of the program that
 * the value belongs to; a rewrite (rewrite/bind_batch.c) puts in its number. */
typedef struct pl_shape {
    uint32_t rank;
    uint32_t symbolic;
    int64_t dim[PL_RANK_MAX];
} pl_shape;

/* pl_shape_of(3, PL_B(1), 128, 256) is [B,128,256]. */
#define PL_B(n) (-(int64_t)(n))
pl_shape pl_shape_of(uint32_t rank, ...); /* rank dims of type int64_t; a negative one is symbolic */
bool pl_shape_equal(const pl_shape *, const pl_shape *);
/* Number of elements, B counted as 1; UINT64_MAX when it overflows. */
uint64_t pl_shape_elems(const pl_shape *);
/* Product of all but the last dimension, B counted as 1. */
int64_t pl_shape_rows(const pl_shape *);
static inline int64_t pl_shape_last(const pl_shape *s) { return s->rank ? s->dim[s->rank - 1] : 1; }
/* "[B,128,256]" into buf (160 bytes suffice); returns buf. */
void pl_shape_print(const pl_shape *, pl_str *);
const char *pl_shape_text(const pl_shape *, char *buf, unsigned room); /* as much as fits */

#endif
