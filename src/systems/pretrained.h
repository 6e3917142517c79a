/* Pretrained language models as a system. Private to this folder. */
#ifndef PL_SYSTEMS_PRETRAINED_H
#define PL_SYSTEMS_PRETRAINED_H

#include "config/config.h"
#include "data/text/text_data.h"
#include "pretrained/pretrained.h"
#include "show/doc.h"

/* The one in its files. PL_E_DATA, PL_E_UNSUPPORTED. */
pl_status pl_pretrained_load_tokenizer(const pl_pretrained *, pl_tokenizer **, pl_error *);

/* The template that its chats follow, as generate.template says; what `to` holds is the caller's to free, also after a
 * failure, and its name is the model's or the config's. PL_E_DATA: there is none, and the sentence says what to do. */
pl_status pl_pretrained_load_template(const pl_pretrained *, const pl_config *, pl_text_template *to, pl_error *);

/* What it is, as its files say. */
void pl_pretrained_describe(const pl_pretrained *, const pl_text_data *, pl_doc *);
/* The model's own alone; without text where it has none. */
pl_status pl_pretrained_take_template(const pl_pretrained *, pl_text_template *to, pl_error *);

/* Sets the keys of sampling that the config leaves open as generation_config.json says; `said`: which, "" for none. */
pl_status pl_pretrained_take_sampling(pl_config *, char *said, size_t room, pl_error *);

#endif
