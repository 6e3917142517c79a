/* jansson turns the header into values (rejecting doubled keys); everything it means is checked here. What a hostile
 * header can cost is bounded by PL_ST_HEADER_MAX; a tensor list is kept only when it covers the data exactly. */
#include "store/safetensors_impl.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"
#include "base/str.h"

/* A number of the header: an integer in [0, INT64_MAX]. */
static int number_of(const json_t *value, uint64_t *number)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0) return -1;
    *number = (uint64_t)json_integer_value(value);
    return 0;
}

static pl_status damaged(const pl_safetensors *s, const char *tensor, const char *what, pl_error *err)
{
    return pl_fail(err, PL_E_DATA, "%s: tensor \"%.200s\": %s", s->file.path, tensor, what);
}

static pl_status parse_dtype(const pl_safetensors *s, const json_t *entry, pl_st_tensor *t, pl_error *err)
{
    const char *text = json_string_value(json_object_get(entry, "dtype"));
    if (!text) return damaged(s, t->name, "its dtype is missing or not text; a text such as \"F32\" was expected", err);
    if (pl_st_dtype_parse(text, &t->dtype) == 0) return PL_OK;
    return pl_fail(err, PL_E_DATA,
                   "%s: tensor \"%.200s\": dtype \"%.40s\" is unknown; F32, F16, BF16, I64 … were expected",
                   s->file.path, t->name, text);
}

static pl_status parse_shape(const pl_safetensors *s, const json_t *entry, pl_st_tensor *t, pl_error *err)
{
    const json_t *shape = json_object_get(entry, "shape");
    if (!json_is_array(shape)) return damaged(s, t->name, "its shape is missing or not a list", err);
    if (json_array_size(shape) > PL_ST_RANK_MAX) return damaged(s, t->name, "it has more than 8 dimensions", err);
    t->rank = (uint32_t)json_array_size(shape);
    for (uint32_t i = 0; i < t->rank; i++)
        if (number_of(json_array_get(shape, i), &t->shape[i]))
            return damaged(s, t->name, "its shape holds something other than whole numbers from 0", err);
    if (pl_st_tensor_bytes(t->dtype, t->rank, t->shape, &t->bytes))
        return damaged(s, t->name, "its shape multiplies to more bytes than a file can hold", err);
    return PL_OK;
}

static pl_status parse_offsets(const pl_safetensors *s, const json_t *entry, uint64_t data_bytes, pl_st_tensor *t,
                               pl_error *err)
{
    const json_t *offsets = json_object_get(entry, "data_offsets");
    uint64_t begin, end;
    if (!json_is_array(offsets) || json_array_size(offsets) != 2 || number_of(json_array_get(offsets, 0), &begin) ||
        number_of(json_array_get(offsets, 1), &end))
        return damaged(s, t->name, "its data_offsets are not two whole numbers from 0", err);
    if (begin > end || end > data_bytes)
        return pl_fail(err, PL_E_DATA,
                       "%s: tensor \"%.200s\": its data_offsets [%" PRIu64 ", %" PRIu64 "] do not lie in"
                       " the %" PRIu64 " bytes of data; the file is damaged or truncated",
                       s->file.path, t->name, begin, end, data_bytes);
    if (end - begin != t->bytes) {
        char shape[256];
        return pl_fail(err, PL_E_DATA,
                       "%s: tensor \"%.200s\": %s needs %" PRIu64 " bytes, its data_offsets give %" PRIu64,
                       s->file.path, t->name, pl_st_shape_print(t->dtype, t->rank, t->shape, shape, sizeof shape),
                       t->bytes, end - begin);
    }
    t->offset = begin; /* within the data; the caller adds where those begin */
    return PL_OK;
}

static pl_status parse_tensor(const pl_safetensors *s, const char *name, const json_t *entry, uint64_t data_bytes,
                              pl_st_tensor *t, pl_error *err)
{
    *t = (pl_st_tensor){.name = name};
    if (!*name) return pl_fail(err, PL_E_DATA, "%s: a tensor has an empty name", s->file.path);
    for (const char *c = name; *c; c++) /* names go to terminals */
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return pl_fail(err, PL_E_DATA, "%s: the name of a tensor holds a control character", s->file.path);
    if (!json_is_object(entry))
        return damaged(s, name, "an object with dtype, shape and data_offsets was expected", err);
    PL_TRY(parse_dtype(s, entry, t, err));
    PL_TRY(parse_shape(s, entry, t, err));
    PL_TRY(parse_offsets(s, entry, data_bytes, t, err));
    if (json_object_size(entry) != 3) return damaged(s, name, "it has more than dtype, shape and data_offsets", err);
    return PL_OK;
}

static pl_status check_metadata(const pl_safetensors *s, pl_error *err)
{
    json_t *value;
    const char *key;
    if (!s->metadata) return PL_OK;
    if (!json_is_object(s->metadata)) return pl_fail(err, PL_E_DATA, "%s: __metadata__ is not an object", s->file.path);
    json_object_foreach(s->metadata, key, value)
    {
        if (!json_is_string(value))
            return pl_fail(err, PL_E_DATA, "%s: metadata \"%.200s\" is not text", s->file.path, key);
    }
    return PL_OK;
}

static int by_offset(const void *a, const void *b)
{
    const pl_st_tensor *x = a, *y = b;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1; /* empty ones first, so that ends stay in order */
    return strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const pl_st_tensor *const *)a)->name, (*(const pl_st_tensor *const *)b)->name);
}

void pl_safetensors_sort(pl_safetensors *s) { qsort(s->by_name, s->count, sizeof *s->by_name, by_name); }

/* Sorted by offset, each tensor begins where the one before ends, and the last ends where the data do. */
static pl_status check_cover(const pl_safetensors *s, uint64_t data_bytes, pl_error *err)
{
    uint64_t at = 0;
    for (size_t i = 0; i < s->count; i++) {
        const pl_st_tensor *t = &s->tensors[i];
        if (t->offset != at)
            return pl_fail(err, PL_E_DATA,
                           "%s: tensor \"%.200s\" begins at byte %" PRIu64 " of the data, but the one before"
                           " ends at %" PRIu64 "; tensors may neither overlap nor leave holes",
                           s->file.path, t->name, t->offset, at);
        at += t->bytes;
    }
    if (at == data_bytes) return PL_OK;
    return pl_fail(err, PL_E_DATA,
                   "%s: the tensors end at byte %" PRIu64 " of the data, but the file has %" PRIu64 " bytes of them",
                   s->file.path, at, data_bytes);
}

static pl_status parse_tensors(pl_safetensors *s, uint64_t data_begin, uint64_t data_bytes, pl_error *err)
{
    const char *name;
    json_t *entry;
    size_t room = json_object_size(s->header);
    s->tensors = pl_alloc(room, sizeof *s->tensors);
    s->by_name = pl_alloc(room, sizeof *s->by_name);
    if (!s->tensors || !s->by_name)
        return pl_fail(err, PL_E_NOMEM, "%s: no memory for its list of tensors", s->file.path);
    json_object_foreach(s->header, name, entry)
    {
        if (strcmp(name, "__metadata__") == 0) continue;
        PL_TRY(parse_tensor(s, name, entry, data_bytes, &s->tensors[s->count++], err));
    }
    qsort(s->tensors, s->count, sizeof *s->tensors, by_offset);
    PL_TRY(check_cover(s, data_bytes, err));
    for (size_t i = 0; i < s->count; i++) {
        s->tensors[i].offset += data_begin;
        s->by_name[i] = &s->tensors[i];
    }
    pl_safetensors_sort(s);
    return PL_OK;
}

static pl_status parse_json(pl_safetensors *s, const char *json, size_t bytes, pl_error *err)
{
    json_error_t why;
    if (bytes == 0 || json[0] != '{')
        return pl_fail(err, PL_E_DATA, "%s: the header at byte 8 does not begin with '{'; is this a safetensors file?",
                       s->file.path);
    pl_status status = pl_json_read(json, bytes, JSON_REJECT_DUPLICATES, &s->header, &why);
    if (status == PL_OK) return PL_OK;
    if (status == PL_E_NOMEM) return pl_fail(err, status, "%s: no memory to read its header", s->file.path);
    return pl_fail(err, status, "%s: the header is not valid JSON at byte %d: %s", s->file.path, why.position + 8,
                   why.text);
}

/* The length field against the bounds; the first 8 bytes of the file. */
static pl_status parse_length(const char *path, const unsigned char *field, uint64_t file_bytes, uint64_t *length,
                              pl_error *err)
{
    *length = 0;
    for (int i = 7; i >= 0; i--) *length = *length << 8 | field[i];
    if (*length > file_bytes - 8)
        return pl_fail(err, PL_E_DATA,
                       "%s: says that its header has %" PRIu64 " bytes, but the file has %" PRIu64
                       "; it is truncated or not a safetensors file",
                       path, *length, file_bytes);
    if (*length > PL_ST_HEADER_MAX)
        return pl_fail(err, PL_E_DATA, "%s: its header has %" PRIu64 " bytes, at most %d are read", path, *length,
                       PL_ST_HEADER_MAX);
    return PL_OK;
}

static pl_status too_short(const char *path, uint64_t bytes, pl_error *err)
{
    return pl_fail(err, PL_E_DATA, "%s: has %" PRIu64 " bytes, which is too short for a safetensors file", path, bytes);
}

/* Takes over the file, whatever is returned. */
static pl_status parse(const void *data, size_t bytes, pl_model_file *file, pl_safetensors **out, pl_error *err)
{
    pl_safetensors *s = pl_alloc(1, sizeof *s);
    pl_status status;
    uint64_t length;
    if (!s) {
        status = pl_fail(err, PL_E_NOMEM, "%s: no memory to read its header", file->path);
        pl_model_file_close(file);
        return status;
    }
    *s = (pl_safetensors){.file = *file};
    PL_TRY_DONE(bytes < 8 || file->bytes < bytes ? too_short(file->path, bytes, err) : PL_OK);
    PL_TRY_DONE(parse_length(file->path, data, file->bytes, &length, err));
    PL_TRY_DONE(length > bytes - 8 ? too_short(file->path, bytes, err) : PL_OK);
    s->data_at = 8 + length;
    PL_TRY_DONE(parse_json(s, (const char *)data + 8, (size_t)length, err));
    s->metadata = json_incref(json_object_get(s->header, "__metadata__"));
    PL_TRY_DONE(check_metadata(s, err));
    PL_TRY_DONE(parse_tensors(s, 8 + length, file->bytes - 8 - length, err));
    *out = s;
    return PL_OK;
done:
    pl_safetensors_destroy(s);
    return status;
}

pl_status pl_safetensors_parse(const void *data, size_t bytes, uint64_t file_bytes, const char *name,
                               pl_safetensors **out, pl_error *err)
{
    pl_model_file file = {.path = pl_strdup(name), .fd = -1, .bytes = file_bytes};
    *out = NULL;
    if (!file.path) return pl_fail(err, PL_E_NOMEM, "%s: no memory to read its header", name);
    return parse(data, bytes, &file, out, err);
}

pl_status pl_safetensors_open_one(const char *path, pl_safetensors **out, pl_error *err)
{
    pl_model_file file;
    uint64_t length;
    unsigned char field[8];
    char *start = NULL;
    pl_status status;
    *out = NULL;
    PL_TRY(pl_model_file_open(&file, path, err));
    PL_TRY_DONE(file.bytes < 8 ? too_short(path, file.bytes, err) : PL_OK);
    PL_TRY_DONE(pl_model_file_read(&file, 0, field, sizeof field, err));
    PL_TRY_DONE(parse_length(path, field, file.bytes, &length, err));
    start = pl_alloc((size_t)length + 8, 1);
    PL_TRY_DONE(start ? PL_OK : pl_fail(err, PL_E_NOMEM, "%s: no memory for its header", path));
    PL_TRY_DONE(pl_model_file_read(&file, 0, start, (size_t)length + 8, err));
    status = parse(start, (size_t)length + 8, &file, out, err);
    pl_free(start);
    return status;
done:
    pl_free(start);
    pl_model_file_close(&file);
    return status;
}

pl_status pl_safetensors_open(const char *path, pl_safetensors **out, pl_error *err)
{
    return pl_ends_with(path, ".json") ? pl_safetensors_open_index(path, out, err)
                                       : pl_safetensors_open_one(path, out, err);
}

void pl_safetensors_destroy(pl_safetensors *s)
{
    if (!s) return;
    for (uint32_t k = 0; k < s->shards; k++) pl_safetensors_destroy(s->shard[k]);
    pl_free(s->shard);
    pl_model_file_close(&s->file);
    json_decref(s->metadata);
    json_decref(s->header);
    pl_free(s->names);
    pl_free(s->tensors);
    pl_free(s->by_name);
    pl_free(s);
}

const char *pl_safetensors_path(const pl_safetensors *s) { return s->file.path; }
uint64_t pl_safetensors_data_at(const pl_safetensors *s) { return s->data_at; }
size_t pl_safetensors_count(const pl_safetensors *s) { return s->count; }

const pl_st_tensor *pl_safetensors_at(const pl_safetensors *s, size_t index)
{
    return s->tensors ? &s->tensors[index] : s->by_name[index];
}

size_t pl_safetensors_file_count(const pl_safetensors *s) { return s->shard ? s->shards : 1; }

const pl_safetensors *pl_safetensors_file(const pl_safetensors *s, size_t index)
{
    return s->shard ? s->shard[index] : s;
}

void pl_safetensors_give_file(pl_safetensors *s, size_t index, pl_model_file *to)
{
    pl_safetensors *from = s->shard ? s->shard[index] : s;
    *to = from->file;
    from->file = (pl_model_file){.fd = -1};
}

const pl_st_tensor *pl_safetensors_find(const pl_safetensors *s, const char *name)
{
    pl_st_tensor key = {.name = name};
    const pl_st_tensor *wanted = &key;
    const pl_st_tensor **found = bsearch(&wanted, s->by_name, s->count, sizeof *s->by_name, by_name);
    return found ? *found : NULL;
}

const char *pl_safetensors_metadata(const pl_safetensors *s, const char *key)
{
    return json_string_value(json_object_get(s->metadata, key));
}

static bool is_taken_as(const pl_st_entry *e, pl_st_dtype there)
{
    pl_real from, as;
    if (there == e->dtype) return true;
    return e->converts && pl_st_dtype_real(there, &from) == 0 && pl_st_dtype_real(e->dtype, &as) == 0;
}

static pl_status find_matching(const pl_safetensors *s, const pl_st_entry *e, const pl_st_tensor **found, pl_error *err)
{
    char want[256], have[256];
    const pl_st_tensor *t = pl_safetensors_find(s, e->name);
    pl_st_shape_print(e->dtype, e->rank, e->shape, want, sizeof want);
    if (!t)
        return pl_fail(err, PL_E_DATA, "%s: has no tensor \"%.200s\"; %s was expected", s->file.path, e->name, want);
    *found = t;
    if (is_taken_as(e, t->dtype) && t->rank == e->rank && memcmp(t->shape, e->shape, e->rank * sizeof *e->shape) == 0)
        return PL_OK;
    pl_st_shape_print(t->dtype, t->rank, t->shape, have, sizeof have);
    return pl_fail(err, PL_E_DATA, "%s: tensor \"%.200s\" is %s there, but %s was expected", s->file.path, e->name,
                   have, want);
}

pl_status pl_safetensors_match(const pl_safetensors *s, const pl_st_entry *e, pl_error *err)
{
    const pl_st_tensor *found;
    return find_matching(s, e, &found, err);
}

static bool may_miss(const pl_safetensors *s, const pl_st_entry *e)
{
    return e->optional && !pl_safetensors_find(s, e->name);
}

static bool is_expected(const pl_st_list *list, const pl_st_tensor *t)
{
    if (list->more_tensors) return true;
    if (list->more_numbers && t->bytes == pl_st_dtype_bytes(t->dtype)) return true;
    for (size_t j = 0; j < list->count; j++)
        if (strcmp(list->entries[j].name, t->name) == 0) return true;
    return false;
}

pl_status pl_safetensors_match_all(const pl_safetensors *s, const pl_st_list *list, pl_error *err)
{
    size_t found = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (may_miss(s, &list->entries[i])) continue;
        PL_TRY(pl_safetensors_match(s, &list->entries[i], err));
        found++;
    }
    for (size_t i = 0; i < s->count && s->count != found; i++)
        if (!is_expected(list, pl_safetensors_at(s, i)))
            return pl_fail(err, PL_E_DATA, "%s: holds a tensor \"%.200s\" that was not expected", s->file.path,
                           pl_safetensors_at(s, i)->name);
    return PL_OK;
}

pl_tensor_source pl_safetensors_source(const pl_safetensors *s, const pl_st_tensor *t)
{
    return (pl_tensor_source){.file = &s->file,
                              .name = t->name,
                              .offset = t->offset,
                              .encoding = pl_st_dtype_encoding(t->dtype),
                              .is_f64 = t->dtype == PL_ST_F64};
}

/* Rounded or widened. */
static pl_status read_as(const pl_safetensors *s, const pl_st_tensor *t, const pl_st_entry *e, pl_error *err)
{
    _Alignas(8) char staging[16 << 10];
    const pl_tensor_source from = pl_safetensors_source(s, t);
    const pl_tensor_place to = {.rows = 1,
                                .columns = (int64_t)(t->bytes / pl_st_dtype_bytes(t->dtype)),
                                .encoding = pl_st_dtype_encoding(e->dtype),
                                .data = e->data};
    return pl_tensor_read(&from, &to, staging, sizeof staging, err);
}

pl_status pl_safetensors_read(const pl_safetensors *s, const pl_st_entry *e, pl_error *err)
{
    const pl_st_tensor *t;
    char *to = e->data;
    if (may_miss(s, e)) return PL_OK;
    PL_TRY(find_matching(s, e, &t, err));
    if (s->file.fd < 0)
        return pl_fail(err, PL_E_USAGE, "%s: was parsed from memory; there is no file to read", s->file.path);
    if (t->dtype != e->dtype) return read_as(s, t, e, err);
    if (e->bytes != t->bytes)
        return pl_fail(err, PL_E_USAGE, "tensor \"%.200s\" has %" PRIu64 " bytes, its place has %" PRIu64, t->name,
                       t->bytes, e->bytes);
    for (uint64_t at = 0; at < t->bytes; at += PL_FILE_WINDOW_BYTES) {
        uint64_t n = t->bytes - at < PL_FILE_WINDOW_BYTES ? t->bytes - at : PL_FILE_WINDOW_BYTES;
        PL_TRY(pl_file_read_at(s->file.fd, s->file.path, t->offset + at, to + at, (size_t)n, err));
        posix_fadvise(s->file.fd, (off_t)(t->offset + at), (off_t)n, POSIX_FADV_DONTNEED);
    }
    return PL_OK;
}

pl_status pl_safetensors_stream(const pl_safetensors *s, uint64_t at, void *to, uint64_t bytes, bool last,
                                pl_error *err)
{
    const uint64_t window = at / PL_FILE_WINDOW_BYTES, next = (at + bytes) / PL_FILE_WINDOW_BYTES;
    PL_TRY(pl_file_read_at(s->file.fd, s->file.path, at, to, (size_t)bytes, err));
    if (last && next > window)
        posix_fadvise(s->file.fd, (off_t)(window * PL_FILE_WINDOW_BYTES),
                      (off_t)((next - window) * PL_FILE_WINDOW_BYTES), POSIX_FADV_DONTNEED);
    return PL_OK;
}
