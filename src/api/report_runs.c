/* Trainings as pages and texts: what their folders hold, gathered and handed to the report (report/training.h). */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "api/api.h"
#include "base/alloc.h"
#include "config/schema.h"
#include "plimsoll/times.h"
#include "report/training.h"
#include "report/validated.h"
#include "show/render.h"
#include "store/folder.h"
#include "store/run_files.h"

enum { DEPTH = 2 /* folders whose files are listed */, METRICS_BYTES_MAX = 1 << 30, FILE_BYTES_MAX = 1 << 20 };

typedef struct gathered {
    pl_report_training training;
    pl_report_memory memory;
    pl_report_times times;
    pl_config config, usual; /* as it was, and the defaults of its system */
    char *metrics;
    size_t metrics_bytes;
} gathered;

static bool is_there(const char *folder, const char *name, char path[PL_FILE_PATH_MAX])
{
    return pl_path_join(path, PL_FILE_PATH_MAX, folder, name, NULL) == PL_OK && access(path, F_OK) == 0;
}

/* Does the folder hold a training? Judged by the files that each has. */
static bool is_training(const char *folder)
{
    char path[PL_FILE_PATH_MAX];
    return is_there(folder, "config.yaml", path) && is_there(folder, "metrics.jsonl", path);
}

/* ---- settings ---- */

static char *print_of(const pl_config_key *key, const void *value)
{
    pl_str s = {0};
    pl_config_print_value(key, value, &s);
    char *copy = s.failed ? NULL : pl_strdup(pl_str_text(&s));
    pl_str_deinit(&s);
    return copy;
}

static pl_status add_setting(gathered *g, const pl_config_key *key, size_t *capacity, pl_error *err)
{
    pl_report_training *t = &g->training;
    pl_config_default_value(key, pl_config_system_of(&g->config), (char *)&g->usual + key->offset);
    if (pl_grow(&t->setting, capacity, t->settings, sizeof *t->setting))
        return pl_fail(err, PL_E_NOMEM, "no memory for the settings of a run");
    pl_report_setting *s = &t->setting[t->settings++];
    *s = (pl_report_setting){pl_strdup(key->path), print_of(key, pl_config_value_of(&g->config, key)),
                             print_of(key, pl_config_value_of(&g->usual, key))};
    return s->key && s->value && s->usual ? PL_OK : pl_fail(err, PL_E_NOMEM, "no memory for the settings of a run");
}

static pl_status read_settings(gathered *g, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    size_t capacity = 0;
    if (!is_there(g->training.path, "config.yaml", path))
        return pl_fail(err, PL_E_DATA, "%s: holds no run: config.yaml is missing", g->training.path);
    pl_config_default(&g->config);
    pl_config_default(&g->usual);
    PL_TRY(pl_config_load_file(&g->config, path, err));
    const pl_config_key *prompt = pl_config_find_for(&g->config, "<prompt>");
    g->training.prompt = prompt ? pl_config_value_of(&g->config, prompt) : "";
    g->training.arch = pl_config_find("model.arch")->names[g->config.model.arch];
    for (const pl_config_key *key = pl_config_keys; key < PL_CONFIG_KEYS_END; key++)
        if (key->type != PL_CONFIG_RECORDS && key->offset != offsetof(pl_config, run.out) && /* its title says it */
            !pl_config_is_default(&g->config, key))
            PL_TRY(add_setting(g, key, &capacity, err));
    return PL_OK;
}

/* ---- files ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const pl_report_file *)a)->name, ((const pl_report_file *)b)->name);
}

static pl_status add_files(pl_report_training *t, const char *folder, const char *prefix, int depth, size_t *capacity,
                           pl_error *err)
{
    DIR *d = opendir(folder);
    pl_status status = PL_OK;
    if (!d && errno == ENOENT && depth < DEPTH) return PL_OK; /* a checkpoint that was thinned out meanwhile */
    if (!d) return pl_fail(err, PL_E_DATA, "%s: cannot be read: %s", folder, strerror(errno));
    for (const struct dirent *e; status == PL_OK && (e = readdir(d));) {
        struct stat is;
        char path[PL_FILE_PATH_MAX], name[256];
        if (e->d_name[0] == '.' || pl_path_join(path, sizeof path, folder, e->d_name, NULL) != PL_OK) continue;
        if (lstat(path, &is) != 0) continue; /* it was removed meanwhile */
        snprintf(name, sizeof name, "%s%.200s%s", prefix, e->d_name, S_ISDIR(is.st_mode) ? "/" : "");
        if (S_ISDIR(is.st_mode) && depth > 0) {
            status = add_files(t, path, name, depth - 1, capacity, err);
        } else if (S_ISREG(is.st_mode)) {
            if (pl_grow(&t->file, capacity, t->files, sizeof *t->file))
                status = pl_fail(err, PL_E_NOMEM, "no memory for the list of files");
            else
                t->file[t->files] = (pl_report_file){.bytes = (uint64_t)is.st_size},
                snprintf(t->file[t->files++].name, sizeof t->file->name, "%s", name);
        }
    }
    closedir(d);
    return status;
}

static void find_end(pl_report_training *t)
{
    char path[PL_FILE_PATH_MAX];
    struct stat is;
    struct tm at;
    if (is_there(t->path, "metrics.jsonl", path) && stat(path, &is) == 0 && localtime_r(&is.st_mtime, &at))
        strftime(t->ended, sizeof t->ended, "%Y-%m-%d %H:%M", &at);
}

/* ---- all of a folder ---- */

static pl_status read_metrics(gathered *g, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    if (!is_there(g->training.path, "metrics.jsonl", path)) return PL_OK;
    PL_TRY(pl_file_read_all(path, METRICS_BYTES_MAX, &g->metrics, &g->metrics_bytes, err));
    return pl_report_metrics_read(g->metrics, g->metrics_bytes, &g->training.metrics, err);
}

static pl_status read_memory(gathered *g, pl_error *err)
{
    char path[PL_FILE_PATH_MAX], *text = NULL;
    size_t bytes;
    if (!is_there(g->training.path, "report.json", path)) return PL_OK;
    PL_TRY(pl_file_read_all(path, FILE_BYTES_MAX, &text, &bytes, err));
    const pl_status status = pl_report_memory_read(path, text, bytes, &g->memory, err);
    if (status == PL_OK) g->training.memory = &g->memory;
    pl_free(text);
    return status;
}

/* A report is complete without it. */
static pl_status read_starts(gathered *g, pl_error *err)
{
    char *text;
    size_t bytes;
    pl_error why = {0};
    pl_status status = pl_starts_read(g->training.path, &text, &bytes, &why);
    if (status == PL_E_NOMEM) return pl_fail(err, status, "%s", why.text);
    if (status != PL_OK) snprintf(g->training.starts.trouble, sizeof g->training.starts.trouble, "%s", why.text);
    if (status != PL_OK || !text) return PL_OK;
    status = pl_report_starts_read(text, bytes, &g->training.starts, err);
    pl_free(text);
    return status;
}

static pl_status read_times(gathered *g, pl_error *err)
{
    char path[PL_FILE_PATH_MAX], *text = NULL;
    size_t bytes;
    if (!is_there(g->training.path, "times.json", path)) return PL_OK;
    PL_TRY(pl_file_read_all(path, FILE_BYTES_MAX, &text, &bytes, err));
    const pl_status status = pl_report_times_read(path, text, bytes, &g->times, err);
    if (status == PL_OK) g->training.times = &g->times;
    pl_free(text);
    return status;
}

/* name NULL: the last part of the path. */
static void name_it(const char *name, const char *path, pl_report_training *t)
{
    size_t end = strlen(path), begin;
    while (end > 1 && path[end - 1] == '/') end--;
    for (begin = end; begin > 0 && path[begin - 1] != '/';) begin--;
    t->path = path;
    if (name)
        snprintf(t->name, sizeof t->name, "%s", name);
    else
        snprintf(t->name, sizeof t->name, "%.*s", (int)(end - begin), path + begin);
}

static pl_status gather(const char *name, const char *path, gathered *g, pl_error *err)
{
    size_t capacity = 0;
    name_it(name, path, &g->training);
    PL_TRY(read_settings(g, err));
    g->training.steps = g->config.train.steps > 0 ? (uint64_t)g->config.train.steps : 0;
    PL_TRY(read_metrics(g, err));
    PL_TRY(read_memory(g, err));
    PL_TRY(read_times(g, err));
    PL_TRY(read_starts(g, err));
    PL_TRY(add_files(&g->training, path, "", DEPTH, &capacity, err));
    qsort(g->training.file, g->training.files, sizeof *g->training.file, by_name);
    find_end(&g->training);
    return PL_OK;
}

static void forget(gathered *g)
{
    pl_report_training *t = &g->training;
    for (size_t i = 0; i < t->settings; i++)
        pl_free(t->setting[i].key), pl_free(t->setting[i].value), pl_free(t->setting[i].usual);
    pl_free(t->setting);
    pl_free(t->file);
    pl_report_metrics_deinit(&t->metrics);
    pl_report_starts_deinit(&t->starts);
    pl_free(g->metrics);
}

/* ---- one, or several ---- */

static pl_status report_one(const gathered *g, pl_times_form form, const pl_text_form *text, pl_str *out, pl_error *err)
{
    pl_status status = PL_OK;
    pl_doc d = pl_doc_begin();
    pl_report_add_training(&g->training, &d);
    if (form == PL_TIMES_HTML && g->metrics)
        status = pl_report_add_validated(g->metrics, g->metrics_bytes, pl_task_of(&g->config)->charts, &d, err);
    pl_doc_write(&d, pl_times_doc_form(form), text, out);
    pl_doc_deinit(&d);
    return status;
}

static void report_all(const gathered *g, size_t count, pl_times_form form, const pl_text_form *text, pl_str *out)
{
    pl_report_training training[PL_REPORT_TRAININGS_MAX];
    pl_doc d = pl_doc_begin();
    for (size_t i = 0; i < count; i++) training[i] = g[i].training;
    const pl_report_comparison c = {training, count};
    pl_report_add_comparison(&c, &d);
    pl_doc_write(&d, pl_times_doc_form(form), text, out);
    pl_doc_deinit(&d);
}

/* ---- a pretrained model ---- */

static pl_status describe(const char *path, pl_doc *d, pl_error *err)
{
    pl_config *c = pl_alloc(1, sizeof *c);
    if (!c) return pl_fail(err, PL_E_NOMEM, "no memory for the config of a model");
    pl_config_default(c);
    pl_status status = pl_config_load_file(c, path, err);
    if (status == PL_OK) status = pl_dataset_of(c, PL_COMMAND_GENERATE)->describe(c, d, err);
    pl_free(c);
    return status;
}

static pl_status report_model(const char *path, pl_times_form form, const pl_text_form *text, pl_str *out,
                              pl_error *err)
{
    pl_doc d = pl_doc_begin();
    const pl_status status = describe(path, &d, err);
    if (status == PL_OK) pl_doc_write(&d, pl_times_doc_form(form), text, out);
    pl_doc_deinit(&d);
    return status;
}

pl_status pl_runs_report(const char *const *paths, size_t count, pl_times_form form, unsigned columns, bool color,
                         char **text, size_t *bytes, pl_error *err)
{
    return pl_runs_report_as(NULL, paths, count, form, columns, color, text, bytes, err);
}

pl_status pl_runs_report_as(const char *const *names, const char *const *paths, size_t count, pl_times_form form,
                            unsigned columns, bool color, char **text, size_t *bytes, pl_error *err)
{
    const pl_text_form shown = pl_text_form_of(columns, color);
    pl_str out = {0};
    pl_status status = PL_OK;
    *text = NULL;
    if (count == 1 && pl_config_is_pretrained(paths[0])) {
        status = report_model(paths[0], form, &shown, &out, err);
        if (status == PL_OK) return pl_give_text(&out, text, bytes, err);
        return pl_str_deinit(&out), status;
    }
    if (count == 1 && (form == PL_TIMES_JSON || !is_training(paths[0])))
        return pl_times_report(paths[0], form, columns, color, text, bytes, err);
    if (count > PL_REPORT_TRAININGS_MAX)
        return pl_fail(err, PL_E_USAGE, "%zu runs are more than the %d that one page compares", count,
                       PL_REPORT_TRAININGS_MAX);
    gathered *g = pl_alloc(count, sizeof *g);
    if (!g) return pl_fail(err, PL_E_NOMEM, "no memory for a report of %zu runs", count);
    for (size_t i = 0; i < count && status == PL_OK; i++)
        status = gather(names ? names[i] : NULL, paths[i], &g[i], err);
    for (size_t i = 0; names && i < count; i++) g[i].training.path = names[i];
    if (status == PL_OK && count == 1) status = report_one(&g[0], form, &shown, &out, err);
    if (status == PL_OK && count > 1) report_all(g, count, form, &shown, &out);
    for (size_t i = 0; i < count; i++) forget(&g[i]);
    pl_free(g);
    if (status == PL_OK) return pl_give_text(&out, text, bytes, err);
    pl_str_deinit(&out);
    return status;
}
