#include "plan/command.h"

#include <string.h>

#define PL_COMMAND_ROW(id, name, other, typed, summary, uses) [PL_COMMAND_##id] = {name, other, uses},
static const pl_command_row rows[] = {
#include "plimsoll/commands.def"
};
#undef PL_COMMAND_ROW
_Static_assert(sizeof rows / sizeof *rows == PL_COMMAND_COUNT, "a row each");

const pl_command_row *pl_command_row_of(pl_command c) { return &rows[c]; }

bool pl_command_does(pl_command c, uint32_t uses) { return (rows[c].uses & uses) != 0; }

const char *pl_command_name(pl_command c) { return rows[c].name; }

bool pl_command_parse(const char *word, pl_command *command)
{
    for (int c = 0; c < PL_COMMAND_COUNT; c++)
        if (strcmp(word, rows[c].name) == 0 || (rows[c].other[0] && strcmp(word, rows[c].other) == 0))
            return *command = (pl_command)c, true;
    return false;
}
