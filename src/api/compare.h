/* Within src/api: a comparison of a model's forms. */
#ifndef PL_API_COMPARE_H
#define PL_API_COMPARE_H

#include "api/api.h"
#include "report/compare.h"

struct pl_config_key;

struct pl_compare {
    pl_config *config;                    /* without files */
    pl_data *data;                        /* its own, without files */
    const struct pl_config_key *weights;  /* names a file of weights; NULL: its models are given none */
    const struct pl_config_key *encoding; /* of a pretrained model, which makes its forms; else NULL */
    char *title, *folder;
    pl_compare_maker by[PL_VARIANTS];
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
