#include "data/fields/sobol.h"

#include "base/philox.h"

enum { DEGREE_MAX = 9 };

/* Of dimension d the degree of its primitive polynomial over two elements, that polynomial's inner coefficients as bits
 * and the first direction numbers, odd and below 2^i. The first dimension has none: all of its numbers are 1 (van der
 * Corput). */
static const struct {
    uint8_t degree, inner;
    uint16_t first[DEGREE_MAX];
} table[PL_SOBOL_DIMENSIONS] = {{0, 0, {0}},
                                {1, 0, {1}},
                                {2, 1, {1, 3}},
                                {3, 1, {1, 3, 1}},
                                {3, 2, {1, 1, 1}},
                                {4, 1, {1, 1, 3, 3}},
                                {4, 4, {1, 3, 5, 13}},
                                {5, 2, {1, 1, 5, 5, 17}},
                                {5, 4, {1, 1, 5, 5, 5}},
                                {5, 7, {1, 1, 7, 11, 19}},
                                {5, 11, {1, 1, 5, 1, 1}},
                                {5, 13, {1, 1, 1, 3, 11}},
                                {5, 14, {1, 3, 5, 5, 31}},
                                {6, 1, {1, 3, 3, 9, 7, 49}},
                                {6, 13, {1, 1, 1, 15, 21, 21}},
                                {6, 16, {1, 3, 1, 13, 27, 49}},
                                {6, 19, {1, 1, 1, 15, 7, 5}},
                                {6, 22, {1, 3, 1, 15, 13, 25}},
                                {6, 25, {1, 1, 5, 5, 19, 61}},
                                {7, 1, {1, 3, 7, 11, 23, 15, 103}},
                                {7, 4, {1, 3, 7, 13, 13, 15, 69}},
                                {7, 7, {1, 1, 3, 13, 7, 35, 63}},
                                {7, 8, {1, 3, 5, 9, 1, 25, 53}},
                                {7, 14, {1, 3, 1, 13, 9, 35, 107}},
                                {7, 19, {1, 3, 1, 5, 27, 61, 31}},
                                {7, 21, {1, 1, 5, 11, 19, 41, 61}},
                                {7, 28, {1, 3, 5, 3, 3, 13, 69}},
                                {7, 31, {1, 1, 7, 13, 1, 19, 1}},
                                {7, 32, {1, 3, 7, 5, 13, 19, 59}},
                                {7, 37, {1, 1, 3, 9, 25, 29, 41}},
                                {7, 41, {1, 3, 5, 13, 23, 1, 55}},
                                {7, 42, {1, 3, 7, 3, 13, 59, 17}},
                                {7, 50, {1, 3, 1, 3, 5, 53, 69}},
                                {7, 55, {1, 1, 5, 5, 23, 33, 13}},
                                {7, 56, {1, 1, 7, 7, 1, 61, 123}},
                                {7, 59, {1, 1, 7, 9, 13, 61, 49}},
                                {7, 62, {1, 3, 3, 5, 3, 55, 33}},
                                {8, 14, {1, 3, 1, 15, 31, 13, 49, 245}},
                                {8, 21, {1, 3, 5, 15, 31, 59, 63, 97}},
                                {8, 22, {1, 3, 1, 11, 11, 11, 77, 249}},
                                {8, 38, {1, 3, 1, 11, 27, 43, 71, 9}},
                                {8, 47, {1, 1, 7, 15, 21, 11, 81, 45}},
                                {8, 49, {1, 3, 7, 3, 25, 31, 65, 79}},
                                {8, 50, {1, 3, 1, 1, 19, 11, 3, 205}},
                                {8, 52, {1, 1, 5, 9, 19, 21, 29, 157}},
                                {8, 56, {1, 3, 7, 11, 1, 33, 89, 185}},
                                {8, 67, {1, 3, 3, 3, 15, 9, 79, 71}},
                                {8, 70, {1, 3, 7, 11, 15, 39, 119, 27}},
                                {8, 84, {1, 1, 3, 1, 11, 31, 97, 225}},
                                {8, 97, {1, 1, 1, 3, 23, 43, 57, 177}},
                                {8, 103, {1, 3, 7, 7, 17, 17, 37, 71}},
                                {8, 115, {1, 3, 1, 5, 27, 63, 123, 213}},
                                {8, 122, {1, 1, 3, 5, 11, 43, 53, 133}},
                                {9, 8, {1, 3, 5, 5, 29, 17, 47, 173, 479}},
                                {9, 13, {1, 3, 3, 11, 3, 1, 109, 9, 69}},
                                {9, 16, {1, 1, 1, 5, 17, 39, 23, 5, 343}},
                                {9, 22, {1, 3, 1, 5, 25, 15, 31, 103, 499}},
                                {9, 25, {1, 1, 1, 11, 11, 17, 63, 105, 183}},
                                {9, 44, {1, 1, 5, 11, 9, 29, 97, 231, 363}},
                                {9, 47, {1, 1, 5, 15, 19, 45, 41, 7, 383}},
                                {9, 52, {1, 3, 7, 7, 31, 19, 83, 137, 221}},
                                {9, 55, {1, 1, 1, 3, 23, 15, 111, 223, 83}},
                                {9, 59, {1, 1, 5, 13, 31, 15, 55, 25, 161}},
                                {9, 62, {1, 1, 3, 13, 25, 47, 39, 87, 257}}};

static void fill_directions(uint32_t *v, uint32_t dimension)
{
    const uint32_t degree = table[dimension].degree, inner = table[dimension].inner;
    for (uint32_t i = 0; i < PL_SOBOL_BITS; i++) {
        const uint32_t m = degree == 0 ? 1 : i < degree ? table[dimension].first[i] : 0;
        v[i] = m << (PL_SOBOL_BITS - 1 - i);
        if (degree == 0 || i < degree) continue;
        v[i] = v[i - degree] ^ v[i - degree] >> degree;
        for (uint32_t k = 1; k < degree; k++)
            if (inner >> (degree - 1 - k) & 1) v[i] ^= v[i - k];
    }
}

pl_status pl_sobol_init(pl_sobol *s, uint32_t dimensions, pl_error *err)
{
    if (dimensions == 0 || dimensions > PL_SOBOL_DIMENSIONS)
        return pl_fail(err, PL_E_CONFIG, "a Sobol sequence of %u dimensions was asked for; there are some of 1 to %d",
                       dimensions, PL_SOBOL_DIMENSIONS);
    *s = (pl_sobol){.dimensions = dimensions};
    for (uint32_t d = 0; d < dimensions; d++) fill_directions(s->direction[d], d);
    return PL_OK;
}

/* Digit i of the product, from the highest, is the parity of the digits that row i of the matrix names. */
static uint32_t multiply(const uint32_t row[PL_SOBOL_BITS], uint32_t x)
{
    uint32_t product = 0;
    for (int i = 0; i < PL_SOBOL_BITS; i++) product = product << 1 | (uint32_t)__builtin_parity(row[i] & x);
    return product;
}

/* The matrix is linear over xor, so it is applied to the direction numbers once instead of to every point. */
void pl_sobol_scramble(pl_sobol *s, uint64_t seed)
{
    const pl_philox random = pl_philox_init(seed, pl_stream_id("space/sobol"));
    for (uint32_t d = 0; d < s->dimensions; d++) {
        uint32_t row[PL_SOBOL_BITS], shift[4];
        for (uint32_t i = 0; i < PL_SOBOL_BITS; i += 4) pl_philox_block(&random, 0, d, i / 4, row + i);
        for (uint32_t i = 0; i < PL_SOBOL_BITS; i++) {
            const uint32_t diagonal = UINT32_C(1) << (PL_SOBOL_BITS - 1 - i);
            row[i] = (row[i] & ~(2 * diagonal - 1)) | diagonal; /* above the first digit there is none: 2 * 2^31 is 0 */
        }
        for (uint32_t i = 0; i < PL_SOBOL_BITS; i++) s->direction[d][i] = multiply(row, s->direction[d][i]);
        pl_philox_block(&random, 0, d, PL_SOBOL_BITS / 4, shift);
        s->shift[d] = shift[0];
    }
}

void pl_sobol_point(const pl_sobol *s, uint32_t n, double *u)
{
    for (uint32_t d = 0; d < s->dimensions; d++) {
        uint32_t x = s->shift[d];
        for (uint32_t gray = n ^ n >> 1; gray; gray &= gray - 1) x ^= s->direction[d][__builtin_ctz(gray)];
        u[d] = (double)x * 0x1p-32;
    }
}
