/* Datasets of results as the HDF5 module knows them. */
#ifndef PL_STORE_BLOCK_HDF5_H
#define PL_STORE_BLOCK_HDF5_H

#include "store/block_layout.h"
#include "store/hdf5_load.h"

pl_hdf5_array pl_hdf5_array_of(const pl_block_dataset *);

#endif
