/* Samples from a user's own arrays, as a dataset for systems whose model takes images, two numbers and a target. */
#ifndef PL_SYSTEMS_ARRAYS_H
#define PL_SYSTEMS_ARRAYS_H

#include "systems/system.h"

extern const pl_dataset pl_dataset_arrays;

#endif
