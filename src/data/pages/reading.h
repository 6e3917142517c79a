/* Pages of words, and which words they are, as the data of a training: page n is a pure function of the seed, of n and
 * of the lexicon. It has as many words as there are capsules, or as many as fit on it. A share of the pages, by a hash
 * of their text, is kept for evaluation.
 *
 * Ports: "pages" u8 [B,H,W], "labels" i32 [B,K]: the number of the k-th word in the lexicon, −1 where there is none.
 * For a model that makes pages noisy two more: "noise" f32 [B,PL_ROLLOUT_COLUMNS] and "numbers" i64 [B,PL_ROLLOUT_IDS]
 * (base/rollout.h): page n of epoch e has the deviation and the number that these two say.
 * For a model that chooses how a page is drawn "pages" is u8 [B,PL_POLICY_SIZES,H,W] (base/policy.h), and behind the
 * labels, or in their place where nothing is read, there is "feature" f32 [B,PL_POLICY_FEATURES+1] (trigrams.h); behind
 * it stands 1, or 0 for what is no page. Behind labels and with noise, "feature" has the columns of "noise", too.
 * Where what the model makes of pages is kept, two more: "features" f32, or "denoised" u8 [B,H,W,3], and "missing"
 * i32 [1]: 1 where that of some page is not known, and the model is to make them all and give the port back. Of pages
 * that come in all sizes what is kept stands in their place, from the beginning. */
#ifndef PL_DATA_READING_H
#define PL_DATA_READING_H

#include "data/pages/cache.h"
#include "data/pages/draw.h"
#include "data/pages/page_features.h"
#include "data/pages/lexicon.h"
#include "stream/data.h"

typedef struct pl_reading_setup {
    pl_lexicon lexicon; /* taken */
    pl_font font;       /* read, into a block of pl_alloc; taken */
    uint64_t pages, seed;
    double held_out;     /* share of the pages, in [0, 1) */
    uint32_t image_size; /* pixels of a page, either way */
    uint32_t capsules, batch;
    const char *weights; /* file that a part of the model begins with, copied; NULL: none */
    const struct pl_weights_part *weights_part;
    uint64_t weights_hash; /* of the file; without one, of that which the run to go on with began with, or 0 */
    bool weights_exceed_f16;
    const char *weights_said; /* what is said of it, in the plan; copied */
    /* What the frozen part makes of a page, which the model gives back: so many f32, kept in this file, copied. */
    uint64_t features;   /* 0: it gives nothing back */
    bool keeps_features; /* false: the model has these ports, but the command has no file */
    const char *features_path;
    uint64_t features_bytes; /* of the file, at most */
    /* Or so are the pages as they come through the denoiser, u8 in three colours. */
    bool keeps_images;         /* the model has these ports */
    const char *images_folder; /* where they are kept; NULL: the command has no cache. As long as they are opened */
    uint64_t images_bytes;     /* of the cache, at most */
    uint64_t kept_key;         /* what either depends on beside pages and weights */
    double noise;              /* largest deviation, pixels being 0 to 1, of what the model is to add to pages */
    bool makes_noisy;          /* and whether it is */
    bool denoises;             /* what the model makes are pages again */
    bool chooses;              /* and how they are drawn: it is to have them in all sizes, and their texts' features */
    bool places;               /* likewise, and it reads the page that it chose */
    bool counts_pages;         /* an item is a page, not a word of it: nothing is read */
    uint32_t gates;            /* of a page, in each layer of gates: what the model tells of them is of so many */
} pl_reading_setup;

/* What it brings, in this order, as far as the model is to have it. */
typedef enum pl_reading_port {
    PL_READING_PAGES,
    PL_READING_LABELS,
    PL_READING_FEATURE,
    PL_READING_NOISE,
    PL_READING_NUMBERS,
    PL_READING_KEPT,
    PL_READING_MISSING,
    PL_READING_PORTS
} pl_reading_port;

typedef struct pl_reading {
    pl_data data; /* first: this is one. Identity: "lexicon", "font", "pages", perhaps PL_FACT_WEIGHTS */
    pl_source source;
    pl_reading_setup setup;
    char *weights;              /* its path */
    pl_page_features *features; /* NULL: none are kept */
    pl_page_cache *images;      /* NULL: none are kept */
    uint8_t *packed;            /* room for one of them, of who runs the programs */
    pl_module draw;
    pl_page_geometry geometry;
    pl_page_form form;               /* of both, and the font */
    uint32_t port[PL_READING_PORTS]; /* where each stands; UINT32_MAX: it is not there */
    uint32_t columns, rows;          /* of a page */
    uint32_t *page[2];               /* the numbers of each part's pages, ascending */
    uint64_t count[2];
} pl_reading;

/* Takes lexicon and font, also when it fails. PL_E_CONFIG where no word fits on a page or a part has no pages. */
pl_status pl_reading_open(pl_reading_setup *, pl_reading **, pl_error *);
static inline const pl_reading *pl_reading_of(const pl_data *d) { return (const pl_reading *)d; }

/* Words of page `number`, at most as many as there are capsules: their numbers. Asks for no memory. */
uint32_t pl_reading_words(const pl_reading *, uint64_t number, uint32_t *word);

#endif
