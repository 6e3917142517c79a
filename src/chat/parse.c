#include "chat/parse.h"

#include <stdarg.h>
#include <string.h>

#include "base/locale.h"
#include "base/size.h"
#include "base/utf8.h"

pl_status pl_chat_parse_fail(pl_chat_parser *p, pl_status status, const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    pl_vprint(text, sizeof text, fmt, args);
    va_end(args);
    return pl_fail(p->err, status, "chat template, line %u: %s", p->now.line, text);
}

pl_status pl_chat_advance(pl_chat_parser *p)
{
    p->now = p->then;
    return pl_chat_lex(&p->lexer, &p->then);
}

pl_status pl_chat_deeper(pl_chat_parser *p)
{
    if (p->depth == PL_CHAT_DEPTH_MAX)
        return pl_chat_parse_fail(p, PL_E_UNSUPPORTED, "more than %d things are written inside of each other",
                                  PL_CHAT_DEPTH_MAX);
    p->depth++;
    return PL_OK;
}

bool pl_chat_is_word(const pl_chat_token *t, const char *word)
{
    return t->kind == PL_CHAT_TOKEN_NAME && strlen(word) == t->bytes && memcmp(t->text, word, t->bytes) == 0;
}

bool pl_chat_is_sign(const pl_chat_token *t, unsigned sign) { return t->kind == PL_CHAT_TOKEN_SIGN && t->op == sign; }

pl_status pl_chat_take_sign(pl_chat_parser *p, unsigned sign, bool *taken)
{
    *taken = pl_chat_is_sign(&p->now, sign);
    return *taken ? pl_chat_advance(p) : PL_OK;
}

pl_status pl_chat_take_word(pl_chat_parser *p, const char *word, bool *taken)
{
    *taken = pl_chat_is_word(&p->now, word);
    return *taken ? pl_chat_advance(p) : PL_OK;
}

pl_status pl_chat_need_sign(pl_chat_parser *p, unsigned sign)
{
    if (!pl_chat_is_sign(&p->now, sign)) return pl_chat_parse_fail(p, PL_E_DATA, "\"%c\" is missing", (int)sign);
    return pl_chat_advance(p);
}

pl_status pl_chat_make_node(pl_chat_parser *p, pl_chat_node_kind kind, pl_chat_node **out)
{
    if (p->nodes == p->nodes_max)
        return pl_chat_parse_fail(p, PL_E_BUDGET, "the memory for parsing, room for %llu parts, is too small",
                                  (unsigned long long)p->nodes_max);
    *out = &p->node[p->nodes++];
    **out = (pl_chat_node){.kind = (uint8_t)kind, .line = p->now.line};
    return PL_OK;
}

pl_status pl_chat_parse_name(pl_chat_parser *p, pl_chat_node_kind kind, pl_chat_node **out)
{
    if (p->now.kind != PL_CHAT_TOKEN_NAME) return pl_chat_parse_fail(p, PL_E_DATA, "a name is missing");
    PL_TRY(pl_chat_make_node(p, kind, out));
    (*out)->value = pl_chat_string(p->now.text, p->now.bytes);
    return pl_chat_advance(p);
}

/* --- statements --- */

typedef struct ends {
    const char *word[3]; /* what may end a list of statements; none: the end of the template */
    int which;           /* did */
} ends;

static pl_status parse_body(pl_chat_parser *p, ends *, pl_chat_node **list);

/* The end of the tag, and the statements up to a tag that begins with one of the words. */
static pl_status parse_block(pl_chat_parser *p, ends *e, pl_chat_node **list)
{
    bool colon;
    PL_TRY(pl_chat_take_sign(p, ':', &colon));
    if (p->now.kind != PL_CHAT_TOKEN_CLOSE) return pl_chat_parse_fail(p, PL_E_DATA, "the tag does not end here");
    PL_TRY(pl_chat_advance(p));
    return parse_body(p, e, list);
}

/* A body in which `break` has no loop to end. */
static pl_status parse_closed_block(pl_chat_parser *p, const char *end, pl_chat_node **list)
{
    int loops = p->loops;
    p->loops = 0;
    PL_TRY(parse_block(p, &(ends){.word = {end}}, list));
    p->loops = loops;
    return PL_OK;
}

static pl_status parse_if(pl_chat_parser *p, pl_chat_node **out)
{
    for (;;) {
        ends e = {.word = {"endif", "elif", "else"}};
        PL_TRY(pl_chat_make_node(p, PL_CHAT_IF, out));
        PL_TRY(pl_chat_parse_tuple(p, false, &(*out)->a));
        PL_TRY(parse_block(p, &e, &(*out)->b));
        out = &(*out)->c;
        if (e.which == 2) return parse_block(p, &(ends){.word = {"endif"}}, out);
        if (e.which == 0) return PL_OK;
    }
}

static pl_status parse_for(pl_chat_parser *p, pl_chat_node **out)
{
    bool taken;
    ends e = {.word = {"endfor", "else"}};
    PL_TRY(pl_chat_make_node(p, PL_CHAT_FOR, out));
    pl_chat_node *n = *out;
    PL_TRY(pl_chat_parse_targets(p, &n->a));
    PL_TRY(pl_chat_take_word(p, "in", &taken));
    if (!taken) return pl_chat_parse_fail(p, PL_E_DATA, "`in` is missing in a loop");
    PL_TRY(pl_chat_parse_tuple(p, false, &n->b));
    PL_TRY(pl_chat_take_word(p, "if", &taken));
    if (taken) PL_TRY(pl_chat_parse_expression(p, true, &n->c));
    if (pl_chat_is_word(&p->now, "recursive"))
        return pl_chat_parse_fail(p, PL_E_UNSUPPORTED, "recursive loops are not supported");
    p->loops++;
    PL_TRY(parse_block(p, &e, &n->d));
    p->loops--;
    return e.which == 1 ? parse_block(p, &(ends){.word = {"endfor"}}, &n->other) : PL_OK;
}

static pl_status parse_set(pl_chat_parser *p, pl_chat_node **out)
{
    bool taken;
    PL_TRY(pl_chat_make_node(p, PL_CHAT_SET, out));
    PL_TRY(pl_chat_parse_targets(p, &(*out)->a));
    PL_TRY(pl_chat_take_sign(p, '=', &taken));
    if (taken) return pl_chat_parse_tuple(p, true, &(*out)->b);
    pl_chat_node *capture = NULL;
    PL_TRY(pl_chat_make_node(p, PL_CHAT_CAPTURE, &capture));
    (*out)->b = capture;
    PL_TRY(pl_chat_parse_filters(p, &(*out)->b));
    return parse_closed_block(p, "endset", &capture->a);
}

static pl_status parse_macro(pl_chat_parser *p, pl_chat_node **out)
{
    bool ends_here, has_default;
    PL_TRY(pl_chat_parse_name(p, PL_CHAT_MACRO_NODE, out));
    PL_TRY(pl_chat_need_sign(p, '('));
    for (pl_chat_node **list = &(*out)->a;; list = &(*list)->next) {
        PL_TRY(pl_chat_take_sign(p, ')', &ends_here));
        if (ends_here) break;
        PL_TRY(pl_chat_parse_name(p, PL_CHAT_NAME, list));
        PL_TRY(pl_chat_take_sign(p, '=', &has_default));
        if (has_default) PL_TRY(pl_chat_parse_expression(p, true, &(*list)->a));
        if (!pl_chat_is_sign(&p->now, ')')) PL_TRY(pl_chat_need_sign(p, ','));
    }
    return parse_closed_block(p, "endmacro", &(*out)->b);
}

static pl_status parse_generation(pl_chat_parser *p, pl_chat_node **out)
{
    p->has_generation = true;
    PL_TRY(pl_chat_make_node(p, PL_CHAT_GENERATION, out));
    return parse_closed_block(p, "endgeneration", &(*out)->a);
}

static pl_status parse_leave(pl_chat_parser *p, pl_chat_node **out, pl_chat_node_kind kind)
{
    if (p->loops == 0) return pl_chat_parse_fail(p, PL_E_DATA, "`break` or `continue` is in no loop");
    return pl_chat_make_node(p, kind, out);
}

static pl_status parse_break(pl_chat_parser *p, pl_chat_node **out) { return parse_leave(p, out, PL_CHAT_BREAK); }
static pl_status parse_continue(pl_chat_parser *p, pl_chat_node **out) { return parse_leave(p, out, PL_CHAT_CONTINUE); }

static pl_status parse_statement(pl_chat_parser *p, pl_chat_node **out)
{
    static const struct {
        const char *word;
        pl_status (*parse)(pl_chat_parser *, pl_chat_node **);
    } statements[] = {{"if", parse_if},
                      {"for", parse_for},
                      {"set", parse_set},
                      {"macro", parse_macro},
                      {"generation", parse_generation},
                      {"break", parse_break},
                      {"continue", parse_continue}};
    if (p->now.kind != PL_CHAT_TOKEN_NAME)
        return pl_chat_parse_fail(p, PL_E_DATA, "the name of a statement is missing");
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
        if (!pl_chat_is_word(&p->now, statements[i].word)) continue;
        PL_TRY(pl_chat_advance(p));
        return statements[i].parse(p, out);
    }
    return pl_chat_parse_fail(p, PL_E_UNSUPPORTED, "the statement \"%.*s\" is not supported here", (int)p->now.bytes,
                              p->now.text);
}

static pl_status parse_print(pl_chat_parser *p, pl_chat_node **out)
{
    PL_TRY(pl_chat_make_node(p, PL_CHAT_PRINT, out));
    return pl_chat_parse_tuple(p, true, &(*out)->a);
}

static pl_status parse_text(pl_chat_parser *p, pl_chat_node **out)
{
    PL_TRY(pl_chat_make_node(p, PL_CHAT_TEXT, out));
    (*out)->value = pl_chat_string(p->now.text, p->now.bytes);
    return pl_chat_advance(p);
}

static bool at_end(const pl_chat_parser *p, ends *e)
{
    for (e->which = 0; e->which < 3 && e->word[e->which]; e->which++)
        if (pl_chat_is_word(&p->now, e->word[e->which])) return true;
    return false;
}

static pl_status parse_tag(pl_chat_parser *p, pl_chat_node **out)
{
    if (p->now.op == '{') {
        PL_TRY(pl_chat_advance(p));
        PL_TRY(parse_print(p, out));
    } else {
        PL_TRY(parse_statement(p, out));
    }
    if (p->now.kind != PL_CHAT_TOKEN_CLOSE) return pl_chat_parse_fail(p, PL_E_DATA, "the tag does not end here");
    return pl_chat_advance(p);
}

static pl_status parse_body(pl_chat_parser *p, ends *e, pl_chat_node **list)
{
    PL_TRY(pl_chat_deeper(p));
    for (; p->now.kind != PL_CHAT_TOKEN_END; list = &(*list)->next) {
        if (p->now.kind == PL_CHAT_TOKEN_DATA) {
            PL_TRY(parse_text(p, list));
            continue;
        }
        if (p->now.op == '%') {
            PL_TRY(pl_chat_advance(p));
            if (at_end(p, e)) {
                p->depth--;
                return pl_chat_advance(p);
            }
        }
        PL_TRY(parse_tag(p, list));
    }
    p->depth--;
    return e->word[0] ? pl_chat_parse_fail(p, PL_E_DATA, "\"%s\" is missing at the end of the template", e->word[0])
                      : PL_OK;
}

/* --- the whole --- */

static uint64_t text_room(uint64_t bytes)
{
    return pl_align_up(sizeof(pl_chat_template) + bytes, _Alignof(pl_chat_node));
}

uint64_t pl_chat_template_bytes(uint64_t text_bytes)
{
    if (text_bytes > PL_CHAT_TEMPLATE_MAX) return UINT64_MAX;
    return text_room(text_bytes) + text_bytes * sizeof(pl_chat_node);
}

static pl_status check_text(const char *text, size_t bytes, pl_error *err)
{
    uint32_t point;
    if (bytes > PL_CHAT_TEMPLATE_MAX)
        return pl_fail(err, PL_E_UNSUPPORTED, "the chat template has %zu bytes, more than %d", bytes,
                       PL_CHAT_TEMPLATE_MAX);
    for (size_t i = 0, n; i < bytes; i += n) {
        n = pl_utf8_read((const uint8_t *)text + i, bytes - i, &point);
        if (n == 0 || point == PL_NOT_UTF8 || point == 0)
            return pl_fail(err, PL_E_DATA, "the chat template is no UTF-8 text: byte %zu begins no character", i);
    }
    return PL_OK;
}

pl_status pl_chat_template_parse(const char *text, size_t bytes, void *block, uint64_t block_bytes,
                                 pl_chat_template **out, pl_error *err)
{
    PL_TRY(check_text(text, bytes, err));
    uint64_t room = text_room(bytes);
    if (block_bytes < room)
        return pl_fail(err, PL_E_BUDGET, "the memory for parsing a chat template of %zu bytes is too small", bytes);
    pl_chat_template *t = block;
    char *copy = (char *)(t + 1);
    size_t n = pl_chat_normalize(text, bytes, copy);
    pl_chat_parser p = {.lexer = {.start = copy, .at = copy, .end = copy + n, .line = 1, .err = err},
                        .node = (pl_chat_node *)((char *)block + room),
                        .nodes_max = (block_bytes - room) / sizeof(pl_chat_node),
                        .err = err};
    *t = (pl_chat_template){0};
    PL_TRY(pl_chat_advance(&p));
    PL_TRY(pl_chat_advance(&p));
    PL_TRY(parse_body(&p, &(ends){0}, &t->body));
    t->used_bytes = room + p.nodes * sizeof(pl_chat_node);
    t->has_generation = p.has_generation;
    *out = t;
    return PL_OK;
}

uint64_t pl_chat_template_used_bytes(const pl_chat_template *t) { return t->used_bytes; }
bool pl_chat_template_marks_generation(const pl_chat_template *t) { return t->has_generation; }
