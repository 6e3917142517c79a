/* Pretrained language models as a system. Private to this folder. */
#ifndef PL_SYSTEMS_PRETRAINED_H
#define PL_SYSTEMS_PRETRAINED_H

#include "data/text/tokenizer.h"
#include "pretrained/pretrained.h"

/* The one in its files. PL_E_DATA, PL_E_UNSUPPORTED. */
pl_status pl_pretrained_load_tokenizer(const pl_pretrained *, pl_tokenizer **, pl_error *);

#endif
