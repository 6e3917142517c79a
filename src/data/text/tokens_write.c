#include "data/text/tokens.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "base/size.h"

struct pl_tokens_writer {
    pl_file_writer file;
    pl_tokens_info info;
    uint64_t *table;
    size_t table_count, table_capacity;
    uint32_t fill; /* ids in block */
    uint8_t block[PL_TOKENS_BLOCK * 4];
};

uint64_t pl_tokens_block_count(const pl_tokens_info *i)
{
    return i->count / PL_TOKENS_BLOCK + (i->count % PL_TOKENS_BLOCK != 0);
}
uint64_t pl_tokens_file_bytes(const pl_tokens_info *i) { return i->table_offset + 8 * pl_tokens_block_count(i); }

uint64_t pl_tokens_writer_bytes(uint64_t tokens)
{
    uint64_t blocks = tokens / PL_TOKENS_BLOCK + 1, capacity = 16;
    while (capacity < blocks) capacity *= 2;
    return sizeof(pl_tokens_writer) + capacity * sizeof(uint64_t);
}

pl_status pl_tokens_create(const char *path, uint32_t vocab, pl_tokens_writer **out, pl_error *err)
{
    static const uint8_t header[PL_TOKENS_HEADER_BYTES];
    pl_tokens_writer *w = *out = pl_alloc(1, sizeof *w);
    if (!w) return pl_fail(err, PL_E_NOMEM, "%s: no memory for writing tokens", path);
    w->file.fd = -1;
    w->info = (pl_tokens_info){.vocab = vocab, .id_bytes = vocab <= 65536 ? 2 : 4};
    pl_status status = pl_file_create(&w->file, path, err);
    if (status == PL_OK) status = pl_file_write(&w->file, header, sizeof header, err);
    if (status != PL_OK) pl_tokens_abandon(w), *out = NULL;
    return status;
}

static pl_status write_block(pl_tokens_writer *w, pl_error *err)
{
    size_t bytes = (size_t)w->fill * w->info.id_bytes;
    if (w->fill == 0) return PL_OK;
    if (pl_grow(&w->table, &w->table_capacity, w->table_count, sizeof *w->table))
        return pl_fail(err, PL_E_NOMEM, "%s: no memory for its table of checksums", w->file.path);
    w->table[w->table_count++] = XXH64(w->block, bytes, 0);
    w->fill = 0;
    return pl_file_write(&w->file, w->block, bytes, err);
}

pl_status pl_tokens_append(pl_tokens_writer *w, const uint32_t *ids, size_t count, pl_error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (ids[i] >= w->info.vocab)
            return pl_fail(err, PL_E_INTERNAL, "token id %u is not below the vocabulary size %u", ids[i],
                           w->info.vocab);
        if (w->info.id_bytes == 2)
            memcpy(w->block + 2 * w->fill, &(uint16_t){(uint16_t)ids[i]}, 2);
        else
            memcpy(w->block + 4 * w->fill, &ids[i], 4);
        w->info.count++;
        if (++w->fill == PL_TOKENS_BLOCK) PL_TRY(write_block(w, err));
    }
    return PL_OK;
}

enum { CONTENT_AT = 64 };

static void put_source(uint8_t header[PL_TOKENS_HEADER_BYTES], const pl_origin *o)
{
    pl_put_u64(header, 40, o->bytes);
    pl_put_u64(header, 48, (uint64_t)o->mtime_ns);
    pl_put_u64(header, 56, (uint64_t)o->ctime_ns);
    pl_put_u64(header, CONTENT_AT, o->content);
    pl_put_u64(header, 104, o->inode);
    pl_put_u64(header, 120, XXH64(header, 120, 0));
}

static void print_header(const pl_tokens_info *i, uint8_t header[PL_TOKENS_HEADER_BYTES])
{
    memset(header, 0, PL_TOKENS_HEADER_BYTES);
    memcpy(header, PL_TOKENS_MAGIC, 8);
    pl_put_u32(header, 8, 1);
    pl_put_u32(header, 12, PL_TOKENS_HEADER_BYTES);
    pl_put_u32(header, 16, i->vocab);
    pl_put_u32(header, 20, i->id_bytes);
    pl_put_u64(header, 24, i->count);
    pl_put_u64(header, 32, i->tokenizer_hash);
    pl_put_u32(header, 100, i->reader);
    pl_put_u64(header, 72, i->recipe);
    pl_put_u64(header, 80, i->table_offset);
    pl_put_u64(header, 88, i->table_hash);
    pl_put_u32(header, 96, PL_TOKENS_BLOCK);
    put_source(header, &i->source);
}

/* The rest of the last block, zeros up to a multiple of 8, the table, and the header, whose numbers are now known. */
static pl_status complete(pl_tokens_writer *w, pl_error *err)
{
    static const uint8_t zeros[8];
    uint8_t header[PL_TOKENS_HEADER_BYTES];
    if (w->info.count == 0) return pl_fail(err, PL_E_DATA, "%s: the text has no tokens", w->file.path);
    PL_TRY(write_block(w, err));
    w->info.table_offset = pl_align_up(w->file.bytes, 8);
    w->info.table_hash = XXH64(w->table_count ? w->table : &(uint64_t){0}, w->table_count * sizeof *w->table, 0);
    PL_TRY(pl_file_write(&w->file, zeros, (size_t)(w->info.table_offset - w->file.bytes), err));
    PL_TRY(pl_file_write(&w->file, w->table, w->table_count * sizeof *w->table, err));
    print_header(&w->info, header);
    PL_TRY(pl_file_write_at(&w->file, 0, header, sizeof header, err));
    return pl_file_commit(&w->file, err);
}

pl_status pl_tokens_commit(pl_tokens_writer *w, const pl_tokens_info *info, pl_error *err)
{
    w->info.tokenizer_hash = info->tokenizer_hash;
    w->info.recipe = info->recipe;
    w->info.source = info->source;
    w->info.reader = PL_TOKENS_READER;
    pl_status status = complete(w, err);
    pl_tokens_abandon(w);
    return status;
}

void pl_tokens_note_source(const char *path, const pl_origin *o)
{
    pl_origin_note(path, 0, PL_TOKENS_HEADER_BYTES, CONTENT_AT, put_source, o);
}

void pl_tokens_abandon(pl_tokens_writer *w)
{
    if (!w) return;
    pl_file_abandon(&w->file);
    pl_free(w->table);
    pl_free(w);
}
