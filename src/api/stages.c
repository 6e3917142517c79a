/* Which of several trainings comes next, as their folders tell. */
#include "plimsoll/stages.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/api.h"
#include "config/schema.h"
#include "show/render.h"
#include "store/folder.h"
#include "store/sum_file.h"
#include "systems/system.h"

/* One training: what the config says differently for it, its folder, and what is found there. */
typedef struct place {
    pl_stage_row row;
    uint32_t number; /* from 1 */
    char folder[PL_FILE_PATH_MAX];
    bool is_done, was_changed, is_trained, is_begun;
} place;

/* Without a name where there are no more. */
static pl_status find_place(const pl_config *c, const char *out, uint32_t k, place *p, pl_error *err)
{
    *p = (place){.number = k + 1};
    if (!pl_system_find_stage(c, k, &p->row)) return p->row.name[0] = 0, PL_OK;
    return pl_path_join(p->folder, sizeof p->folder, out, p->row.name, err);
}

static pl_status look_at(place *p, pl_error *err)
{
    char predictions[PL_FILE_PATH_MAX];
    pl_saved saved;
    pl_error damaged;
    if (access(p->folder, F_OK) != 0) return PL_OK; /* whether it can be made, the run finds out */
    PL_TRY(pl_path_join(predictions, sizeof predictions, p->folder, PL_STAGE_PREDICTIONS, err));
    PL_TRY(pl_sum_file_check(predictions, &p->is_done, err));
    p->was_changed = !p->is_done && access(predictions, F_OK) == 0;
    /* The run itself finds out how damaged a damaged one is. */
    pl_status status = pl_saved_find(p->folder, PL_SAVED_RECORD, &saved, &damaged);
    if (status == PL_E_NOMEM || status == PL_E_STORAGE) return pl_fail(err, status, "%s", damaged.text);
    p->is_begun = p->is_done || status != PL_OK || saved.record;
    p->is_trained =
        status == PL_OK && saved.record && pl_record_counter_value(saved.record, PL_COUNTER_COMPLETE, 0) > 0;
    if (status == PL_OK) pl_saved_deinit(&saved);
    return PL_OK;
}

/* What is found in all of them. */
typedef struct survey {
    uint32_t count;
    place first;                     /* the first that is not done; without a name: all are */
    char begun[PL_STAGE_NAME_BYTES]; /* the first that was begun; "": none */
} survey;

static pl_status survey_stages(const pl_config *c, const char *out, survey *s, pl_error *err)
{
    place p;
    *s = (survey){0};
    for (;; s->count++) {
        PL_TRY(find_place(c, out, s->count, &p, err));
        if (!p.row.name[0]) return PL_OK;
        PL_TRY(look_at(&p, err));
        if (p.is_begun && !s->begun[0]) memcpy(s->begun, p.row.name, sizeof s->begun);
        if (!p.is_done && !s->first.row.name[0]) s->first = p;
    }
}

static pl_status check_asked(const pl_config *c, const char *out, const survey *s, pl_error *err)
{
    char folder[PL_FILE_PATH_MAX];
    if (s->begun[0] && c->run.resume == PL_SWITCH_OFF) {
        PL_TRY(pl_path_join(folder, sizeof folder, out, s->begun, err));
        return pl_fail(err, PL_E_STORAGE,
                       "%s: was begun before; continue with `run.resume`, or choose another folder with `run.out`",
                       folder);
    }
    if (!s->begun[0] && c->run.resume == PL_SWITCH_ON)
        return pl_fail(
            err, PL_E_DATA,
            "%s: holds nothing to go on from; leave `run.resume` out to begin, or give `run.resume`=auto, which "
            "begins where there is nothing",
            out);
    return PL_OK;
}

uint32_t pl_stage_count_earlier(const pl_config *c)
{
    const char *named = c->is_stage ? "" : pl_system_named_stage(c);
    return named[0] ? pl_system_stages_before(c, named) : c->earlier_stages;
}

static pl_status become(pl_config *c, const place *p, pl_stage *stage, pl_error *err)
{
    stage->number = p->number;
    stage->was_changed = p->was_changed;
    stage->command = p->is_trained ? PL_COMMAND_EVALUATE : PL_COMMAND_TRAIN;
    memcpy(stage->name, p->row.name, sizeof p->row.name);
    PL_TRY(pl_path_join(stage->predictions, sizeof stage->predictions, p->folder, PL_STAGE_PREDICTIONS, err));
    c->earlier_stages = pl_system_stages_before(c, p->row.name);
    if (pl_system_of(c)->check) PL_TRY(pl_system_of(c)->check(c, err));
    PL_TRY(pl_system_take_stage(c, &p->row, err));
    c->is_stage = true;
    PL_TRY(pl_config_set(c, "run.out", p->folder, "the folder of the stage", err));
    PL_TRY(pl_config_set(c, "run.resume", "auto", "a stage goes on where it was", err));
    if (p->is_trained) PL_TRY(pl_config_set(c, "run.precision", "f32", "a training judges what it trained", err));
    return pl_config_check(c, err);
}

/* A kill may have come between the last save and its thinning, and no training will come to do that here. */
static pl_status tidy_trained(const pl_config *c, pl_error *err)
{
    int lock = -1;
    char folder[PL_FILE_PATH_MAX];
    pl_saved saved = {0};
    PL_TRY(pl_config_run_folder(c, folder, sizeof folder, err));
    const pl_checkpoint_spec spec = {
        .folder = folder, .keep_last = (uint32_t)c->train.keep_last, .keep_best = c->train.keep_best};
    pl_status status = pl_folder_lock(folder, &lock, err);
    if (status == PL_OK) status = pl_saved_find(folder, PL_SAVED_RECORD, &saved, err);
    if (status == PL_OK && saved.record) status = pl_checkpoint_tidy(&spec, saved.record, err);
    pl_saved_deinit(&saved);
    pl_folder_unlock(&lock);
    return status;
}

pl_status pl_stage_find(pl_config *c, pl_stage_asked asked, pl_stage *stage, pl_error *err)
{
    survey s;
    char out[PL_FILE_PATH_MAX];
    *stage = (pl_stage){0};
    PL_TRY(pl_system_check_stage(c, err));
    PL_TRY(pl_config_run_folder(c, out, sizeof out, err));
    PL_TRY(survey_stages(c, out, &s, err));
    if (s.count == 0) return PL_OK;
    if (!s.begun[0]) PL_TRY(pl_system_check_begun(c, err));
    if (asked == PL_STAGE_BEGIN) PL_TRY(check_asked(c, out, &s, err));
    stage->count = s.count;
    stage->all_done = !s.first.row.name[0];
    if (stage->all_done) return PL_OK;
    PL_TRY(become(c, &s.first, stage, err));
    return s.first.is_trained ? tidy_trained(c, err) : PL_OK;
}

pl_status pl_stage_take(pl_config *c, uint32_t k, pl_stage *stage, bool *is_done, pl_error *err)
{
    char out[PL_FILE_PATH_MAX];
    place p;
    *stage = (pl_stage){0};
    PL_TRY(pl_config_run_folder(c, out, sizeof out, err));
    PL_TRY(find_place(c, out, k, &p, err));
    if (!p.row.name[0]) return pl_fail(err, PL_E_INTERNAL, "there is no such stage");
    PL_TRY(look_at(&p, err));
    *is_done = p.is_done;
    p.is_trained = p.was_changed = false; /* as it is before it begins, however far it has come */
    return become(c, &p, stage, err);
}

pl_status pl_stage_ahead(pl_config *c, uint32_t k, pl_stage *stage, pl_error *err)
{
    char out[PL_FILE_PATH_MAX];
    place p;
    pl_stage_row row;
    *stage = (pl_stage){0};
    PL_TRY(pl_system_check_stage(c, err));
    PL_TRY(pl_config_run_folder(c, out, sizeof out, err));
    PL_TRY(find_place(c, out, k, &p, err));
    if (!p.row.name[0]) return PL_OK;
    while (pl_system_find_stage(c, stage->count, &row)) stage->count++;
    return become(c, &p, stage, err);
}

pl_status pl_stage_report(const pl_config *c, pl_stage_form form, char **text, size_t *bytes, pl_error *err)
{
    pl_str out = {0};
    pl_doc d = pl_doc_begin();
    char folder[PL_FILE_PATH_MAX];
    const pl_task *t = pl_task_of(c);
    if (!t->report_stages) return pl_fail(err, PL_E_USAGE, "a config of this arch is one training, not several");
    PL_TRY(pl_config_run_folder(c, folder, sizeof folder, err));
    const pl_status status = t->report_stages(c, folder, &d, err);
    if (form == PL_STAGE_TEXT) pl_doc_print(&d, NULL, &out);
    if (form == PL_STAGE_JSON) pl_doc_write_json(&d, false, &out);
    if (form == PL_STAGE_HTML) pl_doc_page(&d, &out);
    pl_doc_deinit(&d);
    if (status == PL_OK) return pl_give_text(&out, text, bytes, err);
    pl_str_deinit(&out);
    return status;
}
