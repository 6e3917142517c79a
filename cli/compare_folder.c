#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
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

/* There are files in it alone. Through its descriptor, which no link led to: so nothing else is emptied. */
void pl_compare_folder_remove(const char *path)
{
    const int fd = path[0] ? open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    for (struct dirent *e; d && (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) (void)unlinkat(fd, e->d_name, 0);
    if (d) closedir(d);
    if (!d && fd >= 0) close(fd);
    if (path[0]) (void)rmdir(path);
}
