/* Where the time of a run went, by components: measured by the run itself, kept in its folder, read back from there. */
#include "plimsoll/times.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/api.h"
#include "base/alloc.h"
#include "report/times.h"
#include "report/validated.h"
#include "systems/system.h"
#include "show/render.h"
#include "store/beside.h"
#include "store/folder.h"

#define TIMES_FILE   "times.json"
#define METRICS_FILE "metrics.jsonl"
enum { FILE_BYTES_MAX = 1 << 20 /* for a table of so many rows */, METRICS_BYTES_MAX = 1 << 30 };

/* ---- of a run ---- */

static void add_besides(const pl_session_times *s, pl_report_times *t)
{
    for (int k = 0; k < PL_SPENT_COUNT; k++) {
        const pl_session_spent *spent = &s->spent[k];
        if (k == PL_SPENT_STEPS || spent->count == 0) continue;
        pl_report_besides *b = &t->besides[t->besides_count++];
        snprintf(b->name, sizeof b->name, "%s", pl_spent_name((pl_spent)k));
        b->seconds = spent->seconds;
        b->count = spent->count;
    }
}
_Static_assert(PL_SPENT_COUNT - 1 <= PL_REPORT_TIMES_BESIDES, "each has its place");

/* A training's step is all that is done for one, not its program alone. */
static void add_measured(const pl_session_times *s, pl_report_times *t)
{
    const bool steps = s->spent[PL_SPENT_STEPS].count > 0;
    const pl_session_spent *whole = steps ? &s->spent[PL_SPENT_STEPS] : &s->runs;
    t->runs = whole->count;
    t->first = steps ? s->first : 0;
    if (!t->runs) return;
    t->seconds = t->other_seconds = whole->seconds / (double)t->runs;
    for (size_t i = 0; i < t->count; i++) {
        t->row[i].seconds = s->seconds[i] / (double)t->runs;
        t->other_seconds -= t->row[i].seconds;
    }
    if (t->other_seconds < 0) t->other_seconds = 0; /* rounding */
}

static void fill(const pl_run *run, pl_report_times *t)
{
    const pl_plan *plan = pl_run_plan(run);
    const pl_session_times s = pl_session_find_times(pl_run_session_of(run));
    pl_report_times_predict(plan, s.program, s.components, t);
    if (s.program == PL_NONE) return;
    if (s.spent[PL_SPENT_STEPS].count)
        snprintf(t->run, sizeof t->run, "step");
    else
        snprintf(t->run, sizeof t->run, "run of %.24s", t->program);
    add_measured(&s, t);
    pl_report_times_raise(t);
    add_besides(&s, t);
}

pl_status pl_run_times(const pl_run *run, pl_times_form form, char *text, size_t room, pl_error *err)
{
    static pl_report_times times; /* large, and this may run on a small stack */
    fill(run, &times);
    if (times.runs == 0)
        return pl_fail(err, PL_E_USAGE, "nothing was run, so there is no table of times; run the command's work first");
    if (form == PL_TIMES_HTML)
        return pl_fail(err, PL_E_USAGE, "the page of a run is made from its folder: call pl_times_report");
    pl_str out;
    pl_doc d = pl_doc_begin_in(text, room, &out);
    pl_report_times_add(&times, &d);
    if (form == PL_TIMES_TEXT)
        pl_doc_print(&d, NULL, &out);
    else
        pl_doc_write_json(&d, false, &out);
    return out.failed ? pl_fail(err, PL_E_USAGE, "the table of times does not fit %zu bytes", room) : PL_OK;
}

pl_status pl_run_times_path(const pl_run *run, char *path, size_t room, pl_error *err)
{
    char beside[PL_FILE_PATH_MAX] = "";
    const char *results = pl_run_results_path(run), *folder = pl_run_folder(run);
    if (results) PL_TRY(pl_beside_path(results, PL_BESIDE_TIMES, beside, err));
    if (!results && folder) PL_TRY(pl_path_join(beside, sizeof beside, folder, TIMES_FILE, err));
    if (strlen(beside) >= room) return pl_fail(err, PL_E_USAGE, "%.200s…: the path is too long", beside);
    strcpy(path, beside);
    return PL_OK;
}

/* ---- of its folder ---- */

static bool is_there(const char *path) { return access(path, F_OK) == 0; }

static bool has(const char *folder, const char *name)
{
    char path[PL_FILE_PATH_MAX];
    return pl_path_join(path, sizeof path, folder, name, NULL) == PL_OK && is_there(path);
}

/* A training's is in its folder, that of results next to them. */
static pl_status find_file(const char *path, char file[PL_FILE_PATH_MAX], pl_error *err)
{
    char results[PL_FILE_PATH_MAX];
    pl_error ignored;
    if (!is_there(path))
        return pl_fail(err, PL_E_DATA, "%s: does not exist; name the folder of a run, or results", path);
    PL_TRY(pl_path_join(file, PL_FILE_PATH_MAX, path, TIMES_FILE, err));
    if (is_there(file)) return PL_OK;
    if (pl_results_locate(path, results, sizeof results, &ignored) == PL_OK) {
        PL_TRY(pl_beside_path(results, PL_BESIDE_TIMES, file, err));
        if (is_there(file)) return PL_OK;
    } else if (!has(path, "config.yaml") && !has(path, "checkpoints")) {
        return pl_fail(err, PL_E_DATA, "%s: holds neither a run nor results; name the folder of one", path);
    }
    return pl_fail(
        err, PL_E_DATA,
        "%s: has no table of times, which a run writes when it ends or is stopped, unless by an older version; "
        "name the folder of a run, or results",
        path);
}

/* The charts that the run's task makes of its metrics; NULL where its config cannot be read. */
static pl_status find_charts(const char *path, const pl_metric_chart **charts, pl_error *err)
{
    char file[PL_FILE_PATH_MAX];
    pl_error ignored;
    *charts = NULL;
    PL_TRY(pl_path_join(file, sizeof file, path, "config.yaml", err));
    pl_config *c = pl_config_create();
    if (!c) return pl_fail(err, PL_E_NOMEM, "no memory for the config");
    if (pl_config_load_file(c, file, &ignored) == PL_OK) *charts = pl_task_of(c)->charts;
    pl_config_destroy(c);
    return PL_OK;
}

/* What validations found, where a training has such numbers: results have no such file. */
static pl_status add_validated(const char *path, pl_doc *d, pl_error *err)
{
    char file[PL_FILE_PATH_MAX], *lines;
    const pl_metric_chart *charts;
    size_t bytes;
    PL_TRY(pl_path_join(file, sizeof file, path, METRICS_FILE, err));
    if (!is_there(file)) return PL_OK;
    PL_TRY(find_charts(path, &charts, err));
    PL_TRY(pl_file_read_all(file, METRICS_BYTES_MAX, &lines, &bytes, err));
    const pl_status status = pl_report_add_validated(lines, bytes, charts, d, err);
    pl_free(lines);
    return status;
}

static pl_status add_page(const char *path, const pl_report_times *t, pl_doc *d, pl_error *err)
{
    char title[PL_REPORT_TIMES_NAME + 32];
    snprintf(title, sizeof title, "Where the time of a %s goes", t->run);
    pl_doc_title(d, NULL, "times", title);
    pl_doc_say(d, 0, "Of %s.", path);
    pl_report_times_add(t, d);
    return add_validated(path, d, err);
}

static pl_status print(const char *path, const pl_report_times *t, pl_times_form form, const pl_text_form *text,
                       pl_str *out, pl_error *err)
{
    pl_status status = PL_OK;
    pl_doc d = pl_doc_begin();
    if (form == PL_TIMES_HTML)
        status = add_page(path, t, &d, err);
    else
        pl_report_times_add(t, &d);
    pl_doc_write(&d, pl_times_doc_form(form), text, out);
    pl_doc_deinit(&d);
    PL_TRY(status);
    return out->failed ? pl_fail(err, PL_E_NOMEM, "%s: no memory for its table of times", path) : PL_OK;
}

pl_doc_form pl_times_doc_form(pl_times_form form)
{
    return form == PL_TIMES_HTML ? PL_FORM_PAGE : form == PL_TIMES_JSON ? PL_FORM_JSON : PL_FORM_TEXT;
}

pl_status pl_times_report(const char *path, pl_times_form form, unsigned columns, bool color, char **text,
                          size_t *bytes, pl_error *err)
{
    const pl_text_form shown = pl_text_form_of(columns, color);
    char file[PL_FILE_PATH_MAX], *read = NULL;
    size_t length;
    pl_str out = {0};
    pl_status status = PL_OK;
    pl_report_times *t = pl_alloc(1, sizeof *t);
    if (!t) PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "%s: no memory for its table of times", path));
    PL_TRY_DONE(find_file(path, file, err));
    PL_TRY_DONE(pl_file_read_all(file, FILE_BYTES_MAX, &read, &length, err));
    PL_TRY_DONE(pl_report_times_read(file, read, length, t, err));
    PL_TRY_DONE(print(path, t, form, &shown, &out, err));
    status = pl_give_text(&out, text, bytes, err);
done:
    if (status != PL_OK) pl_str_deinit(&out);
    pl_free(read);
    pl_free(t);
    return status;
}
