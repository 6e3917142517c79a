/* An operator's inputs, outputs and attributes, from its row in ops.def: as a struct with a member for each, so that
 * code reads and builds nodes by name, and as a table, for code that treats all operators alike.
 *
 *   n->linear.weight                                  of a node that is a linear
 *   pl_linear_args a = pl_linear_none; a.x = …;       to build one (pl_build_linear, op.h) */
#ifndef PL_IR_SIGNATURE_H
#define PL_IR_SIGNATURE_H

#include "base/activation.h"
#include "ir/types.h"

typedef enum pl_op {
#define PL_OP(constant, name, ins, outs, attrs) PL_OP_##constant,
#include "ir/ops.def"
    PL_OP_COUNT
} pl_op;

enum { PL_NODE_IN_MAX = 9, PL_NODE_OUT_MAX = 5, PL_ATTR_MAX = 10 };

typedef union pl_attr {
    int64_t i; /* an activation, too */
    double f;
} pl_attr;

/* An output that pl_build_… must not make; one that it makes is PL_NONE before, an existing one is its id. */
#define PL_UNWANTED (PL_NONE - 1)

/* pl_X_args: the members of the row, in its order, over the arrays in, out and attr; pl_node holds the same. A node may
 * be read and written through several of them (operators whose rows begin alike), and by position: they alias. */
#define IN(name, kind, ...)               pl_id name;
#define OPT(name, kind, ...)              pl_id name;
#define INS(name, kind, least, most, ...) pl_id name[most];
#define OUT(name, ...)                    pl_id name;
#define OUT_OPT(name, ...)                pl_id name;
#define NEW(name, input, ...)             pl_id name;
#define OUTS(name, most, ...)             pl_id name[most];
#define OVER(input)
#define INT(name)      int64_t name;
#define INT_OPT(name)  int64_t name;
#define REAL(name)     double name;
#define REAL_OPT(name) double name;
#define ACT(name)      int64_t name;
#define PL_OP(constant, op, ins, outs, attrs)                                                                          \
    enum {                                                                                                             \
        PL_INS_OF_##constant = sizeof(struct {ins}) / sizeof(pl_id),                                                   \
        PL_OUTS_OF_##constant = sizeof(struct {outs}) / sizeof(pl_id),                                                 \
        PL_ATTRS_OF_##constant = sizeof(struct {attrs}) / sizeof(pl_attr)                                              \
    };                                                                                                                 \
    typedef struct __attribute__((__may_alias__)) pl_##op##_args {                                                     \
        union {                                                                                                        \
            struct {                                                                                                   \
                ins                                                                                                    \
            };                                                                                                         \
            pl_id in[PL_NODE_IN_MAX];                                                                                  \
        };                                                                                                             \
        union {                                                                                                        \
            struct {                                                                                                   \
                outs                                                                                                   \
            };                                                                                                         \
            pl_id out[PL_NODE_OUT_MAX];                                                                                \
        };                                                                                                             \
        union {                                                                                                        \
            struct {                                                                                                   \
                attrs                                                                                                  \
            };                                                                                                         \
            pl_attr attr[PL_ATTR_MAX];                                                                                 \
        };                                                                                                             \
    } pl_##op##_args;                                                                                                  \
    _Static_assert((int)PL_INS_OF_##constant <= (int)PL_NODE_IN_MAX &&                                                 \
                       (int)PL_OUTS_OF_##constant <= (int)PL_NODE_OUT_MAX &&                                           \
                       (int)PL_ATTRS_OF_##constant <= (int)PL_ATTR_MAX,                                                \
                   #op ": raise the maximum");
#include "ir/ops.def"

/* Nothing given yet: inputs are PL_NONE, optional outputs PL_UNWANTED, attributes 0; for pl_build_X, which reads only
 * the row's members. Beyond those, a node's own `in` and `out` are PL_NONE, too. */
#define PL_OP(constant, name, ins, outs, attrs) extern const pl_##name##_args pl_##name##_none;
#include "ir/ops.def"

/* An entry without a position: the output before it may take the storage of the input `update`. */
enum { PL_OVER = '@' };

/* What generic passes ask about an operand. */
typedef enum pl_tag {
    PL_ROWS = 1,     /* its kernel takes rows at any stride (a part of a wider tensor) */
    PL_SAMPLES = 2,  /* its kernel takes samples at any stride, each whole */
    PL_MATRIX = 4,   /* the matrix of a product */
    PL_FLOW = 8,     /* what is multiplied with the node's matrices: the activations, or their gradient */
    PL_PLACES = 16,  /* its last axis but one is the places of a sequence */
    PL_PLACE = 32,   /* the number of one of these places */
    PL_ENCODED = 64, /* its kernel takes rows in encodings: any, unless its rule says which, where all else is f32 */
    PL_WHOLE = 128,  /* its kernel takes what is stored as a whole, in the encoding that its rule says */
} pl_tag;

/* One part of a row as a value: `most` positions after the previous part, at least `least` of them given. */
typedef struct pl_operand {
    char name[16];
    char kind; /* for inputs as in ops.def; for attributes 'i', 'f' or 'a'; PL_OVER */
    uint8_t least, most;
    int8_t update; /* position of the input whose new content an output is, or that PL_OVER names; else -1 */
    uint8_t tags;  /* pl_tag */
} pl_operand;

typedef struct pl_signature {
    char name[32];
    uint8_t ins, outs, attrs;          /* positions */
    const pl_operand *in, *out, *attr; /* end with one without a name */
} pl_signature;

const pl_signature *pl_signature_of(pl_op);
/* The operand that position k of in, out or attr belongs to; NULL beyond the last. */
const pl_operand *pl_operand_at(const pl_operand *, int k);
/* Its name; with a number from 0 where one name has several positions: "part[2]". */
typedef struct pl_position_name {
    char text[24];
} pl_position_name;
pl_position_name pl_position_name_of(const pl_operand *, int k);
/* Has position k that tag? */
bool pl_operand_has(const pl_operand *, int k, pl_tag);
/* Must position k be given in every node? */
bool pl_operand_is_required(const pl_operand *, int k);

#endif
