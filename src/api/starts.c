/* How a run was begun, and gone on with: starts.jsonl in its folder, a line for each time (docs/formats.md). */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "api/api.h"
#include "base/json.h"
#include "base/machine.h"
#include "base/units.h"
#include "plimsoll/times.h"
#include "plimsoll/version.h"
#include "store/folder.h"
#include "store/run_files.h"

extern const char pl_build_commit[]; /* cmake/commit.cmake writes it; "": not known */

enum { FILE_BYTES_MAX = 1 << 20 };

/* A history that cannot be read, or is longer than anybody reads, stops no training: it begins anew. */
static pl_status add_former(const char *folder, pl_str *out, pl_error *err)
{
    char path[PL_FILE_PATH_MAX], *text = NULL;
    size_t bytes;
    pl_error why = {0};
    if (pl_path_join(path, sizeof path, folder, PL_STARTS_FILE, NULL) != PL_OK) return PL_OK;
    const pl_status status = pl_file_read_all(path, FILE_BYTES_MAX, &text, &bytes, &why);
    if (status == PL_E_NOMEM) return pl_fail(err, status, "%s", why.text);
    if (status == PL_OK) pl_str_append_bytes(out, text, bytes);
    if (status == PL_OK && bytes && text[bytes - 1] != '\n') pl_str_append(out, "\n");
    pl_free(text);
    return PL_OK;
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
    pl_json j = pl_json_document(out, true, "plimsoll.start/1");
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
    *text = NULL;
    pl_status status = goes_on ? add_former(folder, &out, err) : PL_OK;
    if (status == PL_OK) status = add_now(command, &out, err);
    if (status == PL_OK) return pl_give_text(&out, text, bytes, err);
    pl_str_deinit(&out);
    return status;
}
