/* Capsules: weighted sums over the tokens of a sample, the largest of a row, sums of rows that were picked or copied. A
 * few capsules at a time are summed for a vector of channels, so that each token is read once for all of them. */
#include "kernels/cpu/vec_real.h"
#include "kernels/cpu/vecmath.h"
#include "kernels/kernels.h"

enum { ABREAST = PL_VW == 4 ? 4 : 6 }; /* capsules at a time */

PL_V_INLINE int64_t lanes(int64_t left) { return left < PL_VW ? left : PL_VW; }

/* softmax of a row, in place */
PL_V_INLINE void softmax(int64_t count, float *x)
{
    float largest = x[0], sum = 0;
    for (int64_t i = 1; i < count; i++) largest = x[i] > largest ? x[i] : largest;
    for (int64_t i = 0; i < count; i += PL_VW) {
        int64_t n = lanes(count - i);
        pl_v_store_part(x + i, pl_v_exp_flush(pl_v_get(PL_REAL_F32, x, i, n) - largest), n);
    }
    for (int64_t i = 0; i < count; i++) sum += x[i];
    for (int64_t i = 0; i < count; i++) x[i] /= sum;
}

PL_V_INLINE void find_shares(pl_real type, int64_t positions, int64_t capsules, const void *logits, float *share)
{
    for (int64_t k = 0; k < capsules; k++, share += positions) {
        for (int64_t i = 0; i < positions; i++) share[i] = pl_real_get(type, logits, i * capsules + k);
        softmax(positions, share);
    }
}

/* y[k] = Σ_i share[k, i]·t[i] for `n` capsules, a constant where this is expanded. */
PL_V_INLINE void sum_some(pl_real type, int n, int64_t positions, int64_t channels, const void *t, const float *share,
                          void *y)
{
    for (int64_t c = 0; c < channels; c += PL_VW) {
        int64_t count = lanes(channels - c);
        pl_vf sum[ABREAST];
        PL_V_EACH sum[v] = pl_v_zero();
        for (int64_t i = 0; i < positions; i++) {
            pl_vf x = pl_v_get(type, t, i * channels + c, count);
            PL_V_EACH sum[v] = pl_v_fma(pl_v_set(share[v * positions + i]), x, sum[v]);
        }
        PL_V_EACH pl_v_put(type, y, v * channels + c, sum[v], count);
    }
}

PL_V_INLINE void pool(pl_real type, int64_t positions, int64_t channels, int64_t capsules, const void *t,
                      const void *logits, float *share, void *y)
{
    int64_t k = 0;
    find_shares(type, positions, capsules, logits, share);
    for (; k + ABREAST <= capsules; k += ABREAST)
        sum_some(type, ABREAST, positions, channels, t, share + k * positions, pl_real_at(type, y, k * channels));
    for (; k < capsules; k++)
        sum_some(type, 1, positions, channels, t, share + k * positions, pl_real_at(type, y, k * channels));
}

void PL_KERNEL(capsule_pool)(int64_t positions, int64_t channels, int64_t capsules, pl_real type, const void *t,
                             const void *logits, float *share, void *y)
{
    PL_REAL_EACH(type, pool(REAL, positions, channels, capsules, t, logits, share, y));
}

/* ---- backward ---- */

PL_V_INLINE float row_dot(pl_real type, int64_t count, const void *a, const void *b)
{
    pl_vf sum = pl_v_zero();
    for (int64_t i = 0; i < count; i += PL_VW) {
        int64_t n = lanes(count - i);
        sum = pl_v_fma(pl_v_get(type, a, i, n), pl_v_get(type, b, i, n), sum);
    }
    return pl_v_sum(sum);
}

/* dlogits of a capsule, from its shares and what each is worth. */
PL_V_INLINE void put_slopes(pl_real type, int64_t positions, int64_t capsules, int64_t k, const float *share,
                            const float *worth, void *dlogits)
{
    float mean = 0;
    for (int64_t i = 0; i < positions; i++) mean += share[i] * worth[i];
    for (int64_t i = 0; i < positions; i++) pl_real_put(type, dlogits, i * capsules + k, share[i] * (worth[i] - mean));
}

/* dt[i] = (partial +) Σ_k share[k, i]·dy[k] */
PL_V_INLINE void spread(pl_real type, int64_t positions, int64_t channels, int64_t capsules, const void *dy,
                        const void *partial, const float *share, int64_t i, void *dt)
{
    for (int64_t c = 0; c < channels; c += PL_VW) {
        int64_t n = lanes(channels - c);
        pl_vf sum = partial ? pl_v_get(type, partial, i * channels + c, n) : pl_v_zero();
        for (int64_t k = 0; k < capsules; k++)
            sum = pl_v_fma(pl_v_set(share[k * positions + i]), pl_v_get(type, dy, k * channels + c, n), sum);
        pl_v_put(type, dt, i * channels + c, sum, n);
    }
}

/* All products with t and all shares first: dt and dlogits may take the place of what they are made of. */
PL_V_INLINE void pool_bwd(pl_real type, int64_t positions, int64_t channels, int64_t capsules, const void *dy,
                          const void *t, const void *logits, const float *da, const void *partial, float *share,
                          void *dt, void *dlogits)
{
    float *worth = share + capsules * positions;
    find_shares(type, positions, capsules, logits, share);
    for (int64_t i = 0; i < positions && dlogits; i++)
        for (int64_t k = 0; k < capsules; k++)
            worth[k * positions + i] =
                (da ? da[k * positions + i] : 0) +
                row_dot(type, channels, pl_real_at(type, dy, k * channels), pl_real_at(type, t, i * channels));
    for (int64_t k = 0; k < capsules && dlogits; k++)
        put_slopes(type, positions, capsules, k, share + k * positions, worth + k * positions, dlogits);
    for (int64_t i = 0; i < positions && dt; i++)
        spread(type, positions, channels, capsules, dy, partial, share, i, dt);
}

void PL_KERNEL(capsule_pool_bwd)(int64_t positions, int64_t channels, int64_t capsules, pl_real type, const void *dy,
                                 const void *t, const void *logits, const float *da, const void *partial, float *share,
                                 void *dt, void *dlogits)
{
    PL_REAL_EACH(type, pool_bwd(REAL, positions, channels, capsules, dy, t, logits, da, partial, share, dt, dlogits));
}

/* ---- what is picked ---- */

PL_V_INLINE int comes_before(float a, float b) { return a > b || (b != b && a == a); }

/* The places of the largest so far stand in order; a number that comes before the last of them moves up. */
void PL_KERNEL(top_k)(int64_t width, int64_t count, const float *x, int32_t *y)
{
    for (int64_t i = 0; i < width; i++) {
        int64_t at = i < count ? i : count;
        if (at == count && !comes_before(x[i], x[y[--at]])) continue;
        for (; at > 0 && comes_before(x[i], x[y[at - 1]]); at--) y[at] = y[at - 1];
        y[at] = (int32_t)i;
    }
}

PL_V_INLINE void gather_bwd(pl_real type, int64_t begin, int64_t end, int64_t picks, int64_t width, const void *dy,
                            const int32_t *index, const void *partial, void *dt)
{
    for (int64_t r = 0; r < end - begin; r++)
        for (int64_t c = 0; c < width; c += PL_VW) {
            int64_t n = lanes(width - c);
            pl_vf sum = partial ? pl_v_get(type, partial, r * width + c, n) : pl_v_zero();
            for (int64_t j = 0; j < picks; j++)
                if (index[j] == begin + r) sum += pl_v_get(type, dy, j * width + c, n);
            pl_v_put(type, dt, r * width + c, sum, n);
        }
}

void PL_KERNEL(gather_rows_bwd)(int64_t begin, int64_t end, int64_t picks, int64_t width, pl_real type, const void *dy,
                                const int32_t *index, const void *partial, void *dt)
{
    PL_REAL_EACH(type, gather_bwd(REAL, begin, end, picks, width, dy, index, partial, dt));
}

PL_V_INLINE void sum_of_rows(pl_real type, int64_t rows, int64_t width, const void *x, void *y)
{
    for (int64_t c = 0; c < width; c += PL_VW) {
        int64_t n = lanes(width - c);
        pl_vf sum = pl_v_get(type, x, c, n);
        for (int64_t r = 1; r < rows; r++) sum += pl_v_get(type, x, r * width + c, n);
        pl_v_put(type, y, c, sum, n);
    }
}

void PL_KERNEL(sum_rows)(int64_t rows, int64_t width, pl_real type, const void *x, void *y)
{
    PL_REAL_EACH(type, sum_of_rows(REAL, rows, width, x, y));
}
