/* What several trainings have brought, each judged by what it never saw: a table as text, as JSON and as a page. Plain
 * values: whoever knows what they mean fills them in. */
#ifndef PL_REPORT_TRAININGS_H
#define PL_REPORT_TRAININGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

enum { PL_TRAININGS_COLUMNS_MAX = 8 };

typedef struct pl_trainings_column {
    const char *head, *key; /* "words read", and "token_accuracy" in JSON */
    bool is_count;          /* not a share */
    bool may_miss;          /* left out where no training has a value there */
    const char *aside;      /* not in the table of the text, which it would make too wide for a terminal, but below it:
                               "of the same noise the denoiser alone leaves" and its value; NULL: in the table */
    const char *card;       /* what the last training's value is on the page, "of the words are read"; NULL: nothing */
} pl_trainings_column;

typedef struct pl_trainings_row {
    const char *name;                       /* of the training */
    double value[PL_TRAININGS_COLUMNS_MAX]; /* NaN: it has none */
} pl_trainings_row;

typedef struct pl_trainings_report {
    const char *title, *schema;
    const char *about, *judged; /* sentences of the page: what they are, and by what each is judged */
    const pl_trainings_column *column;
    const pl_trainings_row *row;
    uint32_t columns, rows, stages; /* rows: that are done, of all stages */
} pl_trainings_report;

void pl_trainings_text(const pl_trainings_report *, pl_str *);
void pl_trainings_json(const pl_trainings_report *, pl_str *);
void pl_trainings_html(const pl_trainings_report *, pl_str *);

#endif
