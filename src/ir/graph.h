/* The graph: values, nodes and regions in flat arrays, named by 32-bit ids, all in one pool.
 *
 * One graph holds all programs of a command (train, evaluate, generate …). A program is a root region; regions nest,
 * and a region's nodes are repeated `trip` times (accumulation is a region, never unrolled). Persistent values
 * (weights, moments, counters) belong to no program and are shared by all.
 *
 * Storage. A value owns its bytes unless it is
 *   a view     (view_of, view_offset, strides): a window on another value, or
 *   an update  (update_of): the new content of another value, in the same place (state changes in place).
 * pl_value_root() follows both to the value that owns the bytes; placement deals with roots only. Each value remembers
 * its root (a residual stream changed in place is a chain as long as the model is deep), so that asking costs a step or
 * two; therefore update_of of a value in the graph changes through pl_graph_set_update() alone.
 * A view may be a *tile*: it moves on by its own size with each trip of the region of the node that uses it. Its base
 * is a stack of one tile a trip, by which a region leaves something for another that is repeated as often.
 *
 * Nodes are kept in a legal order: every value is produced before it is read. Dead nodes stay in the array, marked. */
#ifndef PL_IR_GRAPH_H
#define PL_IR_GRAPH_H

#include "base/alloc.h"
#include "base/encoding.h"
#include "base/error.h"
#include "base/str.h"
#include "ir/signature.h"

typedef struct pl_value {
    const char *name;  /* unique in the graph */
    const char *scope; /* path of the model component, "" for none */
    uint32_t block;    /* which one of the model's repeated blocks, from 1; 0: none */
    pl_shape shape;
    pl_dtype dtype;
    pl_encoding encoding; /* how its numbers are stored; PL_ENCODING_F32: as its dtype says. Shape and dtype (f32) are
                           * those of what operators compute with */
    pl_role role;
    pl_id space;    /* index into graph->space */
    uint64_t place; /* in PL_SPACE_FILES: the byte at which it begins there; 0 in other spaces */
    pl_id program;  /* region that owns a non-persistent value; PL_NONE: persistent */
    pl_id producer; /* node, or PL_NONE for persistent values and inputs */
    pl_id view_of, update_of;
    /* What it belongs to, by its role: of a gradient, moment, average, copy or packed form the weight; of what was
     * observed for a range of int8 the range; PL_NONE: it stands for itself. */
    pl_id of;
    pl_id root; /* set by the graph, not by whoever fills this in: a step on the way to the value that owns the bytes */
    int64_t view_offset; /* elements; only with view_of */
    bool tile;           /* only with view_of: of a whole value, contiguous */
    bool inference; /* lasting state that evaluating and generating need (running statistics, averages): saved with the
                     * weights, not with what only training needs */
    bool frozen;    /* a weight that is not trained: no gradient, no optimizer state, saved like the others */
    bool latent; /* a weight of which products see the signs: an update keeps it in [−1, 1], and nothing decays it */
    int64_t root_offset; /* elements from the root's beginning to its own; set by the graph, like root */
    int64_t stride[PL_RANK_MAX];
} pl_value;

typedef enum pl_phase { PL_PHASE_FORWARD, PL_PHASE_BACKWARD, PL_PHASE_UPDATE, PL_PHASE_COUNT } pl_phase;

typedef struct pl_node {
    pl_op op;
    pl_phase phase;
    union {
        struct {
            pl_id in[PL_NODE_IN_MAX];   /* what is not given is PL_NONE */
            pl_id out[PL_NODE_OUT_MAX]; /* likewise */
            pl_attr attr[PL_ATTR_MAX];
        };
#define PL_OP(constant, name, ins, outs, attrs) pl_##name##_args name; /* the same by its operator's names */
#include "ir/ops.def"
    };
    const char *scope;
    uint32_t block; /* as a value's */
    pl_id region;
    pl_id predicate; /* i32 value: the node runs only when it is not zero; PL_NONE: always */
    pl_id queue;     /* who runs it: index into graph->queue */
    pl_id wait;      /* queue it waits for before it runs, or PL_NONE */
    bool dead;
} pl_node;

/* What a node is for: its first output. The others are statistics, or are made with it. PL_NONE: it only stores. */
static inline pl_id pl_node_result(const pl_node *n) { return n->out[0]; }

typedef struct pl_region {
    const char *name;
    pl_id parent; /* PL_NONE: a program */
    uint64_t trip;
    int64_t batch; /* of a program: B once bound, 0 before */
} pl_region;

/* Space 0 is the memory of the process, in which kernels compute. */
enum { PL_SPACE_RAM = 0, PL_SPACES_MAX = 4, PL_QUEUES_MAX = 8 };

/* The space whose bytes are the pages of files, one file after the other: nothing is placed or written there. Its
 * values are frozen weights, each of which says where it begins (pl_value.place). */
#define PL_SPACE_FILES "files"

typedef struct pl_graph {
    pl_pool *pool;
    pl_value *value;
    pl_node *node;
    pl_region *region;
    size_t value_count, node_count, region_count;
    size_t value_capacity, node_capacity, region_capacity;
    const char *space[PL_SPACES_MAX]; /* "ram", later "vram0", "disk" … */
    const char *queue[PL_QUEUES_MAX]; /* "main", "loader" … */
    uint32_t space_count, queue_count;
} pl_graph;

pl_graph *pl_graph_create(void); /* with space "ram" and queues "main", "loader"; NULL when memory is refused */
void pl_graph_destroy(pl_graph *);
pl_graph *pl_graph_copy(const pl_graph *); /* NULL when memory is refused */
/* Its arrays as long as they are, as the reader of a text makes them (ir/parse.h). */
pl_graph *pl_graph_copy_as_read(const pl_graph *);

/* Room for so many, asked for once: an array that grows leaves holes in the heap, which nobody plans. 0, or -1 when
 * memory is refused. */
int pl_graph_reserve(pl_graph *, size_t values, size_t nodes);

/* Ids of what was added, PL_NONE when memory is refused. The names are copied. */
pl_id pl_graph_add_value(pl_graph *, const pl_value *);
pl_id pl_graph_add_node(pl_graph *, const pl_node *); /* sets the producer of its outputs */
pl_id pl_graph_add_region(pl_graph *, const char *name, pl_id parent, uint64_t trip);

/* From now on the value is the new content of `old`, which must have been added before it. */
void pl_graph_set_update(pl_graph *, pl_id value, pl_id old);
/* order[i] = the node that comes i-th; a permutation of all nodes. PL_E_NOMEM. */
pl_status pl_graph_reorder(pl_graph *, const pl_id *order, pl_error *);
/* Nodes of a program become one stretch, programs in the order of their ids; within a program the order stays. */
pl_status pl_graph_group_programs(pl_graph *, pl_error *);
/* Values get ids in the order in which the nodes first write them, those that none writes in front: an update must come
 * behind what it replaces, so only then may every node work in place. Ties stay in their order. */
pl_status pl_graph_number_values(pl_graph *, pl_error *);
/* Removes dead nodes from the array. */
void pl_graph_sweep(pl_graph *);

pl_id pl_value_root(const pl_graph *, pl_id value);
int64_t pl_value_root_offset(const pl_graph *, pl_id value); /* elements: where its bytes begin within the root's */
/* Is it, or what it is a view or version of, a weight that gets gradients? No copy of one in 16 bits is. */
bool pl_value_is_trained(const pl_graph *, pl_id value);
uint64_t pl_value_bytes(const pl_graph *, pl_id value);   /* of its own shape, B counted as 1 while unbound */
uint64_t pl_encoded_bytes(pl_encoding, const pl_shape *); /* likewise; UINT64_MAX: no such shape is stored so */
pl_id pl_region_program(const pl_graph *, pl_id region);
/* PL_NONE when there is none. Looks at every value: for many names take ir/index.h. */
pl_id pl_graph_find_value(const pl_graph *, const char *name);
pl_id pl_graph_find_program(const pl_graph *, const char *name); /* PL_NONE when there is none */
pl_id pl_graph_add_space(pl_graph *, const char *name);      /* PL_NONE when memory is refused, or there are too many */
bool pl_graph_space_is_files(const pl_graph *, pl_id space); /* PL_SPACE_FILES? */
bool pl_node_uses_tile(const pl_graph *, const pl_node *);
void pl_value_default_strides(pl_value *); /* row-major, from the shape */
bool pl_value_is_contiguous(const pl_value *);

const char *pl_phase_name(pl_phase); /* "forward", "backward", "update" */
const char *pl_op_name(pl_op);
int pl_op_parse(const char *, pl_op *);

/* ---- check.c: is this graph legal? The first thing that is not, in a sentence. ---- */
typedef enum pl_graph_stage { PL_STAGE_MODEL, PL_STAGE_GRAD, PL_STAGE_BOUND } pl_graph_stage;
pl_status pl_graph_check(const pl_graph *, pl_graph_stage, pl_error *);

/* ---- print.c, parse.c: one line a value, node, region; print → parse → print is the identity ---- */
void pl_graph_print(const pl_graph *, pl_str *out);
pl_status pl_graph_parse(const char *name, const char *text, size_t bytes, pl_graph **, pl_error *);

#endif
