/* Codebooks. Rows share out the search; codes share out the sums, each thread adding in the order of the rows what is
 * its own, so that the sums have the same bits with any team and however the rows are dealt to calls. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "backend/carry.h"
#include "backend/parallel.h"

enum { LANES = 8 };

typedef struct work {
    const void *call;
    float *row;
    double all; /* of the sizes */
} work;

/* Sums in lanes, so that a compiler may add them side by side; their order is fixed. */
static float distance(const float *a, const float *b, int64_t width)
{
    float lane[LANES] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + LANES <= width; i += LANES)
        for (int k = 0; k < LANES; k++) lane[k] += (a[i + k] - b[i + k]) * (a[i + k] - b[i + k]);
    for (; i < width; i++) lane[0] += (a[i] - b[i]) * (a[i] - b[i]);
    for (int k = 0; k < LANES; k++) sum += lane[k];
    return sum;
}

static int64_t nearest(const pl_nearest_code_call *c, const float *row)
{
    int64_t best = 0;
    float least = distance(row, c->codebook, c->width);
    for (int64_t v = 1; v < c->codes; v++) {
        const float d = distance(row, c->codebook + v * c->width, c->width);
        if (d < least) least = d, best = v;
    }
    return best;
}

static void nearest_part(const void *context, int part, int parts)
{
    const work *w = context;
    const pl_nearest_code_call *c = w->call;
    float *row = w->row + part * c->width;
    const pl_range own = pl_range_of_part(c->rows, 1, part, parts);
    for (int64_t r = own.begin; r < own.end; r++) {
        for (int64_t i = 0; i < c->width; i++) row[i] = pl_real_get(c->type, c->z, r * c->width + i);
        const int64_t v = nearest(c, row);
        c->index[r] = (int32_t)v;
        for (int64_t i = 0; i < c->width; i++)
            pl_real_put(c->type, c->code, r * c->width + i, c->codebook[v * c->width + i]);
    }
}

uint64_t pl_nearest_code_workspace_bytes(const pl_nearest_code_call *c, pl_team team)
{
    return (uint64_t)team.threads * (uint64_t)c->width * sizeof(float);
}

void pl_nearest_code_exec(const pl_nearest_code_call *c, void *workspace, pl_team team)
{
    const work w = {.call = c, .row = workspace};
    pl_parallel(team, c->rows * c->codes * c->width, nearest_part, &w);
}

/* ---- sums ---- */

static void sum_part(const void *context, int part, int parts)
{
    const pl_code_sum_call *c = context;
    const pl_range own = pl_range_of_part(c->codes, 1, part, parts);
    for (int64_t r = 0; r < c->rows; r++) {
        const int64_t v = c->index[r];
        if (v < own.begin || v >= own.end) continue;
        if (c->counted && c->counted[r / c->rows_of_sample * c->counted_stride] == 0) continue;
        float *sum = c->sums + v * (c->width + 1);
        for (int64_t i = 0; i < c->width; i++) sum[i] += pl_real_get(c->type, c->z, r * c->width + i);
        sum[c->width]++;
    }
}

void pl_code_sum_exec(const pl_code_sum_call *c, pl_team team) { pl_parallel(team, c->rows * c->width, sum_part, c); }

/* ---- averages ---- */

static void leave_out_what_is_not_finite(const pl_code_update_call *c)
{
    for (int64_t v = 0; v < c->codes; v++) {
        float *sum = c->sums + v * (c->width + 1);
        bool finite = true;
        for (int64_t i = 0; i <= c->width; i++) finite &= isfinite(sum[i]) != 0;
        if (!finite) memset(sum, 0, (size_t)(c->width + 1) * sizeof *sum);
    }
}

static void update_part(const void *context, int part, int parts)
{
    const work *w = context;
    const pl_code_update_call *c = w->call;
    const pl_range own = pl_range_of_part(c->codes, 1, part, parts);
    for (int64_t v = own.begin; v < own.end; v++) {
        float *sum = c->sums + v * (c->width + 1);
        const double smoothed = ((double)c->sizes[v] + c->eps) * w->all / (w->all + (double)c->codes * c->eps);
        for (int64_t i = 0; i < c->width; i++) {
            float *average = &c->averages[v * c->width + i];
            *average = (float)(c->rate * (double)*average + (1 - c->rate) * (double)sum[i]);
            c->codebook[v * c->width + i] = (float)((double)*average / smoothed);
        }
        memset(sum, 0, (size_t)(c->width + 1) * sizeof *sum);
    }
}

void pl_code_update_exec(const pl_code_update_call *c, pl_team team)
{
    work w = {.call = c};
    double counted = 0;
    leave_out_what_is_not_finite(c);
    for (int64_t v = 0; v < c->codes; v++) counted += (double)c->sums[v * (c->width + 1) + c->width];
    if (counted == 0) return;
    for (int64_t v = 0; v < c->codes; v++) {
        const double n = (double)c->sums[v * (c->width + 1) + c->width];
        c->sizes[v] = (float)(c->rate * (double)c->sizes[v] + (1 - c->rate) * n);
        w.all += (double)c->sizes[v];
    }
    pl_parallel(team, c->codes * c->width, update_part, &w);
}
