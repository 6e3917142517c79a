/* What several trainings of a regression have brought, each judged by what it never saw: errors, and predicted against
 * true. Plain values: whoever knows what they mean fills them in. */
#ifndef PL_SYSTEMS_TRAININGS_OF_NUMBERS_H
#define PL_SYSTEMS_TRAININGS_OF_NUMBERS_H

#include "show/doc.h"

typedef struct pl_regression_row {
    const char *name, *held_out; /* "loo-12Feb25", "12Feb25" */
    bool is_fold;                /* enters the mean over the folds */
    uint64_t count;
    double mae, mse, rmse, mape, r2, mean_error, std_error;
    double mean_mae; /* of who always says the mean of what was trained on */
    double quantile[5];
    const double *truth, *predicted; /* [count] */
} pl_regression_row;

typedef struct pl_regression_report {
    const char *title, *unit; /* "km" */
    const pl_regression_row *row;
    uint32_t rows, stages; /* that are done, of all */
} pl_regression_report;

void pl_regression_add(const pl_regression_report *, pl_doc *);

#endif
