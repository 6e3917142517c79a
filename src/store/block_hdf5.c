/* The HDF5 form: the module that links libhdf5 makes the file, and is unloaded again. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "store/block_hdf5.h"
#include "store/block_index.h"

#define INDEX_NAME "plimsoll/index"

/* ---- making a file ---- */

pl_hdf5_array pl_hdf5_array_of(const pl_block_dataset *d)
{
    pl_hdf5_array a = {.name = d->name, .dtype = pl_dtype_name(d->dtype), .rank = d->rank - d->is_text};
    for (uint32_t i = 0; i < d->rank; i++) a.shape[i] = d->shape[i];
    if (d->is_text) a.text_bytes = d->shape[d->rank - 1];
    return a;
}

/* The index comes first, so that it lies where it is looked for. */
static void list_arrays(const pl_block_index *ix, const pl_block_layout *l, pl_hdf5_array *array)
{
    array[0] = (pl_hdf5_array){.name = INDEX_NAME, .dtype = "u8", .rank = 1, .shape = {ix->head.index_bytes}};
    for (uint32_t i = 0; i < l->datasets; i++) array[i + 1] = pl_hdf5_array_of(&l->dataset[i]);
}

static pl_status take_places(pl_block_index *ix, const pl_block_layout *l, const pl_hdf5_array *array, pl_error *err)
{
    const pl_block_use none = {0};
    pl_block_sizes sizes;
    struct stat st;
    ix->head.at = array[0].offset;
    for (uint32_t i = 0; i < l->datasets; i++) ix->record[i].offset = array[i + 1].offset;
    if (fstat(ix->fd, &st) != 0)
        return pl_fail(err, PL_E_STORAGE, "%s: cannot be examined: %s", ix->path, strerror(errno));
    ix->head.file_bytes = (uint64_t)st.st_size;
    PL_TRY(pl_block_file_measure(l, PL_BLOCK_HDF5, &none, &sizes, err));
    if (ix->head.at % PL_BLOCK_ALIGN == 0 && ix->head.at < PL_BLOCK_SEARCH_BYTES &&
        ix->head.file_bytes <= sizes.disk_bytes)
        return PL_OK;
    return pl_fail(err, PL_E_INTERNAL,
                   "%s: libhdf5 put the index at byte %" PRIu64 " of %" PRIu64
                   ", which was not expected; choose the form native or npy",
                   ix->path, ix->head.at, ix->head.file_bytes);
}

static pl_status create_by(const pl_hdf5_module *module, pl_block_index *ix, const pl_block_layout *l, const char *path,
                           pl_error *err)
{
    pl_hdf5_array array[PL_BLOCK_DATASETS_MAX + 1];
    pl_hdf5_attribute attribute[PL_BLOCK_ATTRIBUTES_MAX];
    char why[256];
    list_arrays(ix, l, array);
    for (uint32_t i = 0; i < l->attributes; i++) {
        const pl_block_attribute *a = &l->attribute[i];
        attribute[i] = (pl_hdf5_attribute){a->group, a->name, a->text, a->number};
    }
    if (module->create(path, array, l->datasets + 1, attribute, l->attributes, why, sizeof why) == 0)
        return take_places(ix, l, array, err);
    return pl_fail(err, PL_E_STORAGE, "%s: cannot be made as an HDF5 file: %s", ix->path, why);
}

pl_status pl_block_hdf5_create(pl_block_index *ix, const pl_block_layout *l, const char *path, pl_error *err)
{
    pl_module hdf5;
    PL_TRY(pl_hdf5_load(PL_HDF5_OF_RESULTS, &hdf5, err));
    pl_status status = create_by(hdf5.functions, ix, l, path, err);
    pl_module_unload(&hdf5);
    return status;
}
