#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "base/size.h"
#include "data/pages/texts_index.h"

enum { FILL_BYTES = 64 * 1024 };

struct pl_texts_writer {
    pl_file_writer file;
    XXH64_state_t body;
    uint64_t names_bytes, count, longest;
    size_t fill;
    uint8_t buffer[FILL_BYTES];
};

uint64_t pl_texts_writer_bytes(void) { return sizeof(pl_texts_writer) + PL_ALLOC_HEADER_BYTES; }
uint64_t pl_texts_put_count(const pl_texts_writer *w) { return w->count; }

uint64_t pl_texts_recipe(const pl_texts_setup *s)
{
    const char *which = s->form == PL_TEXTS_JSONL ? s->key : s->form == PL_TEXTS_CSV ? s->column : "";
    if (s->form > PL_TEXTS_GRAMMAR) which = s->key;
    const uint64_t head[] = {1, s->form, s->form == PL_TEXTS_CSV && s->headless};
    XXH64_state_t state;
    XXH64_reset(&state, 0);
    XXH64_update(&state, head, sizeof head);
    XXH64_update(&state, which ? which : "text", strlen(which ? which : "text"));
    return XXH64_digest(&state);
}

uint64_t pl_texts_entries_at(const pl_texts_info *i)
{
    return PL_TEXTS_HEADER_BYTES + pl_align_up(i->names_bytes, PL_TEXTS_ENTRY_BYTES);
}

uint64_t pl_texts_index_bytes(const pl_texts_info *i)
{
    return pl_texts_entries_at(i) + i->count * PL_TEXTS_ENTRY_BYTES;
}

pl_status pl_texts_writer_create(const char *path, pl_texts_writer **out, pl_error *err)
{
    static const uint8_t header[PL_TEXTS_HEADER_BYTES];
    pl_texts_writer *w = *out = pl_alloc(1, sizeof *w);
    if (!w) return pl_fail(err, PL_E_NOMEM, "%s: no memory for writing the index of texts", path);
    w->file.fd = -1;
    XXH64_reset(&w->body, 0);
    pl_status status = pl_file_create(&w->file, path, err);
    if (status == PL_OK) status = pl_file_write(&w->file, header, sizeof header, err);
    if (status != PL_OK) pl_texts_abandon(w), *out = NULL;
    return status;
}

static pl_status flush(pl_texts_writer *w, pl_error *err)
{
    XXH64_update(&w->body, w->buffer, w->fill);
    PL_TRY(pl_file_write(&w->file, w->buffer, w->fill, err));
    w->fill = 0;
    return PL_OK;
}

static pl_status put(pl_texts_writer *w, const void *data, size_t bytes, pl_error *err)
{
    const uint8_t *from = data;
    while (bytes) {
        const size_t room = sizeof w->buffer - w->fill, n = bytes < room ? bytes : room;
        memcpy(w->buffer + w->fill, from, n);
        w->fill += n, from += n, bytes -= n;
        if (w->fill == sizeof w->buffer) PL_TRY(flush(w, err));
    }
    return PL_OK;
}

pl_status pl_texts_put_file(pl_texts_writer *w, const char *path, int64_t mtime_ns, pl_error *err)
{
    uint8_t head[PL_TEXTS_FILE_BYTES];
    const size_t bytes = strlen(path);
    pl_put_u64(head, 0, (uint64_t)mtime_ns);
    pl_put_u32(head, 8, (uint32_t)bytes);
    w->names_bytes += sizeof head + bytes;
    PL_TRY(put(w, head, sizeof head, err));
    return put(w, path, bytes, err);
}

pl_status pl_texts_put(pl_texts_writer *w, const pl_text_place *p, pl_error *err)
{
    static const uint8_t zeros[PL_TEXTS_ENTRY_BYTES];
    uint8_t entry[PL_TEXTS_ENTRY_BYTES];
    const uint64_t padding = pl_align_up(w->names_bytes, PL_TEXTS_ENTRY_BYTES) - w->names_bytes;
    if (w->count == 0) PL_TRY(put(w, zeros, (size_t)padding, err));
    pl_put_u64(entry, 0, p->offset);
    pl_put_u64(entry, 8, p->bytes | (uint64_t)p->encoding << 62);
    w->count++;
    if (p->bytes > w->longest) w->longest = p->bytes;
    return put(w, entry, sizeof entry, err);
}

enum { CONTENT_AT = 64 };

static void put_source(uint8_t header[PL_TEXTS_HEADER_BYTES], const pl_origin *o)
{
    pl_put_u64(header, 48, o->bytes);
    pl_put_u64(header, 56, (uint64_t)o->mtime_ns);
    pl_put_u64(header, CONTENT_AT, o->content);
    pl_put_u64(header, 104, (uint64_t)o->ctime_ns);
    pl_put_u64(header, 112, o->inode);
    pl_put_u64(header, 120, XXH64(header, 120, 0));
}

static void print_header(const pl_texts_writer *w, pl_texts_form form, const pl_texts_info *i, uint64_t body,
                         uint8_t header[PL_TEXTS_HEADER_BYTES])
{
    memset(header, 0, PL_TEXTS_HEADER_BYTES);
    memcpy(header, PL_TEXTS_MAGIC, 8);
    pl_put_u32(header, 8, 1);
    pl_put_u32(header, 12, PL_TEXTS_HEADER_BYTES);
    pl_put_u32(header, 16, form);
    pl_put_u32(header, 20, PL_TEXTS_ENTRY_BYTES);
    pl_put_u64(header, 24, i->recipe);
    pl_put_u64(header, 32, w->count);
    pl_put_u64(header, 40, i->gathered_bytes);
    pl_put_u64(header, 72, i->listing);
    pl_put_u64(header, 80, w->names_bytes);
    pl_put_u64(header, 88, w->longest);
    pl_put_u64(header, 96, body);
    put_source(header, &i->source);
}

static pl_status complete(pl_texts_writer *w, pl_texts_form form, const pl_texts_info *i, pl_error *err)
{
    uint8_t header[PL_TEXTS_HEADER_BYTES];
    PL_TRY(flush(w, err));
    print_header(w, form, i, XXH64_digest(&w->body), header);
    PL_TRY(pl_file_write_at(&w->file, 0, header, sizeof header, err));
    return pl_file_commit(&w->file, err);
}

pl_status pl_texts_commit(pl_texts_writer *w, pl_texts_form form, const pl_texts_info *i, pl_error *err)
{
    pl_status status = complete(w, form, i, err);
    pl_texts_abandon(w);
    return status;
}

void pl_texts_note_source(const char *path, const pl_origin *o)
{
    pl_origin_note(path, 0, PL_TEXTS_HEADER_BYTES, CONTENT_AT, put_source, o);
}

void pl_texts_abandon(pl_texts_writer *w)
{
    if (!w) return;
    pl_file_abandon(&w->file);
    pl_free(w);
}
