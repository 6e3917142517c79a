/* The page about capsules, within src/systems: its state and its parts. Everything is read piece by piece: the page
 * takes some megabytes for results of any size. */
#ifndef PL_SYSTEMS_CAPSULES_PAGE_H
#define PL_SYSTEMS_CAPSULES_PAGE_H

#include "data/pages/pages_data.h"
#include "show/doc.h"
#include "systems/capsules.h"

enum {
    PL_CAPSULES_SHOWN = 6,         /* texts that are drawn, with their neighbours */
    PL_CAPSULES_NEAR = 3,          /* neighbours of each */
    PL_CAPSULES_SAMPLE_MAX = 4096, /* texts sampled for numbers and as candidate neighbours */
    PL_CAPSULES_SAID_BYTES = 160,  /* shown of a text */
    PL_CAPSULES_SAID_ROOM = PL_CAPSULES_SAID_BYTES + 8
};

typedef struct pl_capsules_page {
    const pl_capsules_encoding *encoding;
    const pl_config *config;
    const pl_page_wish *wish;
    const pl_block_layout *layout;
    pl_doc *doc;
    uint32_t sketches, remarks, entropy; /* datasets; PL_BLOCK_NO_KIND: there is none */
    uint64_t texts, finished;            /* of the file */
    uint64_t capsules, width;
    pl_texts source; /* the texts themselves */
    bool is_known;   /* they are available; else why not: */
    pl_error why;
    uint64_t *sample; /* places of finished texts, evenly spread and in order */
    uint64_t samples;
    uint64_t shown[PL_CAPSULES_SHOWN]; /* places */
    uint32_t shown_count;
} pl_capsules_page;

/* The number of the text at a place of the file, which may be only a part of the job. */
static inline uint64_t pl_capsules_number(const pl_capsules_page *p, uint64_t place)
{
    return p->layout->first + place;
}

/* The part of a text that is shown. */
const char *pl_capsules_said(pl_capsules_page *, uint64_t place, char text[PL_CAPSULES_SAID_ROOM]);

/* Are the weights a draw of the seed, and not from a file? */
static inline bool pl_capsules_is_random(const pl_capsules_page *p)
{
    return pl_facts_value(&p->wish->made, "weights", 0) == 0;
}

/* ---- capsules_page_numbers.c: sections ---- */
pl_status pl_capsules_page_near(pl_capsules_page *, pl_error *);
pl_status pl_capsules_page_numbers(pl_capsules_page *, pl_error *);
pl_status pl_capsules_page_remarks(pl_capsules_page *, pl_error *);

#endif
