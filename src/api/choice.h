/* A config and a choice (fit/choice.h), either in the words of the other: the rows of fit/axes.def name the keys, and
 * here they are read and set. */
#ifndef PL_API_CHOICE_H
#define PL_API_CHOICE_H

#include "config/config.h"
#include "fit/choice.h"

enum { PL_CHOICE_TEXT_BYTES = 64 }; /* of any value of such a key */

/* The value of a key as the config has it: "auto", "bf16", "4"; as if it were auto where the config has no such key. */
void pl_choice_text(const pl_config *, pl_choice_key, char text[PL_CHOICE_TEXT_BYTES]);
/* What the config says to a command of these uses (PL_USES_ bits), and a bit of `open` for each key that it leaves to
 * the search; what the command does not read is as established. */
void pl_choice_read(const pl_config *, uint32_t uses, pl_choice *, uint32_t *open);
/* Does the config use that key? */
bool pl_choice_is_used(const pl_config *, pl_choice_key);
/* Every key of a choice from one config into another. */
void pl_choice_copy(const pl_config *from, pl_config *to);

/* Does the key of this path change numbers, and is it left to the search? */
bool pl_choice_is_left(const pl_config *, const char *path);

/* What the search turned on by leave of the user decides the numbers of a run: the config that is kept says so in place
 * of auto, for a run that is resumed must do the same, whatever a search would take by then. Keys that are not auto
 * stay. */
pl_status pl_decide(pl_config *, const pl_choice *, pl_error *);
/* With the longest words that a search may choose. */
pl_status pl_decide_longest(pl_config *, pl_error *);
/* As the run in the config's folder has it, where there is one. */
pl_status pl_decide_as_kept(pl_config *, pl_error *);

#endif
