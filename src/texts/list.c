#include "texts/list.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"

static bool is_nameless(const char *list) { return strncmp(list, "/proc/self/fd/", 14) == 0; }

static pl_status each_line(const char *list, char *text, pl_list_taken taken, void *context, pl_error *err)
{
    pl_list_line at = {.list = list};
    for (char *line = text, *next; *line; line = next) {
        size_t bytes = strcspn(line, "\n");
        next = line + bytes + (line[bytes] == '\n');
        bytes -= bytes > 0 && line[bytes - 1] == '\r';
        line[bytes] = 0;
        at.number++;
        if (bytes) PL_TRY(taken(context, line, &at, err));
    }
    return PL_OK;
}

pl_status pl_list_each(const char *list, pl_list_taken taken, void *context, pl_error *err)
{
    char *text = NULL;
    size_t bytes;
    PL_TRY(pl_file_read_text(list, PL_LIST_BYTES_MAX, &text, &bytes, err));
    const pl_status status = strlen(text) == bytes
                                 ? each_line(list, text, taken, context, err)
                                 : pl_fail(err, PL_E_DATA, "%.300s: is no list of files: it has zeros in it", list);
    pl_free(text);
    return status;
}

pl_status pl_list_seen(const pl_list_line *at, const char *name, char path[PL_FILE_PATH_MAX], pl_error *err)
{
    const char *slash = at && !is_nameless(at->list) && name[0] != '/' ? strrchr(at->list, '/') : NULL;
    const int folder = slash ? (int)(slash - at->list) + 1 : 0;
    const int bytes = snprintf(path, PL_FILE_PATH_MAX, "%.*s%s", folder, folder ? at->list : "", name);
    return bytes >= 0 && bytes < PL_FILE_PATH_MAX ? PL_OK
                                                  : pl_fail(err, PL_E_USAGE, "the path %.200s… is too long", name);
}

const char *pl_list_place(const pl_list_line *at, char *text, size_t room)
{
    text[0] = 0;
    if (at && !is_nameless(at->list)) snprintf(text, room, "%.300s:%" PRIu64, at->list, at->number);
    return text;
}

pl_status pl_list_check_there(const pl_list_line *at, const char *path, pl_error *err)
{
    char place[400];
    struct stat st;
    uint64_t bytes;
    int fd;
    if (!pl_list_place(at, place, sizeof place)[0] || stat(path, &st) == 0) return PL_OK;
    const pl_status status = pl_file_open(path, &fd, &bytes, err);
    if (status == PL_OK) return close(fd), PL_OK;
    return pl_fail_prefix(err, status, "%s", place);
}
