#include "texts/corpus.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "texts/texts_folder.h"

typedef struct naming {
    const pl_corpus_wish *wish;
    bool in_order;
    pl_named_found found;
    void *context;
    pl_status (*folder)(struct naming *, const char *path, pl_error *); /* what is done with one */
    uint32_t lists;                                                     /* within each other */
    uint64_t number;                                                    /* of the name that is at work */
    const char *list;   /* whose names are taken; NULL: the user's own */
    const char *within; /* folder that is looked through */
    char path[PL_FILE_PATH_MAX];
} naming;

static pl_status take_names(naming *n, const char *names, pl_error *err);

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool is_there(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

/* ---- a folder ---- */

static pl_status found_below(void *context, const pl_listed *l, pl_error *err)
{
    naming *n = context;
    PL_TRY(pl_path_join(n->path, sizeof n->path, n->within, l->path, err));
    return n->found(n->context, n->path, n->number, err);
}

static pl_status sort_found(void *context, const pl_listed *l, pl_error *err) { return pl_sorter_add(context, l, err); }

static pl_status read_sorted(naming *n, pl_error *err)
{
    pl_sorter *sorter;
    char path[PL_FILE_PATH_MAX];
    if (snprintf(path, sizeof path, "%s.names", n->wish->scratch) >= (int)sizeof path)
        return pl_fail(err, PL_E_USAGE, "the path %.200s… is too long", n->wish->scratch);
    PL_TRY(pl_sorter_create(path, &sorter, err));
    pl_status status = pl_folder_walk(n->within, sort_found, sorter, err);
    if (status == PL_OK) status = pl_sorter_each(sorter, found_below, n, err);
    pl_sorter_destroy(sorter);
    return status;
}

static pl_status read_folder(naming *n, const char *path, pl_error *err)
{
    n->within = path;
    return n->in_order ? read_sorted(n, err) : pl_folder_walk(path, found_below, n, err);
}

/* ---- a pattern ---- */

static bool is_pattern(const char *name) { return strpbrk(name, "*?[") != NULL; }

static int by_bytes(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static pl_status take_one(naming *n, const char *path, pl_error *err)
{
    n->number++;
    return is_folder(path) ? n->folder(n, path, err) : n->found(n->context, path, n->number, err);
}

/* What is not there matches nothing; what cannot be read might. */
static int stops(const char *path, int error)
{
    (void)path;
    return error != ENOENT && error != ENOTDIR;
}

static pl_status take_matches(naming *n, const char *pattern, pl_error *err)
{
    glob_t all = {0};
    pl_status status = PL_OK;
    const int result = glob(pattern, GLOB_NOSORT, stops, &all);
    if (result == GLOB_NOSPACE) status = pl_fail(err, PL_E_NOMEM, "%.300s: no memory for what it matches", pattern);
    if (result == GLOB_ABORTED)
        status = pl_fail(err, PL_E_STORAGE, "%.300s: a folder that it goes through cannot be read", pattern);
    if (result == GLOB_NOMATCH)
        status = pl_fail(err, PL_E_DATA,
                         "%.300s: matches no file; a text is needed (quote the pattern if the shell "
                         "should leave it alone)",
                         pattern);
    if (result == 0) qsort(all.gl_pathv, all.gl_pathc, sizeof *all.gl_pathv, by_bytes);
    for (size_t i = 0; status == PL_OK && i < all.gl_pathc; i++) status = take_one(n, all.gl_pathv[i], err);
    globfree(&all);
    return status;
}

/* ---- lines ---- */

static pl_status take_list(naming *n, const char *list, pl_error *err)
{
    char *text = NULL;
    size_t bytes;
    if (n->lists == PL_CORPUS_LISTS_DEEP)
        return pl_fail(err, PL_E_DATA, "%.300s: is a list in a list, more than %d deep; name files in it", list,
                       (int)PL_CORPUS_LISTS_DEEP);
    PL_TRY(pl_file_read_text(list, PL_CORPUS_LIST_BYTES_MAX, &text, &bytes, err));
    const char *outer = n->list;
    n->list = list, n->lists++;
    pl_status status = strlen(text) == bytes
                           ? take_names(n, text, err)
                           : pl_fail(err, PL_E_DATA, "%.300s: is no list of files: it has zeros in it", list);
    n->list = outer, n->lists--;
    pl_free(text);
    return status;
}

/* Names in a list are seen from the folder of the list: so a run finds them wherever a command is given. */
static pl_status beside_list(const naming *n, const char *name, char path[PL_FILE_PATH_MAX], pl_error *err)
{
    const bool is_list = name[0] == '@' && !is_there(name);
    const char *slash = n->list ? strrchr(n->list, '/') : NULL, *of = name + is_list;
    const int folder = slash && of[0] != '/' ? (int)(slash - n->list) + 1 : 0;
    const int bytes = snprintf(path, PL_FILE_PATH_MAX, "%s%.*s%s", is_list ? "@" : "", folder, n->list, of);
    return bytes < PL_FILE_PATH_MAX ? PL_OK : pl_fail(err, PL_E_USAGE, "the path %.200s… is too long", name);
}

static pl_status take_seen(naming *n, const char *name, pl_error *err)
{
    if (name[0] == '@' && !is_there(name)) return take_list(n, name + 1, err);
    if (is_pattern(name) && !is_there(name)) return take_matches(n, name, err);
    return take_one(n, name, err);
}

static pl_status take_name(naming *n, const char *name, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    if (strcmp(name, "-") == 0)
        return pl_fail(err, PL_E_USAGE, "-: standard input is all of the text or none of it; name files beside files");
    if (!n->list) return take_seen(n, name, err);
    PL_TRY(beside_list(n, name, path, err));
    return take_seen(n, path, err);
}

static pl_status take_names(naming *n, const char *names, pl_error *err)
{
    char name[PL_FILE_PATH_MAX];
    for (size_t bytes; *names; names += bytes + (names[bytes] == '\n')) {
        bytes = strcspn(names, "\n");
        const size_t own = bytes - (bytes > 0 && names[bytes - 1] == '\r');
        if (own == 0) continue;
        if (own >= sizeof name) return pl_fail(err, PL_E_USAGE, "the path %.200s… is too long", names);
        memcpy(name, names, own);
        name[own] = 0;
        PL_TRY(take_name(n, name, err));
    }
    return PL_OK;
}

static pl_status each(const naming *like, pl_error *err)
{
    naming *n = pl_alloc(1, sizeof *n);
    if (!n) return pl_fail(err, PL_E_NOMEM, "no memory for the names of the texts");
    *n = *like;
    const char *names = n->wish->names;
    /* A folder may have a line break in its name: what is there as a whole is one name. */
    const pl_status status = is_there(names) ? take_one(n, names, err) : take_names(n, names, err);
    pl_free(n);
    return status;
}

pl_status pl_corpus_each_name(const pl_corpus_wish *w, bool in_order, pl_named_found found, void *context,
                              pl_error *err)
{
    return each(&(naming){.wish = w, .in_order = in_order, .found = found, .context = context, .folder = read_folder},
                err);
}

/* ---- without looking into folders ---- */

static pl_status tell_folder(naming *n, const char *path, pl_error *err)
{
    return n->found(n->context, path, n->number, err);
}

pl_status pl_corpus_each_named(const pl_corpus_wish *w, pl_named_found found, void *context, pl_error *err)
{
    return each(&(naming){.wish = w, .found = found, .context = context, .folder = tell_folder}, err);
}
