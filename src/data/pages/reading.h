/* Pages of words, and which words they are, as the data of a training: page n is a pure function of the seed, of n and
 * of the lexicon. It has as many words as there are capsules, or as many as fit on it. A share of the pages, by a hash
 * of their text, is kept for evaluation.
 *
 * Ports: "pages" u8 [B,H,W], "labels" i32 [B,K]: the number of the k-th word in the lexicon, −1 where there is none. */
#ifndef PL_DATA_READING_H
#define PL_DATA_READING_H

#include "data/pages/draw.h"
#include "data/pages/lexicon.h"
#include "stream/data.h"

typedef struct pl_reading_setup {
    pl_lexicon lexicon; /* taken */
    pl_font font;       /* read, into a block of pl_alloc; taken */
    uint64_t pages, seed;
    double held_out;     /* share of the pages, in [0, 1) */
    uint32_t image_size; /* pixels of a page, either way */
    uint32_t capsules, batch;
} pl_reading_setup;

typedef struct pl_reading {
    pl_data data; /* first: this is one. Identity: "lexicon", "font", "pages" */
    pl_source source;
    pl_reading_setup setup;
    pl_draw draw;
    pl_page_geometry geometry;
    uint32_t columns, rows; /* of a page */
    uint32_t *page[2];      /* the numbers of each part's pages, ascending */
    uint64_t count[2];
} pl_reading;

/* Takes lexicon and font, also when it fails. PL_E_CONFIG where no word fits on a page or a part has no pages. */
pl_status pl_reading_open(pl_reading_setup *, pl_reading **, pl_error *);
static inline const pl_reading *pl_reading_of(const pl_data *d) { return (const pl_reading *)d; }

/* Words of page `number`, at most as many as there are capsules: their numbers. Asks for no memory. */
uint32_t pl_reading_words(const pl_reading *, uint64_t number, uint32_t *word);

#endif
