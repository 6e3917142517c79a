/* Arithmetic, as in Python; whole numbers have 64 bits here, and what needs more is refused. */
#include "chat/render.h"

#include <math.h>
#include <string.h>

static double real(const pl_chat_value *v)
{
    int64_t whole;
    return pl_chat_is_whole(v, &whole) ? (double)whole : v->real;
}

static pl_status give_real(double value, pl_chat_value *out)
{
    *out = (pl_chat_value){.kind = PL_CHAT_REAL, .real = value};
    return PL_OK;
}

static pl_status operate_whole(pl_chat_run *r, pl_chat_operator op, int64_t a, int64_t b, pl_chat_value *out)
{
    int64_t c = 0;
    bool over = false;
    if (op == PL_CHAT_ADD) over = __builtin_add_overflow(a, b, &c);
    if (op == PL_CHAT_SUB) over = __builtin_sub_overflow(a, b, &c);
    if (op == PL_CHAT_MUL) over = __builtin_mul_overflow(a, b, &c);
    if (op == PL_CHAT_FLOOR_DIV || op == PL_CHAT_MOD) {
        over = a == INT64_MIN && b == -1;
        int64_t rest = over ? 0 : a % b;
        bool lower = rest != 0 && (rest < 0) != (b < 0);
        c = op == PL_CHAT_MOD ? rest + (lower ? b : 0) : over ? 0 : a / b - lower;
    }
    if (over) return pl_chat_fail(r, PL_E_UNSUPPORTED, "a whole number is beyond 64 bits");
    *out = pl_chat_int(c);
    return PL_OK;
}

/* As CPython's float_floor_div and float_rem. */
static double floor_division(double a, double b, double *rest)
{
    double mod = fmod(a, b), div = (a - mod) / b;
    if (mod != 0) {
        if ((b < 0) != (mod < 0)) mod += b, div -= 1;
    } else {
        mod = copysign(0.0, b);
    }
    *rest = mod;
    if (div == 0) return copysign(0.0, a / b);
    double down = floor(div);
    return div - down > 0.5 ? down + 1 : down;
}

static pl_status operate_numbers(pl_chat_run *r, pl_chat_operator op, const pl_chat_value *a, const pl_chat_value *b,
                                 pl_chat_value *out)
{
    double x = real(a), y = real(b), rest, quotient;
    int64_t m, n;
    bool divides = op == PL_CHAT_DIV || op == PL_CHAT_FLOOR_DIV || op == PL_CHAT_MOD;
    if (divides && y == 0) return pl_chat_fail(r, PL_E_DATA, "a division by zero");
    if (op != PL_CHAT_DIV && pl_chat_is_whole(a, &m) && pl_chat_is_whole(b, &n)) return operate_whole(r, op, m, n, out);
    switch (op) {
    case PL_CHAT_ADD:
        return give_real(x + y, out);
    case PL_CHAT_SUB:
        return give_real(x - y, out);
    case PL_CHAT_MUL:
        return give_real(x * y, out);
    case PL_CHAT_DIV:
        return give_real(x / y, out);
    default:
        break;
    }
    quotient = floor_division(x, y, &rest);
    return give_real(op == PL_CHAT_MOD ? rest : quotient, out);
}

static bool needs_escapes(const pl_chat_value *v)
{
    for (uint32_t i = 0; i < v->count; i++)
        if (strchr("&<>'\"", v->text[i]) && v->text[i]) return true;
    return false;
}

static pl_status join_strings(pl_chat_run *r, const pl_chat_value *a, const pl_chat_value *b, pl_chat_value *out)
{
    bool safe = a->form == PL_CHAT_SAFE || b->form == PL_CHAT_SAFE;
    if (a->form != b->form && needs_escapes(a->form == PL_CHAT_SAFE ? b : a))
        return pl_chat_fail(r, PL_E_UNSUPPORTED, "a string after the filter `safe` is added to one with %s",
                            "characters that HTML escapes");
    *out = *a;
    out->form = safe ? PL_CHAT_SAFE : PL_CHAT_PLAIN;
    return pl_chat_append(r, out, b->text, b->count);
}

static pl_status join_lists(pl_chat_run *r, const pl_chat_value *a, const pl_chat_value *b, pl_chat_value *out)
{
    pl_chat_value *item;
    uint64_t count = (uint64_t)a->count + b->count;
    PL_TRY(pl_chat_take_values(r, count, &item));
    if (a->count) memcpy(item, a->item, a->count * sizeof *item);
    if (b->count) memcpy(item + a->count, b->item, b->count * sizeof *item);
    *out = pl_chat_list(item, count);
    out->form = a->form;
    return PL_OK;
}

static pl_status repeat(pl_chat_run *r, const pl_chat_value *v, int64_t times, pl_chat_value *out)
{
    pl_chat_value whole_list = *v;
    whole_list.count = 0;
    if (v->kind == PL_CHAT_STRING) *out = whole_list, out->text = "";
    if (v->kind == PL_CHAT_LIST) *out = whole_list;
    if (v->count == 0) return PL_OK;
    for (int64_t i = 0; i < times; i++) {
        whole_list = *out;
        PL_TRY(pl_chat_step(r, 1));
        if (v->kind == PL_CHAT_STRING)
            PL_TRY(pl_chat_append(r, out, v->text, v->count));
        else
            PL_TRY(join_lists(r, &whole_list, v, out));
    }
    return PL_OK;
}

static bool is_sequence(const pl_chat_value *v)
{
    return v->kind == PL_CHAT_STRING || (v->kind == PL_CHAT_LIST && v->form <= PL_CHAT_TUPLE);
}

static pl_status join_texts(pl_chat_run *r, const pl_chat_value *a, const pl_chat_value *b, pl_chat_value *out)
{
    PL_TRY(pl_chat_text_of(r, a, out));
    out->form = PL_CHAT_PLAIN;
    return pl_chat_append_value(r, out, b);
}

pl_status pl_chat_operate(pl_chat_run *r, pl_chat_operator op, const pl_chat_value *a, const pl_chat_value *b,
                          pl_chat_value *out)
{
    int64_t times;
    if (op == PL_CHAT_JOIN) return join_texts(r, a, b, out);
    if (op == PL_CHAT_POW) return pl_chat_fail(r, PL_E_UNSUPPORTED, "the operator \"**\" is not supported");
    if (pl_chat_is_number(a) && pl_chat_is_number(b)) return operate_numbers(r, op, a, b, out);
    if (op == PL_CHAT_ADD && a->kind == PL_CHAT_STRING && b->kind == PL_CHAT_STRING) return join_strings(r, a, b, out);
    if (op == PL_CHAT_ADD && a->kind == PL_CHAT_LIST && is_sequence(a) && is_sequence(b) && a->kind == b->kind &&
        a->form == b->form)
        return join_lists(r, a, b, out);
    if (op == PL_CHAT_MUL && is_sequence(a) && pl_chat_is_whole(b, &times)) return repeat(r, a, times, out);
    if (op == PL_CHAT_MUL && is_sequence(b) && pl_chat_is_whole(a, &times)) return repeat(r, b, times, out);
    if (op == PL_CHAT_MOD && a->kind == PL_CHAT_STRING)
        return pl_chat_fail(r, PL_E_UNSUPPORTED, "the operator \"%%\" on a string is not supported");
    const pl_chat_value *wrong = a->kind == PL_CHAT_UNDEFINED || b->kind != PL_CHAT_UNDEFINED ? a : b;
    if (wrong == a && (a->kind == PL_CHAT_STRING || pl_chat_is_number(a))) wrong = b;
    return pl_chat_fail_kind(r, "arithmetic", wrong);
}

pl_status pl_chat_negate(pl_chat_run *r, const pl_chat_value *v, bool minus, pl_chat_value *out)
{
    int64_t whole;
    if (v->kind == PL_CHAT_REAL) return give_real(minus ? -v->real : v->real, out);
    if (!pl_chat_is_whole(v, &whole)) return pl_chat_fail_kind(r, "a sign", v);
    return operate_whole(r, minus ? PL_CHAT_SUB : PL_CHAT_ADD, 0, whole, out);
}
