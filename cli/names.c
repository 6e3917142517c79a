/* Names of files as a text of a config. More names than that can hold go into a file, a line each, which the config
 * names as @LIST. The file is nameless from the start, so it is gone with the last process that has it open, such as
 * the runner. */
#include "planning.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "out.h"

typedef struct names {
    const pl_cli_arguments *a;
    const char *first;                 /* NULL: names begin after the config */
    char input[PL_CLI_NAMELESS_BYTES]; /* file with what came from standard input ("-"); "": nothing did yet */
} names;

/* NULL after the last. */
static const char *name_at(const names *n, size_t i)
{
    const size_t at = n->first ? i : i + 1;
    const char *name = n->first && i == 0 ? n->first : at < n->a->operand_count ? n->a->all[at] : NULL;
    return name && strcmp(name, "-") == 0 && n->input[0] ? n->input : name;
}

static pl_status put(FILE *file, const names *n)
{
    const char *name;
    for (size_t i = 0; (name = name_at(n, i)); i++)
        if (fprintf(file, "%s\n", name) < 0) return PL_E_STORAGE;
    return fflush(file) == 0 ? PL_OK : PL_E_STORAGE;
}

/* stdio's memory for it is freed; the file's descriptor stays open, across exec, too. */
static pl_status write_names(int fd, const names *n)
{
    const int own = dup(fd);
    FILE *file = own >= 0 ? fdopen(own, "w") : NULL;
    if (!file) {
        if (own >= 0) close(own);
        return PL_E_STORAGE;
    }
    pl_status status = put(file, n);
    return fclose(file) == 0 ? status : PL_E_STORAGE;
}

static pl_status find_scratch(const pl_cli_input *in, char folder[PATH_MAX], pl_error *err)
{
    const pl_status status = pl_cli_setting(in->config, "infer", "scratch", folder, PATH_MAX, err);
    if (status == PL_OK && strcmp(folder, "auto") == 0) snprintf(folder, PATH_MAX, "/var/tmp");
    return status;
}

pl_status pl_cli_open_nameless(const pl_cli_input *in, char path[PL_CLI_NAMELESS_BYTES], int *fd, pl_error *err)
{
    char folder[PATH_MAX], name[PATH_MAX + 32];
    pl_status status = find_scratch(in, folder, err);
    if (status != PL_OK) return status;
    snprintf(name, sizeof name, "%s/plimsoll-names-XXXXXX", folder);
    *fd = mkstemp(name);
    if (*fd < 0)
        return pl_cli_error(err, PL_E_STORAGE, "no file can be made in %s: %s; name another folder (infer.scratch)",
                            folder, strerror(errno));
    (void)unlink(name);
    snprintf(path, PL_CLI_NAMELESS_BYTES, "/proc/self/fd/%d", *fd);
    return PL_OK;
}

static pl_status list(const pl_cli_input *in, const names *n, char *text, size_t room, pl_error *err)
{
    char folder[PATH_MAX], path[PL_CLI_NAMELESS_BYTES];
    pl_error why = {0};
    int fd = -1;
    pl_status status = find_scratch(in, folder, err);
    if (status != PL_OK) return status;
    if (pl_cli_open_nameless(in, path, &fd, &why) == PL_OK && write_names(fd, n) == PL_OK) {
        snprintf(text, room, "@%s", path);
        return PL_OK;
    }
    const int error = errno;
    if (fd >= 0) close(fd);
    return pl_cli_error(
        err, PL_E_STORAGE,
        "the names of so many files cannot be put into a file in %s: %s; name another folder (--scratch), "
        "or give the names in a file of yours (@LIST)",
        folder, strerror(error));
}

pl_status pl_cli_keep_input(const pl_cli_input *in, char path[PL_CLI_NAMELESS_BYTES], bool *is_empty, pl_error *err)
{
    char piece[16 << 10];
    ssize_t n;
    int to;
    pl_status status = pl_cli_begin_with_module(in->config, err); /* a restarted process would find nothing */
    if (status == PL_OK) status = pl_cli_open_nameless(in, path, &to, err);
    if (status != PL_OK) return status;
    *is_empty = true;
    while ((n = read(STDIN_FILENO, piece, sizeof piece)) > 0) {
        if (write(to, piece, (size_t)n) != n)
            return pl_cli_error(err, PL_E_STORAGE, "standard input cannot be kept in a file: %s", strerror(errno));
        *is_empty = false;
    }
    return n == 0 ? PL_OK : pl_cli_error(err, PL_E_STORAGE, "standard input cannot be read: %s", strerror(errno));
}

/* Standard input where a name is "-". needed: "items are". */
static pl_status take_input(const pl_cli_input *in, char path[PL_CLI_NAMELESS_BYTES], const char *needed, pl_error *err)
{
    bool is_empty;
    if (isatty(STDIN_FILENO))
        return pl_cli_error(err, PL_E_USAGE,
                            "- is standard input, which is a terminal; pipe items into it, or name a file");
    const pl_status status = pl_cli_keep_input(in, path, &is_empty, err);
    if (status != PL_OK || !is_empty) return status;
    return pl_cli_error(err, PL_E_DATA, "standard input (-) is empty; %s needed", needed);
}

static pl_status keep_judged(const pl_cli_input *in, const char *section, const char *key, const char *needed,
                             pl_error *err)
{
    char name[8], path[PL_CLI_NAMELESS_BYTES], whole[64];
    pl_status status = pl_cli_setting(in->config, section, key, name, sizeof name, err);
    if (status != PL_OK || strcmp(name, "-") != 0) return status;
    snprintf(whole, sizeof whole, "%s.%s", section, key);
    status = take_input(in, path, needed, err);
    return status == PL_OK ? pl_config_set(in->config, whole, path, "standard input", err) : status;
}

pl_status pl_cli_keep_judged(const pl_cli_input *in, pl_error *err)
{
    bool is_brought;
    pl_status status = pl_cli_find_brought(in, &is_brought, err);
    if (status != PL_OK || !is_brought) return status;
    status = keep_judged(in, "data", "text", "a text is", err);
    return status == PL_OK ? keep_judged(in, "eval", "choices", "lines of JSON are", err) : status;
}

/* A config's text is printable UTF-8; names of files need not be. */
static bool is_for_config(const char *name)
{
    size_t bytes = strlen(name);
    for (size_t n; bytes > 0 && (n = pl_character_bytes(name, bytes)) > 0; name += n) bytes -= n;
    return bytes == 0;
}

pl_status pl_cli_join_names(const pl_cli_input *in, const char *first, char *text, size_t room, pl_error *err)
{
    names n = {&in->arguments, first, ""};
    const char *name;
    size_t used = 0;
    bool fits = true;
    text[0] = 0;
    for (size_t i = 0; (name = name_at(&n, i)); i++) {
        if (strcmp(name, "-") == 0) {
            const pl_status status = take_input(in, n.input, "items are", err);
            if (status != PL_OK) return status;
            name = n.input;
        }
        if (!name[0])
            return pl_cli_error(err, PL_E_USAGE, "the name of a file is empty; give its name, or leave it out");
        if (strchr(name, '\n')) return pl_cli_error(err, PL_E_USAGE, "a file has a line break in its name; rename it");
        fits = fits && used + strlen(name) + 2 <= room && is_for_config(name);
        if (fits) used += (size_t)snprintf(text + used, room - used, "%s%s", i > 0 ? "\n" : "", name);
    }
    return fits ? PL_OK : list(in, &n, text, room, err);
}
