#include "data/fields/quality.h"

#include <math.h>

static uint32_t capped(uint32_t points) { return points < PL_QUALITY_POINTS ? points : PL_QUALITY_POINTS; }
static uint64_t sums_of(uint64_t dimensions) { return dimensions + dimensions * dimensions; }

uint64_t pl_quality_bytes(uint32_t dimensions, uint32_t points)
{
    const uint64_t held = (uint64_t)dimensions * capped(points), sums = sums_of(dimensions) + dimensions;
    return (held > sums ? held : sums) * sizeof(double);
}

/* ---- the discrepancy; z are the points less 1/2 ---- */

static double product_of_one(const double *z, uint32_t dimensions)
{
    double product = 1;
    for (uint32_t j = 0; j < dimensions; j++) product *= 1 + 0.5 * fabs(z[j]) - 0.5 * z[j] * z[j];
    return product;
}

static double product_of_two(const double *a, const double *b, uint32_t dimensions)
{
    double product = 1;
    for (uint32_t j = 0; j < dimensions; j++) product *= 1 + 0.5 * (fabs(a[j]) + fabs(b[j]) - fabs(a[j] - b[j]));
    return product;
}

static double discrepancy(const pl_sobol *s, uint32_t points, double *z)
{
    const uint32_t d = s->dimensions, n = capped(points);
    double one = 0, two = 0;
    for (uint32_t i = 0; i < n; i++) {
        double *at = z + (uint64_t)i * d;
        pl_sobol_point(s, i, at);
        for (uint32_t j = 0; j < d; j++) at[j] -= 0.5;
        one += product_of_one(at, d);
        two += product_of_two(at, at, d);
        for (uint32_t k = 0; k < i; k++) two += 2 * product_of_two(at, z + (uint64_t)k * d, d);
    }
    return pow(13.0 / 12, d) - 2 * one / n + two / n / n;
}

/* ---- the correlation ---- */

static void add_products(const double *z, uint32_t d, double *sum, double *product)
{
    for (uint32_t i = 0; i < d; i++) {
        sum[i] += z[i];
        for (uint32_t j = 0; j <= i; j++) product[i * d + j] += z[i] * z[j];
    }
}

static double correlation(const pl_sobol *s, uint32_t points, double *scratch)
{
    const uint32_t d = s->dimensions;
    double *sum = scratch, *product = sum + d, *z = product + d * d, largest = 0;
    for (uint32_t i = 0; i < sums_of(d); i++) sum[i] = 0;
    for (uint32_t n = 0; n < points; n++) {
        pl_sobol_point(s, n, z);
        for (uint32_t j = 0; j < d; j++) z[j] -= 0.5;
        add_products(z, d, sum, product);
    }
    for (uint32_t i = 0; i < d; i++)
        for (uint32_t j = 0; j <= i; j++) product[i * d + j] -= sum[i] * sum[j] / points;
    for (uint32_t i = 0; i < d; i++)
        for (uint32_t j = 0; j < i; j++) {
            const double spread = sqrt(product[i * d + i] * product[j * d + j]);
            if (spread > 0) largest = fmax(largest, fabs(product[i * d + j]) / spread);
        }
    return largest;
}

void pl_quality_measure(const pl_sobol *s, uint32_t points, void *scratch, pl_quality *q)
{
    q->discrepancy = discrepancy(s, points, scratch);
    q->correlation = correlation(s, points, scratch);
}

pl_status pl_quality_check(const pl_quality *q, const pl_quality *limit, uint32_t points, pl_error *err)
{
    if (q->discrepancy > limit->discrepancy)
        return pl_fail(
            err, PL_E_CONFIG,
            "the first %u of %u Sobol points have a centred discrepancy of %.4g, more than "
            "sampling.validation.max_discrepancy %g; take more of them (sampling.total_samples), raise that, "
            "or set sampling.validation.check_discrepancy to false",
            capped(points), points, q->discrepancy, limit->discrepancy);
    if (q->correlation > limit->correlation)
        return pl_fail(err, PL_E_CONFIG,
                       "two dimensions of the %u Sobol points have a correlation of %.4g, more than "
                       "sampling.validation.max_pairwise_correlation %g; take more of them (sampling.total_samples), "
                       "raise that, or set sampling.validation.check_correlation to false",
                       points, q->correlation, limit->correlation);
    return PL_OK;
}
