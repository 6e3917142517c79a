/* The storage of a folder, for callers of the library. */
#include "plimsoll/storage.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "api/storage.h"
#include "base/units.h"
#include "store/folder.h"
#include "systems/system.h"

static pl_status find_root(pl_storage *s, const char *folder, pl_error *err)
{
    struct stat st;
    if (!folder[0] || strlen(folder) >= sizeof s->root)
        return pl_fail(err, PL_E_USAGE, "the name of a folder was expected, not \"%.200s\"", folder);
    if (stat(folder, &st) != 0)
        return pl_fail(err, errno == ENOENT || errno == ENOTDIR ? PL_E_USAGE : PL_E_STORAGE,
                       "%s: there is no such folder: %s; give the folder of a run, or one that holds some", folder,
                       strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return pl_fail(err, PL_E_USAGE, "%s: is not a folder; give the folder of a run, or one that holds some",
                       folder);
    strcpy(s->root, folder);
    for (size_t n = strlen(s->root); n > 1 && s->root[n - 1] == '/'; n--) s->root[n - 1] = 0;
    s->device = st.st_dev;
    if (access(folder, R_OK | X_OK) == 0) return PL_OK;
    return pl_fail(err, PL_E_STORAGE, "%s: cannot be read: %s", folder, strerror(errno));
}

static pl_status look(const char *folder, const pl_storage_rules *rules, bool is_brief, pl_storage **out, pl_error *err)
{
    *out = NULL;
    PL_TRY(pl_storage_check_rules(rules, err));
    pl_storage *s = pl_alloc(1, sizeof *s);
    if (!s) return pl_fail(err, PL_E_NOMEM, "%s: no memory to look at it", folder);
    s->rules = *rules;
    s->data = &pl_system_data;
    s->is_brief = is_brief;
    s->now = (int64_t)time(NULL);
    s->pool = pl_pool_create();
    pl_status status = s->pool ? PL_OK : pl_fail(err, PL_E_NOMEM, "%s: no memory to look at it", folder);
    if (status == PL_OK) status = find_root(s, folder, err);
    if (status == PL_OK) status = pl_disk_free(s->root, &s->disk_free, err);
    if (status == PL_OK) status = pl_storage_walk(s, err);
    if (status == PL_OK) status = pl_storage_decide(s, err);
    if (status != PL_OK) return pl_storage_destroy(s), status;
    *out = s;
    return PL_OK;
}

pl_status pl_storage_look(const char *folder, const pl_storage_rules *rules, pl_storage **out, pl_error *err)
{
    return look(folder, rules, false, out, err);
}

void pl_storage_destroy(pl_storage *s)
{
    if (!s) return;
    pl_free(s->entry);
    pl_free(s->run);
    pl_free(s->set);
    pl_free(s->folder);
    if (s->pool) pl_pool_destroy(s->pool);
    pl_free(s);
}

size_t pl_storage_count(const pl_storage *s) { return s->entries; }
pl_storage_item pl_storage_at(const pl_storage *s, size_t index) { return s->entry[index].item; }

pl_status pl_storage_clean(const pl_storage *s, void (*tell)(void *, const pl_storage_item *, uint64_t, const char *),
                           void *context, pl_storage_cleaned *cleaned, pl_error *err)
{
    const pl_storage_ears ears = {tell, context, pl_results_take_config};
    return pl_storage_work(s, &ears, cleaned, err);
}

/* ---- the warning ---- */

/* From so many files, or bytes, left by killed processes a warning is given. */
enum { PILE_FILES = 16 };
static const uint64_t PILE_BYTES = 1 << 30;

void pl_storage_warn(const char *folder, char text[PL_STORAGE_WARNING_BYTES])
{
    const pl_storage_rules none = {0};
    pl_storage *s;
    pl_error ignored = {0};
    char size[32];
    uint64_t bytes = 0, count = 0;
    text[0] = 0;
    if (access(folder, F_OK) != 0 || look(folder, &none, true, &s, &ignored) != PL_OK) return;
    for (size_t i = 0; i < s->entries; i++) {
        const pl_storage_item *m = &s->entry[i].item;
        if (m->kind != PL_STORAGE_TEMPORARY || m->fate != PL_STORAGE_GOES) continue;
        bytes += m->bytes;
        count++;
    }
    pl_storage_destroy(s);
    if (bytes <= PILE_BYTES && count <= PILE_FILES) return;
    snprintf(text, PL_STORAGE_WARNING_BYTES,
             "%.200s: %llu temporary files with %s were left behind by processes that were killed; plimsoll storage "
             "clean %.200s removes them",
             folder, (unsigned long long)count, pl_format_bytes(bytes, size, sizeof size), folder);
}
