/* May these files be written? A writer replaces the old file by way of a temporary one next to it: neither may be one
 * that is also read, or written under another name. Existing files are compared by identity (a link and its target are
 * one file), others by the paths that they will have. */
#include "systems/files.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "plimsoll/config.h"
#include "store/run_files.h"
#include "systems/system.h"

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Appends the names that do not exist yet, one by one, as the path will be. */
static bool append_names(char path[PATH_MAX], const char *names)
{
    for (size_t n; *(names += strspn(names, "/")); names += n) {
        n = strcspn(names, "/");
        const size_t length = strcmp(path, "/") == 0 ? 0 : strlen(path);
        const bool is_here = n == 1 && names[0] == '.', is_above = n == 2 && memcmp(names, "..", 2) == 0;
        if (is_here) continue;
        if (is_above) {
            *strrchr(path, '/') = 0;
            if (!path[0]) strcpy(path, "/");
            continue;
        }
        if (length + 1 + n >= PATH_MAX) return false;
        path[length] = '/';
        memcpy(path + length + 1, names, n);
        path[length + 1 + n] = 0;
    }
    return true;
}

/* The nearest existing folder above, without links, and where in the path the missing names begin. */
static bool find_above(const char *path, char found[PATH_MAX], size_t *end)
{
    char above[PATH_MAX];
    for (;;) {
        while (*end > 0 && path[*end - 1] == '/') --*end;
        while (*end > 0 && path[*end - 1] != '/') --*end; /* drops the last name */
        snprintf(above, sizeof above, "%.*s", *end ? (int)*end : 1, *end ? path : ".");
        if (realpath(above, found)) return true;
        if (*end == 0) return false;
    }
}

/* If the first name is a link to something that does not exist yet, the path continues from its target. */
static bool follow(const char *folder, const char *names, char path[PATH_MAX])
{
    char name[PATH_MAX], to[PATH_MAX];
    const int first = (int)strcspn(names, "/");
    int n = snprintf(name, sizeof name, "%s/%.*s", folder, first, names);
    const ssize_t length = n > 0 && n < PATH_MAX ? readlink(name, to, sizeof to - 1) : -1;
    if (length <= 0) return false;
    to[length] = 0;
    n = snprintf(name, sizeof name, "%s%s%s%s", to[0] == '/' ? "" : folder, to[0] == '/' ? "" : "/", to, names + first);
    if (n <= 0 || n >= PATH_MAX) return false;
    memcpy(path, name, (size_t)n + 1);
    return true;
}

/* The path without links. For what does not exist, that of the nearest existing folder above, with the rest: a run
 * makes its folders later. False when it is too long, or its links form a circle. */
static bool find_path(const char *given, char found[PATH_MAX])
{
    enum { LINKS_MAX = 40 };
    char path[PATH_MAX];
    if (strlen(given) >= sizeof path) return false;
    strcpy(path, given);
    for (int links = 0; links < LINKS_MAX; links++) {
        size_t end = strlen(path);
        if (realpath(path, found)) return true;
        if (!find_above(path, found, &end)) return false;
        if (!follow(found, path + end, path)) return append_names(found, path + end);
    }
    return false;
}

bool pl_files_are_one(const char *a, const char *b)
{
    struct stat at_a, at_b;
    char path_a[PATH_MAX], path_b[PATH_MAX];
    bool is_a = stat(a, &at_a) == 0, is_b = stat(b, &at_b) == 0;
    if (is_a && is_b) return is_same(&at_a, &at_b);
    return find_path(a, path_a) && find_path(b, path_b) && strcmp(path_a, path_b) == 0;
}

bool pl_file_is_below(const char *path, const char *folder)
{
    char inner[PATH_MAX], outer[PATH_MAX];
    if (!find_path(path, inner) || !find_path(folder, outer)) return false;
    size_t n = strlen(outer);
    return strncmp(inner, outer, n) == 0 && inner[n] == '/';
}

/* What is written is the target of links. What cannot be found is refused by whoever opens it. */
pl_status pl_file_check_free(const char *path, const char *own, pl_error *err)
{
    char found[PATH_MAX];
    return find_path(path, found) ? pl_run_check_free(found, own, &pl_system_data, err) : PL_OK;
}

static pl_status check_pair(const pl_file_use *written, const pl_file_use *other, pl_error *err)
{
    char temporary[PL_FILE_TEMPORARY_MAX];
    const bool fits = strlen(written->path) < PL_FILE_PATH_MAX;
    if (other->role == PL_FILE_CLOSED && pl_file_is_below(written->path, other->path))
        return pl_fail(err, PL_E_USAGE,
                       "%s: %.350s lies in %.350s, where nothing else may be written; give another name", written->name,
                       written->path, other->path);
    bool both = pl_files_are_one(written->path, other->path);
    if (!both && (!fits || !pl_files_are_one(pl_file_temporary(written->path, "", temporary), other->path)))
        return PL_OK;
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
