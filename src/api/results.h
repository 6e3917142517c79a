/* Within src/api: results that are open. */
#ifndef PL_API_RESULTS_H
#define PL_API_RESULTS_H

#include "plimsoll/results.h"

#include "store/block_file.h"

struct pl_results {
    pl_block_reader *reader;
    const pl_block_layout *layout;
    uint64_t done[PL_BLOCK_KINDS_MAX];      /* blocks of a kind */
    uint64_t done_rows[PL_BLOCK_KINDS_MAX]; /* places of all axes in them */
};

#endif
