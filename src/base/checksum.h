/* xxh64 (xxHash by Yann Collet, seed 0): the checksum of every file that Plimsoll writes, printed as 16 hex digits. It
 * finds damage, not malice. The state is a plain value; nothing is allocated. */
#ifndef PL_BASE_CHECKSUM_H
#define PL_BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum { PL_CHECKSUM_TEXT_BYTES = 17 };

typedef struct pl_checksum {
    uint64_t state[12];
} pl_checksum;

void pl_checksum_init(pl_checksum *);
void pl_checksum_update(pl_checksum *, const void *data, size_t bytes);
uint64_t pl_checksum_value(const pl_checksum *);
uint64_t pl_checksum_of(const void *data, size_t bytes);

/* 16 lower-case hex digits; returns text. */
const char *pl_checksum_print(uint64_t value, char text[PL_CHECKSUM_TEXT_BYTES]);
int pl_checksum_parse(const char *text, uint64_t *value); /* 0 on success */

/* Checksum and size of a file, read in pieces through `buffer` and dropped from the page cache as it goes. */
pl_status pl_checksum_file(const char *path, void *buffer, size_t buffer_bytes, uint64_t *value, uint64_t *bytes,
                           pl_error *);

#endif
