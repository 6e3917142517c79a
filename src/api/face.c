/* A model on the user's files: its program as others see it, and the files as its data. */
#include "api/api.h"

#include "base/alloc.h"
#include "config/schema.h"
#include "ir/face.h"
#include "models/model.h"
#include "rewrite/rewrite.h"
#include "systems/infer.h"

/* Which operands of a loss are needed to make what it judges, as for other programs. */
static const uint32_t scores[PL_OP_COUNT] = {
#define PL_LOWER_ROW(id, function, bits) [PL_OP_##id] = bits,
#include "export/lowerings.def"
#undef PL_LOWER_ROW
};

static pl_status rewrite(pl_graph *g, const pl_face *face, pl_error *err)
{
    const char *in[PL_FACE_IN_MAX], *stored[PL_FACE_STORED_MAX], *scored[PL_FACE_SCORED_MAX];
    for (int k = 0; k < PL_FACE_IN_MAX; k++) in[k] = face->in[k].name;
    for (int k = 0; k < PL_FACE_STORED_MAX; k++) stored[k] = face->stored[k].name;
    for (int k = 0; k < PL_FACE_SCORED_MAX; k++) scored[k] = face->scored[k].name;
    const pl_face_wish wish = {.program = face->program,
                               .as = PL_INFER_PROGRAM,
                               .given = face->given.value,
                               .given_as = face->given.as.name,
                               .in = in,
                               .stored = stored,
                               .scored = scored,
                               .in_count = PL_FACE_IN_MAX,
                               .stored_count = PL_FACE_STORED_MAX,
                               .scored_count = PL_FACE_SCORED_MAX,
                               .scores = scores};
    return pl_rewrite_face(g, &wish, err);
}

pl_status pl_build_graph(const pl_config *c, pl_command command, const pl_facts *extents, pl_graph **graph,
                         pl_error *err)
{
    if (!pl_system_files(c, command)) return pl_model_build(c, extents, graph, err);
    const pl_family *family = pl_model_family(c);
    pl_facts seen = *extents;
    pl_facts_add(&seen, "export", 1); /* for archs whose other programs want labels, too */
    pl_status status = family->check_used ? family->check_used(c, err) : PL_OK;
    const bool is_used = status == PL_OK;
    if (is_used) PL_TRY(pl_model_build(c, &seen, graph, err));
    if (is_used) status = rewrite(*graph, &family->face, err);
    if ((!is_used || status == PL_E_UNSUPPORTED) && pl_command_does(command, PL_USES_CALIBRATION))
        pl_error_append(err, "; take quantization.files (`calibrate`) away, and its own samples calibrate it");
    return status;
}

/* A config may name weights for other commands; on a command line they contradict the wish for first values. */
pl_status pl_check_seeded(const pl_config *c, pl_error *err)
{
    const pl_config_key *weights = pl_config_find_for(c, "<weights>");
    if (!weights || !pl_config_is_option(c, weights->path)) return PL_OK;
    return pl_fail(err, PL_E_USAGE, "`seeded` and `weights` both name weights; leave one out");
}

/* What the model depends on besides the files. The data that the config names are for other commands. */
static pl_status open_own(const pl_config *given, pl_command command, pl_data **data, pl_error *err)
{
    const bool seeded = pl_system_is_seeded(given, command);
    const pl_command like = pl_model_family(given)->used_for;
    const pl_dataset *from = pl_dataset_of(given, like);
    if (seeded) PL_TRY(pl_check_seeded(given, err));
    pl_config *c = pl_alloc(1, sizeof *c);
    if (!c) return pl_fail(err, PL_E_NOMEM, "no memory for the model");
    *c = *given;
    if (from->forget_data) from->forget_data(c);
    pl_status status = from->open(c, like, PL_DATA_FOR_RUN, NULL, data, err);
    pl_free(c);
    if (status != PL_OK) return status;
    if (seeded)
        (*data)->weights = NULL, (*data)->weights_part = NULL;
    else
        status = pl_system_take_weights(given, command, *data, err);
    if (status != PL_OK) pl_data_close(*data), *data = NULL;
    return status;
}

pl_status pl_open_files(const pl_config *c, pl_command command, const pl_facts *planned, const pl_staging_told *told,
                        pl_data **data, pl_error *err)
{
    pl_graph *graph = NULL;
    pl_data *own = NULL;
    PL_TRY(pl_system_require(c, command, err));
    PL_TRY(open_own(c, command, &own, err));
    pl_status status = planned ? PL_OK : pl_build_graph(c, command, &own->extents, &graph, err);
    if (status == PL_OK)
        status = pl_system_take_files(c, command, own, graph, planned, told, data, err);
    else
        pl_data_close(own);
    pl_graph_destroy(graph);
    return status;
}

pl_status pl_open_data(const pl_config *c, pl_command command, pl_data_use use, const pl_facts *planned, pl_data **data,
                       pl_error *err)
{
    if (pl_system_files(c, command)) return pl_open_files(c, command, planned, NULL, data, err);
    PL_TRY(pl_system_require(c, command, err));
    return pl_system_open(c, command, use, planned, data, err);
}
