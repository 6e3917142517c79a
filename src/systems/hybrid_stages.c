#include "systems/hybrid_stages.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "data/pages/read_pages.h"
#include "report/words_read.h"
#include "store/folder.h"

enum { STAGES = 2 };
#define TASK     "task"
#define FINETUNE "finetune"

/* ---- which there are ---- */

bool pl_hybrid_name_stage(const pl_config *c, uint32_t k, char name[PL_STAGE_NAME_BYTES])
{
    static const char *const all[STAGES] = {TASK, FINETUNE};
    const char *only = c->task_training.stage;
    if (k >= (only[0] ? 1 : STAGES) || (!only[0] && !c->finetune.enabled)) return false;
    snprintf(name, PL_STAGE_NAME_BYTES, "%s", only[0] ? only : all[k]);
    return true;
}

pl_status pl_hybrid_check_stage(const pl_config *c, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const char *only = c->task_training.stage;
    if (!only[0] || strcmp(only, TASK) == 0 || strcmp(only, FINETUNE) == 0) return PL_OK;
    return pl_fail(err, PL_E_CONFIG, "%s: there is no stage %.60s; they are " TASK " and " FINETUNE,
                   pl_config_where(c, "task_training.stage", where, sizeof where), only);
}

/* ---- one of them ---- */

/* Named by hand it may come before its time. */
static pl_status check_task(const char *folder, pl_error *err)
{
    pl_saved saved;
    pl_error damaged;
    if (access(folder, F_OK) == 0) {
        pl_status status = pl_saved_find(folder, PL_SAVED_RECORD, &saved, &damaged);
        const bool is_there = status != PL_OK || saved.record; /* what is damaged the run finds out */
        if (status == PL_OK) pl_saved_deinit(&saved);
        if (is_there) return PL_OK;
    }
    return pl_fail(err, PL_E_DATA,
                   "%s: holds no training that finetune could begin with; make it first, with the same command and "
                   "--stage task, or name another with train.init_from",
                   folder);
}

/* The tower comes with the weights of the task, whatever file that one had it from. */
static pl_status become_finetune(pl_config *c, pl_error *err)
{
    static const char why[] = "the training behind task";
    char out[PL_FILE_PATH_MAX], folder[PL_FILE_PATH_MAX], number[64];
    if (!c->train.init_from[0]) {
        PL_TRY(pl_config_run_folder(c, out, sizeof out, err));
        PL_TRY(pl_path_join(folder, sizeof folder, out, TASK, err));
        PL_TRY(check_task(folder, err));
        PL_TRY(pl_config_set(c, "train.init_from", folder, why, err));
    }
    PL_TRY(pl_config_set(c, "vision_encoder.pretrained_weights", "none", why, err));
    snprintf(number, sizeof number, "%" PRId64, c->finetune.unfreeze_pretrained_layers);
    PL_TRY(pl_config_set(c, "vision_encoder.unfreeze_pretrained_layers", number, why, err));
    PL_TRY(pl_config_set(c, "task_training.freeze_pretrained", "auto", why, err));
    snprintf(number, sizeof number, "%.17g", c->finetune.learning_rate);
    return pl_config_set(c, "train.learning_rate", number, why, err);
}

pl_status pl_hybrid_take_stage(pl_config *c, uint32_t k, pl_error *err)
{
    char name[PL_STAGE_NAME_BYTES];
    PL_TRY(pl_hybrid_check_stage(c, err));
    if (!pl_hybrid_name_stage(c, k, name)) return pl_fail(err, PL_E_INTERNAL, "there is no training %u", k);
    if (strcmp(name, FINETUNE) == 0) PL_TRY(become_finetune(c, err));
    PL_TRY(pl_config_set(c, "finetune.enabled", "false", "it is one training", err));
    return pl_config_set(c, "task_training.stage", "", "it is one training", err);
}

/* ---- what they have brought ---- */

static double share(uint64_t part, uint64_t of) { return of ? (double)part / (double)of : 0; }

static pl_status read_row(const char *out, const char *name, pl_words_read_row *row, bool *is_done, pl_error *err)
{
    char folder[PL_FILE_PATH_MAX], path[PL_FILE_PATH_MAX];
    pl_read_pages sum;
    PL_TRY(pl_path_join(folder, sizeof folder, out, name, err));
    PL_TRY(pl_path_join(path, sizeof path, folder, PL_STAGE_PREDICTIONS, err));
    *is_done = access(path, F_OK) == 0;
    if (!*is_done) return PL_OK;
    PL_TRY(pl_read_pages_sum(path, &sum, err));
    *row = (pl_words_read_row){.name = name,
                               .pages = sum.pages,
                               .words = sum.words,
                               .token_accuracy = share(sum.right, sum.words),
                               .exact_accuracy = share(sum.all_right, sum.pages),
                               .q_halt_accuracy = share(sum.halted_rightly, sum.pages)};
    return PL_OK;
}

pl_status pl_hybrid_report_stages(const pl_config *c, const char *out, pl_stage_form form, pl_str *text, pl_error *err)
{
    static void (*const writers[])(const pl_words_read_report *, pl_str *) = {[PL_STAGE_TEXT] = pl_words_read_text,
                                                                              [PL_STAGE_JSON] = pl_words_read_json,
                                                                              [PL_STAGE_HTML] = pl_words_read_html};
    char name[STAGES][PL_STAGE_NAME_BYTES];
    pl_words_read_row row[STAGES];
    uint32_t stages = 0, rows = 0;
    for (; stages < STAGES && pl_hybrid_name_stage(c, stages, name[stages]); stages++) {
        bool is_done;
        PL_TRY(read_row(out, name[stages], &row[rows], &is_done, err));
        rows += is_done;
    }
    if (rows == 0)
        return pl_fail(err, PL_E_DATA, "%s: none of its trainings is done; train first: plimsoll train", out);
    writers[form](&(pl_words_read_report){"Pages that are read", row, rows, stages}, text);
    return PL_OK;
}
