/* Pages of words, and which words they are, as the data of a training: page n is a pure function of the seed, of n and
 * of the lexicon. It has as many words as there are capsules, or as many as fit on it. A share of the pages, by a hash
 * of their text, is kept for evaluation.
 *
 * Ports: "pages" u8 [B,H,W], "labels" i32 [B,K]: the number of the k-th word in the lexicon, −1 where there is none.
 * For a model that makes pages noisy two more: "noise" f32 [B,PL_ROLLOUT_COLUMNS] and "numbers" i64 [B,PL_ROLLOUT_IDS]
 * (base/rollout.h): page n of epoch e has the deviation and the number that these two say.
 * For a model that chooses how a page is drawn "pages" is u8 [B,PL_POLICY_SIZES,H,W] (base/policy.h), and after the
 * labels, or in their place where nothing is read, comes "feature" f32 [B,PL_POLICY_FEATURES+1] (trigrams.h), which
 * ends with 1, or 0 for a row without a page. With labels and noise it has the columns of "noise", too.
 * Where what the model makes of pages is kept, two more: "features" f32, or "denoised" u8 [B,H,W,3], and "missing"
 * i32 [1]: 1 where that of some page is not known, and the model is to make all of it and give the port back. Where
 * pages come in all sizes, what is kept takes their place, at the beginning of the port. */
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
    uint64_t weights_hash; /* of the file, or of the one with which the resumed run began; else 0 */
    bool weights_exceed_f16;
    const char *weights_said; /* what is said of it, in the plan; copied */
    /* What the frozen part makes of a page, and the model gives back: so many f32, kept in this file, copied. */
    uint64_t features;   /* 0: it gives nothing back */
    bool keeps_features; /* false: the model has these ports, but the command has no file */
    const char *features_path;
    uint64_t features_bytes; /* the file's bound */
    /* Or the pages that come out of the denoiser, u8 in three colours, are kept. */
    bool keeps_images;         /* the model has these ports */
    const char *images_folder; /* where they are kept; NULL: the command has no cache; needed while they are open */
    uint64_t images_bytes;     /* the cache's bound */
    uint64_t kept_key;         /* what either depends on besides pages and weights */
    double noise;              /* largest deviation of the noise that the model adds, pixels being 0 to 1 */
    bool makes_noisy;          /* does the model add it? */
    bool denoises;             /* the model's outputs are pages again */
    bool chooses;              /* it chooses how pages are drawn: it gets all sizes, and the texts' features */
    bool places;               /* likewise, and it also reads the page that it chose */
    bool counts_pages;         /* an item is a page, not one of its words: nothing is read */
    uint32_t gates;            /* gates per page in each layer, over which the model reports them */
} pl_reading_setup;

/* Its ports, in this order, as far as the model has them. */
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
    uint8_t *packed;            /* room for one page, for the thread that runs the programs */
    pl_module draw;
    pl_page_geometry geometry;
    pl_page_form form;               /* points to draw, geometry and the font */
    uint32_t port[PL_READING_PORTS]; /* the number of each; UINT32_MAX: there is none */
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
