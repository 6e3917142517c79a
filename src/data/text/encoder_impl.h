/* The inside of an encoder. Text passes through two windows:
 *
 *   raw    the text as it is, in which added tokens are found that are looked for there; what lies between two of them
 *          is a segment, and goes on
 *   text   the segment in its normal form, in which the other added tokens are found; what lies between two of these is
 *          cut into pieces, and each piece merged.
 *
 * In both, what is before `start` is done, and up to `searched` no added token begins. */
#ifndef PL_DATA_ENCODER_IMPL_H
#define PL_DATA_ENCODER_IMPL_H

#include "data/text/bpe_merge.h"
#include "data/text/encoder.h"
#include "data/text/word_split.h"

enum {
    PL_ENCODER_RAW = 8192, /* ≥ twice what a search for added tokens looks ahead */
    PL_ENCODER_OUT_IDS = 4096,
    PL_ENCODER_CACHE_SLOTS = 8192,
    PL_CACHED_BYTES = 22,
    PL_CACHED_IDS = 10,
};

typedef struct pl_cached_piece { /* one cache line */
    uint8_t bytes, ids, text[PL_CACHED_BYTES];
    uint32_t id[PL_CACHED_IDS];
} pl_cached_piece;

typedef struct pl_window {
    uint8_t *byte;
    size_t capacity, start, end, searched;
    bool strips; /* white space at its start goes with the added token before it */
} pl_window;

struct pl_encoder {
    const pl_tokenizer *tokenizer;
    pl_id_sink sink;
    void *context;
    pl_encode_options options;
    pl_window raw, text;
    size_t piece_max, enough; /* fewer bytes cannot tell where the first piece ends: twice what was too few */
    uint64_t taken;           /* bytes of the text that left the raw window */
    bool is_open;             /* a text has begun */
    bool segment_begins;      /* the next byte is the first of a segment of raw text, … */
    bool part_begins;         /* … of what lies between two added tokens of any kind */
    bool is_first;            /* this part, or the next one, is at the beginning of the text */
    uint32_t out_count;
    uint32_t cluster_count;
    uint32_t out[PL_ENCODER_OUT_IDS];
    pl_bpe_work work;
    pl_cached_piece *cache;
    uint32_t *cluster;   /* of characters that may be composed, and room for their normal form */
    pl_word_split split; /* for words */
};

/* ---- encoder_text.c ---- */
pl_status pl_encoder_put(pl_encoder *, uint32_t id, pl_error *);
pl_status pl_encoder_send(pl_encoder *, pl_error *);
/* Encodes what can be of the text window; `final`: the segment ends there. */
pl_status pl_encoder_drain_text(pl_encoder *, int final, pl_error *);
/* The next added token of a window. Before it, or before where one may begin, *plain ends what can be worked on,
 * without white space that goes with the token; `final` as above. */
const pl_added_token *pl_window_next(pl_window *, const pl_added_set *, bool has_blanks, int final, size_t *plain);
void pl_window_compact(pl_window *);

#endif
