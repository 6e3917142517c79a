/* The plan: a bound graph (its node order is the schedule), where every value and workspace lies in the arena, what
 * else the process will hold, and how long each node is predicted to take. It prints as text and reads back; a run
 * needs nothing but that text and the weights.
 *
 * Time in a plan is a position: the i-th node of the graph, over all programs in their order. Lives are half-open.
 * Values that repeat with a region (read inside, made outside) live to the region's end; persistent values live always;
 * inputs, states and outputs of a program live as long as the program.
 *
 * The plan is the allocator: offsets printed here are the addresses (minus base) that run/ uses. */
#ifndef PL_PLAN_PLAN_H
#define PL_PLAN_PLAN_H

#include "plimsoll/plan.h"

#include "base/facts.h"
#include "base/process.h"
#include "base/words.h"
#include "ir/graph.h"
#include "ir/properties.h"
#include "kernels/team.h"
#include "plan/advice.h"
#include "plan/contexts.h"
#include "plan/work.h"

enum { PL_PLAN_ALIGNMENT = 64, PL_PLAN_DISK_ROWS_MAX = 8 };

typedef struct pl_block {
    uint64_t offset, bytes; /* in the arena of its space */
    uint32_t first, last;   /* positions [first, last); 0, 0: no block */
    pl_id space;            /* of the graph */
} pl_block;

/* One for each space of the graph. */
typedef struct pl_plan_arena {
    uint64_t bytes, lower_bound_bytes;
    uint64_t peak_position; /* a position at which the sum of what is alive is largest */
    const char *heuristic;  /* of the placer; a constant, or in `names` of the plan; NULL: nothing lies there */
    double place_seconds;
} pl_plan_arena;

#define PL_PLAN_DISK_RESULTS    "results"
#define PL_PLAN_DISK_CHECKPOINT "checkpoint being written"

/* What files the run keeps or needs for a moment. */
enum { PL_PLAN_DATA_BYTES = 400 };

typedef struct pl_plan_disk_row {
    char name[PL_MEMORY_NAME_BYTES];
    uint64_t bytes;
} pl_plan_disk_row;

struct pl_plan {
    pl_command command; /* that it is for */
    pl_graph *graph;
    pl_team team;
    pl_block *value;        /* [values], filled for storage roots */
    pl_block *workspace;    /* [nodes] */
    double *seconds;        /* [nodes] predicted, one execution; negative: not known */
    bool *estimated;        /* [nodes] from other sizes or rates; not a part of the text. NULL: nothing is said */
    pl_duration *time;      /* [regions] of one run of a program; likewise */
    pl_rates rates;         /* of this machine; zeros: not known */
    double estimated_share; /* of the seconds of the program that is trained or repeated */
    uint64_t batch; /* samples of a training step; the last micro-batch holds what is left of it. 0: no training */
    pl_plan_arena arena[PL_SPACES_MAX]; /* as the graph's spaces; p->arena->bytes is that of the process's memory */
    pl_pool *names;                     /* of a plan that was read; NULL otherwise */
    bool huge_pages;                    /* of the process's memory */
    pl_process_options process;
    pl_process_planned ledger;   /* memory of the whole process, row by row */
    uint64_t writer_cache_bytes; /* page cache of files being written: charged, not resident */
    size_t disk_count;
    pl_plan_disk_row disk[PL_PLAN_DISK_ROWS_MAX];
    char budget[128]; /* how `memory.budget: auto` came about, in words; not a part of the text. "": a size */
    char data[PL_PLAN_DATA_BYTES]; /* what it is trained on, in words; likewise. "": nothing is said */
    char *config;                  /* the effective config as YAML */
    uint64_t numerics_hash;        /* of everything that decides the numbers of the run */
    pl_facts identity;   /* hashes of what the data were made from when this was planned; none: no data are read */
    pl_facts validation; /* what this command evaluates of the validation part: the items, and what they stand for */
    pl_words words;      /* of system and command; not a part of the text. Nothing in it: pl_words_plain */
    int held;            /* descriptor of a file that a run reads (stream/data.h); of who planned alone. 0: none */
    pl_work *work;       /* all groups, this plan's the largest; not a part of the text. NULL: not looked over */
    pl_advice *advice;   /* on that work; not a part of the text. NULL: none was asked for */
    uint64_t context,
        context_most; /* of a pretrained model: its length, and the most it was made for; likewise. 0: none */
    /* so few items are read, and texts written, at once for a budget to suffice; likewise. 0: as the config says */
    uint32_t chunk, sequences;
    pl_contexts *contexts; /* of a pretrained model; not a part of the text. NULL: they were not looked at */
};

/* Seconds that one execution of a node takes; negative: not known. */
typedef struct pl_cost_model {
    double (*seconds)(void *context, const pl_graph *, const pl_node *);
    pl_duration (*predict)(void *context, const pl_graph *, const pl_node *); /* NULL: they are exact */
    void *context;
} pl_cost_model;
pl_duration pl_cost_predict(const pl_cost_model *, const pl_graph *, const pl_node *);

typedef struct pl_plan_options {
    pl_team team;
    bool huge_pages;
    int helper_threads; /* loader */
    pl_process_options process;
    pl_cost_model cost; /* seconds NULL: no prediction */
    bool quick;         /* what the quick passes of the placer leave above the lower bound is not searched for */
} pl_plan_options;

/* ---- plan.c ---- */
/* Takes the graph (bound, legal) on success. */
pl_status pl_plan_create(pl_graph *, const pl_plan_options *, pl_plan **, pl_error *);
/* No plan of this graph is charged less: what is alive at once, without the heap and without a placement. A tenth of
 * the work of a plan. The graph stays the caller's, as it was. */
pl_status pl_plan_find_least(pl_graph *, const pl_plan_options *, uint64_t *charged_bytes, pl_error *);
/* Seconds for every node, and of every program the interval, where the model tells of it; replaces those it has.
 * PL_E_NOMEM. */
pl_status pl_plan_predict(pl_plan *, const pl_cost_model *, pl_error *);
/* One run of the program, as above; an interval of nothing but the time where nothing is said. Seconds negative: not
 * known. */
pl_duration pl_plan_program_time(const pl_plan *, pl_id program);
/* The process's rows again, after its heap or threads were settled. */
pl_status pl_plan_account(pl_plan *, int helper_threads, pl_error *);
/* Predicted seconds of one run of the program, its regions' trips counted; negative when any of its nodes' are not
 * known: a sum that lacks a part is no prediction. */
double pl_plan_program_seconds(const pl_plan *, pl_id program);
/* Of these, what does not run where the data bring what it would make, from an earlier time. */
double pl_plan_spared_seconds(const pl_plan *, pl_id program);

/* What the plan calls its items and samples. */
static inline const pl_words *pl_plan_words_of(const pl_plan *p) { return p->words.item ? &p->words : &pl_words_plain; }

/* ---- live.c: positions and lives ---- */
pl_status pl_plan_find_lives(const pl_graph *, pl_block *value, pl_error *);
void pl_plan_program_span(const pl_graph *, pl_id program, uint64_t *first, uint64_t *last);
uint64_t pl_node_trips(const pl_graph *, const pl_node *); /* how often it runs in one run of its program */
/* Sum of the bytes alive in a space at each position (blocks and workspaces); sum has node_count elements. */
void pl_plan_alive(const pl_plan *, pl_id space, uint64_t *sum);
/* Where a node's workspace lies: in the memory that its kernel computes in. */
pl_id pl_plan_workspace_space(const pl_graph *, const pl_node *);

/* ---- check.c ---- */
/* Checks that the graph is legal, that every value and workspace has its bytes in the arena as long as needed, and
 * that no two that are alive together overlap. The separate judge of every plan, made here or read from a file. */
pl_status pl_plan_check(const pl_plan *, pl_error *);

/* ---- print.c, parse.c ---- */
void pl_plan_print(const pl_plan *, pl_str *out);
pl_status pl_plan_parse(const char *name, const char *text, size_t bytes, pl_plan **, pl_error *);

/* ---- copy.c ---- */
/* The plan that reading this one's text would give: it holds exactly as much of the heap. */
pl_status pl_plan_copy_as_read(const pl_plan *, pl_plan **, pl_error *);

#endif
