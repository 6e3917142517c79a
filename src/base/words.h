/* How a system calls what it counts, for messages, reports and the keys of metrics: the core has no such word. */
#ifndef PL_BASE_WORDS_H
#define PL_BASE_WORDS_H

typedef struct pl_words {
    const char *item, *items;     /* what enters the loss, and is counted in rates: "token", "tokens" */
    const char *sample, *samples; /* what a batch is made of: "sequence", "sequences" */
} pl_words;

#endif
