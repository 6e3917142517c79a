/* Within src/systems: weights for the encoder of arch capsules that a model of arch hybrid was trained with. */
#ifndef PL_SYSTEMS_CAPSULES_TRAINED_H
#define PL_SYSTEMS_CAPSULES_TRAINED_H

#include "config/config.h"
#include "store/weights.h"

/* *part: the part of the file for the encoder; NULL: by its names, not a file of a hybrid's weights. PL_E_DATA when
 * that encoder comes after something (towers, fusion, adapter) that arch capsules lacks. */
pl_status pl_capsules_find_trained(const char *path, const pl_weights_part **part, pl_error *);

/* Do the keys with which the model of such a file, with that xxh64, was trained match the encoder of this config? Where
 * neither the file nor its checkpoint has them, nothing is compared. PL_E_DATA. */
pl_status pl_capsules_match_trained(const pl_config *, const char *path, uint64_t hash, pl_error *);

#endif
