/* What a command is: the rows of plimsoll/commands.def. */
#ifndef PL_PLAN_COMMAND_H
#define PL_PLAN_COMMAND_H

#include "plimsoll/plan.h"

typedef struct pl_command_row {
    const char *name, *other; /* other: "", or as it may be called as well */
    uint32_t uses;            /* pl_command_uses bits */
} pl_command_row;

const pl_command_row *pl_command_row_of(pl_command);

#endif
