/* Training in stages: the work of some configs (model.arch clouds) is several trainings, one after another, each with a
 * folder of its own in that of the run and an evaluation behind it, whose predictions are kept. A stage is a config of
 * its own; whoever goes through them asks for the first that is not done, does it, and asks again:
 *
 *     while (pl_stage_find(config, PL_STAGE_BEGIN, &stage, &error) == PL_OK && stage.count && !stage.all_done)
 *         plan and run stage.command of the config, with predictions to stage.predictions */
#ifndef PLIMSOLL_STAGES_H
#define PLIMSOLL_STAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plimsoll/config.h"
#include "plimsoll/plan.h"
#include "plimsoll/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PL_STAGE_PREDICTIONS "predictions.csv" /* in the folder of a stage */

enum { PL_STAGE_NAME_BYTES = 64, PL_STAGE_PATH_BYTES = 4096 };

/* How a process came to ask. */
typedef enum pl_stage_asked {
    PL_STAGE_BEGIN, /* as run.resume says: where a stage was begun and run.resume is false, it is refused */
    PL_STAGE_GO_ON, /* after the stage before: it goes on with whatever is there */
} pl_stage_asked;

typedef struct pl_stage {
    uint32_t count;  /* stages of the config; 0: it has none, and is as it was */
    uint32_t number; /* of this one, from 1 */
    bool all_done;   /* then the config is as it was */
    char name[PL_STAGE_NAME_BYTES];
    pl_command command; /* PL_COMMAND_TRAIN, or _EVALUATE where it is trained */
    /* The file that the evaluation writes; where it is, and is as it was written (its checksum lies next to it), the
     * stage is done */
    char predictions[PL_STAGE_PATH_BYTES];
    bool was_changed; /* it is there, but was damaged or edited: it is made again */
} pl_stage;

/* The first stage that is not done; the config becomes that of the stage. PL_E_STORAGE where one was begun and is not
 * to be gone on with, PL_E_DATA where there is nothing to go on with. */
PL_API PL_MUST_USE pl_status pl_stage_find(pl_config *, pl_stage_asked, pl_stage *, pl_error *);

/* For a plan of a stage whose turn has not come: the config of them all becomes that of number k, from 0, whatever is
 * done. count 0: it has none such. */
PL_API PL_MUST_USE pl_status pl_stage_ahead(pl_config *, uint32_t k, pl_stage *, pl_error *);

typedef enum pl_stage_form { PL_STAGE_TEXT, PL_STAGE_JSON, PL_STAGE_HTML } pl_stage_form;
/* What the stages that are done have brought, for the config of them all (not of one). pl_text_free. PL_E_DATA where
 * none is done. */
PL_API PL_MUST_USE pl_status pl_stage_report(const pl_config *, pl_stage_form, char **text, size_t *bytes, pl_error *);

#ifdef __cplusplus
}
#endif
#endif
