/* Rotary position embedding, by given cosines and sines or by those of all positions, in the workspace: the team makes
 * them, then turns the rows by them.
 *
 * Within a block of positions each cosine and sine follow from the position before by the formulas for the sum of two
 * angles, in double: four products instead of cos and sin, and a block of them loses less than 2⁻⁴⁴, which an f32 does
 * not see. Where blocks begin does not depend on the team, so neither do the bits of the table. */
#include <assert.h>
#include <math.h>

#include "backend/parallel.h"
#include "backend/tokens.h"
#include "kernels/kernels.h"

enum { BLOCK = 64 }; /* positions */

typedef struct work {
    const pl_rope_call *call;
    const pl_kernels *kernels;
    float *cosine, *sine;
    pl_rope how;
} work;

static int64_t table_elems(const pl_rope_call *c) { return c->positions * (c->head_width / 2); }

uint64_t pl_rope_workspace_bytes(const pl_rope_call *c, pl_team team)
{
    (void)team;
    return c->cosine ? 0 : (2 * (uint64_t)table_elems(c) * sizeof(float) + 63) / 64 * 64;
}

/* Number i of each of the positions. */
static void fill_column(const work *w, pl_range positions, int64_t i)
{
    const int64_t half = w->how.half;
    const double step = pow(w->call->theta, -(double)i / (double)half), sign = w->call->adjoint ? -1 : 1;
    const double cos_step = cos(step), sin_step = sin(step);
    double c = cos((double)positions.begin * step), s = sin((double)positions.begin * step);
    for (int64_t t = positions.begin; t < positions.end; t++) {
        const double turned = c * cos_step - s * sin_step;
        w->cosine[t * half + i] = (float)c, w->sine[t * half + i] = (float)(sign * s);
        s = s * cos_step + c * sin_step, c = turned;
    }
}

static void rope_part(const void *context, int part, int parts)
{
    const work *w = context;
    const pl_rope_call *c = w->call;
    pl_range rows = pl_range_of_part(c->rows, 1, part, parts), own = pl_range_of_part(c->positions, BLOCK, part, parts);
    for (int64_t t = own.begin; t < own.end && !c->cosine; t += BLOCK) {
        pl_range block = {t, t + BLOCK < own.end ? t + BLOCK : own.end};
        for (int64_t i = 0; i < w->how.half; i++) fill_column(w, block, i);
    }
    pl_barrier();
    w->kernels->rope_rows(&w->how, rows.begin, rows.end, c->type, c->x, c->y);
}

void pl_rope_exec(const pl_rope_call *c, void *workspace, pl_team team)
{
    assert(c->head_width % 2 == 0 && c->rotated <= c->heads);
    work w = {.call = c, .kernels = pl_kernels_get(team.isa)};
    w.how = (pl_rope){c->positions, c->heads, c->rotated, c->head_width / 2, c->cosine, c->sine};
    if (!c->cosine) {
        w.cosine = workspace, w.sine = w.cosine + table_elems(c);
        w.how.cosine = w.cosine, w.how.sine = w.sine;
    }
    pl_parallel(team, c->rows * c->heads * c->head_width, rope_part, &w);
}

/* ---- rows of cosines and sines, from angles in double, each rounded once ---- */

uint64_t pl_rope_table_workspace_bytes(const pl_rope_table_call *c, pl_team team)
{
    (void)team;
    return ((uint64_t)c->half * sizeof(double) + 63) / 64 * 64;
}

typedef struct table_work {
    const pl_rope_table_call *call;
    const double *frequency;
} table_work;

static void table_part(const void *context, int part, int parts)
{
    const table_work *w = context;
    const pl_rope_table_call *c = w->call;
    const pl_range rows = pl_range_of_part(c->samples * c->positions, 1, part, parts);
    for (int64_t r = rows.begin; r < rows.end; r++)
        for (int64_t j = 0; j < c->half; j++) {
            const int64_t first = c->position ? c->position[r / c->positions] : 0;
            const double angle = (double)(first + r % c->positions) * w->frequency[j];
            c->cosine[r * c->half + j] = (float)(c->magnitude * cos(angle));
            c->sine[r * c->half + j] = (float)(c->magnitude * sin(angle));
        }
}

void pl_rope_table_exec(const pl_rope_table_call *c, void *workspace, pl_team team)
{
    enum { COST = 32 }; /* of an angle, in elements of other work */
    const pl_rope_scaling scaling = {.kind = c->kind,
                                     .theta = c->theta,
                                     .factor = c->factor,
                                     .original_context = c->original_context,
                                     .low_factor = c->low,
                                     .high_factor = c->high,
                                     .beta_slow = c->low,
                                     .beta_fast = c->high,
                                     .keeps_fractions = c->keeps_fractions};
    double *frequency = workspace;
    for (int64_t j = 0; j < c->half; j++)
        frequency[j] = pl_rope_frequency(&scaling, c->half, j) / (c->divisor ? (double)c->divisor[j] : 1);
    pl_parallel(team, COST * c->samples * c->positions * c->half, table_part, &(table_work){c, frequency});
}
