/* All of the work of a command whose items are of several shapes: how much it is, what it holds, how long it takes. */
#include "report/work.h"

#include <inttypes.h>
#include <math.h>

#include "base/locale.h"
#include "base/units.h"
#include "report/interval.h"

enum { SHAPES_SHOWN = 12 };

static const char *group_word(const pl_work *w) { return w->trains ? "training" : "shape"; }

/* "6 epochs of 100 steps" where they are whole. */
static void print_training(const pl_work *w, const pl_words *words, pl_str *out)
{
    char items[32], epochs[32];
    pl_str_printf(out, "%s %s%s", pl_format_count(w->items, items, sizeof items), words->step, pl_plural(w->items));
    if (w->count > 1) {
        pl_str_printf(out, " in %zu trainings, one after the other", w->count);
    } else if (w->epoch_steps) {
        pl_print(epochs, sizeof epochs, "%.4g", (double)w->items / (double)w->epoch_steps);
        pl_str_printf(out, ": %s epoch%s of %s", epochs, w->items == w->epoch_steps ? "" : "s",
                      pl_format_count(w->epoch_steps, items, sizeof items));
    }
    pl_str_printf(out, "; %" PRIu64 " evaluation%s, %" PRIu64 " checkpoint%s.", w->evaluations,
                  pl_plural(w->evaluations), w->checkpoints, pl_plural(w->checkpoints));
    if (w->patience)
        pl_str_printf(out, " It ends early if %" PRIu64 " evaluation%s in a row bring%s no better loss.", w->patience,
                      pl_plural(w->patience), w->patience == 1 ? "s" : "");
    pl_str_append(out, "\n");
}

static void print_training_time(const pl_work *w, pl_str *out)
{
    char one[32];
    pl_str_append(out, "Predicted: ");
    pl_report_say_interval(w->seconds, w->low, w->high, out);
    pl_str_printf(out, ", %s a step on average, including evaluations%s.",
                  pl_format_seconds(w->items ? w->seconds / (double)w->items : 0, one, sizeof one),
                  w->count == 1 ? " and checkpoints" : "");
    pl_report_say_basis(w->seconds, w->low, w->high, 0, w->busy, out);
    if (w->measured == 0)
        pl_str_append(out, " It is estimated in part: from kernels of other sizes, or from this machine's rates.");
    pl_str_append(out, "\n");
}

static void print_time(const pl_work *w, pl_str *out)
{
    char one[32];
    if (w->seconds < 0) {
        pl_str_append(out, "How long it takes is not known: its kernels were not measured.\n");
        return;
    }
    if (w->trains) {
        print_training_time(w, out);
        return;
    }
    pl_str_append(out, "Predicted: ");
    pl_report_say_interval(w->seconds, w->low, w->high, out);
    pl_str_printf(out, ", %s each as a mean; without what the disk is waited for.",
                  pl_format_seconds(w->seconds / (double)w->items, one, sizeof one));
    pl_report_say_basis(w->seconds, w->low, w->high, 0, w->busy, out);
    if (w->measured == w->count) {
        pl_str_append(out, " Every kernel was measured at its shape.\n");
        return;
    }
    if (w->measured == 0) {
        pl_str_append(out, " It is estimated: from kernels of other sizes, or from this machine's rates.\n");
        return;
    }
    pl_str_printf(out, " The kernels of %zu shape%s were measured; those of the others follow from them", w->measured,
                  pl_plural(w->measured));
    if (w->error >= 0) pl_str_printf(out, ", and are off by %.1f %% where that was tried", 100 * w->error);
    pl_str_append(out, ".\n");
}

/* How far one run comes within its limit of time. */
static void print_limit(const pl_work *w, const pl_words *words, pl_str *out)
{
    char limit[32], items[32], all[32];
    if (w->limit_seconds <= 0) return;
    pl_str_printf(out, "A run ends by itself after %s", pl_format_seconds(w->limit_seconds, limit, sizeof limit));
    if (w->left_seconds < 0) {
        pl_str_append(out, "; how far it comes is not known.\n");
    } else if (w->left_seconds <= w->limit_seconds) {
        pl_str_append(out, ", which is enough for all.\n");
    } else {
        /* The one at work is made, and one at least. */
        const uint64_t left = w->items - w->done;
        const double each = w->left_seconds / (double)left, made = floor(w->limit_seconds / each) + 1;
        pl_str_printf(out, ": after about %s of %s %ss%s; the same command goes on, %.0f runs in all.\n",
                      pl_format_count((uint64_t)made, items, sizeof items), pl_format_count(left, all, sizeof all),
                      words->step, w->done ? " that are left" : "", ceil((double)left / made));
    }
}

static void print_done(const pl_work *w, const pl_words *words, pl_str *out)
{
    char done[32], time[32];
    if (!w->done) return;
    pl_str_printf(out, "%s %s%s %s done already", pl_format_count(w->done, done, sizeof done), words->step,
                  pl_plural(w->done), w->done == 1 ? "is" : "are");
    if (w->left_seconds >= 0)
        pl_str_printf(out, "; the rest takes %s", pl_format_seconds(w->left_seconds, time, sizeof time));
    pl_str_append(out, ".\n");
}

static void print_sizes(const pl_work *w, const pl_words *words, pl_str *out)
{
    char items[32], most[32], least[32];
    uint64_t smallest = UINT64_MAX;
    if (w->trains) {
        print_training(w, words, out);
        return;
    }
    pl_str_printf(out, "%s %s%s", pl_format_count(w->items, items, sizeof items), words->step, pl_plural(w->items));
    if (w->count == 1) {
        pl_str_append(out, " of one shape.\n");
        return;
    }
    for (size_t i = 0; i < w->count; i++)
        if (w->group[i].charged_bytes < smallest) smallest = w->group[i].charged_bytes;
    pl_str_printf(out, " in %zu shapes, each with a plan of its own, one after the other. ", w->count);
    pl_str_printf(out, "Charged: from about %s to %s; this plan is of the largest, %s.\n",
                  pl_format_bytes(smallest, least, sizeof least),
                  pl_format_bytes(w->group[w->largest].charged_bytes, most, sizeof most), w->group[w->largest].text);
}

/* The one that takes longest (of those that nobody can tell, that is charged most) behind `after`; its own place
 * settles ties. SIZE_MAX: the first of all, and there is none left. */
static bool comes_before(const pl_work *w, size_t a, size_t b)
{
    const pl_work_group *p = &w->group[a], *q = &w->group[b];
    if (p->seconds != q->seconds) return p->seconds > q->seconds;
    if (p->charged_bytes != q->charged_bytes) return p->charged_bytes > q->charged_bytes;
    return a < b;
}

static size_t find_next(const pl_work *w, size_t after)
{
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < w->count; i++)
        if ((after == SIZE_MAX || comes_before(w, after, i)) && (best == SIZE_MAX || comes_before(w, i, best)))
            best = i;
    return best;
}

static bool is_estimated(const pl_work *w) { return w->seconds >= 0 && w->measured < w->count; }

/* ---- one row a group: people see those that take longest, programs all in their order ---- */

static void add_group(const pl_work *w, const pl_work_group *g, unsigned flags, pl_doc *d)
{
    const bool known = g->seconds >= 0;
    pl_doc_row(d, flags);
    if (g->text) pl_doc_key_words(d, group_word(w), g->text);
    pl_doc_count(d, g->items);
    pl_doc_count(d, g->charged_bytes);
    known ? pl_doc_real(d, g->seconds / (double)g->items) : pl_doc_unknown(d);
    known ? pl_doc_real(d, g->seconds) : pl_doc_unknown(d);
    pl_doc_key_real_if(d, known, "seconds_low", g->low);
    pl_doc_key_real_if(d, known, "seconds_high", g->high);
    pl_doc_key_bool(d, "measured", g->measured);
    pl_doc_words(d, "%s%s", g->text ? g->text : "", g->measured || !known ? "" : " *");
    pl_doc_row_end(d);
}

static void add_groups(const pl_work *w, const pl_words *words, pl_doc *d)
{
    const pl_doc_column columns[] = {{"items", words->step, PL_DOC_COUNT},
                                     {"charged_bytes", "charged, MB", PL_DOC_MEGABYTES},
                                     {NULL, "each", PL_DOC_SECONDS},
                                     {"seconds", "all", PL_DOC_SECONDS},
                                     {NULL, group_word(w)}};
    size_t shown = 0;
    pl_doc_table(d, w->trains ? "trainings" : "shapes", columns, sizeof columns / sizeof *columns);
    for (size_t i = find_next(w, SIZE_MAX); i != SIZE_MAX && shown < SHAPES_SHOWN && w->count > 1;
         i = find_next(w, i), shown++)
        add_group(w, &w->group[i], PL_DOC_SHOWN, d);
    for (size_t i = 0; i < w->count; i++) add_group(w, &w->group[i], PL_DOC_HIDDEN, d);
    pl_doc_table_end(d);
    if (w->count > SHAPES_SHOWN) pl_doc_say(d, 0, "and %zu %ss that take less", w->count - SHAPES_SHOWN, group_word(w));
    if (w->count > 1 && is_estimated(w))
        pl_doc_say(d, 0, "* times are estimated from kernels of other sizes, or from rates");
}

static void add_keys(const pl_work *w, pl_doc *d)
{
    const bool known = w->seconds >= 0;
    pl_doc_key_count(d, "items", w->items);
    if (w->said[0]) pl_doc_key_words(d, "of", w->said);
    pl_doc_key_real_if(d, known, "seconds", w->seconds);
    pl_doc_key_real_if(d, known, "seconds_low", w->low);
    pl_doc_key_real_if(d, known, "seconds_high", w->high);
    pl_doc_key_real_if(d, known, "busy", w->busy > 1 ? w->busy : 1);
    pl_doc_key_real_if(d, known && w->error >= 0, "estimates_off_by", w->error);
    pl_doc_key_real_if(d, w->limit_seconds > 0, "limit_seconds", w->limit_seconds);
    if (w->trains) {
        pl_doc_key_count(d, "epoch_steps", w->epoch_steps);
        pl_doc_key_count(d, "evaluations", w->evaluations);
        pl_doc_key_count(d, "checkpoints", w->checkpoints);
        pl_doc_key_count(d, "early_stopping_patience", w->patience);
    }
    pl_doc_key_count(d, "largest", w->largest);
}

void pl_report_add_work(const pl_work *w, const pl_words *words, pl_doc *d)
{
    pl_doc_object(d, "work");
    pl_doc_section(d, "All of the work");
    pl_str *out = pl_doc_paragraph(d, 0);
    if (w->said[0]) pl_str_printf(out, "%s.\n", w->said);
    print_sizes(w, words, out);
    print_time(w, out);
    print_done(w, words, out);
    print_limit(w, words, out);
    pl_doc_paragraph_end(d);
    add_keys(w, d);
    add_groups(w, words, d);
    pl_doc_section_end(d);
    pl_doc_object_end(d);
}
