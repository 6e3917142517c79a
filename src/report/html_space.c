/* How the operators lie in the parameter space: numbers two by two as points, each number as a histogram, choices as
 * bars of how many there are beside how many there should be. A panel each, in a grid that goes from two columns to
 * many, with its words below it: so they are read on a telephone as well. */
#include <inttypes.h>
#include <math.h>

#include "base/locale.h"
#include "base/units.h"
#include "report/html_rollout.h"

enum { PANEL = 200, EDGE = 6, BINS = 12, POINTS_MAX = 1000, NUMBERS_MAX = 6, WHOLE_MAX = 16, ENDS = 96 };

static float parameter(const pl_html_space *s, size_t dimension, uint32_t operator)
{
    return s->parameters[(size_t) operator* s->columns + s->dimension[dimension].column];
}

/* Where a number lies between its bounds, from 0 to 1; a whole number in the middle of its own stretch. */
static double place(const pl_html_dimension *d, double value)
{
    if (d->log_scale) return log(value / d->low) / log(d->high / d->low);
    if (d->is_whole) return (value - d->low + 0.5) / (d->high - d->low + 1);
    return (value - d->low) / (d->high - d->low);
}

static double at(double share) { return EDGE + fmin(fmax(share, 0), 1) * (PANEL - 2 * EDGE); }

static void put_bounds(const pl_html_dimension *d, pl_str *out)
{
    pl_html_text(out, d->name);
    pl_str_printf(out, " %g to %g%s", d->low, d->high, d->log_scale ? ", logarithmic" : "");
}

static void begin_panel(const char *class, const pl_html_dimension *d, const pl_html_dimension *with, pl_str *out)
{
    pl_str_printf(out, "<figure class='%s'><svg viewBox='0 0 %d %d' role='img' aria-label='", class, PANEL, PANEL);
    pl_html_text(out, d->name);
    pl_str_append(out, with ? " and " : ", counted");
    if (with) pl_html_text(out, with->name);
    pl_str_printf(out, "'><rect class='frame' x='1' y='1' width='%d' height='%d' rx='4'/>\n", PANEL - 2, PANEL - 2);
}

/* ---- points ---- */

enum { NOT_DONE = PL_POLICY_COUNT };

static void draw_points(const pl_html_space *s, size_t x, size_t y, unsigned kind, pl_str *out)
{
    const uint32_t shown = s->operators < POINTS_MAX ? s->operators : POINTS_MAX;
    bool begun = false;
    for (uint32_t i = 0; i < shown; i++) {
        if ((s->done[i] ? s->policy[i] : NOT_DONE) != kind) continue;
        if (!begun)
            pl_str_printf(out, "<path class='points %s' d='",
                          kind == NOT_DONE ? "free" : pl_html_policy_class((pl_update_policy)kind));
        begun = true;
        pl_str_printf(out, "M%.1f %.1fh0", at(place(&s->dimension[x], parameter(s, x, i))),
                      PANEL - at(place(&s->dimension[y], parameter(s, y, i))));
    }
    if (begun) pl_str_append(out, "'/>\n");
}

static void draw_pair(const pl_html_space *s, size_t x, size_t y, pl_str *out)
{
    begin_panel("pair", &s->dimension[x], &s->dimension[y], out);
    for (unsigned kind = NOT_DONE + 1; kind-- > 0;) draw_points(s, x, y, kind, out); /* what is done lies above */
    pl_str_append(out, "</svg><figcaption>→ ");
    put_bounds(&s->dimension[x], out);
    pl_str_append(out, "<br>↑ ");
    put_bounds(&s->dimension[y], out);
    pl_str_append(out, "</figcaption></figure>\n");
}

/* ---- counts ---- */

static unsigned bins_of(const pl_html_dimension *d)
{
    return d->is_whole && d->high - d->low < WHOLE_MAX ? (unsigned)(d->high - d->low) + 1 : BINS;
}

static void draw_histogram(const pl_html_space *s, size_t k, pl_str *out)
{
    const pl_html_dimension *d = &s->dimension[k];
    const unsigned bins = bins_of(d);
    uint32_t count[WHOLE_MAX] = {0}, most = 1;
    for (uint32_t i = 0; i < s->operators; i++) {
        double share = fmin(fmax(place(d, parameter(s, k, i)), 0), 1);
        unsigned bin = (unsigned)(share * bins);
        if (bin >= bins) bin = bins - 1;
        if (++count[bin] > most) most = count[bin];
    }
    const double width = (double)(PANEL - 2 * EDGE) / bins, even = (double)s->operators / bins / most;
    begin_panel("count", d, NULL, out);
    for (unsigned i = 0; i < bins; i++) {
        const double height = 0.9 * (PANEL - 2 * EDGE) * count[i] / most;
        pl_str_printf(
            out, "<rect class='share' x='%.1f' y='%.1f' width='%.1f' height='%.1f'><title>%" PRIu32 "</title></rect>\n",
            EDGE + i * width + 1, PANEL - EDGE - height, width - 2, height, count[i]);
    }
    pl_str_printf(out, "<path class='even' d='M%d %.1fH%d'/></svg><figcaption>", EDGE,
                  PANEL - EDGE - 0.9 * (PANEL - 2 * EDGE) * even, PANEL - EDGE);
    put_bounds(d, out);
    pl_str_append(out, "</figcaption></figure>\n");
}

static uint32_t count_choice(const pl_html_space *s, size_t k, uint32_t choice)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->operators; i++) count += parameter(s, k, i) == (float)s->dimension[k].choice[choice];
    return count;
}

static void put_choice(const pl_html_space *s, size_t k, uint32_t i, pl_str *out)
{
    const pl_html_dimension *d = &s->dimension[k];
    const uint32_t count = count_choice(s, k, i);
    const double share = s->operators ? (double)count / s->operators : 0;
    char text[32];
    pl_str_append(out, "<tr><td>");
    pl_html_text(out, d->name);
    pl_str_append(out, " ");
    pl_print(text, sizeof text, "%g", d->choice[i]);
    pl_html_text(out, d->word[i] ? d->word[i] : text);
    pl_str_printf(out,
                  "</td><td class='bar'><i class='staging' style='width:%.1f%%'></i></td><td class='n' "
                  "data-l='operators'>%s</td><td class='n' data-l='share'>%.1f %%</td><td class='n' "
                  "data-l='weight'>%.1f %%</td></tr>\n",
                  100 * share, pl_format_count(count, text, sizeof text), 100 * share, 100 * d->weight[i]);
}

/* ---- all of it ---- */

static size_t count_numbers(const pl_html_space *s)
{
    size_t numbers = 0;
    for (size_t k = 0; k < s->dimensions; k++) numbers += s->dimension[k].choices == 0;
    return numbers;
}

static void draw_numbers(const pl_html_space *s, pl_str *out)
{
    size_t number[NUMBERS_MAX], numbers = 0;
    for (size_t k = 0; k < s->dimensions && numbers < NUMBERS_MAX; k++)
        if (s->dimension[k].choices == 0) number[numbers++] = k;
    if (numbers == 0) return;
    pl_str_append(out, "<h3>Numbers</h3><p>How many operators are where; dashed: the same everywhere.");
    if (count_numbers(s) > numbers) pl_str_printf(out, " The first %zu of %zu dimensions.", numbers, count_numbers(s));
    pl_str_append(out, "</p><div class='pairs'>\n");
    for (size_t i = 0; i < numbers; i++) draw_histogram(s, number[i], out);
    pl_str_append(out, "</div>\n");
    if (numbers < 2) return;
    pl_str_append(out, "<h3>Two by two</h3><p>A point is an operator");
    if (s->operators > POINTS_MAX) pl_str_printf(out, ", of the first %d", POINTS_MAX);
    pl_str_append(out, ".</p><div class='pairs'>\n");
    for (size_t i = 0; i < numbers; i++)
        for (size_t k = i + 1; k < numbers; k++) draw_pair(s, number[i], number[k], out);
    pl_str_append(out, "</div>\n");
}

/* With how many operators there are of each, also of those whose points are not drawn. */
static void draw_legend(const pl_html_space *s, pl_str *out)
{
    uint64_t count[NOT_DONE + 1] = {0};
    char text[32];
    if (count_numbers(s) < 2) return;
    for (uint32_t i = 0; i < s->operators; i++) count[s->done[i] ? s->policy[i] : NOT_DONE]++;
    pl_str_append(out, "<div class='legend'>");
    for (unsigned kind = 0; kind <= NOT_DONE; kind++)
        if (count[kind])
            pl_str_printf(out, "<span><i class='%s'></i>%s, %s</span>",
                          kind == NOT_DONE ? "todo" : pl_html_policy_class((pl_update_policy)kind),
                          kind == NOT_DONE ? "not finished" : pl_html_policy_name((pl_update_policy)kind),
                          pl_format_count(count[kind], text, sizeof text));
    pl_str_append(out, "</div>\n");
}

static void put_choices(const pl_html_space *s, pl_str *out)
{
    if (count_numbers(s) == s->dimensions) return;
    pl_str_append(out, "<h3>Choices</h3>\n<table class='labels'><tr><th></th><th></th><th class='n'>operators</th><th "
                       "class='n'>share</th><th class='n'>weight</th></tr>\n");
    for (size_t k = 0; k < s->dimensions; k++)
        for (uint32_t i = 0; i < s->dimension[k].choices; i++) put_choice(s, k, i, out);
    pl_str_append(out, "</table>\n");
}

static void say_quality(const pl_html_space *s, pl_str *out)
{
    char text[32];
    if (!isfinite(s->discrepancy)) return;
    pl_str_printf(out,
                  "<p>Of the %s points of the whole job: centred discrepancy CD² %.3g (0 would be even), largest "
                  "correlation of two dimensions %.3g.</p>\n",
                  pl_format_count(s->points, text, sizeof text), s->discrepancy, s->correlation);
}

void pl_html_coverage(const pl_html_space *s, pl_str *out)
{
    pl_html_section("Coverage of the parameter space",
                    s->dimensions ? "The dimensions that have more than one value."
                                  : "Every dimension of the space has one value: there is one kind of operator.",
                    out);
    say_quality(s, out);
    draw_numbers(s, out);
    draw_legend(s, out);
    put_choices(s, out);
    pl_str_append(out, "</section>\n");
}
