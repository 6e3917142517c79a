/* A folder that stands for "/", so that tests bring their own /proc and /sys. */
#ifndef PL_TESTS_SUPPORT_FAKE_ROOT_H
#define PL_TESTS_SUPPORT_FAKE_ROOT_H

#include <stddef.h>

extern char fake_root[64];

int fake_root_begin(void **state); /* cmocka setup: an empty folder below /tmp */
int fake_root_end(void **state);   /* teardown: removes it with all that is in it */
/* The file `path` below the root, with its folders. */
void fake_root_put(const char *path, const char *text);
void fake_root_put_bytes(const char *path, const void *data, size_t bytes);

#endif
