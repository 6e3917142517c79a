/* Bars by component, and the losses. */
#include <math.h>
#include <stdio.h>

#include "base/units.h"
#include "report/html.h"

enum { SHOWN = 40 };

/* ---- components ---- */

/* A row of a table: its bar is made of parts, and becomes as wide as the page leaves it. */
static void draw_component(const pl_report_component *c, const char *more, double largest, pl_str *out)
{
    char text[32];
    pl_str_append(out, "<tr><td>");
    if (more)
        pl_html_text(out, more);
    else if (c->bytes == 0)
        pl_str_append(out, "(the whole)");
    else
        pl_html_text_bytes(out, c->scope, c->bytes);
    pl_str_append(out, "</td><td class='bar parts'>");
    for (int k = 0; k < PL_GROUP_COUNT; k++)
        if (c->group_bytes[k])
            pl_str_printf(out, "<i class='%s' style='width:%.2f%%' title='%s: %s bytes'></i>",
                          pl_html_group_class((pl_report_group)k), 100 * (double)c->group_bytes[k] / largest,
                          pl_report_group_title((pl_report_group)k),
                          pl_format_count(c->group_bytes[k], text, sizeof text));
    pl_str_printf(out, "</td><td class='n'>%s</td></tr>\n", pl_format_bytes(c->total_bytes, text, sizeof text));
}

void pl_html_components(const pl_report_components *c, pl_str *out)
{
    pl_report_component rest = {0};
    size_t shown = c->count > SHOWN ? SHOWN : c->count;
    double largest = 1;
    char more[64];
    for (size_t i = 0; i < c->count; i++) {
        if (i < shown) {
            largest = fmax(largest, (double)c->item[i].total_bytes);
            continue;
        }
        for (int k = 0; k < PL_GROUP_COUNT; k++) rest.group_bytes[k] += c->item[i].group_bytes[k];
        rest.total_bytes += c->item[i].total_bytes;
    }
    largest = fmax(largest, (double)rest.total_bytes);
    pl_str_append(out, "<section><h2>By component, at the peak</h2>\n<table>");
    for (size_t i = 0; i < shown; i++) draw_component(&c->item[i], NULL, largest, out);
    snprintf(more, sizeof more, "and %zu more", c->count - shown);
    if (c->count > shown) draw_component(&rest, more, largest, out);
    pl_str_append(out, "</table>\n<div class='legend'>");
    for (int k = 0; k < PL_GROUP_COUNT; k++)
        pl_str_printf(out, "<span><i class='%s'></i>%s</span>", pl_html_group_class((pl_report_group)k),
                      pl_report_group_title((pl_report_group)k));
    pl_str_append(out, "</div></section>\n");
}

/* ---- losses ---- */

void pl_html_losses(const pl_report_run *run, const pl_words *words, pl_str *out)
{
    const pl_html_curve curves[] = {
        {run->training, run->training_count, "train", "weight", "training", false},
        {run->validation, run->validation_count, "valid", "gradient", "validation", true},
    };
    pl_html_curves(&(pl_html_chart){.title = "Loss",
                                    .unit = words->loss,
                                    .axis = "step",
                                    .least_tick = 1,
                                    .curve = curves,
                                    .count = sizeof curves / sizeof *curves},
                   out);
}
