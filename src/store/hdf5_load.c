#include "base/module.h"
#include "store/hdf5_load.h"

pl_status pl_hdf5_load(const char *what, const char *instead, void **handle, const pl_hdf5_module **module,
                       pl_error *err)
{
    const pl_module_wanted wanted = {
        .file = PL_HDF5_FILE,
        .symbol = PL_HDF5_SYMBOL,
        .version = PL_HDF5_VERSION,
        .what = what,
        .install = "; install libhdf5 (Debian: libhdf5-dev, and build Plimsoll with it there)",
        .instead = instead};
    const void *functions;
    PL_TRY(pl_module_load(&wanted, handle, &functions, err));
    *module = functions;
    return PL_OK;
}

void pl_hdf5_unload(void *handle) { pl_module_unload(handle); }
