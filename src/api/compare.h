/* Within src/api: a comparison of a model's forms. */
#ifndef PL_API_COMPARE_H
#define PL_API_COMPARE_H

#include "api/api.h"
#include "report/compare.h"

struct pl_config_key;

struct pl_compare {
    pl_config *config;                   /* without files */
    pl_data *data;                       /* its own, without files */
    const struct pl_config_key *weights; /* names a file of weights; NULL: its models are given none */
    char *title, *folder;
    pl_compare_maker by[PL_VARIANTS];
    pl_report_compare report;
};

#endif
