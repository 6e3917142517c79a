/* Kernels are measured while the search asks for times. */
#include "api/compiler.h"
#include "run/threads.h"
#include "store/folder.h"

enum { CANDIDATE_SECONDS_TENTHS = 13 }; /* calibration time of one candidate; mostly the first one fits */

/* In a small container there may be no room to measure: then times are not known, and what fits runs all the same. */
static pl_status measure(void *context, const pl_graph *g, pl_error *err)
{
    pl_compiler *c = context;
    size_t missing = 0;
    if (c->team_wanted) PL_TRY(pl_calibration_count_missing(c->calibration, g, &missing, err));
    if (missing) {
        PL_TRY(pl_threads_probe(c->team_wanted, err));
        c->team_wanted = 0;
    }
    pl_error why = {0};
    pl_status status = pl_calibration_measure(c->calibration, g, &why);
    if (status == PL_E_NOMEM && pl_process_fence_left() != UINT64_MAX) return PL_OK;
    if (status != PL_OK) *err = why;
    return status;
}

static void tell_calibration(void *context, size_t done, size_t total, double seconds)
{
    pl_told *t = context;
    (void)seconds;
    if (t->progress) (void)t->progress(t->context, "measuring kernels", done, total);
}

pl_status pl_compiler_open_calibration(pl_compiler *c, pl_fit_options *o, const char *folder, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    pl_error ignored = {0};
    bool kept = folder && pl_folder_create(folder, &ignored) == PL_OK;
    if (kept) PL_TRY(pl_calibration_path(path, sizeof path, folder, err));
    uint64_t room = pl_process_fence_left() / 2; /* the rest is for what plans */
    bool little = room < PL_CALIBRATION_BYTES_MAX;
    pl_calibration_options co = {.team = o->plan.team,
                                 .huge_pages = o->given.huge_pages && !little,
                                 .bytes_max = little ? room + 1 : 0,
                                 .seconds_max = CANDIDATE_SECONDS_TENTHS / 10.0,
                                 .progress = tell_calibration,
                                 .progress_context = &c->told};
    PL_TRY(pl_calibration_open(kept ? path : NULL, &co, &c->calibration, err));
    c->team_wanted = o->plan.team.threads;
    o->measure = c->measured ? NULL : measure;
    o->plan.cost = (pl_cost_model){pl_calibration_seconds, pl_calibration_spread, c->calibration};
    return PL_OK;
}
