#include "texts/file_bytes.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/module.h"
#include "texts/gzip_module.h"

enum { BLOCK_BYTES = 64 * 1024 };

struct pl_file_bytes {
    pl_text_file file;
    XXH64_state_t hash; /* of the file as stored */
    pl_module module;
    void *stream;      /* the module's, or NULL as long as nothing was compressed */
    uint8_t *unpacked; /* [BLOCK_BYTES], likewise */
    bool is_packed, in_stream, is_peeked;
    bool has_begun;    /* the first stream of the file */
    const uint8_t *at; /* the part of the block that is not unpacked yet */
    size_t left;
    const uint8_t *peeked;
    size_t peeked_bytes;
    uint8_t block[BLOCK_BYTES];
};

uint64_t pl_file_bytes_heap(void)
{
    return sizeof(pl_file_bytes) + PL_GZIP_MEMORY_BYTES + BLOCK_BYTES + 3 * PL_ALLOC_HEADER_BYTES;
}

pl_status pl_file_bytes_create(pl_file_bytes **out, pl_error *err)
{
    pl_file_bytes *b = *out = pl_alloc(1, sizeof *b);
    if (!b) return pl_fail(err, PL_E_NOMEM, "no memory for reading texts");
    b->file.fd = -1;
    return PL_OK;
}

/* ---- gzip ---- */

static const uint8_t magic[] = {0x1f, 0x8b, 8};

static const pl_gzip_module *functions(const pl_file_bytes *b) { return b->module.functions; }

static pl_status no_memory(const pl_file_bytes *b, pl_error *err)
{
    return pl_fail(err, PL_E_NOMEM, "%s: no memory for unpacking it", b->file.path);
}

static pl_status load_module(pl_file_bytes *b, pl_error *err)
{
    static const pl_module_wanted wanted = {.file = PL_GZIP_FILE,
                                            .symbol = PL_GZIP_SYMBOL,
                                            .version = PL_GZIP_VERSION,
                                            .what = "reading what gzip compressed",
                                            .install =
                                                "; install zlib (Debian: zlib1g-dev, and build Plimsoll with it there)",
                                            .instead = ", or unpack it (gzip -dc FILE > TEXT)"};
    if (b->stream) return PL_OK;
    PL_TRY(pl_module_load(&wanted, &b->module, err));
    b->stream = pl_alloc(PL_GZIP_MEMORY_BYTES, 1);
    b->unpacked = pl_alloc(BLOCK_BYTES, 1);
    return b->stream && b->unpacked ? PL_OK : no_memory(b, err);
}

static pl_status read_block(pl_file_bytes *b, pl_error *err)
{
    PL_TRY(pl_text_read(&b->file, b->block, sizeof b->block, &b->left, err));
    XXH64_update(&b->hash, b->block, b->left);
    b->at = b->block;
    return PL_OK;
}

static pl_status cut_off(const pl_file_bytes *b, pl_error *err)
{
    return pl_fail(err, PL_E_DATA, "%s: is compressed by gzip and cut off: it ends in the middle of a stream",
                   b->file.path);
}

/* Between streams: another one follows, or zeros up to the end, as on a tape. */
static pl_status begin_stream(pl_file_bytes *b, bool *is_end, pl_error *err)
{
    if (b->left == 0) PL_TRY(read_block(b, err));
    while (b->has_begun && b->left && *b->at == 0) {
        b->at++, b->left--;
        if (b->left == 0) PL_TRY(read_block(b, err));
    }
    b->has_begun = true;
    *is_end = b->left == 0;
    if (*is_end) return PL_OK;
    if (*b->at != magic[0])
        return pl_fail(err, PL_E_DATA, "%s: has other bytes after what gzip compressed; is it damaged?", b->file.path);
    b->in_stream = true;
    return functions(b)->begin(b->stream) == PL_GZIP_GOES_ON ? PL_OK : no_memory(b, err);
}

static pl_status unpack(pl_file_bytes *b, size_t *got, pl_error *err)
{
    char why[100];
    bool is_end;
    for (*got = 0; *got == 0;) {
        if (!b->in_stream) {
            PL_TRY(begin_stream(b, &is_end, err));
            if (is_end) return PL_OK;
        }
        if (b->left == 0) PL_TRY(read_block(b, err));
        const bool none_left = b->left == 0;
        const int result =
            functions(b)->run(b->stream, &b->at, &b->left, b->unpacked, BLOCK_BYTES, got, why, sizeof why);
        b->in_stream = result != PL_GZIP_ENDED;
        if (result == PL_GZIP_DAMAGED)
            return pl_fail(err, PL_E_DATA, "%s: is compressed by gzip and damaged: %s", b->file.path, why);
        if (result == PL_GZIP_NO_MEMORY) return no_memory(b, err);
        if (result == PL_GZIP_GOES_ON && *got == 0 && none_left) return cut_off(b, err);
    }
    return PL_OK;
}

/* ---- a file ---- */

static pl_status read_next(pl_file_bytes *b, const uint8_t **data, size_t *got, pl_error *err)
{
    *data = b->is_packed ? b->unpacked : b->block;
    if (b->is_packed) return unpack(b, got, err);
    PL_TRY(read_block(b, err));
    *got = b->left;
    return PL_OK;
}

pl_status pl_file_bytes_open(pl_file_bytes *b, const char *path, pl_error *err)
{
    pl_file_bytes_close(b);
    PL_TRY(pl_text_open(&b->file, path, err));
    XXH64_reset(&b->hash, 0);
    b->is_packed = b->in_stream = b->has_begun = false;
    PL_TRY(read_block(b, err));
    b->is_packed = b->left >= sizeof magic && memcmp(b->block, magic, sizeof magic) == 0;
    b->is_peeked = true;
    b->peeked = b->block, b->peeked_bytes = b->left;
    if (!b->is_packed) return PL_OK;
    PL_TRY(load_module(b, err));
    return read_next(b, &b->peeked, &b->peeked_bytes, err);
}

const uint8_t *pl_file_bytes_head(const pl_file_bytes *b, size_t *bytes)
{
    *bytes = b->peeked_bytes;
    return b->peeked;
}

pl_status pl_file_bytes_read(pl_file_bytes *b, const uint8_t **data, size_t *got, pl_error *err)
{
    if (!b->is_peeked) return read_next(b, data, got, err);
    b->is_peeked = false;
    *data = b->peeked, *got = b->peeked_bytes;
    return PL_OK;
}

pl_status pl_file_bytes_pass_over(pl_file_bytes *b, pl_error *err)
{
    do PL_TRY(read_block(b, err));
    while (b->left);
    return PL_OK;
}

bool pl_file_bytes_is_packed(const pl_file_bytes *b) { return b->is_packed; }
const pl_text_file *pl_file_bytes_file(const pl_file_bytes *b) { return &b->file; }

pl_status pl_file_bytes_end(pl_file_bytes *b, pl_origin *origin, pl_error *err)
{
    PL_TRY(pl_text_check_unchanged(&b->file, err));
    *origin = b->file.origin;
    origin->content = XXH64_digest(&b->hash);
    return PL_OK;
}

void pl_file_bytes_close(pl_file_bytes *b) { pl_text_close(&b->file); }

void pl_file_bytes_destroy(pl_file_bytes *b)
{
    if (!b) return;
    pl_file_bytes_close(b);
    pl_free(b->stream);
    pl_free(b->unpacked);
    pl_module_unload(&b->module);
    pl_free(b);
}
