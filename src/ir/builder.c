#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ir/op.h"

static const pl_op_rule *const rules[PL_OP_COUNT] = {
#define PL_OP(constant, name, ins, outs, attrs) [PL_OP_##constant] = &pl_rule_##constant,
#include "ir/ops.def"
};

const pl_op_rule *pl_op_rule_of(pl_op op) { return rules[op]; }

pl_alias pl_node_alias(const pl_node *n, int out)
{
    const pl_operand *o = pl_operand_at(pl_signature_of(n->op)->out, out);
    if (!o) return (pl_alias){.update = -1};
    pl_alias alias = {.update = o->update, .may = rules[n->op]->over ? rules[n->op]->over(n, out) : 0};
    while ((++o)->kind == PL_OVER) alias.may |= 1u << o->update;
    return alias;
}

bool pl_op_attr_is_left_out(const pl_node *n, int k)
{
    return n->attr[k].i == 0 && pl_signature_of(n->op)->attr[k].least == 0;
}

pl_builder pl_builder_begin(pl_graph *g, pl_id region, pl_error *err)
{
    return (pl_builder){.graph = g, .region = region, .err = err};
}

void pl_builder_enter(pl_builder *b, const char *fmt, ...)
{
    size_t used = strlen(b->scope);
    va_list args;
    va_start(args, fmt);
    if (used && used + 1 < sizeof b->scope) b->scope[used++] = '/';
    vsnprintf(b->scope + used, sizeof b->scope - used, fmt, args);
    va_end(args);
}

void pl_builder_enter_block(pl_builder *b, const char *name, uint32_t number)
{
    b->block_ends = strlen(b->scope);
    b->block = number + 1;
    pl_builder_enter(b, "%s.%u", name, number);
}

void pl_builder_leave(pl_builder *b)
{
    char *slash = strrchr(b->scope, '/');
    *(slash ? slash : b->scope) = 0;
    if (strlen(b->scope) <= b->block_ends) b->block = 0;
}

static void stand_at(pl_builder *b, const char *scope, uint32_t block)
{
    snprintf(b->scope, sizeof b->scope, "%s", scope);
    b->block = block;
    b->block_ends = 0;
}

void pl_builder_at_node(pl_builder *b, const pl_node *n)
{
    b->region = n->region;
    stand_at(b, n->scope, n->block);
}

void pl_builder_at_value(pl_builder *b, pl_id value)
{
    stand_at(b, b->graph->value[value].scope, b->graph->value[value].block);
}

static pl_id refuse(pl_builder *b)
{
    if (b->status == PL_OK) b->status = pl_fail(b->err, PL_E_NOMEM, "no memory for the graph");
    return PL_NONE;
}

static pl_id add_value(pl_builder *b, const pl_value *v)
{
    if (b->status != PL_OK) return PL_NONE;
    pl_id id = pl_graph_add_value(b->graph, v);
    return id == PL_NONE ? refuse(b) : id;
}

static pl_id build_value(pl_builder *b, pl_role role, pl_dtype dtype, pl_shape shape, pl_id program, const char *fmt,
                         va_list args)
{
    char name[256];
    vsnprintf(name, sizeof name, fmt, args);
    pl_value v = {.name = name,
                  .scope = b->scope,
                  .block = b->block,
                  .shape = shape,
                  .dtype = dtype,
                  .role = role,
                  .program = program,
                  .producer = PL_NONE,
                  .view_of = PL_NONE,
                  .update_of = PL_NONE,
                  .of = PL_NONE};
    pl_value_default_strides(&v);
    return add_value(b, &v);
}

pl_id pl_build_persistent(pl_builder *b, pl_role role, pl_dtype dtype, pl_shape shape, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    pl_id id = build_value(b, role, dtype, shape, PL_NONE, fmt, args);
    va_end(args);
    return id;
}

pl_id pl_build_temporary(pl_builder *b, pl_role role, pl_dtype dtype, pl_shape shape, const char *fmt, ...)
{
    if (b->status != PL_OK) return PL_NONE; /* there may be no region to ask for its program */
    va_list args;
    va_start(args, fmt);
    pl_id id = build_value(b, role, dtype, shape, pl_region_program(b->graph, b->region), fmt, args);
    va_end(args);
    return id;
}

void pl_build_belongs(pl_builder *b, pl_id value, pl_id of)
{
    if (b->status == PL_OK) b->graph->value[value].of = of;
}

pl_id pl_build_view(pl_builder *b, pl_id base, pl_shape shape, int64_t offset, const int64_t *stride)
{
    if (b->status != PL_OK) return PL_NONE;
    char name[300];
    const pl_value *of = &b->graph->value[base];
    snprintf(name, sizeof name, "%s@%zu", of->name, b->graph->value_count);
    pl_value v = *of;
    v.name = name;
    v.scope = b->scope;
    v.block = b->block;
    v.shape = shape;
    v.producer = PL_NONE;
    v.view_of = base;
    v.update_of = v.of = PL_NONE;
    v.frozen = v.inference = v.latent = false; /* what owns the bytes is, not the window */
    v.view_offset = offset;
    if (stride)
        memcpy(v.stride, stride, shape.rank * sizeof *stride);
    else
        pl_value_default_strides(&v);
    return add_value(b, &v);
}

static pl_id make_output(pl_builder *b, const pl_node *n, int k, const pl_out *out)
{
    char name[280];
    pl_alias alias = pl_node_alias(n, k);
    snprintf(name, sizeof name, "%s%s.%zu", pl_op_name(n->op), k ? (char[]){(char)('a' + k), 0} : "",
             b->graph->value_count);
    pl_value v = {.name = name,
                  .scope = b->scope,
                  .block = b->block,
                  .shape = out->shape,
                  .dtype = out->dtype,
                  .encoding = out->encoding,
                  .role = PL_ROLE_TEMPORARY,
                  .program = pl_region_program(b->graph, b->region),
                  .producer = PL_NONE,
                  .view_of = PL_NONE,
                  .update_of = PL_NONE,
                  .of = PL_NONE};
    pl_value_default_strides(&v);
    if (alias.update >= 0) {
        const pl_value *old = &b->graph->value[n->in[alias.update]];
        v.update_of = n->in[alias.update];
        v.role = old->role, v.encoding = old->encoding;
        v.program = old->program;
    }
    return add_value(b, &v);
}

/* What is not given has no new content. */
static bool may_be_made(const pl_node *n, int k)
{
    pl_alias alias = pl_node_alias(n, k);
    return alias.update < 0 || n->in[alias.update] != PL_NONE;
}

pl_id pl_build_node(pl_builder *b, pl_op op, const pl_attr *attr, int ins, const pl_id *in, int outs, pl_id *out)
{
    if (b->status != PL_OK) return PL_NONE;
    pl_node n = {.op = op,
                 .phase = b->phase,
                 .scope = b->scope,
                 .block = b->block,
                 .region = b->region,
                 .predicate = PL_NONE,
                 .wait = PL_NONE};
    const pl_signature *s = pl_signature_of(op);
    for (int i = 0; i < PL_NODE_IN_MAX; i++) n.in[i] = i < ins ? in[i] : PL_NONE;
    for (int i = 0; i < PL_NODE_OUT_MAX; i++) n.out[i] = i < outs && out[i] != PL_UNWANTED ? out[i] : PL_NONE;
    for (int i = 0; attr && i < s->attrs; i++) n.attr[i] = attr[i];
    pl_out made[PL_NODE_OUT_MAX] = {0};
    for (int i = 0; i < s->ins; i++)
        if (n.in[i] == PL_NONE && pl_operand_is_required(s->in, i)) {
            b->status = pl_fail(b->err, PL_E_INTERNAL, "%s (%s): input %s is missing", s->name, b->scope,
                                pl_position_name_of(s->in, i).text);
            return PL_NONE;
        }
    b->status = pl_node_infer(b->graph, &n, made, b->err);
    for (int k = 0; k < outs && b->status == PL_OK; k++) {
        if (out[k] == PL_UNWANTED || !may_be_made(&n, k))
            out[k] = PL_NONE;
        else if (out[k] == PL_NONE)
            out[k] = make_output(b, &n, k, &made[k]);
        n.out[k] = out[k];
    }
    if (b->status == PL_OK && pl_graph_add_node(b->graph, &n) == PL_NONE) refuse(b);
    return b->status == PL_OK && outs ? out[0] : PL_NONE;
}

/* ---- helpers of the rules ---- */

const pl_value *pl_value_at(const pl_graph *g, pl_id value) { return value == PL_NONE ? NULL : &g->value[value]; }

pl_status pl_fail_operand(const pl_graph *g, const pl_node *n, const pl_id *operand, const char *expected,
                          pl_error *err)
{
    char shape[160] = "nothing";
    const pl_value *v = pl_value_at(g, *operand);
    if (v) pl_shape_text(&v->shape, shape, sizeof shape);
    const char *stored = !v ? "" : v->encoding ? pl_encoding_name(v->encoding) : pl_dtype_name(v->dtype);
    return pl_fail(err, PL_E_INTERNAL, "%s in %s: input %s is %s%s%s, expected %s", pl_op_name(n->op), n->scope,
                   pl_position_name_of(pl_signature_of(n->op)->in, (int)(operand - n->in)).text, stored, v ? " " : "",
                   shape, expected);
}

pl_status pl_expect_operand(const pl_graph *g, const pl_node *n, const pl_id *operand, const pl_shape *shape,
                            const char *expected, pl_error *err)
{
    const pl_value *v = pl_value_at(g, *operand);
    return !v || pl_shape_equal(&v->shape, shape) ? PL_OK : pl_fail_operand(g, n, operand, expected, err);
}

pl_status pl_expect_position(const pl_graph *g, const pl_node *n, const pl_id *operand, int64_t sequences,
                             pl_error *err)
{
    const pl_value *v = pl_value_at(g, *operand);
    const bool is_one = v && v->shape.rank == 1 && (v->shape.dim[0] == 1 || v->shape.dim[0] == sequences);
    if (!v || (is_one && !v->shape.symbolic)) return PL_OK;
    return pl_fail_operand(g, n, operand, "i64 [1], or one for each sequence", err);
}

/* A real number's dtype is that of the first one, `first`; NULL: this is it. */
static const char *expected_real(const pl_value *v, const pl_value *first)
{
    if (!pl_dtype_is_real(v->dtype)) return "f32, bf16 or f16";
    return !first || v->dtype == first->dtype ? NULL : pl_dtype_name(first->dtype);
}

/* What it should be, by the letter of its kind in ops.def; NULL: it is. */
static const char *expected_kind(const pl_value *v, char kind)
{
    static const struct {
        char letter;
        pl_dtype dtype;
        const char *any, *one;
    } kinds[] = {{'f', PL_DTYPE_F32, "f32", "f32 [1]"},
                 {'d', PL_DTYPE_F64, "f64", "f64 [1]"},
                 {'i', PL_DTYPE_I32, "i32", "i32 [1]"},
                 {'l', PL_DTYPE_I64, "i64", "i64 [1]"}};
    const bool one = kind < 'a';
    int k = 0;
    while (kinds[k].letter != (kind | 0x20)) k++;
    if (v->dtype == kinds[k].dtype && (!one || (pl_shape_elems(&v->shape) == 1 && !v->shape.symbolic))) return NULL;
    return one ? kinds[k].one : kinds[k].any;
}

static pl_status check_encoded(const pl_graph *g, const pl_node *n, int k, pl_error *err)
{
    const pl_signature *s = pl_signature_of(n->op);
    const pl_value *v = pl_value_at(g, n->in[k]);
    if (!v || v->encoding == PL_ENCODING_F32) return PL_OK;
    if (pl_operand_has(s->in, k, pl_encoding_is_whole(v->encoding) ? PL_WHOLE : PL_ENCODED)) return PL_OK;
    return pl_fail(err, PL_E_UNSUPPORTED,
                   "%s in %s: input %s, %s, is stored as %s, for which there is no kernel; keep "
                   "this weight plain",
                   pl_op_name(n->op), n->scope, pl_position_name_of(s->in, k).text, v->name,
                   pl_encoding_name(v->encoding));
}

static pl_status check_kinds(const pl_graph *g, const pl_node *n, pl_error *err)
{
    const pl_signature *s = pl_signature_of(n->op);
    const pl_value *first = NULL;
    for (int k = 0; k < s->ins; k++) {
        const pl_value *v = pl_value_at(g, n->in[k]);
        const char kind = pl_operand_at(s->in, k)->kind;
        PL_TRY(check_encoded(g, n, k, err));
        if (!v || kind == '.') continue;
        const char *expected = kind == 'r' ? expected_real(v, first) : expected_kind(v, kind);
        if (expected) return pl_fail_operand(g, n, &n->in[k], expected, err);
        if (kind == 'r' && !first) first = v;
    }
    return PL_OK;
}

pl_status pl_node_infer(const pl_graph *g, const pl_node *n, pl_out out[PL_NODE_OUT_MAX], pl_error *err)
{
    PL_TRY(check_kinds(g, n, err));
    for (int k = 0; k < pl_signature_of(n->op)->outs; k++) {
        const int update = pl_node_alias(n, k).update;
        const pl_value *old = update < 0 ? NULL : pl_value_at(g, n->in[update]);
        if (old) out[k] = (pl_out){old->shape, old->dtype};
    }
    return rules[n->op]->shape ? rules[n->op]->shape(g, n, out, err) : PL_OK;
}

bool pl_is_row_a_sample(const pl_shape *s, int64_t samples, uint32_t symbolic)
{
    bool fine = s->rank >= 2 && s->dim[0] == samples && s->symbolic == symbolic && pl_shape_last(s) >= 1;
    for (uint32_t i = 1; i + 1 < s->rank; i++) fine = fine && s->dim[i] == 1;
    return fine;
}

pl_status pl_expect_film(const pl_graph *g, const pl_node *n, const pl_id *operand, const pl_shape *x, int64_t channels,
                         pl_error *err)
{
    const pl_value *v = pl_value_at(g, *operand);
    if (!v || (v->dtype == PL_DTYPE_F32 && pl_is_row_a_sample(&v->shape, x->dim[0], x->symbolic & 1) &&
               pl_shape_last(&v->shape) == 2 * channels))
        return PL_OK;
    return pl_fail_operand(g, n, operand, "f32 [samples, a scale, then a shift for each channel]", err);
}

pl_status pl_expect_rounded(const pl_graph *g, const pl_node *n, const pl_id *x, const pl_value *weight, pl_error *err)
{
    const pl_encoding e = g->value[*x].encoding;
    if (e == PL_ENCODING_F32 || (e == PL_ENCODING_Q8_0 && pl_encoding_block(weight->encoding) > 1)) return PL_OK;
    return pl_fail_operand(g, n, x, "plain, or in blocks of q8_0 where the weight is in blocks, too", err);
}

pl_status pl_expect_stored(const pl_graph *g, const pl_node *n, const pl_id *matrix, pl_encoding as, int64_t width,
                           pl_error *err)
{
    char wanted[64];
    const pl_value *v = &g->value[*matrix];
    if (v->encoding == as && v->shape.rank == 2 && !v->shape.symbolic && pl_shape_last(&v->shape) == width)
        return PL_OK;
    snprintf(wanted, sizeof wanted, "a matrix of %" PRId64 " columns, stored as %s", width, pl_encoding_name(as));
    return pl_fail_operand(g, n, matrix, wanted, err);
}

double pl_value_elems_f(const pl_value *v) { return v ? (double)pl_shape_elems(&v->shape) : 0; }
double pl_value_bytes_f(const pl_value *v)
{
    if (!v) return 0;
    if (v->encoding) return (double)pl_encoded_bytes(v->encoding, &v->shape);
    return pl_value_elems_f(v) * (double)pl_dtype_bytes(v->dtype);
}
