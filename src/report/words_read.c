#include "report/words_read.h"

#include <stdio.h>

#include "base/json.h"
#include "report/html.h"
#include "report/html_rollout.h"
#include "report/table.h"

static const char *const heads[] = {"training",   "pages",        "words",     "words read",
                                    "pages read", "q_halt right", "noise left"};
enum { HEADS = sizeof heads / sizeof *heads, SHARES = 4 };

/* Share k of a row; false: its training has none. */
static bool find_share(const pl_words_read_row *r, int k, double *share)
{
    const double all[SHARES] = {r->token_accuracy, r->exact_accuracy, r->q_halt_accuracy, r->noise_left};
    *share = all[k];
    return (k == SHARES - 1) == r->cleans;
}

/* The last column is there where a training has something in it. */
static int heads_of(const pl_words_read_report *p)
{
    bool cleans = false;
    for (uint32_t i = 0; i < p->rows; i++) cleans |= p->row[i].cleans;
    return cleans ? HEADS : HEADS - 1;
}

static int shares_of(const pl_words_read_report *p) { return heads_of(p) - (HEADS - SHARES); }

/* "-" where the training has none. Of hardly any noise a great many times may be left. */
static const char *format_share(const pl_words_read_row *r, int k, char to[32])
{
    double share;
    if (find_share(r, k, &share))
        snprintf(to, 32, share < 1000 ? "%.3f" : "%.3g", share);
    else
        snprintf(to, 32, "-");
    return to;
}

void pl_words_read_text(const pl_words_read_report *p, pl_str *out)
{
    char number[32];
    pl_str_printf(out, "%s\n\n", p->title);
    for (pl_table t = pl_table_begin(out, heads_of(p) == HEADS ? "lrrrrrr" : "lrrrrr"); pl_table_pass(&t);) {
        for (int k = 0; k < heads_of(p); k++) pl_table_cell(&t, "%s", heads[k]);
        pl_table_end_row(&t);
        for (uint32_t i = 0; i < p->rows; i++) {
            pl_table_cell(&t, "%s", p->row[i].name);
            pl_table_count(&t, p->row[i].pages);
            pl_table_count(&t, p->row[i].words);
            for (int k = 0; k < shares_of(p); k++) pl_table_cell(&t, "%s", format_share(&p->row[i], k, number));
            pl_table_end_row(&t);
        }
    }
    if (p->rows < p->stages) pl_str_printf(out, "%u of %u trainings are done\n", p->rows, p->stages);
}

void pl_words_read_json(const pl_words_read_report *p, pl_str *out)
{
    static const char *const keys[SHARES] = {"token_accuracy", "exact_accuracy", "q_halt_accuracy", "noise_left"};
    pl_json j = pl_json_begin(out, false);
    double share;
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
        for (int k = 0; k < SHARES; k++)
            if (find_share(r, k, &share)) pl_json_kv_double(&j, keys[k], share);
        pl_json_object_end(&j);
    }
    pl_json_array_end(&j);
    pl_json_object_end(&j);
    pl_str_append(out, "\n");
}

static void put_table(const pl_words_read_report *p, pl_str *out)
{
    char number[32];
    pl_html_section("Trainings", "Each judged by the pages that were held out.", out);
    pl_str_append(out, "<table class='labels'><tr>");
    for (int k = 0; k < heads_of(p); k++) pl_str_printf(out, "<th%s>%s</th>", k ? " class='n'" : "", heads[k]);
    pl_str_append(out, "</tr>\n");
    for (uint32_t i = 0; i < p->rows; i++) {
        const pl_words_read_row *r = &p->row[i];
        pl_str_append(out, "<tr><td>");
        pl_html_text(out, r->name);
        pl_str_printf(out, "</td><td class='n'>%llu</td><td class='n'>%llu</td>", (unsigned long long)r->pages,
                      (unsigned long long)r->words);
        for (int k = 0; k < shares_of(p); k++) pl_str_printf(out, "<td class='n'>%s</td>", format_share(r, k, number));
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
    const pl_words_read_row *last = p->rows ? &p->row[p->rows - 1] : NULL;
    if (last) {
        snprintf(number, sizeof number, "%.3f", last->cleans ? last->noise_left : last->token_accuracy);
        pl_html_card(number, last->cleans ? "of the noise is left" : "of the words are read, after the last of them",
                     out);
    }
    pl_html_cards_end(out);
    put_table(p, out);
    pl_html_rollout_end(out);
}
