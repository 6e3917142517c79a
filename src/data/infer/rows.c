#include "data/infer/rows.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"

static const pl_rows_kind *const kinds[] = {&pl_rows_npy};
enum { KINDS = sizeof kinds / sizeof *kinds };

const char *pl_infer_port_text(const pl_infer_port *p, char *text, size_t room)
{
    pl_str s = pl_str_fixed(text, room);
    pl_str_printf(&s, "%s [count", p->dtype == PL_DTYPE_I32 ? "whole numbers" : "real numbers");
    for (uint32_t i = 0; i < p->rank; i++) pl_str_printf(&s, ", %" PRIu64, p->dim[i]);
    pl_str_append(&s, "]");
    return text;
}

static pl_status refuse_kind(const pl_rows *r, pl_error *err)
{
    pl_str list = {.fixed = 0};
    char text[200], form[160];
    list = pl_str_fixed(text, sizeof text);
    for (int i = 0; i < KINDS; i++) pl_str_printf(&list, "%s%s", i ? ", " : "", kinds[i]->what);
    if (r->port->kind) pl_str_printf(&list, ", %s", r->port->kind->what);
    return pl_fail(err, PL_E_DATA, "%.300s: is no file that %s can be read from (%s); %s was expected", r->path,
                   r->port->name, text, pl_infer_port_text(r->port, form, sizeof form));
}

pl_status pl_rows_open(const char *path, const pl_infer_port *port, pl_rows *r, pl_error *err)
{
    char head[PL_ROWS_HEAD_BYTES];
    int fd;
    *r = (pl_rows){.path = path, .port = port};
    PL_TRY(pl_file_open(path, &fd, &r->bytes, err));
    const size_t some = r->bytes < sizeof head ? (size_t)r->bytes : sizeof head;
    pl_status status = pl_file_read_at(fd, path, 0, head, some, err);
    close(fd);
    if (status != PL_OK) return status;
    if (some == 0) return pl_fail(err, PL_E_DATA, "%.300s: is empty", path);
    for (int i = 0; i < KINDS && !r->kind; i++)
        if (kinds[i]->is_mine(port, head, some)) r->kind = kinds[i];
    if (!r->kind && port->kind && port->kind->is_mine(port, head, some)) r->kind = port->kind;
    return r->kind ? r->kind->open(r, err) : refuse_kind(r, err);
}
