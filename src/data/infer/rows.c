#include "data/infer/rows.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"

static const pl_rows_kind *const kinds[] = {&pl_rows_npy, &pl_rows_picture, &pl_rows_hdf5};
enum { KINDS = sizeof kinds / sizeof *kinds };

const char *pl_infer_port_text(const pl_infer_port *p, char *text, size_t room)
{
    pl_str s = pl_str_fixed(text, room);
    pl_str_printf(&s, "%s [count", p->dtype == PL_DTYPE_I32 ? "whole numbers" : "real numbers");
    for (uint32_t i = 0; i < p->rank; i++) {
        if (p->dim[i] == PL_INFER_DIM_ANY)
            pl_str_append(&s, ", any");
        else
            pl_str_printf(&s, ", %" PRIu64, p->dim[i]);
        if (i == 0 && p->dim_key) pl_str_printf(&s, " (%s)", p->dim_key);
    }
    pl_str_append(&s, "]");
    return text;
}

static pl_status refuse_kind(const pl_rows *r, pl_error *err)
{
    pl_str list = {.fixed = 0};
    char text[200], form[160];
    list = pl_str_fixed(text, sizeof text);
    for (int i = 0; i < KINDS; i++)
        if (!kinds[i]->suits || kinds[i]->suits(r->port))
            pl_str_printf(&list, "%s%s", list.bytes ? ", " : "", kinds[i]->what);
    if (r->port->kind) pl_str_printf(&list, ", %s", r->port->kind->what);
    return pl_fail(err, PL_E_DATA, "%.300s: is no file that %s can be read from (%s); %s was expected", r->path,
                   r->port->name, text, pl_infer_port_text(r->port, form, sizeof form));
}

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

pl_status pl_rows_split(const char *name, char path[PL_FILE_PATH_MAX], const char **dataset, pl_error *err)
{
    *dataset = NULL;
    if (strlen(name) >= PL_FILE_PATH_MAX) return pl_fail(err, PL_E_USAGE, "%.300s: the path is too long", name);
    memcpy(path, name, strlen(name) + 1);
    for (char *colon = path; !is_file(path) && (colon = strstr(colon, ":/")); *colon++ = ':') {
        *colon = 0;
        if (!is_file(path)) continue;
        *dataset = name + (colon - path) + 1;
        return PL_OK;
    }
    return PL_OK;
}

static pl_status refuse_folder(const char *path, pl_error *err)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) return PL_OK;
    return pl_fail(err, PL_E_DATA,
                   "%.300s: is a folder; name the files in it (%.300s/*), or a list of them, a line each (@LIST)", path,
                   path);
}

/* A text named like a file of another kind is one that was cut or damaged, or a server's answer in its place: drawn as
 * text it would give a wrong answer. */
static pl_status check_name(const pl_rows *r, const char *path, pl_error *err)
{
    const char *point = strrchr(path, '.');
    for (int i = 0; point && !strchr(point, '/') && i < KINDS; i++)
        for (const char *const *end = kinds[i]->ends; *end; end++)
            if (strcasecmp(point + 1, *end) == 0)
                return pl_fail(err, PL_E_DATA,
                               "%.300s: has the name of %s, and does not begin as one; is it whole? A text needs "
                               "another name",
                               r->path, kinds[i]->what);
    return PL_OK;
}

static pl_status find_written(const char *path, int fd, struct timespec *written, pl_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return pl_fail(err, PL_E_STORAGE, "%.300s: cannot be examined: %s", path, strerror(errno));
    *written = st.st_mtim;
    return PL_OK;
}

pl_status pl_rows_reopen(const pl_rows *r, int *fd, pl_error *err)
{
    uint64_t bytes;
    struct timespec written = {0};
    if (r->records_bytes) {
        *fd = fcntl(r->fd, F_DUPFD_CLOEXEC, r->fd);
        return *fd >= 0 ? PL_OK
                        : pl_fail(err, PL_E_STORAGE, "%.300s: what was made ready of it cannot be read: %s", r->path,
                                  strerror(errno));
    }
    PL_TRY(pl_file_open(r->path, fd, &bytes, err));
    pl_status status = find_written(r->path, *fd, &written, err);
    if (status == PL_OK &&
        (bytes != r->bytes || written.tv_sec != r->written.tv_sec || written.tv_nsec != r->written.tv_nsec))
        status = pl_fail(err, PL_E_DATA, "%.300s: was changed while it was read", r->path);
    if (status != PL_OK) close(*fd);
    return status;
}

pl_status pl_rows_find(const char *name, const pl_infer_port *port, pl_rows *r, pl_error *err)
{
    char head[PL_ROWS_HEAD_BYTES], path[PL_FILE_PATH_MAX];
    const char *dataset;
    int fd;
    *r = (pl_rows){.path = name, .port = port};
    PL_TRY(pl_rows_split(name, path, &dataset, err));
    PL_TRY(refuse_folder(path, err));
    PL_TRY(pl_file_open(path, &fd, &r->bytes, err));
    const size_t some = r->bytes < sizeof head ? (size_t)r->bytes : sizeof head;
    pl_status status = find_written(path, fd, &r->written, err);
    if (status == PL_OK) status = pl_file_read_at(fd, path, 0, head, some, err);
    close(fd);
    if (status != PL_OK) return status;
    if (some == 0) return pl_fail(err, PL_E_DATA, "%.300s: is empty", path);
    for (int i = 0; i < KINDS && !r->kind; i++)
        if (kinds[i]->is_mine(port, head, some)) r->kind = kinds[i];
    if (!r->kind && dataset) r->kind = &pl_rows_hdf5; /* what lies before its signature is the user's own */
    if (!r->kind && pl_rows_are_records(port, path, head, some)) r->kind = &pl_rows_records;
    if (!r->kind && port->kind && port->kind->is_mine(port, head, some)) {
        PL_TRY(check_name(r, path, err));
        r->kind = port->kind;
    }
    if (!r->kind) return refuse_kind(r, err);
    if (!dataset || r->kind == &pl_rows_hdf5) return PL_OK;
    return pl_fail(err, PL_E_DATA, "%.300s: datasets are of HDF5, and %.300s is none; name the file alone", name, path);
}

pl_status pl_rows_open(const char *path, const pl_infer_port *port, pl_rows *r, pl_error *err)
{
    PL_TRY(pl_rows_find(path, port, r, err));
    if (r->kind->open) return r->kind->open(r, err);
    return pl_fail(err, PL_E_DATA, "%.300s: has become another kind of file since planning; begin again", path);
}
