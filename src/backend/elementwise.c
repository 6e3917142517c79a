/* Elementwise calls: the range is cut into a piece per thread at cache-line boundaries. Each element's value depends on
 * its inputs and its index alone, so the cut does not show. Short ranges stay on one thread. */
#include <omp.h>
#include <stddef.h>
#include <string.h>

#include "backend/calls.h"
#include "kernels/kernels.h"

enum { LINE_ELEMS = 16, SERIAL_ELEMS = 16384, DROPOUT_PIECE = 4096 };

typedef struct range {
    int64_t begin, count;
} range;

static int threads_for(int64_t elems, pl_team team) { return elems < SERIAL_ELEMS ? 1 : team.threads; }

/* This thread's piece of [0, count), in whole units but for the last. Call inside a parallel region. */
static range my_piece(int64_t count, int64_t unit)
{
    int64_t units = (count + unit - 1) / unit, threads = omp_get_num_threads(), me = omp_get_thread_num();
    int64_t begin = units * me / threads * unit, end = units * (me + 1) / threads * unit;
    end = end < count ? end : count;
    return (range){begin, end > begin ? end - begin : 0};
}

void pl_activation_exec(const pl_activation_call *c, pl_team team)
{
    const pl_kernels *kernels = pl_kernels_get(team.isa);
    int threads = threads_for(c->count, team);
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        range r = my_piece(c->count, LINE_ELEMS);
        kernels->activation(c->act, r.count, c->x + r.begin, c->y + r.begin);
    }
}

void pl_activation_bwd_exec(const pl_activation_bwd_call *c, pl_team team)
{
    const pl_kernels *kernels = pl_kernels_get(team.isa);
    int threads = threads_for(c->count, team);
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        range r = my_piece(c->count, LINE_ELEMS);
        kernels->activation_bwd(c->act, r.count, c->x + r.begin, c->dy + r.begin, c->dx + r.begin);
    }
}

void pl_add_exec(const pl_add_call *c, pl_team team)
{
    const pl_kernels *kernels = pl_kernels_get(team.isa);
    int threads = threads_for(c->count, team);
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        range r = my_piece(c->count, LINE_ELEMS);
        kernels->add(r.count, c->a + r.begin, c->b + r.begin, c->y + r.begin);
    }
}

void pl_fill_exec(const pl_fill_call *c, pl_team team)
{
    int threads = threads_for((int64_t)(c->bytes / sizeof(float)), team);
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        range r = my_piece((int64_t)c->bytes, LINE_ELEMS * (int64_t)sizeof(float));
        memset((char *)c->y + r.begin, 0, (size_t)r.count);
    }
}

/* Piece `index` of the call: DROPOUT_PIECE elements of one sample. */
static void drop_piece(const pl_dropout_call *c, const pl_kernels *kernels, pl_philox philox, int64_t index)
{
    int64_t pieces = (c->elems_per_sample + DROPOUT_PIECE - 1) / DROPOUT_PIECE, sample = index / pieces;
    int64_t first = index % pieces * DROPOUT_PIECE, rest = c->elems_per_sample - first;
    pl_dropout_range r = {.philox = philox,
                          .step = (uint32_t)*c->step,
                          .sample = (uint64_t)(*c->first_sample + sample),
                          .first = first,
                          .count = rest < DROPOUT_PIECE ? rest : DROPOUT_PIECE,
                          .probability = c->probability};
    int64_t at = sample * c->elems_per_sample + first;
    kernels->dropout(&r, c->x + at, c->residual ? c->residual + at : NULL, c->y + at);
}

void pl_dropout_exec(const pl_dropout_call *c, pl_team team)
{
    const pl_kernels *kernels = pl_kernels_get(team.isa);
    int64_t pieces = c->samples * ((c->elems_per_sample + DROPOUT_PIECE - 1) / DROPOUT_PIECE);
    int threads = threads_for(c->samples * c->elems_per_sample, team);
    pl_philox philox = pl_philox_init(c->seed, c->stream);
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        range r = my_piece(pieces, 1);
        for (int64_t i = r.begin; i < r.begin + r.count; i++) drop_piece(c, kernels, philox, i);
    }
}
