/* The comparison as a document: what each form costs, what comes of it, and the sentences where there is no number. */
#include "report/compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/locale.h"
#include "base/units.h"

/* ---- numbers ---- */

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

static void say_share(const pl_report_compare *c, pl_str *out)
{
    const double share = pl_compare_share(c), limit = pl_compare_limit(c);
    char flops[32];
    pl_format_operations(c->flops, flops, sizeof flops);
    pl_str_printf(out,
                  "Of the %s FLOP of a %s %.1f %% %s products of signs, by the graph. The rest stays as it is, "
                  "so the whole is at most %.2f times as fast, were signs free (Amdahl), and %.2f times with "
                  "signs 8 times as fast.",
                  flops, c->sample, 100 * share,
                  c->is_binary ? "are" : "could be (model.binary: blocks, from a training of its own)", limit,
                  1 / (1 - share + share / 8));
}

static double most_spread(const pl_report_compare *c)
{
    double most = 0;
    for (int i = 0; i < c->rows; i++)
        for (int b = 0; b < PL_COMPARE_BATCHES; b++) most = fmax(most, pl_compare_spread(&c->row[i].runs[b]));
    return most;
}

static bool has_run(const pl_report_compare *c)
{
    for (int i = 0; i < c->rows; i++)
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

static void say_how(const pl_report_compare *c, pl_str *out)
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
    for (int i = 0; i < c->rows; i++) {
        const pl_compare_row *r = &c->row[i];
        if (!row_has_run(r)) continue;
        if (r->metrics || (same && strcmp(same, r->not_judged) != 0)) return NULL;
        same = r->not_judged;
    }
    return same && same[0] ? same : NULL;
}

/* ---- lines of the second table ---- */

/* One number for each form that has it. */
typedef struct line {
    char words[2 * PL_COMPARE_NAME]; /* "capsules: mean cosine" */
    bool known[PL_COMPARE_ROWS_MAX];
    double value[PL_COMPARE_ROWS_MAX];
    int digits; /* that are shown */
} line;

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

static void words_of(const char *name, const char *behind, line *l)
{
    snprintf(l->words, sizeof l->words, "%s%s", name, behind);
    for (char *at = l->words; *at; at++)
        if (*at == '_') *at = ' ';
}

static void take_metric(const pl_report_compare *c, const char *name, line *l)
{
    words_of(name, "", l);
    l->digits = 5;
    for (int i = 0; i < c->rows; i++) {
        const pl_compare_metric *m = metric_of(&c->row[i], name);
        l->known[i] = m && isfinite(m->value);
        if (m) l->value[i] = m->value;
    }
}

enum { DIFFERENCE, MEAN, LEAST, OF_OUTPUT };

static void take_output(const pl_report_compare *c, const char *name, int which, line *l)
{
    static const char *const behind[] = {": difference", ": mean cosine", ": least cosine"};
    words_of(name, behind[which], l);
    l->digits = which == DIFFERENCE ? 2 : 6;
    for (int i = 0; i < c->rows; i++) {
        const pl_compare_output *o = output_of(&c->row[i], name);
        if (!o) continue;
        l->value[i] = which == DIFFERENCE ? o->difference : which == MEAN ? o->mean_cosine : o->least_cosine;
        l->known[i] = isfinite(l->value[i]);
    }
}

/* The first row that has any tells which there are: all are of one model. */
static const pl_compare_row *first_with(const pl_report_compare *c, bool outputs)
{
    for (int i = 0; i < c->rows; i++)
        if (outputs ? c->row[i].outputs : c->row[i].metrics) return &c->row[i];
    return &c->row[0];
}

/* Line k; false: there are no more. */
static bool find_line(const pl_report_compare *c, size_t k, line *l)
{
    const pl_compare_row *judged = first_with(c, false), *given = first_with(c, true);
    *l = (line){.digits = 0};
    if (k < judged->metrics) return take_metric(c, judged->metric[k].name, l), true;
    k -= judged->metrics;
    for (size_t i = 0; i < given->outputs; i++)
        for (int which = 0; which < OF_OUTPUT; which++) {
            if (which != DIFFERENCE && !given->output[i].has_cosine) continue;
            if (k-- == 0) return take_output(c, given->output[i].name, which, l), true;
        }
    return false;
}

/* ---- what it takes: a row for each form ---- */

/* At once, of the rows that ran: all ran the same items. */
static uint64_t batch_of(const pl_report_compare *c, int b)
{
    for (int i = 0; i < c->rows; i++)
        if (c->row[i].runs[b].turns) return c->row[i].runs[b].batch;
    return c->row[0].runs[b].batch;
}

static void add_sentence(pl_doc *d, const char *key, const char *sentence)
{
    pl_doc_key_words(d, key, sentence[0] ? sentence : NULL);
}

static void add_run(const pl_compare_run *r, pl_doc *d)
{
    const bool ran = r->turns > 0;
    pl_doc_object(d, NULL);
    pl_doc_key_count(d, "batch", r->batch);
    pl_doc_key_count_if(d, ran, "items", r->items);
    pl_doc_key_real_if(d, ran, "seconds", pl_compare_median(r));
    pl_doc_array(d, "turns");
    for (uint32_t i = 0; i < r->turns; i++) pl_doc_key_real(d, "", r->seconds[i]);
    pl_doc_array_end(d);
    pl_doc_key_count_if(d, ran, "planned_bytes", r->planned_bytes);
    pl_doc_key_count_if(d, ran, "measured_bytes", r->measured_bytes);
    add_sentence(d, "why_not", r->why);
    pl_doc_object_end(d);
}

static void add_metrics(const pl_compare_row *r, pl_doc *d)
{
    if (r->metrics) {
        pl_doc_object(d, "held_out");
        for (size_t i = 0; i < r->metrics; i++) pl_doc_key_real(d, r->metric[i].name, r->metric[i].value);
        pl_doc_object_end(d);
    } else {
        pl_doc_key_null(d, "held_out");
    }
    add_sentence(d, "not_judged", r->not_judged);
}

static void add_outputs(const pl_compare_row *r, pl_doc *d)
{
    pl_doc_array(d, "outputs");
    for (size_t i = 0; i < r->outputs; i++) {
        const pl_compare_output *o = &r->output[i];
        pl_doc_object(d, NULL);
        pl_doc_key_words(d, "name", o->name);
        pl_doc_key_real_if(d, isfinite(o->difference), "difference", o->difference);
        pl_doc_key_real_if(d, o->has_cosine, "mean_cosine", o->mean_cosine);
        pl_doc_key_real_if(d, o->has_cosine, "least_cosine", o->least_cosine);
        pl_doc_object_end(d);
    }
    pl_doc_array_end(d);
}

static void add_bytes(pl_doc *d, uint64_t bytes) { bytes ? pl_doc_count(d, bytes) : pl_doc_unknown(d); }

/* longest: seconds of the slowest form, one by one: a whole bar. */
static void add_form(const pl_compare_row *r, double longest, pl_doc *d)
{
    pl_doc_row(d, 0);
    pl_doc_words(d, "%s", r->name);
    add_sentence(d, "why_not", r->why);
    add_sentence(d, "remark", r->remark);
    for (int b = 0; b < PL_COMPARE_BATCHES; b++) pl_doc_real(d, pl_compare_median(&r->runs[b]));
    add_bytes(d, r->file_bytes);
    for (int b = 0; b < PL_COMPARE_BATCHES; b++) add_bytes(d, r->runs[b].measured_bytes);
    pl_doc_bar(d, "weight", longest > 0 ? pl_compare_median(&r->runs[0]) / longest : 0);
    pl_doc_bar_end(d);
    pl_doc_array(d, "runs");
    for (int b = 0; b < PL_COMPARE_BATCHES; b++) add_run(&r->runs[b], d);
    pl_doc_array_end(d);
    add_metrics(r, d);
    add_outputs(r, d);
    pl_doc_row_end(d);
}

/* Titles that outlive the document. */
typedef struct titles {
    char sample[PL_COMPARE_BATCHES][PL_COMPARE_NAME], memory[PL_COMPARE_BATCHES][PL_COMPARE_NAME];
} titles;

static void add_costs(const pl_report_compare *c, titles *t, pl_doc *d)
{
    double longest = 0;
    for (int b = 0; b < PL_COMPARE_BATCHES; b++) {
        snprintf(t->sample[b], sizeof t->sample[b], "sample at %" PRIu64, batch_of(c, b));
        snprintf(t->memory[b], sizeof t->memory[b], "memory at %" PRIu64, batch_of(c, b));
    }
    const pl_doc_column columns[] = {{"variant", ""},
                                     {NULL, t->sample[0], PL_DOC_SECONDS},
                                     {NULL, t->sample[1], PL_DOC_SECONDS},
                                     {"file_bytes", "file", PL_DOC_SIZE},
                                     {NULL, t->memory[0], PL_DOC_SIZE},
                                     {NULL, t->memory[1], PL_DOC_SIZE},
                                     {NULL, "", PL_DOC_BAR}};
    for (int i = 0; i < c->rows; i++) longest = fmax(longest, pl_compare_median(&c->row[i].runs[0]));
    pl_doc_section(d, "What it takes");
    pl_doc_table(d, "variants", columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < c->rows; i++) add_form(&c->row[i], longest, d);
    pl_doc_table_end(d);
    pl_doc_section_end(d);
}

/* ---- what comes of it: a row for each number, a column for each form ---- */

static void add_line(const line *l, int rows, pl_doc *d)
{
    pl_doc_row(d, PL_DOC_SHOWN);
    pl_doc_words(d, "%s", l->words);
    for (int i = 0; i < rows; i++) l->known[i] ? pl_doc_number(d, l->value[i], l->digits) : pl_doc_unknown(d);
    pl_doc_row_end(d);
}

static void add_lines(const pl_report_compare *c, pl_doc *d)
{
    const bool judged = first_with(c, false)->metrics > 0, given = first_with(c, true)->outputs > 0;
    pl_doc_column columns[1 + PL_COMPARE_ROWS_MAX] = {{NULL, ""}};
    line l;
    if (!find_line(c, 0, &l)) return;
    for (int i = 0; i < c->rows; i++) columns[1 + i] = (pl_doc_column){NULL, c->row[i].name, PL_DOC_NUMBER};
    pl_doc_section(d, "What comes of it");
    pl_doc_table(d, NULL, columns, 1 + c->rows);
    for (size_t k = 0; find_line(c, k, &l); k++) add_line(&l, c->rows, d);
    pl_doc_table_end(d);
    pl_doc_say(d, 0, "%s%s%s%s", judged ? "of what is held out" : "", judged && given ? ", and " : "",
               given ? "of the same inputs: differences and cosines are against " : "", given ? c->row[0].name : "");
    pl_doc_section_end(d);
}

/* ---- sentences ---- */

static void say_of(const char *name, const char *what, const char *sentence, pl_doc *d)
{
    if (!sentence[0]) return;
    pl_doc_row(d, PL_DOC_SHOWN);
    pl_doc_words(d, "%s", name);
    pl_doc_words(d, "%s%s%s", what, sentence, pl_ends_with(sentence, ".") ? "" : ".");
    pl_doc_row_end(d);
}

static void say_form(const pl_compare_row *r, bool with_judged, pl_doc *d)
{
    char at[32];
    say_of(r->name, "", r->why, d);
    say_of(r->name, "", r->remark, d);
    for (int b = 0; b < PL_COMPARE_BATCHES; b++) {
        snprintf(at, sizeof at, "at %" PRIu64 ": ", r->runs[b].batch);
        say_of(r->name, at, r->runs[b].why, d);
    }
    if (with_judged) say_of(r->name, "not judged: ", r->not_judged, d);
}

static void add_sentences(const pl_report_compare *c, pl_doc *d)
{
    static const pl_doc_column columns[] = {{NULL, ""}, {NULL, "", .is_remark = true}};
    const char *not_judged = pl_compare_not_judged(c);
    pl_doc_section(d, "What there is to say");
    pl_doc_table(d, NULL, columns, 2);
    for (int i = 0; i < c->rows; i++) say_form(&c->row[i], !not_judged, d);
    if (not_judged) say_of("all", "not judged: ", not_judged, d);
    pl_doc_table_end(d);
    pl_doc_section_end(d);
}

static void add_share(const pl_report_compare *c, pl_doc *d)
{
    const double share = pl_compare_share(c);
    pl_doc_object(d, "binary");
    pl_doc_key_bool(d, "is", c->is_binary);
    pl_doc_key_real(d, "flops", c->flops);
    pl_doc_key_real(d, "binary_flops", c->binary_flops);
    pl_doc_key_real_if(d, share >= 0, "share", share);
    pl_doc_key_real(d, "amdahl_limit", pl_compare_limit(c));
    pl_doc_object_end(d);
    if (share < 0) return; /* no layers can be of signs */
    pl_doc_section(d, "What signs could bring");
    say_share(c, pl_doc_paragraph(d, 0));
    pl_doc_paragraph_end(d);
    pl_doc_section_end(d);
}

static void add_how(const pl_report_compare *c, pl_doc *d)
{
    pl_doc_section(d, "How it was measured");
    say_how(c, pl_doc_paragraph(d, 0));
    pl_doc_paragraph_end(d);
    pl_doc_section_end(d);
}

void pl_report_compare_write(const pl_report_compare *c, pl_doc_form form, unsigned columns, pl_str *out)
{
    titles t;
    pl_doc d = pl_doc_begin();
    pl_doc_title(&d, NULL, "its forms compared", c->title);
    pl_doc_key_words(&d, "schema", PL_COMPARE_SCHEMA);
    pl_doc_key_words(&d, "model", c->title);
    pl_doc_key_words(&d, "arch", c->arch);
    pl_doc_key_words(&d, "inputs", c->inputs);
    pl_doc_key_count(&d, "turns", c->turns);
    add_costs(c, &t, &d);
    add_lines(c, &d);
    add_sentences(c, &d);
    add_share(c, &d);
    add_how(c, &d);
    pl_doc_write(&d, form, &(pl_text_form){.columns = columns}, out);
    pl_doc_deinit(&d);
}
