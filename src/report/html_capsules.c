#include "report/html_capsules.h"

#include <inttypes.h>

#include "base/units.h"

enum { CHART_WIDTH = 1000, CHART_HEIGHT = 200, CHART_FOOT = 40 };

static void put_text(const pl_html_said *s, pl_str *out)
{
    char number[32];
    pl_str_printf(out, "<b>%s</b> ", pl_format_count(s->number, number, sizeof number));
    if (!s->text) {
        pl_str_append(out, "<span class='unknown'>text not known</span>");
        return;
    }
    pl_str_append(out, "<span class='said'>");
    pl_html_text_bytes(out, s->text, s->bytes);
    pl_str_append(out, s->is_cut ? " …</span>" : s->bytes ? "</span>" : "(empty)</span>");
}

/* ---- pages ---- */

void pl_html_drawn_begin(pl_str *out) { pl_str_append(out, "<div class='drawn'>\n"); }
void pl_html_drawn_end(pl_str *out) { pl_str_append(out, "</div>\n"); }

void pl_html_drawn_page(const pl_html_drawn *d, pl_str *out)
{
    pl_base64 e = {.out = out};
    pl_str_append(out, "<figure>");
    if (d->png) {
        pl_str_printf(out, "<img alt='page of text %" PRIu64 "' src='data:image/png;base64,", d->of.number);
        for (size_t i = 0; i < d->png_bytes; i++) pl_base64_put(&e, ((const unsigned char *)d->png)[i]);
        pl_base64_end(&e);
        pl_str_append(out, "'>");
    }
    pl_str_append(out, "<figcaption>");
    put_text(&d->of, out);
    if (d->words[0]) {
        pl_str_append(out, "<br>");
        pl_html_text(out, d->words);
    }
    pl_str_append(out, "</figcaption></figure>\n");
}

/* ---- neighbours ---- */

void pl_html_neighbours(const pl_html_said *of, const pl_html_near *near, size_t count, pl_str *out)
{
    pl_str_append(out, "<div class='near'><p>");
    put_text(of, out);
    pl_str_append(out, "</p><table>\n");
    for (size_t i = 0; i < count; i++) {
        pl_str_printf(out, "<tr><td class='n'>%.6f</td><td class='w'>", near[i].cosine);
        put_text(&near[i].of, out);
        pl_str_append(out, "</td></tr>\n");
    }
    pl_str_append(out, "</table></div>\n");
}

/* ---- histograms ---- */

static void put_axis(const pl_html_histogram *h, pl_str *out)
{
    const double middle = (h->low + h->high) / 2;
    const int y = CHART_HEIGHT + CHART_FOOT - 8;
    pl_str_printf(out, "<line class='axis' x1='0' x2='%d' y1='%d' y2='%d'/>\n", CHART_WIDTH, CHART_HEIGHT,
                  CHART_HEIGHT);
    pl_str_printf(out, "<text class='soft' x='0' y='%d'>%.4g</text>\n", y, h->low);
    pl_str_printf(out, "<text class='soft mid' x='%d' y='%d'>%.4g</text>\n", CHART_WIDTH / 2, y, middle);
    pl_str_printf(out, "<text class='soft end' x='%d' y='%d'>%.4g</text>\n", CHART_WIDTH, y, h->high);
}

void pl_html_histogram_chart(const pl_html_histogram *h, pl_str *out)
{
    uint64_t most = 1;
    char count[32];
    const double wide = (double)CHART_WIDTH / h->bins, step = (h->high - h->low) / h->bins;
    for (unsigned i = 0; i < h->bins; i++) most = h->count[i] > most ? h->count[i] : most;
    pl_str_append(out, "<h3>");
    pl_html_text(out, h->title);
    pl_str_append(out, "</h3><p>");
    pl_html_text(out, h->words);
    pl_str_printf(out, "</p>\n<svg viewBox='0 0 %d %d' role='img' aria-label='", CHART_WIDTH,
                  CHART_HEIGHT + CHART_FOOT);
    pl_html_text(out, h->title);
    pl_str_append(out, "'>\n");
    for (unsigned i = 0; i < h->bins; i++) {
        const double high = (double)h->count[i] / (double)most * (CHART_HEIGHT - 4);
        if (!h->count[i]) continue;
        pl_str_printf(out,
                      "<rect class='staging' x='%.1f' y='%.1f' width='%.1f' height='%.1f'><title>%.6g to %.6g: "
                      "%s</title></rect>\n",
                      i * wide + 1, CHART_HEIGHT - high, wide - 2, high, h->low + i * step, h->low + (i + 1) * step,
                      pl_format_count(h->count[i], count, sizeof count));
    }
    put_axis(h, out);
    pl_str_append(out, "</svg>\n");
}

/* ---- remarks ---- */

void pl_html_remarks_begin(pl_str *out)
{
    pl_str_append(out, "<table class='labels'><tr><th>texts that</th><th class='n'>number</th><th class='n'>share</th>"
                       "<th>the first</th></tr>\n");
}

void pl_html_remark_row(const pl_html_remark *r, pl_str *out)
{
    char count[32];
    pl_str_append(out, "<tr><td class='h'>");
    pl_html_text(out, r->words);
    pl_str_printf(out,
                  "</td><td class='n' data-l='number'>%s</td><td class='n' data-l='share'>%.3g %%</td><td class='w'>",
                  pl_format_count(r->count, count, sizeof count), r->all ? 100 * (double)r->count / (double)r->all : 0);
    for (unsigned i = 0; i < r->shown; i++)
        pl_str_printf(out, "%s%s", i ? ", " : "", pl_format_count(r->first[i], count, sizeof count));
    pl_str_append(out, r->count > r->shown ? ", …</td></tr>\n" : "</td></tr>\n");
}

void pl_html_remarks_end(pl_str *out) { pl_str_append(out, "</table>\n"); }
