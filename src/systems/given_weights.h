/* A file of weights that a config names, checked before a plan is made. */
#ifndef PL_SYSTEMS_GIVEN_WEIGHTS_H
#define PL_SYSTEMS_GIVEN_WEIGHTS_H

#include "config/config.h"
#include "store/weights.h"

typedef struct pl_given_weights {
    uint64_t hash;         /* pl_weights_check */
    uint64_t read, unread; /* tensors */
    uint64_t packed;       /* of those, weights in 8 bits (store/weights.h) */
} pl_given_weights;

/* Its numbers are checked, too: one that is not finite, or too large for the narrowest type that it may be stored as,
 * would spoil all results. part: NULL, or a constant. PL_E_DATA. */
pl_status pl_given_weights_check(const char *path, const pl_weights_part *part, pl_real narrowest, pl_given_weights *,
                                 pl_error *);

/* A file that Plimsoll wrote says whose weights it has ("plimsoll.config" in its metadata): this config's model? Of any
 * other file, only shapes are compared. PL_E_DATA. */
pl_status pl_given_weights_match(const pl_config *, const char *path, pl_error *);
/* The config, in YAML, of the file's model: from its metadata, or from the checkpoint in whose folder it lies, if it is
 * the file that was saved there (else PL_E_DATA). *text is for pl_free; NULL: nothing has it. */
pl_status pl_given_weights_config(const char *path, uint64_t hash, char **text, pl_error *);
/* Is the model this config's? `path` is the file. PL_E_DATA. */
pl_status pl_given_weights_match_text(const pl_config *, const char *path, const char *text, pl_error *);

#endif
