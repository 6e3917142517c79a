/* The file of predictions of pages: a line for each page that was held out. Of those that are read
 *
 *     page,words,right,all_right,q_halt,fusion_gate,adapter_gate,planner_gate
 *     118,12,11,0,-2.4071,0.51302,0.48822,0.50911
 *
 * and of those from whose features the adapter alone, or from whose pixels the denoiser was trained to take noise,
 * sums of squares,
 *
 *     page,noise,noise_left,adapter_gate
 *     118,4412.07,3980.15,0.48822
 *
 * and of those for which the policy alone was trained, noise_left being that of what its choice makes of the page and
 * denoised_left that of the denoiser alone,
 *
 *     page,noise,noise_left,denoised_left,size,across,down,strength
 *     118,4412.07,391.2,402.6,0,0,-1,0.9313
 *
 * q_halt is the logit of "all are right", gates are means over the page; a part that the model has not got leaves its
 * column empty. */
#ifndef PL_DATA_READ_PAGES_H
#define PL_DATA_READ_PAGES_H

#include "base/file.h"

typedef enum pl_page_lines_kind { PL_LINES_READ, PL_LINES_CLEANED, PL_LINES_CHOSEN, PL_LINES_KINDS } pl_page_lines_kind;

/* Sums over the lines of a file. */
typedef struct pl_read_pages {
    uint64_t pages, words, right, all_right;
    uint64_t halted_rightly; /* q_halt is above 0 just where all are right */
    double noise, noise_left, denoised_left;
} pl_read_pages;

/* Line i of `count`: the number of the page, and its row as base/told.h has it. The file is whole or not there. Asks
 * for no memory. */
pl_status pl_read_pages_write(const char *path, const uint32_t *page, const float *told, uint64_t count, pl_error *);
pl_status pl_cleaned_pages_write(const char *path, const uint32_t *page, const float *told, uint64_t count, pl_error *);
pl_status pl_chosen_pages_write(const char *path, const uint32_t *page, const float *told, uint64_t count, pl_error *);
/* Of a file of this kind. PL_E_DATA with the line that is none, or where there is none. */
pl_status pl_read_pages_sum(const char *path, pl_page_lines_kind, pl_read_pages *, pl_error *);

#endif
