/* Loops. A filter is asked item by item, as the loop comes to them, since the body may change what it looks at; `last`
 * and `nextitem` look one item ahead, `length` at all of them. */
#include "chat/render.h"

/* The next item that the filter lets through. */
static pl_status find_next(pl_chat_run *r, pl_chat_loop *l, pl_chat_value *item, bool *found)
{
    for (*found = false; !*found && l->at < l->count; l->at++) {
        pl_chat_scope *scope;
        pl_chat_value answer = pl_chat_bool(true);
        *item = l->item[l->at];
        if (l->filter) {
            uint64_t mark = r->used, stores = r->stores;
            PL_TRY(pl_chat_make_scope(r, l->scope, &scope));
            PL_TRY(pl_chat_assign(r, scope, l->node->a, item));
            PL_TRY(pl_chat_evaluate(r, scope, l->filter, &answer));
            if (r->stores == stores) r->used = mark;
        }
        *found = pl_chat_truth(&answer);
    }
    return PL_OK;
}

static pl_status look_ahead(pl_chat_run *r, pl_chat_loop *l)
{
    return l->has_next ? PL_OK : find_next(r, l, &l->next, &l->has_next);
}

static pl_status measure(pl_chat_run *r, pl_chat_loop *l)
{
    if (l->length >= 0) return PL_OK;
    if (l->filter) {
        pl_chat_value *item;
        uint32_t count = 0;
        bool found = true;
        r->stores++; /* the loop lives longer than what it is asked in */
        PL_TRY(pl_chat_take_values(r, l->count - l->at, &item));
        while (found) {
            pl_chat_value next;
            PL_TRY(find_next(r, l, &next, &found));
            if (found) item[count++] = next;
        }
        l->item = item, l->at = 0, l->count = count, l->filter = NULL;
    }
    l->length = l->index + 1 + l->has_next + (l->count - l->at);
    return PL_OK;
}

static pl_status give_number(int64_t number, pl_chat_value *out)
{
    *out = pl_chat_int(number);
    return PL_OK;
}

static pl_status neighbour(bool exists, const pl_chat_value *item, const pl_chat_value *name, pl_chat_value *out)
{
    *out = exists ? *item : (pl_chat_value){.kind = PL_CHAT_UNDEFINED, .count = name->count, .text = name->text};
    return PL_OK;
}

pl_status pl_chat_loop_attribute(pl_chat_run *r, pl_chat_loop *l, const pl_chat_value *name, pl_chat_value *out)
{
    pl_chat_value n = pl_chat_string(name->text, name->count);
    if (pl_chat_says(&n, "index")) return give_number(l->index + 1, out);
    if (pl_chat_says(&n, "index0")) return give_number(l->index, out);
    if (pl_chat_says(&n, "depth")) return give_number(1, out);
    if (pl_chat_says(&n, "depth0")) return give_number(0, out);
    if (pl_chat_says(&n, "previtem")) return neighbour(l->has_before, &l->before, name, out);
    *out = pl_chat_bool(l->index == 0);
    if (pl_chat_says(&n, "first")) return PL_OK;
    if (pl_chat_says(&n, "last") || pl_chat_says(&n, "nextitem")) {
        PL_TRY(look_ahead(r, l));
        *out = pl_chat_bool(!l->has_next);
        return pl_chat_says(&n, "last") ? PL_OK : neighbour(l->has_next, &l->next, name, out);
    }
    if (pl_chat_is_listed("length revindex revindex0", &n)) {
        PL_TRY(measure(r, l));
        return give_number(pl_chat_says(&n, "length")     ? l->length
                           : pl_chat_says(&n, "revindex") ? l->length - l->index
                                                          : l->length - l->index - 1,
                           out);
    }
    if (pl_chat_is_listed("cycle changed", &n))
        return pl_chat_fail(r, PL_E_UNSUPPORTED, "`loop.%.*s` is not supported", (int)n.count, n.text);
    return neighbour(false, NULL, name, out);
}

/* The body for the item that was found; *whole: it was not left on the way. */
static pl_status execute_body(pl_chat_run *r, pl_chat_loop *l, const pl_chat_value *item, bool *whole)
{
    static const pl_chat_value name = {.kind = PL_CHAT_STRING, .count = 4, .text = "loop"};
    uint64_t mark = r->used, stores = r->stores;
    pl_chat_scope *scope;
    l->has_before = l->index++ >= 0;
    l->before = l->now;
    l->now = *item;
    PL_TRY(pl_chat_step(r, 1));
    PL_TRY(pl_chat_make_scope(r, l->scope, &scope));
    PL_TRY(pl_chat_set_cell(r, scope, &name, &(pl_chat_value){.kind = PL_CHAT_LOOP, .object = l}));
    PL_TRY(pl_chat_assign(r, scope, l->node->a, item));
    PL_TRY(pl_chat_execute_body(r, scope, l->node->d));
    if (r->stores == stores) r->used = mark;
    *whole = r->flow == PL_CHAT_GO_ON;
    return PL_OK;
}

pl_status pl_chat_execute_for(pl_chat_run *r, pl_chat_scope *outer, const pl_chat_node *n)
{
    pl_chat_value list, item, v;
    pl_chat_loop *l;
    pl_chat_scope *scope;
    bool found, whole, any = false, left = false;
    PL_TRY(pl_chat_evaluate(r, outer, n->b, &v));
    PL_TRY(pl_chat_items(r, &v, &list));
    PL_TRY(pl_chat_take(r, 1, sizeof *l, &l));
    *l = (pl_chat_loop){.node = n, .scope = outer, .filter = n->c, .item = list.item, .count = list.count, .index = -1};
    l->length = n->c ? -1 : (int64_t)list.count;
    while (!left) {
        PL_TRY(look_ahead(r, l));
        found = l->has_next;
        item = l->next;
        l->has_next = false;
        if (!found) break;
        PL_TRY(execute_body(r, l, &item, &whole));
        any |= whole;
        left = r->flow == PL_CHAT_LEAVE_LOOP;
        r->flow = PL_CHAT_GO_ON;
    }
    if (any || !n->other) return PL_OK;
    PL_TRY(pl_chat_make_scope(r, outer, &scope));
    return pl_chat_execute_body(r, scope, n->other);
}
