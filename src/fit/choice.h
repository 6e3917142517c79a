/* What is decided about one plan: fit picks it, the passes of rewrite/ carry it out, in the order of passes.c. What may
 * be decided, and by which key of a config, is the table axes.def. */
#ifndef PL_FIT_CHOICE_H
#define PL_FIT_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ir/types.h"
#include "rewrite/passes.h"

typedef struct pl_choice {
#define PL_AXIS_FIELD(by, type, name, form, kernels) type name;
#include "fit/axes.def"
} pl_choice;

/* The keys that decide it, in the order of their turns, and how many. */
typedef enum pl_choice_key {
#define PL_AXIS_KEY(turn, id, ...) PL_CHOICE_##id = turn,
#include "fit/axes.def"
#define PL_AXIS_KEY(...) +1
    PL_CHOICE_KEYS = 0
#include "fit/axes.def"
    ,
    PL_CHOICE_NO_KEY = PL_CHOICE_KEYS
} pl_choice_key;

typedef struct pl_choice_word {
    const char *text;
    int64_t value;
} pl_choice_word;

typedef struct pl_choice_row {
    const char *path;    /* "train.micro_batch" */
    pl_choice_key under; /* PL_CHOICE_NO_KEY: none */
    uint32_t uses;       /* PL_USES_ bits that a command must have to read it; 0: every command does */
    bool numbers;
    const pl_choice_word *word; /* "auto" first */
    size_t words;
    int64_t (*get)(const pl_choice *);
    void (*put)(pl_choice *, int64_t);
} pl_choice_row;

/* ---- choice.c ---- */
extern const pl_choice_row pl_choice_rows[PL_CHOICE_KEYS];
const char *pl_choice_say(const pl_choice *, pl_choice_key); /* a key with words: the one that stands for its value */
bool pl_choice_equal(const pl_choice *, const pl_choice *);
/* Have the graphs of two choices the same nodes before recompute? Then a decision for one is good for the other. */
bool pl_choice_same_form(const pl_choice *, const pl_choice *);
/* Do two choices run the same kernels at the same shapes (all but a few)? Then one measurement serves both. */
bool pl_choice_same_kernels(const pl_choice *, const pl_choice *);

#endif
