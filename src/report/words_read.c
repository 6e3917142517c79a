#include "report/words_read.h"

#include <stdio.h>

#include "base/json.h"
#include "report/html.h"
#include "report/html_rollout.h"
#include "report/table.h"

static const char *const heads[] = {"training", "pages", "words", "words read", "pages read", "q_halt right"};
enum { HEADS = sizeof heads / sizeof *heads, SHARES = 3 };

static double share_of(const pl_words_read_row *r, int k)
{
    return k == 0 ? r->token_accuracy : k == 1 ? r->exact_accuracy : r->q_halt_accuracy;
}

void pl_words_read_text(const pl_words_read_report *p, pl_str *out)
{
    pl_str_printf(out, "%s\n\n", p->title);
    for (pl_table t = pl_table_begin(out, "lrrrrr"); pl_table_pass(&t);) {
        for (int k = 0; k < HEADS; k++) pl_table_cell(&t, "%s", heads[k]);
        pl_table_end_row(&t);
        for (uint32_t i = 0; i < p->rows; i++) {
            pl_table_cell(&t, "%s", p->row[i].name);
            pl_table_count(&t, p->row[i].pages);
            pl_table_count(&t, p->row[i].words);
            for (int k = 0; k < SHARES; k++) pl_table_cell(&t, "%.3f", share_of(&p->row[i], k));
            pl_table_end_row(&t);
        }
    }
    if (p->rows < p->stages) pl_str_printf(out, "%u of %u trainings are done\n", p->rows, p->stages);
}

void pl_words_read_json(const pl_words_read_report *p, pl_str *out)
{
    pl_json j = pl_json_begin(out, false);
    pl_json_object(&j);
    pl_json_kv_string(&j, "schema", "plimsoll.words_read/1");
    pl_json_kv_uint(&j, "done", p->rows);
    pl_json_kv_uint(&j, "stages", p->stages);
    pl_json_key(&j, "trainings");
    pl_json_array(&j);
    for (uint32_t i = 0; i < p->rows; i++) {
        const pl_words_read_row *r = &p->row[i];
        pl_json_object(&j);
        pl_json_kv_string(&j, "training", r->name);
        pl_json_kv_uint(&j, "pages", r->pages);
        pl_json_kv_uint(&j, "words", r->words);
        pl_json_kv_double(&j, "token_accuracy", r->token_accuracy);
        pl_json_kv_double(&j, "exact_accuracy", r->exact_accuracy);
        pl_json_kv_double(&j, "q_halt_accuracy", r->q_halt_accuracy);
        pl_json_object_end(&j);
    }
    pl_json_array_end(&j);
    pl_json_object_end(&j);
    pl_str_append(out, "\n");
}

static void put_table(const pl_words_read_report *p, pl_str *out)
{
    pl_html_section("Trainings", "Each judged by the pages that were held out.", out);
    pl_str_append(out, "<table class='labels'><tr>");
    for (int k = 0; k < HEADS; k++) pl_str_printf(out, "<th%s>%s</th>", k ? " class='n'" : "", heads[k]);
    pl_str_append(out, "</tr>\n");
    for (uint32_t i = 0; i < p->rows; i++) {
        const pl_words_read_row *r = &p->row[i];
        pl_str_append(out, "<tr><td>");
        pl_html_text(out, r->name);
        pl_str_printf(out, "</td><td class='n'>%llu</td><td class='n'>%llu</td>", (unsigned long long)r->pages,
                      (unsigned long long)r->words);
        for (int k = 0; k < SHARES; k++) pl_str_printf(out, "<td class='n'>%.3f</td>", share_of(r, k));
        pl_str_append(out, "</tr>\n");
    }
    pl_str_append(out, "</table></section>\n");
}

void pl_words_read_html(const pl_words_read_report *p, pl_str *out)
{
    char number[64];
    pl_html_rollout_begin(p->title, "Trainings of a model that reads pages, one after another.", out);
    pl_html_cards_begin(out);
    snprintf(number, sizeof number, "%u of %u", p->rows, p->stages);
    pl_html_card(number, "trainings are done", out);
    if (p->rows) {
        snprintf(number, sizeof number, "%.3f", p->row[p->rows - 1].token_accuracy);
        pl_html_card(number, "of the words are read, after the last of them", out);
    }
    pl_html_cards_end(out);
    put_table(p, out);
    pl_html_rollout_end(out);
}
