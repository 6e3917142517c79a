#include "store/beside.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/io.h"
#include "base/json.h"
#include "base/json_read.h"
#include "base/remove.h"

#define SCHEMA "plimsoll.process/1"
enum { LINE_BYTES = 512, FILE_BYTES_MAX = 64 << 20 };

/* What ends a name is replaced, unless that would be the name again. */
pl_status pl_beside_path(const char *results, const char *ending, char path[PL_FILE_PATH_MAX], pl_error *err)
{
    size_t bytes = strlen(results);
    while (bytes > 1 && results[bytes - 1] == '/') bytes--; /* a folder */
    size_t name = bytes;
    while (name > 0 && results[name - 1] != '/') name--;
    size_t dot = bytes;
    while (dot > name + 1 && results[dot - 1] != '.') dot--;
    size_t stem = dot > name + 1 ? dot - 1 : bytes;
    if (strlen(ending) == bytes - stem && strncmp(results + stem, ending, bytes - stem) == 0) stem = bytes;
    int n = snprintf(path, PL_FILE_PATH_MAX, "%.*s%s", (int)stem, results, ending);
    if (n < 0 || n >= PL_FILE_PATH_MAX) return pl_fail(err, PL_E_USAGE, "%.200s…: the path is too long", results);
    const size_t most = NAME_MAX - strlen(ending);
    if (stem - name <= most) return PL_OK;
    return pl_fail(err, PL_E_USAGE,
                   "%.300s: the name is too long for the file that lies next to it and ends in %s: choose one with at "
                   "most %zu bytes before its ending",
                   results, ending, most);
}

static size_t print_line(const pl_process_told *t, char text[LINE_BYTES])
{
    pl_str out = pl_str_fixed(text, LINE_BYTES);
    pl_str_append(&out, "\n"); /* whatever the last writer left behind */
    pl_json j = pl_json_document(&out, true, SCHEMA);
    pl_json_kv_uint(&j, "group", t->group);
    pl_json_kv_uint(&j, "planned_bytes", t->planned_bytes);
    pl_json_kv_uint(&j, "measured_bytes", t->measured_bytes);
    pl_json_kv_uint(&j, "peak_bytes", t->peak_bytes);
    pl_json_kv_bool(&j, "as_planned", t->as_planned);
    pl_json_kv_uint(&j, "items", t->items);
    pl_json_kv_double(&j, "seconds", t->seconds);
    pl_json_document_end(&j);
    return out.bytes;
}

/* Does the file end with a whole line, or is it empty? */
static bool ends_whole(int fd)
{
    struct stat s;
    char last = '\n';
    if (fstat(fd, &s) != 0 || s.st_size == 0) return true;
    return pread(fd, &last, 1, s.st_size - 1) == 1 && last == '\n';
}

pl_status pl_beside_append(const char *results, const pl_process_told *told, pl_error *err)
{
    char path[PL_FILE_PATH_MAX], text[LINE_BYTES];
    PL_TRY(pl_beside_path(results, PL_BESIDE_PROCESSES, path, err));
    int fd = pl_io_open(path, O_RDWR | O_CREAT | O_APPEND);
    if (fd < 0) return pl_fail(err, PL_E_STORAGE, "%s: cannot be written: %s", path, strerror(errno));
    const size_t bytes = print_line(told, text), from = ends_whole(fd);
    size_t written;
    int error = pl_io_append(fd, text + from, bytes - from, &written);
    if (pl_io_close(fd) != 0 && !error) error = errno;
    return error ? pl_fail(err, PL_E_STORAGE, "%s: cannot be written: %s", path, strerror(error)) : PL_OK;
}

pl_status pl_beside_forget(const char *results, pl_error *err)
{
    static const char *const told[] = {PL_BESIDE_PROCESSES, PL_BESIDE_TIMES};
    char path[PL_FILE_PATH_MAX];
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        PL_TRY(pl_beside_path(results, told[i], path, err));
        PL_TRY(pl_remove_file(path, err));
    }
    return PL_OK;
}

/* Who writes takes such a file over, unless another is at it; so to begin and to give up removes it. */
void pl_beside_sweep(const char *results)
{
    char path[PL_FILE_PATH_MAX], left[PL_FILE_TEMPORARY_MAX];
    pl_error ignored;
    pl_file_writer w;
    if (pl_beside_path(results, PL_BESIDE_TIMES, path, &ignored) != PL_OK) return;
    if (access(pl_file_temporary(path, "", left), F_OK) == 0 && pl_file_create(&w, path, &ignored) == PL_OK)
        pl_file_abandon(&w);
}

/* ---- reading ---- */

static bool take_count(const json_t *line, const char *key, uint64_t *to)
{
    const json_t *value = json_object_get(line, key);
    if (!json_is_integer(value) || json_integer_value(value) < 0) return false;
    *to = (uint64_t)json_integer_value(value);
    return true;
}

static bool take_line(const json_t *line, pl_process_told *t)
{
    const char *schema = json_string_value(json_object_get(line, "schema"));
    const json_t *seconds = json_object_get(line, "seconds"), *as_planned = json_object_get(line, "as_planned");
    *t = (pl_process_told){.as_planned = json_is_true(as_planned), .seconds = json_number_value(seconds)};
    return schema && strcmp(schema, SCHEMA) == 0 && json_is_boolean(as_planned) && json_is_number(seconds) &&
           t->seconds >= 0 && take_count(line, "group", &t->group) &&
           take_count(line, "planned_bytes", &t->planned_bytes) &&
           take_count(line, "measured_bytes", &t->measured_bytes) && take_count(line, "peak_bytes", &t->peak_bytes) &&
           take_count(line, "items", &t->items);
}

static pl_status read_line(const char *text, size_t bytes, pl_process_told *told, size_t *count, pl_error *err)
{
    json_error_t why;
    json_t *line;
    pl_status status = pl_json_read(text, bytes, 0, &line, &why);
    if (status == PL_E_NOMEM) return pl_fail(err, status, "no memory for what processes told");
    if (status == PL_OK && take_line(line, &told[*count])) ++*count;
    if (status == PL_OK) json_decref(line);
    return PL_OK;
}

static pl_status read_lines(const char *text, size_t bytes, pl_process_told **told, size_t *count, pl_error *err)
{
    size_t lines = 1;
    for (size_t i = 0; i < bytes; i++) lines += text[i] == '\n';
    *told = pl_alloc(lines, sizeof **told);
    if (!*told) return pl_fail(err, PL_E_NOMEM, "no memory for what processes told");
    for (const char *line = text, *end; line < text + bytes; line = end + 1) {
        const char *next = memchr(line, '\n', (size_t)(text + bytes - line));
        end = next ? next : text + bytes;
        PL_TRY(read_line(line, (size_t)(end - line), *told, count, err));
    }
    return PL_OK;
}

pl_status pl_beside_read(const char *results, pl_process_told **told, size_t *count, pl_error *err)
{
    char path[PL_FILE_PATH_MAX], *text;
    size_t bytes;
    bool is_there;
    *told = NULL;
    *count = 0;
    PL_TRY(pl_beside_path(results, PL_BESIDE_PROCESSES, path, err));
    PL_TRY(pl_file_look(path, &is_there, err));
    if (!is_there) return PL_OK;
    PL_TRY(pl_file_read_all(path, FILE_BYTES_MAX, &text, &bytes, err));
    pl_status status = read_lines(text, bytes, told, count, err);
    pl_free(text);
    if (status == PL_OK) return PL_OK;
    pl_free(*told);
    *told = NULL;
    return status;
}
