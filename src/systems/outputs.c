/* Compares the outputs of two forms of a model for the same items: arrays of infer (PREFIX.NAME.npy). */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/difference.h"
#include "base/file.h"
#include "data/infer/npy.h"
#include "systems/system.h"

/* An array that is read row by row. */
typedef struct array {
    char path[PL_FILE_PATH_MAX];
    int fd;
    pl_npy_array of;
    uint64_t rows, width;
    float *row;
} array;

static void close_array(array *a)
{
    if (a->fd >= 0) close(a->fd);
    pl_free(a->row);
}

static pl_status open_array(const char *prefix, const char *name, array *a, pl_error *err)
{
    uint64_t bytes;
    a->fd = -1;
    a->row = NULL;
    const int n = snprintf(a->path, sizeof a->path, "%s.%s.npy", prefix, name);
    if (n < 0 || (size_t)n >= sizeof a->path) return pl_fail(err, PL_E_USAGE, "%.300s: the path is too long", prefix);
    PL_TRY(pl_npy_look(a->path, &a->of, err));
    if (a->of.number != PL_NPY_F32 || a->of.rank == 0)
        return pl_fail(err, PL_E_DATA, "%s: holds no results of infer", a->path);
    a->width = a->of.dim[a->of.rank - 1];
    a->rows = 1;
    for (uint32_t i = 0; i + 1 < a->of.rank; i++) a->rows *= a->of.dim[i];
    PL_TRY(pl_file_open(a->path, &a->fd, &bytes, err));
    a->row = pl_alloc(a->width + 1, sizeof *a->row);
    return a->row ? PL_OK : pl_fail(err, PL_E_NOMEM, "no memory for a row of %s", name);
}

static pl_status read_row(array *a, uint64_t row, pl_error *err)
{
    const uint64_t bytes = a->width * sizeof *a->row;
    return pl_file_read_at(a->fd, a->path, a->of.at + row * bytes, a->row, (size_t)bytes, err);
}

static bool same_shape(const array *a, const array *b)
{
    return a->of.rank == b->of.rank && memcmp(a->of.dim, b->of.dim, a->of.rank * sizeof *a->of.dim) == 0;
}

static pl_status compare_rows(array *a, array *wide, pl_output_difference *d, pl_error *err)
{
    pl_difference found = {0};
    for (uint64_t r = 0; r < a->rows; r++) {
        PL_TRY(read_row(a, r, err));
        PL_TRY(read_row(wide, r, err));
        pl_difference_add_row(&found, a->width, PL_REAL_F32, a->row, wide->row);
    }
    d->difference = pl_difference_share(&found);
    d->mean_cosine = pl_difference_mean_cosine(&found);
    d->least_cosine = pl_difference_least_cosine(&found);
    d->has_cosine = found.rows > 0;
    return PL_OK;
}

static pl_status compare(const char *prefix, const char *wide, const char *name, pl_output_difference *d, pl_error *err)
{
    array a, b = {.fd = -1};
    *d = (pl_output_difference){.name = name};
    pl_status status = open_array(prefix, name, &a, err);
    if (status == PL_OK) status = open_array(wide, name, &b, err);
    if (status == PL_OK && !same_shape(&a, &b))
        status = pl_fail(err, PL_E_DATA, "%s: has another shape than %s", a.path, b.path);
    if (status == PL_OK) status = compare_rows(&a, &b, d, err);
    close_array(&a);
    close_array(&b);
    return status;
}

static bool is_there(const char *prefix, const char *name)
{
    char path[PL_FILE_PATH_MAX];
    const int n = snprintf(path, sizeof path, "%s.%s.npy", prefix, name);
    return n > 0 && (size_t)n < sizeof path && access(path, F_OK) == 0;
}

pl_status pl_system_compare_outputs(const pl_config *c, const char *prefix, const char *wide,
                                    pl_output_difference found[PL_OUTPUTS_MAX], size_t *count, pl_error *err)
{
    const pl_face *face = &pl_model_family(c)->face;
    *count = 0;
    for (int k = 0; k < PL_OUTPUTS_MAX; k++) {
        const char *name = k < PL_FACE_STORED_MAX ? face->stored[k].name : face->scored[k - PL_FACE_STORED_MAX].name;
        if (!name || !is_there(prefix, name)) continue;
        PL_TRY(compare(prefix, wide, name, &found[*count], err));
        ++*count;
    }
    return PL_OK;
}
