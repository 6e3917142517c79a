/* Low Fourier modes of images and products with a matrix a mode. */
#include "backend/backend.h"
#include "ir/op.h"

static pl_spectrum_call spectrum_call(const pl_graph *g, const pl_addresses *a, pl_id image, pl_id spectrum)
{
    const int64_t *dim = g->value[image].shape.dim;
    return (pl_spectrum_call){.samples = dim[0],
                              .height = dim[1],
                              .width = dim[2],
                              .channels = dim[3],
                              .modes = g->value[spectrum].shape.dim[2],
                              .image = pl_address_of(g, a, image),
                              .spectrum = pl_address_of(g, a, spectrum),
                              .type = pl_real_of(g, image)};
}

static void bind_rfft2(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    call->u.spectrum = spectrum_call(g, a, n->rfft2.x, n->rfft2.y);
    call->u.spectrum.inverse_factors = n->rfft2.adjoint != 0;
}

static uint64_t workspace_spectrum(const pl_call *c, pl_team team)
{
    return pl_spectrum_workspace_bytes(&c->u.spectrum, team);
}
static void exec_rfft2(const pl_call *c, pl_team team) { pl_spectrum_exec(&c->u.spectrum, c->workspace, team); }

const pl_binding pl_binding_RFFT2 = {bind_rfft2, workspace_spectrum, exec_rfft2};

static void bind_irfft2(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    call->u.spectrum = spectrum_call(g, a, n->irfft2.y, n->irfft2.spectrum);
    call->u.spectrum.add = n->irfft2.add ? pl_address_of(g, a, n->irfft2.image) : NULL;
    call->u.spectrum.inverse_factors = n->irfft2.adjoint == 0;
}

static void exec_irfft2(const pl_call *c, pl_team team) { pl_spectrum_back_exec(&c->u.spectrum, c->workspace, team); }

const pl_binding pl_binding_IRFFT2 = {bind_irfft2, workspace_spectrum, exec_irfft2};

/* x, R and y are which of the node's values. */
static void bind_product(const pl_graph *g, const pl_addresses *a, pl_id x, pl_id weight, pl_id y, pl_call *call)
{
    const int64_t *dim = g->value[x].shape.dim;
    call->u.spectral_linear = (pl_spectral_linear){.samples = dim[0],
                                                   .modes = dim[1] * dim[2],
                                                   .in = dim[4],
                                                   .out = g->value[y].shape.dim[4],
                                                   .x = pl_address_of(g, a, x),
                                                   .weight = pl_address_of(g, a, weight),
                                                   .y = pl_address_of(g, a, y)};
}

static void bind_spectral_linear(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    bind_product(g, a, n->spectral_linear.x, n->spectral_linear.weight, n->spectral_linear.y, call);
}

static void exec_spectral_linear(const pl_call *c, pl_team team)
{
    pl_spectral_linear_exec(&c->u.spectral_linear, PL_SPECTRAL_FORWARD, team);
}

const pl_binding pl_binding_SPECTRAL_LINEAR = {bind_spectral_linear, NULL, exec_spectral_linear};

static void bind_spectral_linear_dx(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    bind_product(g, a, n->spectral_linear_dx.dx, n->spectral_linear_dx.weight, n->spectral_linear_dx.dy, call);
}

static void exec_spectral_linear_dx(const pl_call *c, pl_team team)
{
    pl_spectral_linear_exec(&c->u.spectral_linear, PL_SPECTRAL_DX, team);
}

const pl_binding pl_binding_SPECTRAL_LINEAR_DX = {bind_spectral_linear_dx, NULL, exec_spectral_linear_dx};

static void bind_spectral_linear_dw(const pl_graph *g, const pl_node *n, const pl_addresses *a, pl_call *call)
{
    bind_product(g, a, n->spectral_linear_dw.x, n->spectral_linear_dw.dweight_new, n->spectral_linear_dw.dy, call);
}

static void exec_spectral_linear_dw(const pl_call *c, pl_team team)
{
    pl_spectral_linear_exec(&c->u.spectral_linear, PL_SPECTRAL_DW, team);
}

const pl_binding pl_binding_SPECTRAL_LINEAR_DW = {bind_spectral_linear_dw, NULL, exec_spectral_linear_dw};
