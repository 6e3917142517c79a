/* A network while it is built: the programs of one graph, and the weights and states that last between them. Layers
 * (layers/layers.h) and archs (models/) build into it. Nothing here knows a config: sizes, names and first values are
 * arguments, for names seed random numbers and stand in files of weights. */
#ifndef PL_LAYERS_NET_H
#define PL_LAYERS_NET_H

#include "ir/index.h"
#include "ir/inputs.h"
#include "ir/op.h"

typedef struct pl_net {
    pl_error *err;
    pl_builder b;                /* of the program that is being built; the first failure stays there */
    pl_builder init;             /* of the program "init", which gives each weight and state its first value */
    pl_names lasting;            /* weights and states */
    bool training;               /* the program is to be differentiated */
    bool is_frozen;              /* weights that are made are not trained */
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
    PL_INIT_ALL,
    PL_INIT_NORMAL,
    PL_INIT_TRUNCATED,
    PL_INIT_UNIFORM,
} pl_init_kind;

typedef struct pl_init {
    pl_init_kind kind;
    double low, high; /* ALL: high; NORMAL, TRUNCATED: the deviation is high */
} pl_init;

static inline pl_init pl_init_all(double value) { return (pl_init){PL_INIT_ALL, 0, value}; }
static inline pl_init pl_init_normal(double std) { return (pl_init){PL_INIT_NORMAL, 0, std}; }
/* Normal, cut at two deviations, and std is what is left of them. */
static inline pl_init pl_init_truncated(double std) { return (pl_init){PL_INIT_TRUNCATED, 0, std}; }
/* Numbers of the item that the input ITEM names, where that is made. */
static inline pl_init pl_init_uniform(double low, double high) { return (pl_init){PL_INIT_UNIFORM, low, high}; }
static inline pl_init pl_init_within(double bound) { return (pl_init){PL_INIT_UNIFORM, -bound, bound}; }

/* ---- what lasts: made, with its node in "init", the first time that its name is asked for; the same one afterwards.
 * Normal numbers are f32. PL_NONE where it is absent, and after a failure. ---- */

pl_id pl_net_weight(pl_net *, pl_init, pl_dtype, pl_shape, const char *fmt, ...) PL_PRINTF(5, 6);
/* f32 state that evaluation needs, too: it is saved with the weights. */
pl_id pl_net_state(pl_net *, pl_init, pl_shape, const char *fmt, ...) PL_PRINTF(4, 5);
/* State that training alone goes on with, saved with the moments; and one that begins as a copy of another value. */
pl_id pl_net_carried(pl_net *, pl_init, pl_dtype, pl_shape, const char *fmt, ...) PL_PRINTF(5, 6);
pl_id pl_net_carried_copy(pl_net *, pl_id of, const char *fmt, ...) PL_PRINTF(3, 4);

/* Weights that are made from here on are not trained, where `is_frozen` says so or it has been so already, which comes
 * out: who freezes a part sets that again at its end. */
bool pl_net_freeze(pl_net *, bool is_frozen);

/* ---- what layers ask ---- */

/* Extents of a value; 1 after a failure. */
int64_t pl_net_extent(const pl_net *, pl_id x, int axis);
int64_t pl_net_last_extent(const pl_net *, pl_id x);
/* The stream of random numbers of the scope, or ("" or a name) of one part of what it makes. */
int64_t pl_net_stream(const pl_net *, const char *part);

#endif
