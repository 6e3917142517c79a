/* Several trainings of one config: each is a list of overrides, and may begin with what an earlier one has made. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/locale.h"
#include "config/schema.h"
#include "store/checkpoint.h"
#include "store/folder.h"
#include "store/sum_file.h"
#include "systems/system.h"

/* ---- which there are ---- */

void pl_stage_set(pl_stage_row *row, const char *key, const char *fmt, ...)
{
    va_list args;
    assert(row->sets < PL_STAGE_SETS_MAX);
    pl_override *o = &row->set[row->sets++];
    o->key = key;
    va_start(args, fmt);
    pl_vprint(o->value, sizeof o->value, fmt, args);
    va_end(args);
}

static bool row_of(const pl_config *c, uint32_t k, pl_stage_row *row)
{
    const pl_task *t = pl_task_of(c);
    *row = (pl_stage_row){0};
    return t->stage && t->stage(c, k, row);
}

const char *pl_system_named_stage(const pl_config *c)
{
    const char *key = pl_task_of(c)->stage_key;
    return key ? pl_config_value_of(c, pl_config_find(key)) : "";
}

static bool find_named(const pl_config *c, const char *name, pl_stage_row *row)
{
    for (uint32_t k = 0; row_of(c, k, row); k++)
        if (strcmp(row->name, name) == 0) return true;
    return false;
}

/* The config is that of this stage already if the stage's own overrides name it. */
static bool is_taken(const pl_config *c, const pl_stage_row *row)
{
    const char *key = pl_task_of(c)->stage_key;
    for (uint32_t i = 0; i < row->sets; i++)
        if (strcmp(row->set[i].key, key) == 0 && strcmp(row->set[i].value, row->name) == 0) return true;
    return false;
}

bool pl_system_find_stage(const pl_config *c, uint32_t k, pl_stage_row *row)
{
    const char *named = pl_system_named_stage(c);
    if (named[0]) return k == 0 && find_named(c, named, row) && !is_taken(c, row);
    for (uint32_t i = 0; row_of(c, i, row); i++)
        if (!row->alone && k-- == 0) return true;
    return false;
}

uint32_t pl_system_stages_before(const pl_config *c, const char *name)
{
    pl_stage_row row;
    uint32_t before = 0;
    for (uint32_t k = 0; row_of(c, k, &row); k++) {
        if (strcmp(row.name, name) == 0) return row.alone ? 0 : before;
        before += !row.alone;
    }
    return 0;
}

enum { SHOWN = 8 };

/* "task, n2n and finetune"; of many, the first ones and the last. */
static void list_stages(const pl_config *c, pl_str *out)
{
    pl_stage_row row;
    uint32_t count = 0;
    while (row_of(c, count, &row)) count++;
    for (uint32_t k = 0; row_of(c, k, &row); k++) {
        const bool is_last = k + 1 == count;
        if (count > SHOWN && k > 1 && !is_last) continue;
        pl_str_printf(out, "%s%s", k == 0 ? "" : !is_last ? ", " : count > SHOWN ? ", ... and " : " and ", row.name);
    }
}

pl_status pl_system_check_stage(const pl_config *c, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES], list[320] = "";
    pl_stage_row row;
    pl_str text = pl_str_fixed(list, sizeof list);
    const char *named = pl_system_named_stage(c);
    if (!named[0] || find_named(c, named, &row)) return PL_OK;
    pl_config_where(c, pl_task_of(c)->stage_key, where, sizeof where);
    list_stages(c, &text);
    if (list[0]) return pl_fail(err, PL_E_CONFIG, "%s: there is no stage %.60s; they are %s", where, named, list);
    return pl_fail(err, PL_E_CONFIG, "%s: there is no stage %.60s, since the config is one training; leave it out",
                   where, named);
}

bool pl_system_is_said(const pl_config *c, const char *key)
{
    return pl_system_named_stage(c)[0] && pl_config_is_option(c, key);
}

/* ---- one of them ---- */

/* The run itself reports damage. */
static bool is_trained(const char *folder)
{
    pl_saved saved;
    pl_error damaged;
    if (access(folder, F_OK) != 0) return false;
    if (pl_saved_find(folder, PL_SAVED_RECORD, &saved, &damaged) != PL_OK) return true;
    const bool has_record = saved.record != NULL;
    pl_saved_deinit(&saved);
    return has_record;
}

/* Does the config itself say what the training begins with? */
static bool begins_elsewhere(const pl_config *c, const pl_stage_row *row)
{
    const char *folder = pl_config_value_of(c, pl_config_find(row->begin_key));
    return pl_system_named_stage(c)[0] && folder[0];
}

pl_status pl_system_check_begun(const pl_config *c, pl_error *err)
{
    char folder[PL_FILE_PATH_MAX];
    pl_stage_row row;
    const char *named = pl_system_named_stage(c);
    if (!named[0] || !find_named(c, named, &row) || !row.begins_with[0] || begins_elsewhere(c, &row)) return PL_OK;
    PL_TRY(pl_config_run_path(c, row.begins_with, folder, err));
    if (is_trained(folder)) return PL_OK;
    return pl_fail(err, PL_E_DATA,
                   "%s: holds no training that %s could begin with; make it first, with the same command and "
                   "`stage` %s, or name another with %s",
                   folder, row.name, row.begins_with, row.begin_key);
}

static pl_status begin_with(pl_config *c, const pl_stage_row *row, pl_error *err)
{
    char folder[PL_FILE_PATH_MAX];
    if (!row->begins_with[0] || begins_elsewhere(c, row)) return PL_OK;
    PL_TRY(pl_config_run_path(c, row->begins_with, folder, err));
    return pl_config_set(c, row->begin_key, folder, "the stage before", err);
}

static pl_status share_folder(pl_config *c, const pl_stage_row *row, pl_error *err)
{
    char out[PL_FILE_PATH_MAX];
    const char *said = row->shared_key ? pl_config_value_of(c, pl_config_find(row->shared_key)) : "said";
    if (said[0]) return PL_OK;
    PL_TRY(pl_config_run_folder(c, out, sizeof out, err));
    return pl_config_set(c, row->shared_key, out, "the folder of all trainings", err);
}

pl_status pl_system_take_stage(pl_config *c, const pl_stage_row *row, pl_error *err)
{
    PL_TRY(begin_with(c, row, err));
    PL_TRY(share_folder(c, row, err));
    for (uint32_t i = 0; i < row->sets; i++)
        PL_TRY(pl_config_set(c, row->set[i].key, row->set[i].value, row->what, err));
    return PL_OK;
}

/* ---- their files, for a common report ---- */

pl_status pl_system_find_predictions(const char *out, const char *name, char path[PL_FILE_PATH_MAX], bool *is_done,
                                     pl_error *err)
{
    char folder[PL_FILE_PATH_MAX];
    PL_TRY(pl_path_join(folder, sizeof folder, out, name, err));
    PL_TRY(pl_path_join(path, PL_FILE_PATH_MAX, folder, PL_STAGE_PREDICTIONS, err));
    return pl_sum_file_check(path, is_done, err);
}

pl_status pl_system_require_done(const char *out, uint32_t done, pl_error *err)
{
    return done ? PL_OK
                : pl_fail(err, PL_E_DATA, "%s: none of its trainings is done; train first: plimsoll train", out);
}
