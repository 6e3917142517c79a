/* What several trainings of a model that reads pages have brought, each judged by pages that it never saw: a table as
 * text, as JSON and as a page. Plain values: whoever knows what they mean fills them in. */
#ifndef PL_REPORT_WORDS_READ_H
#define PL_REPORT_WORDS_READ_H

#include <stdint.h>

#include "base/str.h"

typedef struct pl_words_read_row {
    const char *name; /* of the training */
    uint64_t pages, words;
    double token_accuracy, exact_accuracy, q_halt_accuracy; /* shares of words, of pages, of pages */
} pl_words_read_row;

typedef struct pl_words_read_report {
    const char *title;
    const pl_words_read_row *row;
    uint32_t rows, stages; /* that are done, of all */
} pl_words_read_report;

void pl_words_read_text(const pl_words_read_report *, pl_str *);
void pl_words_read_json(const pl_words_read_report *, pl_str *);
void pl_words_read_html(const pl_words_read_report *, pl_str *);

#endif
