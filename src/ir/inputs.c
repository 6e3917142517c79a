#include "ir/inputs.h"

static const struct {
    const char *name;
    pl_dtype dtype;
} rows[] = {
#define PL_INPUT_ROW(id, name, dtype) [PL_INPUT_##id] = {name, PL_DTYPE_##dtype},
#include "ir/inputs.def"
#undef PL_INPUT_ROW
};

const char *pl_input_name(pl_input i) { return rows[i].name; }

pl_dtype pl_input_dtype(pl_input i) { return rows[i].dtype; }

pl_id pl_input_find(const pl_graph *g, pl_input i)
{
    pl_id id = pl_graph_find_value(g, rows[i].name);
    bool is_it = id != PL_NONE && g->value[id].dtype == rows[i].dtype && pl_shape_elems(&g->value[id].shape) == 1;
    return is_it ? id : PL_NONE;
}
