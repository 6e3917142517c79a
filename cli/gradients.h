#ifndef PL_CLI_GRADIENTS_H
#define PL_CLI_GRADIENTS_H

#include "plimsoll/status.h"

/* Prints name, type and shape of every tensor of a safetensors file, and the value of "loss". Asks for no memory. */
pl_status pl_list_tensors(const char *path, pl_error *);

#endif
