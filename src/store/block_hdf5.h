/* The module that makes HDF5 files, loaded for as long as it is needed. */
#ifndef PL_STORE_BLOCK_HDF5_H
#define PL_STORE_BLOCK_HDF5_H

#include "store/block_layout.h"
#include "store/hdf5_module.h"

/* PL_E_UNSUPPORTED with the package that is missing. */
pl_status pl_hdf5_load(void **handle, const pl_hdf5_module **, pl_error *);
void pl_hdf5_unload(void *handle);

pl_hdf5_array pl_hdf5_array_of(const pl_block_dataset *);

#endif
