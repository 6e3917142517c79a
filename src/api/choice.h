/* Between a config and a choice (fit/choice.h), both ways: the rows of fit/axes.def name the keys, and here they are
 * read and set. */
#ifndef PL_API_CHOICE_H
#define PL_API_CHOICE_H

#include "config/config.h"
#include "fit/choice.h"

enum { PL_CHOICE_TEXT_BYTES = 64 }; /* holds any value of such a key */

/* The value of a key as the config has it: "auto", "bf16", "4"; "auto" where the config has no such key. */
void pl_choice_text(const pl_config *, pl_choice_key, char text[PL_CHOICE_TEXT_BYTES]);
/* What the config says to a command with these uses (PL_USES_ bits), and a bit of `open` for each key that it leaves to
 * the search; a key that the command does not read keeps its established value. */
void pl_choice_read(const pl_config *, uint32_t uses, pl_choice *, uint32_t *open);
/* Does the config use that key? */
bool pl_choice_is_used(const pl_config *, pl_choice_key);
/* Copies every key of a choice from one config to another. */
void pl_choice_copy(const pl_config *from, pl_config *to);

/* Does the key of this path change numbers, and is it left to the search? */
bool pl_choice_is_left(const pl_config *, const char *path);

/* What the search turned on with the user's permission decides a run's numbers: the kept config says it in place of
 * auto, since a resumed run must do the same, whatever a search would choose by then. Keys that are not auto stay. */
pl_status pl_decide(pl_config *, const pl_choice *, pl_error *);
/* The same with the longest words that a search may choose. */
pl_status pl_decide_longest(pl_config *, pl_error *);
/* The same as decided by the run in the config's folder, where there is one. */
pl_status pl_decide_as_kept(pl_config *, pl_error *);

#endif
