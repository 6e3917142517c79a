/* One HTML page: the curve, the causes, the table. Style and charts are those of the plan's page (report/html.h). */
#include <inttypes.h>
#include <stdio.h>

#include "base/locale.h"
#include "base/units.h"
#include "doctor/doctor.h"
#include "report/html.h"

enum { TEXT = 32 };

static void write_head(const pl_doctor *d, const pl_doctor_process *p, pl_str *out)
{
    char text[TEXT], words[2 * TEXT];
    pl_html_page_begin(&(pl_html_page){.title = p->name, .what = "memory", .before = "The memory of "}, out);
    pl_str_printf(out, "<p>process %d: ", (int)p->id);
    pl_html_text(out, p->command);
    pl_str_append(out, "</p>\n");
    pl_html_cards_begin(out);
    pl_print(words, sizeof words, "largest of %" PRIu64 " looks", d->looks);
    pl_html_card(pl_format_bytes(d->most_bytes, text, sizeof text), words, out);
    uint64_t mark = d->command_peak_bytes ? d->command_peak_bytes : d->last.process.status.peak_bytes;
    pl_html_card(pl_format_bytes(mark, text, sizeof text), "the kernel's own mark of a single process", out);
    pl_print(text, sizeof text, "%" PRIu64, p->status.threads);
    pl_html_card(text, "threads", out);
    pl_html_cards_end(out);
}

static pl_status write_curve(const pl_doctor *d, pl_str *out, pl_error *err)
{
    pl_curve_point *point = pl_alloc(d->sample_count + 1, sizeof *point);
    if (!point) return pl_fail(err, PL_E_NOMEM, "no memory for the curve");
    for (size_t i = 0; i < d->sample_count; i++)
        point[i] = (pl_curve_point){d->sample[i].seconds, (double)d->sample[i].bytes / 1e6};
    const pl_html_curve curve = {point, d->sample_count, "train", "weight", "memory", false};
    pl_html_curves(
        &(pl_html_chart){.title = "Memory over time",
                         .unit = d->tree ? "MB: Rss of one process, Pss of all that descend from it" : "MB, resident",
                         .axis = "seconds",
                         .least_tick = 0.01,
                         .from_zero = true,
                         .curve = &curve,
                         .count = 1},
        out);
    pl_free(point);
    return PL_OK;
}

static void write_causes(const pl_doctor_view *v, pl_str *out)
{
    pl_doctor_cause causes[PL_DOCTOR_CAUSES_MAX];
    size_t count = pl_doctor_find_causes(v, causes);
    char text[TEXT];
    if (count == 0) return;
    pl_str_append(out, "<section><h2>The largest causes</h2>\n<table>");
    for (size_t i = 0; i < count; i++) {
        pl_str_printf(out, "<tr><td class='n'>%s</td><td class='h'>",
                      pl_format_bytes(causes[i].bytes, text, sizeof text));
        pl_html_text(out, causes[i].title);
        pl_str_append(out, "</td><td class='w'>");
        pl_html_text(out, causes[i].text);
        if (causes[i].remedy[0]) pl_str_append(out, "<br>Remedy: ");
        pl_html_text(out, causes[i].remedy);
        pl_str_append(out, "</td></tr>\n");
    }
    pl_str_append(out, "</table></section>\n");
}

/* most: what the longest bar stands for; 0: no bar */
static void write_cells(const char *title, const pl_doctor_row *row, double most, pl_str *out)
{
    static const pl_smaps_field shown[] = {PL_SMAPS_RSS, PL_SMAPS_PSS, PL_SMAPS_PRIVATE_DIRTY, PL_SMAPS_SWAP};
    static const char *const labels[] = {"resident", "Pss", "dirty", "swap"};
    pl_str_printf(out, "<td>%s</td>", title);
    pl_html_cell_count("reserved", row->reserved_bytes, out);
    for (size_t k = 0; k < sizeof shown / sizeof *shown; k++) pl_html_cell_count(labels[k], row->bytes[shown[k]], out);
    if (most > 0)
        pl_str_printf(out, "<td class='bar'><i class='weight' style='width:%.1f%%'></i></td></tr>\n",
                      100 * (double)row->bytes[PL_SMAPS_RSS] / most);
    else
        pl_str_append(out, "<td></td></tr>\n");
}

static void write_table(const pl_doctor_view *v, pl_str *out)
{
    double most = 1;
    for (int k = 0; k < PL_DOCTOR_KIND_COUNT; k++)
        if ((double)v->row[k].bytes[PL_SMAPS_RSS] > most) most = (double)v->row[k].bytes[PL_SMAPS_RSS];
    pl_str_append(out, "<section><h2>Where it was at the peak</h2><p>bytes</p>\n<table class='labels'><tr><th></th><th "
                       "class='n'>reserved</th><th class='n'>resident</th><th class='n'>proportional</th><th "
                       "class='n'>private dirty</th><th class='n'>swap</th><th></th></tr>\n");
    for (int k = 0; k < PL_DOCTOR_KIND_COUNT; k++) {
        if (v->row[k].maps == 0) continue;
        pl_str_append(out, "<tr>");
        write_cells(pl_doctor_kind_title((pl_doctor_kind)k), &v->row[k], most, out);
    }
    pl_str_append(out, "<tr class='total'>");
    write_cells("sum", &v->total, 0, out);
    pl_str_append(out, "</table></section>\n");
}

pl_status pl_doctor_write_page(const pl_doctor *d, pl_str *out, pl_error *err)
{
    const pl_doctor_moment *m = d->peak.known ? &d->peak : &d->last;
    pl_doctor_view v;
    PL_TRY(pl_doctor_view_build(&m->process, &v, err));
    write_head(d, &m->process, out);
    pl_status status = write_curve(d, out, err);
    if (m->process.permitted) {
        write_causes(&v, out);
        write_table(&v, out);
    }
    pl_html_page_end(out);
    pl_doctor_view_deinit(&v);
    PL_TRY(status);
    return out->failed ? pl_fail(err, PL_E_NOMEM, "no memory for the page") : PL_OK;
}
