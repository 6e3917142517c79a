/* A model in each form that it can run in, side by side: f32, bf16, 8 bits, signs; a pretrained one as it is stored, in
 * bf16, and in blocks of 8 and of 4 bits, each with activations in f32 and in 8 bits. This says how a config means each
 * form, hears what processes tell that run them, and makes the table; who starts them is the caller's affair:
 *
 *     pl_compare_create(config, "the folder of a run", folder, &comparison, &error)
 *     for each form that pl_compare_runs:  make its file, run it in turns, judge it, with pl_compare_config
 *         pl_compare_take_file, pl_compare_take_inferred, pl_compare_take_judged, pl_compare_take_outputs
 *     pl_compare_text(comparison, PL_COMPARE_REPORT, 80, &text, NULL, &error)
 */
#ifndef PLIMSOLL_COMPARE_H
#define PLIMSOLL_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plimsoll/config.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pl_compare pl_compare;

/* The forms of a model are numbered from 0; outputs of the others are compared with those of form 0. */
enum { PL_COMPARE_FORMS_MAX = 6 };

/* How the file of a form is made (pl_compare_config, MAKE). */
typedef enum pl_compare_maker {
    PL_COMPARE_BY_EXPORT,   /* as safetensors; of f32 with the words of the command: a checkpoint, first values */
    PL_COMPARE_BY_SEEDED,   /* likewise, first values */
    PL_COMPARE_BY_PACKED,   /* likewise, with signs as bits */
    PL_COMPARE_BY_QUANTIZE, /* its config says where to */
    PL_COMPARE_BY_KEY,      /* there is no file: its config says what the form is */
} pl_compare_maker;

/* What a process does with the config that it is given. */
typedef enum pl_compare_step {
    PL_COMPARE_BASE, /* the model's weights as they are go to FOLDER/base.safetensors: first of all */
    PL_COMPARE_MAKE, /* from there those of the form to FOLDER/NAME.safetensors */
    PL_COMPARE_RUN,  /* infer; memory.budget is of this step alone */
    PL_COMPARE_JUDGE /* eval */
} pl_compare_step;

/* What a comparison is asked for. */
typedef struct pl_compare_options {
    const char *title;  /* what the model is called */
    const char *folder; /* for the files between; it is there */
    const char *page;   /* the file that the page goes to, which must be nothing of a run; NULL: there is none */
    uint32_t turns;     /* how often each form is run, at most PL_COMPARE_TURNS_MAX */
    uint32_t batch;     /* items at once beside one by one */
} pl_compare_options;
enum { PL_COMPARE_TURNS_MAX = 64 };

/* The options that a comparison reads: those of infer, quantize and eval, but for what it sets itself. PL_E_USAGE:
 * another one is given. */
PL_API PL_MUST_USE pl_status pl_compare_check_options(const pl_config *, pl_error *);

/* Nothing is run and nothing large is held. PL_E_USAGE: weights are named that are in 8 bits or signs already,
 * or the page would be written over what belongs to a run;
 * PL_E_UNSUPPORTED: the model cannot be run on files. */
PL_API PL_MUST_USE pl_status pl_compare_create(const pl_config *, const pl_compare_options *, pl_compare **,
                                               pl_error *);
PL_API void pl_compare_destroy(pl_compare *); /* NULL is fine */

PL_API int pl_compare_count(const pl_compare *);                  /* of forms */
PL_API const char *pl_compare_name(const pl_compare *, int form); /* "int8" */
/* Can this model have the form? Where not, the table says why. */
PL_API bool pl_compare_runs(const pl_compare *, int form);
PL_API pl_compare_maker pl_compare_made_by(const pl_compare *, int form);
/* Its numbers are those of base.safetensors, or of the model's own files: nothing is to be made. */
PL_API bool pl_compare_is_base(const pl_compare *, int form);
/* Has the system a loss of what is held out, and the form weights to judge? Where not, the table says why. */
PL_API bool pl_compare_judges(const pl_compare *, int form);
/* The config of a process, as YAML, in a block for pl_text_free. The form is not looked at for BASE. */
PL_API PL_MUST_USE pl_status pl_compare_config(const pl_compare *, int form, pl_compare_step, char **text,
                                               size_t *bytes, pl_error *);

/* Inputs where the caller has none: samples of what is held out, else of the config's data, else random numbers, so
 * many, as FOLDER/input.NAME.npy; their names are in the block, a line each, NAME=FILE, for pl_text_free. The data must
 * be prepared. */
PL_API PL_MUST_USE pl_status pl_compare_make_inputs(pl_compare *, uint64_t items, char **files, pl_error *);
/* The caller's are these, in words. */
PL_API void pl_compare_name_inputs(pl_compare *, const char *words);

/* ---- what was found ---- */

/* The file of the form has so many bytes. */
PL_API void pl_compare_take_file(pl_compare *, int form, uint64_t bytes);
/* The last line of infer --json (plimsoll.infer/1), one by one or so many at once. PL_E_DATA: it is none. */
PL_API PL_MUST_USE pl_status pl_compare_take_inferred(pl_compare *, int form, bool at_once, const char *text,
                                                      size_t bytes, pl_error *);
/* That of eval --json (plimsoll.eval/1). */
PL_API PL_MUST_USE pl_status pl_compare_take_judged(pl_compare *, int form, const char *text, size_t bytes, pl_error *);
/* What infer --npy FOLDER/NAME wrote, against that of form 0. */
PL_API PL_MUST_USE pl_status pl_compare_take_outputs(pl_compare *, int form, pl_error *);
/* A process failed: the form is not run, not in this way, or not judged, for that reason. */
PL_API void pl_compare_refuse(pl_compare *, int form, const char *why);
PL_API void pl_compare_refuse_run(pl_compare *, int form, bool at_once, const char *why);
PL_API void pl_compare_refuse_judged(pl_compare *, int form, const char *why);

typedef enum pl_compare_form {
    PL_COMPARE_REPORT, /* for a person */
    PL_COMPARE_JSON,   /* schema plimsoll.compare/1 */
    PL_COMPARE_HTML,   /* a page */
} pl_compare_form;
/* Text in a block for pl_text_free; columns of a line (0: 80) matter for the report only. */
PL_API PL_MUST_USE pl_status pl_compare_text(const pl_compare *, pl_compare_form, unsigned columns, char **text,
                                             size_t *bytes, pl_error *);

#ifdef __cplusplus
}
#endif
#endif
