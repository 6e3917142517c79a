#include "store/weights.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>

#include "store/checksum.h"

enum { PIECE_BYTES = 16 << 10 };

static int real_of(pl_st_dtype dtype, pl_real *real)
{
    if (dtype != PL_ST_F32 && dtype != PL_ST_BF16 && dtype != PL_ST_F16) return -1;
    *real = dtype == PL_ST_F32 ? PL_REAL_F32 : dtype == PL_ST_BF16 ? PL_REAL_BF16 : PL_REAL_F16;
    return 0;
}

/* ---- the header ---- */

static pl_status check_dtype(const pl_safetensors *s, const pl_st_tensor *t, pl_error *err)
{
    pl_real ignored;
    if (real_of(t->dtype, &ignored) == 0) return PL_OK;
    return pl_fail(err, PL_E_DATA,
                   "%s: tensor \"%.200s\" is %s there; F32, BF16 or F16 was expected: write it as one of these",
                   pl_safetensors_path(s), t->name, pl_st_dtype_name(t->dtype));
}

static const pl_st_entry *entry_of(const pl_st_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->entries[i].name, name) == 0) return &list->entries[i];
    return NULL;
}

static pl_status match_entry(const pl_safetensors *s, const pl_st_entry *e, pl_error *err)
{
    char want[256], have[256];
    const pl_st_tensor *t = pl_safetensors_find(s, e->name);
    pl_st_shape_print(e->dtype, e->rank, e->shape, want, sizeof want);
    if (!t)
        return pl_fail(err, PL_E_DATA,
                       "%s: has no tensor \"%.200s\"; the model takes %s: add it under that name, or give the "
                       "configuration of the model that these weights are of",
                       pl_safetensors_path(s), e->name, want);
    PL_TRY(check_dtype(s, t, err));
    if (t->rank == e->rank && memcmp(t->shape, e->shape, e->rank * sizeof *e->shape) == 0) return PL_OK;
    pl_st_shape_print(t->dtype, t->rank, t->shape, have, sizeof have);
    return pl_fail(
        err, PL_E_DATA,
        "%s: tensor \"%.200s\" is %s there, but the model takes %s; give the configuration of the model that "
        "these weights are of",
        pl_safetensors_path(s), e->name, have, want);
}

pl_status pl_weights_match(const pl_safetensors *s, const pl_st_list *list, pl_error *err)
{
    for (size_t i = 0; i < list->count; i++) PL_TRY(match_entry(s, &list->entries[i], err));
    for (size_t i = 0; i < pl_safetensors_count(s); i++)
        if (!entry_of(list, pl_safetensors_at(s, i)->name))
            return pl_fail(err, PL_E_DATA,
                           "%s: holds a tensor \"%.200s\", which the model has not got; leave it out, or give the "
                           "configuration of the model that these weights are of",
                           pl_safetensors_path(s), pl_safetensors_at(s, i)->name);
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

/* Who checks a file is about to load it, in this process or the next: it leaves the page cache after the loading.
 * The tensors cover all that lies behind the header: the reader of headers has seen to that. */
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
    const pl_safetensors *file;
    pl_real narrowest;
} checking;

static pl_status check_numbers(void *context, const pl_st_tensor *t, uint64_t first, const void *piece, uint64_t count,
                               pl_error *err)
{
    static const struct {
        double largest;
        const char *name;
    } limits[] = {
        [PL_REAL_F32] = {FLT_MAX, "f32"}, [PL_REAL_BF16] = {0x1.fep127, "bf16"}, [PL_REAL_F16] = {65504, "f16"}};
    const checking *c = context;
    pl_real as = PL_REAL_F32;
    (void)real_of(t->dtype, &as);
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

pl_status pl_weights_check(const pl_safetensors *s, pl_real narrowest, uint64_t *checksum, pl_error *err)
{
    checking c = {s, narrowest};
    for (size_t i = 0; i < pl_safetensors_count(s); i++) PL_TRY(check_dtype(s, pl_safetensors_at(s, i), err));
    return go_through(s, false, check_numbers, &c, checksum, err);
}

static pl_status put_numbers(void *context, const pl_st_tensor *t, uint64_t first, const void *piece, uint64_t count,
                             pl_error *err)
{
    const pl_st_entry *to = entry_of(context, t->name);
    pl_real from = PL_REAL_F32, as = PL_REAL_F32;
    (void)err;
    (void)real_of(t->dtype, &from), (void)real_of(to->dtype, &as);
    for (uint64_t i = 0; i < count; i++)
        pl_real_put(as, to->data, (int64_t)(first + i), pl_real_get(from, piece, (int64_t)i));
    return PL_OK;
}

pl_status pl_weights_load(const pl_safetensors *s, const pl_st_list *list, uint64_t checksum, pl_error *err)
{
    uint64_t found;
    PL_TRY(go_through(s, true, put_numbers, (void *)(uintptr_t)list, &found, err));
    if (found == checksum) return PL_OK;
    return pl_fail(err, PL_E_DATA, "%s: was changed while this command began; start it again", pl_safetensors_path(s));
}
