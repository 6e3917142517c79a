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

#endif
