#include "report/chains.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "report/html.h"
#include "report/html_rollout.h"
#include "report/table.h"

static const char title[] = "Chains of thought";
static const char *const heads[] = {"training", "latents", "chains", "tokens", "tokens right", "answers right"};
enum { HEADS = sizeof heads / sizeof *heads };

void pl_chains_text(const pl_chains_report *p, pl_str *out)
{
    pl_str_printf(out, "%s\n\n", title);
    for (pl_table t = pl_table_begin(out, "lrrrrr"); pl_table_pass(&t);) {
        for (int k = 0; k < HEADS; k++) pl_table_cell(&t, "%s", heads[k]);
        pl_table_end_row(&t);
        for (uint32_t i = 0; i < p->rows; i++) {
            const pl_chains_row *r = &p->row[i];
            pl_table_cell(&t, "%s", r->name);
            pl_table_count(&t, r->latents);
            pl_table_count(&t, r->chains);
            pl_table_count(&t, r->tokens);
            pl_table_cell(&t, "%.3f", r->token_accuracy);
            pl_table_cell(&t, "%.3f", r->answer_accuracy);
            pl_table_end_row(&t);
        }
    }
    if (p->rows < p->stages) pl_str_printf(out, "%u of %u trainings are done\n", p->rows, p->stages);
}

void pl_chains_json(const pl_chains_report *p, pl_str *out)
{
    pl_json j = pl_json_begin(out, false);
    pl_json_object(&j);
    pl_json_kv_string(&j, "schema", "plimsoll.chains/1");
    pl_json_kv_uint(&j, "done", p->rows);
    pl_json_kv_uint(&j, "stages", p->stages);
    pl_json_key(&j, "trainings");
    pl_json_array(&j);
    for (uint32_t i = 0; i < p->rows; i++) {
        const pl_chains_row *r = &p->row[i];
        pl_json_object(&j);
        pl_json_kv_string(&j, "training", r->name);
        pl_json_kv_uint(&j, "latents", r->latents);
        pl_json_kv_uint(&j, "chains", r->chains);
        pl_json_kv_uint(&j, "tokens", r->tokens);
        pl_json_kv_double(&j, "token_accuracy", r->token_accuracy);
        pl_json_kv_double(&j, "answer_accuracy", r->answer_accuracy);
        pl_json_object_end(&j);
    }
    pl_json_array_end(&j);
    pl_json_object_end(&j);
    pl_str_append(out, "\n");
}

static void put_table(const pl_chains_report *p, pl_str *out)
{
    pl_html_section("Trainings", "Each judged by the chains that were held out.", out);
    pl_str_append(out, "<table class='labels'><tr>");
    for (int k = 0; k < HEADS; k++) pl_str_printf(out, "<th%s>%s</th>", k ? " class='n'" : "", heads[k]);
    pl_str_append(out, "</tr>\n");
    for (uint32_t i = 0; i < p->rows; i++) {
        const pl_chains_row *r = &p->row[i];
        const uint64_t count[] = {r->latents, r->chains, r->tokens};
        pl_str_append(out, "<tr><td>");
        pl_html_text(out, r->name);
        pl_str_append(out, "</td>");
        for (int k = 0; k < 3; k++) pl_str_printf(out, "<td class='n'>%" PRIu64 "</td>", count[k]);
        pl_str_printf(out, "<td class='n'>%.3f</td><td class='n'>%.3f</td></tr>\n", r->token_accuracy,
                      r->answer_accuracy);
    }
    pl_str_append(out, "</table></section>\n");
}

void pl_chains_html(const pl_chains_report *p, pl_str *out)
{
    char number[64];
    pl_html_results_begin(title, "Steps that become latent thoughts, a stage at a time.", out);
    pl_html_cards_begin(out);
    snprintf(number, sizeof number, "%u of %u", p->rows, p->stages);
    pl_html_card(number, "trainings are done", out);
    if (p->rows) {
        snprintf(number, sizeof number, "%.3f", p->row[p->rows - 1].answer_accuracy);
        pl_html_card(number, "of the answers are right, after the last of them", out);
    }
    pl_html_cards_end(out);
    put_table(p, out);
    pl_html_page_end(out);
}
