/* One value steers another: gates, blends, feature-wise affine maps, sums over time with weights from a softmax; as
 * plain values, see calls.h, whose rules hold here too. */
#ifndef PL_BACKEND_MODULATION_H
#define PL_BACKEND_MODULATION_H

#include <stdint.h>

#include "base/narrow.h"
#include "kernels/team.h"

/* y = x·σ(g) */
typedef struct pl_gate_call {
    int64_t positions, channels, gates; /* gates of a position: its channels, or 1 for all of them */
    const void *x, *g;
    void *y; /* may be x */
    pl_real type;
} pl_gate_call;
void pl_gate_exec(const pl_gate_call *, pl_team);

/* dx = dy·σ(g), dg = dy·x·σ'(g), summed over channels where they share a gate */
typedef struct pl_gate_bwd_call {
    int64_t positions, channels, gates;
    const void *dy, *x, *g;
    void *dx, *dg; /* either may be NULL: not wanted; dx may be dy or x */
    pl_real type;
} pl_gate_bwd_call;
void pl_gate_bwd_exec(const pl_gate_bwd_call *, pl_team);

/* y = σ(z)·a + (1 − σ(z))·b, of `shared` rows that follow one another with one logit. Where a and b are the same y is
 * just that, and at the ends of the gate it is a or b. */
typedef struct pl_blend_call {
    int64_t rows, shared, width; /* rows: a multiple of shared */
    const void *a, *b, *z;       /* z [rows / shared] */
    void *y;                     /* may be a or b */
    float *g;                    /* σ(z); NULL: not wanted */
    pl_real type;
} pl_blend_call;
void pl_blend_exec(const pl_blend_call *, pl_team);

/* da = σ(z)·dy, db = (1 − σ(z))·dy, dz = σ'(z)·Σ dy·(a − b) over its rows, each row's sum first, rows ascending */
typedef struct pl_blend_bwd_call {
    int64_t rows, shared, width;
    const void *dy, *a, *b, *z;
    void *da, *db,
        *dz; /* each may be NULL: not wanted; da may be dy or a, db dy or b, not both the same; dz may be z */
    pl_real type;
} pl_blend_bwd_call;
void pl_blend_bwd_exec(const pl_blend_bwd_call *, pl_team);

/* y[b,p,c] = s[b,c]·x[b,p,c] + s[b,C+c] */
typedef struct pl_film_call {
    int64_t samples, positions, channels; /* positions of a sample */
    const void *x, *s;
    void *y;              /* may be x */
    pl_real type, s_type; /* s is f32, or of the type of x */
} pl_film_call;
uint64_t pl_film_workspace_bytes(const pl_film_call *, pl_team);
void pl_film_exec(const pl_film_call *, void *workspace, pl_team);

/* dx = s·dy, ds[b] = Σ_p dy·x and, behind it, Σ_p dy. The sums of a sample depend on it alone. */
typedef struct pl_film_bwd_call {
    int64_t samples, rows, positions, channels; /* rows of a sample, positions of a row */
    const void *dy, *x, *s;
    void *dx, *ds; /* either may be NULL: not wanted; dx may be dy or x */
    pl_real type, s_type;
} pl_film_bwd_call;
uint64_t pl_film_bwd_workspace_bytes(const pl_film_bwd_call *, pl_team);
void pl_film_bwd_exec(const pl_film_bwd_call *, void *workspace, pl_team);

/* y[b] = Σ_t softmax(e[b])_t·x[b,t] */
typedef struct pl_softmax_pool_call {
    int64_t samples, times, channels;
    const void *x, *e;
    void *y;
    pl_real type;
} pl_softmax_pool_call;
uint64_t pl_softmax_pool_workspace_bytes(const pl_softmax_pool_call *, pl_team);
void pl_softmax_pool_exec(const pl_softmax_pool_call *, void *workspace, pl_team);

/* With π = softmax(e[b]) and d_t = dy·x[b,t]: dx[b,t] = π_t·dy, de[b,t] = π_t·(d_t − Σ π d). */
typedef struct pl_softmax_pool_bwd_call {
    int64_t samples, times, channels;
    const void *dy, *x, *e;
    void *dx, *de; /* either may be NULL: not wanted; dx may be x */
    pl_real type;
} pl_softmax_pool_bwd_call;
uint64_t pl_softmax_pool_bwd_workspace_bytes(const pl_softmax_pool_bwd_call *, pl_team);
void pl_softmax_pool_bwd_exec(const pl_softmax_pool_bwd_call *, void *workspace, pl_team);

#endif
