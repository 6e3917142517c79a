#include "systems/trainings.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/locale.h"

enum { DIGITS = 3, TEXT = 32 };

static bool has(const pl_trainings_row *r, uint32_t k) { return !isnan(r->value[k]); }

static void add_row(const pl_trainings_report *p, const pl_trainings_row *r, pl_doc *d)
{
    pl_doc_row(d, 0);
    pl_doc_words(d, "%s", r->name);
    for (uint32_t k = 0; k < p->columns; k++)
        if (!has(r, k))
            pl_doc_blank(d);
        else if (p->column[k].is_count)
            pl_doc_count(d, (uint64_t)r->value[k]);
        else
            pl_doc_real(d, r->value[k]);
    pl_doc_row_end(d);
}

static void add_table(const pl_trainings_report *p, pl_doc *d)
{
    pl_doc_column columns[PL_TRAININGS_COLUMNS_MAX + 1] = {{"training", "training"}};
    for (uint32_t k = 0; k < p->columns; k++) {
        const pl_trainings_column *c = &p->column[k];
        columns[k + 1] = (pl_doc_column){c->key, c->head, c->is_count ? PL_DOC_COUNT : PL_DOC_FIXED, DIGITS};
    }
    pl_doc_table(d, "trainings", columns, (int)p->columns + 1);
    for (uint32_t i = 0; i < p->rows; i++) add_row(p, &p->row[i], d);
    pl_doc_table_end(d);
}

/* What the last of them has brought: the first value there that has words. */
static void add_card(const pl_trainings_report *p, pl_doc *d)
{
    char number[TEXT];
    const pl_trainings_row *last = &p->row[p->rows - 1];
    uint32_t k = 0;
    while (k < p->columns && !(p->column[k].card && has(last, k))) k++;
    if (k == p->columns) return;
    pl_print(number, sizeof number, "%.*f", DIGITS, last->value[k]);
    pl_doc_card(d, number, "%s", p->column[k].card);
}

void pl_trainings_add_done(pl_doc *d, uint32_t done, uint32_t stages)
{
    char number[TEXT];
    pl_doc_key_count(d, "done", done);
    pl_doc_key_count(d, "stages", stages);
    snprintf(number, sizeof number, "%" PRIu32 " of %" PRIu32, done, stages);
    pl_doc_card(d, number, "trainings are done");
}

void pl_trainings_add(const pl_trainings_report *p, pl_doc *d)
{
    pl_doc_title(d, NULL, "results", p->title);
    pl_doc_say(d, 0, "%s", p->about);
    pl_doc_key_words(d, "schema", p->schema);
    pl_trainings_add_done(d, p->rows, p->stages);
    if (p->rows) add_card(p, d);
    pl_doc_section(d, "Trainings");
    pl_doc_say(d, 0, "%s", p->judged);
    add_table(p, d);
    pl_doc_section_end(d);
}
