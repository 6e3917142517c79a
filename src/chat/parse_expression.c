#include "chat/parse.h"

#include <string.h>

/* Low to high. */
enum { OR_LEVEL, AND_LEVEL, NOT_LEVEL, COMPARE_LEVEL, SUM_LEVEL, JOIN_LEVEL, PRODUCT_LEVEL, POWER_LEVEL, UNARY_LEVEL };

typedef struct operation {
    const char *word; /* else the sign */
    unsigned sign;
    int level;
    pl_chat_node_kind kind;
    pl_chat_operator op;
} operation;

static const operation operations[] = {
    {"or", 0, OR_LEVEL, PL_CHAT_OR, 0},
    {"and", 0, AND_LEVEL, PL_CHAT_AND, 0},
    {"in", 0, COMPARE_LEVEL, PL_CHAT_COMPARE, PL_CHAT_IN},
    {"not", 0, COMPARE_LEVEL, PL_CHAT_COMPARE, PL_CHAT_NOT_IN}, /* and "in" */
    {NULL, PL_CHAT_EQ_SIGN, COMPARE_LEVEL, PL_CHAT_COMPARE, PL_CHAT_EQ},
    {NULL, PL_CHAT_NE_SIGN, COMPARE_LEVEL, PL_CHAT_COMPARE, PL_CHAT_NE},
    {NULL, '<', COMPARE_LEVEL, PL_CHAT_COMPARE, PL_CHAT_LT},
    {NULL, '>', COMPARE_LEVEL, PL_CHAT_COMPARE, PL_CHAT_GT},
    {NULL, PL_CHAT_LE_SIGN, COMPARE_LEVEL, PL_CHAT_COMPARE, PL_CHAT_LE},
    {NULL, PL_CHAT_GE_SIGN, COMPARE_LEVEL, PL_CHAT_COMPARE, PL_CHAT_GE},
    {NULL, '+', SUM_LEVEL, PL_CHAT_BINARY, PL_CHAT_ADD},
    {NULL, '-', SUM_LEVEL, PL_CHAT_BINARY, PL_CHAT_SUB},
    {NULL, '~', JOIN_LEVEL, PL_CHAT_BINARY, PL_CHAT_JOIN},
    {NULL, '*', PRODUCT_LEVEL, PL_CHAT_BINARY, PL_CHAT_MUL},
    {NULL, '/', PRODUCT_LEVEL, PL_CHAT_BINARY, PL_CHAT_DIV},
    {NULL, PL_CHAT_FLOOR_DIV_SIGN, PRODUCT_LEVEL, PL_CHAT_BINARY, PL_CHAT_FLOOR_DIV},
    {NULL, '%', PRODUCT_LEVEL, PL_CHAT_BINARY, PL_CHAT_MOD},
    {NULL, PL_CHAT_POW_SIGN, POWER_LEVEL, PL_CHAT_BINARY, PL_CHAT_POW},
};

static const operation *operation_of(const pl_chat_parser *p)
{
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        const operation *o = &operations[i];
        if (o->op == PL_CHAT_NOT_IN && !pl_chat_is_word(&p->then, "in")) continue;
        if (o->word ? pl_chat_is_word(&p->now, o->word) : pl_chat_is_sign(&p->now, o->sign)) return o;
    }
    return NULL;
}

static pl_status parse_items(pl_chat_parser *p, unsigned close, bool pairs, pl_chat_node **list)
{
    bool ends;
    for (;;) {
        PL_TRY(pl_chat_take_sign(p, close, &ends));
        if (ends) return PL_OK;
        PL_TRY(pl_chat_parse_expression(p, true, list));
        list = &(*list)->next;
        if (pairs) {
            PL_TRY(pl_chat_need_sign(p, ':'));
            PL_TRY(pl_chat_parse_expression(p, true, list));
            list = &(*list)->next;
        }
        if (!pl_chat_is_sign(&p->now, close)) PL_TRY(pl_chat_need_sign(p, ','));
    }
}

static pl_status parse_argument(pl_chat_parser *p, bool *keywords, pl_chat_node **out)
{
    if (p->now.kind == PL_CHAT_TOKEN_NAME && pl_chat_is_sign(&p->then, '=')) {
        *keywords = true;
        PL_TRY(pl_chat_parse_name(p, PL_CHAT_KEYWORD, out));
        PL_TRY(pl_chat_advance(p));
        return pl_chat_parse_expression(p, true, &(*out)->a);
    }
    if (pl_chat_is_sign(&p->now, '*') || pl_chat_is_sign(&p->now, PL_CHAT_POW_SIGN))
        return pl_chat_parse_fail(p, PL_E_UNSUPPORTED, "arguments from a list (*) are not supported");
    if (*keywords) return pl_chat_parse_fail(p, PL_E_DATA, "an argument without a name follows one with a name");
    return pl_chat_parse_expression(p, true, out);
}

static pl_status parse_arguments(pl_chat_parser *p, pl_chat_node **list)
{
    bool ends, keywords = false;
    PL_TRY(pl_chat_need_sign(p, '('));
    for (;;) {
        PL_TRY(pl_chat_take_sign(p, ')', &ends));
        if (ends) return PL_OK;
        PL_TRY(parse_argument(p, &keywords, list));
        list = &(*list)->next;
        if (!pl_chat_is_sign(&p->now, ')')) PL_TRY(pl_chat_need_sign(p, ','));
    }
}

/* One part of a[b:c:d], which may be missing. */
static pl_status parse_bound(pl_chat_parser *p, pl_chat_node **out)
{
    if (pl_chat_is_sign(&p->now, ':') || pl_chat_is_sign(&p->now, ']')) return PL_OK;
    return pl_chat_parse_expression(p, true, out);
}

static pl_status parse_subscript(pl_chat_parser *p, pl_chat_node **node)
{
    pl_chat_node *n;
    bool more;
    PL_TRY(pl_chat_make_node(p, PL_CHAT_SUBSCRIPT, &n));
    n->a = *node;
    *node = n;
    PL_TRY(pl_chat_advance(p));
    PL_TRY(parse_bound(p, &n->b));
    PL_TRY(pl_chat_take_sign(p, ':', &more));
    if (more) {
        n->kind = PL_CHAT_SLICE;
        PL_TRY(parse_bound(p, &n->c));
        PL_TRY(pl_chat_take_sign(p, ':', &more));
        if (more) PL_TRY(parse_bound(p, &n->d));
    } else if (!n->b) {
        return pl_chat_parse_fail(p, PL_E_DATA, "an index is missing");
    }
    if (pl_chat_is_sign(&p->now, ','))
        return pl_chat_parse_fail(p, PL_E_UNSUPPORTED, "several indices in one pair of brackets are not supported");
    return pl_chat_need_sign(p, ']');
}

static pl_status parse_member(pl_chat_parser *p, pl_chat_node **node)
{
    pl_chat_node *n, *key;
    PL_TRY(pl_chat_advance(p));
    if (p->now.kind == PL_CHAT_TOKEN_NUMBER && p->now.value.kind == PL_CHAT_INT) {
        PL_TRY(pl_chat_make_node(p, PL_CHAT_CONSTANT, &key));
        key->value = p->now.value;
        PL_TRY(pl_chat_advance(p));
        PL_TRY(pl_chat_make_node(p, PL_CHAT_SUBSCRIPT, &n));
        n->b = key;
    } else {
        PL_TRY(pl_chat_parse_name(p, PL_CHAT_ATTRIBUTE, &n));
    }
    n->a = *node;
    *node = n;
    return PL_OK;
}

static pl_status parse_call(pl_chat_parser *p, pl_chat_node **node)
{
    pl_chat_node *n;
    PL_TRY(pl_chat_make_node(p, PL_CHAT_CALL, &n));
    n->a = *node;
    *node = n;
    return parse_arguments(p, &n->b);
}

static pl_status parse_postfix(pl_chat_parser *p, pl_chat_node **node)
{
    for (;;) {
        if (pl_chat_is_sign(&p->now, '.'))
            PL_TRY(parse_member(p, node));
        else if (pl_chat_is_sign(&p->now, '['))
            PL_TRY(parse_subscript(p, node));
        else if (pl_chat_is_sign(&p->now, '('))
            PL_TRY(parse_call(p, node));
        else
            return PL_OK;
    }
}

static pl_status parse_parentheses(pl_chat_parser *p, pl_chat_node **out)
{
    bool ends;
    PL_TRY(pl_chat_advance(p));
    PL_TRY(pl_chat_take_sign(p, ')', &ends));
    if (!ends) {
        PL_TRY(pl_chat_parse_tuple(p, true, out));
        return pl_chat_need_sign(p, ')');
    }
    PL_TRY(pl_chat_make_node(p, PL_CHAT_ITEMS, out));
    (*out)->op = PL_CHAT_TUPLE;
    return PL_OK;
}

/* A name, or one of the constants that have names. */
static pl_status parse_word(pl_chat_parser *p, pl_chat_node **out)
{
    static const struct {
        const char *word;
        pl_chat_value value;
    } constants[] = {{"true", {.kind = PL_CHAT_BOOL, .truth = true}},
                     {"True", {.kind = PL_CHAT_BOOL, .truth = true}},
                     {"false", {.kind = PL_CHAT_BOOL, .truth = false}},
                     {"False", {.kind = PL_CHAT_BOOL, .truth = false}},
                     {"none", {.kind = PL_CHAT_NONE}},
                     {"None", {.kind = PL_CHAT_NONE}}};
    pl_chat_token name = p->now;
    PL_TRY(pl_chat_parse_name(p, PL_CHAT_NAME, out));
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (pl_chat_is_word(&name, constants[i].word)) {
            (*out)->kind = PL_CHAT_CONSTANT;
            (*out)->value = constants[i].value;
        }
    return PL_OK;
}

/* Strings in a row are one. They were decoded in place, so there is room behind the first. */
static pl_status parse_strings(pl_chat_parser *p, pl_chat_node **out)
{
    PL_TRY(pl_chat_make_node(p, PL_CHAT_CONSTANT, out));
    char *text = p->now.text;
    size_t bytes = p->now.bytes;
    PL_TRY(pl_chat_advance(p));
    while (p->now.kind == PL_CHAT_TOKEN_STRING) {
        memmove(text + bytes, p->now.text, p->now.bytes);
        bytes += p->now.bytes;
        PL_TRY(pl_chat_advance(p));
    }
    (*out)->value = pl_chat_string(text, bytes);
    return PL_OK;
}

static pl_status parse_primary(pl_chat_parser *p, pl_chat_node **out)
{
    if (p->now.kind == PL_CHAT_TOKEN_NAME) return parse_word(p, out);
    if (p->now.kind == PL_CHAT_TOKEN_STRING) return parse_strings(p, out);
    if (p->now.kind == PL_CHAT_TOKEN_NUMBER) {
        PL_TRY(pl_chat_make_node(p, PL_CHAT_CONSTANT, out));
        (*out)->value = p->now.value;
        return pl_chat_advance(p);
    }
    if (pl_chat_is_sign(&p->now, '(')) return parse_parentheses(p, out);
    bool is_map = pl_chat_is_sign(&p->now, '{');
    if (!is_map && !pl_chat_is_sign(&p->now, '[')) return pl_chat_parse_fail(p, PL_E_DATA, "an expression is missing");
    PL_TRY(pl_chat_make_node(p, is_map ? PL_CHAT_PAIRS : PL_CHAT_ITEMS, out));
    PL_TRY(pl_chat_advance(p));
    return parse_items(p, is_map ? '}' : ']', is_map, &(*out)->a);
}

/* The name of a filter or test may have points, but none that is supported does. */
static pl_status parse_dotted(pl_chat_parser *p, pl_chat_node_kind kind, pl_chat_node **n)
{
    bool more;
    PL_TRY(pl_chat_parse_name(p, kind, n));
    for (;;) {
        PL_TRY(pl_chat_take_sign(p, '.', &more));
        if (!more) return PL_OK;
        if (p->now.kind != PL_CHAT_TOKEN_NAME) return pl_chat_parse_fail(p, PL_E_DATA, "a name is missing");
        (*n)->value.count = (uint32_t)(p->now.text + p->now.bytes - (*n)->value.text);
        PL_TRY(pl_chat_advance(p));
    }
}

static pl_status parse_filter(pl_chat_parser *p, pl_chat_node **node)
{
    pl_chat_node *n;
    PL_TRY(pl_chat_advance(p));
    PL_TRY(parse_dotted(p, PL_CHAT_FILTER, &n));
    n->a = *node;
    *node = n;
    return pl_chat_is_sign(&p->now, '(') ? parse_arguments(p, &n->b) : PL_OK;
}

pl_status pl_chat_parse_filters(pl_chat_parser *p, pl_chat_node **node)
{
    while (pl_chat_is_sign(&p->now, '|')) PL_TRY(parse_filter(p, node));
    return PL_OK;
}

/* A test may have one argument without parentheses: `is equalto "a"`. */
static bool begins_argument(const pl_chat_token *t)
{
    if (t->kind == PL_CHAT_TOKEN_NAME)
        return !pl_chat_is_word(t, "else") && !pl_chat_is_word(t, "or") && !pl_chat_is_word(t, "and");
    return t->kind == PL_CHAT_TOKEN_STRING || t->kind == PL_CHAT_TOKEN_NUMBER || pl_chat_is_sign(t, '[') ||
           pl_chat_is_sign(t, '{');
}

static pl_status parse_test(pl_chat_parser *p, pl_chat_node **node)
{
    pl_chat_node *n, *negation = NULL;
    bool negated;
    PL_TRY(pl_chat_advance(p));
    PL_TRY(pl_chat_take_word(p, "not", &negated));
    if (negated) PL_TRY(pl_chat_make_node(p, PL_CHAT_NOT, &negation));
    PL_TRY(parse_dotted(p, PL_CHAT_TEST, &n));
    n->a = *node;
    *node = n;
    if (negation) {
        negation->a = n;
        *node = negation;
    }
    if (pl_chat_is_sign(&p->now, '(')) return parse_arguments(p, &n->b);
    if (!begins_argument(&p->now)) return PL_OK;
    if (pl_chat_is_word(&p->now, "is")) return pl_chat_parse_fail(p, PL_E_DATA, "a test follows a test");
    PL_TRY(parse_primary(p, &n->b));
    return parse_postfix(p, &n->b);
}

static pl_status parse_unary(pl_chat_parser *p, bool with_filters, pl_chat_node **out)
{
    bool minus = pl_chat_is_sign(&p->now, '-');
    PL_TRY(pl_chat_deeper(p));
    if (minus || pl_chat_is_sign(&p->now, '+')) {
        PL_TRY(pl_chat_make_node(p, minus ? PL_CHAT_NEGATIVE : PL_CHAT_POSITIVE, out));
        PL_TRY(pl_chat_advance(p));
        PL_TRY(parse_unary(p, false, &(*out)->a));
    } else {
        PL_TRY(parse_primary(p, out));
    }
    p->depth--;
    PL_TRY(parse_postfix(p, out));
    for (; with_filters;) {
        if (pl_chat_is_sign(&p->now, '|'))
            PL_TRY(parse_filter(p, out));
        else if (pl_chat_is_word(&p->now, "is"))
            PL_TRY(parse_test(p, out));
        else if (pl_chat_is_sign(&p->now, '('))
            PL_TRY(parse_call(p, out));
        else
            break;
    }
    return PL_OK;
}

static pl_status parse_operand(pl_chat_parser *p, int level, pl_chat_node **out);

/* Operators of this level and above, each of which takes what is left of it. A comparison that follows one compares
 * with that one's right side. */
static pl_status parse_operations(pl_chat_parser *p, int level, pl_chat_node **out)
{
    pl_chat_node *n, *comparison = NULL;
    const operation *o;
    PL_TRY(parse_operand(p, level, out));
    while ((o = operation_of(p)) && o->level >= level) {
        PL_TRY(pl_chat_make_node(p, o->kind, &n));
        n->op = (uint8_t)o->op;
        if (o->op == PL_CHAT_NOT_IN) PL_TRY(pl_chat_advance(p));
        PL_TRY(pl_chat_advance(p));
        PL_TRY(parse_operations(p, o->level + 1, &n->b));
        bool compares = o->kind == PL_CHAT_COMPARE;
        if (compares && comparison) {
            comparison->c = n;
        } else {
            n->a = *out;
            *out = n;
        }
        comparison = compares ? n : NULL;
    }
    return PL_OK;
}

static pl_status parse_operand(pl_chat_parser *p, int level, pl_chat_node **out)
{
    if (level > NOT_LEVEL || !pl_chat_is_word(&p->now, "not")) return parse_unary(p, true, out);
    PL_TRY(pl_chat_make_node(p, PL_CHAT_NOT, out));
    PL_TRY(pl_chat_advance(p));
    PL_TRY(pl_chat_deeper(p));
    PL_TRY(parse_operations(p, NOT_LEVEL, &(*out)->a));
    p->depth--;
    return PL_OK;
}

pl_status pl_chat_parse_expression(pl_chat_parser *p, bool with_condition, pl_chat_node **out)
{
    bool has_else;
    PL_TRY(pl_chat_deeper(p));
    PL_TRY(parse_operations(p, OR_LEVEL, out));
    while (with_condition && pl_chat_is_word(&p->now, "if")) {
        pl_chat_node *n;
        PL_TRY(pl_chat_make_node(p, PL_CHAT_CONDITION, &n));
        n->b = *out;
        *out = n;
        PL_TRY(pl_chat_advance(p));
        PL_TRY(parse_operations(p, OR_LEVEL, &n->a));
        PL_TRY(pl_chat_take_word(p, "else", &has_else));
        if (has_else) PL_TRY(pl_chat_parse_expression(p, true, &n->c));
    }
    p->depth--;
    return PL_OK;
}

static pl_status parse_listed(pl_chat_parser *p, pl_status (*parse)(pl_chat_parser *, bool, pl_chat_node **), bool flag,
                              pl_chat_node **out)
{
    pl_chat_node *tuple, **last = out;
    bool comma, is_tuple = false;
    for (;;) {
        PL_TRY(parse(p, flag, last));
        last = &(*last)->next;
        if (!is_tuple && pl_chat_is_sign(&p->now, ',')) {
            is_tuple = true;
            PL_TRY(pl_chat_make_node(p, PL_CHAT_ITEMS, &tuple));
            tuple->op = PL_CHAT_TUPLE;
            tuple->a = *out;
            *out = tuple;
            last = &tuple->a->next;
        }
        PL_TRY(pl_chat_take_sign(p, ',', &comma));
        if (!comma || p->now.kind == PL_CHAT_TOKEN_CLOSE || pl_chat_is_sign(&p->now, ')') ||
            pl_chat_is_word(&p->now, "in") || pl_chat_is_sign(&p->now, '='))
            return PL_OK;
    }
}

pl_status pl_chat_parse_tuple(pl_chat_parser *p, bool with_condition, pl_chat_node **out)
{
    return parse_listed(p, pl_chat_parse_expression, with_condition, out);
}

static pl_status parse_target(pl_chat_parser *p, bool unused, pl_chat_node **out)
{
    (void)unused;
    PL_TRY(pl_chat_deeper(p));
    if (pl_chat_is_sign(&p->now, '(')) {
        PL_TRY(pl_chat_advance(p));
        PL_TRY(pl_chat_parse_targets(p, out));
        PL_TRY(pl_chat_need_sign(p, ')'));
    } else if (pl_chat_is_sign(&p->then, '.')) {
        PL_TRY(pl_chat_parse_name(p, PL_CHAT_MEMBER, out));
        PL_TRY(pl_chat_advance(p));
        PL_TRY(pl_chat_parse_name(p, PL_CHAT_NAME, &(*out)->a));
    } else {
        PL_TRY(pl_chat_parse_name(p, PL_CHAT_NAME, out));
    }
    p->depth--;
    return PL_OK;
}

pl_status pl_chat_parse_targets(pl_chat_parser *p, pl_chat_node **out)
{
    return parse_listed(p, parse_target, false, out);
}
