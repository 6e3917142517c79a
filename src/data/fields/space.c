#include "data/fields/space.h"

#include <math.h>
#include <string.h>

#include "base/size.h"

/* ---- one dimension ---- */

static double sum_of(const double *x, uint32_t count)
{
    double sum = 0;
    for (uint32_t i = 0; i < count; i++) sum += x[i];
    return sum;
}

static bool has_weights(const pl_dimension *d) { return sum_of(d->weight, d->choices) > 0; }

static pl_status check_interval(const pl_dimension *d, pl_error *err)
{
    const double largest = 0x1p53; /* up to which every integer is a number */
    if (!isfinite(d->low) || !isfinite(d->high) || d->low > d->high)
        return pl_fail(err, PL_E_CONFIG, "dimension %s: from %g to %g is no interval", d->name, d->low, d->high);
    if (d->log_scale && d->low <= 0)
        return pl_fail(err, PL_E_CONFIG, "dimension %s: a log scale cannot begin at %g; begin above 0", d->name,
                       d->low);
    if (d->type != PL_DIMENSION_INTEGER) return PL_OK;
    if (d->log_scale)
        return pl_fail(err, PL_E_CONFIG, "dimension %s: integers have no log scale; make it continuous", d->name);
    if (d->low != floor(d->low) || d->high != floor(d->high) || fabs(d->low) > largest || fabs(d->high) > largest)
        return pl_fail(err, PL_E_CONFIG, "dimension %s: %g and %g are not two integers", d->name, d->low, d->high);
    return PL_OK;
}

static pl_status check_choices(const pl_dimension *d, pl_error *err)
{
    if (d->choices == 0 || d->choices > PL_SPACE_CHOICES)
        return pl_fail(err, PL_E_CONFIG, "dimension %s: %u choices; 1 to %d are possible", d->name, d->choices,
                       PL_SPACE_CHOICES);
    for (uint32_t i = 0; i < d->choices; i++)
        if (!(d->weight[i] >= 0 && d->weight[i] <= 1))
            return pl_fail(err, PL_E_CONFIG, "dimension %s: the weight %g is not from 0 to 1", d->name, d->weight[i]);
    if (has_weights(d) && fabs(sum_of(d->weight, d->choices) - 1) > 1e-6)
        return pl_fail(err, PL_E_CONFIG, "dimension %s: the weights sum to %.9g, not to 1", d->name,
                       sum_of(d->weight, d->choices));
    return PL_OK;
}

static pl_status check_dimension(const pl_dimension *d, pl_error *err)
{
    if (d->type == PL_DIMENSION_CONTINUOUS && d->is_shape)
        return pl_fail(err, PL_E_CONFIG, "dimension %s is continuous: there would be no end of shapes", d->name);
    if (d->type == PL_DIMENSION_INTEGER || d->type == PL_DIMENSION_CONTINUOUS) return check_interval(d, err);
    return d->type == PL_DIMENSION_CHOICE ? check_choices(d, err) : PL_OK;
}

static uint32_t choose(const pl_dimension *d, double u)
{
    double end = 0;
    uint32_t last = 0;
    if (!has_weights(d)) return (uint32_t)(u * d->choices);
    for (uint32_t i = 0; i < d->choices; i++) {
        end += d->weight[i];
        if (u < end) return i;
        if (d->weight[i] > 0) last = i;
    }
    return last; /* the weights sum to a little less than 1 */
}

static double on_log_scale(const pl_dimension *d, double u)
{
    const double low = log10(d->low), high = log10(d->high);
    return fmin(fmax(pow(10, low + u * (high - low)), d->low), d->high);
}

double pl_dimension_value(const pl_dimension *d, double u)
{
    switch (d->type) {
    case PL_DIMENSION_INTEGER:
        return d->low + floor(u * (d->high - d->low + 1));
    case PL_DIMENSION_CONTINUOUS:
        return d->log_scale ? on_log_scale(d, u) : d->low + u * (d->high - d->low);
    case PL_DIMENSION_CHOICE:
        return d->choice[choose(d, u)];
    case PL_DIMENSION_BOOLEAN:
        return u > 0.5;
    }
    return 0;
}

/* ---- the space ---- */

pl_status pl_space_init(pl_space *s, const pl_dimension *dimension, uint32_t dimensions, pl_error *err)
{
    if (dimensions > PL_SPACE_DIMENSIONS)
        return pl_fail(err, PL_E_CONFIG, "a space of %u dimensions; at most %d are possible", dimensions,
                       PL_SPACE_DIMENSIONS);
    for (uint32_t i = 0; i < dimensions; i++) PL_TRY(check_dimension(&dimension[i], err));
    memset(s, 0, sizeof *s);
    s->dimensions = dimensions;
    memcpy(s->dimension, dimension, dimensions * sizeof *dimension);
    return pl_sobol_init(&s->sobol, dimensions, err);
}

void pl_space_point(const pl_space *s, uint32_t n, double *value, double *u)
{
    double own[PL_SPACE_DIMENSIONS], *at = u ? u : own;
    pl_sobol_point(&s->sobol, n, at);
    for (uint32_t i = 0; i < s->dimensions; i++) value[i] = pl_dimension_value(&s->dimension[i], at[i]);
}

/* ---- groups ---- */

/* How many numbers a dimension of the shape has. */
static uint64_t numbers_of(const pl_dimension *d)
{
    if (!d->is_shape) return 1;
    if (d->type == PL_DIMENSION_INTEGER) return (uint64_t)(d->high - d->low + 1);
    return d->type == PL_DIMENSION_CHOICE ? d->choices : 2;
}

/* From 0 on. */
static uint64_t number_at(const pl_dimension *d, double u)
{
    if (!d->is_shape) return 0;
    if (d->type == PL_DIMENSION_INTEGER) return (uint64_t)(pl_dimension_value(d, u) - d->low);
    return d->type == PL_DIMENSION_CHOICE ? choose(d, u) : u > 0.5;
}

static pl_status count_shapes(const pl_space *s, uint64_t *shapes, pl_error *err)
{
    *shapes = 1;
    for (uint32_t i = 0; i < s->dimensions; i++)
        if (pl_size_mul(*shapes, numbers_of(&s->dimension[i]), shapes) || *shapes > UINT32_MAX)
            return pl_fail(err, PL_E_CONFIG,
                           "the parameter space has more than %u shapes, from dimension %s on; make it narrower",
                           UINT32_MAX, s->dimension[i].name);
    return PL_OK;
}

static uint64_t shape_of(const pl_space *s, uint32_t n)
{
    double u[PL_SOBOL_DIMENSIONS];
    uint64_t shape = 0;
    pl_sobol_point(&s->sobol, n, u);
    for (uint32_t i = 0; i < s->dimensions; i++) {
        const pl_dimension *d = &s->dimension[i];
        shape = shape * numbers_of(d) + number_at(d, u[i]);
    }
    return shape;
}

pl_status pl_space_groups_bytes(const pl_space *s, uint32_t count, uint64_t *bytes, pl_error *err)
{
    uint64_t shapes;
    if (count == 0 || count > PL_SPACE_POINTS)
        return pl_fail(err, PL_E_CONFIG, "%u points of the parameter space; 1 to %d are possible", count,
                       PL_SPACE_POINTS);
    PL_TRY(count_shapes(s, &shapes, err));
    *bytes = count * sizeof(uint64_t) + ((shapes < count ? shapes : count) + 1) * sizeof(uint32_t);
    return PL_OK;
}

/* Heap sort in place: qsort may ask for memory. */
static void sift(uint64_t *e, size_t root, size_t count)
{
    const uint64_t moved = e[root];
    for (size_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && e[child] < e[child + 1]) child++;
        if (moved >= e[child]) break;
        e[root] = e[child];
    }
    e[root] = moved;
}

static void sort(uint64_t *e, size_t count)
{
    for (size_t i = count / 2; i-- > 0;) sift(e, i, count);
    for (size_t end = count; end-- > 1;) {
        const uint64_t last = e[0];
        e[0] = e[end];
        e[end] = last;
        sift(e, 0, end);
    }
}

void pl_space_groups_init(pl_space_groups *g, const pl_space *s, uint32_t first, uint32_t count, void *memory)
{
    *g = (pl_space_groups){.points = count, .entry = memory, .first = (uint32_t *)((uint64_t *)memory + count)};
    for (uint32_t n = 0; n < count; n++) g->entry[n] = shape_of(s, first + n) << 32 | (first + n);
    sort(g->entry, count);
    for (uint32_t i = 0; i < count; i++)
        if (i == 0 || g->entry[i] >> 32 != g->entry[i - 1] >> 32) g->first[g->groups++] = i;
    g->first[g->groups] = count;
}
