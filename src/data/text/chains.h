/* Chains of thought (docs/chain.md): how a question, its steps and its answer lie in a sequence, and the file of
 * them, made once from lines of JSON.
 *
 *      0 ........ Q   Q+1 ..... Q+n   Q+1+n ......................... T - 1
 *      question  bot  n latents        eot  steps that are left  answer
 *
 * All places are fixed: a question stands at the end of its Q places, behind padding; n latents are there whatever a
 * chain has; behind the end there is padding again. Steps end in a line feed; the answer stands between its mark and
 * the end (base/chain.h).
 *
 * The file is a token file (tokens.h). Of each chain it has the Q tokens of the question and the R = T - Q - 1 - n
 * behind eot, which are the targets; and behind the last chain one number for each, how many of its R tokens are no
 * padding. Its recipe is that of the layout. */
#ifndef PL_DATA_CHAINS_H
#define PL_DATA_CHAINS_H

#include "base/chain.h"
#include "base/text_file.h"
#include "data/text/tokens.h"

enum { PL_CHAIN_SEQUENCE_MAX = 65535 };

typedef struct pl_chain_layout {
    uint32_t sequence; /* T, at most PL_CHAIN_SEQUENCE_MAX */
    uint32_t question; /* Q */
    uint32_t latents;  /* n, all of them */
    uint32_t replaced; /* steps at the front that are left out, or all there are */
    bool answer_only;  /* all are */
} pl_chain_layout;

/* R; 0 or below: there is no room. */
static inline int64_t pl_chain_rest(const pl_chain_layout *l)
{
    return (int64_t)l->sequence - l->question - 1 - l->latents;
}
static inline uint64_t pl_chain_record(const pl_chain_layout *l) { return l->question + (uint64_t)pl_chain_rest(l); }
uint64_t pl_chain_recipe(const pl_chain_layout *);

typedef struct pl_chains_options {
    const char *path;        /* of the lines */
    const char *tokens_path; /* where the file is, or is to be */
    pl_chain_layout layout;
    pl_text_progress progress; /* may be NULL */
    void *context;
    /* Called before the file is written, never when it is used again. */
    pl_status (*before_writing)(void *, pl_error *);
    void *writing;
} pl_chains_options;

/* PL_E_DATA where a line is no chain or too long, with its number. */
pl_status pl_chains_prepare(const pl_chains_options *, pl_error *);

/* ---- chain_line.c ---- */
typedef struct pl_chain_line {
    const char *path; /* for sentences */
    uint64_t number;
    const char *text;
    size_t bytes;
} pl_chain_line;
/* record: pl_chain_record ids; *counted: how many of the last R are no padding. */
pl_status pl_chain_line_parse(const pl_chain_line *, const pl_chain_layout *, uint32_t *record, uint32_t *counted,
                              pl_error *);

#endif
