/* What several trainings of a model that reads pages have brought, and what those of its denoiser, its policy and its
 * adapter before them have, each judged by pages that it never saw: a table as text, as JSON and as a page. Plain
 * values: whoever knows what they mean fills them in. */
#ifndef PL_REPORT_WORDS_READ_H
#define PL_REPORT_WORDS_READ_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

typedef struct pl_words_read_row {
    const char *name; /* of the training */
    uint64_t pages, words;
    bool cleans; /* it reads nothing, its words are 0: what it has to show is noise_left */
    double token_accuracy, exact_accuracy, q_halt_accuracy; /* shares of words, of pages, of pages */
    double noise_left;    /* of what noise adds to the features or pages, in squares, the share that is left */
    double denoised_left; /* likewise of what the denoiser alone makes of the pages; below 0: it is none of these */
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
