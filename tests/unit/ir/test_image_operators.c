/* Operators of images whose operands do not fit: each is refused with a sentence that names the operator and what is
 * wrong, since graphs are also read from files; and the same operands put right are taken, with the shapes that follow
 * from the definition. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ir/op.h"
#include "support/program.h"

/* The values there are, by one letter. */
static const struct {
    char letter;
    pl_dtype dtype;
    uint32_t rank;
    int64_t dim[PL_RANK_MAX];
} values[] = {
    {'x', PL_DTYPE_F32, 4, {2, 5, 6, 8}},
    {'h', PL_DTYPE_F32, 4, {2, 2, 3, 8}},
    {'p', PL_DTYPE_U8, 4, {2, 2, 3, 8}},
    {'d', PL_DTYPE_F32, 4, {2, 10, 12, 8}},
    {'n', PL_DTYPE_BF16, 4, {2, 5, 6, 8}},
    {'t', PL_DTYPE_F32, 4, {2, 5, 6, 3}},
    {'m', PL_DTYPE_F32, 4, {2, 5, 2, 8}},
    {'c', PL_DTYPE_F32, 1, {8}},
    {'e', PL_DTYPE_F32, 1, {7}},
    {'g', PL_DTYPE_F32, 2, {2, 4}},
    {'s', PL_DTYPE_I64, 1, {1}},
    {'i', PL_DTYPE_I32, 4, {2, 5, 6, 8}},
    {'w', PL_DTYPE_F32, 4, {8, 2, 2, 3}},
    {'b', PL_DTYPE_F32, 1, {3}},
    {'r', PL_DTYPE_F32, 4, {2, 10, 12, 3}},
    {'q', PL_DTYPE_F32, 2, {5, 8}},
    {'o', PL_DTYPE_F32, 3, {5, 2, 8}},
    {'1', PL_DTYPE_F32, 4, {2, 1, 1, 8}},
    {'y', PL_DTYPE_F32, 4, {-2, -5, 6, 8}}, /* the height is counted in B, too */
    {'2', PL_DTYPE_F32, 2, {2, 16}},
    {'3', PL_DTYPE_F32, 4, {2, 1, 1, 16}},
    {'4', PL_DTYPE_F32, 2, {2, 15}},
    {'5', PL_DTYPE_F32, 4, {2, 5, 6, 1}},
    {'6', PL_DTYPE_BF16, 2, {2, 16}},
    {'7', PL_DTYPE_F32, 3, {2, 4, 8}},
    {'8', PL_DTYPE_F32, 3, {2, 4, 1}},
    {'9', PL_DTYPE_F32, 2, {2, 3}},
    {'a', PL_DTYPE_F32, 4, {2, 1, 1, 2}},
    {'f', PL_DTYPE_F32, 1, {1}},
    {'j', PL_DTYPE_F64, 1, {1}},
    {'B', PL_DTYPE_F32, 2, {-2, 16}},
    {'P', PL_DTYPE_BF16, 4, {2, 1, 1, 16}},
    {'S', PL_DTYPE_F32, 2, {3, 8}},
    {'W', PL_DTYPE_F32, 4, {8, 3, 3, 8}},
    {'A', PL_DTYPE_U8, 3, {-2, 4, 6}},
    {'C', PL_DTYPE_U8, 4, {2, 4, 6, 3}},
    {'D', PL_DTYPE_U8, 3, {2, -4, 6}},
    {'E', PL_DTYPE_F32, 2, {4, 8}},
    {'F', PL_DTYPE_F32, 3, {-2, 4, 8}},
    {'G', PL_DTYPE_BF16, 3, {2, 4, 8}},
    {'H', PL_DTYPE_BF16, 2, {4, 8}},
    {'I', PL_DTYPE_F32, 3, {2, -4, 8}},
    {'J', PL_DTYPE_F32, 2, {2, 4}},
    {'K', PL_DTYPE_F32, 2, {14, 8}},
    {'L', PL_DTYPE_F32, 2, {5, 7}},
    {'M', PL_DTYPE_F32, 3, {2, 4, 5}},
    {'N', PL_DTYPE_F32, 3, {2, 6, 8}},
    {'O', PL_DTYPE_F32, 3, {-2, 4, 6}},
    {'Q', PL_DTYPE_F32, 3, {2, 6, 4}},
    {'R', PL_DTYPE_I32, 3, {2, 6, 3}},
    {'T', PL_DTYPE_I32, 3, {-2, 6, 3}},
    {'U', PL_DTYPE_F32, 4, {2, 6, 3, 8}},
    {'V', PL_DTYPE_F32, 3, {2, 4, 6}},
    {'X', PL_DTYPE_F32, 2, {13, 8}},
    {'k', PL_DTYPE_F32, 1, {2}},
    {'l', PL_DTYPE_F32, 3, {2, 1, 1}},
    {'u', PL_DTYPE_F32, 2, {-2, 1}},
    {'Z', PL_DTYPE_F32, 6, {1, 1, 1, 1, 1, 1}},
};

typedef struct attempt {
    pl_op op;
    pl_attr attr[7];
    const char *in;    /* a letter an input, '-' for none */
    const char *words; /* of the refusal; NULL: it is taken */
    const char *shape; /* then: of the first output */
} attempt;

#define I(v)                                                                                                           \
    {                                                                                                                  \
        .i = (v)                                                                                                       \
    }
#define F(v)                                                                                                           \
    {                                                                                                                  \
        .f = (v)                                                                                                       \
    }

static const attempt attempts[] = {
    {PL_OP_CHANNEL_MOMENTS, {{0}}, "x", NULL, "[2,5,2,8]"},
    {PL_OP_CHANNEL_MOMENTS, {{0}}, "q", NULL, "[5,2,8]"},
    {PL_OP_CHANNEL_MOMENTS, {{0}}, "c", "input 0 is f32 [8]", NULL},
    {PL_OP_CHANNEL_MOMENTS, {{0}}, "i", "input 0", NULL},
    {PL_OP_GROUP_NORM, {I(4), F(1e-5), I(1)}, "xmccx", NULL, "[2,5,6,8]"},
    {PL_OP_GROUP_NORM, {I(3), F(1e-5), I(1)}, "xmcc", "8 channels cannot be dealt to 3 groups", NULL},
    {PL_OP_GROUP_NORM, {I(0), F(1e-5), I(1)}, "xmcc", "groups", NULL},
    {PL_OP_GROUP_NORM, {I(4), F(1e-5), I(1)}, "xxcc", "input 1", NULL},
    {PL_OP_GROUP_NORM, {I(4), F(1e-5), I(1)}, "xmec", "input 2", NULL},
    {PL_OP_GROUP_NORM, {I(4), F(1e-5), I(1)}, "xmce", "input 3", NULL},
    {PL_OP_GROUP_NORM, {I(4), F(1e-5), I(1)}, "xmcct", "input 4", NULL},
    {PL_OP_GROUP_NORM, {I(4), F(1e-5), I(1)}, "xmccn", "input 4 is bf16", NULL},
    {PL_OP_GROUP_NORM_BWD, {I(4), F(1e-5), I(1)}, "xxccggccx", NULL, "[2,5,6,8]"},
    {PL_OP_GROUP_NORM_BWD, {I(4), F(1e-5), I(1)}, "txccgg", "input 0", NULL},
    {PL_OP_GROUP_NORM_BWD, {I(4), F(1e-5), I(1)}, "xxecgg", "input 2", NULL},
    {PL_OP_GROUP_NORM_BWD, {I(2), F(1e-5), I(1)}, "xxccgg", "input 4", NULL},
    {PL_OP_GROUP_NORM_BWD, {I(4), F(1e-5), I(1)}, "xxccgc", "input 5", NULL},
    {PL_OP_GROUP_NORM_BWD, {I(4), F(1e-5), I(1)}, "xxccggec", "input 6", NULL},
    {PL_OP_GROUP_NORM_BWD, {I(4), F(1e-5), I(1)}, "xxccggcct", "input 8", NULL},
    {PL_OP_BATCH_NORM, {F(1e-5), I(0)}, "xmcc", NULL, "[2,5,6,8]"},
    {PL_OP_BATCH_NORM, {F(1e-5), I(0)}, "qocc", NULL, "[5,8]"},
    {PL_OP_BATCH_NORM, {F(1e-5), I(0)}, "xocc", "input 1", NULL},
    {PL_OP_BATCH_NORM_BWD, {F(1e-5), I(0)}, "xxcccc", NULL, "[2,5,6,8]"},
    {PL_OP_BATCH_NORM_BWD, {F(1e-5), I(0)}, "xxccgc", "input 4", NULL},
    {PL_OP_BATCH_NORM_EVAL, {F(1e-5), I(0)}, "xccccx", NULL, "[2,5,6,8]"},
    {PL_OP_BATCH_NORM_EVAL, {F(1e-5), I(0)}, "xcecc", "input 2", NULL},
    {PL_OP_BATCH_NORM_EVAL, {F(1e-5), I(0)}, "xcccct", "input 5", NULL},
    {PL_OP_BATCH_NORM_UPDATE, {F(0.1), I(6)}, "mcc", NULL, "[8]"},
    {PL_OP_BATCH_NORM_UPDATE, {F(0.1), I(0)}, "mcc", "position", NULL},
    {PL_OP_BATCH_NORM_UPDATE, {F(2), I(6)}, "mcc", "momentum", NULL},
    {PL_OP_BATCH_NORM_UPDATE, {F(0.1), I(6)}, "xcc", "input 0", NULL},
    {PL_OP_BATCH_NORM_UPDATE, {F(0.1), I(6)}, "mce", "input 2", NULL},
    {PL_OP_POOLED_BATCH_NORM, {F(1e-5), I(0), I(6)}, "hmcc", NULL, "[2,2,3,8]"},
    {PL_OP_POOLED_BATCH_NORM, {F(1e-5), I(0), I(6)}, "hmcc2", NULL, "[2,2,3,8]"},
    {PL_OP_POOLED_BATCH_NORM, {F(1e-5), I(0), I(6)}, "hmcc3", NULL, "[2,2,3,8]"},
    {PL_OP_POOLED_BATCH_NORM, {F(1e-5), I(0), I(6)}, "hmcc4", "input 4", NULL},
    {PL_OP_POOLED_BATCH_NORM, {F(1e-5), I(0), I(6)}, "hmcc6", "input 4", NULL},
    {PL_OP_POOLED_BATCH_NORM, {F(1e-5), I(0), I(0)}, "hmcc", "position", NULL},
    {PL_OP_POOLED_BATCH_NORM, {F(1e-5), I(1), I(6)}, "hmcc", "must not fall", NULL},
    {PL_OP_POOLED_BATCH_NORM, {F(1e-5), I(PL_ACT_QUICK_GELU), I(6)}, "hmcc", "as quick_gelu does", NULL},
    {PL_OP_POOLED_BATCH_NORM, {F(1e-5), I(0), I(6)}, "hocc", "input 1", NULL},
    {PL_OP_POOLED_BATCH_NORM, {F(1e-5), I(0), I(6)}, "qocc", "input 0", NULL},
    {PL_OP_POOLED_BATCH_NORM, {F(1e-5), I(0), I(6)}, "hmec", "input 2", NULL},
    {PL_OP_POOLED_BATCH_NORM_BWD, {F(1e-5), I(0), I(30)}, "hhcccccc2", NULL, "[2,2,3,8]"},
    {PL_OP_POOLED_BATCH_NORM_BWD, {F(1e-5), I(0), I(0)}, "hhcccc", "position", NULL},
    {PL_OP_POOLED_BATCH_NORM_BWD, {F(1e-5), I(0), I(30)}, "hhccccccx", "input 8", NULL},
    {PL_OP_POOLED_BATCH_NORM_BWD, {F(1e-5), I(0), I(30)}, "xhcccc", "input 0", NULL},
    {PL_OP_BATCH_NORM_SPREAD, {{0}}, "hpSx", NULL, "[2,5,6,8]"},
    {PL_OP_BATCH_NORM_SPREAD, {{0}}, "hhSx", "input 1", NULL},
    {PL_OP_BATCH_NORM_SPREAD, {{0}}, "hpcx", "input 2", NULL},
    {PL_OP_BATCH_NORM_SPREAD, {{0}}, "hpSd", "input 0", NULL},
    {PL_OP_CONV2D_POOL, {I(1), I(1), I(0)}, "xWccB", "input 4", NULL},
    {PL_OP_CONV2D_POOL, {I(1), I(1), I(0)}, "xWcc2", NULL, "[2,2,3,8]"},
    {PL_OP_CONV2D_POOL, {I(1), I(1), I(0)}, "xWc", NULL, "[2,2,3,8]"},
    {PL_OP_CONV2D_POOL, {I(1), I(1), I(0)}, "xWec", "input 2", NULL},
    {PL_OP_CONV2D_POOL, {I(1), I(1), I(0)}, "xwcc", "input 1", NULL},
    {PL_OP_CONV2D_POOL, {I(5), I(1), I(0)}, "xWcc", "2 by 2", NULL},
    {PL_OP_CONV2D_POOL, {I(1), I(1), I(9)}, "xWcc", "algorithm", NULL},
    {PL_OP_CONV2D_POOL_BWD, {I(1), I(1), I(0)}, "hpSxWcW", NULL, "[2,5,6,8]"},
    {PL_OP_CONV2D_POOL_BWD, {I(1), I(1), I(0)}, "xpSxW", "input 0", NULL},
    {PL_OP_CONV2D_POOL_BWD, {I(1), I(1), I(0)}, "hhSxW", "input 1", NULL},
    {PL_OP_CONV2D_POOL_BWD, {I(1), I(1), I(0)}, "hpcxW", "input 2", NULL},
    {PL_OP_CONV2D_POOL_BWD, {I(1), I(1), I(0)}, "hpSxWe", "input 5", NULL},
    {PL_OP_CONV2D_POOL_BWD, {I(1), I(1), I(0)}, "hpSxWcw", "input 6", NULL},
    {PL_OP_MAX_POOL, {{0}}, "x", NULL, "[2,2,3,8]"},
    {PL_OP_MAX_POOL, {{0}}, "1", "2 by 2", NULL},
    {PL_OP_MAX_POOL, {{0}}, "q", "input 0", NULL},
    {PL_OP_MAX_POOL, {{0}}, "y", "input 0", NULL},
    {PL_OP_MAX_POOL_BWD, {I(5), I(6)}, "hpx", NULL, "[2,5,6,8]"},
    {PL_OP_MAX_POOL_BWD, {I(6), I(6)}, "hp", "height", NULL},
    {PL_OP_MAX_POOL_BWD, {I(5), I(6)}, "hh", "input 1", NULL},
    {PL_OP_MAX_POOL_BWD, {I(5), I(6)}, "hpt", "input 2", NULL},
    {PL_OP_AVG_POOL, {I(2), I(2)}, "x", NULL, "[2,2,3,8]"},
    {PL_OP_AVG_POOL, {I(0), I(2)}, "x", "windows", NULL},
    {PL_OP_AVG_POOL, {I(2), I(0)}, "x", "windows", NULL},
    {PL_OP_AVG_POOL, {I(6), I(1)}, "x", "windows", NULL},
    {PL_OP_AVG_POOL_BWD, {I(2), I(2), I(5), I(6)}, "hx", NULL, "[2,5,6,8]"},
    {PL_OP_AVG_POOL_BWD, {I(2), I(2), I(8), I(6)}, "h", "height", NULL},
    {PL_OP_AVG_POOL_BWD, {I(2), I(2), I(5), I(6)}, "hd", "input 1", NULL},
    {PL_OP_ADAPTIVE_AVG_POOL, {I(1), I(9)}, "x", NULL, "[2,1,9,8]"},
    {PL_OP_ADAPTIVE_AVG_POOL, {I(1), I(0)}, "x", "windows", NULL},
    {PL_OP_ADAPTIVE_AVG_POOL, {I(1), I(1)}, "7", NULL, "[2,1,8]"},
    {PL_OP_ADAPTIVE_AVG_POOL, {I(3), I(1)}, "F", NULL, "[2B,3,8]"},
    {PL_OP_ADAPTIVE_AVG_POOL, {I(1), I(2)}, "7", "one column", NULL},
    {PL_OP_ADAPTIVE_AVG_POOL, {I(1), I(1)}, "I", "input 0", NULL},
    {PL_OP_AVG_POOL, {I(1), I(1)}, "7", "input 0", NULL},
    {PL_OP_ADAPTIVE_AVG_POOL_BWD, {I(5), I(6)}, "hx", NULL, "[2,5,6,8]"},
    {PL_OP_ADAPTIVE_AVG_POOL_BWD, {I(-5), I(6)}, "h", "height", NULL},
    {PL_OP_ADAPTIVE_AVG_POOL_BWD, {I(6), I(1)}, "7N", NULL, "[2,6,8]"},
    {PL_OP_ADAPTIVE_AVG_POOL_BWD, {I(5), I(1)}, "7N", "input 1", NULL},
    {PL_OP_ADAPTIVE_AVG_POOL_BWD, {I(6), I(2)}, "7N", "one column", NULL},
    {PL_OP_UPSAMPLE_BILINEAR, {{0}}, "x", NULL, "[2,10,12,8]"},
    {PL_OP_UPSAMPLE_BILINEAR, {{0}}, "c", "input 0", NULL},
    {PL_OP_UPSAMPLE_BILINEAR_BWD, {{0}}, "dx", NULL, "[2,5,6,8]"},
    {PL_OP_UPSAMPLE_BILINEAR_BWD, {{0}}, "x", "even", NULL},
    {PL_OP_UPSAMPLE_BILINEAR_BWD, {{0}}, "dt", "input 1", NULL},
    {PL_OP_CONCAT, {{0}}, "xtx", NULL, "[2,5,6,19]"},
    {PL_OP_CONCAT, {{0}}, "xh", "input 1", NULL},
    {PL_OP_CONCAT, {{0}}, "xn", "input 1", NULL},
    {PL_OP_CONCAT, {{0}}, "xt-x", "input 2", NULL},
    {PL_OP_CONCAT, {{0}}, "xxxxxxxxx", NULL, "[2,5,6,72]"},
    {PL_OP_CONCAT, {{0}}, "xxxxxxx-x", "input 7", NULL},
    {PL_OP_GATE, {{0}}, "xx", NULL, "[2,5,6,8]"},
    {PL_OP_GATE, {{0}}, "x5", NULL, "[2,5,6,8]"},
    {PL_OP_GATE, {{0}}, "5x", "input 1", NULL},
    {PL_OP_GATE, {{0}}, "xn", "input 1 is bf16", NULL},
    {PL_OP_GATE_BWD, {{0}}, "xx5", NULL, "[2,5,6,8]"},
    {PL_OP_GATE_BWD, {{0}}, "5xx", "input 0", NULL},
    {PL_OP_BLEND, {{0}}, "xx5", NULL, "[2,5,6,8]"},
    {PL_OP_BLEND, {{0}}, "77g", NULL, "[2,4,8]"},
    {PL_OP_BLEND, {{0}}, "778", NULL, "[2,4,8]"},
    {PL_OP_BLEND, {{0}}, "77k", NULL, "[2,4,8]"},
    {PL_OP_BLEND, {{0}}, "77l", NULL, "[2,4,8]"},
    {PL_OP_BLEND, {{0}}, "FFu", NULL, "[2B,4,8]"},
    {PL_OP_BLEND, {{0}}, "22k", NULL, "[2,16]"},
    {PL_OP_BLEND, {{0}}, "xN5", "input 1", NULL},
    {PL_OP_BLEND, {{0}}, "Gx5", "input 1", NULL},
    {PL_OP_BLEND, {{0}}, "cck", "input 0", NULL},
    {PL_OP_BLEND, {{0}}, "IIk", "input 0", NULL},
    {PL_OP_BLEND, {{0}}, "GGk", "input 2 is f32", NULL},
    {PL_OP_BLEND, {{0}}, "77u", "input 2", NULL},
    {PL_OP_BLEND, {{0}}, "FFk", "input 2", NULL},
    {PL_OP_BLEND, {{0}}, "77f", "input 2", NULL},
    {PL_OP_BLEND, {{0}}, "779", "input 2", NULL},
    {PL_OP_BLEND, {{0}}, "77c", "input 2", NULL},
    {PL_OP_BLEND, {{0}}, "777", "input 2", NULL},
    {PL_OP_BLEND, {{0}}, "22l", "input 2", NULL},
    {PL_OP_BLEND_BWD, {{0}}, "xxx5", NULL, "[2,5,6,8]"},
    {PL_OP_BLEND_BWD, {{0}}, "7xx5", "input 0", NULL},
    {PL_OP_BLEND_BWD, {{0}}, "777t", "input 3", NULL},
    {PL_OP_FILM, {{0}}, "x2", NULL, "[2,5,6,8]"},
    {PL_OP_FILM, {{0}}, "x3", NULL, "[2,5,6,8]"},
    {PL_OP_FILM, {{0}}, "n2", NULL, "[2,5,6,8]"},
    {PL_OP_FILM, {{0}}, "n6", NULL, "[2,5,6,8]"},
    {PL_OP_FILM, {{0}}, "x6", "input 1", NULL},
    {PL_OP_FILM, {{0}}, "x4", "input 1", NULL},
    {PL_OP_FILM, {{0}}, "xx", "input 1", NULL},
    {PL_OP_FILM, {{0}}, "xB", "input 1", NULL},
    {PL_OP_FILM, {{0}}, "y2", "input 0", NULL},
    {PL_OP_FILM, {{0}}, "c2", "input 0", NULL},
    {PL_OP_FILM_BWD, {{0}}, "xx2", NULL, "[2,5,6,8]"},
    {PL_OP_FILM_BWD, {{0}}, "hx2", "input 0", NULL},
    {PL_OP_FILM_BWD, {{0}}, "nx2", "input 1", NULL},
    {PL_OP_SOFTMAX_POOL, {{0}}, "7g", NULL, "[2,8]"},
    {PL_OP_SOFTMAX_POOL, {{0}}, "78", NULL, "[2,8]"},
    {PL_OP_SOFTMAX_POOL, {{0}}, "2g", NULL, "[2,4]"},
    {PL_OP_SOFTMAX_POOL, {{0}}, "3a", NULL, "[2,1,1,8]"},
    {PL_OP_SOFTMAX_POOL, {{0}}, "3g", "input 1", NULL},
    {PL_OP_SOFTMAX_POOL, {{0}}, "79", "input 1", NULL},
    {PL_OP_SOFTMAX_POOL, {{0}}, "29", "input 1", NULL},
    {PL_OP_SOFTMAX_POOL, {{0}}, "Bg", "input 1", NULL},
    {PL_OP_SOFTMAX_POOL, {{0}}, "cg", "input 0", NULL},
    {PL_OP_SOFTMAX_POOL_BWD, {{0}}, "g2g", NULL, "[2,16]"},
    {PL_OP_SOFTMAX_POOL_BWD, {{0}}, "92g", "input 0", NULL},
    {PL_OP_REGRESSION_LOSS, {I(2), F(1), F(0.5), F(1.5), F(1)}, "23fj", NULL, "[1]"},
    {PL_OP_REGRESSION_LOSS, {I(2), F(1), F(0.5), F(1.5), F(1)}, "P2fj", NULL, "[1]"},
    {PL_OP_REGRESSION_LOSS, {I(2), F(1), F(0.5), F(1.5), F(1)}, "24fj", "input 1", NULL},
    {PL_OP_REGRESSION_LOSS, {I(2), F(1), F(0.5), F(1.5), F(1)}, "2Bfj", "input 1", NULL},
    {PL_OP_REGRESSION_LOSS, {I(2), F(1), F(0.5), F(1.5), F(1)}, "26fj", "input 1 is bf16", NULL},
    {PL_OP_REGRESSION_LOSS, {I(2), F(1), F(0.5), F(1.5), F(1)}, "22cj", "input 2", NULL},
    {PL_OP_REGRESSION_LOSS, {I(2), F(1), F(0.5), F(1.5), F(1)}, "22ff", "input 3", NULL},
    {PL_OP_REGRESSION_LOSS, {I(7), F(1), F(0.5), F(1.5), F(1)}, "22fj", "kind", NULL},
    {PL_OP_REGRESSION_LOSS, {I(-1), F(1), F(0.5), F(1.5), F(1)}, "22fj", "kind", NULL},
    {PL_OP_REGRESSION_LOSS, {I(2), F(0), F(0.5), F(1.5), F(1)}, "22fj", "delta", NULL},
    {PL_OP_REGRESSION_LOSS, {I(2), F(1), F(1.5), F(1.5), F(1)}, "22fj", "alpha", NULL},
    {PL_OP_REGRESSION_LOSS, {I(2), F(1), F(0.5), F(0.5), F(1)}, "22fj", "gamma", NULL},
    {PL_OP_REGRESSION_LOSS, {I(2), F(1), F(0.5), F(1.5), F(-1)}, "22fj", "too low", NULL},
    {PL_OP_MINED_REGRESSION_LOSS, {I(2), F(1), F(0.5), F(1.5), F(1), F(0.35), F(1.5)}, "22fj", NULL, "[1]"},
    {PL_OP_MINED_REGRESSION_LOSS, {I(2), F(1), F(0.5), F(1.5), F(1), F(1.35), F(1.5)}, "22fj", "share", NULL},
    {PL_OP_MINED_REGRESSION_LOSS, {I(2), F(1), F(0.5), F(1.5), F(1), F(0.35), F(-1)}, "22fj", "factor", NULL},
    {PL_OP_REGRESSION_LOSS_BWD, {I(2), F(1), F(0.5), F(1.5), F(1)}, "22fjf", NULL, "[1]"},
    {PL_OP_REGRESSION_LOSS_BWD, {I(2), F(1), F(0.5), F(1.5), F(1)}, "22fjc", "input 4", NULL},
    {PL_OP_APPEND_COORDINATES, {{0}}, "x", NULL, "[2,5,6,10]"},
    {PL_OP_APPEND_COORDINATES, {{0}}, "q", "input 0", NULL},
    {PL_OP_APPEND_COORDINATES, {{0}}, "y", "input 0", NULL},
    {PL_OP_APPEND_COORDINATES, {{0}}, "i", "input 0", NULL},
    {PL_OP_SLICE, {I(3), I(5)}, "x", NULL, "[2,5,6,5]"},
    {PL_OP_SLICE, {I(4), I(5)}, "x", "not within", NULL},
    {PL_OP_SLICE, {I(-1), I(5)}, "x", "not within", NULL},
    {PL_OP_SLICE, {I(INT64_MAX), I(INT64_MAX)}, "x", "not within", NULL},
    {PL_OP_SLICE, {I(0), I(0)}, "x", "not within", NULL},
    {PL_OP_SLICE_BWD, {I(5), I(8)}, "tx", NULL, "[2,5,6,8]"},
    {PL_OP_SLICE_BWD, {I(6), I(8)}, "t", "not within", NULL},
    {PL_OP_SLICE_BWD, {I(5), I(8)}, "th", "input 1", NULL},
    {PL_OP_CHANNEL_DROPOUT, {F(0.5)}, "xss", NULL, "[2,5,6,8]"},
    {PL_OP_CHANNEL_DROPOUT, {F(1)}, "xss", "probability", NULL},
    {PL_OP_CHANNEL_DROPOUT, {F(0.5)}, "css", "input 0", NULL},
    {PL_OP_CHANNEL_DROPOUT, {F(0.5)}, "xcs", "input 1", NULL},
    {PL_OP_PATCHES, {I(2), I(3)}, "A", NULL, "[2B,6,12]"},
    {PL_OP_PATCHES, {I(2), I(3)}, "C", NULL, "[2,6,12]"},
    {PL_OP_PATCHES, {I(1), I(1)}, "A", NULL, "[2B,24,1]"},
    {PL_OP_PATCHES, {I(4), I(3)}, "C", "has no patches of 4 by 4", NULL},
    {PL_OP_PATCHES, {I(0), I(3)}, "C", "has no patches", NULL},
    {PL_OP_PATCHES, {I(2), I(1)}, "C", "1 channels", NULL},
    {PL_OP_PATCHES, {I(2), I(0)}, "A", "0 channels", NULL},
    {PL_OP_PATCHES, {I(2), I(3), I(1)}, "A", NULL, "[2B,6,12]"},
    {PL_OP_PATCHES, {I(2), I(2), I(1)}, "A", "3 colours can be standardised", NULL},
    {PL_OP_PATH_DROPOUT, {I(5), F(0.5)}, "xss", NULL, "[2,5,6,8]"},
    {PL_OP_PATH_DROPOUT, {I(7), F(0.5)}, "xss", "equal parts", NULL},
    {PL_OP_PATH_DROPOUT, {I(5), F(1)}, "xss", "probability", NULL},
    {PL_OP_PATH_DROPOUT, {I(5), F(0.5)}, "css", "input 0", NULL},
    {PL_OP_DETACH, {I(0)}, "x", NULL, "[2,5,6,8]"},
    {PL_OP_PATCHES, {I(2), I(INT32_MAX)}, "A", "2147483647 channels", NULL},
    {PL_OP_PATCHES, {I(2), I(3)}, "D", "input 0", NULL},
    {PL_OP_PATCHES, {I(2), I(3)}, "t", "input 0 is f32", NULL},
    {PL_OP_ADD_POSITIONS, {{0}}, "7E", NULL, "[2,4,8]"},
    {PL_OP_ADD_POSITIONS, {{0}}, "FE", NULL, "[2B,4,8]"},
    {PL_OP_ADD_POSITIONS, {{0}}, "GE", NULL, "[2,4,8]"},
    {PL_OP_ADD_POSITIONS, {{0}}, "GH", "input 1 is bf16", NULL},
    {PL_OP_ADD_POSITIONS, {{0}}, "7q", "input 1", NULL},
    {PL_OP_ADD_POSITIONS, {{0}}, "77", "input 1", NULL},
    {PL_OP_ADD_POSITIONS, {{0}}, "IE", "input 0", NULL},
    {PL_OP_PREPEND_ROW, {{0}}, "7c", NULL, "[2,5,8]"},
    {PL_OP_PREPEND_ROW, {{0}}, "F", NULL, "[2B,5,8]"},
    {PL_OP_PREPEND_ROW, {{0}}, "Gc", NULL, "[2,5,8]"},
    {PL_OP_PREPEND_ROW, {{0}}, "Ge", "input 1", NULL},
    {PL_OP_PREPEND_ROW, {{0}}, "7E", "input 1", NULL},
    {PL_OP_PREPEND_ROW, {{0}}, "Ic", "input 0", NULL},
    {PL_OP_PREPEND_ROW, {{0}}, "Ec", "input 0", NULL},
    {PL_OP_PREPEND_ROW, {{0}}, "xc", "input 0", NULL},
    {PL_OP_PREPEND_ROW, {{0}}, "R", "input 0 is i32", NULL},
    {PL_OP_DROP_ROW, {{0}}, "7c", NULL, "[2,3,8]"},
    {PL_OP_DROP_ROW, {{0}}, "F", NULL, "[2B,3,8]"},
    {PL_OP_DROP_ROW, {{0}}, "Gc", NULL, "[2,3,8]"},
    {PL_OP_DROP_ROW, {{0}}, "7e", "input 1", NULL},
    {PL_OP_DROP_ROW, {{0}}, "l", "a row that is left", NULL},
    {PL_OP_DROP_ROW, {{0}}, "E", "input 0", NULL},
    {PL_OP_ROPE, {I(2), I(2), F(1e4), I(0)}, "7", NULL, "[2,4,8]"},
    {PL_OP_ROPE, {I(4), I(1), F(1), I(1)}, "F", NULL, "[2B,4,8]"},
    {PL_OP_ROPE, {I(1), I(1), F(1e4)}, "G", NULL, "[2,4,8]"},
    {PL_OP_ROPE, {I(3), I(2), F(1e4)}, "O", NULL, "[2B,4,6]"},
    {PL_OP_ROPE, {I(2), I(2), F(1e4)}, "x", NULL, "[2,5,6,8]"},
    {PL_OP_ROPE, {I(2), I(2), F(1e4)}, "E", "input 0 is f32 [4,8]", NULL},
    {PL_OP_ROPE, {I(2), I(2), F(1e4)}, "I", "expected [samples, ..., positions, width]", NULL},
    {PL_OP_ROPE, {I(2), I(2), F(1e4)}, "i", "input 0 is i32", NULL},
    {PL_OP_ROPE, {I(3), I(3), F(1e4)}, "7", "whole heads", NULL},
    {PL_OP_ROPE, {I(8), I(8), F(1e4)}, "7", "two halves", NULL},
    {PL_OP_ROPE, {I(0), I(0), F(1e4)}, "7", "whole heads", NULL},
    {PL_OP_ROPE, {I(INT64_MIN), I(1), F(1e4)}, "7", "whole heads", NULL},
    {PL_OP_ROPE, {I(2), I(0), F(1e4)}, "7", "of 2 heads 0 cannot be turned", NULL},
    {PL_OP_ROPE, {I(2), I(3), F(1e4)}, "7", "of 2 heads 3 cannot be turned", NULL},
    {PL_OP_ROPE, {I(2), I(2), F(0.5)}, "7", "theta 0.5", NULL},
    {PL_OP_ROPE, {I(2), I(2), F(INFINITY)}, "7", "theta inf", NULL},
    {PL_OP_ROPE, {I(2), I(2), F(NAN)}, "7", "nan is not a finite number", NULL},
    {PL_OP_COLUMN_SUM, {{0}}, "7c", NULL, "[8]"},
    {PL_OP_COLUMN_SUM, {{0}}, "FE", NULL, "[4,8]"},
    {PL_OP_COLUMN_SUM, {{0}}, "77", NULL, "[2,4,8]"},
    {PL_OP_COLUMN_SUM, {{0}}, "7J", "input 1", NULL},
    {PL_OP_COLUMN_SUM, {{0}}, "IE", "input 1", NULL},
    {PL_OP_COLUMN_SUM, {{0}}, "FF", "input 1", NULL},
    {PL_OP_COLUMN_SUM, {{0}}, "E7", "input 1", NULL},
    {PL_OP_GATED_FEED_FORWARD, {I(2), I(3)}, "7KL", NULL, "[2,4,5]"},
    {PL_OP_GATED_FEED_FORWARD, {I(2), I(3)}, "xKL", NULL, "[2,5,6,5]"},
    {PL_OP_GATED_FEED_FORWARD, {I(2), I(3)}, "7KLM", NULL, "[2,4,5]"},
    {PL_OP_GATED_FEED_FORWARD, {I(2), I(3)}, "7KL7", "input 3", NULL},
    {PL_OP_GATED_FEED_FORWARD, {I(2), I(3)}, "7LL", "input 1", NULL},
    {PL_OP_GATED_FEED_FORWARD, {I(2), I(3)}, "7XL", "input 1", NULL},
    {PL_OP_GATED_FEED_FORWARD, {I(2), I(3)}, "7KK", "input 2", NULL},
    {PL_OP_GATED_FEED_FORWARD, {I(2), I(3)}, "GKL", "input 1 is f32", NULL},
    {PL_OP_GATED_FEED_FORWARD, {I(2), I(0)}, "7KL", "at least 1 row", NULL},
    {PL_OP_GATED_FEED_FORWARD_BWD, {I(2), I(3)}, "M7KLKL7", NULL, "[2,4,8]"},
    {PL_OP_GATED_FEED_FORWARD_BWD, {I(2), I(3)}, "77KL", "input 0", NULL},
    {PL_OP_GATED_FEED_FORWARD_BWD, {I(2), I(3)}, "M7KLL", "input 4", NULL},
    {PL_OP_GATED_FEED_FORWARD_BWD, {I(2), I(3)}, "M7KL-K", "input 5", NULL},
    {PL_OP_GATED_FEED_FORWARD_BWD, {I(2), I(3)}, "M7KL--M", "input 6", NULL},
    {PL_OP_CAPSULE_POOL, {{0}}, "7V", NULL, "[2,6,8]"},
    {PL_OP_CAPSULE_POOL, {{0}}, "FO", NULL, "[2B,6,8]"},
    {PL_OP_CAPSULE_POOL, {{0}}, "xt", NULL, "[2,3,8]"},
    {PL_OP_CAPSULE_POOL, {{0}}, "7O", "input 1", NULL},
    {PL_OP_CAPSULE_POOL, {{0}}, "7N", "input 1", NULL},
    {PL_OP_CAPSULE_POOL, {{0}}, "qq", "input 0", NULL},
    {PL_OP_CAPSULE_POOL, {{0}}, "GV", "input 1 is f32", NULL},
    {PL_OP_CAPSULE_POOL_BWD, {{0}}, "N7VQ7", NULL, "[2,4,8]"},
    {PL_OP_CAPSULE_POOL_BWD, {{0}}, "77V", "input 0", NULL},
    {PL_OP_CAPSULE_POOL_BWD, {{0}}, "N7VV", "input 3", NULL},
    {PL_OP_CAPSULE_POOL_BWD, {{0}}, "N7V-V", "input 4", NULL},
    {PL_OP_TOP_K, {I(3)}, "Q", NULL, "[2,6,3]"},
    {PL_OP_TOP_K, {I(6)}, "O", NULL, "[2B,4,6]"},
    {PL_OP_TOP_K, {I(5)}, "Q", "no 5 largest", NULL},
    {PL_OP_TOP_K, {I(0)}, "Q", "no 0 largest", NULL},
    {PL_OP_TOP_K, {I(1)}, "G", "input 0 is bf16", NULL},
    {PL_OP_GATHER_ROWS, {{0}}, "7R", NULL, "[2,6,3,8]"},
    {PL_OP_GATHER_ROWS, {{0}}, "FT", NULL, "[2B,6,3,8]"},
    {PL_OP_GATHER_ROWS, {{0}}, "GR", NULL, "[2,6,3,8]"},
    {PL_OP_GATHER_ROWS, {{0}}, "7T", "input 1", NULL},
    {PL_OP_GATHER_ROWS, {{0}}, "77", "input 1", NULL},
    {PL_OP_GATHER_ROWS, {{0}}, "qR", "input 0", NULL},
    {PL_OP_GATHER_ROWS_BWD, {I(4)}, "UR7", NULL, "[2,4,8]"},
    {PL_OP_GATHER_ROWS_BWD, {I(5)}, "UR7", "input 2", NULL},
    {PL_OP_GATHER_ROWS_BWD, {I(0)}, "UR", "0 positions", NULL},
    {PL_OP_GATHER_ROWS_BWD, {I(4)}, "7R", "input 0", NULL},
    {PL_OP_REPEAT, {I(3)}, "N", NULL, "[2,6,3,8]"},
    {PL_OP_REPEAT, {I(1)}, "F", NULL, "[2B,4,1,8]"},
    {PL_OP_REPEAT, {I(0)}, "N", "0 times", NULL},
    {PL_OP_REPEAT, {I(2)}, "Z", "input 0", NULL},
    {PL_OP_REPEAT, {I(2)}, "i", "input 0", NULL},
    {PL_OP_REPEAT_BWD, {I(3)}, "U", NULL, "[2,6,8]"},
    {PL_OP_REPEAT_BWD, {I(4)}, "U", "input 0", NULL},
    {PL_OP_CONV_TRANSPOSE2D, {I(2)}, "xwbr", NULL, "[2,10,12,3]"},
    {PL_OP_CONV_TRANSPOSE2D, {I(0)}, "xw", "stride", NULL},
    {PL_OP_CONV_TRANSPOSE2D, {I(2)}, "tw", "input 1", NULL},
    {PL_OP_CONV_TRANSPOSE2D, {I(2)}, "xwc", "input 2", NULL},
    {PL_OP_CONV_TRANSPOSE2D, {I(2)}, "xwbx", "input 3", NULL},
};

static pl_id value_of(pl_builder *b, char letter)
{
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        if (values[i].letter != letter) continue;
        pl_shape s = {.rank = values[i].rank};
        for (uint32_t k = 0; k < s.rank; k++) {
            s.dim[k] = values[i].dim[k] < 0 ? -values[i].dim[k] : values[i].dim[k];
            if (values[i].dim[k] < 0) s.symbolic |= 1u << k;
        }
        return pl_build_temporary(b, PL_ROLE_TEMPORARY, values[i].dtype, s, "%c.%zu", letter, b->graph->value_count);
    }
    return PL_NONE;
}

static void attempt_it(const attempt *a, size_t number)
{
    pl_error err = {0};
    pl_graph *g = pl_graph_create();
    assert_non_null(g);
    pl_builder b = pl_builder_begin(g, pl_graph_add_region(g, "p", PL_NONE, 1), &err);
    pl_id in[PL_NODE_IN_MAX], out = PL_NONE;
    char shape[160] = "";
    int ins = 0;
    for (; a->in[ins]; ins++) in[ins] = value_of(&b, a->in[ins]);
    pl_build_node(&b, a->op, a->attr, ins, in, 1, &out);
    if (!a->words) {
        if (b.status != PL_OK) fail_msg("%zu: %s %s: %s", number, pl_op_name(a->op), a->in, err.text);
        assert_string_equal(pl_shape_text(&g->value[out].shape, shape, sizeof shape), a->shape);
    } else if (b.status != PL_E_INTERNAL || !strstr(err.text, a->words) || !strstr(err.text, pl_op_name(a->op))) {
        fail_msg("%zu: %s %s: \"%s\" does not say \"%s\"", number, pl_op_name(a->op), a->in, err.text, a->words);
    }
    pl_graph_destroy(g);
}

static void operands_fit_or_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++) attempt_it(&attempts[i], i);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(operands_fit_or_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
