/* Where data comes from: a source fills the ports of a LOAD node, one micro-batch (a slot) at a time. What it writes is
 * a pure function of the part, the step and the sample's number, with the seed that it was opened with: whatever thread
 * fills a slot, and whatever was filled before it, the bytes are the same; so a run can begin at any step.
 *
 * The rooms of data (data/ is that of text) provide sources; ring.h has them filled ahead; nothing else knows what kind
 * a source is of. */
#ifndef PL_STREAM_SOURCE_H
#define PL_STREAM_SOURCE_H

#include "base/error.h"
#include "ir/graph.h"

typedef enum pl_part { PL_PART_TRAIN, PL_PART_VALIDATION } pl_part;

/* One value of a micro-batch: k-th port, k-th output of the LOAD node. */
typedef struct pl_port {
    const char *name; /* "tokens": the value's name in the graph behind its program's */
    pl_dtype dtype;
    uint64_t bytes;
    int64_t below; /* ids: each is one of [0, below), or negative for none; 0: no ids */
    void *at;      /* aligned to 64; NULL in a description */
} pl_port;

enum { PL_PORTS_MAX = PL_NODE_OUT_MAX - 1 }; /* the last output of LOAD is kept for the sample's number */

/* One micro-batch. Rows beyond the samples that there are hold what counts nothing. */
typedef struct pl_slot {
    pl_port port[PL_PORTS_MAX];
    uint32_t ports; /* 0: the stream has ended */
    pl_part part;
    uint64_t step;
    uint32_t micro, micro_count; /* this is number `micro` of micro_count in the step */
    uint32_t rows;               /* samples that a slot has room for: the micro-batch */
    uint64_t first_sample;       /* global number of the first row: step · batch + micro · rows */
    uint64_t counted;            /* items that enter the loss (tokens whose target is known) */
} pl_slot;

/* What filling takes. */
typedef struct pl_source_layout {
    pl_port port[PL_PORTS_MAX];
    uint32_t ports;
    uint64_t scratch_bytes; /* of a thread that fills */
} pl_source_layout;

typedef struct pl_source pl_source;

/* What is told of single samples beside them: a port of u8, whose bit k says of a sample what text[k] says of several
 * ("are longer than a page"). */
typedef struct pl_source_remarks {
    uint32_t port;
    const char *const *text; /* NULL behind the last; NULL: nothing is told */
} pl_source_remarks;

typedef struct pl_source_kind {
    const char *name;
    /* Of micro-batches of so many samples. PL_E_CONFIG when the numbers overflow. */
    pl_status (*describe)(const pl_source *, uint32_t micro_batch, pl_source_layout *, pl_error *);
    /* Once for a thread, before its first slot: scratch is scratch_bytes of zeros, aligned to 64. */
    void (*prepare)(const pl_source *, void *scratch);
    /* Writes the ports and `counted`; the rest of the slot says what is wanted. Asks for no memory. */
    pl_status (*fill)(const pl_source *, void *scratch, pl_slot *, pl_error *);
    /* Items of a step that enter the loss: known before its first micro-batch. */
    uint64_t (*count)(const pl_source *, pl_part, uint64_t step);
    /* Of a source whose model gives a port back (a STORE in its place), so that what was computed once is known the
     * next time; else NULL. known: just before "committed", what the values depend on beside the source (weights).
     * keep: what was made of a slot, whose ports are gone; by who runs the programs. tell: a sentence about what has
     * happened since it was last asked; false: nothing. The last two ask for no memory. */
    pl_status (*known)(const pl_source *, uint64_t hash, pl_error *);
    pl_status (*keep)(const pl_source *, const pl_slot *, uint32_t port, const void *made, pl_error *);
    bool (*tell)(const pl_source *, char *text, size_t room);
    const char *verb;      /* what filling is: "draw"; NULL: "fill" */
    const char *cache_key; /* of the config: names where what was filled can be kept; NULL: nowhere */
    pl_source_remarks remarks;
} pl_source_kind;

/* The beginning of every source. */
struct pl_source {
    const pl_source_kind *kind;
    uint32_t batch;              /* samples a step */
    uint32_t at_once;            /* samples in memory at once that are asked for; 0: the planner chooses */
    uint32_t threads;            /* that fill side by side; 0: one */
    uint64_t steps_per_epoch[2]; /* by part; 0: there is no such part */
    uint64_t samples[2];         /* by part; 0: not told, as many as fill its steps */
};

static inline uint32_t pl_source_threads(const pl_source *s) { return s && s->threads ? s->threads : s ? 1 : 0; }

#endif
