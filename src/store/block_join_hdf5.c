/* Parts in HDF5 form as one file of it: virtual datasets name the parts, nothing is copied. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/remove.h"
#include "store/block_hdf5.h"
#include "store/block_join.h"

/* From the folder of the joined file where the part lies in it or below, else from the root. */
static pl_status name_part(pl_join_part *p, const char *path, pl_error *err)
{
    char from[PL_FILE_PATH_MAX], to[PL_FILE_PATH_MAX];
    PL_TRY(pl_path_absolute(from, sizeof from, path, err));
    PL_TRY(pl_path_absolute(to, sizeof to, p->path, err));
    size_t folder = (size_t)(strrchr(from, '/') - from) + 1;
    p->name = pl_strdup(strncmp(from, to, folder) == 0 ? to + folder : to);
    return p->name ? PL_OK : pl_fail(err, PL_E_NOMEM, "%s: no memory for its name", p->path);
}

static void list_arrays(const pl_joining *j, pl_hdf5_joined *array)
{
    const pl_block_layout *l = pl_block_reader_layout(j->like);
    for (uint32_t i = 0; i < l->datasets; i++) {
        const pl_block_dataset *d = &l->dataset[i];
        array[i] = (pl_hdf5_joined){pl_hdf5_array_of(d), d->kind != PL_BLOCK_NO_KIND};
        if (array[i].is_split) array[i].of.shape[0] = l->whole;
    }
}

static pl_status sync_and_name(const char *temporary, const char *path, pl_error *err)
{
    int fd = pl_io_open(temporary, O_RDONLY), rc = fd < 0 ? -1 : pl_io_sync(fd), error = errno;
    if (fd >= 0) close(fd);
    if (rc == 0) return pl_block_give_name(temporary, path, err);
    return pl_fail(err, PL_E_STORAGE, "%s: could not be completed: %s%s", path, strerror(error), pl_io_hint(error));
}

/* In our own words where there can be none: libhdf5 tells of its own functions. */
static pl_status check_place(const char *temporary, const char *path, pl_error *err)
{
    int fd = pl_io_open(temporary, O_CREAT | O_RDWR | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0) return close(fd), PL_OK;
    return pl_fail(err, PL_E_STORAGE, "%s: cannot be created: %s%s", path, strerror(errno), pl_io_hint(errno));
}

static pl_status write_by(const pl_joining *j, const pl_hdf5_joined *array, const pl_hdf5_module *module, pl_error *err)
{
    char temporary[PL_FILE_TEMPORARY_MAX], why[256];
    PL_TRY(check_place(pl_file_temporary(j->path, "", temporary), j->path, err));
    pl_hdf5_part *list = pl_alloc(j->count, sizeof *list);
    if (!list) return pl_fail(err, PL_E_NOMEM, "%s: no memory for the list of its parts", j->path);
    for (size_t i = 0; i < j->count; i++) list[i] = (pl_hdf5_part){j->part[i].name, j->part[i].first, j->part[i].count};
    int rc = module->join(temporary, array, pl_block_reader_layout(j->like)->datasets, list, j->count, j->part[0].path,
                          why, sizeof why);
    pl_free(list);
    pl_status status = rc == 0 ? sync_and_name(temporary, j->path, err)
                               : pl_fail(err, PL_E_STORAGE, "%s: cannot be made: %s", j->path, why);
    if (status != PL_OK) (void)pl_remove_file(temporary, NULL);
    return status;
}

pl_status pl_block_join_hdf5(const pl_joining *j, pl_error *err)
{
    pl_module hdf5;
    pl_hdf5_joined array[PL_BLOCK_DATASETS_MAX];
    if (access(j->path, F_OK) == 0)
        return pl_fail(err, PL_E_STORAGE, "%s: is there already; remove it or choose another name", j->path);
    for (size_t i = 0; i < j->count; i++) PL_TRY(name_part(&j->part[i], j->path, err));
    list_arrays(j, array);
    PL_TRY(pl_hdf5_load(PL_HDF5_OF_RESULTS, &hdf5, err));
    pl_status status = write_by(j, array, hdf5.functions, err);
    pl_module_unload(&hdf5);
    return status;
}
