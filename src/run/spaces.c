#include "run/spaces.h"

#include <string.h>

static const pl_space_kind kinds[] = {
    {"ram", pl_arena_map, pl_arena_unmap},
};

const pl_space_kind *pl_space_find(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].name, name) == 0) return &kinds[i];
    return NULL;
}
