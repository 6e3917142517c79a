/* A system's names for what it counts. The core has no such words: reports, progress and keys of metrics take them from
 * here, so that a language model speaks of tokens and sequences, and another system of its own things. Constants. */
#ifndef PLIMSOLL_WORDS_H
#define PLIMSOLL_WORDS_H

typedef struct pl_words {
    const char *item, *items;     /* what enters the loss, and is counted in rates: "token", "tokens" */
    const char *sample, *samples; /* what a batch is made of: "sequence", "sequences" */
    const char *rate;             /* "tok/s" */
    const char *data;             /* what is prepared before a run: "text" */
    const char *step;             /* what a run makes one after the other, and progress counts: "step" */
    const char *part;             /* what such a step is made of, one after the other: "part" */
    const char *loss;             /* what the loss of an evaluation is in: "nats per token" */
    const char *at_once_key;      /* of the config, how many samples are in memory together: "train.micro_batch" */
    const char *size_keys;   /* what makes model or samples smaller: "model.sequence, model.width or model.layers" */
    const char *weight_keys; /* those of them that make the weights smaller: "model.width or model.layers" */
} pl_words;

#endif
