/* What the stages of chains of thought have brought, each judged by chains that it never saw: a table as text, as JSON
 * and as a page. Plain values: whoever knows what they mean fills them in. */
#ifndef PL_REPORT_CHAINS_H
#define PL_REPORT_CHAINS_H

#include <stdint.h>

#include "base/str.h"

typedef struct pl_chains_row {
    const char *name; /* of the training */
    uint64_t latents, chains, tokens;
    double token_accuracy, answer_accuracy; /* shares of tokens, of chains */
} pl_chains_row;

typedef struct pl_chains_report {
    const pl_chains_row *row;
    uint32_t rows, stages; /* that are done, of all */
} pl_chains_report;

void pl_chains_text(const pl_chains_report *, pl_str *);
void pl_chains_json(const pl_chains_report *, pl_str *);
void pl_chains_html(const pl_chains_report *, pl_str *);

#endif
