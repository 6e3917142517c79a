#include "data/text/tokens.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "base/process.h"
#include "base/size.h"

/* ---- header ---- */

static pl_status check_numbers(const char *name, const pl_tokens_info *i, uint64_t file_bytes, pl_error *err)
{
    uint64_t ids;
    int fits = i->count > 0 && i->vocab > 0 && i->id_bytes == (i->vocab <= 65536 ? 2u : 4u) &&
               pl_size_mul(i->count, i->id_bytes, &ids) == 0 && ids < UINT64_MAX / 2 &&
               i->table_offset == pl_align_up(PL_TOKENS_HEADER_BYTES + ids, 8);
    if (!fits)
        return pl_fail(err, PL_E_DATA, "%s: its header contradicts itself; delete it, it is made again from the text",
                       name);
    if (file_bytes == pl_tokens_file_bytes(i)) return PL_OK;
    return pl_fail(err, PL_E_DATA,
                   "%s: has %" PRIu64 " bytes, but %" PRIu64 " tokens need %" PRIu64
                   "; it is truncated or damaged: delete it, it is made again from the text",
                   name, file_bytes, i->count, pl_tokens_file_bytes(i));
}

pl_status pl_tokens_parse_header(const char *name, const uint8_t h[PL_TOKENS_HEADER_BYTES], uint64_t file_bytes,
                                 pl_tokens_info *i, pl_error *err)
{
    if (memcmp(h, PL_TOKENS_MAGIC, 8) != 0) return pl_fail(err, PL_E_DATA, "%s: is not a token file of Plimsoll", name);
    if (pl_get_u32(h, 8) != 1 || pl_get_u32(h, 12) != PL_TOKENS_HEADER_BYTES || pl_get_u32(h, 96) != PL_TOKENS_BLOCK)
        return pl_fail(err, PL_E_DATA, "%s: is a token file of version %u; version 1 was expected", name,
                       pl_get_u32(h, 8));
    if (pl_get_u64(h, 120) != XXH64(h, 120, 0))
        return pl_fail(err, PL_E_DATA,
                       "%s: its header is damaged (checksum); delete it, it is made again from the text", name);
    *i = (pl_tokens_info){.vocab = pl_get_u32(h, 16),
                          .id_bytes = pl_get_u32(h, 20),
                          .count = pl_get_u64(h, 24),
                          .tokenizer_hash = pl_get_u64(h, 32),
                          .source = {.bytes = pl_get_u64(h, 40),
                                     .inode = pl_get_u64(h, 104),
                                     .mtime_ns = (int64_t)pl_get_u64(h, 48),
                                     .ctime_ns = (int64_t)pl_get_u64(h, 56),
                                     .content = pl_get_u64(h, 64)},
                          .reader = pl_get_u32(h, 100),
                          .recipe = pl_get_u64(h, 72),
                          .table_offset = pl_get_u64(h, 80),
                          .table_hash = pl_get_u64(h, 88)};
    return check_numbers(name, i, file_bytes, err);
}

static pl_status check_table(const pl_tokens *t, pl_error *err)
{
    uint8_t part[4096];
    XXH64_state_t state;
    XXH64_reset(&state, 0);
    uint64_t end = pl_tokens_file_bytes(&t->info);
    for (uint64_t at = t->info.table_offset; at < end;) {
        size_t bytes = end - at < sizeof part ? (size_t)(end - at) : sizeof part;
        PL_TRY(pl_file_read_at(t->fd, t->path, at, part, bytes, err));
        XXH64_update(&state, part, bytes);
        at += bytes;
    }
    if (XXH64_digest(&state) == t->info.table_hash) return PL_OK;
    return pl_fail(err, PL_E_DATA,
                   "%s: the table of checksums at byte %" PRIu64
                   " is damaged; delete it, it is made again from the text",
                   t->path, t->info.table_offset);
}

static pl_status check_file(pl_tokens *t, uint64_t bytes, pl_error *err)
{
    uint8_t header[PL_TOKENS_HEADER_BYTES];
    if (bytes < sizeof header)
        return pl_fail(err, PL_E_DATA, "%s: has %" PRIu64 " bytes; a token file has at least %d", t->path, bytes,
                       PL_TOKENS_HEADER_BYTES);
    PL_TRY(pl_file_read_at(t->fd, t->path, 0, header, sizeof header, err));
    PL_TRY(pl_tokens_parse_header(t->path, header, bytes, &t->info, err));
    return check_table(t, err);
}

pl_status pl_tokens_open(pl_tokens *t, const char *path, pl_error *err)
{
    uint64_t bytes;
    t->fd = -1;
    if (strlen(path) >= sizeof t->path) return pl_fail(err, PL_E_USAGE, "the path %.200s… is too long", path);
    strcpy(t->path, path);
    PL_TRY(pl_file_open(path, &t->fd, &bytes, err));
    pl_status status = check_file(t, bytes, err);
    if (status != PL_OK)
        pl_tokens_close(t);
    else
        posix_fadvise(t->fd, 0, 0, POSIX_FADV_RANDOM); /* no read-ahead: windows come in random order */
    return status;
}

void pl_tokens_close(pl_tokens *t)
{
    if (t->fd >= 0) {
        posix_fadvise(t->fd, 0, 0, POSIX_FADV_DONTNEED);
        close(t->fd);
    }
    t->fd = -1;
}

/* ---- reading ---- */

/* One bit per block that was checked; in steps so large that texts of up to 100 million tokens all need the same
 * room. */
enum { CHECKED_BYTES = 1024 };

uint64_t pl_tokens_reader_bytes(const pl_tokens_info *i)
{
    const uint64_t checked = pl_align_up((pl_tokens_block_count(i) + 7) / 8, CHECKED_BYTES);
    return pl_align_up((uint64_t)PL_TOKENS_BLOCK * i->id_bytes + checked, 16);
}

void pl_tokens_reader_init(pl_tokens_reader *r, const pl_tokens *t, void *memory)
{
    memset(memory, 0, pl_tokens_reader_bytes(&t->info));
    *r = (pl_tokens_reader){.tokens = t,
                            .checked = (uint8_t *)memory + (size_t)PL_TOKENS_BLOCK * t->info.id_bytes,
                            .block = memory,
                            .cached = PL_TOKENS_CACHE_BYTES + 1}; /* opening and other readers may have left more */
}

/* ids[from … to) of r->block as i32. Every id is checked: a table is indexed by it. */
static pl_status convert(const pl_tokens_reader *r, uint64_t first, size_t from, size_t to, int32_t *out, pl_error *err)
{
    const pl_tokens *t = r->tokens;
    for (size_t i = from; i < to; i++) {
        uint16_t narrow;
        uint32_t id;
        if (t->info.id_bytes == 2)
            memcpy(&narrow, r->block + 2 * i, 2), id = narrow;
        else
            memcpy(&id, r->block + 4 * i, 4);
        if (id >= t->info.vocab)
            return pl_fail(err, PL_E_DATA,
                           "%s: token %" PRIu64
                           " is %u, which is not below the vocabulary size %u; the file is damaged",
                           t->path, first + i, id, t->info.vocab);
        if (out) *out++ = (int32_t)id;
    }
    return PL_OK;
}

static uint64_t offset_of(const pl_tokens *t, uint64_t token)
{
    return PL_TOKENS_HEADER_BYTES + token * t->info.id_bytes;
}

static pl_status read_at(pl_tokens_reader *r, uint64_t at, void *to, uint64_t bytes, pl_error *err)
{
    r->cached += pl_align_up(at % PL_PAGE_BYTES + bytes, PL_PAGE_BYTES);
    return pl_file_read_at(r->tokens->fd, r->tokens->path, at, to, bytes, err);
}

/* A small file stays cached. A larger one is dropped now and then, with what others have left of it. */
void pl_tokens_trim_cache(pl_tokens_reader *r)
{
    if (r->cached <= PL_TOKENS_CACHE_BYTES || pl_tokens_file_bytes(&r->tokens->info) <= PL_TOKENS_CACHE_BYTES) return;
    posix_fadvise(r->tokens->fd, 0, 0, POSIX_FADV_DONTNEED);
    r->cached = 0;
}

/* Reads a whole block and checks it against the table. */
static pl_status check_block(pl_tokens_reader *r, uint64_t block, pl_error *err)
{
    const pl_tokens *t = r->tokens;
    uint64_t begin = block * PL_TOKENS_BLOCK, left = t->info.count - begin;
    size_t count = left < PL_TOKENS_BLOCK ? (size_t)left : PL_TOKENS_BLOCK, bytes = count * t->info.id_bytes;
    uint64_t expected;
    PL_TRY(read_at(r, t->info.table_offset + 8 * block, &expected, sizeof expected, err));
    PL_TRY(read_at(r, offset_of(t, begin), r->block, bytes, err));
    if (XXH64(r->block, bytes, 0) != expected)
        return pl_fail(err, PL_E_DATA,
                       "%s: bytes %" PRIu64 " to %" PRIu64 " are damaged (checksum of block %" PRIu64
                       "); delete it, it is made again from the text",
                       t->path, offset_of(t, begin), offset_of(t, begin) + bytes, block);
    PL_TRY(convert(r, begin, 0, count, NULL, err));
    r->checked[block / 8] |= (uint8_t)(1u << block % 8);
    return PL_OK;
}

/* A range within one block. */
static pl_status read_in_block(pl_tokens_reader *r, uint64_t begin, uint64_t end, int32_t *out, pl_error *err)
{
    const pl_tokens *t = r->tokens;
    uint64_t block = begin / PL_TOKENS_BLOCK, first = block * PL_TOKENS_BLOCK;
    if (!(r->checked[block / 8] >> block % 8 & 1)) {
        PL_TRY(check_block(r, block, err));
        return convert(r, first, (size_t)(begin - first), (size_t)(end - first), out, err);
    }
    PL_TRY(read_at(r, offset_of(t, begin), r->block, (end - begin) * t->info.id_bytes, err));
    return convert(r, begin, 0, (size_t)(end - begin), out, err);
}

pl_status pl_tokens_read(pl_tokens_reader *r, uint64_t begin, uint64_t end, int32_t *out, pl_error *err)
{
    if (begin > end || end > r->tokens->info.count)
        return pl_fail(err, PL_E_INTERNAL, "%s: tokens %" PRIu64 " to %" PRIu64 " were asked for; it has %" PRIu64,
                       r->tokens->path, begin, end, r->tokens->info.count);
    while (begin < end) {
        uint64_t stop = (begin / PL_TOKENS_BLOCK + 1) * PL_TOKENS_BLOCK;
        if (stop > end) stop = end;
        PL_TRY(read_in_block(r, begin, stop, out, err));
        out += stop - begin;
        begin = stop;
    }
    return PL_OK;
}

pl_status pl_tokens_verify(const pl_tokens *t, pl_error *err)
{
    pl_tokens_reader reader;
    void *memory = pl_alloc(pl_tokens_reader_bytes(&t->info), 1);
    if (!memory) return pl_fail(err, PL_E_NOMEM, "%s: no memory for checking it", t->path);
    pl_tokens_reader_init(&reader, t, memory);
    pl_status status = PL_OK;
    for (uint64_t block = 0; block < pl_tokens_block_count(&t->info) && status == PL_OK; block++) {
        status = check_block(&reader, block, err);
        pl_tokens_trim_cache(&reader);
    }
    pl_free(memory);
    return status;
}
