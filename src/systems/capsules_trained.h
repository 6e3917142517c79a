/* Within src/systems: weights for the encoder of arch capsules that a model of arch hybrid was trained with. */
#ifndef PL_SYSTEMS_CAPSULES_TRAINED_H
#define PL_SYSTEMS_CAPSULES_TRAINED_H

#include "config/config.h"
#include "store/weights.h"

/* *part: what of the file the encoder takes; NULL: it is no file of a hybrid's weights, by the names in it. PL_E_DATA
 * when there is something in front of that encoder (towers, fusion, adapter) that arch capsules has not got. */
pl_status pl_capsules_find_trained(const char *path, const pl_weights_part **part, pl_error *);

/* Do the keys that the model of such a file, with that xxh64, was trained with make the encoder of this config? Where
 * neither the file nor its checkpoint has them, nothing is compared. PL_E_DATA. */
pl_status pl_capsules_match_trained(const pl_config *, const char *path, uint64_t hash, pl_error *);

#endif
