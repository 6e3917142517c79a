#include "data/infer/names.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "data/infer/rows.h"
#include "texts/list.h"

/* ---- lists are replaced by their lines ---- */

/* The length of "NAME=" where that names an input; else 0. */
static size_t prefix_of(const char *line, const pl_infer_port *port, uint32_t ports, uint32_t *which)
{
    for (uint32_t k = 0; k < ports; k++) {
        const size_t bytes = strlen(port[k].name);
        if (strncmp(line, port[k].name, bytes) == 0 && line[bytes] == '=') return *which = k, bytes + 1;
    }
    return 0;
}

/* The next line of *at, without its end, as a text of its own. */
static char *next_line(char **at)
{
    char *line = *at, *end = strchr(line, '\n');
    *at = end ? end + 1 : line + strlen(line);
    if (end) *end = 0;
    const size_t bytes = strlen(line);
    if (bytes && line[bytes - 1] == '\r') line[bytes - 1] = 0;
    return line;
}

typedef struct expansion {
    const pl_infer_port *port;
    uint32_t ports, depth; /* nesting of lists */
    const char *prefix;    /* "NAME=" of the input that the list was given for */
    size_t prefix_bytes;
    pl_str *to, *places, *lists;
} expansion;

static pl_status take_listed(void *context, const char *line, const pl_list_line *at, pl_error *err);

static pl_status add_list(const expansion *e, const char *list, pl_error *err)
{
    expansion within = *e;
    const size_t before = e->to->bytes;
    if (e->depth == PL_LISTS_DEEP)
        return pl_fail(err, PL_E_DATA, "%.300s: is a list in a list, more than %d deep; name files in it", list,
                       (int)PL_LISTS_DEEP);
    within.depth++;
    pl_str_printf(e->lists, "%s\n", list);
    PL_TRY(pl_list_each(list, take_listed, &within, err));
    if (e->to->failed || e->to->bytes > before) return PL_OK;
    return pl_fail(err, PL_E_DATA, "%.300s: the list names no files", list);
}

/* Lines that name no input of their own belong to the one given for their list. */
static pl_status take_line(const expansion *e, const char *line, const pl_list_line *at, pl_error *err)
{
    char path[PL_FILE_PATH_MAX], place[400];
    uint32_t ignored;
    const size_t own = prefix_of(line, e->port, e->ports, &ignored);
    expansion of = *e;
    if (own) of.prefix = line, of.prefix_bytes = own;
    PL_TRY(pl_list_seen(at, line + own, path, err));
    if (line[own] == '@' && access(path, F_OK) != 0) { /* a file of that name comes before a list */
        PL_TRY(pl_list_seen(at, line + own + 1, path, err));
        PL_TRY(pl_list_check_there(at, path, err));
        return add_list(&of, path, err);
    }
    pl_str_append_bytes(e->to, of.prefix, of.prefix_bytes);
    pl_str_printf(e->to, "%s\n", path);
    pl_str_printf(e->places, "%s\n", pl_list_place(at, place, sizeof place));
    return PL_OK;
}

static pl_status take_listed(void *context, const char *line, const pl_list_line *at, pl_error *err)
{
    return take_line(context, line, at, err);
}

static pl_status expand(const expansion *e, char *text, pl_error *err)
{
    while (*text) PL_TRY(take_line(e, next_line(&text), NULL, err));
    return e->to->failed || e->places->failed || e->lists->failed
               ? pl_fail(err, PL_E_NOMEM, "no memory for the names of the files")
               : PL_OK;
}

/* ---- the input of each ---- */

static pl_status find_port(const char *line, const pl_infer_port *port, uint32_t ports, const uint64_t *given,
                           pl_infer_name *n, pl_error *err)
{
    const size_t prefix = prefix_of(line, port, ports, &n->port);
    n->path = line + prefix;
    if (!*n->path) return pl_fail(err, PL_E_USAGE, "a file of %s has no name", port[prefix ? n->port : 0].name);
    if (prefix) return PL_OK;
    for (n->port = 0; n->port < ports; n->port++)
        if (ports == 1 || given[n->port] == 0) return PL_OK;
    return pl_fail(err, PL_E_USAGE,
                   "%.300s: each of the model's %u inputs has a file already; say whose further ones are (%s=FILE)",
                   line, ports, port[0].name);
}

static uint64_t count_lines(const char *text)
{
    uint64_t lines = 0;
    for (; *text; text++) lines += *text == '\n';
    return lines;
}

static pl_status find_ports(pl_infer_names *n, const pl_infer_port *port, uint32_t ports, pl_error *err)
{
    uint64_t given[PL_INFER_PORTS_MAX] = {0};
    n->name = pl_alloc(count_lines(n->text) + 1, sizeof *n->name);
    if (!n->name) return pl_fail(err, PL_E_NOMEM, "no memory for the names of the files");
    for (char *at = n->text, *place = n->places; *at; n->count++) {
        n->name[n->count].place = next_line(&place);
        PL_TRY(find_port(next_line(&at), port, ports, given, &n->name[n->count], err));
        given[n->name[n->count].port]++;
    }
    return PL_OK;
}

pl_status pl_infer_names_read(const char *given, const pl_infer_port *port, uint32_t ports, pl_infer_names *n,
                              pl_error *err)
{
    pl_str all = {0}, places = {0};
    char *text = pl_strdup(given);
    *n = (pl_infer_names){.count = 0};
    const expansion all_of = {port, ports, 0, "", 0, &all, &places, &n->lists};
    pl_status status =
        text ? expand(&all_of, text, err) : pl_fail(err, PL_E_NOMEM, "no memory for the names of the files");
    if (status == PL_OK) n->text = pl_strdup(pl_str_text(&all)), n->places = pl_strdup(pl_str_text(&places));
    if (status == PL_OK && (!n->text || !n->places))
        status = pl_fail(err, PL_E_NOMEM, "no memory for the names of the files");
    pl_str_deinit(&all);
    pl_str_deinit(&places);
    pl_free(text);
    return status == PL_OK ? find_ports(n, port, ports, err) : status;
}

/* ---- is there such a file? ---- */

/* Refuses NAME=FILE where no input has that name and no file has the whole as its name. */
static pl_status check_name(const char *line, const pl_infer_port *port, uint32_t ports, pl_error *err)
{
    char path[PL_FILE_PATH_MAX], text[PL_INFER_PORTS_MAX * (PL_INFER_NAME_BYTES + 2)];
    const char *dataset, *equals = strchr(line, '='), *slash = strchr(line, '/');
    if (!equals || equals == line || (slash && slash < equals)) return PL_OK;
    PL_TRY(pl_rows_split(line, path, &dataset, err));
    if (access(path, F_OK) == 0) return PL_OK;
    pl_str list = pl_str_fixed(text, sizeof text);
    for (uint32_t k = 0; k < ports; k++) pl_str_printf(&list, "%s%s", k ? ", " : "", port[k].name);
    return pl_fail(err, PL_E_USAGE,
                   "%.300s: there is no such file, and the model has no input %.*s; %s %s, to be named as NAME=FILE",
                   line, (int)(equals - line < 100 ? equals - line : 100), line,
                   ports == 1 ? "its input is" : "its inputs are", pl_str_text(&list));
}

/* Looks here for what a list names, where the line is known. */
static pl_status check_listed(const pl_infer_name *n, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    const char *dataset;
    uint64_t bytes;
    int fd;
    if (!n->place[0]) return PL_OK;
    PL_TRY(pl_rows_split(n->path, path, &dataset, err));
    if (access(path, F_OK) == 0) return PL_OK;
    PL_TRY(pl_file_open(path, &fd, &bytes, err));
    close(fd);
    return PL_OK;
}

pl_status pl_infer_names_check(const pl_infer_names *n, const pl_infer_port *port, uint32_t ports, pl_error *err)
{
    for (uint64_t i = 0; i < n->count; i++) {
        pl_status status = check_name(n->name[i].path, port, ports, err);
        if (status == PL_OK) status = check_listed(&n->name[i], err);
        if (status != PL_OK && n->name[i].place[0]) pl_fail_prefix(err, status, "%s", n->name[i].place);
        if (status != PL_OK) return status;
    }
    return PL_OK;
}

void pl_infer_names_deinit(pl_infer_names *n)
{
    pl_free(n->text);
    pl_free(n->places);
    pl_free(n->name);
    pl_str_deinit(&n->lists);
    *n = (pl_infer_names){.count = 0};
}
