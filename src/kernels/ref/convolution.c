#include "kernels/convolution.h"

typedef pl_convolution_shape shape;

static int64_t x_at(const shape *s, int64_t b, int64_t y, int64_t x, int64_t c)
{
    return ((b * s->height + y) * s->width + x) * s->in + c;
}
static int64_t y_at(const shape *s, int64_t b, int64_t y, int64_t x, int64_t n)
{
    return ((b * s->out_height + y) * s->out_width + x) * s->out + n;
}
static int64_t w_at(const shape *s, int64_t n, int64_t u, int64_t v, int64_t c)
{
    return ((n * s->kernel + u) * s->kernel + v) * s->in + c;
}

static double output_of(const shape *s, pl_real type, const void *x, const void *w, int64_t row, int64_t column,
                        int64_t n)
{
    int64_t b = row / s->out_height, top = row % s->out_height * s->stride - s->pad, left = column * s->stride - s->pad;
    double sum = 0;
    for (int64_t u = 0; u < s->kernel; u++)
        for (int64_t v = 0; v < s->kernel; v++) {
            if (top + u < 0 || top + u >= s->height || left + v < 0 || left + v >= s->width) continue;
            for (int64_t c = 0; c < s->in; c++)
                sum += (double)pl_real_get(type, x, x_at(s, b, top + u, left + v, c)) *
                       pl_real_get(type, w, w_at(s, n, u, v, c));
        }
    return sum;
}

void pl_convolution_ref(const shape *s, pl_real type, const void *x, const void *w, const pl_gemm_epilogue *e,
                        int64_t begin, int64_t end)
{
    const pl_gemm_kernels *kernels = pl_gemm_kernels_of(PL_ISA_REF, type, type);
    for (int64_t row = begin; row < end; row++)
        for (int64_t column = 0; column < s->out_width; column++)
            for (int64_t n = 0; n < s->out; n++) {
                float sum = (float)output_of(s, type, x, w, row, column, n);
                kernels->finish(e, &sum, 1, row * s->out_width + column, n, 1, 1);
            }
}

/* Output o has the tap that meets `place`, or there is none: −1. */
static int64_t output_with(int64_t place, int64_t tap, int64_t outputs, const shape *s)
{
    int64_t from = place + s->pad - tap;
    return from < 0 || from % s->stride != 0 || from / s->stride >= outputs ? -1 : from / s->stride;
}

static double gradient_of(const shape *s, pl_real type, const void *dy, const void *w, int64_t row, int64_t column,
                          int64_t c)
{
    double sum = 0;
    for (int64_t u = 0; u < s->kernel; u++)
        for (int64_t v = 0; v < s->kernel; v++) {
            int64_t oy = output_with(row % s->height, u, s->out_height, s);
            int64_t ox = output_with(column, v, s->out_width, s);
            for (int64_t n = 0; n < s->out && oy >= 0 && ox >= 0; n++)
                sum += (double)pl_real_get(type, dy, y_at(s, row / s->height, oy, ox, n)) *
                       pl_real_get(type, w, w_at(s, n, u, v, c));
        }
    return sum;
}

void pl_convolution_dx_ref(const shape *s, pl_real type, const void *dy, const void *w, const pl_gemm_epilogue *e,
                           int64_t begin, int64_t end)
{
    const pl_gemm_kernels *kernels = pl_gemm_kernels_of(PL_ISA_REF, type, type);
    for (int64_t row = begin; row < end; row++)
        for (int64_t column = 0; column < s->width; column++)
            for (int64_t c = 0; c < s->in; c++) {
                float sum = (float)gradient_of(s, type, dy, w, row, column, c);
                kernels->finish(e, &sum, 1, row * s->width + column, c, 1, 1);
            }
}

static float weight_gradient(const shape *s, pl_real type, const void *dy, const void *x, float sum, int64_t n,
                             int64_t u, int64_t v, int64_t c)
{
    for (int64_t row = 0; row < s->batch * s->out_height; row++)
        for (int64_t ox = 0; ox < s->out_width; ox++) {
            int64_t b = row / s->out_height, oy = row % s->out_height;
            int64_t iy = oy * s->stride - s->pad + u, ix = ox * s->stride - s->pad + v;
            if (iy < 0 || iy >= s->height || ix < 0 || ix >= s->width) continue;
            sum = (float)(sum + (double)pl_real_get(type, dy, y_at(s, b, oy, ox, n)) *
                                    pl_real_get(type, x, x_at(s, b, iy, ix, c)));
        }
    return sum;
}

void pl_convolution_dw_ref(const shape *s, pl_real type, const void *dy, const void *x, float *dw, int64_t begin,
                           int64_t end)
{
    for (int64_t n = begin; n < end; n++)
        for (int64_t u = 0; u < s->kernel; u++)
            for (int64_t v = 0; v < s->kernel; v++)
                for (int64_t c = 0; c < s->in; c++) {
                    float *sum = dw + w_at(s, n, u, v, c);
                    *sum = weight_gradient(s, type, dy, x, *sum, n, u, v, c);
                }
}
