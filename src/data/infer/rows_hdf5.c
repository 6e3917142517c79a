/* Items of a dataset of an HDF5 file, FILE:/DATASET. Its dimensions are as a .npy's (rows_npy.c); its numbers are made
 * ready as they are, or in the next larger type that is known. */
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "data/infer/staging.h"

enum { WHY_BYTES = 200, PIECE_BYTES = 1 << 20 };

static bool is_mine(const pl_infer_port *port, const char *head, size_t bytes)
{
    (void)port;
    return bytes >= 8 && memcmp(head, "\x89HDF\r\n\x1a\n", 8) == 0;
}

/* ---- what it is ---- */

/* By the names that the module has for them (store/hdf5_module.h), which are Plimsoll's. */
static const struct {
    const char *is;
    pl_npy_number as;
} numbers[] = {{"f64", PL_NPY_F64}, {"f32", PL_NPY_F32}, {"f16", PL_NPY_F16}, {"u8", PL_NPY_U8},   {"i8", PL_NPY_I8},
               {"u16", PL_NPY_U16}, {"i16", PL_NPY_I16}, {"u32", PL_NPY_U32}, {"i32", PL_NPY_I32}, {"i64", PL_NPY_I64}};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

static pl_status find_number(const pl_rows *r, const pl_hdf5_seen *seen, pl_npy_number *as, pl_error *err)
{
    for (int i = 0; i < NUMBERS && seen->is_there && seen->is_number; i++)
        if (strcmp(numbers[i].is, seen->dtype) == 0) return *as = numbers[i].as, PL_OK;
    if (!seen->is_there)
        return pl_fail(err, PL_E_DATA,
                       "%.300s: the file has no such dataset, or is damaged; h5ls -r lists those that it has", r->path);
    return pl_fail(err, PL_E_DATA, "%.300s: is no dataset of whole or real numbers of at most 64 bits", r->path);
}

static pl_status find_array(const pl_rows *r, const pl_hdf5_seen *seen, pl_npy_array *a, pl_error *err)
{
    pl_rows fitted = *r;
    *a = (pl_npy_array){.rank = seen->rank};
    PL_TRY(find_number(r, seen, &a->number, err));
    if (seen->rank > PL_NPY_DIMS_MAX || seen->rank > PL_HDF5_RANK_MAX)
        return pl_fail(err, PL_E_DATA, "%.300s: has more than 8 dimensions", r->path);
    for (uint32_t i = 0; i < seen->rank; i++) a->dim[i] = seen->shape[i];
    return pl_rows_fit_array(&fitted, a, err);
}

/* ---- reading ---- */

static pl_status refuse(const char *name, int result, const char *why, const char *hint, pl_error *err)
{
    if (result == PL_HDF5_NO_MEMORY) return pl_fail(err, PL_E_NOMEM, "%.300s: no memory to read it: %s", name, why);
    return pl_fail(err, PL_E_DATA, "%.300s: cannot be read: %s; the file %s", name, why, hint);
}

typedef struct reading {
    pl_stager *s;
    const pl_rows *r;
    const pl_hdf5_module *hdf5;
    void *file;
    const char *dataset; /* without the slash before it */
    pl_npy_array array;
    uint64_t row_bytes; /* of the first dimension */
} reading;

static const char *dtype_of(pl_npy_number n)
{
    int i = 0;
    while (numbers[i].as != n) i++;
    return numbers[i].is;
}

static pl_status measure(reading *d, uint64_t *bytes, pl_error *err)
{
    const pl_npy_array *a = &d->array;
    bool fails = false;
    d->row_bytes = pl_npy_number_bytes(a->number);
    for (uint32_t i = 1; i < a->rank; i++) fails = fails || pl_size_mul(d->row_bytes, a->dim[i], &d->row_bytes);
    if (!fails && !pl_size_mul(d->row_bytes, a->dim[0], bytes)) return PL_OK;
    return pl_fail(err, PL_E_DATA, "%.300s: its shape multiplies to more than a file holds", d->r->path);
}

static pl_status check_missing(const reading *d, const pl_hdf5_missing *m, pl_error *err)
{
    if (m->unwritten && (m->filled == 0 || m->unwritten_row <= m->filled_row))
        return pl_fail(err, PL_E_DATA, "%.300s: item %" PRIu64 " was never written; bring the file whole", d->r->path,
                       m->unwritten_row);
    if (m->filled == 0) return PL_OK;
    return pl_fail(err, PL_E_DATA,
                   "%.300s: item %" PRIu64
                   " has its _FillValue, which says that a number is missing; leave that item out",
                   d->r->path, m->filled_row);
}

static pl_status copy_rows(reading *d, void *piece, uint64_t at_once, pl_error *err)
{
    const pl_npy_array *a = &d->array;
    uint64_t first[PL_NPY_DIMS_MAX] = {0}, count[PL_NPY_DIMS_MAX];
    char why[WHY_BYTES] = "";
    memcpy(count, a->dim, sizeof count);
    for (; first[0] < a->dim[0]; first[0] += count[0]) {
        count[0] = a->dim[0] - first[0] < at_once ? a->dim[0] - first[0] : at_once;
        pl_hdf5_missing missing;
        const int result =
            d->hdf5->read(d->file, d->dataset, first, count, dtype_of(a->number), piece, &missing, why, sizeof why);
        if (result) return refuse(d->r->path, result, why, "is damaged, or made with a filter that is not there", err);
        PL_TRY(check_missing(d, &missing, err));
        PL_TRY(pl_stager_put(d->s, piece, count[0] * d->row_bytes, err));
    }
    return PL_OK;
}

static pl_status copy(reading *d, pl_error *err)
{
    uint64_t bytes = 0;
    PL_TRY(measure(d, &bytes, err));
    PL_TRY(pl_stager_reserve(d->s, d->r->path, bytes, err));
    const uint64_t at_once = d->row_bytes < PIECE_BYTES ? PIECE_BYTES / d->row_bytes : 1;
    void *piece = pl_alloc(at_once, d->row_bytes);
    if (!piece) return pl_fail(err, PL_E_NOMEM, "%.300s: no memory to read it", d->r->path);
    pl_status status = copy_rows(d, piece, at_once, err);
    pl_free(piece);
    return status;
}

static pl_status look(reading *d, pl_error *err)
{
    pl_hdf5_seen seen;
    char why[WHY_BYTES] = "";
    const int result = d->hdf5->look(d->file, d->dataset, &seen, why, sizeof why);
    if (result) return refuse(d->r->path, result, why, "is damaged", err);
    if (seen.lack[0]) return pl_fail(err, PL_E_DATA, "%.300s: %s", d->r->path, seen.lack);
    return find_array(d->r, &seen, &d->array, err);
}

static pl_status load(pl_stager *s, pl_error *err)
{
    if (s->hdf5.handle) return PL_OK;
    return pl_hdf5_load("reading HDF5", ", or give the numbers as an array in .npy", &s->hdf5, err);
}

static pl_status stage(pl_stager *s, const pl_rows *r, pl_error *err)
{
    char path[PL_FILE_PATH_MAX], why[WHY_BYTES] = "";
    reading d = {.s = s, .r = r};
    PL_TRY(pl_rows_split(r->path, path, &d.dataset, err));
    if (!d.dataset || !d.dataset[1])
        return pl_fail(err, PL_E_DATA, "%.300s: is an HDF5 file; name a dataset of it, as %s=%.300s:/DATASET", path,
                       r->port->name, path);
    d.dataset++;
    PL_TRY(load(s, err));
    d.hdf5 = s->hdf5.functions;
    const int result = d.hdf5->open(path, &d.file, why, sizeof why);
    if (result) return refuse(path, result, why, "is no HDF5, is damaged, or is being written", err);
    pl_status status = look(&d, err);
    if (status == PL_OK) status = copy(&d, err);
    d.hdf5->close(d.file);
    s->array = d.array;
    return status;
}

const pl_rows_kind pl_rows_hdf5 = {
    .what = "datasets of HDF5 files", .is_mine = is_mine, .stage = stage, .ends = {"h5", "hdf5", "he5", "mat"}};
