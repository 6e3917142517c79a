#include "run/spaces.h"

#include <string.h>

#include "ir/graph.h"

static const pl_space_kind kinds[] = {
    {"ram", pl_arena_map, pl_arena_unmap, false},
    {PL_SPACE_FILES, pl_arena_reserve, pl_arena_unmap, true},
};

const pl_space_kind *pl_space_find(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, name) == 0) return &kinds[i];
    return NULL;
}
