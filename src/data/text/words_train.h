/* The tokenizer of words of a text: <PAD>, <UNK>, <BOS>, <EOS> and <MASK>, then the words that occur most often
 * (equally frequent ones by their bytes), as Hugging Face's WordLevelTrainer numbers them with these special tokens,
 * Lowercase and WhitespaceSplit. */
#ifndef PL_DATA_WORDS_TRAIN_H
#define PL_DATA_WORDS_TRAIN_H

#include "data/text/tokenizer.h"
#include "texts/corpus.h"

enum { PL_WORDS_SPECIAL = 5, PL_WORDS_UNKNOWN = 1, PL_WORDS_END = 3 };

uint64_t pl_words_train_bytes(void); /* heap that it holds at most, for any text */
/* vocab: at most so many ids, the special ones included. evicted: occurrences of words that left the table, as rare
 * ones do when it is full (words.h). */
pl_status pl_words_train(pl_corpus *, uint32_t vocab, uint64_t *evicted, pl_tokenizer **, pl_error *);

#endif
