/* What the module plimsoll-gzip.so offers: gzip, unpacked by zlib as a stream in the caller's memory. It is loaded only
 * to prepare compressed texts, so no page of zlib is in a process that runs. Plain values: the module is compiled from
 * modules/gzip.c alone and links nothing of src/. */
#ifndef PL_TEXTS_GZIP_MODULE_H
#define PL_TEXTS_GZIP_MODULE_H

#include <stddef.h>
#include <stdint.h>

#define PL_GZIP_FILE   "plimsoll-gzip.so"
#define PL_GZIP_SYMBOL "pl_gzip_functions"
/* MEMORY: enough for any stream; zlib takes some 47,000 bytes. */
enum { PL_GZIP_VERSION = 1, PL_GZIP_MEMORY_BYTES = 256 << 10 };
enum { PL_GZIP_GOES_ON = 0, PL_GZIP_ENDED = 1, PL_GZIP_DAMAGED = -1, PL_GZIP_NO_MEMORY = -2 };

typedef struct pl_gzip_module {
    uint32_t version;
    /* Begins a stream in memory of PL_GZIP_MEMORY_BYTES, aligned to 16; nothing needs to be ended. GOES_ON, or
     * NO_MEMORY. */
    int (*begin)(void *memory);
    /* Unpacks the input: *in and *in_bytes advance, *made bytes are written to `out`. ENDED: the stream is complete,
     * and its checksum right; another one may follow, for begin. GOES_ON: more of `in`, or more room, is needed.
     * DAMAGED, with a reason in `why`. */
    int (*run)(void *memory, const uint8_t **in, size_t *in_bytes, uint8_t *out, size_t room, size_t *made, char *why,
               size_t why_room);
} pl_gzip_module;

#endif
