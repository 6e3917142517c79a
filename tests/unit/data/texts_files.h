/* What the tests of numbered texts share: an index, a source, a folder, each in a place of its own. */
#ifndef PL_TESTS_UNIT_DATA_TEXTS_FILES_H
#define PL_TESTS_UNIT_DATA_TEXTS_FILES_H

#include "unit/data/scratch.h"

#include "base/str.h"
#include "data/pages/texts.h"

static pl_error err;
static char index_path[128], source_path[128], folder_path[128];

static inline int texts_make(void **state)
{
    if (scratch_make(state) != 0) return -1;
    strcpy(index_path, scratch_path("texts.index"));
    strcpy(source_path, scratch_path("source"));
    strcpy(folder_path, scratch_path("folder"));
    return 0;
}

static inline const char *write_source(const void *data, size_t bytes)
{
    (void)scratch_file("source", data, bytes);
    return source_path;
}

static inline void write_below(const char *name, const char *text, size_t bytes)
{
    char path[256];
    snprintf(path, sizeof path, "folder/%s", name);
    assert_true(strlen(path) < 64);
    (void)scratch_file(path, text, bytes);
}

/* Empty but for three folders. */
static inline const char *make_folder(void)
{
    char command[700];
    snprintf(command, sizeof command, "rm -rf '%s' && mkdir -p '%s/a/deep' '%s/a.d' '%s/empty'", folder_path,
             folder_path, folder_path, folder_path);
    assert_int_equal(system(command), 0);
    return folder_path;
}

static inline pl_texts_options options_of(const pl_texts_setup *s)
{
    return (pl_texts_options){.setup = *s, .index_path = index_path};
}

static inline pl_status prepare(const pl_texts_setup *s, pl_texts_result *r)
{
    const pl_texts_options o = options_of(s);
    return pl_texts_prepare(&o, r, &err);
}

static inline void open_texts(pl_texts *t, const pl_texts_setup *s)
{
    pl_texts_result r;
    if (prepare(s, &r) != PL_OK || pl_texts_open(t, s, index_path, &err) != PL_OK) fail_msg("%s", err.text);
}

/* Nothing but the index is left where it was made. */
static inline void assert_no_temporary(void)
{
    char path[256];
    snprintf(path, sizeof path, "%s" PL_FILE_TEMPORARY, index_path);
    assert_int_not_equal(access(path, F_OK), 0);
    snprintf(path, sizeof path, "%s.names" PL_FILE_TEMPORARY, index_path);
    assert_int_not_equal(access(path, F_OK), 0);
}

#endif
