/* The comparison as a page: the rows of the text, with a bar for the time of a sample. One file, nothing loaded. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/locale.h"
#include "base/units.h"
#include "report/compare.h"
#include "report/html.h"

enum { TEXT = 48 };

/* A label of its own: in a narrow window it stands before the number. */
static const char *label_at(const char *what, uint64_t batch, char text[TEXT])
{
    pl_print(text, TEXT, "%s at %" PRIu64, what, batch);
    return text;
}

static void cell_bytes(pl_str *out, const char *label, uint64_t bytes)
{
    char text[TEXT];
    pl_html_cell(label, bytes ? pl_format_bytes(bytes, text, sizeof text) : "–", out);
}

static void cell_seconds(pl_str *out, const char *label, const pl_compare_run *r)
{
    char text[TEXT];
    pl_html_cell(label, r->turns ? pl_format_seconds(pl_compare_median(r), text, sizeof text) : "–", out);
}

static double longest(const pl_report_compare *c)
{
    double most = 0;
    for (int i = 0; i < PL_COMPARE_ROWS; i++) most = fmax(most, pl_compare_median(&c->row[i].runs[0]));
    return most;
}

static void put_cost(const pl_report_compare *c, const pl_compare_row *r, pl_str *out)
{
    char label[TEXT];
    const double most = longest(c), seconds = pl_compare_median(&r->runs[0]);
    pl_str_printf(out, "<tr><td><b>%s</b></td>", r->name);
    for (int b = 0; b < PL_COMPARE_BATCHES; b++)
        cell_seconds(out, label_at("a sample", pl_compare_batch(c, b), label), &r->runs[b]);
    cell_bytes(out, "file", r->file_bytes);
    for (int b = 0; b < PL_COMPARE_BATCHES; b++)
        cell_bytes(out, label_at("memory", pl_compare_batch(c, b), label), r->runs[b].measured_bytes);
    pl_str_append(out, "<td class='bar'>");
    if (seconds > 0 && most > 0)
        pl_str_printf(out, "<i class='weight' style='width:%.1f%%'></i>", 100 * seconds / most);
    pl_str_append(out, "</td></tr>\n");
}

static void put_costs(const pl_report_compare *c, pl_str *out)
{
    char label[TEXT];
    static const char *const what[] = {"a sample", "memory"};
    pl_str_append(out, "<section><h2>What it takes</h2><p>bars: the time of a sample, one by one</p>\n"
                       "<table class='labels'><tr><th></th>");
    for (int k = 0; k < 2; k++) {
        for (int b = 0; b < PL_COMPARE_BATCHES; b++)
            pl_str_printf(out, "<th class='n'>%s</th>", label_at(what[k], pl_compare_batch(c, b), label));
        if (k == 0) pl_str_append(out, "<th class='n'>file</th>");
    }
    pl_str_append(out, "<th></th></tr>\n");
    for (int i = 0; i < PL_COMPARE_ROWS; i++) put_cost(c, &c->row[i], out);
    pl_str_append(out, "</table></section>\n");
}

static void put_line(const pl_report_compare *c, const pl_compare_line *l, pl_str *out)
{
    char number[TEXT];
    pl_str_append(out, "<tr><td>");
    pl_html_text(out, l->words);
    pl_str_append(out, "</td>");
    for (int i = 0; i < PL_COMPARE_ROWS; i++) {
        if (l->known[i]) pl_print(number, sizeof number, "%.*g", l->digits, l->value[i]);
        pl_html_cell(c->row[i].name, l->known[i] ? number : "–", out);
    }
    pl_str_append(out, "</tr>\n");
}

static void put_lines(const pl_report_compare *c, pl_str *out)
{
    pl_compare_line l;
    bool judged = false, given = false;
    if (!pl_compare_find_line(c, 0, &l)) return;
    for (int i = 0; i < PL_COMPARE_ROWS; i++) {
        judged |= c->row[i].metrics > 0;
        given |= c->row[i].outputs > 0;
    }
    pl_str_printf(out, "<section><h2>What comes of it</h2><p>%s%s%s</p>\n<table class='labels'><tr><th></th>",
                  judged ? "of what is held out" : "", judged && given ? ", and " : "",
                  given ? "of the same inputs: differences and cosines are against f32" : "");
    for (int i = 0; i < PL_COMPARE_ROWS; i++) pl_str_printf(out, "<th class='n'>%s</th>", c->row[i].name);
    pl_str_append(out, "</tr>\n");
    for (size_t k = 0; pl_compare_find_line(c, k, &l); k++) put_line(c, &l, out);
    pl_str_append(out, "</table></section>\n");
}

static void put_sentence(const char *name, const char *what, const char *sentence, pl_str *out)
{
    if (!sentence[0]) return;
    pl_str_printf(out, "<tr><td><b>%s</b></td><td class='w'>%s", name, what);
    pl_html_text(out, sentence);
    pl_str_append(out, "</td></tr>\n");
}

static void put_sentences(const pl_report_compare *c, pl_str *out)
{
    char at[TEXT];
    const char *not_judged = pl_compare_not_judged(c);
    pl_str_append(out, "<section><h2>What there is to say</h2><table>\n");
    for (int i = 0; i < PL_COMPARE_ROWS; i++) {
        const pl_compare_row *r = &c->row[i];
        put_sentence(r->name, "", r->why, out);
        put_sentence(r->name, "", r->remark, out);
        for (int b = 0; b < PL_COMPARE_BATCHES; b++) {
            pl_print(at, sizeof at, "at %" PRIu64 ": ", r->runs[b].batch);
            put_sentence(r->name, at, r->runs[b].why, out);
        }
        if (!not_judged) put_sentence(r->name, "not judged: ", r->not_judged, out);
    }
    if (not_judged) put_sentence("all", "not judged: ", not_judged, out);
    pl_str_append(out, "</table></section>\n");
}

static void put_paragraph(const char *title, void (*say)(const pl_report_compare *, pl_str *),
                          const pl_report_compare *c, pl_str *out)
{
    pl_str text = {0};
    say(c, &text);
    pl_str_printf(out, "<section><h2>%s</h2><p>", title);
    pl_html_text(out, pl_str_text(&text));
    pl_str_append(out, "</p></section>\n");
    out->failed |= text.failed;
    pl_str_deinit(&text);
}

void pl_report_compare_html(const pl_report_compare *c, pl_str *out)
{
    pl_html_page_begin(&(pl_html_page){.title = c->title, .what = "its forms beside each other"}, out);
    pl_str_append(out, "<p>");
    pl_html_text(out, c->inputs);
    pl_str_append(out, "</p>\n");
    put_costs(c, out);
    put_lines(c, out);
    put_sentences(c, out);
    put_paragraph("What signs could bring", pl_compare_say_share, c, out);
    put_paragraph("How it was measured", pl_compare_say_how, c, out);
    pl_html_page_end(out);
}
