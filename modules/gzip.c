/* plimsoll-gzip.so: unpacks gzip (src/texts/gzip_module.h). */
#include <stdio.h>
#include <string.h>

#include <zlib.h>

#include "texts/gzip_module.h"

/* At the beginning of the caller's memory; what zlib asks for lies behind it. */
typedef struct stream {
    z_stream z;
    size_t used;
} stream;

enum { ALIGNMENT = 16, GZIP_ONLY = 16 };

static void *take(void *memory, unsigned items, unsigned bytes)
{
    stream *s = memory;
    const size_t all = ((size_t)items * bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (all > PL_GZIP_MEMORY_BYTES - s->used) return Z_NULL;
    s->used += all;
    return (char *)memory + s->used - all;
}

static void give_back(void *memory, void *block) { (void)memory, (void)block; }

static int begin(void *memory)
{
    stream *s = memory;
    memset(s, 0, sizeof *s);
    s->used = (sizeof *s + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    s->z = (z_stream){.zalloc = take, .zfree = give_back, .opaque = memory};
    return inflateInit2(&s->z, GZIP_ONLY + MAX_WBITS) == Z_OK ? PL_GZIP_GOES_ON : PL_GZIP_NO_MEMORY;
}

static int run(void *memory, const uint8_t **in, size_t *in_bytes, uint8_t *out, size_t room, size_t *made, char *why,
               size_t why_room)
{
    z_stream *z = &((stream *)memory)->z;
    z->next_in = (uint8_t *)(uintptr_t)*in, z->avail_in = (unsigned)*in_bytes;
    z->next_out = out, z->avail_out = (unsigned)room;
    const int result = inflate(z, Z_NO_FLUSH);
    *in = z->next_in, *in_bytes = z->avail_in;
    *made = room - z->avail_out;
    if (result == Z_STREAM_END) return PL_GZIP_ENDED;
    if (result == Z_OK || result == Z_BUF_ERROR) return PL_GZIP_GOES_ON;
    if (result == Z_MEM_ERROR) return PL_GZIP_NO_MEMORY;
    snprintf(why, why_room, "%s", z->msg ? z->msg : "it cannot be unpacked");
    return PL_GZIP_DAMAGED;
}

extern __attribute__((visibility("default"))) const pl_gzip_module pl_gzip_functions; /* PL_GZIP_SYMBOL */
const pl_gzip_module pl_gzip_functions = {.version = PL_GZIP_VERSION, .begin = begin, .run = run};
