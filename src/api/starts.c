/* How a run was started: starts.jsonl in its folder, a line for each time (docs/formats.md). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "api/api.h"
#include "base/alloc.h"
#include "base/json.h"
#include "base/machine.h"
#include "base/units.h"
#include "plimsoll/times.h"
#include "plimsoll/version.h"
#include "store/folder.h"
#include "store/run_files.h"

extern const char pl_build_commit[]; /* cmake/commit.cmake writes it; "": not known */

/* The newest lines of a longer history stay. */
enum { KEPT_BYTES = 256 << 10 };
static const char SCHEMA[] = "plimsoll.start/1", BEGINS[] = "{\"schema\":\"plimsoll.start/1\",";

/* The end of the file, beginning with a whole line. */
static pl_status read_end(int fd, const char *path, uint64_t size, char **text, size_t *bytes, pl_error *err)
{
    const uint64_t at = size > KEPT_BYTES ? size - KEPT_BYTES : 0;
    *bytes = (size_t)(size - at);
    *text = pl_alloc(*bytes + 1, 1);
    if (!*text) return pl_fail(err, PL_E_NOMEM, "%s: no memory to read it", path);
    PL_TRY(pl_file_read_at(fd, path, at, *text, *bytes, err));
    const char *newline = at ? memchr(*text, '\n', *bytes) : NULL;
    if (!newline) return PL_OK;
    *bytes -= (size_t)(newline + 1 - *text);
    memmove(*text, newline + 1, *bytes);
    return PL_OK;
}

pl_status pl_starts_read(const char *folder, char **text, size_t *bytes, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    struct stat st;
    *text = NULL, *bytes = 0;
    if (pl_path_join(path, sizeof path, folder, PL_STARTS_FILE, NULL) != PL_OK) return PL_OK;
    const int fd = pl_io_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT) return PL_OK;
    if (fd < 0)
        return pl_fail(err, PL_E_STORAGE, "%s: cannot be opened: %s%s", path, strerror(errno), pl_io_hint(errno));
    pl_status status = PL_OK;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
        status = pl_fail(err, PL_E_STORAGE, "%s: is not a regular file", path);
    if (status == PL_OK) status = read_end(fd, path, (uint64_t)st.st_size, text, bytes, err);
    if (status == PL_OK && *bytes && (*bytes < sizeof BEGINS || memcmp(*text, BEGINS, sizeof BEGINS - 1) != 0))
        status = pl_fail(err, PL_E_DATA, "%s: does not say how a run was started", path);
    close(fd);
    if (status == PL_OK) return status;
    pl_free(*text);
    *text = NULL, *bytes = 0;
    return status;
}

static pl_status add_now(const char *command, pl_str *out, pl_error *err)
{
    pl_machine m;
    char when[32], memory[32], machine[192];
    struct tm utc;
    const time_t now = time(NULL);
    PL_TRY(pl_machine_read("", &m, err));
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    snprintf(machine, sizeof machine, "%s, %d core%s, %s", m.cpu_name, m.cores, pl_plural((uint64_t)m.cores),
             pl_format_bytes(m.ram_bytes, memory, sizeof memory));
    pl_json j = pl_json_document(out, true, SCHEMA);
    pl_json_kv_string(&j, "time", when);
    pl_json_kv_string(&j, "version", pl_version());
    pl_json_kv_string(&j, "commit", *pl_build_commit ? pl_build_commit : NULL);
    pl_json_kv_string(&j, "machine", machine);
    pl_json_kv_string(&j, "command", command[0] ? command : NULL);
    pl_json_document_end(&j);
    return PL_OK;
}

pl_status pl_starts_text(const char *folder, bool goes_on, const char *command, char **text, size_t *bytes,
                         pl_error *err)
{
    pl_str out = {0};
    char *former;
    size_t length;
    *text = NULL;
    PL_TRY(pl_starts_read(folder, &former, &length, err));
    if (goes_on && length) pl_str_append_bytes(&out, former, length);
    if (goes_on && length && former[length - 1] != '\n') pl_str_append(&out, "\n"); /* a line that was torn */
    pl_free(former);
    const pl_status status = add_now(command, &out, err);
    if (status == PL_OK) return pl_give_text(&out, text, bytes, err);
    pl_str_deinit(&out);
    return status;
}
