/* A dataset and a model are joined by ports: what a source fills is what the LOAD nodes of the model's programs take,
 * port for port, by name, type and bytes of a sample. */
#include <inttypes.h>
#include <string.h>

#include "api/compiler.h"
#include "ir/op.h"

enum { LIST_BYTES = 400 };

/* Its name in the graph, without the program's name. */
static const char *name_of(const pl_value *v)
{
    const char *dot = strchr(v->name, '.');
    return dot ? dot + 1 : v->name;
}

static bool is_port(const pl_graph *g, pl_id id) { return id != PL_NONE && !pl_is_sample_number(&g->value[id]); }

static bool is_offered(const pl_graph *g, pl_id id, const pl_port *p)
{
    const pl_value *v = &g->value[id];
    return strcmp(name_of(v), p->name) == 0 && v->dtype == p->dtype && pl_value_bytes(g, id) == p->bytes;
}

static bool meets(const pl_graph *g, const pl_node *load, const pl_source_layout *l)
{
    for (uint32_t k = 0; k < PL_PORTS_MAX; k++)
        if (is_port(g, load->out[k]) && (k >= l->ports || !is_offered(g, load->out[k], &l->port[k]))) return false;
    return true;
}

static void print_taken(const pl_graph *g, const pl_node *load, pl_str *out)
{
    for (uint32_t k = 0; k < PL_PORTS_MAX; k++) {
        if (!is_port(g, load->out[k])) continue;
        const pl_value *v = &g->value[load->out[k]];
        pl_str_printf(out, "%s%s %s [B", out->bytes ? ", " : "", name_of(v), pl_dtype_name(v->dtype));
        for (uint32_t i = 1; i < v->shape.rank; i++) pl_str_printf(out, ", %" PRId64, v->shape.dim[i]);
        pl_str_append(out, "]");
    }
}

static void print_offered(const pl_source_layout *l, pl_str *out)
{
    for (uint32_t k = 0; k < l->ports; k++)
        pl_str_printf(out, "%s%s %s of %" PRIu64 " bytes a sample", k ? ", " : "", l->port[k].name,
                      pl_dtype_name(l->port[k].dtype), l->port[k].bytes);
}

pl_status pl_check_ports(const pl_graph *g, const pl_source *source, const char *model, const char *data, pl_error *err)
{
    pl_source_layout l;
    char taken[LIST_BYTES] = "", offered[LIST_BYTES] = "";
    pl_str takes = pl_str_fixed(taken, sizeof taken), offers = pl_str_fixed(offered, sizeof offered);
    PL_TRY(source->kind->describe(source, 1, &l, err));
    for (size_t i = 0; i < g->node_count; i++) {
        const pl_node *n = &g->node[i];
        if (n->dead || n->op != PL_OP_LOAD || meets(g, n, &l)) continue;
        print_taken(g, n, &takes);
        print_offered(&l, &offers);
        return pl_fail(err, PL_E_DATA, "the model %s takes %s; %.300s offers %s", model, taken, data, offered);
    }
    return PL_OK;
}
