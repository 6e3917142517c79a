/* The header is printed entry by entry into one small piece and handed on, first to a counter (the length stands before
 * the JSON), then to the file: the same function does both, so the length cannot differ from what is written. */
#include "store/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/size.h"

/* ---- check ---- */

/* What JSON would escape at length, or could not hold, is refused: so an entry fits a piece and names stay themselves.
 */
static int is_bad(const char *text, size_t most, bool has_lines)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t n = strnlen(text, most + 1), step;
    if (n > most) return 1;
    for (size_t i = 0; i < n; i += step) {
        step = pl_json_utf8_length(p + i, n - i);
        if (step == 0 || (p[i] < 0x20 && !(has_lines && p[i] == '\n')) || p[i] == 0x7f) return 1;
    }
    return 0;
}

static int text_is_bad(const char *text) { return is_bad(text, PL_ST_TEXT_MAX, false); }

static pl_status check_entry(const pl_st_entry *e, pl_error *err)
{
    uint64_t bytes;
    char shape[256];
    if (!e->name || !*e->name || text_is_bad(e->name) || strcmp(e->name, "__metadata__") == 0)
        return pl_fail(err, PL_E_USAGE, "\"%.60s\" cannot name a tensor: 1 to %d printable bytes of UTF-8 are expected",
                       e->name ? e->name : "", PL_ST_TEXT_MAX);
    if (e->rank > PL_ST_RANK_MAX)
        return pl_fail(err, PL_E_USAGE, "tensor %.200s has %u dimensions, at most %d can be stored", e->name, e->rank,
                       PL_ST_RANK_MAX);
    if (pl_st_tensor_bytes(e->dtype, e->rank, e->shape, &bytes) == 0 && bytes == e->bytes) return PL_OK;
    pl_st_shape_print(e->dtype, e->rank, e->shape, shape, sizeof shape);
    return pl_fail(err, PL_E_USAGE, "tensor %.200s is %s, which does not make %" PRIu64 " bytes", e->name, shape,
                   e->bytes);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static pl_status check_tensor_names(const pl_st_list *list, pl_error *err)
{
    const char **name = pl_alloc(list->count + 1, sizeof *name);
    if (!name) return pl_fail(err, PL_E_NOMEM, "no memory to compare the names of %zu tensors", list->count);
    for (size_t i = 0; i < list->count; i++) name[i] = list->entries[i].name;
    qsort(name, list->count, sizeof *name, compare_names);
    pl_status status = PL_OK;
    for (size_t i = 1; i < list->count && status == PL_OK; i++)
        if (strcmp(name[i - 1], name[i]) == 0)
            status = pl_fail(err, PL_E_USAGE, "two tensors are named %.200s", name[i]);
    pl_free(name);
    return status;
}

static pl_status check_doubles(const pl_st_list *list, pl_error *err)
{
    PL_TRY(check_tensor_names(list, err));
    for (size_t i = 0; i < list->metadata_count; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(list->metadata[i].key, list->metadata[j].key) == 0)
                return pl_fail(err, PL_E_USAGE, "metadata key %.200s is given twice", list->metadata[i].key);
    return PL_OK;
}

pl_status pl_safetensors_check(const pl_st_list *list, pl_error *err)
{
    uint64_t total = 0;
    for (size_t i = 0; i < list->count; i++) {
        PL_TRY(check_entry(&list->entries[i], err));
        if (pl_size_add(total, list->entries[i].bytes, &total) || total > INT64_MAX)
            return pl_fail(err, PL_E_USAGE, "the tensors up to %.200s are too large for a file", list->entries[i].name);
    }
    for (size_t i = 0; i < list->metadata_count; i++)
        if (text_is_bad(list->metadata[i].key) || is_bad(list->metadata[i].value, PL_ST_VALUE_MAX, true))
            return pl_fail(err, PL_E_USAGE,
                           "metadata \"%.60s\": at most %d printable bytes of UTF-8 are expected, in the value %d",
                           list->metadata[i].key, PL_ST_TEXT_MAX, PL_ST_VALUE_MAX);
    return check_doubles(list, err);
}

/* ---- header ---- */

/* Where printed pieces go: counted, and written when there is a writer, or a place in memory. */
typedef struct sink {
    pl_st_writer *writer;
    pl_checksum *sum;
    char *memory;
    uint64_t bytes;
    pl_status status;
    pl_error *err;
} sink;

static void put(sink *to, const void *data, size_t bytes)
{
    if (to->memory) memcpy(to->memory + to->bytes, data, bytes);
    to->bytes += bytes;
    if (to->sum) pl_checksum_update(to->sum, data, bytes);
    if (!to->writer || to->status != PL_OK) return;
    to->status = pl_file_write(&to->writer->file, data, bytes, to->err);
}

static void put_piece(sink *to, pl_str *piece)
{
    if (piece->failed && to->status == PL_OK)
        to->status = pl_fail(to->err, PL_E_INTERNAL, "an entry of a safetensors header is longer than its buffer");
    put(to, piece->data, piece->bytes);
    pl_str_clear(piece);
}

static void print_entry(pl_json *j, const pl_st_entry *e, uint64_t begin)
{
    pl_json_key(j, e->name);
    pl_json_object(j);
    pl_json_kv_string(j, "dtype", pl_st_dtype_name(e->dtype));
    pl_json_key(j, "shape");
    pl_json_array(j);
    for (uint32_t i = 0; i < e->rank; i++) pl_json_uint(j, e->shape[i]);
    pl_json_array_end(j);
    pl_json_key(j, "data_offsets");
    pl_json_array(j);
    pl_json_uint(j, begin);
    pl_json_uint(j, begin + e->bytes);
    pl_json_array_end(j);
    pl_json_object_end(j);
}

/* Calls `use` for each entry in the order of the file: wider elements first. */
static void for_each_in_file_order(const pl_st_list *list, void (*use)(void *, const pl_st_entry *), void *context)
{
    for (uint32_t width = 8; width; width /= 2)
        for (size_t i = 0; i < list->count; i++)
            if (pl_st_dtype_bytes(list->entries[i].dtype) == width) use(context, &list->entries[i]);
}

typedef struct header_printer {
    sink *to;
    pl_str *piece;
    pl_json *json;
    uint64_t begin;
} header_printer;

static void print_next(void *context, const pl_st_entry *e)
{
    header_printer *p = context;
    print_entry(p->json, e, p->begin);
    p->begin += e->bytes;
    put_piece(p->to, p->piece);
}

/* How many bytes of a text go into one piece: whole characters. */
static size_t part_of(const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t n = strnlen(text, PL_ST_TEXT_MAX);
    while (n && (p[n] & 0xc0) == 0x80) n--;
    return n;
}

/* A long value in several pieces: the quotes between them are left out. */
static void print_text(sink *to, pl_json *json, pl_str *piece, const pl_st_text *t)
{
    const char *at = t->value;
    size_t n = part_of(at);
    pl_json_key(json, t->key);
    pl_json_string_bytes(json, at, n);
    for (at += n; *at; at += n) {
        pl_json more = pl_json_begin(piece, true);
        n = part_of(at);
        piece->bytes--;
        put_piece(to, piece);
        pl_json_string_bytes(&more, at, n);
        memmove(piece->data, piece->data + 1, --piece->bytes);
    }
    put_piece(to, piece);
}

static void print_header(sink *to, const pl_st_list *list, char *memory)
{
    pl_str piece = pl_str_fixed(memory, PL_ST_PIECE_BYTES);
    pl_json json = pl_json_begin(&piece, true);
    header_printer printer = {.to = to, .piece = &piece, .json = &json};
    pl_json_object(&json);
    if (list->metadata_count) {
        pl_json_key(&json, "__metadata__");
        pl_json_object(&json);
        for (size_t i = 0; i < list->metadata_count; i++) print_text(to, &json, &piece, &list->metadata[i]);
        pl_json_object_end(&json);
    }
    for_each_in_file_order(list, print_next, &printer);
    pl_json_object_end(&json);
    put_piece(to, &piece);
}

static uint64_t header_json_bytes(const pl_st_list *list, char *memory)
{
    sink counter = {0};
    print_header(&counter, list, memory);
    return counter.bytes;
}

uint64_t pl_safetensors_header_bytes(const pl_st_list *list)
{
    char piece[PL_ST_PIECE_BYTES];
    return pl_align_up(8 + header_json_bytes(list, piece), PL_ST_ALIGNMENT);
}

uint64_t pl_safetensors_file_bytes(const pl_st_list *list)
{
    uint64_t bytes = pl_safetensors_header_bytes(list);
    for (size_t i = 0; i < list->count; i++) bytes += list->entries[i].bytes;
    return bytes;
}

/* ---- file ---- */

static void write_header(sink *to, const pl_st_list *list, char *piece)
{
    uint64_t json = header_json_bytes(list, piece), padded = pl_align_up(8 + json, PL_ST_ALIGNMENT) - 8;
    unsigned char length[8];
    for (int i = 0; i < 8; i++) length[i] = (unsigned char)(padded >> (8 * i));
    put(to, length, sizeof length);
    print_header(to, list, piece);
    memset(piece, ' ', PL_ST_ALIGNMENT);
    put(to, piece, (size_t)(padded - json));
}

void pl_safetensors_print_header(const pl_st_list *list, char *to)
{
    char piece[PL_ST_PIECE_BYTES];
    sink memory = {.memory = to};
    write_header(&memory, list, piece);
}

/* In stretches that the cache still holds when the write follows the checksum. */
static void put_data(void *context, const pl_st_entry *e)
{
    enum { STRETCH = 256 << 10 };
    sink *to = context;
    const char *data = e->data;
    for (uint64_t at = 0; at < e->bytes && to->status == PL_OK; at += STRETCH)
        put(to, data + at, (size_t)(e->bytes - at < STRETCH ? e->bytes - at : STRETCH));
}

uint64_t pl_safetensors_checksum(const pl_st_list *list)
{
    char piece[PL_ST_PIECE_BYTES];
    pl_checksum sum;
    sink to = {.sum = &sum};
    pl_checksum_init(&sum);
    write_header(&to, list, piece);
    for_each_in_file_order(list, put_data, &to);
    return pl_checksum_value(&sum);
}

pl_status pl_safetensors_write(pl_st_writer *w, const char *path, const pl_st_list *list, uint64_t *checksum,
                               pl_error *err)
{
    sink to = {.writer = w, .sum = &w->sum, .err = err};
    PL_TRY(pl_file_create(&w->file, path, err));
    pl_checksum_init(&w->sum);
    write_header(&to, list, w->piece);
    for_each_in_file_order(list, put_data, &to);
    if (to.status != PL_OK) {
        pl_file_abandon(&w->file);
        return to.status;
    }
    if (checksum) *checksum = pl_checksum_value(&w->sum);
    return pl_file_commit(&w->file, err);
}
