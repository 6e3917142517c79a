#include "texts/corpus.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "texts/list.h"
#include "texts/texts_folder.h"

typedef struct naming {
    const pl_corpus_wish *wish;
    bool in_order;
    pl_named_found found;
    void *context;
    pl_status (*folder)(struct naming *, const char *path, pl_error *); /* what is done with a folder */
    uint32_t lists;                                                     /* nesting depth */
    uint64_t number;                                                    /* of the current name */
    const pl_list_line *at;                                             /* its line in a list; NULL: the user gave it */
    const char *within;                                                 /* the folder being searched */
    char path[PL_FILE_PATH_MAX];
} naming;

static pl_status take_name(naming *n, const char *name, pl_error *err);

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
    pl_file_kind kind;
    n->number++;
    PL_TRY(pl_file_find_kind(path, &kind, err));
    return kind == PL_FILE_FOLDER ? n->folder(n, path, err) : n->found(n->context, path, n->number, err);
}

/* A missing folder matches nothing; one that cannot be read might. */
static int stops(const char *path, int error)
{
    (void)path;
    return error != ENOENT && error != ENOTDIR;
}

static pl_status take_matches(naming *n, const char *pattern, pl_error *err)
{
    glob_t all = {0};
    char place[400];
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
    if (status != PL_OK && pl_list_place(n->at, place, sizeof place)[0]) pl_fail_prefix(err, status, "%s", place);
    if (result == 0) qsort(all.gl_pathv, all.gl_pathc, sizeof *all.gl_pathv, by_bytes);
    for (size_t i = 0; status == PL_OK && i < all.gl_pathc; i++) status = take_one(n, all.gl_pathv[i], err);
    globfree(&all);
    return status;
}

/* ---- lines ---- */

static pl_status take_listed(void *context, const char *name, const pl_list_line *at, pl_error *err)
{
    naming *n = context;
    const pl_list_line *outer = n->at;
    n->at = at;
    const pl_status status = take_name(n, name, err);
    n->at = outer;
    return status;
}

static pl_status take_list(naming *n, const char *list, pl_error *err)
{
    if (n->lists == PL_LISTS_DEEP)
        return pl_fail(err, PL_E_DATA, "%.300s: is a list in a list, more than %d deep; name files in it", list,
                       (int)PL_LISTS_DEEP);
    n->lists++;
    const pl_status status = pl_list_each(list, take_listed, n, err);
    n->lists--;
    return status;
}

/* An existing file of that name takes precedence over a list or a pattern. */
static pl_status take_name(naming *n, const char *name, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    pl_file_kind kind;
    if (strcmp(name, "-") == 0)
        return pl_fail(err, PL_E_USAGE, "-: standard input is all of the text or none of it; name files beside files");
    PL_TRY(pl_list_seen(n->at, name, path, err));
    PL_TRY(pl_file_find_kind(path, &kind, err));
    const bool there = kind != PL_FILE_NONE, is_list = !there && name[0] == '@';
    if (!there && !is_list && is_pattern(name)) return take_matches(n, path, err);
    if (is_list) PL_TRY(pl_list_seen(n->at, name + 1, path, err));
    PL_TRY(pl_list_check_there(n->at, path, err));
    return is_list ? take_list(n, path, err) : take_one(n, path, err);
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
    /* A folder may have a line break in its name: if the whole exists, it is one name. */
    pl_file_kind kind;
    pl_status status = pl_file_find_kind(names, &kind, err);
    if (status == PL_OK) status = kind == PL_FILE_NONE ? take_names(n, names, err) : take_one(n, names, err);
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
