/* The transforms of F(2×2, 3×3) and F(4×4, 3×3), a vector of channels at a time: first down the columns, then along the
 * rows. The matrices are those of Lavin & Gray (points 0, ±1, ∞ and 0, ±1, ±2, ∞), their products with a vector written
 * out with what they have in common. m is a constant in each instance. */
#include "kernels/winograd.h"

#include "kernels/cpu/gemm_level.h"
#include "kernels/cpu/vec_real.h"

enum { T_MAX = 6 };

/* a·x + y */
PL_V_INLINE pl_vf fma_of(float a, pl_vf x, pl_vf y) { return pl_v_fma(pl_v_set(a), x, y); }

/* Bᵀ d */
PL_V_INLINE void to_points(int m, const pl_vf d[T_MAX], pl_vf t[T_MAX])
{
    if (m == 2) {
        t[0] = d[0] - d[2], t[1] = d[1] + d[2], t[2] = d[2] - d[1], t[3] = d[1] - d[3];
        return;
    }
    pl_vf even = fma_of(-4, d[2], d[4]), odd = fma_of(-4, d[1], d[3]), near = d[4] - d[2], far = d[3] - d[1];
    t[0] = fma_of(4, d[0], fma_of(-5, d[2], d[4]));
    t[1] = even + odd, t[2] = even - odd;
    t[3] = fma_of(2, far, near), t[4] = fma_of(-2, far, near);
    t[5] = fma_of(4, d[1], fma_of(-5, d[3], d[5]));
}

/* G g */
PL_V_INLINE void weights_to_points(int m, const pl_vf g[3], pl_vf t[T_MAX])
{
    t[0] = g[0], t[m + 1] = g[2];
    if (m == 2) {
        pl_vf ends = (g[0] + g[2]) * 0.5f;
        t[1] = fma_of(0.5f, g[1], ends), t[2] = fma_of(-0.5f, g[1], ends);
        return;
    }
    pl_vf ends = (g[0] + g[2]) * (-1 / 6.0f), far = fma_of(1 / 24.0f, g[0], g[2] * (1 / 6.0f));
    t[0] = g[0] * 0.25f;
    t[1] = fma_of(-1 / 6.0f, g[1], ends), t[2] = fma_of(1 / 6.0f, g[1], ends);
    t[3] = fma_of(1 / 12.0f, g[1], far), t[4] = fma_of(-1 / 12.0f, g[1], far);
}

/* Aᵀ s */
PL_V_INLINE void from_points(int m, const pl_vf s[T_MAX], pl_vf y[4])
{
    pl_vf sum = s[1] + s[2], difference = s[1] - s[2];
    if (m == 2) {
        y[0] = s[0] + sum, y[1] = difference - s[3];
        return;
    }
    pl_vf far_sum = s[3] + s[4], far_difference = s[3] - s[4];
    y[0] = s[0] + sum + far_sum;
    y[1] = fma_of(2, far_difference, difference);
    y[2] = fma_of(4, far_sum, sum);
    y[3] = fma_of(8, far_difference, difference) + s[5];
}

/* Columns of points of a part: [begin, end). */
PL_V_INLINE int begin_of(pl_winograd_part part, int t) { return part == PL_WINOGRAD_RIGHT ? t / 2 : 0; }
PL_V_INLINE int end_of(pl_winograd_part part, int t) { return part == PL_WINOGRAD_LEFT ? t / 2 : t; }

/* A half needs all columns of the window but the one at the other side. */
PL_V_INLINE void input_vector(int m, pl_winograd_part part, pl_real type, const void *window, int64_t row,
                              int64_t pixel, int64_t count, float *v, int64_t point)
{
    const int t = m + 2, begin = begin_of(part, t), end = end_of(part, t);
    const int first = part == PL_WINOGRAD_RIGHT, last = t - (part == PL_WINOGRAD_LEFT);
    pl_vf half[T_MAX][T_MAX], d[T_MAX], made[T_MAX]; /* half[x][y]: columns are done */
    PL_V_UNROLL for (int x = first; x < last; x++)
    {
        PL_V_UNROLL for (int y = 0; y < t; y++) d[y] = pl_v_get(type, window, y * row + x * pixel, count);
        to_points(m, d, half[x]);
    }
    PL_V_UNROLL for (int y = 0; y < t; y++)
    {
        PL_V_UNROLL for (int x = 0; x < t; x++) d[x] = x >= first && x < last ? half[x][y] : pl_v_zero();
        to_points(m, d, made);
        PL_V_UNROLL for (int x = begin; x < end; x++)
            pl_v_put(PL_REAL_F32, v, ((x - begin) * t + y) * point, made[x], count);
    }
}

PL_V_INLINE void input(int m, pl_winograd_part part, pl_real type, int64_t channels, const void *window, int64_t row,
                       int64_t pixel, float *v, int64_t point)
{
    int64_t c = 0;
    for (; c + PL_VW <= channels; c += PL_VW)
        input_vector(m, part, type, pl_real_at(type, window, c), row, pixel, PL_VW, v + c, point);
    if (c < channels) input_vector(m, part, type, pl_real_at(type, window, c), row, pixel, channels - c, v + c, point);
}

PL_V_INLINE void weights_vector(int m, pl_real type, const void *weight, int64_t tap, int turned, int64_t count,
                                float *u, int64_t point)
{
    const int t = m + 2;
    pl_vf half[3][T_MAX], g[3], made[T_MAX];
    PL_V_UNROLL for (int x = 0; x < 3; x++)
    {
        PL_V_UNROLL for (int y = 0; y < 3; y++) g[y] =
            pl_v_get(type, weight, tap * (turned ? 8 - 3 * y - x : 3 * y + x), count);
        weights_to_points(m, g, half[x]);
    }
    PL_V_UNROLL for (int y = 0; y < t; y++)
    {
        PL_V_UNROLL for (int x = 0; x < 3; x++) g[x] = half[x][y];
        weights_to_points(m, g, made);
        PL_V_UNROLL for (int x = 0; x < t; x++) pl_v_store(u + (x * t + y) * point, made[x]);
    }
}

PL_V_INLINE void weights(int m, pl_real type, int64_t columns, const void *weight, int64_t tap, int turned, float *u,
                         int64_t point)
{
    for (int64_t c = 0; c < columns; c += PL_VW)
        weights_vector(m, type, pl_real_at(type, weight, c), tap, turned, columns - c < PL_VW ? columns - c : PL_VW,
                       u + c, point);
}

enum { KEPT = 3 }; /* of a row of outputs: what begins y[0], and the difference and the sum that all others need */

/* from_points in two: of the left half of s what is kept, then the right half with that. */
PL_V_INLINE void keep_row(const pl_vf s[T_MAX], float *kept, int64_t point)
{
    pl_vf sum = s[1] + s[2];
    pl_v_store(kept, s[0] + sum), pl_v_store(kept + point, s[1] - s[2]), pl_v_store(kept + 2 * point, sum);
}

PL_V_INLINE void finish_row(const pl_vf s[T_MAX], const float *kept, int64_t point, pl_vf y[4])
{
    pl_vf far_sum = s[0] + s[1], far_difference = s[0] - s[1];
    pl_vf difference = pl_v_load(kept + point), sum = pl_v_load(kept + 2 * point);
    y[0] = pl_v_load(kept) + far_sum;
    y[1] = fma_of(2, far_difference, difference);
    y[2] = fma_of(4, far_sum, sum);
    y[3] = fma_of(8, far_difference, difference) + s[2];
}

/* Row i of the outputs, of s along it. */
PL_V_INLINE void output_row(int m, pl_winograd_part part, const pl_vf s[T_MAX], float *kept, int64_t point, float *y,
                            int64_t pixel)
{
    pl_vf made[4];
    if (part == PL_WINOGRAD_LEFT) {
        keep_row(s, kept, point);
        return;
    }
    if (part == PL_WINOGRAD_WHOLE)
        from_points(m, s, made);
    else
        finish_row(s, kept, point, made);
    PL_V_UNROLL for (int j = 0; j < m; j++) pl_v_store(y + j * pixel, made[j]);
}

PL_V_INLINE void output_vector(int m, pl_winograd_part part, const float *sums, int64_t point, float *kept, float *y,
                               int64_t row, int64_t pixel)
{
    const int t = m + 2, columns = end_of(part, t) - begin_of(part, t);
    pl_vf half[T_MAX][4], s[T_MAX];
    PL_V_UNROLL for (int x = 0; x < columns; x++)
    {
        PL_V_UNROLL for (int i = 0; i < t; i++) s[i] = pl_v_load(sums + (x * t + i) * point);
        from_points(m, s, half[x]);
    }
    PL_V_UNROLL for (int i = 0; i < m; i++)
    {
        PL_V_UNROLL for (int x = 0; x < columns; x++) s[x] = half[x][i];
        output_row(m, part, s, kept + i * KEPT * point, point, y + i * row, pixel);
    }
}

PL_V_INLINE void output(int m, pl_winograd_part part, int vectors, const float *sums, int64_t point, float *kept,
                        float *y, int64_t row, int64_t pixel)
{
    for (int c = 0; c < vectors * PL_VW; c += PL_VW)
        output_vector(m, part, sums + c, point, kept + c, y + c, row, pixel);
}

/* A z */
PL_V_INLINE void gradient_to_points(int m, const pl_vf z[4], pl_vf t[T_MAX])
{
    if (m == 2) {
        t[0] = z[0], t[1] = z[0] + z[1], t[2] = z[0] - z[1], t[3] = -z[1];
        return;
    }
    pl_vf even = z[0] + z[2], odd = z[1] + z[3], far_even = fma_of(4, z[2], z[0]), far_odd = fma_of(4, z[3], z[1]);
    t[0] = z[0], t[5] = z[3];
    t[1] = even + odd, t[2] = even - odd;
    t[3] = fma_of(2, far_odd, far_even), t[4] = fma_of(-2, far_odd, far_even);
}

/* Gᵀ s */
PL_V_INLINE void gradient_from_points(int m, const pl_vf s[T_MAX], pl_vf g[3])
{
    pl_vf sum = s[1] + s[2], difference = s[1] - s[2];
    if (m == 2) {
        g[0] = fma_of(0.5f, sum, s[0]), g[1] = difference * 0.5f, g[2] = fma_of(0.5f, sum, s[3]);
        return;
    }
    pl_vf far_sum = s[3] + s[4], far_difference = s[3] - s[4];
    g[0] = fma_of(0.25f, s[0], fma_of(1 / 24.0f, far_sum, sum * (-1 / 6.0f)));
    g[1] = fma_of(1 / 12.0f, far_difference, difference * (-1 / 6.0f));
    g[2] = fma_of(1 / 6.0f, far_sum - sum, s[5]);
}

PL_V_INLINE void gradient_vector(int m, pl_real type, const void *dy, int64_t row, int64_t pixel, int64_t held,
                                 int64_t count, float *u, int64_t point)
{
    const int t = m + 2;
    pl_vf half[4][T_MAX], z[4], made[T_MAX];
    PL_V_UNROLL for (int x = 0; x < m; x++)
    {
        PL_V_UNROLL for (int y = 0; y < m; y++) z[y] = pl_v_get(type, dy, y * row + x * pixel, held);
        gradient_to_points(m, z, half[x]);
    }
    PL_V_UNROLL for (int y = 0; y < t; y++)
    {
        PL_V_UNROLL for (int x = 0; x < m; x++) z[x] = half[x][y];
        gradient_to_points(m, z, made);
        PL_V_UNROLL for (int x = 0; x < t; x++) pl_v_put(PL_REAL_F32, u, (x * t + y) * point, made[x], count);
    }
}

PL_V_INLINE void gradient(int m, pl_real type, const void *dy, int64_t row, int64_t pixel, int64_t held, int64_t count,
                          float *u, int64_t point)
{
    if (held >= PL_VW)
        gradient_vector(m, type, dy, row, pixel, PL_VW, count, u, point);
    else
        gradient_vector(m, type, dy, row, pixel, held, count, u, point);
}

PL_V_INLINE void add_weights_vector(int m, const float *sums, int64_t point, float *dw, int64_t tap, int64_t count)
{
    const int t = m + 2;
    pl_vf half[T_MAX][3], s[T_MAX], g[3];
    PL_V_UNROLL for (int x = 0; x < t; x++)
    {
        PL_V_UNROLL for (int y = 0; y < t; y++) s[y] = pl_v_load(sums + (x * t + y) * point);
        gradient_from_points(m, s, half[x]);
    }
    PL_V_UNROLL for (int y = 0; y < 3; y++)
    {
        PL_V_UNROLL for (int x = 0; x < t; x++) s[x] = half[x][y];
        gradient_from_points(m, s, g);
        PL_V_UNROLL for (int x = 0; x < 3; x++)
        {
            int64_t at = tap * (3 * y + x);
            pl_v_put(PL_REAL_F32, dw, at, pl_v_get(PL_REAL_F32, dw, at, count) + g[x], count);
        }
    }
}

PL_V_INLINE void add_weights(int m, int64_t columns, const float *sums, int64_t point, float *dw, int64_t tap)
{
    int64_t c = 0;
    for (; c + PL_VW <= columns; c += PL_VW) add_weights_vector(m, sums + c, point, dw + c, tap, PL_VW);
    if (c < columns) add_weights_vector(m, sums + c, point, dw + c, tap, columns - c);
}

/* Makes the part a constant; F(2×2) has no halves. */
#define EACH_PART(m, part, call)                                                                                       \
    do {                                                                                                               \
        if ((m) == 2 || (part) == PL_WINOGRAD_WHOLE) {                                                                 \
            const pl_winograd_part PART = PL_WINOGRAD_WHOLE;                                                           \
            call;                                                                                                      \
        } else if ((part) == PL_WINOGRAD_LEFT) {                                                                       \
            const pl_winograd_part PART = PL_WINOGRAD_LEFT;                                                            \
            call;                                                                                                      \
        } else {                                                                                                       \
            const pl_winograd_part PART = PL_WINOGRAD_RIGHT;                                                           \
            call;                                                                                                      \
        }                                                                                                              \
    } while (0)

#define TRANSFORMS(m)                                                                                                  \
    static void input_##m(pl_winograd_part part, pl_real type, int64_t channels, const void *window, int64_t row,      \
                          int64_t pixel, float *v, int64_t point)                                                      \
    {                                                                                                                  \
        EACH_PART(m, part, PL_REAL_EACH(type, input(m, PART, REAL, channels, window, row, pixel, v, point)));          \
    }                                                                                                                  \
    static void weights_##m(pl_real type, int64_t columns, const void *weight, int64_t tap, int turned, float *u,      \
                            int64_t point)                                                                             \
    {                                                                                                                  \
        PL_REAL_EACH(type, weights(m, REAL, columns, weight, tap, turned, u, point));                                  \
    }                                                                                                                  \
    static void output_##m(pl_winograd_part part, int vectors, const float *sums, int64_t point, float *kept,          \
                           float *y, int64_t row, int64_t pixel)                                                       \
    {                                                                                                                  \
        EACH_PART(m, part, output(m, PART, vectors, sums, point, kept, y, row, pixel));                                \
    }                                                                                                                  \
    static void gradient_##m(pl_real type, const void *dy, int64_t row, int64_t pixel, int64_t held, int64_t count,    \
                             float *u, int64_t point)                                                                  \
    {                                                                                                                  \
        PL_REAL_EACH(type, gradient(m, REAL, dy, row, pixel, held, count, u, point));                                  \
    }                                                                                                                  \
    static void add_weights_##m(int64_t columns, const float *sums, int64_t point, float *dw, int64_t tap)             \
    {                                                                                                                  \
        add_weights(m, columns, sums, point, dw, tap);                                                                 \
    }
/* clang-format off: it takes the macros for types */
TRANSFORMS(2)
TRANSFORMS(4)
/* clang-format on */

extern const pl_winograd_kernels PL_GEMM_NAME(pl_winograd_kernels)[2];
const pl_winograd_kernels PL_GEMM_NAME(pl_winograd_kernels)[2] = {
    {input_2, weights_2, output_2, gradient_2, add_weights_2},
    {input_4, weights_4, output_4, gradient_4, add_weights_4}};
