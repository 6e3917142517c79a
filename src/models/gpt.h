/* What arch gpt is made of, for archs that put its blocks together in another way. Within this folder. */
#ifndef PL_MODELS_GPT_H
#define PL_MODELS_GPT_H

#include "models/language.h"

/* x [B,T,width] through all blocks and the last norm. */
pl_id pl_gpt_through(const pl_language *, pl_id x);
pl_id pl_gpt_token_table(const pl_language *);   /* [V,width] */
pl_id pl_gpt_place_table(const pl_language *);   /* [sequence,width] */
pl_id pl_gpt_output_weight(const pl_language *); /* [V,width] */

pl_status pl_gpt_check(const pl_config *, pl_error *);

#endif
