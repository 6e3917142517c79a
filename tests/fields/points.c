/* points DIMENSIONS COUNT: the unscrambled Sobol points, a line each, then their discrepancy and their correlation. */
#include <stdio.h>
#include <stdlib.h>

#include "data/fields/quality.h"

int main(int argc, char **argv)
{
    const uint32_t dimensions = argc > 2 ? (uint32_t)atoi(argv[1]) : 0, count = argc > 2 ? (uint32_t)atoi(argv[2]) : 0;
    pl_sobol s;
    pl_quality q;
    pl_error err = {0};
    if (pl_sobol_init(&s, dimensions, &err) != PL_OK) return fprintf(stderr, "%s\n", err.text), 1;
    for (uint32_t n = 0; n < count; n++) {
        double u[PL_SOBOL_DIMENSIONS];
        pl_sobol_point(&s, n, u);
        for (uint32_t d = 0; d < dimensions; d++) printf("%.17g%c", u[d], d + 1 < dimensions ? ' ' : '\n');
    }
    void *scratch = malloc(pl_quality_bytes(dimensions, count));
    if (!scratch) return 1;
    pl_quality_measure(&s, count, scratch, &q);
    printf("%.17g %.17g\n", q.discrepancy, q.correlation);
    free(scratch);
    return 0;
}
