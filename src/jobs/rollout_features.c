#include "jobs/rollout_features.h"

#include <string.h>

#include "run/session_impl.h"

/* Rows behind the last input get it once more: their answers are not taken. */
static void put_inputs(pl_rollout_features *w)
{
    for (int row = 0; row < w->rows; row++) {
        const int input = w->first + row < PL_FEATURE_INPUTS ? w->first + row : PL_FEATURE_INPUTS - 1;
        pl_features_input(&w->f, input, w->state + (uint64_t)row * w->elems);
    }
}

static pl_status ask(pl_rollout_features *w, pl_session *s, uint32_t number, pl_error *err)
{
    for (w->first = 0; w->first < PL_FEATURE_INPUTS; w->first += w->rows) {
        if (pl_session_should_stop(s))
            return pl_fail(err, PL_E_STOPPED, "stopped at operator %u, its features", number);
        put_inputs(w);
        PL_TRY(pl_session_run_program(s, w->program, false, err));
    }
    return PL_OK;
}

void pl_rollout_features_take(pl_rollout_features *w, const pl_store_call *call)
{
    const pl_dtype dtype = call->port[0].dtype;
    const pl_real type = dtype == PL_DTYPE_F32 ? PL_REAL_F32 : dtype == PL_DTYPE_BF16 ? PL_REAL_BF16 : PL_REAL_F16;
    for (int row = 0; row < w->rows && w->first + row < PL_FEATURE_INPUTS; row++)
        pl_features_take(&w->f, w->first + row, type,
                         pl_real_at(type, call->port[0].at, (int64_t)((uint64_t)row * w->elems)));
}

pl_status pl_rollout_features_make(pl_rollout_features *w, pl_session *s, uint32_t number,
                                   float feature[PL_OPERATOR_FEATURES], pl_error *err)
{
    const uint64_t bytes = w->elems * sizeof *w->state;
    float *x = w->room;
    memcpy(x, w->state, bytes);
    pl_features_begin(&w->f, pl_rollout_data_of(s->o.data)->setup.seed, number, (int64_t)w->elems, x, x + w->elems);
    w->at_work = true;
    pl_status status = ask(w, s, number, err);
    w->at_work = false;
    for (int row = 0; row < w->rows; row++) memcpy(w->state + (uint64_t)row * w->elems, x, bytes);
    pl_features_finish(&w->f, feature);
    return status;
}
