/* The retention matrix (Checkmate, Jain et al., MLSys'20): the nodes run for the first time in a fixed order, one a
 * stage. At the beginning of each stage a row of bits says which results *shall* be resident; what is missing for the
 * stage's node is computed again within the stage, and only then.
 *
 *     stage   runs    wanted at its beginning             A value that nothing touches for some stages is wanted in
 *       0     a       –                                   all of them or in none, if the matrix is any good: such
 *       1     b       a                                   *gaps* are what moves change. Here `a` is dropped in stage
 *       2     c         b                                 2 and computed again in stage 3, where d reads it.
 *       3     a d         c
 *
 * A change is worked out stage by stage, from where it begins to where nothing differs any more. A stage that touches
 * none of the values that differ runs as before: only its bytes move. Invariant: after every change (and every undo)
 * all rows and sums are those that a computation from scratch would give; tests/unit/recompute checks it. */
#ifndef PL_PLAN_RECOMPUTE_MATRIX_H
#define PL_PLAN_RECOMPUTE_MATRIX_H

#include "graph.h"

enum { MATRIX_FLIPS_MAX = 48 };

typedef struct matrix_flip {
    uint32_t node, first, last; /* wanted or not is turned round in stages [first, last) */
} matrix_flip;

typedef struct matrix_change {
    matrix_flip flips[MATRIX_FLIPS_MAX];
    uint32_t count;
    uint32_t swapped; /* this stage and the next change places; RECOMPUTE_NO_NODE: none do */
} matrix_change;

typedef struct matrix_stage {
    double cost;
    int64_t base; /* resident from the beginning of the stage on, fixed included */
    int64_t rise; /* the peak of the stage above base */
    int64_t held; /* sizes of all that is resident as the stage begins */
} matrix_stage;

typedef struct matrix {
    const recompute_graph *g;
    recompute_run *run; /* whose clock may stop a change; NULL: none */
    uint32_t count, words;
    uint32_t *node_at, *stage_of;
    uint64_t *wanted, *entry; /* [count + 1][words]: shall be, is resident as the stage begins */
    uint64_t *touched;        /* [count][words]: computed or read in the stage */
    uint64_t *kept;           /* [words] */
    matrix_stage *stage;
    uint32_t *last_stage; /* by node: of its last reader, or its own, when the matrix was loaded */
    double cost;
    int64_t over;    /* bytes above the budget, summed over stages */
    uint64_t visits; /* work done */
    bool cut;        /* the time ran out: the change was not carried out to its end and is to be taken back, or what was
                        loaded is not whole */
    /* the last change, for undo */
    uint64_t *old_touched;
    matrix_stage *old_stage;
    uint32_t *redone;           /* stages whose touched row was saved */
    struct matrix_bit *toggled; /* entry bits turned round */
    size_t redone_count, toggled_count, toggled_capacity;
    uint32_t first_visited, end_visited;
    double old_cost;
    int64_t old_over;
    /* scratch */
    uint32_t *differs, *differs_next, *last_reader, *runs;
    uint32_t differs_count;
} matrix;

static inline uint64_t *matrix_row(const matrix *m, uint64_t *rows, uint32_t stage)
{
    return rows + (size_t)stage * m->words;
}
static inline bool matrix_has(const uint64_t *row, uint32_t v) { return row[v / 64] >> (v % 64) & 1; }
static inline bool matrix_wants(const matrix *m, uint32_t stage, uint32_t v)
{
    return matrix_has(matrix_row(m, m->wanted, stage), v);
}
static inline bool matrix_touches(const matrix *m, uint32_t stage, uint32_t v)
{
    return matrix_has(matrix_row(m, m->touched, stage), v);
}
static inline bool matrix_enters(const matrix *m, uint32_t stage, uint32_t v)
{
    return matrix_has(matrix_row(m, m->entry, stage), v);
}

/* Memory for the graph; empty until matrix_load. */
pl_status matrix_init(matrix *, const recompute_graph *, pl_error *);
void matrix_deinit(matrix *);
/* The order of first computations, and what is resident at each, taken from a sequence. */
pl_status matrix_load(matrix *, const recompute_sequence *, pl_error *);
/* Everything anew from the order and what is wanted. */
void matrix_refresh(matrix *);
pl_status matrix_sequence(matrix *, recompute_sequence *, pl_error *);
/* Carries a change out; cost and over follow. May be taken back until the next one. */
pl_status matrix_apply(matrix *, const matrix_change *, pl_error *);
void matrix_undo(matrix *, const matrix_change *);

#endif
