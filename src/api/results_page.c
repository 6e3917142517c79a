/* The page about results: found, opened, their config read from them, and handed to the system that made them. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/api.h"
#include "api/results.h"
#include "base/alloc.h"
#include "base/json_read.h"
#include "report/times.h"
#include "show/render.h"
#include "base/checksum.h"
#include "store/folder.h"
#include "systems/results.h"

/* ---- which ---- */

static bool is_folder(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

static bool has_index(const char *folder)
{
    char path[PL_FILE_PATH_MAX];
    pl_error ignored;
    return is_folder(folder) && pl_path_join(path, sizeof path, folder, "index", &ignored) == PL_OK &&
           access(path, F_OK) == 0;
}

typedef struct search {
    const char *folder;
    char found[PL_FILE_PATH_MAX], names[PL_ERROR_TEXT_BYTES / 2];
    unsigned count;
} search;

static pl_status look_at(void *context, const char *name, pl_error *err)
{
    search *s = context;
    char path[PL_FILE_PATH_MAX];
    PL_TRY(pl_path_join(path, sizeof path, s->folder, name, err));
    if (!pl_ends_with(name, ".blocks") && !pl_ends_with(name, ".h5") && !has_index(path)) return PL_OK;
    const size_t used = strlen(s->names);
    if (s->count++ == 0) memcpy(s->found, path, strlen(path) + 1);
    snprintf(s->names + used, sizeof s->names - used, "%s%s", used ? ", " : "", name);
    return PL_OK;
}

static pl_status find_in_folder(search *s, pl_error *err)
{
    _Alignas(8) char list[PL_FOLDER_LIST_BYTES];
    PL_TRY(pl_folder_each(s->folder, list, look_at, s, err));
    if (s->count == 0)
        return pl_fail(err, PL_E_DATA, "%s: holds no results (NAME.blocks, NAME.h5 or a folder with an index)",
                       s->folder);
    if (s->count == 1) return PL_OK;
    return pl_fail(err, PL_E_USAGE, "%s: holds several results; name one of %s", s->folder, s->names);
}

pl_status pl_results_locate(const char *path, char *results, size_t room, pl_error *err)
{
    search s = {.folder = path};
    const bool looks = is_folder(path) && !has_index(path);
    if (looks) PL_TRY(find_in_folder(&s, err));
    int n = snprintf(results, room, "%s", looks ? s.found : path);
    return n >= 0 && (size_t)n < room ? PL_OK : pl_fail(err, PL_E_USAGE, "%.200s…: the path is too long", path);
}

pl_status pl_results_page_path(const char *results, char *page, size_t room, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    PL_TRY(pl_beside_path(results, PL_BESIDE_PAGE, path, err));
    int n = snprintf(page, room, "%s", path);
    return n >= 0 && (size_t)n < room ? PL_OK : pl_fail(err, PL_E_USAGE, "%.200s…: the path is too long", results);
}

/* ---- where the page may be written ---- */

enum { USES_MAX = 32, TIMES_BYTES_MAX = 1 << 20 };

typedef struct uses {
    pl_file_use use[USES_MAX];
    size_t count;
    char beside[3][PL_FILE_PATH_MAX], kept[PL_FILE_PATH_MAX];
} uses;

/* A new file in a folder that is read would be read, too. */
static void add_read(uses *u, const char *path, const char *name)
{
    if (u->count < USES_MAX)
        u->use[u->count++] = (pl_file_use){path, name, is_folder(path) ? PL_FILE_CLOSED : PL_FILE_READ};
}

static void add_named(uses *u, const pl_config *c)
{
    pl_file_use named[USES_MAX];
    const size_t all = pl_config_files(c, named, USES_MAX), count = all < USES_MAX ? all : USES_MAX;
    for (size_t i = 0; i < count; i++)
        if (named[i].role == PL_FILE_READ) add_read(u, named[i].path, named[i].name);
}

static pl_status check_uses(uses *u, const char *results, const char *page, const pl_config *c, pl_error *err)
{
    char folder[PL_FILE_PATH_MAX];
    const char *const *kept = pl_config_kept_files(c);
    u->use[u->count++] = (pl_file_use){page, "the page", PL_FILE_WRITTEN};
    add_read(u, results, "the results");
    PL_TRY(pl_beside_path(results, PL_BESIDE_CONFIG, u->beside[0], err));
    PL_TRY(pl_beside_path(results, PL_BESIDE_PROCESSES, u->beside[1], err));
    add_read(u, u->beside[0], "the config of the results");
    add_read(u, u->beside[1], "what processes told");
    PL_TRY(pl_beside_path(results, PL_BESIDE_TIMES, u->beside[2], err));
    add_read(u, u->beside[2], "their table of times");
    add_named(u, c);
    PL_TRY(pl_files_check(u->use, u->count, err));
    PL_TRY(pl_config_run_folder(c, folder, sizeof folder, err));
    const size_t others = u->count;
    for (; *kept; kept++, u->count = others) {
        PL_TRY(pl_path_join(u->kept, sizeof u->kept, folder, *kept, err));
        add_read(u, u->kept, *kept);
        PL_TRY(pl_files_check(u->use, u->count, err));
    }
    return PL_OK;
}

pl_status pl_results_page_check(const char *results, const char *page, pl_error *err)
{
    char beside[PL_FILE_PATH_MAX];
    pl_error ignored;
    uses *u = pl_alloc(1, sizeof *u);
    pl_config *c = pl_config_create();
    pl_status status = u && c ? PL_OK : pl_fail(err, PL_E_NOMEM, "no memory to compare the page with what it is about");
    if (status == PL_OK) status = pl_beside_path(results, PL_BESIDE_CONFIG, beside, err);
    if (status == PL_OK && pl_config_load_file(c, beside, &ignored) != PL_OK) { /* then its files are not known */
    }
    if (status == PL_OK) status = check_uses(u, results, page, c, err);
    if (status == PL_OK) status = pl_page_check(page, err);
    pl_config_destroy(c);
    pl_free(u);
    return status;
}

/* ---- the config, as the results hold it: {"model.arch": "cnn_operator", …} ---- */

static pl_status unknown(const char *path, const char *why, pl_error *err)
{
    return pl_fail(err, PL_E_DATA,
                   "%s: no page is known for these results; what made them is no config of this version: %.300s", path,
                   why);
}

static void add_hash(pl_facts *made, const char *name, const char *text)
{
    uint64_t value;
    if (text && pl_checksum_parse(text, &value) == 0) pl_facts_add(made, name, value);
}

static pl_status set_keys(pl_config *c, const char *path, json_t *keys, pl_facts *made, pl_error *err)
{
    const char *key;
    json_t *value;
    pl_error why = {0};
    if (!json_is_object(keys)) return unknown(path, "it is no JSON object", err);
    json_object_foreach(keys, key, value)
    {
        const char *text = json_string_value(value);
        if (strncmp(key, PL_RESULTS_HASH, strlen(PL_RESULTS_HASH)) == 0) {
            add_hash(made, key + strlen(PL_RESULTS_HASH), text);
            continue;
        }
        if (!text) return unknown(path, key, err);
        if (pl_config_set(c, key, text, "the results", &why) != PL_OK) return unknown(path, why.text, err);
    }
    return PL_OK;
}

static pl_status read_config(pl_config *c, const char *path, const char *text, pl_facts *made, pl_error *err)
{
    json_t *keys;
    json_error_t why;
    pl_status status = pl_json_read(text, strlen(text), JSON_REJECT_DUPLICATES, &keys, &why);
    if (status == PL_E_NOMEM) return pl_fail(err, status, "no memory for the config of %s", path);
    if (status != PL_OK) return unknown(path, why.text, err);
    status = set_keys(c, path, keys, made, err);
    json_decref(keys);
    return status;
}

/* ---- the page ---- */

/* The whole config, which lies next to the results of some systems; else NULL, and why. */
static void read_given(const char *path, pl_page_wish *wish, pl_error *why)
{
    char beside[PL_FILE_PATH_MAX];
    pl_config *c = pl_config_create();
    pl_status status = c ? pl_beside_path(path, PL_BESIDE_CONFIG, beside, why) : pl_fail(why, PL_E_NOMEM, "no memory");
    if (status == PL_OK) status = pl_config_load_file(c, beside, why);
    if (status != PL_OK) pl_config_destroy(c), c = NULL;
    wish->given = c;
    wish->why = c ? NULL : why->text;
}

/* Where the time of the last process went. One that was killed, or an earlier version, has left nothing; and the page
 * is made even where that file cannot be read. */
static pl_status add_times(const char *path, pl_doc *d, pl_error *err)
{
    char file[PL_FILE_PATH_MAX], *text = NULL;
    size_t bytes;
    pl_error why = {0};
    pl_status status = PL_OK;
    pl_report_times *times = pl_alloc(1, sizeof *times); /* large */
    if (!times) return pl_fail(err, PL_E_NOMEM, "%s: no memory for its table of times", path);
    PL_TRY_DONE(pl_beside_path(path, PL_BESIDE_TIMES, file, &why));
    if (access(file, F_OK) != 0) goto done;
    PL_TRY_DONE(pl_file_read_all(file, TIMES_BYTES_MAX, &text, &bytes, &why));
    PL_TRY_DONE(pl_report_times_read(file, text, bytes, times, &why));
    pl_report_times_add(times, d);
done:
    pl_free(times);
    pl_free(text);
    if (status != PL_E_NOMEM) return PL_OK;
    *err = why;
    return status;
}

static pl_status add_page(const pl_results *r, const char *path, size_t only, pl_config *c, pl_doc *d, pl_error *err)
{
    pl_process_told *told;
    pl_page_wish wish = {.results = r->reader, .path = path, .only = only == PL_RESULTS_NONE ? PL_PAGE_EVERY : only};
    pl_error why = {0};
    PL_TRY(read_config(c, path, r->layout->text, &wish.made, err));
    if (!pl_task_of(c)->page) return unknown(path, "its system shows none", err);
    PL_TRY(pl_beside_read(path, &told, &wish.told_count, err));
    wish.told = told;
    if (pl_task_of(c)->keeps_config) read_given(path, &wish, &why);
    pl_status status = pl_task_of(c)->page(c, &wish, d, err);
    if (status == PL_OK) status = add_times(path, d, err);
    if (status == PL_OK && d->body.failed) status = pl_fail(err, PL_E_NOMEM, "%s: no memory for the page", path);
    pl_config_destroy((pl_config *)(uintptr_t)wish.given);
    pl_free(told);
    return status;
}

pl_status pl_results_report(const char *path, size_t only, char **text, size_t *bytes, pl_error *err)
{
    pl_results *results;
    pl_str out = {0};
    pl_doc d = pl_doc_begin();
    *text = NULL;
    PL_TRY(pl_results_open(path, &results, err));
    pl_config *c = pl_config_create();
    pl_status status = c ? add_page(results, path, only, c, &d, err)
                         : pl_fail(err, PL_E_NOMEM, "no memory for the page about %s", path);
    pl_config_destroy(c);
    pl_results_close(results);
    if (status == PL_OK) pl_doc_page(&d, &out);
    pl_doc_deinit(&d);
    if (status == PL_OK) return pl_give_text(&out, text, bytes, err);
    pl_str_deinit(&out);
    return status;
}
