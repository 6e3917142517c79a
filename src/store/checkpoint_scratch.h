/* The block that saving works in, so that measure and create lay it out in one place, and the names of what a kill may
 * leave behind. Only checkpoint*.c include this. */
#ifndef PL_STORE_CHECKPOINT_SCRATCH_H
#define PL_STORE_CHECKPOINT_SCRATCH_H

#include "store/checkpoint.h"
#include "store/folder.h"

struct pl_checkpoint {
    const pl_checkpoint_spec *spec;
    uint64_t record_bytes;
    uint64_t *kept; /* [keep_last]: the highest steps found, descending */
    uint32_t kept_count;
    uint16_t linked;  /* found last; plans of older builds give no room for more than these four bytes */
    bool has_note;    /* in `temporary` */
    uint64_t current; /* of the save in progress */
    uint64_t best;    /* STEP_NONE when there is none */
    char *record_text;
    char folder[PL_FILE_PATH_MAX];    /* OUT/checkpoints */
    char final[PL_FILE_PATH_MAX];     /* OUT/checkpoints/step-… */
    char temporary[PL_FILE_PATH_MAX]; /* the same with .tmp */
    char path[PL_FILE_PATH_MAX];
    pl_st_writer writer;
    _Alignas(8) char list[PL_FOLDER_LIST_BYTES];
};

static inline uint64_t pl_checkpoint_scratch_size(const pl_checkpoint_spec *spec, uint64_t record_bytes)
{
    return sizeof(struct pl_checkpoint) + (uint64_t)spec->keep_last * sizeof(uint64_t) + record_bytes + 1;
}

/* The step of "step-…<suffix>"; 0 on success. */
int pl_step_name_parse_with(const char *name, const char *suffix, uint64_t *step);

#endif
