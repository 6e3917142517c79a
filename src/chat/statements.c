#include "chat/render.h"

static pl_status assign_parts(pl_chat_run *r, pl_chat_scope *scope, const pl_chat_node *target, const pl_chat_value *v)
{
    pl_chat_value list;
    uint32_t i = 0, count = 0;
    for (const pl_chat_node *t = target->a; t; t = t->next) count++;
    PL_TRY(pl_chat_items(r, v, &list));
    if (list.count != count)
        return pl_chat_fail(r, PL_E_DATA, "%u names are given the items of a value that has %u", count, list.count);
    for (const pl_chat_node *t = target->a; t; t = t->next) PL_TRY(pl_chat_assign(r, scope, t, &list.item[i++]));
    return PL_OK;
}

static pl_status assign_member(pl_chat_run *r, pl_chat_scope *scope, const pl_chat_node *target, const pl_chat_value *v)
{
    pl_chat_value space;
    pl_chat_node name = {.kind = PL_CHAT_NAME, .line = target->line, .value = target->value};
    const pl_chat_value *member = &target->a->value;
    PL_TRY(pl_chat_evaluate(r, scope, &name, &space));
    if (space.kind != PL_CHAT_NAMESPACE)
        return pl_chat_fail_kind(r, "a member, which only namespaces can be given,", &space);
    if (member->text[0] == '_') return pl_chat_fail(r, PL_E_DATA, "a name in a namespace begins with `_`");
    r->stores++;
    return pl_chat_set_cell(r, space.object, member, v);
}

pl_status pl_chat_assign(pl_chat_run *r, pl_chat_scope *scope, const pl_chat_node *target, const pl_chat_value *v)
{
    if (target->kind == PL_CHAT_ITEMS) return assign_parts(r, scope, target, v);
    if (target->kind == PL_CHAT_MEMBER) return assign_member(r, scope, target, v);
    return pl_chat_set_cell(r, scope, &target->value, v);
}

pl_status pl_chat_capture(pl_chat_run *r, pl_chat_scope *outer, const pl_chat_node *list, pl_chat_value *out)
{
    uint64_t begin = r->out->rendered_bytes;
    pl_chat_scope *scope;
    r->captures++;
    PL_TRY(pl_chat_make_scope(r, outer, &scope));
    PL_TRY(pl_chat_execute_body(r, scope, list));
    *out = pl_chat_string("", 0);
    PL_TRY(pl_chat_append(r, out, r->out->text + begin, r->out->rendered_bytes - begin));
    r->out->rendered_bytes = begin;
    r->captures--;
    return PL_OK;
}

/* The condition, or what was printed, is needed no longer. */
static void drop(pl_chat_run *r, uint64_t mark, uint64_t stores)
{
    if (r->stores == stores) r->used = mark;
}

static pl_status execute_print(pl_chat_run *r, pl_chat_scope *scope, const pl_chat_node *n)
{
    uint64_t mark = r->used, stores = r->stores;
    pl_chat_value v, text;
    PL_TRY(pl_chat_evaluate(r, scope, n->a, &v));
    PL_TRY(pl_chat_text_of(r, &v, &text));
    PL_TRY(pl_chat_put(r, text.text, text.count));
    drop(r, mark, stores);
    return PL_OK;
}

static pl_status execute_if(pl_chat_run *r, pl_chat_scope *scope, const pl_chat_node *n)
{
    for (;;) {
        uint64_t mark = r->used, stores = r->stores;
        pl_chat_value v;
        PL_TRY(pl_chat_evaluate(r, scope, n->a, &v));
        bool truth = pl_chat_truth(&v);
        drop(r, mark, stores);
        if (truth) return pl_chat_execute(r, scope, n->b);
        if (!n->c || n->c->kind != PL_CHAT_IF || n->c->next) return pl_chat_execute(r, scope, n->c);
        n = n->c;
    }
}

static pl_status execute_macro(pl_chat_run *r, pl_chat_scope *scope, const pl_chat_node *n)
{
    pl_chat_macro *m;
    PL_TRY(pl_chat_take(r, 1, sizeof *m, &m));
    *m = (pl_chat_macro){n, scope};
    return pl_chat_set_cell(r, scope, &n->value, &(pl_chat_value){.kind = PL_CHAT_MACRO, .object = m});
}

/* Where the text of a macro or of a set block will be printed, if at all, is not known yet: transformers' spans are
 * wrong there. Within another one it adds nothing. */
static pl_status execute_generation(pl_chat_run *r, pl_chat_scope *outer, const pl_chat_node *n)
{
    pl_chat_output *o = r->out;
    pl_chat_scope *scope;
    uint64_t begin = o->rendered_bytes;
    PL_TRY(pl_chat_make_scope(r, outer, &scope));
    r->generations++;
    PL_TRY(pl_chat_execute_body(r, scope, n->a));
    if (--r->generations > 0 || !o->span || begin == o->rendered_bytes) return PL_OK;
    if (r->captures > 0)
        return pl_chat_fail(r, PL_E_UNSUPPORTED, "`generation` in a macro or in a set block is not supported");
    if (o->spans == o->spans_max)
        return pl_chat_fail(r, PL_E_BUDGET, "the template marks more than the %zu parts planned for", o->spans_max);
    o->span[o->spans++] = (pl_chat_span){begin, o->rendered_bytes};
    return PL_OK;
}

static pl_status execute_set(pl_chat_run *r, pl_chat_scope *scope, const pl_chat_node *n)
{
    pl_chat_value v;
    PL_TRY(pl_chat_evaluate(r, scope, n->b, &v));
    return pl_chat_assign(r, scope, n->a, &v);
}

static pl_status execute(pl_chat_run *r, pl_chat_scope *scope, const pl_chat_node *n)
{
    switch ((pl_chat_node_kind)n->kind) {
    case PL_CHAT_TEXT:
        return pl_chat_put(r, n->value.text, n->value.count);
    case PL_CHAT_PRINT:
        return execute_print(r, scope, n);
    case PL_CHAT_IF:
        return execute_if(r, scope, n);
    case PL_CHAT_FOR:
        return pl_chat_execute_for(r, scope, n);
    case PL_CHAT_SET:
        return execute_set(r, scope, n);
    case PL_CHAT_MACRO_NODE:
        return execute_macro(r, scope, n);
    case PL_CHAT_GENERATION:
        return execute_generation(r, scope, n);
    case PL_CHAT_BREAK:
        r->flow = PL_CHAT_LEAVE_LOOP;
        return PL_OK;
    case PL_CHAT_CONTINUE:
        r->flow = PL_CHAT_NEXT_ITEM;
        return PL_OK;
    default:
        return pl_chat_fail(r, PL_E_INTERNAL, "an expression stands among statements");
    }
}

pl_status pl_chat_execute(pl_chat_run *r, pl_chat_scope *scope, const pl_chat_node *list)
{
    PL_TRY(pl_chat_enter(r));
    for (const pl_chat_node *n = list; n && r->flow == PL_CHAT_GO_ON; n = n->next) {
        r->line = n->line;
        PL_TRY(pl_chat_step(r, 1));
        PL_TRY(execute(r, scope, n));
    }
    r->depth--;
    return PL_OK;
}
