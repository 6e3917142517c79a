#include "data/arrays/arrays_file.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "data/infer/staging.h"

static const char magic[8] = {'P', 'L', 'M', 'A', 'R', 'R', 'A', 'Y'};
enum { VERSION = 1 };

const char *pl_arrays_key(int which)
{
    static const char *const keys[PL_ARRAYS_FILES] = {"arrays.images", "arrays.angles", "arrays.target"};
    return keys[which];
}

pl_infer_port pl_arrays_port(int which, uint32_t window)
{
    static const pl_infer_port ports[PL_ARRAYS_FILES] = {
        {.name = "arrays.images",
         .dtype = PL_DTYPE_F32,
         .bytes = true,
         .rank = 3,
         .dim = {1, PL_INFER_DIM_ANY, PL_INFER_DIM_ANY},
         .dim_key = "temporal_frames"},
        {.name = "arrays.angles", .dtype = PL_DTYPE_F32, .rank = 1, .dim = {PL_ARRAYS_ANGLE_COUNT}},
        {.name = "arrays.target", .dtype = PL_DTYPE_F32, .rank = 1, .dim = {1}}};
    pl_infer_port p = ports[which];
    if (which == PL_ARRAYS_IMAGES) p.dim[0] = window;
    return p;
}

uint64_t pl_arrays_label_bytes(uint64_t count)
{
    return count * ((1 + PL_ARRAYS_ANGLE_COUNT) * sizeof(float) + sizeof(uint64_t));
}

uint64_t pl_arrays_dataset_hash(const char *dataset)
{
    const uint64_t hash = dataset ? XXH64(dataset, strlen(dataset), 0) : 0;
    return dataset && !hash ? 1 : hash;
}

static uint64_t sum_of(const pl_arrays_record *r) { return XXH64(r, offsetof(pl_arrays_record, checksum), 0); }

static uint64_t sum_of_source(const pl_arrays_source *s) { return XXH64(s, offsetof(pl_arrays_source, checksum), 0); }

void pl_arrays_seal(pl_arrays_record *r)
{
    memcpy(r->magic, magic, sizeof magic);
    r->version = VERSION;
    r->checksum = sum_of(r);
    for (int k = 0; k < PL_ARRAYS_FILES; k++) r->source[k].checksum = sum_of_source(&r->source[k]);
}

void pl_arrays_put_source(uint8_t *to, const pl_origin *o)
{
    pl_arrays_source s = {.origin = *o};
    s.checksum = sum_of_source(&s);
    memcpy(to, &s, sizeof s);
}

static bool is_whole(const pl_arrays_record *r, uint64_t bytes)
{
    bool whole = memcmp(r->magic, magic, sizeof magic) == 0 && r->version == VERSION && r->checksum == sum_of(r);
    for (int k = 0; k < PL_ARRAYS_FILES; k++) whole = whole && r->source[k].checksum == sum_of_source(&r->source[k]);
    return whole && r->count <= bytes && r->labels_at <= bytes &&
           r->labels_at + pl_arrays_label_bytes(r->count) + sizeof *r == bytes;
}

pl_status pl_arrays_open(const char *path, int *fd, pl_arrays_record *r, pl_error *err)
{
    uint64_t bytes;
    *fd = -1;
    PL_TRY(pl_file_open(path, fd, &bytes, err));
    if (bytes >= sizeof *r) PL_TRY(pl_file_read_at(*fd, path, bytes - sizeof *r, r, sizeof *r, err));
    if (bytes >= sizeof *r && is_whole(r, bytes)) return PL_OK;
    return pl_fail(err, PL_E_DATA, "%.350s: is damaged, or no file of arrays; delete it, and it is made again", path);
}

/* The port leaves its last dimensions open. */
static void take_dims(const pl_npy_array *a, pl_infer_port *p)
{
    for (uint32_t i = 1; i <= p->rank && i <= a->rank; i++)
        if (p->dim[p->rank - i] == PL_INFER_DIM_ANY) p->dim[p->rank - i] = a->dim[a->rank - i];
}

pl_status pl_arrays_open_rows(int fd, int which, const char *name, pl_infer_port *port, pl_rows *rows, pl_error *err)
{
    pl_staged staged;
    *rows = (pl_rows){.path = name};
    PL_TRY(pl_staging_entry(fd, (uint64_t)which, &staged, err));
    if (staged.is_staged)
        PL_TRY(pl_rows_open_staged(name, port, fd, &staged.array, staged.bytes, rows, err));
    else
        PL_TRY(pl_rows_open(name, port, rows, err));
    if (!staged.is_staged) PL_TRY(pl_npy_look(name, &staged.array, err));
    take_dims(&staged.array, port);
    return pl_rows_fit_array(rows, &staged.array, err); /* with the dimensions that it now has */
}
