/* The character tokenizer of a text: <unk>, then its code points in rising order. When there are more than the
 * vocabulary has room for, the most frequent stay (of equally frequent ones the lower). Bytes that are not UTF-8 are
 * unknown. */
#ifndef PL_DATA_CHARS_H
#define PL_DATA_CHARS_H

#include "texts/corpus.h"
#include "data/text/tokenizer.h"

uint64_t pl_chars_train_bytes(void); /* heap that it holds at most, for any text */
/* vocab: at most so many ids, <unk> included; at least 2. The line feed counts as a character where it ends texts. */
pl_status pl_chars_train(pl_corpus *, uint32_t vocab, pl_tokenizer **, pl_error *);

#endif
