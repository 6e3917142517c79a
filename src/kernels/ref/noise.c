/* Scalar reference of kernels/cpu/noise.c: one number after the other, functions and sums in double. */
#include <math.h>

#include "kernels/kernels.h"

static const double turn = 6.283185307179586476925;

static double white(const pl_noise *n, int64_t pixel, int64_t channel)
{
    uint64_t element = (uint64_t)(pixel * ((n->channels + 3) / 4 * 4) + channel);
    uint32_t bits[4];
    pl_philox_block(&n->philox, n->step, n->sample, (uint32_t)(element / 4), bits);
    if (n->kind == PL_NOISE_LAPLACE) {
        uint32_t word = bits[element % 4];
        double size = -log(((float)(word >> 1) + 0.5f) * 0x1p-31f);
        return word & 1 ? -size : size;
    }
    const uint32_t *pair = bits + element % 4 / 2 * 2;
    double radius = sqrt(-2 * log(((float)pair[0] + 0.5f) * 0x1p-32f)), angle = turn * pair[1] * 0x1p-32;
    return radius * (element % 2 ? sin(angle) : cos(angle));
}

static void add(const pl_noise *n, pl_real type, const void *x, void *y, int64_t at, double amount)
{
    double v = pl_real_get(type, x, at);
    pl_real_put(type, y, at, (float)(v + (n->kind == PL_NOISE_MULTIPLICATIVE ? v : 1) * amount));
}

static void drop(const pl_noise *n, int64_t channel, pl_real type, const void *x, void *y, int64_t at)
{
    uint32_t bits[4];
    pl_philox_block(&n->philox, n->step, n->sample, (uint32_t)(channel / 4), bits);
    int dropped = pl_uniform_f32(bits[channel % 4]) < n->scale;
    pl_real_put(type, y, at, dropped ? 0 : pl_real_get(type, x, at) / (1 - n->scale));
}

void PL_KERNEL(noise)(const pl_noise *n, int64_t begin, int64_t end, pl_real type, const void *x, void *y)
{
    for (int64_t p = begin; p < end; p++)
        for (int64_t c = 0; c < n->channels; c++) {
            int64_t at = p * n->channels + c;
            if (n->kind == PL_NOISE_DROPOUT2D)
                drop(n, c, type, x, y, at);
            else
                add(n, type, x, y, at, n->scale * white(n, p, c));
        }
}

/* A ring of n numbers, `stride` apart. */
static void filter(pl_noise_workspace *w, int64_t n, float *ring, int64_t stride, int64_t radius)
{
    for (int64_t i = 0; i < n; i++) w->line[i] = ring[i * stride];
    for (int64_t i = 0; i < n; i++) {
        double sum = w->exact[0] * w->line[i];
        for (int64_t j = 1; j <= radius; j++)
            sum += w->exact[j] * ((double)w->line[(i + n - j) % n] + w->line[(i + j) % n]);
        ring[i * stride] = (float)sum;
    }
}

static double deviation(const float *plane, int64_t pixels)
{
    double mean = 0, squares = 0;
    for (int64_t p = 0; p < pixels; p++) mean += plane[p] / (double)pixels;
    for (int64_t p = 0; p < pixels; p++) squares += (plane[p] - mean) * (plane[p] - mean);
    return sqrt(squares / (double)(pixels - 1));
}

/* One channel after the other, in the first plane of the strip. */
static void correlated(const pl_noise *n, pl_noise_workspace *w, int64_t channel, pl_real type, const void *x, void *y)
{
    int64_t pixels = n->height * n->width;
    for (int64_t p = 0; p < pixels; p++) w->strip[p] = (float)white(n, p, channel);
    int64_t radius = pl_circular_gaussian(n->width, n->correlation, w->scratch, w->exact);
    for (int64_t row = 0; row < n->height; row++) filter(w, n->width, w->strip + row * n->width, 1, radius);
    radius = pl_circular_gaussian(n->height, n->correlation, w->scratch, w->exact);
    for (int64_t column = 0; column < n->width; column++) filter(w, n->height, w->strip + column, n->width, radius);
    double strength = deviation(w->strip, pixels);
    double factor = strength > 0 ? n->scale * (n->kind == PL_NOISE_LAPLACE ? sqrt(2) : 1) / strength : 0;
    for (int64_t p = 0; p < pixels; p++) add(n, type, x, y, p * n->channels + channel, factor * w->strip[p]);
}

void PL_KERNEL(noise_correlated)(const pl_noise *n, int64_t strip, pl_real type, const void *x, void *y,
                                 void *workspace)
{
    pl_noise_workspace w = pl_noise_lay_out(n->height, n->width, workspace);
    int64_t end = (strip + 1) * PL_NOISE_STRIP;
    for (int64_t c = strip * PL_NOISE_STRIP; c < end && c < n->channels; c++) correlated(n, &w, c, type, x, y);
}
