#include "base/convolution.h"

#include <string.h>

static const char *const names[PL_CONVOLUTION_ALGORITHM_COUNT] = {"direct", "winograd2", "winograd4"};

const char *pl_convolution_algorithm_name(pl_convolution_algorithm a) { return names[a]; }

int pl_convolution_algorithm_parse(const char *text, pl_convolution_algorithm *a)
{
    for (int i = 0; i < PL_CONVOLUTION_ALGORITHM_COUNT; i++)
        if (strcmp(text, names[i]) == 0) return *a = (pl_convolution_algorithm)i, 0;
    return -1;
}

/* a + (a − step) + (a − 2·step) + …, what is positive, of at most `most` outputs. */
static double overhang(int64_t a, int64_t step, int64_t most)
{
    int64_t count = a > 0 ? (a - 1) / step + 1 : 0;
    double m = (double)(count < most ? count : most);
    return m * (double)a - (double)step * m * (m - 1) / 2;
}

/* Taps that lie within the image, of all outputs along one axis. */
static double taps_within(int64_t n, int64_t outputs, const pl_convolution_shape *s)
{
    int64_t last = (outputs - 1) * s->stride - s->pad + s->kernel - n;
    return (double)outputs * (double)s->kernel - overhang(s->pad, s->stride, outputs) -
           overhang(last, s->stride, outputs);
}

double pl_convolution_macs(const pl_convolution_shape *s)
{
    return taps_within(s->height, s->out_height, s) * taps_within(s->width, s->out_width, s) * (double)s->in *
           (double)s->out;
}

static double windows_along(int64_t pixels, int64_t m) { return (double)((pixels + m - 1) / m); }

double pl_convolution_products(const pl_convolution_shape *s, pl_convolution_algorithm a)
{
    const int64_t m = a == PL_CONVOLUTION_WINOGRAD4 ? 4 : 2, t = m + 2; /* F(m×m, 3×3): t² for each window */
    if (a == PL_CONVOLUTION_DIRECT) return pl_convolution_macs(s);
    const int64_t height = s->height < s->out_height ? s->height : s->out_height;
    const int64_t width = s->width < s->out_width ? s->width : s->out_width;
    return windows_along(height, m) * windows_along(width, m) * (double)(t * t) * (double)s->in * (double)s->out;
}

int pl_convolution_allows(const pl_convolution_shape *s, pl_convolution_algorithm a)
{
    return a == PL_CONVOLUTION_DIRECT || (a < PL_CONVOLUTION_ALGORITHM_COUNT && s->kernel == 3 && s->stride == 1);
}

enum { WINOGRAD_CHANNELS = 16, WINOGRAD_PIXELS = 4, WINOGRAD_DW_PIXELS = 16 };

static int is_wide(const pl_convolution_shape *s) { return s->in >= WINOGRAD_CHANNELS && s->out >= WINOGRAD_CHANNELS; }

pl_convolution_algorithm pl_convolution_choose(const pl_convolution_shape *s)
{
    int large = s->out_height >= WINOGRAD_PIXELS && s->out_width >= WINOGRAD_PIXELS;
    return is_wide(s) && large && pl_convolution_allows(s, PL_CONVOLUTION_WINOGRAD4) ? PL_CONVOLUTION_WINOGRAD4
                                                                                     : PL_CONVOLUTION_DIRECT;
}

pl_convolution_algorithm pl_convolution_choose_dw(const pl_convolution_shape *s, pl_convolution_algorithm forward)
{
    int large = s->out_height >= WINOGRAD_DW_PIXELS && s->out_width >= WINOGRAD_DW_PIXELS;
    return is_wide(s) && large && pl_convolution_allows(s, forward) ? forward : PL_CONVOLUTION_DIRECT;
}

const char *pl_convolution_rule(void)
{
    return "winograd4 for kernel 3 with stride 1, at least 16 channels on either side and at least 4 x 4 outputs, "
           "and the gradient of its weights from 16 x 16 outputs on; else direct";
}
