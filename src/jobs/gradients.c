/* One batch, its loss and every gradient, as safetensors: so that anyone can compare with another framework. The plan
 * must have been made for that (gradients and data are outputs of its program, which has no update). */
#include <math.h>
#include <string.h>

#include "ir/op.h"
#include "ir/properties.h"
#include "jobs/jobs.h"
#include "run/session_impl.h"

#define KEPT_STATE "staging.gradients"

typedef struct batch_gradients {
    pl_id program, sum;
    const double *loss;
    char *kept;   /* the state that the step begins with, for another attempt; NULL: there is only one */
    bool is_mean; /* the loss is one, and not the sum over the items */
} batch_gradients;

/* All that the program gives out but the loss, which comes last and as a mean. */
static bool is_output(const pl_graph *g, const batch_gradients *b, pl_id id)
{
    const pl_value *v = &g->value[id];
    return v->role == PL_ROLE_OUTPUT && v->program == b->program && id != b->sum && pl_value_root(g, id) == id;
}

/* What the backward pass writes, and nothing that the data bring. */
static bool is_gradient(const pl_graph *g, pl_id id)
{
    for (size_t i = 0; i < g->value_count; i++) {
        const pl_id maker = g->value[i].producer;
        const bool is_written = maker != PL_NONE && g->node[maker].phase == PL_PHASE_BACKWARD;
        if (is_written && pl_value_root(g, (pl_id)i) == id) return true;
    }
    return false;
}

/* Multiplies every gradient by a power of two; false when one is not finite. */
static bool scale_all(pl_st_entry *entry, size_t count, float factor)
{
    bool finite = true;
    for (size_t i = 0; i < count; i++) {
        float *x = entry[i].data;
        for (uint64_t e = 0; e < entry[i].bytes / sizeof *x && entry[i].dtype == PL_ST_F32; e++)
            finite &= isfinite(x[e] *= factor) != 0;
    }
    return finite;
}

static bool is_state(const pl_graph *g, pl_id id)
{
    return g->value[id].role == PL_ROLE_STATE && g->value[id].program == PL_NONE && pl_value_root(g, id) == id;
}

/* Only f16 may need more than one attempt. */
static uint64_t staging_bytes(const pl_graph *g, const pl_run_settings *r, const pl_data *data)
{
    uint64_t bytes = 0;
    (void)r, (void)data;
    if (pl_input_find(g, PL_INPUT_LOSS_SCALE) == PL_NONE) return 0;
    for (size_t i = 0; i < g->value_count; i++)
        if (is_state(g, (pl_id)i)) bytes += pl_value_bytes(g, (pl_id)i);
    return bytes;
}

/* Out of the state or back into it. */
static void copy_state(pl_session *s, const batch_gradients *b, bool back)
{
    const pl_graph *g = s->o.plan->graph;
    char *kept = b->kept;
    for (size_t i = 0; i < g->value_count && kept; i++) {
        const uint64_t bytes = pl_value_bytes(g, (pl_id)i);
        if (!is_state(g, (pl_id)i)) continue;
        void *state = pl_session_address(s, (pl_id)i);
        memcpy(back ? state : kept, back ? kept : state, bytes);
        kept += bytes;
    }
}

static pl_status run_batch(pl_session *s, const batch_gradients *b, pl_error *err)
{
    pl_ring_begin(s->ring, PL_PART_TRAIN, s->step, s->step + 1);
    return pl_session_run_program(s, b->program, false, err);
}

/* f16: the gradients come out loss_scale times too large, and they are made again with a smaller scale when one of them
 * became too large to be a number. */
static pl_status run_scaled(pl_session *s, const batch_gradients *b, pl_st_entry *gradient, size_t count, pl_error *err)
{
    float scale = PL_LOSS_SCALE_FIRST;
    if (!s->input[PL_INPUT_LOSS_SCALE]) return run_batch(s, b, err);
    copy_state(s, b, false);
    for (bool finite = false; !finite && scale >= 1; scale /= 2) {
        copy_state(s, b, true);
        pl_session_set_real(s, PL_INPUT_LOSS_SCALE, scale);
        PL_TRY(run_batch(s, b, err));
        finite = scale_all(gradient, count, 1 / scale);
    }
    return PL_OK;
}

/* The gradients, or what else the program gives out. */
static pl_status list_outputs(const pl_session *s, const batch_gradients *b, bool gradients, pl_st_entry *entry,
                              size_t *count, pl_error *err)
{
    const pl_graph *g = s->o.plan->graph;
    for (size_t i = 0; i < g->value_count; i++)
        if (is_output(g, b, (pl_id)i) && is_gradient(g, (pl_id)i) == gradients)
            PL_TRY(pl_session_fill_entry(g, s->program, (pl_id)i, &entry[(*count)++], err));
    return PL_OK;
}

static pl_status run_gradients(pl_session *s, void *state, pl_error *err)
{
    const batch_gradients *b = state;
    const pl_graph *g = s->o.plan->graph;
    pl_status status = PL_OK;
    uint64_t counted = pl_session_counted(s, PL_PART_TRAIN, s->step);
    double loss = 0;
    size_t count = 0, gradients;
    if (!s->settings->to) return pl_fail(err, PL_E_USAGE, "a file for the gradients is missing");
    pl_alloc_seal(0); /* nothing is measured after this: the lists may use the heap */
    pl_st_entry *entry = pl_alloc(g->value_count + 1, sizeof *entry);
    pl_st_writer *writer = pl_alloc(1, sizeof *writer);
    if (!entry || !writer) PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "no memory for the list of gradients"));
    PL_TRY_DONE(list_outputs(s, b, true, entry, &count, err));
    gradients = count;
    PL_TRY_DONE(list_outputs(s, b, false, entry, &count, err));
    pl_session_set_real(s, PL_INPUT_LR, 0);
    pl_session_set_step(s, s->step, counted);
    PL_TRY_DONE(run_scaled(s, b, entry, gradients, err));
    loss = counted ? *b->loss / (b->is_mean ? 1 : (double)counted) : 0;
    entry[count++] =
        (pl_st_entry){.name = "loss", .dtype = PL_ST_F64, .rank = 1, .shape = {1}, .data = &loss, .bytes = sizeof loss};
    pl_st_list list = {.entries = entry, .count = count};
    PL_TRY_DONE(pl_safetensors_check(&list, err));
    PL_TRY_DONE(pl_safetensors_write(writer, s->settings->to, &list, NULL, err));
done:
    pl_free(entry);
    pl_free(writer);
    return status;
}

static pl_status open_gradients(pl_session *s, void *state, pl_error *err)
{
    batch_gradients *b = state;
    if (!s->o.data->source) return pl_fail(err, PL_E_DATA, "the plan takes a batch, but there is no data; plan again");
    PL_TRY(pl_session_find_program(s, "train", &b->program, err));
    b->kept = pl_session_value(s, KEPT_STATE);
    b->sum = pl_graph_find_loss(s->o.plan->graph, b->program);
    b->is_mean = pl_program_has_mean_loss(s->o.plan->graph, b->program);
    return pl_session_find_loss(s, b->program, &b->loss, err);
}

const pl_job pl_job_gradients = {.program = {"init", "train"},
                                 .staging = KEPT_STATE,
                                 .staging_bytes = staging_bytes,
                                 .state_bytes = sizeof(batch_gradients),
                                 .open = open_gradients,
                                 .run = run_gradients};
