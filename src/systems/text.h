/* The system text: language models over texts. Private to this folder. */
#ifndef PL_SYSTEMS_TEXT_H
#define PL_SYSTEMS_TEXT_H

#include "data/text/sampler.h"
#include "texts/corpus.h"
#include "plimsoll/run.h"
#include "systems/input.h"
#include "systems/preparation.h"
#include "data/infer/infer_data.h"

typedef struct pl_text_paths {
    char tokens[PL_FILE_PATH_MAX];    /* the token file: in the folder of the run, or in data.cache */
    char tokenizer[PL_FILE_PATH_MAX]; /* the run's own */
    char input[PL_FILE_PATH_MAX];     /* what came from standard input, kept in the folder of the run */
} pl_text_paths;

/* ---- text.c ---- */
pl_status pl_text_find_paths(const pl_config *, pl_text_paths *, pl_error *);
/* The texts that the config names; strings belong to config and paths. */
pl_corpus_wish pl_text_wish(const pl_config *, const pl_text_paths *);
pl_sampler_options pl_text_sampler(const pl_config *, pl_command); /* the caller fills in the number of tokens */

pl_status pl_text_tell_jobs(const pl_config *, void **own, pl_error *); /* a pl_generate_settings */

/* ---- text_check.c ---- */
pl_status pl_text_check(const pl_config *, pl_error *);

/* ---- text_prepare.c ---- */
/* From a text to its tokenizer and token file; as pl_prepare says. */
pl_status pl_text_prepare_run(pl_preparation *, pl_progress, void *context, pl_error *);
pl_status pl_text_check_folder(pl_preparation *, pl_command, pl_error *);
/* The hash of the text that the run in the config's folder was trained on; 0 when nothing tells. */
pl_status pl_text_find_own(const pl_config *, uint64_t *hash, pl_error *);

/* ---- text_input_prepare.c ---- */
/* Standard input (data.text: -) is read once, into a file of the run's folder, which is the text from then on, also for
 * later commands and a resumed run. */
pl_status pl_text_keep_input(pl_preparation *, const pl_text_paths *, pl_error *);
/* The files to be written at these paths must not lie among the texts. */
pl_status pl_text_check_apart(const pl_config *, const pl_corpus_wish *, const char *out, const char *const *written,
                              size_t count, pl_error *);

/* ---- text_infer.c ---- */
/* What follows the last token of an item, and how well its tokens were predicted. */
pl_infer_say pl_text_say_inferred;

/* ---- text_rows.c ---- */
extern const pl_rows_kind pl_text_rows;

#endif
