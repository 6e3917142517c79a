#include "pretrained/gguf.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"

enum { WINDOW_BYTES = 64 << 10 };

struct pl_gguf {
    const pl_model_file *file;
    pl_pool *pool;         /* names and keys */
    pl_gguf_value *values; /* by key */
    size_t value_count, value_room;
    pl_gguf_tensor *tensors; /* by name */
    size_t tensor_count, tensor_room;
};

static const uint8_t type_bytes[PL_GGUF_TYPE_COUNT] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

/* ---- block types ---- */

static const struct {
    const char *name;
    pl_encoding encoding;
} block_types[] = {
#define OTHER(name)                                                                                                    \
    {                                                                                                                  \
        name, PL_ENCODING_COUNT                                                                                        \
    }
    [0] = {"F32", PL_ENCODING_F32},
    {"F16", PL_ENCODING_F16},
    {"Q4_0", PL_ENCODING_Q4_0},
    {"Q4_1", PL_ENCODING_Q4_1},
    [6] = {"Q5_0", PL_ENCODING_Q5_0},
    {"Q5_1", PL_ENCODING_Q5_1},
    {"Q8_0", PL_ENCODING_Q8_0},
    OTHER("Q8_1"),
    OTHER("Q2_K"),
    OTHER("Q3_K"),
    {"Q4_K", PL_ENCODING_Q4_K},
    {"Q5_K", PL_ENCODING_Q5_K},
    {"Q6_K", PL_ENCODING_Q6_K},
    OTHER("Q8_K"),
    OTHER("IQ2_XXS"),
    OTHER("IQ2_XS"),
    OTHER("IQ3_XXS"),
    OTHER("IQ1_S"),
    OTHER("IQ4_NL"),
    OTHER("IQ3_S"),
    OTHER("IQ2_S"),
    OTHER("IQ4_XS"),
    OTHER("I8"),
    OTHER("I16"),
    OTHER("I32"),
    OTHER("I64"),
    OTHER("F64"),
    OTHER("IQ1_M"),
    {"BF16", PL_ENCODING_BF16},
    [34] = OTHER("TQ1_0"),
    OTHER("TQ2_0"),
    [39] = OTHER("MXFP4"),
    OTHER("NVFP4"),
#undef OTHER
};

static bool has_type(uint32_t type)
{
    return type < sizeof block_types / sizeof *block_types && block_types[type].name;
}

const char *pl_gguf_type_name(uint32_t type) { return has_type(type) ? block_types[type].name : "unknown"; }

pl_encoding pl_gguf_encoding(uint32_t type) { return has_type(type) ? block_types[type].encoding : PL_ENCODING_COUNT; }

/* ---- reading through ---- */

/* The next `bytes` bytes, which stay where they are until the next call. */
static pl_status take(pl_gguf_cursor *c, size_t bytes, const unsigned char **at, pl_error *err)
{
    const pl_model_file *f = c->file->file;
    if (c->held - c->at < bytes) {
        const uint64_t in_file = f->bytes - c->offset;
        memmove(c->buffer, c->buffer + c->at, c->held - c->at);
        c->held -= c->at, c->at = 0;
        size_t more = c->room - c->held;
        if (more > in_file) more = (size_t)in_file;
        PL_TRY(pl_model_file_read(f, c->offset, c->buffer + c->held, more, err));
        c->held += more, c->offset += more;
        if (c->held < bytes)
            return pl_fail(err, PL_E_DATA, "%s: ends at byte %" PRIu64 ", within its header; the file is truncated",
                           f->path, f->bytes);
    }
    *at = c->buffer + c->at;
    c->at += bytes;
    return PL_OK;
}

/* Where the next byte lies in the file. */
static uint64_t place(const pl_gguf_cursor *c) { return c->offset - (c->held - c->at); }

static pl_status skip(pl_gguf_cursor *c, uint64_t bytes, pl_error *err)
{
    const pl_model_file *f = c->file->file;
    if (bytes > f->bytes - place(c))
        return pl_fail(err, PL_E_DATA,
                       "%s: says at byte %" PRIu64 " that %" PRIu64 " bytes follow, but it ends at %" PRIu64, f->path,
                       place(c), bytes, f->bytes);
    if (bytes <= c->held - c->at) {
        c->at += (size_t)bytes;
    } else {
        c->offset = place(c) + bytes;
        c->at = c->held = 0;
    }
    return PL_OK;
}

static uint64_t little_endian(const unsigned char *from, size_t bytes)
{
    uint64_t x = 0;
    for (size_t i = bytes; i-- > 0;) x = x << 8 | from[i];
    return x;
}

static pl_status take_number(pl_gguf_cursor *c, size_t bytes, uint64_t *x, pl_error *err)
{
    const unsigned char *from = NULL;
    PL_TRY(take(c, bytes, &from, err));
    *x = little_endian(from, bytes);
    return PL_OK;
}

static pl_status take_type(pl_gguf_cursor *c, uint64_t *type, pl_error *err)
{
    PL_TRY(take_number(c, 4, type, err));
    if (*type < PL_GGUF_TYPE_COUNT) return PL_OK;
    return pl_fail(err, PL_E_DATA,
                   "%s: a value at byte %" PRIu64 " has type %" PRIu64 ", which no version of GGUF knows",
                   c->file->file->path, place(c) - 4, *type);
}

/* A key or a name, of fewer than `most` bytes, into the pool. */
static pl_status take_name(pl_gguf *g, pl_gguf_cursor *c, size_t most, const char *what, const char **name,
                           pl_error *err)
{
    const unsigned char *text;
    uint64_t bytes;
    PL_TRY(take_number(c, 8, &bytes, err));
    if (bytes == 0 || bytes >= most)
        return pl_fail(err, PL_E_DATA, "%s: %s at byte %" PRIu64 " has %" PRIu64 " bytes; 1 to %zu were expected",
                       g->file->path, what, place(c) - 8, bytes, most - 1);
    PL_TRY(take(c, (size_t)bytes, &text, err));
    if (memchr(text, 0, (size_t)bytes))
        return pl_fail(err, PL_E_DATA, "%s: %s at byte %" PRIu64 " holds a zero", g->file->path, what,
                       place(c) - bytes);
    *name = pl_pool_strndup(g->pool, (const char *)text, (size_t)bytes);
    return *name ? PL_OK : pl_fail(err, PL_E_NOMEM, "%s: no memory for its keys", g->file->path);
}

/* ---- keys ---- */

static pl_status skip_strings(pl_gguf_cursor *c, pl_gguf_value *v, pl_error *err)
{
    for (uint64_t i = 0, bytes; i < v->count; i++) {
        PL_TRY(take_number(c, 8, &bytes, err));
        PL_TRY(skip(c, bytes, err));
        if (bytes > v->longest_bytes) v->longest_bytes = bytes;
    }
    return PL_OK;
}

static pl_status take_array_head(pl_gguf_cursor *c, pl_gguf_value *v, uint64_t *type, pl_error *err)
{
    v->is_array = true;
    PL_TRY(take_type(c, type, err));
    if (*type == PL_GGUF_ARRAY)
        return pl_fail(err, PL_E_DATA, "%s: key \"%s\" is an array of arrays, which is not supported",
                       c->file->file->path, v->key);
    return take_number(c, 8, &v->count, err);
}

static pl_status take_value(pl_gguf *g, pl_gguf_cursor *c, pl_gguf_value *v, pl_error *err)
{
    uint64_t type, bytes;
    *v = (pl_gguf_value){.count = 1};
    PL_TRY(take_name(g, c, PL_GGUF_KEY_MAX, "a key", &v->key, err));
    PL_TRY(take_type(c, &type, err));
    if (type == PL_GGUF_ARRAY) PL_TRY(take_array_head(c, v, &type, err));
    v->type = (pl_gguf_type)type;
    v->offset = place(c);
    if (v->type != PL_GGUF_STRING && pl_size_mul(v->count, type_bytes[v->type], &bytes)) bytes = UINT64_MAX;
    PL_TRY(v->type == PL_GGUF_STRING ? skip_strings(c, v, err) : skip(c, bytes, err));
    v->bytes = place(c) - v->offset;
    return PL_OK;
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const pl_gguf_value *)a)->key, ((const pl_gguf_value *)b)->key);
}

static pl_status take_values(pl_gguf *g, pl_gguf_cursor *c, uint64_t count, pl_error *err)
{
    for (uint64_t i = 0; i < count; i++) {
        if (pl_grow(&g->values, &g->value_room, g->value_count, sizeof *g->values))
            return pl_fail(err, PL_E_NOMEM, "%s: no memory for its keys", g->file->path);
        PL_TRY(take_value(g, c, &g->values[g->value_count], err));
        g->value_count++;
    }
    if (count) qsort(g->values, g->value_count, sizeof *g->values, by_key);
    for (size_t i = 1; i < g->value_count; i++)
        if (by_key(&g->values[i - 1], &g->values[i]) == 0)
            return pl_fail(err, PL_E_DATA, "%s: has the key \"%s\" twice", g->file->path, g->values[i].key);
    return PL_OK;
}

/* ---- tensors ---- */

static pl_status bad_tensor(const pl_gguf *g, const pl_gguf_tensor *t, const char *what, pl_error *err)
{
    return pl_fail(err, PL_E_DATA, "%s: tensor \"%s\": %s", g->file->path, t->name, what);
}

static pl_status take_shape(pl_gguf *g, pl_gguf_cursor *c, pl_gguf_tensor *t, pl_error *err)
{
    uint64_t rank;
    PL_TRY(take_number(c, 4, &rank, err));
    if (rank < 1 || rank > PL_GGUF_RANK_MAX) return bad_tensor(g, t, "it has not 1 to 4 dimensions", err);
    t->rank = (uint32_t)rank;
    for (uint32_t i = 0; i < PL_GGUF_RANK_MAX; i++) {
        t->ne[i] = 1;
        if (i < rank) PL_TRY(take_number(c, 8, &t->ne[i], err));
    }
    return PL_OK;
}

/* The bytes of the tensor, where the type is one of ours. */
static pl_status size_tensor(const pl_gguf *g, pl_gguf_tensor *t, pl_error *err)
{
    if (t->encoding == PL_ENCODING_COUNT) return PL_OK;
    const uint64_t block = (uint64_t)pl_encoding_block(t->encoding);
    if (t->ne[0] % block) return bad_tensor(g, t, "its rows are not whole blocks of its type", err);
    t->bytes = t->ne[0] / block;
    bool overflows = pl_size_mul(t->bytes, (uint64_t)pl_encoding_block_bytes(t->encoding), &t->bytes);
    for (uint32_t i = 1; i < t->rank; i++) overflows |= pl_size_mul(t->bytes, t->ne[i], &t->bytes) != 0;
    return overflows ? bad_tensor(g, t, "its shape multiplies to more bytes than a file can hold", err) : PL_OK;
}

static pl_status take_tensor(pl_gguf *g, pl_gguf_cursor *c, pl_gguf_tensor *t, pl_error *err)
{
    uint64_t type;
    *t = (pl_gguf_tensor){0};
    PL_TRY(take_name(g, c, PL_GGUF_NAME_MAX, "the name of a tensor", &t->name, err));
    PL_TRY(take_shape(g, c, t, err));
    PL_TRY(take_number(c, 4, &type, err));
    t->type = (uint32_t)type;
    t->encoding = pl_gguf_encoding(t->type);
    PL_TRY(size_tensor(g, t, err));
    return take_number(c, 8, &t->offset, err);
}

static int by_offset(const void *a, const void *b)
{
    const pl_gguf_tensor *x = a, *y = b;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const pl_gguf_tensor *)a)->name, ((const pl_gguf_tensor *)b)->name);
}

/* `base`: where the data begin. */
static pl_status place_tensors(pl_gguf *g, uint64_t base, uint64_t alignment, pl_error *err)
{
    uint64_t end = base;
    if (g->tensor_count == 0) return PL_OK;
    qsort(g->tensors, g->tensor_count, sizeof *g->tensors, by_offset);
    for (size_t i = 0; i < g->tensor_count; i++) {
        pl_gguf_tensor *t = &g->tensors[i];
        if (t->offset % alignment) return bad_tensor(g, t, "its offset is not a multiple of the alignment", err);
        uint64_t last;
        if (pl_size_add(base, t->offset, &t->offset) || pl_size_add(t->offset, t->bytes, &last) ||
            last > g->file->bytes)
            return bad_tensor(g, t, "it does not lie in the file, which is damaged or truncated", err);
        if (t->offset < end) return bad_tensor(g, t, "it overlaps another tensor", err);
        end = last;
    }
    qsort(g->tensors, g->tensor_count, sizeof *g->tensors, by_name);
    for (size_t i = 1; i < g->tensor_count; i++)
        if (by_name(&g->tensors[i - 1], &g->tensors[i]) == 0)
            return bad_tensor(g, &g->tensors[i], "there are two of that name", err);
    return PL_OK;
}

static pl_status find_alignment(const pl_gguf *g, uint64_t *alignment, pl_error *err)
{
    const pl_gguf_value *v = pl_gguf_find(g, "general.alignment");
    double x = PL_GGUF_ALIGNMENT;
    if (v) PL_TRY(pl_gguf_number(g, v, &x, err));
    if (!(x >= 1 && x <= 1 << 30 && ((uint64_t)x & ((uint64_t)x - 1)) == 0 && x == (double)(uint64_t)x))
        return pl_fail(err, PL_E_DATA, "%s: general.alignment is %g; a power of two was expected", g->file->path, x);
    *alignment = (uint64_t)x;
    return PL_OK;
}

static pl_status take_tensors(pl_gguf *g, pl_gguf_cursor *c, uint64_t count, pl_error *err)
{
    uint64_t alignment = 0;
    if (pl_reserve(&g->tensors, &g->tensor_room, (size_t)count, sizeof *g->tensors))
        return pl_fail(err, PL_E_NOMEM, "%s: no memory for its list of tensors", g->file->path);
    for (; g->tensor_count < count; g->tensor_count++) PL_TRY(take_tensor(g, c, &g->tensors[g->tensor_count], err));
    PL_TRY(find_alignment(g, &alignment, err));
    return place_tensors(g, pl_align_up(place(c), alignment), alignment, err);
}

/* ---- the file ---- */

static pl_status take_version(pl_gguf *g, pl_gguf_cursor *c, pl_error *err)
{
    const unsigned char *magic;
    uint64_t version;
    PL_TRY(take(c, 4, &magic, err));
    if (memcmp(magic, "GGUF", 4) != 0)
        return pl_fail(err, PL_E_DATA,
                       "%s: is not a GGUF file: it does not begin with \"GGUF\"; a .gguf file or the folder of a model "
                       "was expected",
                       g->file->path);
    PL_TRY(take_number(c, 4, &version, err));
    if (version == 2 || version == 3) return PL_OK;
    if (version == 2u << 24 || version == 3u << 24)
        return pl_fail(err, PL_E_UNSUPPORTED, "%s: is a big-endian GGUF file; convert it to little-endian",
                       g->file->path);
    return pl_fail(err, PL_E_UNSUPPORTED, "%s: is of GGUF version %" PRIu64 "; versions 2 and 3 are read",
                   g->file->path, version);
}

static pl_status take_counts(pl_gguf *g, pl_gguf_cursor *c, uint64_t *tensors, uint64_t *values, pl_error *err)
{
    PL_TRY(take_number(c, 8, tensors, err));
    PL_TRY(take_number(c, 8, values, err));
    if (*tensors <= PL_GGUF_TENSORS_MAX && *values <= PL_GGUF_KEYS_MAX) return PL_OK;
    return pl_fail(err, PL_E_DATA,
                   "%s: says that it has %" PRIu64 " tensors and %" PRIu64 " keys; at most %d and %d are read",
                   g->file->path, *tensors, *values, PL_GGUF_TENSORS_MAX, PL_GGUF_KEYS_MAX);
}

static pl_status take_header(pl_gguf *g, unsigned char *buffer, pl_error *err)
{
    pl_gguf_cursor c = {.file = g, .buffer = buffer, .room = WINDOW_BYTES};
    uint64_t tensors, values;
    PL_TRY(take_version(g, &c, err));
    PL_TRY(take_counts(g, &c, &tensors, &values, err));
    PL_TRY(take_values(g, &c, values, err));
    return take_tensors(g, &c, tensors, err);
}

pl_status pl_gguf_open(const pl_model_file *file, pl_gguf **out, pl_error *err)
{
    pl_gguf *g = pl_alloc(1, sizeof *g);
    unsigned char *buffer = pl_alloc(WINDOW_BYTES, 1);
    pl_status status;
    *out = NULL;
    if (g) *g = (pl_gguf){.file = file, .pool = pl_pool_create()};
    PL_TRY_DONE(g && g->pool && buffer ? PL_OK
                                       : pl_fail(err, PL_E_NOMEM, "%s: no memory to read its header", file->path));
    PL_TRY_DONE(take_header(g, buffer, err));
    *out = g;
    g = NULL;
done:
    pl_free(buffer);
    pl_gguf_destroy(g);
    return status;
}

void pl_gguf_destroy(pl_gguf *g)
{
    if (!g) return;
    pl_free(g->values);
    pl_free(g->tensors);
    pl_pool_destroy(g->pool);
    pl_free(g);
}

size_t pl_gguf_tensor_count(const pl_gguf *g) { return g->tensor_count; }
const pl_gguf_tensor *pl_gguf_tensor_at(const pl_gguf *g, size_t index) { return &g->tensors[index]; }

const pl_gguf_value *pl_gguf_find(const pl_gguf *g, const char *key)
{
    const pl_gguf_value wanted = {.key = key};
    return g->value_count ? bsearch(&wanted, g->values, g->value_count, sizeof *g->values, by_key) : NULL;
}

size_t pl_gguf_value_count(const pl_gguf *g) { return g->value_count; }
const pl_gguf_value *pl_gguf_value_at(const pl_gguf *g, size_t index) { return &g->values[index]; }

pl_status pl_gguf_bytes(const pl_gguf *g, const pl_gguf_value *v, uint64_t at, void *to, size_t bytes, pl_error *err)
{
    return pl_model_file_read(g->file, v->offset + at, to, bytes, err);
}

/* ---- values ---- */

static double number_of(pl_gguf_type type, const unsigned char *from)
{
    const uint64_t x = little_endian(from, type_bytes[type]);
    const uint32_t x32 = (uint32_t)x;
    float f;
    double d;
    switch (type) {
    case PL_GGUF_I8:
        return (int8_t)x;
    case PL_GGUF_I16:
        return (int16_t)x;
    case PL_GGUF_I32:
        return (int32_t)x;
    case PL_GGUF_I64:
        return (double)(int64_t)x;
    case PL_GGUF_F32:
        return memcpy(&f, &x32, sizeof f), (double)f;
    case PL_GGUF_F64:
        return memcpy(&d, &x, sizeof d), d;
    case PL_GGUF_BOOL:
        return x != 0;
    default:
        return (double)x;
    }
}

size_t pl_gguf_cursor_bytes(const pl_gguf_value *v) { return 8 + (size_t)v->longest_bytes; }

pl_gguf_cursor pl_gguf_begin(const pl_gguf *g, const pl_gguf_value *v, void *buffer, size_t room)
{
    return (pl_gguf_cursor){
        .file = g, .value = v, .left = v->count, .offset = v->offset, .buffer = buffer, .room = room};
}

static pl_status wrong_type(const pl_gguf *g, const pl_gguf_value *v, const char *what, pl_error *err)
{
    return pl_fail(err, PL_E_DATA, "%s: key \"%s\" is not %s, as was expected", g->file->path, v->key, what);
}

pl_status pl_gguf_next_string(pl_gguf_cursor *c, const char **text, size_t *bytes, pl_error *err)
{
    const unsigned char *from = NULL;
    uint64_t length;
    if (c->value->type != PL_GGUF_STRING) return wrong_type(c->file, c->value, "of strings", err);
    PL_TRY(take_number(c, 8, &length, err));
    if (length > c->value->longest_bytes) /* not what it was when the file was opened */
        return pl_fail(err, PL_E_DATA, "%s: was written to after it was opened; start again when it is whole",
                       c->file->file->path);
    PL_TRY(take(c, (size_t)length, &from, err));
    *text = (const char *)from, *bytes = (size_t)length;
    c->left--;
    return PL_OK;
}

pl_status pl_gguf_next_number(pl_gguf_cursor *c, double *x, pl_error *err)
{
    const unsigned char *from = NULL;
    if (c->value->type == PL_GGUF_STRING) return wrong_type(c->file, c->value, "of numbers", err);
    PL_TRY(take(c, type_bytes[c->value->type], &from, err));
    *x = number_of(c->value->type, from);
    c->left--;
    return PL_OK;
}

pl_status pl_gguf_number(const pl_gguf *g, const pl_gguf_value *v, double *x, pl_error *err)
{
    unsigned char buffer[8];
    if (v->is_array || v->type == PL_GGUF_STRING) return wrong_type(g, v, "a number", err);
    pl_gguf_cursor c = pl_gguf_begin(g, v, buffer, type_bytes[v->type]);
    return pl_gguf_next_number(&c, x, err);
}

pl_status pl_gguf_string(const pl_gguf *g, const pl_gguf_value *v, char *to, pl_error *err)
{
    if (v->is_array || v->type != PL_GGUF_STRING) return wrong_type(g, v, "a string", err);
    PL_TRY(pl_model_file_read(g->file, v->offset + 8, to, (size_t)v->longest_bytes, err));
    to[v->longest_bytes] = 0;
    return PL_OK;
}
