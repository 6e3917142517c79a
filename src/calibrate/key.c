/* The key of a node: everything that decides how long it takes, and nothing else. So the same layer at another depth,
 * in another program or with another number of trips has the same key, and another shape, window or epilogue has
 * another.
 *
 *      linear f32[1,128,256] f32[768,256] - - > f32[1,128,768] - act=0 forward 2 avx512
 *
 * Seeds, streams and the values of probabilities do not change the work; whether a real number is zero may. */
#include <string.h>

#include "calibrate/table.h"
#include "ir/op.h"

static void print_value(const pl_graph *g, pl_id id, pl_str *key)
{
    if (id == PL_NONE) {
        pl_str_append(key, " -");
        return;
    }
    const pl_value *v = &g->value[id];
    pl_str_append(key, " ");
    pl_str_append(key, v->encoding ? pl_encoding_name(v->encoding) : pl_dtype_name(v->dtype));
    pl_shape_print(&v->shape, key);
    if (pl_value_is_contiguous(v)) return;
    for (uint32_t i = 0; i < v->shape.rank; i++) {
        pl_str_append(key, i ? "," : "/");
        pl_str_int(key, v->stride[i]);
    }
}

bool pl_calibration_attr_matters(const char *name) { return strcmp(name, "seed") != 0 && strcmp(name, "stream") != 0; }

/* An attribute that operators did not always have is left out where it is absent: what was measured before still
 * answers. */
static bool came_later(const char *name)
{
    static const char *const names[] = {"key_heads", "window", "cap"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

static void print_attributes(const pl_node *n, pl_str *key)
{
    const pl_operand *attr = pl_signature_of(n->op)->attr;
    for (int k = 0; attr[k].name[0]; k++) {
        if (!pl_calibration_attr_matters(attr[k].name)) continue;
        if (came_later(attr[k].name) && pl_op_attr_is_left_out(n, k)) continue;
        pl_str_append(key, " ");
        pl_str_append(key, attr[k].name);
        if (attr[k].kind == 'f' && n->attr[k].f != 0) continue;
        pl_str_append(key, "=");
        pl_str_int(key, attr[k].kind == 'f' ? 0 : n->attr[k].i);
    }
}

int pl_calibration_input_below(const pl_graph *g, const pl_node *n, int k)
{
    for (int i = 0; i < PL_NODE_IN_MAX; i++)
        if (n->in[i] != PL_NONE && pl_value_root(g, n->in[i]) == pl_value_root(g, n->out[k])) return i;
    return -1;
}

void pl_calibration_key(const pl_graph *g, const pl_node *n, const pl_calibration_options *options, pl_str *key)
{
    const pl_signature *s = pl_signature_of(n->op);
    pl_str_append(key, s->name);
    for (int k = 0; k < s->ins; k++) print_value(g, n->in[k], key);
    pl_str_append(key, " >");
    for (int k = 0; k < s->outs; k++) {
        print_value(g, n->out[k], key);
        int below = n->out[k] == PL_NONE ? -1 : pl_calibration_input_below(g, n, k);
        if (below >= 0) pl_str_printf(key, "@%d", below);
    }
    print_attributes(n, key);
    pl_str_printf(key, " %s %d %s%s", pl_phase_name(n->phase), options->team.threads, pl_isa_name(options->team.isa),
                  options->huge_pages ? " huge" : "");
}
