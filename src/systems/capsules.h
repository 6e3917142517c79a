/* Within src/systems: texts that are drawn and encoded, for the systems whose configs say so, and the page about the
 * results. A pl_capsules_encoding knows what the keys of their models are called. */
#ifndef PL_SYSTEMS_CAPSULES_H
#define PL_SYSTEMS_CAPSULES_H

#include "data/pages/texts.h"
#include "store/weights.h"
#include "systems/system.h"

#define PL_CAPSULES_INDEX "texts.index" /* in the folder of the run */

/* What a config says about the pages, and about what its model makes of each. */
typedef struct pl_encoder_facts {
    uint32_t image_size;                          /* pixels of a page, either way */
    uint32_t capsules, width, checksum, children; /* per text: capsules; per capsule: numbers, children */
    bool entropy;                                 /* of each capsule's attention: one more dataset */
    uint32_t at_once;                             /* texts in memory; 0: the planner chooses */
    const char *font;                             /* "": the one that pl_font_load finds */
    uint64_t seed;                                /* of a grammar's texts */
} pl_encoder_facts;

/* The file of weights that the model begins with. */
typedef struct pl_encoder_weights {
    char path[PL_FILE_PATH_MAX]; /* "": none, the weights are random */
    uint64_t hash;
    const pl_weights_part *part;
    char said[320];  /* about them, for people; "": nothing */
    bool is_another; /* than was asked for, which causes a warning */
} pl_encoder_weights;

typedef struct pl_capsules_encoding {
    pl_encoder_facts (*facts)(const pl_config *); /* texts are the config's */
    /* Checks the file before a plan is made. PL_E_DATA, PL_E_CONFIG. */
    pl_status (*find_weights)(const pl_config *, pl_data_use, pl_encoder_weights *, pl_error *);
    const char *extent; /* pl_pages_setup */
} pl_capsules_encoding;

/* Which texts a config names; strings are the config's. */
pl_status pl_capsules_texts(const pl_capsules_encoding *, const pl_config *, pl_texts_setup *, pl_error *);
/* Checks that need several keys of texts and pipeline. PL_E_CONFIG. */
pl_status pl_capsules_check_texts(const pl_config *, pl_error *);

/* pl_system: check_folder, prepare and open of the command encode. */
pl_status pl_capsules_check_folder(pl_preparation *, pl_command, pl_error *);
pl_status pl_capsules_prepare(const pl_capsules_encoding *, pl_preparation *, pl_progress, void *context, pl_error *);
pl_status pl_capsules_open(const pl_capsules_encoding *, const pl_config *, pl_data_use, const pl_facts *planned,
                           pl_data **, pl_error *);

/* ---- capsules_page.c: pl_system.page ---- */
pl_status pl_capsules_page_write(const pl_capsules_encoding *, const pl_config *, const pl_page_wish *, pl_doc *,
                                 pl_error *);

#endif
