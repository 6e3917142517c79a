/* Text as a source: the ports "tokens" and "targets", i32 [micro_batch, sequence], from a token file, in the order of a
 * sampler. Rows and targets past what there is: token 0, target −1. What has been read leaves the page cache, but for
 * PL_TOKENS_CACHE_BYTES. */
#ifndef PL_DATA_TEXT_SOURCE_H
#define PL_DATA_TEXT_SOURCE_H

#include "data/text/sampler.h"
#include "data/text/tokens.h"

typedef struct pl_text_source {
    pl_source source; /* first: this is one */
    const pl_tokens *tokens;
    pl_sampler sampler[2]; /* by part */
} pl_text_source;

/* tokens: open, and open as long as the source lives. Of the options all but the number of tokens is used; without a
 * validation fraction there is no such part, and where it is whole no other. PL_E_DATA, PL_E_CONFIG as
 * pl_sampler_init. */
pl_status pl_text_source_init(pl_text_source *, const pl_tokens *, const pl_sampler_options *, pl_error *);

#endif
