#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compare.h"

pl_status pl_compare_folder_make(char path[PATH_MAX], pl_error *err)
{
    const char *below = getenv("TMPDIR");
    const int n = snprintf(path, PATH_MAX, "%s/plimsoll-compare-XXXXXX", below && below[0] ? below : "/tmp");
    const bool fits = n > 0 && n < PATH_MAX - 64; /* names of files come behind it */
    if (fits && mkdtemp(path)) return PL_OK;
    const int why = fits ? errno : ENAMETOOLONG;
    path[0] = 0;
    return pl_cli_error(err, PL_E_STORAGE,
                        "no folder for the files of a comparison can be made in %.300s: %s; name another place with "
                        "TMPDIR",
                        below && below[0] ? below : "/tmp", strerror(why));
}

/* There are files in it alone. */
void pl_compare_folder_remove(const char *path)
{
    struct dirent *e;
    char file[PATH_MAX + NAME_MAX + 2];
    DIR *d = path[0] ? opendir(path) : NULL;
    while (d && (e = readdir(d))) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        snprintf(file, sizeof file, "%s/%s", path, e->d_name);
        (void)unlink(file);
    }
    if (d) closedir(d);
    if (path[0]) (void)rmdir(path);
}
