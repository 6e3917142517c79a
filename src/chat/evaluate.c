#include "chat/render.h"

#include <string.h>

static pl_status find_name(pl_chat_run *r, const pl_chat_scope *scope, const pl_chat_value *name, pl_chat_value *out)
{
    for (; scope; scope = scope->outer) {
        const pl_chat_value *found = pl_chat_cell_of(r, scope, name);
        if (found) {
            *out = *found;
            return PL_OK;
        }
    }
    const pl_chat_row *row = pl_chat_function(name);
    if (row) {
        pl_chat_callable *c;
        PL_TRY(pl_chat_take(r, 1, sizeof *c, &c));
        *c = (pl_chat_callable){.row = row};
        *out = (pl_chat_value){.kind = PL_CHAT_CALLABLE, .object = c};
        return PL_OK;
    }
    if (pl_chat_is_listed("self super varargs kwargs caller lipsum cycler joiner", name))
        return pl_chat_fail(r, PL_E_UNSUPPORTED, "\"%.*s\" is not supported", (int)name->count, name->text);
    *out = (pl_chat_value){.kind = PL_CHAT_UNDEFINED, .count = name->count, .text = name->text};
    return PL_OK;
}

/* --- calls --- */

static pl_status evaluate_arguments(pl_chat_run *r, pl_chat_scope *scope, const pl_chat_node *list,
                                    pl_chat_arguments *a)
{
    *a = (pl_chat_arguments){0};
    for (const pl_chat_node *n = list; n; n = n->next) a->count++;
    if (a->count == 0) return PL_OK;
    PL_TRY(pl_chat_take_values(r, a->count, &a->value));
    PL_TRY(pl_chat_take_values(r, a->count, &a->name));
    uint32_t i = 0;
    for (const pl_chat_node *n = list; n; n = n->next, i++) {
        bool named = n->kind == PL_CHAT_KEYWORD;
        a->name[i] = named ? n->value : (pl_chat_value){0};
        PL_TRY(pl_chat_evaluate(r, scope, named ? n->a : n, &a->value[i]));
    }
    return PL_OK;
}

/* Which of the parameters has this name, from 1 on; 0: none. A "=" before one says that only names reach it. */
static int parameter_of(const char *parameters, const pl_chat_value *name)
{
    parameters += *parameters == '=';
    for (int i = 1; *parameters; i++) {
        size_t n = strcspn(parameters, " ");
        if (n == name->count && memcmp(parameters, name->text, n) == 0) return i;
        parameters += n + (parameters[n] == ' ');
    }
    return 0;
}

static int parameters_of(const char *parameters)
{
    int count = *parameters != 0;
    for (; *parameters; parameters++) count += *parameters == ' ';
    return count;
}

static pl_status bind(pl_chat_run *r, const pl_chat_row *row, const char *kind, const pl_chat_arguments *a,
                      pl_chat_value *value)
{
    int count = parameters_of(row->parameters);
    for (uint32_t i = 0; i < a->count; i++) {
        bool named = a->name[i].kind == PL_CHAT_STRING;
        int at = named ? parameter_of(row->parameters, &a->name[i]) : (int)i + 1;
        if (at == 0 || at > count || value[at].kind != PL_CHAT_ABSENT || (!named && *row->parameters == '='))
            return pl_chat_fail(r, PL_E_UNSUPPORTED, "the %s \"%s\" with these arguments is not supported", kind,
                                row->name);
        value[at] = a->value[i];
    }
    for (int i = 1; i <= row->required; i++)
        if (value[i].kind == PL_CHAT_ABSENT)
            return pl_chat_fail(r, PL_E_DATA, "the %s \"%s\" needs %d arguments", kind, row->name, row->required);
    return PL_OK;
}

/* Those without a name as a list, those with one as a map. */
static pl_status gather(pl_chat_run *r, const pl_chat_arguments *a, pl_chat_value *value)
{
    uint32_t listed = 0;
    pl_chat_value *pair;
    while (listed < a->count && a->name[listed].kind != PL_CHAT_STRING) listed++;
    PL_TRY(pl_chat_take_values(r, 2 * (uint64_t)(a->count - listed), &pair));
    for (uint32_t i = listed; i < a->count; i++) {
        pair[2 * (i - listed)] = a->name[i];
        pair[2 * (i - listed) + 1] = a->value[i];
    }
    value[1] = pl_chat_list(a->value, listed);
    value[2] = pl_chat_map(pair, a->count - listed);
    return PL_OK;
}

pl_status pl_chat_call_row(pl_chat_run *r, const pl_chat_row *row, const char *kind, const pl_chat_value *self,
                           const pl_chat_arguments *a, pl_chat_value *out)
{
    pl_chat_value value[PL_CHAT_PARAMETERS_MAX] = {*self};
    for (int i = 1; i < PL_CHAT_PARAMETERS_MAX; i++) value[i].kind = PL_CHAT_ABSENT;
    if (strcmp(row->parameters, "**") == 0)
        PL_TRY(gather(r, a, value));
    else
        PL_TRY(bind(r, row, kind, a, value));
    return row->call(r, value, out);
}

static const pl_chat_value *argument_of(const pl_chat_arguments *a, uint32_t place, const pl_chat_value *name)
{
    for (uint32_t i = 0; i < a->count; i++) {
        bool named = a->name[i].kind == PL_CHAT_STRING;
        if (named ? a->name[i].count == name->count && memcmp(a->name[i].text, name->text, name->count) == 0
                  : i == place)
            return &a->value[i];
    }
    return NULL;
}

static pl_status call_macro(pl_chat_run *r, const pl_chat_macro *m, const pl_chat_arguments *a, pl_chat_value *out)
{
    pl_chat_scope *scope;
    uint32_t place = 0, used = 0;
    PL_TRY(pl_chat_make_scope(r, m->scope, &scope));
    for (const pl_chat_node *p = m->node->a; p; p = p->next, place++) {
        PL_TRY(pl_chat_step(r, 1 + a->count / 16));
        const pl_chat_value *given = argument_of(a, place, &p->value);
        pl_chat_value v = {.kind = PL_CHAT_UNDEFINED, .count = p->value.count, .text = p->value.text};
        if (given)
            v = *given, used++;
        else if (p->a)
            PL_TRY(pl_chat_evaluate(r, scope, p->a, &v));
        PL_TRY(pl_chat_set_cell(r, scope, &p->value, &v));
    }
    if (used < a->count)
        return pl_chat_fail(r, PL_E_DATA, "the macro \"%.*s\" has other parameters than its call",
                            (int)m->node->value.count, m->node->value.text);
    return pl_chat_capture(r, scope, m->node->b, out);
}

static pl_status evaluate_call(pl_chat_run *r, pl_chat_scope *scope, const pl_chat_node *n, pl_chat_value *out)
{
    pl_chat_value callee;
    pl_chat_arguments a;
    PL_TRY(pl_chat_evaluate(r, scope, n->a, &callee));
    PL_TRY(evaluate_arguments(r, scope, n->b, &a));
    r->line = n->line;
    if (callee.kind == PL_CHAT_MACRO) return call_macro(r, callee.object, &a, out);
    if (callee.kind != PL_CHAT_CALLABLE) return pl_chat_fail_kind(r, "a call", &callee);
    const pl_chat_callable *c = callee.object;
    return pl_chat_call_row(r, c->row, "function", &c->self, &a, out);
}

static pl_status evaluate_row(pl_chat_run *r, pl_chat_scope *scope, const pl_chat_node *n, pl_chat_value *out)
{
    bool is_filter = n->kind == PL_CHAT_FILTER;
    const char *kind = is_filter ? "filter" : "test";
    const pl_chat_row *row = is_filter ? pl_chat_filter(&n->value) : pl_chat_test(&n->value);
    pl_chat_value self;
    pl_chat_arguments a;
    if (!row)
        return pl_chat_fail(r, PL_E_UNSUPPORTED, "the %s \"%.*s\" is not supported", kind, (int)n->value.count,
                            n->value.text);
    PL_TRY(pl_chat_evaluate(r, scope, n->a, &self));
    PL_TRY(evaluate_arguments(r, scope, n->b, &a));
    r->line = n->line;
    return pl_chat_call_row(r, row, kind, &self, &a, out);
}

/* --- operators --- */

static pl_status compare(pl_chat_run *r, int op, const pl_chat_value *a, const pl_chat_value *b, bool *holds)
{
    int sign = 0;
    switch (op) {
    case PL_CHAT_IN:
        return pl_chat_contains(r, b, a, holds);
    case PL_CHAT_EQ:
        return pl_chat_equal(r, a, b, holds);
    case PL_CHAT_NOT_IN:
        PL_TRY(pl_chat_contains(r, b, a, holds));
        break;
    case PL_CHAT_NE:
        PL_TRY(pl_chat_equal(r, a, b, holds));
        break;
    default:
        PL_TRY(pl_chat_order(r, a, b, &sign));
    }
    if (op == PL_CHAT_NOT_IN || op == PL_CHAT_NE) *holds = !*holds;
    if (op == PL_CHAT_LT) *holds = sign < 0;
    if (op == PL_CHAT_GT) *holds = sign > 0;
    if (op == PL_CHAT_LE) *holds = sign <= 0;
    if (op == PL_CHAT_GE) *holds = sign >= 0;
    return PL_OK;
}

static pl_status evaluate_comparison(pl_chat_run *r, pl_chat_scope *scope, const pl_chat_node *n, pl_chat_value *out)
{
    pl_chat_value a, b;
    bool holds = true;
    PL_TRY(pl_chat_evaluate(r, scope, n->a, &a));
    for (; n && holds; n = n->c, a = b) {
        PL_TRY(pl_chat_evaluate(r, scope, n->b, &b));
        PL_TRY(compare(r, n->op, &a, &b, &holds));
    }
    *out = pl_chat_bool(holds);
    return PL_OK;
}

static pl_status evaluate_binary(pl_chat_run *r, pl_chat_scope *scope, const pl_chat_node *n, pl_chat_value *out)
{
    pl_chat_value a, b;
    PL_TRY(pl_chat_evaluate(r, scope, n->a, &a));
    PL_TRY(pl_chat_evaluate(r, scope, n->b, &b));
    r->line = n->line;
    return pl_chat_operate(r, n->op, &a, &b, out);
}

static pl_status evaluate_logic(pl_chat_run *r, pl_chat_scope *scope, const pl_chat_node *n, pl_chat_value *out)
{
    PL_TRY(pl_chat_evaluate(r, scope, n->a, out));
    bool truth = pl_chat_truth(out);
    if (n->kind == PL_CHAT_NOT) {
        *out = pl_chat_bool(!truth);
        return PL_OK;
    }
    if (n->kind == PL_CHAT_CONDITION) {
        const pl_chat_node *branch = truth ? n->b : n->c;
        *out = (pl_chat_value){0};
        return branch ? pl_chat_evaluate(r, scope, branch, out) : PL_OK;
    }
    return truth == (n->kind == PL_CHAT_OR) ? PL_OK : pl_chat_evaluate(r, scope, n->b, out);
}

/* --- parts and literals --- */

static pl_status evaluate_part(pl_chat_run *r, pl_chat_scope *scope, const pl_chat_node *n, pl_chat_value *out)
{
    pl_chat_value whole, key;
    PL_TRY(pl_chat_evaluate(r, scope, n->a, &whole));
    if (n->kind == PL_CHAT_ATTRIBUTE) return pl_chat_attribute(r, &whole, &n->value, out);
    PL_TRY(pl_chat_evaluate(r, scope, n->b, &key));
    return pl_chat_subscript(r, &whole, &key, out);
}

static pl_status evaluate_slice(pl_chat_run *r, pl_chat_scope *scope, const pl_chat_node *n, pl_chat_value *out)
{
    const pl_chat_node *parts[] = {n->b, n->c, n->d};
    pl_chat_value whole, bound[3];
    PL_TRY(pl_chat_evaluate(r, scope, n->a, &whole));
    for (int i = 0; i < 3; i++) {
        bound[i] = (pl_chat_value){.kind = PL_CHAT_ABSENT};
        if (parts[i]) PL_TRY(pl_chat_evaluate(r, scope, parts[i], &bound[i]));
    }
    return pl_chat_slice(r, &whole, bound, out);
}

static pl_status evaluate_items(pl_chat_run *r, pl_chat_scope *scope, const pl_chat_node *n, pl_chat_value *out)
{
    uint32_t count = 0, i = 0;
    pl_chat_value *item;
    for (const pl_chat_node *p = n->a; p; p = p->next) count++;
    PL_TRY(pl_chat_take_values(r, count, &item));
    for (const pl_chat_node *p = n->a; p; p = p->next) PL_TRY(pl_chat_evaluate(r, scope, p, &item[i++]));
    *out = pl_chat_list(item, count);
    out->form = n->op;
    return PL_OK;
}

/* A key that comes again gives its value to the first one. */
static pl_status evaluate_pairs(pl_chat_run *r, pl_chat_scope *scope, const pl_chat_node *n, pl_chat_value *out)
{
    uint32_t count = 0, pairs = 0;
    pl_chat_value *item, key;
    const pl_chat_value *found;
    for (const pl_chat_node *p = n->a; p; p = p->next) count++;
    PL_TRY(pl_chat_take_values(r, count, &item));
    for (const pl_chat_node *p = n->a; p; p = p->next->next) {
        PL_TRY(pl_chat_evaluate(r, scope, p, &key));
        *out = pl_chat_map(item, pairs);
        PL_TRY(pl_chat_find(r, out, &key, &found));
        size_t at = found ? (size_t)(found - item) - 1 : 2 * (size_t)pairs++;
        if (!found) item[at] = key;
        PL_TRY(pl_chat_evaluate(r, scope, p->next, &item[at + 1]));
    }
    *out = pl_chat_map(item, pairs);
    return PL_OK;
}

static pl_status evaluate_sign(pl_chat_run *r, pl_chat_scope *scope, const pl_chat_node *n, pl_chat_value *out)
{
    pl_chat_value v;
    PL_TRY(pl_chat_evaluate(r, scope, n->a, &v));
    return pl_chat_negate(r, &v, n->kind == PL_CHAT_NEGATIVE, out);
}

static pl_status evaluate(pl_chat_run *r, pl_chat_scope *scope, const pl_chat_node *n, pl_chat_value *out)
{
    switch ((pl_chat_node_kind)n->kind) {
    case PL_CHAT_CONSTANT:
        *out = n->value;
        return PL_OK;
    case PL_CHAT_NAME:
        return find_name(r, scope, &n->value, out);
    case PL_CHAT_ITEMS:
        return evaluate_items(r, scope, n, out);
    case PL_CHAT_PAIRS:
        return evaluate_pairs(r, scope, n, out);
    case PL_CHAT_ATTRIBUTE:
    case PL_CHAT_SUBSCRIPT:
        return evaluate_part(r, scope, n, out);
    case PL_CHAT_SLICE:
        return evaluate_slice(r, scope, n, out);
    case PL_CHAT_CALL:
        return evaluate_call(r, scope, n, out);
    case PL_CHAT_FILTER:
    case PL_CHAT_TEST:
        return evaluate_row(r, scope, n, out);
    case PL_CHAT_BINARY:
        return evaluate_binary(r, scope, n, out);
    case PL_CHAT_COMPARE:
        return evaluate_comparison(r, scope, n, out);
    case PL_CHAT_AND:
    case PL_CHAT_OR:
    case PL_CHAT_NOT:
    case PL_CHAT_CONDITION:
        return evaluate_logic(r, scope, n, out);
    case PL_CHAT_NEGATIVE:
    case PL_CHAT_POSITIVE:
        return evaluate_sign(r, scope, n, out);
    case PL_CHAT_CAPTURE:
        return pl_chat_capture(r, scope, n->a, out);
    default:
        return pl_chat_fail(r, PL_E_INTERNAL, "a statement stands in an expression");
    }
}

pl_status pl_chat_evaluate(pl_chat_run *r, pl_chat_scope *scope, const pl_chat_node *n, pl_chat_value *out)
{
    r->line = n->line;
    PL_TRY(pl_chat_enter(r));
    PL_TRY(pl_chat_step(r, 1));
    PL_TRY(evaluate(r, scope, n, out));
    r->depth--;
    return PL_OK;
}
