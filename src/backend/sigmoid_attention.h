/* Attention with sigmoids (ir/op_sigmoid_attention.c), sample by sample: o_i = Σ_j (σ(scale·q_i·k_j) v_j + u_j). The
 * weights are f32 in the workspace, one sample's at a time. All matrices [samples, tokens, width], dense. */
#ifndef PL_BACKEND_SIGMOID_ATTENTION_H
#define PL_BACKEND_SIGMOID_ATTENTION_H

#include <stdint.h>

#include "base/narrow.h"
#include "kernels/team.h"

typedef struct pl_sigmoid_attention_call {
    int64_t samples, tokens, width;
    float scale;
    pl_real type;
    const void *q, *k, *v, *u;
    void *o;
} pl_sigmoid_attention_call;
uint64_t pl_sigmoid_attention_workspace_bytes(const pl_sigmoid_attention_call *, pl_team);
void pl_sigmoid_attention_exec(const pl_sigmoid_attention_call *, void *workspace, pl_team);

typedef struct pl_sigmoid_attention_bwd_call {
    int64_t samples, tokens, width;
    float scale;
    pl_real type;
    const void *d_o, *q, *k, *v;
    void *dq, *dk, *dv, *du; /* NULL: not wanted */
} pl_sigmoid_attention_bwd_call;
uint64_t pl_sigmoid_attention_bwd_workspace_bytes(const pl_sigmoid_attention_bwd_call *, pl_team);
void pl_sigmoid_attention_bwd_exec(const pl_sigmoid_attention_bwd_call *, void *workspace, pl_team);

#endif
