/* What a file that is being made is called, and who may read it. */
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

/* Some file systems (eCryptfs) have less room than NAME_MAX; the smallest known has 143. */
enum { ALWAYS_FIT = 143, HASH_BYTES = 17 };

static size_t name_room(const char *path, size_t folder)
{
    char at[PL_FILE_PATH_MAX];
    snprintf(at, sizeof at, "%.*s", folder ? (int)folder : 1, folder ? path : ".");
    const long room = pathconf(at, _PC_NAME_MAX);
    return room > 0 ? (size_t)room : NAME_MAX;
}

/* FNV-1a: names that are cut stay apart. */
static uint64_t hash_of(const char *name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *name; name++) hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    return hash;
}

/* So much of a name, and no part of a character. */
static size_t cut(const char *name, size_t bytes)
{
    while (bytes > 0 && ((unsigned char)name[bytes] & 0xc0) == 0x80) bytes--;
    return bytes;
}

const char *pl_file_temporary(const char *path, const char *tag, char temporary[PL_FILE_TEMPORARY_MAX])
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const size_t more = strlen(tag) + strlen(PL_FILE_TEMPORARY), all = strlen(name) + more;
    const size_t room = all <= ALWAYS_FIT ? all : name_room(path, (size_t)(name - path));
    if (all <= room || room <= more + HASH_BYTES)
        snprintf(temporary, PL_FILE_TEMPORARY_MAX, "%s%s" PL_FILE_TEMPORARY, path, tag);
    else
        snprintf(temporary, PL_FILE_TEMPORARY_MAX, "%.*s~%016" PRIx64 "%s" PL_FILE_TEMPORARY,
                 (int)((size_t)(name - path) + cut(name, room - more - HASH_BYTES)), path, hash_of(name), tag);
    return temporary;
}

void pl_file_keep_rights(int fd, const char *replaced, unsigned more)
{
    struct stat was, is;
    if (stat(replaced, &was) != 0 || !S_ISREG(was.st_mode) || fstat(fd, &is) != 0) return;
    mode_t mode = was.st_mode & (S_IRWXU | S_IRWXG | S_IRWXO);
    const mode_t others = (mode & S_IRWXO) << 3;
    if (was.st_uid != is.st_uid && fchown(fd, was.st_uid, (gid_t)-1) != 0) { /* it is ours then */
    }
    if (was.st_gid != is.st_gid && fchown(fd, (uid_t)-1, was.st_gid) != 0) mode &= ~(mode_t)S_IRWXG | others;
    if (fchmod(fd, mode | more) != 0) { /* a file system without them (vfat) */
    }
}
