/* Shared by the tests of config/. */
#ifndef PL_TESTS_CONFIG_HELPERS_H
#define PL_TESTS_CONFIG_HELPERS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "config/config.h"
#include "config/schema.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static inline pl_status load(pl_config *cfg, const char *text, pl_error *err)
{
    pl_config_default(cfg);
    pl_error_clear(err);
    return pl_config_load_text(cfg, "c.yaml", text, strlen(text), err);
}

static inline void must_load(pl_config *cfg, const char *text)
{
    pl_error err = {0};
    if (load(cfg, text, &err) != PL_OK) fail_msg("%s: %s", text, err.text);
}

/* A path of the repository, found from where this file was compiled. */
static inline FILE *open_in_repository(const char *name, const char *mode)
{
    char path[4096];
    const char *here = strstr(__FILE__, "tests/unit/config/");
    snprintf(path, sizeof path, "%.*s%s", (int)(here - __FILE__), __FILE__, name);
    return fopen(path, mode);
}

static inline char *read_text(FILE *file)
{
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 20) - 1, file) < (1 << 20) - 1);
    return text;
}

/* The files of the sections, in the order in which sections.def has them. */
typedef struct section_files {
    char name[32][32];
    size_t count;
} section_files;

static inline char *read_file_of(const char *name)
{
    char path[80];
    snprintf(path, sizeof path, "src/config/sections/%s.def", name);
    FILE *file = open_in_repository(path, "r");
    assert_non_null(file);
    char *text = read_text(file);
    fclose(file);
    return text;
}

static inline void read_sections(section_files *s)
{
    static const char start[] = "#include \"config/sections/";
    FILE *file = open_in_repository("src/config/sections.def", "r");
    assert_non_null(file);
    char *text = read_text(file);
    fclose(file);
    s->count = 0;
    for (const char *at = text; (at = strstr(at, start)); s->count++) {
        at += strlen(start);
        assert_true(s->count < COUNT(s->name));
        assert_int_equal(sscanf(at, "%31[a-z0-9_]", s->name[s->count]), 1);
    }
    free(text);
}

#endif
