#include "support/fake_root.h"

#include <setjmp.h>
#include <stdarg.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"

char fake_root[64];

void fake_root_put_bytes(const char *path, const void *data, size_t bytes)
{
    char full[512];
    snprintf(full, sizeof full, "%s%s", fake_root, path);
    char *slash = strrchr(full, '/');
    *slash = 0;
    pl_error err = {0};
    assert_int_equal(pl_folder_create(full, &err), PL_OK);
    *slash = '/';
    FILE *f = fopen(full, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, bytes, f), bytes);
    fclose(f);
}

void fake_root_put(const char *path, const char *text) { fake_root_put_bytes(path, text, strlen(text)); }

static int remove_entry(const char *path, const struct stat *s, int type, struct FTW *ftw)
{
    (void)s, (void)type, (void)ftw;
    return remove(path);
}

int fake_root_begin(void **state)
{
    (void)state;
    snprintf(fake_root, sizeof fake_root, "/tmp/plimsoll-root-XXXXXX");
    return mkdtemp(fake_root) ? 0 : -1;
}

int fake_root_end(void **state)
{
    (void)state;
    return nftw(fake_root, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}
