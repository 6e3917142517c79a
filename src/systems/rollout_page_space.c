/* Where the operators lie in the parameter space: numbers two by two as points, each number as counts, choices as
 * shares next to the shares that they should have. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/locale.h"
#include "base/units.h"
#include "systems/rollout_page.h"

enum { BINS = 12, POINTS_MAX = 1000, NUMBERS_MAX = 6, WHOLE_MAX = 16, NOT_DONE = PL_POLICY_COUNT, TEXT = 160 };

typedef struct space {
    const pl_rollout_page *p;
    uint32_t number[PL_SPACE_DIMENSIONS], numbers; /* dimensions that have more than one value */
    uint32_t choice[PL_SPACE_DIMENSIONS], choices;
} space;

static const pl_dimension *dimension_of(const space *s, uint32_t k) { return &s->p->d->space.dimension[k]; }

static bool is_choice(const pl_dimension *d)
{
    return d->type == PL_DIMENSION_CHOICE || d->type == PL_DIMENSION_BOOLEAN;
}

static void find_dimensions(space *s)
{
    for (uint32_t k = 0; k < s->p->d->space.dimensions; k++) {
        const pl_dimension *d = dimension_of(s, k);
        if (!pl_rollout_page_varies(d)) continue;
        if (is_choice(d))
            s->choice[s->choices++] = k;
        else
            s->number[s->numbers++] = k;
    }
}

static float parameter(const space *s, uint32_t dimension, uint64_t place)
{
    return s->p->d->parameters[place * s->p->d->space.dimensions + dimension];
}

/* Where a number lies between its bounds, from 0 to 1; a whole number in the middle of its own stretch. */
static double share_of(const pl_dimension *d, double value)
{
    if (d->log_scale) return log(value / d->low) / log(d->high / d->low);
    if (d->type == PL_DIMENSION_INTEGER) return (value - d->low + 0.5) / (d->high - d->low + 1);
    return (value - d->low) / (d->high - d->low);
}

static int say_bounds(const pl_dimension *d, char text[TEXT])
{
    return pl_print(text, TEXT, "%s %g to %g%s", d->name, d->low, d->high, d->log_scale ? ", logarithmic" : "");
}

/* ---- counts ---- */

static void draw_counts(const space *s, uint32_t k, pl_str *out)
{
    const pl_dimension *d = dimension_of(s, k);
    const bool by_value = d->type == PL_DIMENSION_INTEGER && d->high - d->low < WHOLE_MAX;
    uint64_t count[WHOLE_MAX] = {0};
    char name[TEXT], caption[TEXT];
    pl_chart_counts c = {.name = name, .caption = caption, .count = count, .low = d->low, .high = d->high};
    c.bins = by_value ? (unsigned)(d->high - d->low) + 1 : BINS;
    c.even = (double)s->p->operators / c.bins;
    for (uint32_t i = 0; i < s->p->operators; i++) {
        const unsigned bin = (unsigned)(fmin(fmax(share_of(d, parameter(s, k, i)), 0), 1) * c.bins);
        count[bin < c.bins ? bin : c.bins - 1]++;
    }
    snprintf(name, sizeof name, "%s, counted", d->name);
    (void)say_bounds(d, caption);
    pl_chart_draw_counts(&c, out);
}

static void add_counts(const space *s, uint32_t shown, pl_doc *d)
{
    pl_doc_section_drawn(d, "Numbers");
    pl_str *out = pl_doc_paragraph(d, 0);
    pl_str_append(out, "How many operators are where; dashed: the same everywhere.");
    if (s->numbers > shown) pl_str_printf(out, " The first %" PRIu32 " of %" PRIu32 " dimensions.", shown, s->numbers);
    pl_doc_paragraph_end(d);
    out = pl_doc_drawing(d);
    pl_chart_panels_begin(out);
    for (uint32_t i = 0; i < shown; i++) draw_counts(s, s->number[i], out);
    pl_chart_panels_end(out);
    pl_doc_drawing_end(d);
    pl_doc_section_end(d);
}

/* ---- points ---- */

static unsigned set_of(const space *s, uint64_t place) { return s->p->done[place] ? s->p->policy[place] : NOT_DONE; }

typedef struct pair {
    const space *s;
    uint32_t x, y;
} pair;

static pl_chart_point point_of(const void *of, uint64_t i)
{
    const pair *p = of;
    return (pl_chart_point){share_of(dimension_of(p->s, p->x), parameter(p->s, p->x, i)),
                            share_of(dimension_of(p->s, p->y), parameter(p->s, p->y, i)), set_of(p->s, i)};
}

static pl_chart_key key_of(unsigned set)
{
    return set == NOT_DONE ? (pl_chart_key){"todo", "not finished"} : pl_rollout_page_policy(set);
}

static void draw_pair(const space *s, uint32_t x, uint32_t y, pl_str *out)
{
    const pair of = {s, x, y};
    const char *class_name[NOT_DONE + 1];
    char name[TEXT], caption[2 * TEXT], right[TEXT], up[TEXT];
    for (unsigned k = 0; k <= NOT_DONE; k++) class_name[k] = key_of(k).class_name;
    snprintf(name, sizeof name, "%s and %s", dimension_of(s, x)->name, dimension_of(s, y)->name);
    (void)say_bounds(dimension_of(s, x), right);
    (void)say_bounds(dimension_of(s, y), up);
    snprintf(caption, sizeof caption, "→ %s\n↑ %s", right, up);
    pl_chart_draw_points(&(pl_chart_points){.name = name,
                                            .title = "",
                                            .caption = caption,
                                            .at = point_of,
                                            .of = &of,
                                            .count = s->p->operators < POINTS_MAX ? s->p->operators : POINTS_MAX,
                                            .every = 1,
                                            .class_name = class_name,
                                            .sets = NOT_DONE + 1},
                         out);
}

/* With how many operators there are of each, also of those whose points are not drawn. */
static void draw_legend(const space *s, pl_str *out)
{
    uint64_t count[NOT_DONE + 1] = {0};
    pl_chart_key key[NOT_DONE + 1];
    char name[NOT_DONE + 1][TEXT], text[32];
    size_t keys = 0;
    for (uint32_t i = 0; i < s->p->operators; i++) count[set_of(s, i)]++;
    for (unsigned k = 0; k <= NOT_DONE; k++) {
        if (!count[k]) continue;
        snprintf(name[k], TEXT, "%s, %s", key_of(k).name, pl_format_count(count[k], text, sizeof text));
        key[keys++] = (pl_chart_key){key_of(k).class_name, name[k]};
    }
    pl_chart_legend(key, keys, out);
}

static void add_pairs(const space *s, uint32_t shown, pl_doc *d)
{
    pl_doc_section_drawn(d, "Two by two");
    if (s->p->operators > POINTS_MAX)
        pl_doc_say(d, 0, "A point is an operator, of the first %d.", POINTS_MAX);
    else
        pl_doc_say(d, 0, "A point is an operator.");
    pl_str *out = pl_doc_drawing(d);
    pl_chart_panels_begin(out);
    for (uint32_t i = 0; i < shown; i++)
        for (uint32_t k = i + 1; k < shown; k++) draw_pair(s, s->number[i], s->number[k], out);
    pl_chart_panels_end(out);
    draw_legend(s, out);
    pl_doc_drawing_end(d);
    pl_doc_section_end(d);
}

/* ---- choices ---- */

static double weight_of(const pl_dimension *d, uint32_t i)
{
    double sum = 0;
    if (d->type == PL_DIMENSION_BOOLEAN) return 0.5;
    for (uint32_t k = 0; k < d->choices; k++) sum += d->weight[k];
    return sum > 0 ? d->weight[i] / sum : 1.0 / d->choices;
}

static void add_choice(const space *s, uint32_t k, uint32_t i, pl_doc *doc)
{
    static const char *const truth[] = {"false", "true"};
    const pl_dimension *d = dimension_of(s, k);
    const bool is_truth = d->type == PL_DIMENSION_BOOLEAN;
    const double value = is_truth ? i : d->choice[i];
    const char *word = is_truth ? truth[i] : pl_rollout_page_word(s->p, k, i);
    uint32_t count = 0;
    char number[32];
    for (uint32_t n = 0; n < s->p->operators; n++) count += parameter(s, k, n) == (float)value;
    const double share = s->p->operators ? (double)count / s->p->operators : 0;
    pl_print(number, sizeof number, "%g", value);
    pl_doc_row(doc, 0);
    pl_doc_words(doc, "%s %s", d->name, word ? word : number);
    pl_doc_bar(doc, "staging", share);
    pl_doc_bar_end(doc);
    pl_doc_count(doc, count);
    pl_doc_real(doc, share);
    pl_doc_real(doc, weight_of(d, i));
    pl_doc_row_end(doc);
}

static void add_choices(const space *s, pl_doc *doc)
{
    static const pl_doc_column columns[] = {{NULL, ""},
                                            {NULL, "", PL_DOC_BAR},
                                            {NULL, "operators", PL_DOC_COUNT},
                                            {NULL, "share", PL_DOC_PERCENT, 1},
                                            {NULL, "weight", PL_DOC_PERCENT, 1}};
    pl_doc_section(doc, "Choices");
    pl_doc_table(doc, NULL, columns, sizeof columns / sizeof *columns);
    for (uint32_t n = 0; n < s->choices; n++) {
        const pl_dimension *d = dimension_of(s, s->choice[n]);
        const uint32_t choices = d->type == PL_DIMENSION_BOOLEAN ? 2 : d->choices;
        for (uint32_t i = 0; i < choices; i++) add_choice(s, s->choice[n], i, doc);
    }
    pl_doc_table_end(doc);
    pl_doc_section_end(doc);
}

/* ---- all of it ---- */

/* Of the whole sequence, as the config's limits have it; one point is never even. */
static pl_status say_quality(const pl_rollout_page *p, pl_error *err)
{
    const uint32_t points = p->d->setup.operators;
    pl_quality q;
    char text[32];
    if (points < 2) return PL_OK;
    void *scratch = pl_alloc(1, pl_quality_bytes(p->d->space.dimensions, points));
    if (!scratch) return pl_fail(err, PL_E_NOMEM, "no memory to measure how even the points are");
    pl_quality_measure(&p->d->space.sobol, points, scratch, &q);
    pl_free(scratch);
    if (isfinite(q.discrepancy))
        pl_doc_say(p->doc, 0,
                   "Of the %s points of the whole job: centred discrepancy CD² %.3g (0 would be even), largest "
                   "correlation of two dimensions %.3g.",
                   pl_format_count(points, text, sizeof text), q.discrepancy, q.correlation);
    return PL_OK;
}

pl_status pl_rollout_page_coverage(const pl_rollout_page *p, pl_error *err)
{
    space s = {.p = p};
    find_dimensions(&s);
    const uint32_t shown = s.numbers < NUMBERS_MAX ? s.numbers : NUMBERS_MAX;
    pl_doc_section(p->doc, "Coverage of the parameter space");
    pl_doc_say(p->doc, 0, "%s",
               s.numbers + s.choices ? "The dimensions that have more than one value."
                                     : "Every dimension of the space has one value: there is one kind of operator.");
    PL_TRY(say_quality(p, err));
    if (shown) add_counts(&s, shown, p->doc);
    if (shown > 1) add_pairs(&s, shown, p->doc);
    if (s.choices) add_choices(&s, p->doc);
    pl_doc_section_end(p->doc);
    return PL_OK;
}
