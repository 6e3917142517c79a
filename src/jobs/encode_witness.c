#include "jobs/encode_witness.h"

#include <string.h>
#include <sys/stat.h>

#include "jobs/witness.h"
#include "run/session_impl.h"
#include "store/folder.h"
#include "store/npy.h"

static const char by[] = "plimsoll encode --witness";
static const char *const names[] = {"page.npy", "sketches.npy", "checksums.npy", "children.npy", NULL};
enum { PAGE, FIRST_STORED };

/* The model's own file must not be overwritten: its weights may be wider there. */
static pl_status check_weights(const pl_session *s, const char *folder, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    struct stat written, read;
    if (!s->o.data->weights) return PL_OK;
    PL_TRY(pl_path_join(path, sizeof path, folder, PL_WITNESS_WEIGHTS, err));
    if (stat(path, &written) != 0 || stat(s->o.data->weights, &read) != 0) return PL_OK;
    if (written.st_dev != read.st_dev || written.st_ino != read.st_ino) return PL_OK;
    return pl_fail(err, PL_E_USAGE, "%s: the weights are read from this file; choose another folder", path);
}

pl_status pl_encode_witness_open(const pl_session *s, const char *folder, pl_error *err)
{
    PL_TRY(pl_folder_create(folder, err));
    PL_TRY(pl_witness_check_folder(folder, by, names, err));
    PL_TRY(check_weights(s, folder, err));
    return pl_witness_write_weights(s, folder, by, err);
}

static pl_status write_array(const char *folder, int file, pl_dtype dtype, uint32_t rank, const uint64_t *shape,
                             const void *data, pl_error *err)
{
    char path[PL_FILE_PATH_MAX], header[PL_NPY_HEADER_MAX];
    pl_file_writer writer;
    uint64_t bytes = pl_dtype_bytes(dtype);
    for (uint32_t i = 0; i < rank; i++) bytes *= shape[i];
    PL_TRY(pl_path_join(path, sizeof path, folder, names[file], err));
    PL_TRY(pl_file_create(&writer, path, err));
    pl_status status = pl_file_write(&writer, header, pl_npy_header(dtype, 0, rank, shape, header), err);
    if (status == PL_OK) status = pl_file_write(&writer, data, bytes, err);
    if (status == PL_OK) status = pl_file_commit(&writer, err);
    pl_file_abandon(&writer);
    return status;
}

pl_status pl_encode_witness_put(const pl_session *s, const char *folder, const pl_store_call *call, pl_error *err)
{
    const pl_pages_data *d = pl_pages_data_of(s->o.data);
    const uint64_t side = d->setup.image_size;
    for (uint32_t k = 0; k < PL_PAGES_REMARKS; k++) {
        const pl_block_dataset *set = &d->dataset[k];
        PL_TRY(write_array(folder, FIRST_STORED + (int)k, set->dtype, set->rank - 1, set->shape + 1, call->port[k].at,
                           err));
    }
    return write_array(folder, PAGE, PL_DTYPE_U8, 2, (uint64_t[]){side, side}, call->port[call->ports - 1].at, err);
}
