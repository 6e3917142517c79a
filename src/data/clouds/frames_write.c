#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/facts.h"
#include "base/hash.h"
#include "base/narrow.h"
#include "base/size.h"
#include "data/clouds/frames.h"

enum { PICTURES_AT = 4096, VERSION = 2, SOURCES_BYTES = PL_FRAMES_SOURCES * PL_FRAMES_SOURCE_BYTES };

struct pl_frames_writer {
    pl_file_writer file;
    pl_frames_info info;
    uint64_t *table;
    size_t table_capacity;
    uint8_t *picture; /* as in the file */
};

uint64_t pl_frames_picture_bytes(const pl_frames_info *i)
{
    return pl_align_up((uint64_t)i->height * i->width * (i->form == PL_FRAMES_F16 ? 2 : 1), 64);
}

uint64_t pl_frames_records_offset(const pl_frames_info *i)
{
    return PICTURES_AT + i->pictures * pl_frames_picture_bytes(i);
}

uint64_t pl_frames_sources_offset(const pl_frames_info *i)
{
    return pl_frames_records_offset(i) + i->flights * sizeof(pl_frames_flight) + i->frames * sizeof(pl_frames_record) +
           i->pictures * sizeof(uint64_t);
}

uint64_t pl_frames_file_bytes(const pl_frames_info *i)
{
    return pl_frames_sources_offset(i) + (i->version > 1 ? (uint64_t)i->flights * SOURCES_BYTES : 0);
}

pl_status pl_frames_create(const char *path, const pl_frames_info *i, pl_frames_writer **out, pl_error *err)
{
    static const uint8_t head[PICTURES_AT];
    pl_frames_writer *w = *out = pl_alloc(1, sizeof *w);
    if (!w) return pl_fail(err, PL_E_NOMEM, "%s: no memory for writing frames", path);
    w->file.fd = -1;
    w->info = (pl_frames_info){.version = VERSION, .height = i->height, .width = i->width, .form = i->form};
    w->picture = pl_alloc(pl_frames_picture_bytes(i), 1);
    pl_status status = w->picture ? PL_OK : pl_fail(err, PL_E_NOMEM, "%s: no memory for writing frames", path);
    if (status == PL_OK) status = pl_file_create(&w->file, path, err);
    if (status == PL_OK) status = pl_file_write(&w->file, head, sizeof head, err);
    if (status != PL_OK) pl_frames_abandon(w), *out = NULL;
    return status;
}

static void narrow(pl_frames_form form, const float *picture, uint64_t n, uint8_t *out)
{
    for (uint64_t i = 0; i < n; i++)
        if (form == PL_FRAMES_F16) {
            const uint16_t half = pl_f16_of_f32(picture[i]);
            memcpy(out + 2 * i, &half, sizeof half);
        } else {
            out[i] = (uint8_t)rintf(fminf(fmaxf(picture[i], 0), 1) * UINT8_MAX);
        }
}

pl_status pl_frames_append(pl_frames_writer *w, const float *picture, pl_error *err)
{
    const uint64_t bytes = pl_frames_picture_bytes(&w->info);
    if (pl_grow(&w->table, &w->table_capacity, w->info.pictures, sizeof *w->table))
        return pl_fail(err, PL_E_NOMEM, "%s: no memory for its table of checksums", w->file.path);
    narrow(w->info.form, picture, (uint64_t)w->info.height * w->info.width, w->picture);
    w->table[w->info.pictures++] = XXH64(w->picture, bytes, 0);
    return pl_file_write(&w->file, w->picture, bytes, err);
}

static void print_header(const pl_frames_info *i, uint8_t header[PL_FRAMES_HEADER_BYTES])
{
    memset(header, 0, PL_FRAMES_HEADER_BYTES);
    memcpy(header, PL_FRAMES_MAGIC, 8);
    pl_put_u32(header, 8, i->version);
    pl_put_u32(header, 12, PL_FRAMES_HEADER_BYTES);
    pl_put_u32(header, 16, i->height);
    pl_put_u32(header, 20, i->width);
    pl_put_u32(header, 24, i->form);
    pl_put_u32(header, 28, i->flights);
    pl_put_u64(header, 32, i->frames);
    pl_put_u64(header, 40, i->pictures);
    pl_put_u64(header, 48, i->key);
    pl_put_u64(header, 56, i->records_hash);
    pl_put_u64(header, 64, i->table_hash);
    pl_put_u64(header, 120, XXH64(header, 120, 0));
}

enum { CONTENT_AT = 32 };

static void put_source(uint8_t to[PL_FRAMES_SOURCE_BYTES], const pl_origin *o)
{
    pl_put_u64(to, 0, o->bytes);
    pl_put_u64(to, 8, o->inode);
    pl_put_u64(to, 16, (uint64_t)o->mtime_ns);
    pl_put_u64(to, 24, (uint64_t)o->ctime_ns);
    pl_put_u64(to, CONTENT_AT, o->content);
    pl_put_u64(to, 40, XXH64(to, 40, 0));
}

static pl_status write_sources(pl_frames_writer *w, const pl_frames_rest *r, pl_error *err)
{
    uint8_t source[PL_FRAMES_SOURCE_BYTES];
    for (uint32_t n = 0; n < r->flights * PL_FRAMES_SOURCES; n++) {
        put_source(source, &r->source[n]);
        PL_TRY(pl_file_write(&w->file, source, sizeof source, err));
    }
    return PL_OK;
}

static pl_status complete(pl_frames_writer *w, const pl_frames_rest *r, pl_error *err)
{
    pl_frames_info *i = &w->info;
    uint8_t header[PL_FRAMES_HEADER_BYTES];
    XXH64_state_t state;
    i->flights = r->flights, i->frames = r->frames, i->key = r->key;
    XXH64_reset(&state, 0);
    XXH64_update(&state, r->flight, i->flights * sizeof *r->flight);
    XXH64_update(&state, r->record, i->frames * sizeof *r->record);
    i->records_hash = XXH64_digest(&state);
    i->table_hash = XXH64(i->pictures ? w->table : &(uint64_t){0}, i->pictures * sizeof *w->table, 0);
    if (r->identity && r->identity != pl_frames_identity(i))
        return pl_fail(
            err, PL_E_CONFIG,
            "%.300s: the flights' files give other frames than those that the run in %.300s was trained on: a "
            "file was replaced, or nothing can be seen in some frames, which earlier versions trained on; "
            "put the files back as they were, or train anew in another folder with `run.out`",
            w->file.path, r->run);
    PL_TRY(pl_file_write(&w->file, r->flight, i->flights * sizeof *r->flight, err));
    PL_TRY(pl_file_write(&w->file, r->record, i->frames * sizeof *r->record, err));
    PL_TRY(pl_file_write(&w->file, w->table, i->pictures * sizeof *w->table, err));
    PL_TRY(write_sources(w, r, err));
    print_header(i, header);
    PL_TRY(pl_file_write_at(&w->file, 0, header, sizeof header, err));
    return pl_file_commit(&w->file, err);
}

pl_status pl_frames_commit(pl_frames_writer *w, const pl_frames_rest *r, pl_error *err)
{
    pl_status status = complete(w, r, err);
    pl_frames_abandon(w);
    return status;
}

void pl_frames_note_source(const char *path, const pl_frames_info *i, uint32_t number, const pl_origin *o)
{
    const uint64_t at = pl_frames_sources_offset(i) + number * (uint64_t)PL_FRAMES_SOURCE_BYTES;
    pl_origin_note(path, at, PL_FRAMES_SOURCE_BYTES, CONTENT_AT, put_source, o);
}

uint64_t pl_frames_identity(const pl_frames_info *i)
{
    const uint64_t of[] = {i->height, i->width, (uint64_t)i->form, i->records_hash, i->table_hash};
    return pl_fact_of_hash(XXH64(of, sizeof of, 0));
}

void pl_frames_abandon(pl_frames_writer *w)
{
    if (!w) return;
    pl_file_abandon(&w->file);
    pl_free(w->picture);
    pl_free(w->table);
    pl_free(w);
}
