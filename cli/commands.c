/* The table, in the order of the help. */
#include <stdlib.h>
#include <string.h>

#include "command.h"

const pl_cli_command *const pl_cli_commands[] = {
    &pl_cli_plan,  &pl_cli_fit,       &pl_cli_train,  &pl_cli_generate, &pl_cli_eval,       &pl_cli_verify,
    &pl_cli_place, &pl_cli_recompute, &pl_cli_doctor, &pl_cli_config,   &pl_cli_completion, &pl_cli_help,
};
const size_t pl_cli_command_count = sizeof pl_cli_commands / sizeof *pl_cli_commands;

const pl_cli_command *pl_cli_find(const char *name)
{
    for (size_t i = 0; i < pl_cli_command_count; i++)
        if (strcmp(pl_cli_commands[i]->name, name) == 0) return pl_cli_commands[i];
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
        if (begins(name, pl_cli_commands[i]->name)) return pl_cli_commands[i];
        size_t d = distance(name, pl_cli_commands[i]->name);
        if (d < best) best = d, nearest = pl_cli_commands[i];
    }
    return nearest;
}
