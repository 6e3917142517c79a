/* The table as a file:
 *
 *      {"format": "plimsoll calibration 1",
 *       "machine": {"cpu": "…", "isa": "avx512", "cores": 2, "kernels": "9f…"},
 *       "entries": [{"key": "…", "seconds": 1.2e-4, "spread": 2e-6, "samples": 240}, …]}
 *
 * It is a cache: safe to delete, and whatever is wrong with it costs a new measurement and a warning, nothing more.
 *
 * Its name tells the machine and the code of the kernels, so that builds which share a folder keep a table each. Of one
 * machine's tables the BUILDS_KEPT that were used last stay: a folder does not grow with the number of builds. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/json_read.h"
#include "base/philox.h"
#include "calibrate/table.h"

#define FORMAT "plimsoll calibration 1"
enum { ENTRY_EXTRA_BYTES = 192, HEADER_BYTES = 1024, BUILDS_KEPT = 6, NAME_BYTES = 64 };

static void warn(pl_calibration *c, const char *what)
{
    snprintf(c->warning, sizeof c->warning, "the calibration file %.300s %s; the kernels are measured anew", c->path,
             what);
}

static void kernels_text(const pl_calibration_machine *m, char text[24])
{
    snprintf(text, 24, "%016" PRIx64, m->kernels);
}

static bool is_text(const json_t *object, const char *key, const char *wanted)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text && strcmp(text, wanted) == 0;
}

/* NULL when the table was measured here, else how it was not. */
static const char *judge(const pl_calibration *c, const json_t *root)
{
    const json_t *machine = json_object_get(root, "machine");
    char kernels[24];
    kernels_text(&c->machine, kernels);
    if (!is_text(root, "format", FORMAT)) return "is no calibration of this version";
    if (!json_is_array(json_object_get(root, "entries"))) return "is damaged (no list of entries)";
    if (!is_text(machine, "cpu", c->machine.cpu) || !is_text(machine, "isa", c->machine.isa) ||
        json_integer_value(json_object_get(machine, "cores")) != c->machine.cores)
        return "was measured on another machine";
    if (!is_text(machine, "kernels", kernels)) return "was measured by another build";
    return NULL;
}

static bool is_seconds(const json_t *value)
{
    double s = json_number_value(value);
    return json_is_number(value) && isfinite(s) && s >= 0 && s < 1e6;
}

/* 0, or -1 when the entry is not as it was written; status says whether there was memory. */
static int take_entry(pl_calibration *c, const json_t *e, pl_status *status, pl_error *err)
{
    const char *key = json_string_value(json_object_get(e, "key"));
    const json_t *seconds = json_object_get(e, "seconds"), *spread = json_object_get(e, "spread");
    json_int_t samples = json_integer_value(json_object_get(e, "samples"));
    if (!key || !*key || strlen(key) >= PL_CALIBRATION_KEY_BYTES || !is_seconds(seconds) || !is_seconds(spread) ||
        samples < 1)
        return -1;
    *status = pl_calibration_put(c, key, json_number_value(seconds), json_number_value(spread), (uint64_t)samples, err);
    return 0;
}

static pl_status take_entries(pl_calibration *c, const json_t *entries, pl_error *err)
{
    pl_status status = PL_OK;
    for (size_t i = 0; i < json_array_size(entries) && status == PL_OK; i++) {
        if (take_entry(c, json_array_get(entries, i), &status, err) == 0) continue;
        pl_calibration_clear(c);
        warn(c, "is damaged (an entry is not as it was written)");
        return PL_OK;
    }
    return status;
}

pl_status pl_calibration_read(pl_calibration *c, pl_error *err)
{
    if (!c->path[0] || access(c->path, F_OK)) return PL_OK;
    char *text = NULL;
    size_t bytes = 0;
    pl_status status = pl_file_read_all(c->path, PL_CALIBRATION_FILE_BYTES_MAX, &text, &bytes, NULL);
    if (status == PL_E_NOMEM) return pl_fail(err, status, "no memory to read the calibration file %s", c->path);
    if (status != PL_OK) {
        warn(c, "cannot be read or is too large");
        return PL_OK;
    }
    json_error_t where;
    json_t *root;
    status = pl_json_read(text, bytes, JSON_REJECT_DUPLICATES, &root, &where);
    pl_free(text);
    if (status == PL_E_NOMEM) return pl_fail(err, status, "no memory to read the calibration file %s", c->path);
    const char *wrong = status == PL_OK ? judge(c, root) : "is damaged (no JSON)";
    status = PL_OK;
    if (wrong)
        warn(c, wrong);
    else
        status = take_entries(c, json_object_get(root, "entries"), err);
    if (!wrong) (void)utimensat(AT_FDCWD, c->path, NULL, 0); /* it is in use */
    json_decref(root);
    return status;
}

/* The oldest entry that still fits into the largest file. */
static size_t first_to_keep(const pl_calibration *c)
{
    uint64_t bytes = HEADER_BYTES;
    size_t first = c->count;
    while (first > 0) {
        bytes += strlen(c->entry[first - 1].key) + ENTRY_EXTRA_BYTES;
        if (bytes > PL_CALIBRATION_FILE_BYTES_MAX) break;
        first--;
    }
    return first;
}

static void print_machine(const pl_calibration_machine *m, pl_json *json)
{
    char kernels[24];
    kernels_text(m, kernels);
    pl_json_key(json, "machine");
    pl_json_object(json);
    pl_json_kv_string(json, "cpu", m->cpu);
    pl_json_kv_string(json, "isa", m->isa);
    pl_json_kv_int(json, "cores", m->cores);
    pl_json_kv_string(json, "kernels", kernels);
    pl_json_object_end(json);
}

static void print_table(const pl_calibration *c, pl_str *out)
{
    pl_json json = pl_json_begin(out, false);
    pl_json_object(&json);
    pl_json_kv_string(&json, "format", FORMAT);
    print_machine(&c->machine, &json);
    pl_json_key(&json, "entries");
    pl_json_array(&json);
    for (size_t i = first_to_keep(c); i < c->count; i++) {
        pl_json_object(&json);
        pl_json_kv_string(&json, "key", c->entry[i].key);
        pl_json_kv_double(&json, "seconds", c->entry[i].seconds);
        pl_json_kv_double(&json, "spread", c->entry[i].spread);
        pl_json_kv_uint(&json, "samples", c->entry[i].samples);
        pl_json_object_end(&json);
    }
    pl_json_array_end(&json);
    pl_json_object_end(&json);
    pl_str_append(out, "\n");
}

/* ---- one table a build ---- */

/* "calibration-<machine>": what the names of all this machine's tables begin with. */
static void print_prefix(const pl_calibration_machine *m, char prefix[NAME_BYTES])
{
    char text[160];
    snprintf(text, sizeof text, "%s %s %d", m->cpu, m->isa, m->cores);
    snprintf(prefix, NAME_BYTES, "calibration-%016" PRIx64, pl_stream_id(text));
}

static bool is_table(const char *name, const char *prefix)
{
    size_t n = strlen(prefix), bytes = strlen(name);
    return strncmp(name, prefix, n) == 0 && bytes < NAME_BYTES && bytes >= n + 5 &&
           strcmp(name + bytes - 5, ".json") == 0;
}

static bool is_older(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

/* How many tables of this machine there are, and the name of the one that was used longest ago. */
static size_t find_oldest(DIR *folder, const char *prefix, char oldest[NAME_BYTES])
{
    struct timespec used = {0};
    struct stat st;
    size_t count = 0;
    rewinddir(folder);
    for (struct dirent *e; (e = readdir(folder));) {
        if (!is_table(e->d_name, prefix) || fstatat(dirfd(folder), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
        if (count++ == 0 || is_older(&st.st_mtim, &used)) used = st.st_mtim, strcpy(oldest, e->d_name);
    }
    return count;
}

/* Only where the tables have the names that we give; what cannot be removed stays. */
static void remove_old(const pl_calibration *c, const char *folder_path)
{
    char prefix[NAME_BYTES], oldest[NAME_BYTES];
    const char *slash = strrchr(c->path, '/');
    print_prefix(&c->machine, prefix);
    if (!is_table(slash ? slash + 1 : c->path, prefix)) return;
    DIR *folder = opendir(folder_path);
    if (!folder) return;
    while (find_oldest(folder, prefix, oldest) > BUILDS_KEPT && unlinkat(dirfd(folder), oldest, 0) == 0) {
    }
    closedir(folder);
}

static pl_status write_table(const pl_calibration *c, const pl_str *text, pl_error *err)
{
    char folder[PL_CALIBRATION_PATH_BYTES];
    memcpy(folder, c->path, sizeof folder);
    char *slash = strrchr(folder, '/');
    if (slash && slash != folder) {
        *slash = 0;
        PL_TRY(pl_folder_create(folder, err));
    }
    PL_TRY(pl_file_write_all(c->path, pl_str_text(text), text->bytes, err));
    remove_old(c, slash && slash != folder ? folder : slash ? "/" : ".");
    return PL_OK;
}

pl_status pl_calibration_save(pl_calibration *c, pl_error *err)
{
    if (!c->changed || !c->path[0]) return PL_OK;
    pl_str text = {0};
    pl_error why = {0};
    print_table(c, &text);
    pl_status status =
        text.failed ? pl_fail(err, PL_E_NOMEM, "no memory to write the calibration file %s", c->path) : PL_OK;
    if (status == PL_OK && write_table(c, &text, &why) != PL_OK)
        snprintf(c->warning, sizeof c->warning, "the calibration is not kept: %.400s", why.text);
    else if (status == PL_OK)
        c->changed = false;
    pl_str_deinit(&text);
    return status;
}

pl_status pl_calibration_path(char *path, size_t room, const char *folder, pl_error *err)
{
    pl_calibration_machine m;
    char prefix[NAME_BYTES], kernels[24], name[2 * NAME_BYTES];
    PL_TRY(pl_calibration_machine_read(&m, err));
    print_prefix(&m, prefix);
    kernels_text(&m, kernels);
    snprintf(name, sizeof name, "%s-%s.json", prefix, kernels);
    return pl_path_join(path, room, folder, name, err);
}
