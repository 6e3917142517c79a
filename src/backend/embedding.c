/* Embedding. Forward, rows are shared out. Backward, the same table row may be hit by many tokens, so the table is
 * shared out instead: blocks of table rows are dealt to the parts in turn, and each part reads all tokens and adds, in
 * their order, those that are its own. (Sharing out columns was six times slower: what the prefetcher fetches beyond
 * the end of one part's columns is what another part is writing.) */
#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "backend/calls.h"
#include "backend/parallel.h"
#include "kernels/kernels.h"

typedef struct embedding_work {
    const pl_embedding_call *call;
    const pl_kernels *kernels;
} embedding_work;

/* As the kernel does it. A row has few numbers, so they are widened one by one. */
static void widen_rows(const pl_embedding_call *c, pl_range rows, const float *places)
{
    const int64_t row_bytes = pl_encoding_row_bytes(c->encoding, c->width);
    float *y = (float *)c->y + rows.begin * c->window * c->width;
    for (int64_t r = rows.begin; r < rows.end; r++)
        for (int64_t j = 0, t = r % c->tokens_per_sequence; j < c->window; j++, y += c->width) {
            const int32_t token = j <= t ? c->token[r - j] : -1;
            if (token >= 0)
                pl_encoding_widen(c->encoding, (const char *)c->table + token * row_bytes, c->width, y);
            else
                memset(y, 0, (size_t)c->width * sizeof *y);
            for (int64_t d = 0; d < c->width && places; d++) y[d] += places[t * c->width + d];
        }
}

static void embedding_part(const void *work, int part, int parts)
{
    const embedding_work *w = work;
    const pl_embedding_call *c = w->call;
    const pl_range rows = pl_range_of_part(c->batch * c->tokens_per_sequence, 1, part, parts);
    for (int64_t begin = rows.begin, end; begin < rows.end; begin = end) {
        const int64_t b = begin / c->tokens_per_sequence, next = (b + 1) * c->tokens_per_sequence;
        const int64_t first = c->position ? pl_position_of(c->position, c->positions, b) : 0;
        const void *places = c->position_table ? pl_real_at(c->tables, c->position_table, first * c->width) : NULL;
        end = c->positions > 1 && next < rows.end ? next : rows.end;
        if (c->encoding)
            widen_rows(c, (pl_range){begin, end}, places);
        else
            w->kernels->embedding_rows(begin, end, c->tokens_per_sequence, c->width, c->window, c->token, c->tables,
                                       c->table, places, c->type, c->y);
    }
}

void pl_embedding_exec(const pl_embedding_call *call, pl_team team)
{
    assert(call->width > 0 && call->window > 0 && (call->window == 1 || !call->position_table));
    assert(call->tables == PL_REAL_F32 || call->tables == call->type);
    assert(!call->encoding || call->type == PL_REAL_F32);
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
    w->kernels->embedding_bwd(part, parts, c->batch, c->tokens_per_sequence, c->width, c->window, c->token, c->type,
                              c->dy, c->dtable, c->dposition);
}

void pl_embedding_bwd_exec(const pl_embedding_bwd_call *call, pl_team team)
{
    assert(call->width > 0 && call->window > 0 && (call->window == 1 || !call->dposition));
    embedding_bwd_work work = {call, pl_kernels_get(team.isa)};
    pl_parallel(team, call->batch * call->tokens_per_sequence * call->width * call->window, embedding_bwd_part, &work);
}
