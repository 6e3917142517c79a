/* What several trainings have brought, each judged by what it never saw. Plain values: whoever knows what they mean
 * fills them in. */
#ifndef PL_SYSTEMS_TRAININGS_H
#define PL_SYSTEMS_TRAININGS_H

#include "show/doc.h"

enum { PL_TRAININGS_COLUMNS_MAX = 8 };

typedef struct pl_trainings_column {
    const char *head, *key; /* "words read", and "token_accuracy" in JSON */
    bool is_count;          /* not a share */
    const char *card;       /* what the last training's value is from afar, "of the words are read"; NULL: nothing */
} pl_trainings_column;

typedef struct pl_trainings_row {
    const char *name;                       /* of the training */
    double value[PL_TRAININGS_COLUMNS_MAX]; /* NaN: it has none */
} pl_trainings_row;

typedef struct pl_trainings_report {
    const char *title, *schema;
    const char *about, *judged; /* sentences: what they are, and by what each is judged */
    const pl_trainings_column *column;
    const pl_trainings_row *row;
    uint32_t columns, rows, stages; /* rows: that are done, of all stages */
} pl_trainings_report;

void pl_trainings_add(const pl_trainings_report *, pl_doc *);
void pl_trainings_add_done(pl_doc *, uint32_t done, uint32_t stages);

#endif
