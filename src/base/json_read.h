/* Reading JSON: jansson's parser, and the one thing that it does not say by itself. */
#ifndef PL_BASE_JSON_READ_H
#define PL_BASE_JSON_READ_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* As json_loadb. PL_E_DATA: it is no JSON, `why` tells what and where. PL_E_NOMEM: a request for memory was refused
 * meanwhile, and `why` tells nothing. *root is NULL then.
 *
 * A number of any size is valid JSON, and may be somebody else's: a whole one beyond 64 bits is read as a real, and one
 * beyond a double is {}, which is no number to whoever asks for one. */
pl_status pl_json_read(const char *text, size_t bytes, size_t flags, json_t **root, json_error_t *why);

/* The object in a file of at most `limit` bytes; a key that is there twice is refused. PL_E_DATA, PL_E_STORAGE. */
pl_status pl_json_read_file(const char *path, uint64_t limit, json_t **root, pl_error *);

/* From on to off jansson's blocks in this thread, too, are counted by its meter (base/alloc.h), and all that are asked
 * for are given back. */
void pl_json_count(bool on);

#endif
