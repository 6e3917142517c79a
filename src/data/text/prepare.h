/* From texts to a tokenizer and a token file, once: both are kept and reused while the texts and the wish are the same.
 * Texts are read in blocks, up to three times; neither they nor their tokens are ever whole in memory.
 *
 * A plain file (texts/corpus.h) is one text, as it is. In all others each text that is not empty gets an end: the
 * tokenizer's token for that where it has one (pl_tokenizer_end_id), else a line feed, unless it ends with one. */
#ifndef PL_DATA_PREPARE_H
#define PL_DATA_PREPARE_H

#include "texts/corpus.h"
#include "data/text/tokenizer.h"
#include "data/text/tokens.h"

typedef struct pl_text_options {
    pl_corpus_wish text;
    const char *tokenizer_path; /* tokenizer.json, there or to be made */
    const char *tokens_path;    /* the token file, there or to be made */
    int given;                  /* the tokenizer is the user's: it is read, never trained or written */
    pl_tokenizer_kind kind;     /* unless given */
    uint32_t vocab;             /* bpe, chars, words: at most so many ids */
    pl_text_progress progress;  /* may be NULL */
    void *context;
    /* Called once before the first file is written, never when all is reused: makes the folders, keeps others out. May
     * be NULL. */
    pl_status (*before_writing)(void *, pl_error *);
    void *writing;
} pl_text_options;

typedef struct pl_text_result {
    int tokenizer_reused, tokens_reused;
    uint64_t evicted;    /* see pl_bpe_trainer_evicted; 0 when nothing was trained */
    char reason[256];    /* why tokens were made again although there was a file; empty otherwise */
    pl_tokens_info info; /* of the token file */
} pl_text_result;

/* Heap it holds at most, for any text whose token count is at most `tokens` (0: unknown, the checksums' table not
 * counted). */
uint64_t pl_text_prepare_bytes(const pl_text_options *, uint64_t tokens);
/* On success the tokenizer is the caller's, and the token file at tokens_path is complete. */
pl_status pl_text_prepare(const pl_text_options *, pl_tokenizer **, pl_text_result *, pl_error *);

/* The hash of texts as token files keep it: from the one at tokens_path when that was made from these texts and their
 * origin still matches (base/origin.h), else by reading them all. */
pl_status pl_text_find_hash(const pl_corpus_wish *, const char *tokens_path, uint64_t *hash, pl_error *);

/* Were the tokens at tokens_path, which have this info, made from these texts? A text that is missing contradicts
 * nothing. */
pl_status pl_text_match(const pl_corpus_wish *, const char *tokens_path, const pl_tokens_info *, bool *same,
                        pl_error *);

/* Bytes of text that tokens [begin, end) stand for (for bits per byte); an unknown character counts 3, and a mere end
 * of one of several texts nothing. Streams. */
pl_status pl_text_count_bytes(pl_tokens_reader *, const pl_tokenizer *, uint64_t begin, uint64_t end, uint64_t *bytes,
                              pl_error *);

#endif
