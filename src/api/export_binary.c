/* --packed: weights of which products see the signs alone, as bits and a scale for each row (base/binary.h). */
#include <inttypes.h>
#include <stdio.h>

#include "api/export.h"
#include "backend/binary.h"
#include "base/alloc.h"
#include "ir/op.h"

static pl_status pack(const pl_config *c, const pl_shape *w, pl_export_binary *b, pl_st_entry *e, pl_error *err)
{
    const pl_team team = {1, pl_config_find_isa(c)};
    const uint64_t bytes = pl_binary_packed_bytes(w->dim[0], w->dim[1]);
    pl_export_bits *bits = &b->of[b->count];
    bits->packed = pl_alloc(bytes, 1);
    const pl_pack_signs_call call = {w->dim[0], w->dim[1], e->data, bits->packed};
    void *workspace = pl_alloc(pl_pack_signs_workspace_bytes(&call, team), 1);
    if (bits->packed) b->count++;
    if (!bits->packed || !workspace) {
        pl_free(workspace);
        return pl_fail(err, PL_E_NOMEM, "no memory for the signs of %s, %" PRIu64 " bytes", e->name, bytes);
    }
    pl_pack_signs_exec(&call, workspace, team);
    pl_free(workspace);
    snprintf(bits->name, sizeof bits->name, "%.230s" PL_BINARY_PACKED, e->name);
    *e = (pl_st_entry){
        .name = bits->name, .dtype = PL_ST_U8, .rank = 1, .shape = {bytes}, .data = bits->packed, .bytes = bytes};
    b->bytes += bytes;
    return PL_OK;
}

pl_status pl_export_pack_binary(const pl_config *c, const pl_graph *g, pl_export_weights *w, pl_error *err)
{
    w->binary.of = pl_alloc(w->models + 1, sizeof *w->binary.of);
    if (!w->binary.of) return pl_fail(err, PL_E_NOMEM, "no memory for the list of weights");
    for (size_t i = 0; i < w->models; i++) {
        const pl_id id = pl_graph_find_value(g, w->model[i].name);
        if (id != PL_NONE && g->value[id].latent) PL_TRY(pack(c, &g->value[id].shape, &w->binary, &w->model[i], err));
    }
    if (w->binary.count) return PL_OK;
    return pl_fail(err, PL_E_USAGE,
                   "`packed` packs the weights of layers of signs, and with model.binary none there are "
                   "no such layers; leave it out");
}

void pl_export_binary_deinit(pl_export_binary *b)
{
    for (size_t i = 0; i < b->count; i++) pl_free(b->of[i].packed);
    pl_free(b->of);
    *b = (pl_export_binary){0};
}
