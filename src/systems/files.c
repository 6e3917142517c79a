/* May these files be written? A writer puts a new file in the place of the old, by way of a temporary one beside it:
 * neither may be one that is read too, or written under another name. Files that are there are compared by what they
 * are (a link and what it leads to are one file), those that are not by folder and name. */
#include "systems/files.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "plimsoll/config.h"

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* The path without links; of what is not there, that of its folder with the name. False when there is no folder. */
static bool find_path(const char *path, char found[PATH_MAX])
{
    char folder[PATH_MAX], whole[PATH_MAX];
    if (realpath(path, found)) return true;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    int n = snprintf(folder, sizeof folder, "%.*s", slash ? (int)(name - path) : 1, slash ? path : ".");
    if (n < 0 || n >= PATH_MAX || !realpath(folder, whole)) return false;
    return pl_path_join(found, PATH_MAX, whole, name, NULL) == PL_OK;
}

bool pl_files_are_one(const char *a, const char *b)
{
    struct stat at_a, at_b;
    char path_a[PATH_MAX], path_b[PATH_MAX];
    bool is_a = stat(a, &at_a) == 0, is_b = stat(b, &at_b) == 0;
    if (is_a || is_b) return is_a && is_b && is_same(&at_a, &at_b);
    return find_path(a, path_a) && find_path(b, path_b) && strcmp(path_a, path_b) == 0;
}

static bool is_below(const char *path, const char *folder)
{
    char inner[PATH_MAX], outer[PATH_MAX];
    if (!find_path(path, inner) || !realpath(folder, outer)) return false;
    size_t n = strlen(outer);
    return strncmp(inner, outer, n) == 0 && inner[n] == '/';
}

static pl_status check_pair(const pl_file_use *written, const pl_file_use *other, pl_error *err)
{
    char temporary[PATH_MAX];
    int n = snprintf(temporary, sizeof temporary, "%s" PL_FILE_TEMPORARY, written->path);
    if (other->role == PL_FILE_CLOSED) {
        if (!is_below(written->path, other->path)) return PL_OK;
        return pl_fail(err, PL_E_USAGE,
                       "%s: %.350s lies in %.350s, where nothing else may be written; give another name", written->name,
                       written->path, other->path);
    }
    bool both = pl_files_are_one(written->path, other->path);
    if (!both && (n < 0 || n >= PATH_MAX || !pl_files_are_one(temporary, other->path))) return PL_OK;
    return pl_fail(err, PL_E_USAGE, "%s (%.350s%s) and %s (%.350s) are the same file; give another name", written->name,
                   written->path, both ? "" : ", written as " PL_FILE_TEMPORARY " first", other->name, other->path);
}

static bool counts(const pl_file_use *use) { return use->path && use->path[0] && strcmp(use->path, "-") != 0; }

pl_status pl_files_check(const pl_file_use *use, size_t count, pl_error *err)
{
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count && use[i].role == PL_FILE_WRITTEN && counts(&use[i]); k++)
            if (k != i && counts(&use[k])) PL_TRY(check_pair(&use[i], &use[k], err));
    return PL_OK;
}
