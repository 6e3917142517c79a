/* What the files of a plan's advice share: advise.c (changes, what is safe) and advise_look.c (stages, risks). */
#ifndef PL_API_ADVISE_H
#define PL_API_ADVISE_H

#include "api/api.h"
#include "api/compile.h"
#include "base/machine.h"
#include "store/block_file.h"

#define PL_ADVICE_ROOM 0.95 /* of a disk's free space; what needs more is at the edge */

typedef struct pl_advising {
    const pl_config *config;
    pl_command command;
    const char *cache_folder;
    uint32_t group;       /* one more than that of the plan */
    bool measured, *news; /* as of the options */
    pl_compiled compiled; /* of the plan */
    const pl_plan *plan;
    pl_data *data; /* of the plan's group */
    pl_advice *a;
    pl_machine machine;
    bool trains;
    uint32_t trainings;   /* of the config, each with a folder of its own */
    uint64_t samples;     /* that compiled.seconds are of */
    double pause_seconds; /* of a training that waits while its checkpoints are written */
    char out[PL_FILE_PATH_MAX];
    bool here;          /* this machine is to hold it */
    bool judges_texts;  /* of a pretrained model */
    bool disk_is_there; /* reserved already */
    bool is_barred;     /* results or cache cannot lie where they are to */
    double left;        /* the share of the work that is not done */
    uint64_t disk_free; /* UINT64_MAX: not known */
} pl_advising;

/* Of the results; of a training of all that it keeps, but for what is there before it begins. */
uint64_t pl_advice_disk_bytes(const pl_advising *, const pl_plan *);
/* Has the disk no room for so many, or hardly? */
bool pl_advice_lacks_disk(const pl_advising *, uint64_t bytes);

/* ---- advise_look.c ---- */
pl_status pl_advise_stages(pl_advising *, pl_error *);
pl_status pl_advise_risks(pl_advising *, pl_error *);
/* Samples a second of a plan with its checkpoints; negative: not known. */
double pl_advise_work_rate(const pl_advising *, const pl_compiled *);
/* Of all stages whose rates are known, on so many cores: filling in the cores that the work leaves, or at its expense.
 * Negative where the work's rate is not known. */
double pl_advice_rate(const pl_advice_stage stage[PL_ADVICE_STAGES], double cores);

#endif
