#include "store/hdf5_load.h"

pl_status pl_hdf5_load(const char *what, const char *instead, pl_module *m, pl_error *err)
{
    const pl_module_wanted wanted = {.file = PL_HDF5_FILE,
                                     .symbol = PL_HDF5_SYMBOL,
                                     .version = PL_HDF5_VERSION,
                                     .what = what,
                                     .install =
                                         "; install libhdf5 (Debian: libhdf5-dev, and build Plimsoll with it there)",
                                     .instead = instead};
    return pl_module_load(&wanted, m, err);
}
