/* The subcommands: those of subcommands.def, then every other command of plimsoll/commands.def. */
#include <stdlib.h>
#include <string.h>

#include "command.h"

/* Names and summaries of plimsoll/commands.def, each a constant: the tables are. */
#define PL_COMMAND_ROW(id, name, other, typed, line, ...)                                                              \
    struct {                                                                                                           \
        char name_of[sizeof(typed)], summary_of[sizeof(line)];                                                         \
    } id;
static const struct {
#include "plimsoll/commands.def"
#undef PL_COMMAND_ROW
} said = {
#define PL_COMMAND_ROW(id, name, other, typed, line, ...) {typed, line},
#include "plimsoll/commands.def"
#undef PL_COMMAND_ROW
};

#define NAME_OF(id)    said.id.name_of
#define SUMMARY_OF(id) said.id.summary_of
#define NONE           .config = PL_CLI_NONE
#define READS          .config = PL_CLI_READS
#define PLANS(id)      .config = PL_CLI_PLANS, .command = PL_COMMAND_##id
#define RUNS(id)       .config = PL_CLI_RUNS, .command = PL_COMMAND_##id

static const pl_cli_command own[] = {
#define PL_CLI_ROW(id, called_so, with, use, line)                                                                     \
    {.name = (called_so), .operands = (with), .summary = (line), use, .body = &pl_cli_##id},
#include "subcommands.def"
};
enum { OWN = sizeof own / sizeof *own };

static const pl_cli_command jobs[] = {
#define PL_COMMAND_ROW(id, ...)                                                                                        \
    {.name = NAME_OF(id), .operands = "CONFIG|FOLDER", .summary = SUMMARY_OF(id), RUNS(id), .body = &pl_cli_job},
#include "plimsoll/commands.def"
#undef PL_COMMAND_ROW
};

static bool has_own(pl_command command)
{
    for (size_t i = 0; i < OWN; i++)
        if (own[i].config == PL_CLI_RUNS && own[i].command == command) return true;
    return false;
}

const pl_cli_command *pl_cli_at(size_t index)
{
    if (index < OWN) return &own[index];
    for (size_t i = 0, at = OWN; i < PL_COMMAND_COUNT; i++)
        if (!has_own(jobs[i].command) && at++ == index) return &jobs[i];
    return NULL;
}

const pl_cli_command *pl_cli_find(const char *name)
{
    const pl_cli_command *c;
    for (size_t i = 0; (c = pl_cli_at(i)); i++)
        if (strcmp(c->name, name) == 0) return c;
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
    size_t bytes = strlen(name), best = (bytes + 1) / 3 + 1, at = 0;
    if (bytes >= WORD) return NULL;
    for (const pl_cli_command *c; (c = pl_cli_at(at)); at++) {
        if (begins(name, c->name)) return c;
        size_t d = distance(name, c->name);
        if (d < best) best = d, nearest = c;
    }
    return nearest;
}
