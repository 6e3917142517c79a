/* Embedding. Forward, rows are shared out. Backward, the same table row may be hit by many tokens, so the table is shared
 * out instead: each element of dE and dP has one owner, who adds to it in the order of the tokens. The owner of an
 * element follows from its column strip first and, when the team is larger than the strips, from its row number. */
#include <assert.h>
#include <stddef.h>

#include "backend/calls.h"
#include "backend/parallel.h"
#include "kernels/kernels.h"

enum { STRIP_FLOATS = 16 }; /* a cache line: two owners never write the same one */

typedef struct embedding_work {
    const pl_embedding_call *call;
    const pl_kernels *kernels;
} embedding_work;

static void embedding_part(const void *work, int part, int parts)
{
    const embedding_work *w = work;
    const pl_embedding_call *c = w->call;
    int64_t first = c->position ? *c->position : 0;
    pl_range rows = pl_range_of_part(c->batch * c->tokens_per_sequence, 1, part, parts);
    w->kernels->embedding_rows(rows.begin, rows.end, c->tokens_per_sequence, c->width, c->window, c->token, c->table,
                               c->position_table ? c->position_table + first * c->width : NULL, c->y);
}

void pl_embedding_exec(const pl_embedding_call *call, pl_team team)
{
    assert(call->width > 0 && call->window > 0 && (call->window == 1 || !call->position_table));
    embedding_work work = {call, pl_kernels_get(team.isa)};
    pl_parallel(team, call->batch * call->tokens_per_sequence * call->width * call->window, embedding_part, &work);
}

/* ---- backward ---- */

typedef struct embedding_bwd_work {
    const pl_embedding_bwd_call *call;
    const pl_kernels *kernels;
} embedding_bwd_work;

static void embedding_bwd_part(const void *work, int part, int parts)
{
    const embedding_bwd_work *w = work;
    const pl_embedding_bwd_call *c = w->call;
    int64_t strips_at_most = (c->width + STRIP_FLOATS - 1) / STRIP_FLOATS;
    int strips = parts < strips_at_most ? parts : (int)strips_at_most;
    int groups = parts / strips; /* owners per strip; parts that are left over rest */
    if (part >= strips * groups) return;
    pl_range columns = pl_range_of_part(c->width, STRIP_FLOATS, part % strips, strips);
    w->kernels->embedding_bwd_columns(columns.begin, columns.end, part / strips, groups, c->batch,
                                      c->tokens_per_sequence, c->width, c->window, c->token, c->dy, c->dtable,
                                      c->dposition);
}

void pl_embedding_bwd_exec(const pl_embedding_bwd_call *call, pl_team team)
{
    assert(call->width > 0 && call->window > 0 && (call->window == 1 || !call->dposition));
    embedding_bwd_work work = {call, pl_kernels_get(team.isa)};
    pl_parallel(team, call->batch * call->tokens_per_sequence * call->width * call->window, embedding_bwd_part, &work);
}
