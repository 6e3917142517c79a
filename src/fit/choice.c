/* The rows of axes.def that are about one choice: its keys, and what makes two of them the same. */
#include "fit/choice.h"

#include <string.h>

#include "plan/command.h"

#define PL_AXIS_KEY(turn, id, field, ...)                                                                              \
    static int64_t get_##field(const pl_choice *c) { return (int64_t)c->field; }                                       \
    static void put_##field(pl_choice *c, int64_t value) { c->field = value; }
#include "fit/axes.def"

#define WORDS(...)                                                                                                     \
    (const pl_choice_word[]) { __VA_ARGS__ }
const pl_choice_row pl_choice_rows[PL_CHOICE_KEYS] = {
#define PL_AXIS_KEY(turn, id, field, path, under, uses, numbers, ...)                                                  \
    [turn] = {path,        PL_CHOICE_##under,  uses,                                                                   \
              numbers,     WORDS(__VA_ARGS__), sizeof WORDS(__VA_ARGS__) / sizeof *WORDS(__VA_ARGS__),                 \
              get_##field, put_##field},
#include "fit/axes.def"
};

const char *pl_choice_say(const pl_choice *c, pl_choice_key key)
{
    const pl_choice_row *row = &pl_choice_rows[key];
    size_t i = 1;
    while (i + 1 < row->words && row->word[i].value != row->get(c)) i++;
    return row->word[i].text;
}

static bool same_number(int64_t a, int64_t b) { return a == b; }

/* Two frontiers often propose the same. */
static bool same_decision(const pl_recompute_decision *a, const pl_recompute_decision *b)
{
    if (a == b) return true;
    return a && b && a->count == b->count && memcmp(a->again, b->again, a->count * sizeof *a->again) == 0;
}

#define SAME(a, b) _Generic((a), const pl_recompute_decision * : same_decision, default : same_number)(a, b)
#define BOTH(a, b) (!(a) == !(b))
#define ANY(a, b)  true

bool pl_choice_equal(const pl_choice *a, const pl_choice *b)
{
    return true
#define PL_AXIS_FIELD(by, type, name, form, kernels) &&SAME(a->name, b->name)
#include "fit/axes.def"
        ;
}

bool pl_choice_same_form(const pl_choice *a, const pl_choice *b)
{
    return true
#define PL_AXIS_FIELD(by, type, name, form, kernels) &&form(a->name, b->name)
#include "fit/axes.def"
        ;
}

bool pl_choice_same_kernels(const pl_choice *a, const pl_choice *b)
{
    return true
#define PL_AXIS_FIELD(by, type, name, form, kernels) &&kernels(a->name, b->name)
#include "fit/axes.def"
        ;
}
