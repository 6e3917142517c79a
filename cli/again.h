/* The command that was given, as text for a shell: said after a stop, so that it can be copied. */
#ifndef PL_CLI_AGAIN_H
#define PL_CLI_AGAIN_H

#include <stddef.h>

#include "command.h"
#include "out.h"

enum { PL_AGAIN_BYTES = 8192, PL_AGAIN_WORDS = 256 };

/* In main(), before words are taken out of argv. More than PL_AGAIN_WORDS (never a runner's) take memory, for good. */
void pl_again_note(int argc, char **argv);
/* The words as they were noted, NULL behind them, with their number; 0 when there was no memory for them. */
int pl_again_words(const char *const **words);
/* A word of a command, quoted where a shell needs that. */
void pl_again_add_word(pl_line *, const char *word);
/* The command that goes on: the words and PLIMSOLL_ variables as they were, quoted, and --resume where run.resume, as
 * it was asked for, is false; resume NULL: the command as it was given. "" when that is more than room: a command that
 * is cut would be another one. */
const char *pl_again_print(const char *resume, char text[PL_AGAIN_BYTES]);

#endif
