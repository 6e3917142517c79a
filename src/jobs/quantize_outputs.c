/* A model as a whole that nothing held out judges: what it gives out of each sample (of a text the sketches of its
 * capsules and what belongs to them), in f32 and then in 8 bits, by the cosine of the two, row by row, and by the size
 * of their difference. */
#include <math.h>
#include <string.h>

#include "ir/op.h"
#include "ir/properties.h"
#include "jobs/quantize_impl.h"

const pl_real pl_quantize_reals[PL_DTYPE_COUNT] = {
    [PL_DTYPE_F32] = PL_REAL_F32, [PL_DTYPE_BF16] = PL_REAL_BF16, [PL_DTYPE_F16] = PL_REAL_F16};

static const pl_node *find_store(const pl_graph *g)
{
    for (size_t i = 0; i < g->node_count; i++)
        if (g->node[i].op == PL_OP_STORE) return &g->node[i];
    return NULL;
}

/* Which port has the first result that is a real number, from `k` on; others are ids and remarks that came in. */
static size_t next_port(const pl_graph *g, const pl_node *n, size_t k)
{
    const pl_id *port = n->store.port;
    while (k < PL_INS_OF_STORE && port[k] != PL_NONE && !pl_dtype_is_real(g->value[port[k]].dtype)) k++;
    return k < PL_INS_OF_STORE && port[k] != PL_NONE ? k : PL_INS_OF_STORE;
}

uint64_t pl_quantize_output_bytes(const pl_graph *g)
{
    const pl_node *n = find_store(g);
    uint64_t bytes = 0;
    for (size_t k = 0; n && (k = next_port(g, n, k)) < PL_INS_OF_STORE; k++)
        bytes += pl_shape_elems(&g->value[n->store.port[k]].shape) * sizeof(float);
    return bytes;
}

static pl_quantize_output open_output(const pl_graph *g, pl_id id, size_t port, float *wide)
{
    const pl_value *v = &g->value[id];
    const char *dot = strchr(v->name, '.');
    return (pl_quantize_output){.name = dot ? dot + 1 : v->name,
                                .port = port,
                                .wide = wide,
                                .real = pl_quantize_reals[v->dtype],
                                .count = pl_shape_elems(&v->shape),
                                .width = v->shape.rank ? (uint64_t)pl_shape_last(&v->shape) : 1};
}

void pl_quantize_open_outputs(const pl_session *s, pl_quantizing *q)
{
    const pl_graph *g = s->o.plan->graph;
    const pl_node *n = find_store(g);
    float *wide = (float *)(void *)q->rows;
    for (size_t k = 0; n && (k = next_port(g, n, k)) < PL_INS_OF_STORE; k++) {
        q->output[q->outputs] = open_output(g, n->store.port[k], k, wide);
        wide += q->output[q->outputs++].count;
    }
}

/* A step is a sample. */
static void count_remarks(const pl_session *s, pl_quantizing *q)
{
    const pl_rows_remark *remark[PL_ROWS_REMARKS_MAX];
    if (s->jobs.job[0] != &pl_job_quantize_infer) return;
    const size_t count = pl_infer_data_remarks(pl_infer_data_of(s->o.data), s->slot.step, remark);
    pl_infer_remarked_add(&q->remarked, remark, count);
}

static void add_rows(pl_quantize_output *o, const char *narrow)
{
    const uint64_t bytes = o->width * (uint64_t)pl_real_bytes(o->real);
    for (uint64_t r = 0; r < o->count / o->width; r++)
        pl_difference_add_row(&o->difference, o->width, o->real, narrow + r * bytes, o->wide + r * o->width);
}

void pl_quantize_take_outputs(const pl_session *s, pl_quantizing *q, const pl_store_call *call)
{
    if (q->takes == PL_QUANTIZE_WIDE) count_remarks(s, q);
    for (size_t k = 0; k < q->outputs; k++) {
        pl_quantize_output *o = &q->output[k];
        const void *at = call->port[o->port].at;
        if (q->takes == PL_QUANTIZE_WIDE)
            for (uint64_t i = 0; i < o->count; i++) o->wide[i] = pl_real_get(o->real, at, (int64_t)i);
        else
            add_rows(o, at);
    }
}

pl_status pl_quantize_check_outputs(const pl_quantizing *q, pl_error *err)
{
    for (size_t k = 0; k < q->outputs; k++)
        if (!isfinite(q->output[k].difference.size) || !isfinite(q->output[k].difference.off))
            return pl_fail(err, PL_E_DATA,
                           "%s: what the model gives out, in f32 or in 8 bits, is not finite; look at the weights, or "
                           "at the samples of the calibration",
                           q->output[k].name);
    return PL_OK;
}
