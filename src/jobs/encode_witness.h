/* What another framework needs to repeat the encoding of a text, and what came out here, as files in a folder:
 * weights.safetensors, and as .npy page u8 [H,W], sketches f16 [K,D], checksums f16 [K,R], children f16 [K,m,D]. An
 * earlier witness is replaced; what is there and is none (the weights tell) is refused, PL_E_STORAGE. */
#ifndef PL_JOBS_ENCODE_WITNESS_H
#define PL_JOBS_ENCODE_WITNESS_H

#include "data/pages/pages_data.h"
#include "run/session.h"

/* The weights. The heap is used. */
pl_status pl_encode_witness_open(const pl_session *, const char *folder, pl_error *);
/* Row 0 of what the program stores, and of its pages. */
pl_status pl_encode_witness_put(const pl_session *, const char *folder, const pl_store_call *, pl_error *);

#endif
