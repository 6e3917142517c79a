/* Training byte-level BPE from a text of any size in memory that is known beforehand.
 *
 * Ids: the special token (if any) is 0, then the 256 bytes in the order of their GPT-2 characters, then the merges in
 * the order in which they were found: as Hugging Face's BpeTrainer numbers them with the same special token and the
 * byte-level alphabet. With words and table uncapped by the limits the merges are the same too. */
#ifndef PL_DATA_BPE_TRAIN_H
#define PL_DATA_BPE_TRAIN_H

#include "texts/corpus.h"
#include "data/text/tokenizer.h"

enum { PL_BPE_VOCAB_MAX = 65535, PL_BPE_WORD_BYTES_MAX = 255 };

typedef struct pl_bpe_options {
    uint32_t vocab;           /* special token and 256 bytes included; fewer come out when the text has no more pairs */
    const char *special;      /* PL_END_OF_TEXT, or NULL for none */
    uint64_t min_count;       /* a pair that occurs less often is not merged */
    uint32_t word_bytes;      /* longer words are cut at this length, between characters */
    uint32_t word_limit;      /* words in the table; beyond that, the rarest leave (words.h) */
    uint32_t word_text_limit; /* bytes of the words in the table */
} pl_bpe_options;

/* special <|endoftext|>, min_count 2, words of 128 bytes, 262,144 of them with 2.5 MB of text. */
pl_bpe_options pl_bpe_options_default(uint32_t vocab);
/* PL_E_CONFIG with a sentence when a number is out of range. */
pl_status pl_bpe_options_check(const pl_bpe_options *, pl_error *);

uint64_t pl_bpe_train_bytes(const pl_bpe_options *); /* heap that training holds at most, for any text */

typedef struct pl_bpe_trainer pl_bpe_trainer;
pl_status pl_bpe_trainer_create(const pl_bpe_options *, pl_bpe_trainer **, pl_error *);
void pl_bpe_trainer_feed(pl_bpe_trainer *, const void *text, size_t bytes);
/* A text ends here, and another one follows: no word spans both. */
void pl_bpe_trainer_cut(pl_bpe_trainer *);
/* The text ends here: nothing is fed any more. Harmless a second time. */
pl_status pl_bpe_trainer_close(pl_bpe_trainer *, pl_error *);
/* After close: one merge; false when none is left. */
bool pl_bpe_trainer_merge(pl_bpe_trainer *);
/* Closes and does all remaining merges. Once. */
pl_status pl_bpe_trainer_finish(pl_bpe_trainer *, pl_tokenizer **, pl_error *);
/* Occurrences of evicted words, which training did not see in full. */
uint64_t pl_bpe_trainer_evicted(const pl_bpe_trainer *);
void pl_bpe_trainer_destroy(pl_bpe_trainer *);

/* All steps over the texts. evicted (of pl_bpe_trainer_evicted) may be NULL. The corpus's progress is called for each
 * block and each merge: PL_E_STOPPED after either. */
pl_status pl_bpe_train(pl_corpus *, const pl_bpe_options *, uint64_t *evicted, pl_tokenizer **, pl_error *);

#endif
