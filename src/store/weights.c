#include "store/weights.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/str.h"
#include "base/checksum.h"

enum { PIECE_BYTES = 16 << 10 };

/* ---- the part ---- */

typedef struct source {
    const pl_safetensors *file;
    const pl_weights_part *part; /* NULL: the whole model */
    const char *before;          /* what comes before the root: so many bytes of a name */
    size_t before_bytes;
    bool found; /* is there a tensor of the part at all */
} source;

static bool begins(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

/* The root begins a name, or a piece of it after a dot. */
static source source_of(const pl_safetensors *s, const pl_weights_part *part)
{
    source from = {.file = s, .part = part, .before = "", .found = !part};
    for (size_t i = 0; !from.found && i < pl_safetensors_count(s); i++) {
        const char *name = pl_safetensors_at(s, i)->name, *root = strstr(name, part->root);
        while (root && root > name && root[-1] != '.') root = strstr(root + 1, part->root);
        if (root) from = (source){s, part, name, (size_t)(root - name), true};
    }
    return from;
}

/* The model's name without the prefix of the part; NULL: the tensor is of another part. */
static const char *name_in_part(const source *from, const char *name)
{
    if (!from->part) return name;
    if (strncmp(name, from->before, from->before_bytes) != 0) return NULL;
    return begins(name + from->before_bytes, from->part->root) ? name + from->before_bytes : NULL;
}

static bool is_read(const source *from, const char *name)
{
    const char *mine = name_in_part(from, name);
    if (!from->part) return true;
    const char *const *unused = from->part->unused;
    for (; mine && unused && *unused; unused++)
        if (strcmp(mine + strlen(from->part->root), *unused) == 0) return false;
    return mine != NULL;
}

/* The entry's name in the file, without what comes before the root; NULL: it is of another part. */
static const char *name_of_entry(const source *from, const pl_st_entry *e)
{
    if (!from->part) return e->name;
    return begins(e->name, from->part->prefix) ? e->name + strlen(from->part->prefix) : NULL;
}

static const pl_st_entry *entry_of(const source *from, const pl_st_list *list, const char *name)
{
    const char *mine = name_in_part(from, name);
    for (size_t i = 0; mine && i < list->count; i++) {
        const char *its = name_of_entry(from, &list->entries[i]);
        if (its && strcmp(its, mine) == 0) return &list->entries[i];
    }
    return NULL;
}

static const pl_st_tensor *tensor_of(const source *from, const char *name)
{
    for (size_t i = 0; i < pl_safetensors_count(from->file); i++) {
        const pl_st_tensor *t = pl_safetensors_at(from->file, i);
        const char *mine = name_in_part(from, t->name);
        if (mine && strcmp(mine, name) == 0) return t;
    }
    return NULL;
}

size_t pl_weights_count_unread(const pl_safetensors *s, const pl_weights_part *part)
{
    const source from = source_of(s, part);
    size_t unread = 0;
    for (size_t i = 0; i < pl_safetensors_count(s); i++) unread += !is_read(&from, pl_safetensors_at(s, i)->name);
    return unread;
}

/* ---- the header ---- */

static bool is_int8(const pl_st_tensor *t) { return t->dtype == PL_ST_U8 && pl_ends_with(t->name, PL_INT8_PACKED); }
static bool is_binary(const pl_st_tensor *t) { return t->dtype == PL_ST_U8 && pl_ends_with(t->name, PL_BINARY_PACKED); }
static bool is_packed(const pl_st_tensor *t) { return is_int8(t) || is_binary(t); }

size_t pl_weights_count_packed(const pl_safetensors *s)
{
    size_t count = 0;
    for (size_t i = 0; i < pl_safetensors_count(s); i++) count += is_int8(pl_safetensors_at(s, i));
    return count;
}

static pl_status check_dtype(const pl_safetensors *s, const pl_st_tensor *t, pl_error *err)
{
    pl_real ignored;
    if (pl_st_dtype_real(t->dtype, &ignored) == 0 || is_packed(t)) return PL_OK;
    return pl_fail(err, PL_E_DATA,
                   "%s: tensor \"%.200s\" is %s there; F32, BF16 or F16 was expected: write it as one of these",
                   pl_safetensors_path(s), t->name, pl_st_dtype_name(t->dtype));
}

/* Rows, and numbers per row. */
static void as_matrix(uint32_t rank, const uint64_t *shape, uint64_t to[2])
{
    uint32_t first = 0;
    while (first + 1 < rank && shape[first] == 1) first++;
    to[0] = rank ? shape[first] : 1, to[1] = 1;
    for (uint32_t i = first + 1; i < rank; i++) to[1] *= shape[i];
}

static bool has_shape(const source *from, const pl_st_tensor *t, const pl_st_entry *e)
{
    uint64_t there[2], here[2];
    if (t->rank == e->rank && memcmp(t->shape, e->shape, e->rank * sizeof *e->shape) == 0) return true;
    if (!from->part || !from->part->is_larger) return false;
    as_matrix(t->rank, t->shape, there), as_matrix(e->rank, e->shape, here);
    return there[0] == here[0] && there[1] == here[1];
}

static pl_status match_entry(const source *from, const pl_st_entry *e, const char *name, pl_error *err)
{
    char want[256], have[256];
    const pl_st_tensor *t = tensor_of(from, name);
    pl_st_shape_print(e->dtype, e->rank, e->shape, want, sizeof want);
    if (!t)
        return pl_fail(err, PL_E_DATA,
                       "%s: has no tensor \"%.*s%.200s\"; the model takes %s: add it under that name, or give the "
                       "configuration of the model that these weights are of",
                       pl_safetensors_path(from->file), (int)from->before_bytes, from->before, name, want);
    PL_TRY(check_dtype(from->file, t, err));
    const bool alike = (t->dtype == PL_ST_U8) == (e->dtype == PL_ST_U8);
    if (alike && has_shape(from, t, e)) return PL_OK;
    pl_st_shape_print(t->dtype, t->rank, t->shape, have, sizeof have);
    return pl_fail(
        err, PL_E_DATA,
        "%s: tensor \"%.200s\" is %s there, but the model takes %s; give the configuration of the model that "
        "these weights are of",
        pl_safetensors_path(from->file), t->name, have, want);
}

static pl_status check_found(const source *from, pl_error *err)
{
    if (from->found) return PL_OK;
    return pl_fail(err, PL_E_DATA,
                   "%s: has no tensor whose name begins with \"%s\", alone or behind a dot; give a file of weights "
                   "that has the names of Hugging Face",
                   pl_safetensors_path(from->file), from->part->root);
}

pl_status pl_weights_match(const pl_safetensors *s, const pl_weights_part *part, const pl_st_list *list, pl_error *err)
{
    const source from = source_of(s, part);
    PL_TRY(check_found(&from, err));
    for (size_t i = 0; i < list->count; i++) {
        const char *name = name_of_entry(&from, &list->entries[i]);
        if (name) PL_TRY(match_entry(&from, &list->entries[i], name, err));
    }
    for (size_t i = 0; i < pl_safetensors_count(s); i++) {
        const char *name = pl_safetensors_at(s, i)->name;
        if (is_read(&from, name) && !entry_of(&from, list, name) && !(part && part->is_larger))
            return pl_fail(err, PL_E_DATA,
                           "%s: holds a tensor \"%.200s\", which the model has not got; leave it out, or give the "
                           "configuration of the model that these weights are of",
                           pl_safetensors_path(s), name);
    }
    return PL_OK;
}

/* ---- the whole file, piece by piece ---- */

/* Numbers first … of a tensor. */
typedef pl_status take(void *context, const pl_st_tensor *, uint64_t first, const void *piece, uint64_t count,
                       pl_error *);

static pl_status read_piece(const pl_safetensors *s, uint64_t at, uint64_t end, bool last, char *buffer,
                            uint64_t *bytes, pl_checksum *sum, pl_error *err)
{
    *bytes = end - at < PIECE_BYTES ? end - at : PIECE_BYTES;
    PL_TRY(pl_safetensors_stream(s, at, buffer, *bytes, last, err));
    pl_checksum_update(sum, buffer, *bytes);
    return PL_OK;
}

/* A file that is checked is about to be loaded, by this process or the next: it leaves the page cache after that. The
 * tensors cover all that follows the header: the reader of headers has seen to that. */
static pl_status go_through(const pl_safetensors *s, bool last, take *taker, void *context, uint64_t *checksum,
                            pl_error *err)
{
    _Alignas(8) char buffer[PIECE_BYTES];
    pl_checksum sum;
    uint64_t bytes;
    pl_checksum_init(&sum);
    const uint64_t data_at = pl_safetensors_data_at(s);
    for (uint64_t at = 0; at < data_at; at += bytes)
        PL_TRY(read_piece(s, at, data_at, last, buffer, &bytes, &sum, err));
    for (size_t i = 0; i < pl_safetensors_count(s); i++) {
        const pl_st_tensor *t = pl_safetensors_at(s, i);
        const uint64_t one = pl_st_dtype_bytes(t->dtype);
        for (uint64_t at = 0; at < t->bytes; at += bytes) {
            PL_TRY(read_piece(s, t->offset + at, t->offset + t->bytes, last, buffer, &bytes, &sum, err));
            PL_TRY(taker(context, t, at / one, buffer, bytes / one, err));
        }
    }
    *checksum = pl_checksum_value(&sum);
    return PL_OK;
}

typedef struct checking {
    source from;
    const pl_safetensors *file; /* one of its files */
    pl_real narrowest;
    pl_checksum data; /* of the tensors alone */
} checking;

static pl_status check_numbers(void *context, const pl_st_tensor *t, uint64_t first, const void *piece, uint64_t count,
                               pl_error *err)
{
    static const struct {
        double largest;
        const char *name;
    } limits[] = {
        [PL_REAL_F32] = {FLT_MAX, "f32"}, [PL_REAL_BF16] = {0x1.fep127, "bf16"}, [PL_REAL_F16] = {65504, "f16"}};
    checking *c = context;
    pl_real as = PL_REAL_F32;
    pl_checksum_update(&c->data, piece, count * pl_st_dtype_bytes(t->dtype));
    if (!is_read(&c->from, t->name) || is_packed(t)) return PL_OK;
    (void)pl_st_dtype_real(t->dtype, &as);
    for (uint64_t i = 0; i < count; i++) {
        const double x = (double)pl_real_get(as, piece, (int64_t)i);
        if (fabs(x) <= limits[c->narrowest].largest) continue;
        return pl_fail(err, PL_E_DATA,
                       "%s: tensor \"%.200s\", number %" PRIu64 " is %g; a finite one of at most %g either way was "
                       "expected, for the model holds weights in %s",
                       pl_safetensors_path(c->file), t->name, first + i, x, limits[c->narrowest].largest,
                       limits[c->narrowest].name);
    }
    return PL_OK;
}

static bool has_binary(const pl_safetensors *s)
{
    bool has = false;
    for (size_t i = 0; i < pl_safetensors_count(s); i++) has |= is_binary(pl_safetensors_at(s, i));
    return has;
}

/* The version of that format in the metadata; NULL: another format, or none. */
static const char *version_of(const pl_safetensors *s, const char *format)
{
    const char *there = pl_safetensors_metadata(s, "format");
    const size_t name = strlen(format) - 1; /* one digit */
    if (!there || strncmp(there, format, name) != 0) return NULL;
    return strcmp(there + name, "1") == 0 || strcmp(there + name, format + name) == 0 ? there + name : NULL;
}

/* Packed weights must be of a known version. */
static pl_status check_format(const pl_safetensors *s, const char **version, pl_error *err)
{
    const char *format = pl_safetensors_metadata(s, "format"), *int8 = version_of(s, PL_WEIGHTS_FORMAT);
    *version = int8 ? int8 : version_of(s, PL_BINARY_FORMAT);
    if (has_binary(s) && !*version)
        return pl_fail(err, PL_E_DATA,
                       "%s: holds weights of one bit, but its format is \"%.60s\" and not " PL_BINARY_FORMAT
                       "; make it "
                       "again (plimsoll export --format safetensors --packed)",
                       pl_safetensors_path(s), format ? format : "");
    if (pl_weights_count_packed(s) == 0 || int8) return PL_OK;
    return pl_fail(err, PL_E_DATA,
                   "%s: holds weights in 8 bits, but its format is \"%.60s\" and not " PL_WEIGHTS_FORMAT "; "
                   "make it again (plimsoll quantize)",
                   pl_safetensors_path(s), format ? format : "");
}

static pl_status other_data(const pl_safetensors *s, const char *found, const char *says, pl_error *err)
{
    return pl_fail(err, PL_E_DATA,
                   "%s: its tensors are not those that were written (checksum %s, and its metadata say %.40s); copy it "
                   "again, or make it again",
                   pl_safetensors_path(s), found, says);
}

/* A JSON key that occurs nowhere else: in a text its quotes would be escaped. */
#define DIGITS_BEHIND "\"" PL_WEIGHTS_CHECKSUM "\":\""

/* Where the digits of the checksum begin in the file. */
static pl_status find_digits(const pl_safetensors *s, char buffer[PIECE_BYTES], uint64_t *at, pl_error *err)
{
    const uint64_t end = pl_safetensors_data_at(s), key = sizeof DIGITS_BEHIND - 1;
    for (uint64_t begin = 0, bytes; begin + key < end; begin += bytes - key) {
        bytes = end - begin < PIECE_BYTES ? end - begin : PIECE_BYTES;
        PL_TRY(pl_safetensors_stream(s, begin, buffer, bytes, false, err));
        const char *found = memmem(buffer, bytes, DIGITS_BEHIND, key);
        if (found) return *at = begin + (uint64_t)(found - buffer) + key, PL_OK;
        if (begin + bytes == end) break;
    }
    return other_data(s, "is missing", "nothing", err);
}

/* Where the checksum covers the whole file, the sum begins with the header. */
static pl_status sum_header(const pl_safetensors *s, pl_checksum *sum, pl_error *err)
{
    char buffer[PIECE_BYTES];
    uint64_t digits = 0, bytes;
    const uint64_t end = pl_safetensors_data_at(s), count = PL_CHECKSUM_TEXT_BYTES - 1;
    PL_TRY(find_digits(s, buffer, &digits, err));
    for (uint64_t at = 0; at < end; at += bytes) {
        bytes = at == digits ? count : at < digits ? digits - at : end - at;
        if (bytes > PIECE_BYTES) bytes = PIECE_BYTES;
        PL_TRY(pl_safetensors_stream(s, at, buffer, bytes, false, err));
        pl_checksum_update(sum, at == digits ? PL_WEIGHTS_NO_CHECKSUM : buffer, bytes);
    }
    return PL_OK;
}

/* In packed weights any bits would be valid: only the checksum tells that one has flipped. */
static pl_status check_data(const pl_safetensors *s, uint64_t found, pl_error *err)
{
    char text[PL_CHECKSUM_TEXT_BYTES];
    const char *says = pl_safetensors_metadata(s, PL_WEIGHTS_CHECKSUM);
    if (!says || strcmp(says, pl_checksum_print(found, text)) == 0) return PL_OK;
    return other_data(s, text, says, err);
}

static pl_status check_one(checking *c, uint64_t *checksum, pl_error *err)
{
    const pl_safetensors *s = c->file;
    const char *version;
    PL_TRY(check_format(s, &version, err));
    for (size_t i = 0; i < pl_safetensors_count(s); i++)
        if (is_read(&c->from, pl_safetensors_at(s, i)->name)) PL_TRY(check_dtype(s, pl_safetensors_at(s, i), err));
    pl_checksum_init(&c->data);
    if (version && *version != '1') PL_TRY(sum_header(s, &c->data, err));
    PL_TRY(go_through(s, false, check_numbers, c, checksum, err));
    return check_data(s, pl_checksum_value(&c->data), err);
}

/* The checksum of several files is that of theirs, one after the other. */
static uint64_t join(size_t file, uint64_t before, uint64_t checksum)
{
    return file == 0 ? checksum : pl_checksum_of((uint64_t[]){before, checksum}, 2 * sizeof checksum);
}

pl_status pl_weights_check(const pl_safetensors *s, const pl_weights_part *part, pl_real narrowest, uint64_t *checksum,
                           pl_error *err)
{
    checking c = {.from = source_of(s, part), .narrowest = narrowest};
    uint64_t one;
    *checksum = 0;
    PL_TRY(check_found(&c.from, err));
    for (size_t i = 0; i < pl_safetensors_file_count(s); i++) {
        c.file = pl_safetensors_file(s, i);
        PL_TRY(check_one(&c, &one, err));
        *checksum = join(i, *checksum, one);
    }
    return PL_OK;
}

typedef struct loading {
    source from;
    const pl_safetensors *file; /* one of its files */
    const pl_st_list *to;
} loading;

static pl_status put_numbers(void *context, const pl_st_tensor *t, uint64_t first, const void *piece, uint64_t count,
                             pl_error *err)
{
    const loading *l = context;
    const pl_st_entry *to = is_read(&l->from, t->name) ? entry_of(&l->from, l->to, t->name) : NULL;
    if (!to) return PL_OK;
    char *place = (char *)to->data + first * pl_st_dtype_bytes(to->dtype);
    if (to->dtype == PL_ST_U8) return (void)memcpy(place, piece, count), PL_OK;
    const pl_tensor_source from = pl_safetensors_source(l->file, t);
    return pl_tensor_convert(&from, piece, (int64_t)count, pl_st_dtype_encoding(to->dtype), place, err);
}

pl_status pl_weights_load(const pl_safetensors *s, const pl_weights_part *part, const pl_st_list *list,
                          uint64_t checksum, pl_error *err)
{
    uint64_t found = 0, one;
    loading l = {.from = source_of(s, part), .to = list};
    for (size_t i = 0; i < pl_safetensors_file_count(s); i++) {
        l.file = pl_safetensors_file(s, i);
        PL_TRY(go_through(l.file, true, put_numbers, &l, &one, err));
        found = join(i, found, one);
    }
    if (found == checksum) return PL_OK;
    return pl_fail(err, PL_E_DATA, "%s: was changed while this command began; start it again", pl_safetensors_path(s));
}
