/* Standard input in place of a text: kept as a file in the folder of a run. Private to this folder. */
#ifndef PL_SYSTEMS_INPUT_H
#define PL_SYSTEMS_INPUT_H

#include "systems/preparation.h"

#define PL_INPUT_FILE "stdin.txt"

/* Reads it to its end, into a file of an existing folder. key: for sentences. PL_E_USAGE: it is a terminal; PL_E_DATA:
 * it is empty. */
pl_status pl_input_read(pl_preparation *, const char *key, const char *path, pl_error *);
/* Checks that standard input, unless empty, is the text that was kept at this path. PL_E_CONFIG. */
pl_status pl_input_check(const char *path, pl_error *);

#endif
