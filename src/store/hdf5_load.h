/* The module that makes and reads HDF5 files, loaded for as long as it is needed. */
#ifndef PL_STORE_HDF5_LOAD_H
#define PL_STORE_HDF5_LOAD_H

#include "base/error.h"
#include "base/module.h"
#include "store/hdf5_module.h"

/* PL_E_UNSUPPORTED with the package that is missing: "WHAT needs …; install …INSTEAD". */
pl_status pl_hdf5_load(const char *what, const char *instead, pl_module *, pl_error *);
#define PL_HDF5_OF_RESULTS "the HDF5 form", ", or choose the form native or npy"

#endif
