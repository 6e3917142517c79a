/* The sums of a plan that text, JSON and HTML all show: computed here once, by walking the plan's blocks and rows.
 *
 *     roles at the peak + alignment + gap = arena_bytes;  arena_bytes + rounding = the ledger's arena row */
#ifndef PL_REPORT_ACCOUNT_H
#define PL_REPORT_ACCOUNT_H

#include "plan/plan.h"

/* ---- account.c ---- */
typedef struct pl_report_account {
    uint64_t role_bytes[PL_ROLE_COUNT];   /* alive at the peak, exact; workspaces of nodes are in WORKSPACE */
    uint64_t always_bytes[PL_ROLE_COUNT]; /* of those: persistent, held all the time */
    uint32_t role_count[PL_ROLE_COUNT];
    uint32_t role_storage[PL_ROLE_COUNT]; /* of values alive then: bit 1 << dtype, or PL_DTYPE_COUNT + encoding */
    uint64_t alive_bytes;                 /* the sum of role_bytes */
    uint64_t alignment_bytes;             /* what those blocks are rounded up by */
    uint64_t gap_bytes;                   /* arena − all of that: the price of placement */
    uint64_t arena_bytes;                 /* highest end of a block */
    uint64_t rounding_bytes;              /* to pages or huge pages */
    uint64_t disk_bytes;
    size_t arena_row; /* of plan->ledger.row; row_count when there is none */
} pl_report_account;

pl_report_account pl_report_sum(const pl_plan *);
bool pl_report_is_alive(const pl_block *, uint64_t position);
/* "weights", "optimizer state", …: the plural that a person reads. */
const char *pl_report_role_title(pl_role);

typedef struct pl_report_model {
    uint64_t parameters, weights; /* elements and tensors of role weight */
    uint64_t layers;              /* with weights of their own; numbered components at the top: block.0, block.1 … */
    uint64_t batch;               /* samples of a training step; 0: nothing is trained */
    uint64_t micro_batch;         /* of them at once */
    uint64_t accumulation;        /* trips: how often */
    uint64_t last;                /* samples in the last micro-batch */
    pl_dtype precision;           /* of activations while training */
} pl_report_model;
pl_report_model pl_report_describe(const pl_plan *);
/* "micro-batch 4 × accumulation 8 = batch 32", "batch 16 in 3 micro-batches of 6, the last with 4"; "" where nothing
 * is trained. */
void pl_report_batch(const pl_report_model *, pl_str *out);

/* ---- components.c: bytes alive at the peak by the first parts of the scope ---- */
typedef enum pl_report_group {
    PL_GROUP_WEIGHTS,
    PL_GROUP_GRADIENTS,
    PL_GROUP_OPTIMIZER,
    PL_GROUP_ACTIVATIONS, /* saved and temporary */
    PL_GROUP_WORKSPACE,
    PL_GROUP_OTHER, /* states, inputs, outputs, staging, I/O */
    PL_GROUP_COUNT
} pl_report_group;

typedef struct pl_report_component {
    const char *scope; /* its first `bytes` bytes; 0: nodes without scope */
    size_t bytes;
    uint64_t group_bytes[PL_GROUP_COUNT];
    uint64_t total_bytes;
} pl_report_component;

typedef struct pl_report_components {
    pl_report_component *item; /* in the order in which they appear in the graph */
    size_t count, capacity;
    uint32_t *slot; /* hash table: index + 1 into item, 0 free; a power of two */
    size_t slot_count;
} pl_report_components;

pl_report_group pl_report_group_of(pl_role);
pl_status pl_report_components_create(const pl_plan *, unsigned depth, pl_report_components *, pl_error *);
void pl_report_components_deinit(pl_report_components *);

/* ---- programs.c ---- */
typedef struct pl_report_program {
    pl_id region;
    uint64_t first, last;   /* positions */
    uint64_t peak_bytes;    /* sum of what is alive then, rounded to the alignment, persistent values included */
    uint64_t peak_position; /* first <= it < last, when there are nodes */
    double seconds;         /* of one run, predicted; 0 when not known */
    double flops;           /* likewise, by the operators' cost rules */
} pl_report_program;

typedef struct pl_report_programs {
    pl_report_program *item;
    size_t count;
} pl_report_programs;
/* alive: of pl_plan_alive. */
pl_status pl_report_programs_create(const pl_plan *, const uint64_t *alive, pl_report_programs *, pl_error *);
void pl_report_programs_deinit(pl_report_programs *);

typedef struct pl_report_kind {
    pl_op op;
    uint64_t nodes, runs; /* runs: trips counted */
    double seconds, flops, bytes;
    bool is_estimated; /* of the seconds, some */
} pl_report_kind;
/* Fills kind[PL_OP_COUNT] for one run of a program, the costliest first; returns how many operators it has. */
size_t pl_report_kinds(const pl_plan *, pl_id program, pl_report_kind *kind);

/* ---- peak.c ---- */
typedef struct pl_report_alive {
    const pl_block *block;
    pl_id value, node; /* one of them: a value, or the node whose workspace it is */
} pl_report_alive;
/* What is alive at the peak, but not always: largest first. *alive is the caller's to pl_free. */
pl_status pl_report_alive_at_peak(const pl_plan *, pl_report_alive **alive, size_t *count, pl_error *);

#endif
