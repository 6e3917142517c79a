/* Convolution: which of the ways to compute it a call takes. A kernel of one pixel without padding is a product of all
 * pixels with a matrix (gemm.c); the scalar reference has functions of its own; those whose window is a few numbers
 * are in convolution_few.h; the rest is convolution_direct.c and convolution_dw.c. */
#include "backend/channel_norm.h"
#include "backend/convolution_direct.h"
#include "backend/convolution_epilogue.h"
#include "backend/convolution_few.h"
#include "backend/convolution_winograd.h"
#include "backend/parallel.h"
#include "kernels/convolution.h"

/* Of a y that is there already. */
static void make_moments(const pl_convolution_call *c, pl_team team)
{
    const pl_convolution_shape *s = &c->shape;
    pl_channel_moments_call moments = {s->batch * s->out_height, s->out_width, s->out, c->y, c->moments, c->type};
    if (c->moments) pl_channel_moments_exec(&moments, team);
}

/* ---- the scalar reference ---- */

static void ref_forward(const void *work, int part, int parts)
{
    const pl_convolution_call *c = work;
    pl_gemm_epilogue e = pl_convolution_epilogue(c);
    pl_range rows = pl_range_of_part(c->shape.batch * c->shape.out_height, 1, part, parts);
    pl_convolution_ref(&c->shape, c->type, c->x, c->weight, &e, rows.begin, rows.end);
}

static void ref_dx(const void *work, int part, int parts)
{
    const pl_convolution_dx_call *c = work;
    pl_gemm_epilogue e = pl_convolution_dx_epilogue(c);
    pl_range rows = pl_range_of_part(c->shape.batch * c->shape.height, 1, part, parts);
    pl_convolution_dx_ref(&c->shape, c->type, c->dy, c->weight, &e, rows.begin, rows.end);
}

/* ---- kernels of one pixel ---- */

static int64_t pixels_of(const pl_convolution_shape *s) { return s->batch * s->height * s->width; }

static pl_gemm_call product_of(const pl_convolution_call *c)
{
    pl_gemm_call p = pl_gemm_linear(c->type, pixels_of(&c->shape), c->shape.out, c->shape.in, c->x, c->weight, c->y);
    p.bias = c->bias;
    p.residual = c->residual, p.ld_residual = p.n;
    p.act = c->act, p.act_out = c->act_out, p.ld_act_out = p.n;
    return p;
}

static pl_gemm_call product_of_dx(const pl_convolution_dx_call *c)
{
    pl_gemm_call p =
        pl_gemm_linear_dx(c->type, pixels_of(&c->shape), c->shape.in, c->shape.out, c->dy, c->weight, c->dx);
    p.bias = c->bias;
    p.residual = c->residual, p.ld_residual = p.n;
    p.act = c->act, p.grad_of = c->grad_of, p.ld_grad_of = p.n;
    p.act_again = c->act_again, p.ld_act_again = p.n;
    return p;
}

/* ---- calls ---- */

uint64_t pl_convolution_workspace_bytes(const pl_convolution_call *c, pl_team team)
{
    pl_gemm_call product = product_of(c);
    if (team.isa == PL_ISA_REF) return 0;
    if (pl_convolution_is_product(&c->shape)) return pl_gemm_workspace_bytes(&product, team);
    if (pl_convolution_is_few(&c->shape, c->algorithm)) return pl_convolution_few_workspace_bytes(c, team);
    return c->algorithm == PL_CONVOLUTION_DIRECT ? pl_convolution_direct_of(c, team).bytes
                                                 : pl_convolution_winograd_of(c, team).bytes;
}

/* Where no row of y is complete before all of them are. */
static void exec_without_moments(const pl_convolution_call *c, void *workspace, pl_team team)
{
    if (team.isa == PL_ISA_REF) {
        pl_parallel(team, INT64_MAX, ref_forward, c);
    } else if (pl_convolution_is_product(&c->shape)) {
        pl_gemm_call product = product_of(c);
        pl_gemm_exec(&product, workspace, team);
    } else {
        pl_convolution_winograd w = pl_convolution_winograd_of(c, team);
        pl_convolution_winograd_exec(&w, workspace, team);
    }
}

void pl_convolution_exec(const pl_convolution_call *c, void *workspace, pl_team team)
{
    if (team.isa == PL_ISA_REF || pl_convolution_is_product(&c->shape) || c->algorithm != PL_CONVOLUTION_DIRECT) {
        exec_without_moments(c, workspace, team);
        make_moments(c, team);
        return;
    }
    if (pl_convolution_is_few(&c->shape, c->algorithm)) {
        pl_convolution_few_exec(c, workspace, team);
        return;
    }
    pl_convolution_direct d = pl_convolution_direct_of(c, team);
    pl_convolution_direct_exec(&d, workspace, team);
}

uint64_t pl_convolution_dx_workspace_bytes(const pl_convolution_dx_call *c, pl_team team)
{
    pl_gemm_call product = product_of_dx(c);
    if (team.isa == PL_ISA_REF) return 0;
    if (pl_convolution_is_product(&c->shape)) return pl_gemm_workspace_bytes(&product, team);
    if (pl_convolution_is_few(&c->shape, c->algorithm)) return pl_convolution_few_dx_workspace_bytes(c, team);
    return c->algorithm == PL_CONVOLUTION_DIRECT ? pl_convolution_direct_of_dx(c, team).bytes
                                                 : pl_convolution_winograd_of_dx(c, team).bytes;
}

void pl_convolution_dx_exec(const pl_convolution_dx_call *c, void *workspace, pl_team team)
{
    if (team.isa == PL_ISA_REF) {
        pl_parallel(team, INT64_MAX, ref_dx, c);
    } else if (pl_convolution_is_product(&c->shape)) {
        pl_gemm_call product = product_of_dx(c);
        pl_gemm_exec(&product, workspace, team);
    } else if (pl_convolution_is_few(&c->shape, c->algorithm)) {
        pl_convolution_few_dx_exec(c, workspace, team);
    } else if (c->algorithm == PL_CONVOLUTION_DIRECT) {
        pl_convolution_direct d = pl_convolution_direct_of_dx(c, team);
        pl_convolution_direct_exec(&d, workspace, team);
    } else {
        pl_convolution_winograd w = pl_convolution_winograd_of_dx(c, team);
        pl_convolution_winograd_exec(&w, workspace, team);
    }
}
