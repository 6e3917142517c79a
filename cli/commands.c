/* The table of subcommands. */
#include <stdlib.h>
#include <string.h>

#include "command.h"

/* The names of plimsoll/commands.def, each a constant: the table is one. */
#define PL_COMMAND_ROW(id, first, second, ...)                                                                         \
    struct {                                                                                                           \
        char name[sizeof(first)], other[sizeof(second)];                                                               \
    } id;
static const struct {
#include "plimsoll/commands.def"
#undef PL_COMMAND_ROW
} called = {
#define PL_COMMAND_ROW(id, first, second, ...) {first, second},
#include "plimsoll/commands.def"
#undef PL_COMMAND_ROW
};

#define NAME_OF(id) (sizeof called.id.other > 1 ? called.id.other : called.id.name)
#define NONE        .config = PL_CLI_NONE
#define READS       .config = PL_CLI_READS
#define PLANS(id)   .config = PL_CLI_PLANS, .command = PL_COMMAND_##id
#define RUNS(id)    .config = PL_CLI_RUNS, .command = PL_COMMAND_##id
#define PL_CLI_ROW(id, called_so, with, use, line)                                                                     \
    {.name = (called_so), .operands = (with), .summary = (line), use, .body = &pl_cli_##id},

const pl_cli_command pl_cli_commands[] = {
#include "subcommands.def"
};
const size_t pl_cli_command_count = sizeof pl_cli_commands / sizeof *pl_cli_commands;

const pl_cli_command *pl_cli_find(const char *name)
{
    for (size_t i = 0; i < pl_cli_command_count; i++)
        if (strcmp(pl_cli_commands[i].name, name) == 0) return &pl_cli_commands[i];
    return NULL;
}

enum { WORD = 32 };

/* Edits (insert, remove, change a letter) between two words of fewer than WORD letters. */
static size_t distance(const char *a, const char *b)
{
    size_t row[WORD], n = strlen(b);
    for (size_t j = 0; j <= n; j++) row[j] = j;
    for (size_t i = 0; a[i]; i++) {
        size_t corner = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < n; j++) {
            size_t best = corner + (a[i] != b[j]);
            corner = row[j + 1];
            if (corner + 1 < best) best = corner + 1;
            if (row[j] + 1 < best) best = row[j] + 1;
            row[j + 1] = best;
        }
    }
    return row[n];
}

/* "gen" and "evaluate": one begins with the other. */
static bool begins(const char *word, const char *name)
{
    size_t bytes = strlen(word) < strlen(name) ? strlen(word) : strlen(name);
    return bytes >= 3 && strncmp(word, name, bytes) == 0;
}

const pl_cli_command *pl_cli_nearest(const char *name)
{
    const pl_cli_command *nearest = NULL;
    while (*name == '-') name++; /* "plimsoll --train" */
    size_t bytes = strlen(name), best = (bytes + 1) / 3 + 1;
    if (bytes >= WORD) return NULL;
    for (size_t i = 0; i < pl_cli_command_count; i++) {
        const pl_cli_command *c = &pl_cli_commands[i];
        if (begins(name, c->name)) return c;
        size_t d = distance(name, c->name);
        if (d < best) best = d, nearest = c;
    }
    return nearest;
}
