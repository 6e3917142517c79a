/* Layer norm and RMS norm (0.3) and their derivatives: with g = dy·gamma, ⟨·⟩ the mean over the row,
 *   layer norm  dx = r·(g − ⟨g⟩ − x̂⟨g x̂⟩);   RMS norm  dx = r·g − x r³⟨x g⟩;   dgamma += dy·x̂, dbeta += dy. */
#include <math.h>

#include "reference/state.h"

static void forward(operands *o, bool rms)
{
    int64_t n = pl_shape_last(&operand(o, 0)->shape), rows = pl_shape_rows(&operand(o, 0)->shape);
    double *y = scratch(o, (uint64_t)(rows * n)), *means = scratch(o, (uint64_t)rows),
           *rstds = scratch(o, (uint64_t)rows);
    for (int64_t i = 0; i < rows; i++) {
        const double *x = o->in[0] + i * n;
        double mean = 0, square = 0;
        for (int64_t j = 0; j < n && !rms; j++) mean += x[j] / (double)n;
        for (int64_t j = 0; j < n; j++) square += (x[j] - mean) * (x[j] - mean) / (double)n;
        means[i] = mean;
        rstds[i] = 1 / sqrt(square + o->node->attr[0].f);
        for (int64_t j = 0; j < n; j++)
            y[i * n + j] =
                (x[j] - mean) * rstds[i] * (o->in[1] ? o->in[1][j] : 1) + (!rms && o->in[2] ? o->in[2][j] : 0);
    }
    put(o, 0, y);
    if (!rms) put(o, 1, means);
    put(o, rms ? 1 : 2, rstds);
}

void reference_layer_norm(operands *o) { forward(o, false); }
void reference_rms_norm(operands *o) { forward(o, true); }

void reference_layer_norm_bwd(operands *o)
{
    const double *dy = o->in[0], *x = o->in[1], *gamma = o->in[2], *mean = o->in[3], *rstd = o->in[4];
    int64_t n = pl_shape_last(&operand(o, 1)->shape), rows = pl_shape_rows(&operand(o, 1)->shape);
    double *dx = scratch(o, (uint64_t)(rows * n));
    for (int64_t i = 0; i < rows; i++) {
        double g_mean = 0, gx_mean = 0;
        for (int64_t j = 0; j < n; j++) {
            double hat = (x[i * n + j] - mean[i]) * rstd[i], g = dy[i * n + j] * gamma[j];
            g_mean += g / (double)n;
            gx_mean += g * hat / (double)n;
            if (o->in[5]) o->in[5][j] += dy[i * n + j] * hat;
            if (o->in[6]) o->in[6][j] += dy[i * n + j];
        }
        for (int64_t j = 0; j < n; j++) {
            double hat = (x[i * n + j] - mean[i]) * rstd[i], g = dy[i * n + j] * gamma[j];
            dx[i * n + j] = (o->in[7] ? o->in[7][i * n + j] : 0) + rstd[i] * (g - g_mean - hat * gx_mean);
        }
    }
    put(o, 0, dx);
    if (o->in[5]) put(o, 1, o->in[5]);
    if (o->in[6]) put(o, 2, o->in[6]);
}

void reference_rms_norm_bwd(operands *o)
{
    const double *dy = o->in[0], *x = o->in[1], *gamma = o->in[2], *rstd = o->in[3];
    int64_t n = pl_shape_last(&operand(o, 1)->shape), rows = pl_shape_rows(&operand(o, 1)->shape);
    double *dx = scratch(o, (uint64_t)(rows * n));
    for (int64_t i = 0; i < rows; i++) {
        double r = rstd[i], xg_mean = 0;
        for (int64_t j = 0; j < n; j++) {
            xg_mean += x[i * n + j] * dy[i * n + j] * (gamma ? gamma[j] : 1) / (double)n;
            if (o->in[4]) o->in[4][j] += dy[i * n + j] * x[i * n + j] * r;
        }
        for (int64_t j = 0; j < n; j++)
            dx[i * n + j] = (o->in[5] ? o->in[5][i * n + j] : 0) + r * dy[i * n + j] * (gamma ? gamma[j] : 1) -
                            x[i * n + j] * r * r * r * xg_mean;
    }
    put(o, 0, dx);
    if (o->in[4]) put(o, 1, o->in[4]);
}
