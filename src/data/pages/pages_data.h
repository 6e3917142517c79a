/* Texts drawn as pages, as the data of a command: text n of a source (texts.h) is sample n, and a step of the source is
 * a block of the results. The results go into a block file, whose layout is made here: for each text its sketches,
 * checksums and children, and remarks, a byte of PL_PAGE_… bits that says what is not as intended about its page, or
 * about its capsules, which the encoder adds.
 *
 * Kind of blocks: "texts" (text by block_texts). */
#ifndef PL_DATA_PAGES_DATA_H
#define PL_DATA_PAGES_DATA_H

#include "data/pages/cache.h"
#include "data/pages/draw.h"
#include "data/pages/texts.h"
#include "store/block_sink.h"
#include "stream/data.h"

/* A bit of remarks, a word for it in plural, and the rest of a sentence "… of 1,000 pages …". */
#define PL_PAGE_REMARKS(X)                                                                                             \
    X(TRUNCATED, "truncated", "are longer than a page")                                                                \
    X(INVALID, "invalid", "have bytes that are no UTF-8, drawn as U+FFFD")                                             \
    X(MISSING, "missing_glyphs", "have characters that the font lacks, drawn as its box")                              \
    X(UNSHAPED, "unshaped", "have lines whose letters could not be joined or ordered")                                 \
    X(NOT_FINITE, "not_finite", "have capsules with numbers that are infinite or NaN")
#define PL_PAGE_REMARK_PLACE(c, word, text) PL_PAGE_PLACE_##c,
enum { PL_PAGE_REMARKS(PL_PAGE_REMARK_PLACE) PL_PAGE_REMARK_COUNT };

/* What drawing a page remarked, as bits. whole: all of the text was there to be drawn. */
uint8_t pl_page_remark_bits(const pl_page_remarks *, bool whole);

/* Bytes of a text without a last character that was cut for lack of room. */
size_t pl_page_without_cut(const char *text, size_t bytes);

/* What a config says, as plain values; texts are copied. */
typedef struct pl_pages_setup {
    pl_texts texts;        /* opened; or only a count, to plan for texts that nobody reads */
    const char *names;     /* of the texts, as the user gave them; needed only while the data are opened */
    pl_font font;          /* read, into a block of pl_alloc */
    uint64_t first, count; /* the texts that are worked on: first … first + count − 1 */
    uint32_t image_size;   /* pixels of a page, either way */
    uint32_t capsules, width, checksum, children; /* per text: capsules, and the numbers and children of each */
    bool entropy;                                 /* also a dataset: the entropy of each capsule's attention */
    uint32_t block, at_once;                      /* texts of a block; those in memory, 0: the planner chooses */
    uint32_t threads;                             /* drawing threads */
    double limit_seconds;                         /* for a run; 0: none */
    const char *weights;                          /* file that the model begins with; NULL: none */
    uint64_t weights_hash;                        /* that file's */
    const struct pl_weights_part *weights_part;   /* what is read of it; NULL: all; a constant */
    const char *weights_said;                     /* about them, for people; "" or NULL: nothing */
    bool weights_are_others;                      /* not those asked for, which is a warning */
    const char *extent;                           /* asks its model for the program "encode"; NULL: it has one */
    const char *cache;                            /* folder of a cache of pages; NULL: none */
    uint64_t cache_bytes;                         /* its file's bound */
    bool cache_is_memory, opens_cache;            /* its disk is memory; pages are drawn with it, not only planned */
    const char *path;                             /* the results' path */
    pl_block_form form;
    const char *text; /* the config that made them */
} pl_pages_setup;

typedef struct pl_pages_data {
    pl_data data; /* first: this is one */
    pl_source source;
    pl_pages_setup setup;
    pl_module draw;
    pl_page_geometry geometry;
    pl_page_form form; /* points to draw, geometry and the font */
    pl_block_sink sink;
    pl_block_layout layout;
    pl_block_kind kind;
    pl_block_dataset dataset[5];
    uint32_t block; /* texts of a block, from the config, so that parts of any size have the same blocks */
    char *path, *text, *weights;
    pl_page_cache *cache; /* NULL: none */
} pl_pages_data;

/* Datasets, and the stored ports with two exceptions: the entropy's port is the attention it is computed from, and a
 * witness's last port is its pages. */
enum { PL_PAGES_SKETCHES, PL_PAGES_CHECKSUMS, PL_PAGES_CHILDREN, PL_PAGES_REMARKS, PL_PAGES_ENTROPY };

/* Takes the texts and the font of the setup, also when it fails. PL_E_CONFIG, PL_E_NOMEM. */
pl_status pl_pages_data_open(pl_pages_setup *, pl_pages_data **, pl_error *);
/* Reduces the work to that text, for a witness: it has no results. PL_E_CONFIG. */
pl_status pl_pages_data_witness(pl_pages_data *, uint64_t number, const char *fact, pl_error *);
/* Makes each text a step, for a calibration: it has no results. */
void pl_pages_data_calibrate(pl_pages_data *);
static inline const pl_pages_data *pl_pages_data_of(const pl_data *d) { return (const pl_pages_data *)d; }

#endif
