/* The comparison as text: what each form costs, what comes of it, and the sentences where there is no number. */
#include "report/compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/locale.h"
#include "base/units.h"
#include "report/table.h"

/* ---- what all three forms show ---- */

double pl_compare_median(const pl_compare_run *r)
{
    double x[PL_COMPARE_TURNS];
    for (uint32_t i = 0; i < r->turns; i++) {
        uint32_t at = i;
        for (; at > 0 && x[at - 1] > r->seconds[i]; at--) x[at] = x[at - 1];
        x[at] = r->seconds[i];
    }
    return r->turns ? (x[(r->turns - 1) / 2] + x[r->turns / 2]) / 2 : 0;
}

double pl_compare_spread(const pl_compare_run *r)
{
    const double median = pl_compare_median(r);
    double most = 0;
    for (uint32_t i = 0; i < r->turns && median > 0; i++) most = fmax(most, fabs(r->seconds[i] - median) / median);
    return most;
}

double pl_compare_share(const pl_report_compare *c)
{
    const double of = c->is_binary ? c->binary_flops : c->possible_flops;
    return of < 0 || !(c->flops > 0) ? -1 : of / c->flops;
}

double pl_compare_limit(const pl_report_compare *c)
{
    const double share = pl_compare_share(c);
    return share > 0 && share < 1 ? 1 / (1 - share) : 1;
}

/* "2.43 MFLOP". */
static const char *show_flops(double flops, char text[32])
{
    static const char *const units[] = {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP"};
    size_t k = 0;
    for (; flops >= 999.5 && k + 1 < sizeof units / sizeof *units; k++) flops /= 1000;
    pl_print(text, 32, "%.3g %s", flops, units[k]);
    return text;
}

void pl_compare_say_share(const pl_report_compare *c, pl_str *out)
{
    const double share = pl_compare_share(c), limit = pl_compare_limit(c);
    char flops[32];
    show_flops(c->flops, flops);
    if (share < 0)
        pl_str_printf(out,
                      "No layers of arch %s can be of signs (model.binary): nothing of the %s of a %s "
                      "would be faster by that.",
                      c->arch, flops, c->sample);
    else
        pl_str_printf(out,
                      "Of the %s of a %s %.1f %% %s products of signs, by the graph. The rest stays as it is, "
                      "so the whole is at most %.2f times as fast, were signs free (Amdahl), and %.2f times with "
                      "signs 8 times as fast.",
                      flops, c->sample, 100 * share,
                      c->is_binary ? "are" : "could be (model.binary: blocks, from a training of its own)", limit,
                      1 / (1 - share + share / 8));
}

static double most_spread(const pl_report_compare *c)
{
    double most = 0;
    for (int i = 0; i < PL_COMPARE_ROWS; i++)
        for (int b = 0; b < PL_COMPARE_BATCHES; b++) most = fmax(most, pl_compare_spread(&c->row[i].runs[b]));
    return most;
}

static bool has_run(const pl_report_compare *c)
{
    for (int i = 0; i < PL_COMPARE_ROWS; i++)
        for (int b = 0; b < PL_COMPARE_BATCHES; b++)
            if (c->row[i].runs[b].turns) return true;
    return false;
}

static void say_times(const pl_report_compare *c, pl_str *out)
{
    if (c->turns > 1)
        pl_str_printf(out,
                      "Times are medians of %u turns, each a process of its own that was planned alone; within one "
                      "form turns differ from their median by at most %.0f %%. ",
                      c->turns, 100 * most_spread(c));
    else
        pl_str_append(out, "Times are of one process each; more --turns would tell how much they vary. ");
    pl_str_append(out,
                  "At 1: the median of the items, one by one. At more: the time of the batches by the number of items. "
                  "Memory is what was resident in the process at its end, measured, which was what its plan said: else "
                  "there would be a sentence.");
}

void pl_compare_say_how(const pl_report_compare *c, pl_str *out)
{
    pl_str_printf(out, "Input: %s. ", c->inputs);
    if (has_run(c))
        say_times(c, out);
    else
        pl_str_append(out, "No form could be run: there is neither a time nor memory.");
}

static bool row_has_run(const pl_compare_row *r) { return r->runs[0].turns || r->runs[1].turns; }

const char *pl_compare_not_judged(const pl_report_compare *c)
{
    const char *same = NULL;
    for (int i = 0; i < PL_COMPARE_ROWS; i++) {
        const pl_compare_row *r = &c->row[i];
        if (!row_has_run(r)) continue;
        if (r->metrics || (same && strcmp(same, r->not_judged) != 0)) return NULL;
        same = r->not_judged;
    }
    return same && same[0] ? same : NULL;
}

/* ---- lines of the second table ---- */

static const pl_compare_metric *metric_of(const pl_compare_row *r, const char *name)
{
    for (size_t i = 0; i < r->metrics; i++)
        if (strcmp(r->metric[i].name, name) == 0) return &r->metric[i];
    return NULL;
}

static const pl_compare_output *output_of(const pl_compare_row *r, const char *name)
{
    for (size_t i = 0; i < r->outputs; i++)
        if (strcmp(r->output[i].name, name) == 0) return &r->output[i];
    return NULL;
}

static void words_of(const char *name, const char *behind, pl_compare_line *l)
{
    snprintf(l->words, sizeof l->words, "%s%s", name, behind);
    for (char *at = l->words; *at; at++)
        if (*at == '_') *at = ' ';
}

static void take_metric(const pl_report_compare *c, const char *name, pl_compare_line *l)
{
    words_of(name, "", l);
    l->digits = 5;
    for (int i = 0; i < PL_COMPARE_ROWS; i++) {
        const pl_compare_metric *m = metric_of(&c->row[i], name);
        l->known[i] = m && isfinite(m->value);
        if (m) l->value[i] = m->value;
    }
}

enum { DIFFERENCE, MEAN, LEAST, OF_OUTPUT };

static void take_output(const pl_report_compare *c, const char *name, int which, pl_compare_line *l)
{
    static const char *const behind[] = {": difference", ": mean cosine", ": least cosine"};
    words_of(name, behind[which], l);
    l->digits = which == DIFFERENCE ? 2 : 6;
    for (int i = 0; i < PL_COMPARE_ROWS; i++) {
        const pl_compare_output *o = output_of(&c->row[i], name);
        if (!o) continue;
        l->value[i] = which == DIFFERENCE ? o->difference : which == MEAN ? o->mean_cosine : o->least_cosine;
        l->known[i] = isfinite(l->value[i]);
    }
}

/* The first row that has any tells which there are: all are of one model. */
static const pl_compare_row *first_with(const pl_report_compare *c, bool outputs)
{
    for (int i = 0; i < PL_COMPARE_ROWS; i++)
        if (outputs ? c->row[i].outputs : c->row[i].metrics) return &c->row[i];
    return &c->row[0];
}

bool pl_compare_find_line(const pl_report_compare *c, size_t k, pl_compare_line *l)
{
    const pl_compare_row *judged = first_with(c, false), *given = first_with(c, true);
    *l = (pl_compare_line){.digits = 0};
    if (k < judged->metrics) return take_metric(c, judged->metric[k].name, l), true;
    k -= judged->metrics;
    for (size_t i = 0; i < given->outputs; i++)
        for (int which = 0; which < OF_OUTPUT; which++) {
            if (which != DIFFERENCE && !given->output[i].has_cosine) continue;
            if (k-- == 0) return take_output(c, given->output[i].name, which, l), true;
        }
    return false;
}

/* ---- text ---- */

static void cell_seconds(pl_table *t, const pl_compare_run *r)
{
    char text[32];
    pl_table_cell(t, "%s", r->turns ? pl_format_seconds(pl_compare_median(r), text, sizeof text) : "-");
}

static void cell_bytes(pl_table *t, uint64_t bytes)
{
    char text[32];
    pl_table_cell(t, "%s", bytes ? pl_format_bytes(bytes, text, sizeof text) : "-");
}

uint64_t pl_compare_batch(const pl_report_compare *c, int b)
{
    for (int i = 0; i < PL_COMPARE_ROWS; i++)
        if (c->row[i].runs[b].turns) return c->row[i].runs[b].batch;
    return c->row[0].runs[b].batch;
}

static void put_costs_head(const pl_report_compare *c, pl_table *t)
{
    const uint64_t batch = pl_compare_batch(c, 1);
    static const char *const groups[] = {"", "a sample", "", "file", "memory", ""};
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) pl_table_cell(t, "%s", groups[i]);
    pl_table_end_row(t);
    pl_table_cell(t, "%s", "");
    pl_table_cell(t, "at 1");
    pl_table_cell(t, "at %" PRIu64, batch);
    pl_table_cell(t, "bytes");
    pl_table_cell(t, "at 1");
    pl_table_cell(t, "at %" PRIu64, batch);
    pl_table_end_row(t);
}

static void put_costs(const pl_report_compare *c, pl_str *out)
{
    for (pl_table t = pl_table_begin(out, "lrrrrr"); pl_table_pass(&t);) {
        put_costs_head(c, &t);
        for (int i = 0; i < PL_COMPARE_ROWS; i++) {
            const pl_compare_row *r = &c->row[i];
            pl_table_cell(&t, "%s", r->name);
            for (int b = 0; b < PL_COMPARE_BATCHES; b++) cell_seconds(&t, &r->runs[b]);
            cell_bytes(&t, r->file_bytes);
            for (int b = 0; b < PL_COMPARE_BATCHES; b++) cell_bytes(&t, r->runs[b].measured_bytes);
            pl_table_end_row(&t);
        }
    }
}

static void put_lines(const pl_report_compare *c, pl_str *out)
{
    char number[32];
    pl_compare_line l;
    if (!pl_compare_find_line(c, 0, &l)) return;
    pl_str_append(out, "\n");
    for (pl_table t = pl_table_begin(out, "lrrrr"); pl_table_pass(&t);) {
        pl_table_cell(&t, "%s", "");
        for (int i = 0; i < PL_COMPARE_ROWS; i++) pl_table_cell(&t, "%s", c->row[i].name);
        pl_table_end_row(&t);
        for (size_t k = 0; pl_compare_find_line(c, k, &l); k++) {
            pl_table_cell(&t, "%s", l.words);
            for (int i = 0; i < PL_COMPARE_ROWS; i++) {
                if (l.known[i]) pl_print(number, sizeof number, "%.*g", l.digits, l.value[i]);
                pl_table_cell(&t, "%s", l.known[i] ? number : "-");
            }
            pl_table_end_row(&t);
        }
    }
}

static void put_sentence(const char *name, const char *what, const char *sentence, unsigned columns, pl_str *out)
{
    enum { INDENT = 8 };
    if (!sentence[0]) return;
    pl_str_printf(out, "%s", name);
    pl_str_pad(out, ' ', strlen(name) < INDENT ? INDENT - strlen(name) : 1);
    pl_str text = {0};
    pl_str_printf(&text, "%s%s%s", what, sentence, pl_ends_with(sentence, ".") ? "" : ".");
    pl_str_wrap(out, pl_str_text(&text), text.bytes, INDENT, columns);
    pl_str_append(out, "\n");
    out->failed |= text.failed;
    pl_str_deinit(&text);
}

static void put_sentences(const pl_report_compare *c, unsigned columns, pl_str *out)
{
    char at[32];
    const char *not_judged = pl_compare_not_judged(c);
    pl_str_append(out, "\n");
    for (int i = 0; i < PL_COMPARE_ROWS; i++) {
        const pl_compare_row *r = &c->row[i];
        put_sentence(r->name, "", r->why, columns, out);
        put_sentence(r->name, "", r->remark, columns, out);
        for (int b = 0; b < PL_COMPARE_BATCHES; b++) {
            pl_print(at, sizeof at, "at %" PRIu64 ": ", r->runs[b].batch);
            put_sentence(r->name, at, r->runs[b].why, columns, out);
        }
        if (!not_judged) put_sentence(r->name, "not judged: ", r->not_judged, columns, out);
    }
    if (not_judged) put_sentence("all", "not judged: ", not_judged, columns, out);
}

static void put_paragraph(void (*say)(const pl_report_compare *, pl_str *), const pl_report_compare *c,
                          unsigned columns, pl_str *out)
{
    pl_str text = {0};
    say(c, &text);
    pl_str_append(out, "\n");
    pl_str_wrap(out, pl_str_text(&text), text.bytes, 0, columns);
    pl_str_append(out, "\n");
    out->failed |= text.failed;
    pl_str_deinit(&text);
}

void pl_report_compare_text(const pl_report_compare *c, unsigned columns, pl_str *out)
{
    put_costs(c, out);
    put_lines(c, out);
    put_sentences(c, columns, out);
    put_paragraph(pl_compare_say_share, c, columns, out);
    put_paragraph(pl_compare_say_how, c, columns, out);
}
