#include "report/trainings.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/locale.h"
#include "report/html_rollout.h"
#include "report/table.h"

enum { TEXT = 64 };

static bool has(const pl_trainings_row *r, uint32_t k) { return !isnan(r->value[k]); }

static bool is_shown(const pl_trainings_report *p, uint32_t k)
{
    bool any = !p->column[k].may_miss;
    for (uint32_t i = 0; i < p->rows; i++) any |= has(&p->row[i], k);
    return any;
}

/* "-" where the training has none. Of hardly any noise a great many times may be left. */
static const char *format(const pl_trainings_row *r, uint32_t k, char to[TEXT])
{
    if (has(r, k))
        pl_print(to, TEXT, r->value[k] < 1000 ? "%.3f" : "%.3g", r->value[k]);
    else
        snprintf(to, TEXT, "-");
    return to;
}

/* ---- as text ---- */

static bool is_in_table(const pl_trainings_report *p, uint32_t k) { return !p->column[k].aside && is_shown(p, k); }

static void put_cells(const pl_trainings_report *p, const pl_trainings_row *r, pl_table *t)
{
    char number[TEXT];
    pl_table_cell(t, "%s", r->name);
    for (uint32_t k = 0; k < p->columns; k++)
        if (!is_in_table(p, k))
            continue;
        else if (p->column[k].is_count)
            pl_table_count(t, (uint64_t)r->value[k]);
        else
            pl_table_cell(t, "%s", format(r, k, number));
    pl_table_end_row(t);
}

static void put_table(const pl_trainings_report *p, pl_str *out)
{
    char columns[PL_TRAININGS_COLUMNS_MAX + 2] = "l";
    for (uint32_t k = 0; k < p->columns; k++)
        if (is_in_table(p, k)) columns[strlen(columns)] = 'r';
    for (pl_table t = pl_table_begin(out, columns); pl_table_pass(&t);) {
        pl_table_cell(&t, "%s", "training");
        for (uint32_t k = 0; k < p->columns; k++)
            if (is_in_table(p, k)) pl_table_cell(&t, "%s", p->column[k].head);
        pl_table_end_row(&t);
        for (uint32_t i = 0; i < p->rows; i++) put_cells(p, &p->row[i], &t);
    }
}

static void put_asides(const pl_trainings_report *p, pl_str *out)
{
    char number[TEXT];
    for (uint32_t k = 0; k < p->columns; k++)
        for (uint32_t i = 0; i < p->rows && p->column[k].aside; i++)
            if (has(&p->row[i], k))
                pl_str_printf(out, "%s: %s %s\n", p->row[i].name, p->column[k].aside, format(&p->row[i], k, number));
}

void pl_trainings_text(const pl_trainings_report *p, pl_str *out)
{
    pl_str_printf(out, "%s\n\n", p->title);
    put_table(p, out);
    put_asides(p, out);
    if (p->rows < p->stages) pl_str_printf(out, "%u of %u trainings are done\n", p->rows, p->stages);
}

/* ---- as JSON ---- */

static void put_json_row(const pl_trainings_report *p, const pl_trainings_row *r, pl_json *j)
{
    pl_json_object(j);
    pl_json_kv_string(j, "training", r->name);
    for (uint32_t k = 0; k < p->columns; k++)
        if (!has(r, k))
            continue;
        else if (p->column[k].is_count)
            pl_json_kv_uint(j, p->column[k].key, (uint64_t)r->value[k]);
        else
            pl_json_kv_double(j, p->column[k].key, r->value[k]);
    pl_json_object_end(j);
}

void pl_trainings_json(const pl_trainings_report *p, pl_str *out)
{
    pl_json j = pl_json_document(out, false, p->schema);
    pl_json_kv_uint(&j, "done", p->rows);
    pl_json_kv_uint(&j, "stages", p->stages);
    pl_json_key(&j, "trainings");
    pl_json_array(&j);
    for (uint32_t i = 0; i < p->rows; i++) put_json_row(p, &p->row[i], &j);
    pl_json_array_end(&j);
    pl_json_document_end(&j);
}

/* ---- as a page ---- */

static void put_html_row(const pl_trainings_report *p, const pl_trainings_row *r, pl_str *out)
{
    char number[TEXT];
    pl_str_append(out, "<tr><td>");
    pl_html_text(out, r->name);
    pl_str_append(out, "</td>");
    for (uint32_t k = 0; k < p->columns; k++) {
        if (!is_shown(p, k)) continue;
        if (p->column[k].is_count) pl_print(number, sizeof number, "%.0f", r->value[k]);
        pl_str_printf(out, "<td class='n'>%s</td>", p->column[k].is_count ? number : format(r, k, number));
    }
    pl_str_append(out, "</tr>\n");
}

static void put_html_table(const pl_trainings_report *p, pl_str *out)
{
    pl_html_section("Trainings", p->judged, out);
    pl_str_append(out, "<table class='labels'><tr><th>training</th>");
    for (uint32_t k = 0; k < p->columns; k++)
        if (is_shown(p, k)) pl_str_printf(out, "<th class='n'>%s</th>", p->column[k].head);
    pl_str_append(out, "</tr>\n");
    for (uint32_t i = 0; i < p->rows; i++) put_html_row(p, &p->row[i], out);
    pl_str_append(out, "</table></section>\n");
}

/* What the last of them has brought: the first value there that has words. */
static void put_card(const pl_trainings_report *p, pl_str *out)
{
    char number[TEXT];
    for (uint32_t k = 0; k < p->columns && p->rows; k++)
        if (p->column[k].card && has(&p->row[p->rows - 1], k)) {
            pl_html_card(format(&p->row[p->rows - 1], k, number), p->column[k].card, out);
            return;
        }
}

void pl_trainings_html(const pl_trainings_report *p, pl_str *out)
{
    char number[TEXT];
    pl_html_results_begin(p->title, p->about, out);
    pl_html_cards_begin(out);
    snprintf(number, sizeof number, "%u of %u", p->rows, p->stages);
    pl_html_card(number, "trainings are done", out);
    put_card(p, out);
    pl_html_cards_end(out);
    put_html_table(p, out);
    pl_html_page_end(out);
}
