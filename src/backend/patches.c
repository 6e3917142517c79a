/* Patches of images, and positions added to every sample. Rows of patches and elements are shared out freely: nothing
 * is summed up. */
#include <assert.h>

#include "backend/parallel.h"
#include "backend/tokens.h"
#include "kernels/kernels.h"

typedef struct work {
    const void *call;
    const pl_kernels *kernels;
} work;

static void patches_part(const void *context, int part, int parts)
{
    const work *w = context;
    const pl_patches_call *c = w->call;
    int64_t columns = c->width / c->patch, line = c->width * c->depth;
    int64_t row_elems = columns * c->channels * c->patch * c->patch;
    pl_range rows = pl_range_of_part(c->samples * (c->height / c->patch), 1, part, parts);
    for (int64_t r = rows.begin; r < rows.end; r++)
        w->kernels->patch_row(columns, c->patch, c->channels, c->depth, line, c->x + r * c->patch * line,
                              c->y + r * row_elems);
}

void pl_patches_exec(const pl_patches_call *c, pl_team team)
{
    assert(c->height % c->patch == 0 && c->width % c->patch == 0 && (c->depth == 1 || c->depth == c->channels));
    work w = {c, pl_kernels_get(team.isa)};
    pl_parallel(team, c->samples * c->height * c->width * c->channels, patches_part, &w);
}

enum { GRAIN = 64 };

static void positions_part(const void *context, int part, int parts)
{
    const work *w = context;
    const pl_add_positions_call *c = w->call;
    pl_range own = pl_range_of_part(c->samples * c->elems_per_sample, GRAIN, part, parts);
    for (int64_t i = own.begin, count; i < own.end; i += count) {
        int64_t place = i % c->elems_per_sample, left = c->elems_per_sample - place;
        count = left < own.end - i ? left : own.end - i;
        w->kernels->add_positions(count, c->type, pl_real_at(c->type, c->x, i), c->p + place,
                                  pl_real_at(c->type, c->y, i));
    }
}

void pl_add_positions_exec(const pl_add_positions_call *c, pl_team team)
{
    work w = {c, pl_kernels_get(team.isa)};
    pl_parallel(team, c->samples * c->elems_per_sample, positions_part, &w);
}
