/* A system's names for what it counts. The core has no such words: reports, progress and keys of metrics take them from
 * here, so that a language model speaks of tokens and sequences, and another system of its own things. Constants. */
#ifndef PLIMSOLL_WORDS_H
#define PLIMSOLL_WORDS_H

typedef struct pl_words {
    const char *item, *items;     /* what enters the loss, and is counted in rates: "token", "tokens" */
    const char *sample, *samples; /* what a batch is made of: "sequence", "sequences" */
    const char *rate;             /* "tok/s" */
    const char *data;             /* what is prepared before a run: "text" */
    const char *step;       /* what a run makes one after the other, and progress counts: "step" */
    const char *sample_key;       /* of the config, how large a sample is: "model.sequence"; NULL: none says that */
} pl_words;

#endif
