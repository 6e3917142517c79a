/* Within src/api: a comparison of a model's forms. */
#ifndef PL_API_COMPARE_H
#define PL_API_COMPARE_H

#include "api/api.h"
#include "plimsoll/compare.h"
#include "report/compare.h"

struct pl_config_key;

/* The forms of a model that is trained here. */
enum {
    PL_VARIANT_F32,
    PL_VARIANT_BF16,
    PL_VARIANT_INT8,   /* linear layers by weights in 8 bits, the rest in f32 */
    PL_VARIANT_BINARY, /* layers of signs by their bits, the rest in f32 */
    PL_VARIANTS
};

/* And of a pretrained one, whose matrices are rounded while they are read. */
typedef struct pl_compare_pretrained {
    const char *name, *encoding, *activations;
} pl_compare_pretrained;
extern const pl_compare_pretrained pl_compare_pretrained_forms[PL_COMPARE_FORMS_MAX];

struct pl_compare {
    pl_config *config;                    /* without files */
    pl_data *data;                        /* its own, without files */
    const struct pl_config_key *weights;  /* names a file of weights; NULL: its models are given none */
    const struct pl_config_key *encoding; /* of a pretrained model, which makes its forms; else NULL */
    char *title, *folder;
    pl_compare_maker by[PL_COMPARE_FORMS_MAX];
    pl_report_compare report;
};

/* ---- compare_config.c ---- */
/* The key that --weights sets in this config; NULL: its models are given none. */
const struct pl_config_key *pl_compare_weights_key(const pl_config *);
/* What the words of infer say is of other runs. */
pl_status pl_compare_forget_files(pl_config *, pl_error *);

/* ---- compare_forms.c ---- */
/* Opens the data, fills `by`, and of the report what is known before anything runs. */
pl_status pl_compare_find_forms(pl_compare *, pl_error *);

#endif
