/* Where the results of a command go: a block file, as a plain value that planner and runner are told. */
#ifndef PL_STORE_BLOCK_SINK_H
#define PL_STORE_BLOCK_SINK_H

#include "store/block_file.h"

typedef struct pl_block_sink {
    const char *path; /* the owner's, like the layout */
    pl_block_form form;
    const pl_block_layout *layout;
    uint32_t open_max; /* blocks that are begun and not finished at once; 0: one for each sample, and one for all */
} pl_block_sink;

#endif
