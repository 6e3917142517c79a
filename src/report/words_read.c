#include "report/words_read.h"

#include <stdio.h>

#include "base/json.h"
#include "report/html.h"
#include "report/html_rollout.h"
#include "report/table.h"

static const char *const heads[] = {"training",   "pages",        "words",      "words read",
                                    "pages read", "q_halt right", "noise left", "denoiser alone"};
enum { HEADS = sizeof heads / sizeof *heads, SHARES = 5, NOISE_LEFT = 3, DENOISED_LEFT = 4 };

/* Share k of a row; false: its training has none. */
static bool find_share(const pl_words_read_row *r, int k, double *share)
{
    const double all[SHARES] = {r->token_accuracy, r->exact_accuracy, r->q_halt_accuracy, r->noise_left,
                                r->denoised_left};
    *share = all[k];
    return k == DENOISED_LEFT ? r->denoised_left >= 0 : (k == NOISE_LEFT) == r->cleans;
}

/* The last columns are there where a training has something in them. */
static int heads_of(const pl_words_read_report *p)
{
    double share;
    for (int k = DENOISED_LEFT; k >= NOISE_LEFT; k--)
        for (uint32_t i = 0; i < p->rows; i++)
            if (find_share(&p->row[i], k, &share)) return HEADS - SHARES + k + 1;
    return HEADS - SHARES + NOISE_LEFT;
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

/* The last column would make the table too wide for a terminal. */
static void add_denoised(const pl_words_read_report *p, pl_str *out)
{
    char number[32];
    double share;
    for (uint32_t i = 0; i < p->rows; i++)
        if (find_share(&p->row[i], DENOISED_LEFT, &share))
            pl_str_printf(out, "%s: of the same noise the denoiser alone leaves %s\n", p->row[i].name,
                          format_share(&p->row[i], DENOISED_LEFT, number));
}

void pl_words_read_text(const pl_words_read_report *p, pl_str *out)
{
    char number[32];
    const int shares = shares_of(p) > NOISE_LEFT ? NOISE_LEFT + 1 : NOISE_LEFT, columns = HEADS - SHARES + shares;
    pl_str_printf(out, "%s\n\n", p->title);
    for (pl_table t = pl_table_begin(out, shares > NOISE_LEFT ? "lrrrrrr" : "lrrrrr"); pl_table_pass(&t);) {
        for (int k = 0; k < columns; k++) pl_table_cell(&t, "%s", heads[k]);
        pl_table_end_row(&t);
        for (uint32_t i = 0; i < p->rows; i++) {
            pl_table_cell(&t, "%s", p->row[i].name);
            pl_table_count(&t, p->row[i].pages);
            pl_table_count(&t, p->row[i].words);
            for (int k = 0; k < shares; k++) pl_table_cell(&t, "%s", format_share(&p->row[i], k, number));
            pl_table_end_row(&t);
        }
    }
    add_denoised(p, out);
    if (p->rows < p->stages) pl_str_printf(out, "%u of %u trainings are done\n", p->rows, p->stages);
}

void pl_words_read_json(const pl_words_read_report *p, pl_str *out)
{
    static const char *const keys[SHARES] = {"token_accuracy", "exact_accuracy", "q_halt_accuracy", "noise_left",
                                             "denoised_left"};
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
    pl_html_results_begin(p->title, "Trainings of a model that reads pages, one after another.", out);
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
    pl_html_page_end(out);
}
