/* The tests that are supported (`is defined`). */
#include "chat/render.h"

static pl_status give(bool truth, pl_chat_value *out)
{
    *out = pl_chat_bool(truth);
    return PL_OK;
}

#define KIND_TEST(name, condition)                                                                                     \
    static pl_status name(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out)                                  \
    {                                                                                                                  \
        (void)r;                                                                                                       \
        return give(condition, out);                                                                                   \
    }

KIND_TEST(defined, v->kind != PL_CHAT_UNDEFINED)
KIND_TEST(undefined, v->kind == PL_CHAT_UNDEFINED)
KIND_TEST(none, v->kind == PL_CHAT_NONE)
KIND_TEST(string, v->kind == PL_CHAT_STRING)
KIND_TEST(mapping, v->kind == PL_CHAT_MAP)
KIND_TEST(boolean, v->kind == PL_CHAT_BOOL)
KIND_TEST(is_true, v->kind == PL_CHAT_BOOL && v->truth)
KIND_TEST(is_false, v->kind == PL_CHAT_BOOL && !v->truth)
KIND_TEST(number, pl_chat_is_number(v))
KIND_TEST(sequence, v->kind == PL_CHAT_UNDEFINED || v->kind == PL_CHAT_STRING || v->kind == PL_CHAT_MAP ||
                        (v->kind == PL_CHAT_LIST && v->form != PL_CHAT_VIEW))
KIND_TEST(iterable, v->kind == PL_CHAT_UNDEFINED || v->kind == PL_CHAT_STRING || v->kind == PL_CHAT_MAP ||
                        v->kind == PL_CHAT_LIST || v->kind == PL_CHAT_GENERATOR || v->kind == PL_CHAT_LOOP)

static pl_status odd_is(pl_chat_run *r, const pl_chat_value *v, bool wanted, pl_chat_value *out)
{
    pl_chat_value rest, two = pl_chat_int(2), one = pl_chat_int(wanted);
    bool equal;
    if (!pl_chat_is_number(v)) return pl_chat_fail_kind(r, "whether it is odd or even", v);
    PL_TRY(pl_chat_operate(r, PL_CHAT_MOD, v, &two, &rest));
    PL_TRY(pl_chat_equal(r, &rest, &one, &equal));
    return give(equal, out);
}

static pl_status odd(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out) { return odd_is(r, v, true, out); }
static pl_status even(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out) { return odd_is(r, v, false, out); }

static pl_status equal(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out)
{
    bool is_equal;
    PL_TRY(pl_chat_equal(r, v, &v[1], &is_equal));
    return give(is_equal, out);
}

static pl_status unequal(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out)
{
    PL_TRY(equal(r, v, out));
    return give(!out->truth, out);
}

static pl_status is_in(pl_chat_run *r, const pl_chat_value *v, pl_chat_value *out)
{
    bool found;
    PL_TRY(pl_chat_contains(r, &v[1], v, &found));
    return give(found, out);
}

static const pl_chat_row rows[] = {
    {"defined", "", 0, defined},   {"undefined", "", 0, undefined}, {"none", "", 0, none},
    {"string", "", 0, string},     {"mapping", "", 0, mapping},     {"boolean", "", 0, boolean},
    {"true", "", 0, is_true},      {"false", "", 0, is_false},      {"number", "", 0, number},
    {"sequence", "", 0, sequence}, {"iterable", "", 0, iterable},   {"odd", "", 0, odd},
    {"even", "", 0, even},         {"equalto", "other", 1, equal},  {"eq", "other", 1, equal},
    {"==", "other", 1, equal},     {"ne", "other", 1, unequal},     {"!=", "other", 1, unequal},
    {"in", "sequence", 1, is_in},
};

const pl_chat_row *pl_chat_test(const pl_chat_value *name)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (pl_chat_says(name, rows[i].name)) return &rows[i];
    return NULL;
}
