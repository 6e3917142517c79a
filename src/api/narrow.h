/* run.precision: a trained model used, or written, in 16 bits. */
#ifndef PL_API_NARROW_H
#define PL_API_NARROW_H

#include "config/config.h"
#include "ir/graph.h"

/* F32: it is not. */
pl_dtype pl_narrow_dtype(const pl_config *);
const char *pl_narrow_word(const pl_config *);
/* PL_E_CONFIG where the config is narrow and the graph has weights in fewer bits, for those multiply numbers in f32. */
pl_status pl_narrow_check(const pl_config *, const pl_graph *, pl_error *);
/* Its weights as a command that uses the model stores them, for who writes them. */
pl_status pl_narrow_weights(pl_graph *, pl_dtype, pl_error *);

#endif
