/* jinja2 resolves names when it compiles a template, and that shows where a template sets a variable that the caller
 * gave. If a body (of the template, a loop, a macro …) sets such a name before it looks at it, and under no `if`, the
 * name is undefined in that body until then. Without this, loops and macros in it that run earlier would see the
 * caller's value. */
#include "chat/render.h"

#include <string.h>

typedef enum use { UNUSED, LOOKED_AT, SET } use;

static bool is_name(const pl_chat_value *a, const pl_chat_value *b)
{
    return a->count == b->count && memcmp(a->text, b->text, a->count) == 0;
}

/* Whether expressions look at the name; those too deep to be evaluated are not searched. */
static bool looks_at(pl_chat_run *r, const pl_chat_node *list, const pl_chat_value *name, int depth)
{
    if (depth == PL_CHAT_CALLS_MAX) return true;
    for (const pl_chat_node *n = list; n; n = n->next) {
        r->steps++;
        bool names = n->kind == PL_CHAT_NAME || n->kind == PL_CHAT_MEMBER;
        if (names && is_name(&n->value, name)) return true;
        const pl_chat_node *parts[] = {n->a, n->b, n->c, n->d};
        for (int i = 0; i < 4 && n->kind != PL_CHAT_CAPTURE; i++)
            if (parts[i] && looks_at(r, parts[i], name, depth + 1)) return true;
    }
    return false;
}

static bool sets(const pl_chat_node *target, const pl_chat_value *name)
{
    if (target->kind == PL_CHAT_NAME) return is_name(&target->value, name);
    for (const pl_chat_node *t = target->kind == PL_CHAT_ITEMS ? target->a : NULL; t; t = t->next)
        if (sets(t, name)) return true;
    return false;
}

static bool is_block(const pl_chat_node *value)
{
    while (value->kind == PL_CHAT_FILTER) value = value->a;
    return value->kind == PL_CHAT_CAPTURE;
}

static use use_in_set(pl_chat_run *r, const pl_chat_node *n, const pl_chat_value *name)
{
    if (!is_block(n->b) && looks_at(r, n->b, name, 0)) return LOOKED_AT;
    if (sets(n->a, name)) return SET;
    return n->a->kind == PL_CHAT_MEMBER && is_name(&n->a->value, name) ? LOOKED_AT : UNUSED;
}

static use first_use(pl_chat_run *r, const pl_chat_node *list, const pl_chat_value *name);

static bool is_used_in_if(pl_chat_run *r, const pl_chat_node *n, const pl_chat_value *name)
{
    for (; !looks_at(r, n->a, name, 0) && first_use(r, n->b, name) == UNUSED; n = n->c)
        if (!n->c || n->c->kind != PL_CHAT_IF || n->c->next) return first_use(r, n->c, name) != UNUSED;
    return true;
}

/* The first use of a name in statements, not counting what has a scope of its own. */
static use first_use(pl_chat_run *r, const pl_chat_node *list, const pl_chat_value *name)
{
    use found = UNUSED;
    for (const pl_chat_node *n = list; n && found == UNUSED; n = n->next) {
        r->steps++;
        bool looked_at = false;
        switch (n->kind) {
        case PL_CHAT_PRINT:
            looked_at = looks_at(r, n->a, name, 0);
            break;
        case PL_CHAT_FOR:
            looked_at = looks_at(r, n->b, name, 0);
            break;
        case PL_CHAT_IF:
            looked_at = is_used_in_if(r, n, name);
            break;
        case PL_CHAT_SET:
            found = use_in_set(r, n, name);
            break;
        case PL_CHAT_MACRO_NODE:
            found = is_name(&n->value, name) ? SET : UNUSED;
            break;
        default:
            break;
        }
        if (looked_at) found = LOOKED_AT;
    }
    return found;
}

static bool is_used_outside(pl_chat_run *r, const pl_chat_scope *s, const pl_chat_value *name)
{
    for (s = s->outer; s && s->outer; s = s->outer) /* the last are the caller's variables */
        if (pl_chat_cell_of(r, s, name) || first_use(r, s->body, name)) return true;
    return false;
}

static pl_status hide(pl_chat_run *r, pl_chat_scope *s, const pl_chat_value *name)
{
    pl_chat_value undefined = {.kind = PL_CHAT_UNDEFINED, .count = name->count, .text = name->text};
    if (!pl_chat_cell_of(r, r->names, name) || pl_chat_cell_of(r, s, name)) return PL_OK;
    bool hidden = first_use(r, s->body, name) == SET && !is_used_outside(r, s, name);
    PL_TRY(pl_chat_step(r, 1));
    if (!hidden) return PL_OK;
    return pl_chat_set_cell(r, s, name, &undefined);
}

static pl_status hide_targets(pl_chat_run *r, pl_chat_scope *s, const pl_chat_node *target)
{
    if (target->kind == PL_CHAT_NAME) return hide(r, s, &target->value);
    for (const pl_chat_node *t = target->kind == PL_CHAT_ITEMS ? target->a : NULL; t; t = t->next)
        PL_TRY(hide_targets(r, s, t));
    return PL_OK;
}

pl_status pl_chat_make_scope(pl_chat_run *r, pl_chat_scope *outer, pl_chat_scope **out)
{
    PL_TRY(pl_chat_take(r, 1, sizeof **out, out));
    **out = (pl_chat_scope){.outer = outer};
    return PL_OK;
}

pl_status pl_chat_execute_body(pl_chat_run *r, pl_chat_scope *s, const pl_chat_node *list)
{
    s->body = list;
    for (const pl_chat_node *n = list; n; n = n->next) {
        if (n->kind == PL_CHAT_SET) PL_TRY(hide_targets(r, s, n->a));
        if (n->kind == PL_CHAT_MACRO_NODE) PL_TRY(hide(r, s, &n->value));
    }
    return pl_chat_execute(r, s, list);
}
