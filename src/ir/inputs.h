/* The inputs that a program may have: rows of inputs.def. */
#ifndef PL_IR_INPUTS_H
#define PL_IR_INPUTS_H

#include "ir/graph.h"

typedef enum pl_input {
#define PL_INPUT_ROW(id, name, dtype) PL_INPUT_##id,
#include "ir/inputs.def"
#undef PL_INPUT_ROW
    PL_INPUT_COUNT
} pl_input;

const char *pl_input_name(pl_input);
pl_dtype pl_input_dtype(pl_input);
/* PL_NONE: the graph has no such input. */
pl_id pl_input_find(const pl_graph *, pl_input);

#endif
