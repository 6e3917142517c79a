/* What a pretrained model is judged by, as ids in a file without a name: texts, or prompts with choices. It is made
 * before planning (judged_make.c), because readers and encoders of text ask for memory that grows with what
 * they meet; a run only reads it, in memory that does not depend on its length.
 *
 *   head
 *   u32 …   a text: its ids, then PL_TOKEN_NONE
 *           a prompt: how many choices, the right one or PL_TOKEN_NONE; for each choice the first id that is judged,
 *           how many ids, characters, and the ids of prompt and choice together */
#ifndef PL_DATA_JUDGED_H
#define PL_DATA_JUDGED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "data/text/tokenizer.h"
#include "texts/corpus.h"

#define PL_JUDGED_MAGIC "plimsoll judged"
/* Part of the data's identity: the file's descriptor, the same in the process that planned and the one that runs, and
 * a part of its key. */
#define PL_FACT_JUDGED "judged"

typedef struct pl_judged_head {
    char magic[sizeof PL_JUDGED_MAGIC];
    uint64_t key; /* tells this file from others with its descriptor */
    uint64_t items;
    uint64_t tokens, bytes; /* of texts, without what the tokenizer's template adds */
    uint64_t stride;        /* of windows; 0: chunks, of which the second half is judged */
    uint32_t bos;           /* with which a text begins; PL_TOKEN_NONE: with none */
    uint32_t has_choices;
} pl_judged_head;

enum { PL_JUDGED_KEY_BITS = 32, PL_JUDGED_BLOCK = 1024, PL_JUDGED_CHOICES_MAX = 256 /* of a prompt */ };

static inline uint64_t pl_judged_fact(const pl_judged_head *h, int fd)
{
    return h->key >> PL_JUDGED_KEY_BITS << PL_JUDGED_KEY_BITS | (uint64_t)fd;
}

typedef struct pl_judged {
    int fd; /* the caller's */
    pl_judged_head head;
    uint64_t at, end; /* in the file */
    uint32_t block[PL_JUDGED_BLOCK], count, next;
} pl_judged;

/* ---- judged_make.c: before planning ---- */
typedef struct pl_judged_wish {
    pl_corpus_wish texts; /* those to judge, or lines {"prompt": "…", "choices": ["…"], "answer": 0} */
    bool has_choices;
    const pl_tokenizer *tokenizer;
    uint32_t vocab;          /* of the model */
    uint64_t window, stride; /* tokens; as in the head */
    const char *folder;      /* for the file */
    bool is_memory;          /* it lies in memory (tmpfs), and is refused */
} pl_judged_wish;
/* *fd is for close. PL_E_DATA: a text is too short or is not UTF-8, or a line has another form. */
pl_status pl_judged_make(const pl_judged_wish *, int *fd, uint64_t *fact, pl_error *);

/* ---- judged.c ---- */
/* The file of a plan with this fact; *fd is for close. PL_E_DATA where it is not there. */
pl_status pl_judged_find(uint64_t fact, int *fd, pl_error *);
/* From its beginning, any number of times. */
pl_status pl_judged_begin(pl_judged *, int fd, pl_error *);
/* The next number; *more false: there is none. Asks for no memory. */
pl_status pl_judged_next(pl_judged *, uint32_t *number, bool *more, pl_error *);

#endif
