/* A network while it is built: the programs of one graph, and the weights and states that last between them. Layers
 * (layers/layers.h) and archs (models/) build into it. Nothing here knows a config: sizes, names and first values are
 * arguments, for names seed random numbers and appear in files of weights. */
#ifndef PL_LAYERS_NET_H
#define PL_LAYERS_NET_H

#include "ir/index.h"
#include "ir/inputs.h"
#include "ir/op.h"

enum { PL_NET_NAME_BYTES = 256 }; /* of a weight, with its end */

typedef struct pl_net {
    pl_error *err;
    pl_builder b;     /* of the program that is being built; the first failure stays there */
    pl_builder init;  /* of the program "init", which gives each weight and state its first value */
    pl_names lasting; /* weights and states, and what a program packs of them */
    bool training;    /* the program is to be differentiated */
    bool is_frozen;   /* weights that are made are not trained */
    /* Sets how a frozen weight that comes from files is stored, and where; NULL: as its type, in memory. */
    void (*store)(const void *files, pl_value *);
    const void *files;
    /* How what meets a weight in blocks is rounded, so that whole numbers are multiplied; PL_ENCODING_F32: not. */
    pl_encoding flow;
    pl_id flowing, rounded;      /* what was rounded last, and what it became */
    uint64_t seed;               /* of first values */
    int64_t dropout_seed;        /* of what is drawn at each step */
    pl_id input[PL_INPUT_COUNT]; /* rows of ir/inputs.def; PL_NONE: not made */
} pl_net;

/* Begins the graph's program "init", which must be its first region. */
void pl_net_init(pl_net *, pl_graph *, pl_id init, pl_error *);
void pl_net_deinit(pl_net *);

/* ---- first values ---- */

typedef enum pl_init_kind {
    PL_INIT_ABSENT, /* there is no such weight */
    PL_INIT_READ,   /* it has no first value: whoever runs the programs reads it from a file */
    PL_INIT_ALL,
    PL_INIT_NORMAL,
    PL_INIT_TRUNCATED,
    PL_INIT_UNIFORM,
} pl_init_kind;

typedef struct pl_init {
    pl_init_kind kind;
    union {
        double value; /* ALL */
        double std;   /* NORMAL, TRUNCATED */
        struct {      /* UNIFORM */
            double low, high;
        };
    };
} pl_init;

static inline pl_init pl_init_all(double value) { return (pl_init){.kind = PL_INIT_ALL, .value = value}; }
static inline pl_init pl_init_normal(double std) { return (pl_init){.kind = PL_INIT_NORMAL, .std = std}; }
/* std is the deviation after cutting at two deviations. */
static inline pl_init pl_init_truncated(double std) { return (pl_init){.kind = PL_INIT_TRUNCATED, .std = std}; }
/* Seeded by the input ITEM, too, if the network has it. */
static inline pl_init pl_init_uniform(double low, double high)
{
    return (pl_init){.kind = PL_INIT_UNIFORM, .low = low, .high = high};
}
static inline pl_init pl_init_within(double bound) { return pl_init_uniform(-bound, bound); }

/* ---- what lasts: made, with its node in "init", the first time that its name is asked for; the same one afterwards.
 * PL_NONE where it is absent, and after a failure. A name that is asked for as another kind is refused. ---- */

pl_id pl_net_weight(pl_net *, pl_init, pl_dtype, pl_shape, const char *fmt, ...) PL_PRINTF(5, 6);
/* f32 state that evaluation needs, too: it is saved with the weights. */
pl_id pl_net_state(pl_net *, pl_init, pl_shape, const char *fmt, ...) PL_PRINTF(4, 5);
/* State that only a training needs to go on, saved with the moments; and one that begins as a copy of another value. */
pl_id pl_net_carried(pl_net *, pl_init, pl_dtype, pl_shape, const char *fmt, ...) PL_PRINTF(5, 6);
pl_id pl_net_carried_copy(pl_net *, pl_id of, const char *fmt, ...) PL_PRINTF(3, 4);

/* From here on new weights are frozen, if is_frozen is true or they already were. Returns the previous setting, which
 * thaw restores when the part is done. */
bool pl_net_freeze(pl_net *, bool is_frozen);
void pl_net_thaw(pl_net *, bool before);

/* When all programs are there: brings what a program does once a step in front of what it repeats (the packing of
 * signs), and the nodes of each program together. */
pl_status pl_net_finish(pl_net *);

/* ---- what layers ask ---- */

/* Extents of a value; 1 after a failure. */
int64_t pl_net_extent(const pl_net *, pl_id x, int axis);
int64_t pl_net_last_extent(const pl_net *, pl_id x);
/* The number of the scope's random stream, or (part: not "") of a named part of it. */
int64_t pl_net_stream(const pl_net *, const char *part);

#endif
