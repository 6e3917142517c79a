#include "pretrained/gguf_write.h"

#include <string.h>

#include "base/size.h"

enum { VERSION = 3, KEY_BYTES = 256 };

/* Numbers of a file are little-endian, as those in memory here. */
static void put(pl_str *to, const void *from, size_t bytes) { pl_str_append_bytes(to, from, bytes); }
static void put_u32(pl_str *to, uint32_t x) { put(to, &x, sizeof x); }
static void put_u64(pl_str *to, uint64_t x) { put(to, &x, sizeof x); }

static void put_name(pl_str *to, const char *text, size_t bytes)
{
    put_u64(to, bytes);
    put(to, text, bytes);
}

/* ---- keys ---- */

static void begin_value(pl_gguf_keys *k, const char *key, pl_gguf_type type)
{
    put_name(&k->text, key, strlen(key));
    put_u32(&k->text, type);
    k->count++;
}

void pl_gguf_put_string(pl_gguf_keys *k, const char *key, const char *text, size_t bytes)
{
    begin_value(k, key, PL_GGUF_STRING);
    put_name(&k->text, text, bytes);
}

void pl_gguf_put_u32(pl_gguf_keys *k, const char *key, uint64_t x)
{
    begin_value(k, key, PL_GGUF_U32);
    put_u32(&k->text, (uint32_t)x);
}

void pl_gguf_put_f32(pl_gguf_keys *k, const char *key, double x)
{
    const float narrowed = (float)x;
    begin_value(k, key, PL_GGUF_F32);
    put(&k->text, &narrowed, sizeof narrowed);
}

void pl_gguf_put_bool(pl_gguf_keys *k, const char *key, bool x)
{
    const uint8_t byte = x;
    begin_value(k, key, PL_GGUF_BOOL);
    put(&k->text, &byte, 1);
}

void pl_gguf_put_array(pl_gguf_keys *k, const char *key, pl_gguf_type type, uint64_t count)
{
    begin_value(k, key, PL_GGUF_ARRAY);
    put_u32(&k->text, type);
    put_u64(&k->text, count);
}

void pl_gguf_put_text(pl_gguf_keys *k, const char *text, size_t bytes) { put_name(&k->text, text, bytes); }

pl_status pl_gguf_put_value(pl_gguf_keys *k, const pl_gguf *g, const pl_gguf_value *v, pl_error *err)
{
    char piece[4096];
    if (v->is_array)
        pl_gguf_put_array(k, v->key, v->type, v->count);
    else
        begin_value(k, v->key, v->type);
    for (uint64_t at = 0; at < v->bytes;) {
        const size_t some = v->bytes - at < sizeof piece ? (size_t)(v->bytes - at) : sizeof piece;
        PL_TRY(pl_gguf_bytes(g, v, at, piece, some, err));
        put(&k->text, piece, some);
        at += some;
    }
    return PL_OK;
}

/* ---- tensors ---- */

static uint32_t type_of(pl_encoding e)
{
    uint32_t type = 0;
    while (pl_gguf_encoding(type) != e) type++;
    return type;
}

static void put_tensor(pl_str *to, const char *name, uint32_t rank, const uint64_t *ne, pl_encoding e, uint64_t offset)
{
    put_name(to, name, strlen(name));
    put_u32(to, rank);
    for (uint32_t i = 0; i < rank; i++) put_u64(to, ne[i]);
    put_u32(to, type_of(e));
    put_u64(to, offset);
}

static uint64_t padded(uint64_t bytes) { return pl_align_up(bytes, PL_GGUF_ALIGNMENT); }

pl_status pl_gguf_lay_out(const pl_gguf_keys *k, const pl_gguf_vector *extra, pl_written_list *l, pl_str *header,
                          uint64_t *bytes, pl_error *err)
{
    uint64_t at = 0;
    put(header, "GGUF", 4);
    put_u32(header, VERSION);
    put_u64(header, l->count + (extra != NULL));
    put_u64(header, k->count);
    put(header, pl_str_text(&k->text), k->text.bytes);
    if (extra) put_tensor(header, extra->name, 1, &extra->count, PL_ENCODING_F32, at);
    if (extra) at = padded(extra->count * sizeof(float));
    for (size_t i = 0; i < l->count; i++) {
        pl_written *w = &l->of[i];
        const uint64_t ne[2] = {(uint64_t)w->columns, (uint64_t)w->rows};
        w->offset = at;
        if (strlen(w->name) >= PL_GGUF_NAME_MAX || pl_size_add(at, padded(w->bytes), &at))
            return pl_fail(err, PL_E_DATA, "tensor %s does not fit into a GGUF file", w->name);
        put_tensor(header, w->name, w->is_vector ? 1 : 2, ne, w->encoding, w->offset);
    }
    pl_str_pad(header, 0, padded(header->bytes) - header->bytes);
    if (header->failed || k->text.failed) return pl_fail(err, PL_E_NOMEM, "no memory for the header of a GGUF file");
    return pl_size_add(header->bytes, at, bytes)
               ? pl_fail(err, PL_E_DATA, "the model has more bytes than a file can hold")
               : PL_OK;
}

pl_status pl_gguf_pad(pl_file_writer *f, pl_error *err)
{
    static const char zeros[PL_GGUF_ALIGNMENT];
    return pl_file_write(f, zeros, (size_t)(padded(f->bytes) - f->bytes), err);
}
