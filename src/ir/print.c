/* The graph as text, one line a region, value and node. A field that has its usual value is left out. */
#include <inttypes.h>

#include "base/lex.h"
#include "ir/op.h"

static void print_key(pl_str *out, const char *key)
{
    pl_str_append(out, " ");
    pl_str_append(out, key);
    pl_str_append(out, "=");
}

/* A number that is mostly 0. */
static void print_uint(pl_str *out, const char *key, uint64_t number)
{
    if (number == 0) return;
    print_key(out, key);
    pl_str_uint(out, number);
}

static void print_ids(pl_str *out, const char *key, const pl_id *id, int count)
{
    while (count > 0 && id[count - 1] == PL_NONE) count--;
    if (count == 0) return;
    print_key(out, key);
    for (int i = 0; i < count; i++) {
        if (i) pl_str_append(out, ",");
        if (id[i] == PL_NONE)
            pl_str_append(out, "-");
        else
            pl_str_uint(out, id[i]);
    }
}

static void print_block(pl_str *out, uint32_t block)
{
    if (block == 0) return;
    print_key(out, "block");
    pl_str_uint(out, block - 1);
}

static void print_quoted(pl_str *out, const char *key, const char *text)
{
    if (!text[0]) return;
    print_key(out, key);
    pl_lex_quote(out, text);
}

static void print_name(pl_str *out, const char *what, const char *name)
{
    pl_str_append(out, what);
    pl_lex_quote(out, name);
    pl_str_append(out, "\n");
}

static void print_value(const pl_graph *g, pl_id id, pl_str *out)
{
    const pl_value *v = &g->value[id];
    pl_str_append(out, "value ");
    pl_str_uint(out, id);
    pl_str_append(out, " ");
    pl_lex_quote(out, v->name);
    pl_str_append(out, " ");
    pl_str_append(out, pl_dtype_name(v->dtype));
    pl_str_append(out, " ");
    pl_shape_print(&v->shape, out);
    pl_str_append(out, " ");
    pl_str_append(out, pl_role_name(v->role));
    if (v->encoding) {
        print_key(out, "encoding");
        pl_str_append(out, pl_encoding_name(v->encoding));
    }
    print_uint(out, "space", v->space);
    print_uint(out, "place", v->place);
    print_ids(out, "program", &v->program, 1);
    print_ids(out, "update", &v->update_of, 1);
    print_ids(out, "view", &v->view_of, 1);
    print_ids(out, "of", &v->of, 1);
    if (v->view_of != PL_NONE) {
        print_key(out, "offset");
        pl_str_int(out, v->view_offset);
        print_key(out, "strides");
        for (uint32_t i = 0; i < v->shape.rank; i++) {
            if (i) pl_str_append(out, ",");
            pl_str_int(out, v->stride[i]);
        }
        if (v->tile) pl_str_append(out, " tile=1");
    }
    if (v->inference) pl_str_append(out, " inference=1");
    if (v->frozen) pl_str_append(out, " frozen=1");
    if (v->latent) pl_str_append(out, " latent=1");
    print_block(out, v->block);
    print_quoted(out, "scope", v->scope);
    pl_str_append(out, "\n");
}

static void print_operands(const pl_operand *o, const pl_id *id, pl_str *out)
{
    for (; o->name[0]; id += o++->most) print_ids(out, o->name, id, o->most);
}

static void print_attrs(const pl_node *n, pl_str *out)
{
    const pl_operand *attr = pl_signature_of(n->op)->attr;
    for (int k = 0; attr[k].name[0]; k++) {
        if (pl_op_attr_is_left_out(n, k)) continue;
        print_key(out, attr[k].name);
        if (attr[k].kind == 'f')
            pl_str_double(out, n->attr[k].f);
        else if (attr[k].kind == 'a')
            pl_str_append(out, pl_activation_name((pl_activation)n->attr[k].i));
        else
            pl_str_int(out, n->attr[k].i);
    }
}

static void print_node(const pl_graph *g, pl_id id, pl_str *out)
{
    const pl_node *n = &g->node[id];
    pl_str_append(out, "node ");
    pl_str_uint(out, id);
    pl_str_append(out, " ");
    pl_str_append(out, pl_op_name(n->op));
    print_key(out, "region");
    pl_str_uint(out, n->region);
    print_operands(pl_signature_of(n->op)->in, n->in, out);
    print_operands(pl_signature_of(n->op)->out, n->out, out);
    print_attrs(n, out);
    if (n->phase) {
        print_key(out, "phase");
        pl_str_append(out, pl_phase_name(n->phase));
    }
    print_ids(out, "predicate", &n->predicate, 1);
    print_uint(out, "queue", n->queue);
    print_ids(out, "wait", &n->wait, 1);
    if (n->dead) pl_str_append(out, " dead=1");
    print_block(out, n->block);
    print_quoted(out, "scope", n->scope);
    pl_str_append(out, "\n");
}

void pl_graph_print(const pl_graph *g, pl_str *out)
{
    pl_str_append(out, "graph 2\n");
    for (uint32_t i = 1; i < g->space_count; i++) print_name(out, "space ", g->space[i]);
    for (uint32_t i = 2; i < g->queue_count; i++) print_name(out, "queue ", g->queue[i]);
    for (size_t i = 0; i < g->region_count; i++) {
        const pl_region *r = &g->region[i];
        pl_str_printf(out, "region %zu ", i);
        pl_lex_quote(out, r->name);
        print_ids(out, "in", &r->parent, 1);
        if (r->trip != 1) pl_str_printf(out, " trip=%" PRIu64, r->trip);
        if (r->batch) pl_str_printf(out, " batch=%" PRId64, r->batch);
        pl_str_append(out, "\n");
    }
    for (size_t i = 0; i < g->value_count; i++) print_value(g, (pl_id)i, out);
    for (size_t i = 0; i < g->node_count; i++) print_node(g, (pl_id)i, out);
    pl_str_append(out, "end graph\n");
}
