/* The bytes of one file after another, from front to back, unpacked where a file is compressed by gzip (as its first
 * bytes tell, not its name; consecutive streams are one, as gzip defines). Memory is allocated once. */
#ifndef PL_TEXTS_FILE_BYTES_H
#define PL_TEXTS_FILE_BYTES_H

#include "base/text_file.h"

typedef struct pl_file_bytes pl_file_bytes;
uint64_t pl_file_bytes_heap(void); /* at most */
pl_status pl_file_bytes_create(pl_file_bytes **, pl_error *);
/* The path stays the caller's while the file is read. PL_E_UNSUPPORTED: it is gzip, and there is no module for it. */
pl_status pl_file_bytes_open(pl_file_bytes *, const char *path, pl_error *);
/* The next bytes, valid until the next call; 0 at the end. PL_E_DATA: compressed data are damaged or cut off. */
pl_status pl_file_bytes_read(pl_file_bytes *, const uint8_t **data, size_t *got, pl_error *);
/* Before the first read: the bytes that it will give. */
const uint8_t *pl_file_bytes_head(const pl_file_bytes *, size_t *bytes);
/* Reads to the end without unpacking, for the hash. */
pl_status pl_file_bytes_pass_over(pl_file_bytes *, pl_error *);
bool pl_file_bytes_is_packed(const pl_file_bytes *);
const pl_text_file *pl_file_bytes_file(const pl_file_bytes *); /* how much of it was read */
/* At the end: checks that it did not change; gives its origin with the hash of its content, as compressed. */
pl_status pl_file_bytes_end(pl_file_bytes *, pl_origin *, pl_error *);
void pl_file_bytes_close(pl_file_bytes *);   /* also when none is open */
void pl_file_bytes_destroy(pl_file_bytes *); /* NULL is fine */

#endif
