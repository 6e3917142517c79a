/* Chains of thought as tokens, and what an evaluation tells of each: what data, model and report share.
 *
 * A token is a byte of UTF-8, or one of these, which no UTF-8 has. */
#ifndef PL_BASE_CHAIN_H
#define PL_BASE_CHAIN_H

enum {
    PL_CHAIN_PAD = 0xfb,    /* before a question, and behind the end */
    PL_CHAIN_ANSWER = 0xfc, /* between the steps and the answer */
    PL_CHAIN_END = 0xfd,
    PL_CHAIN_BOT = 0xfe, /* latent thoughts begin, and end */
    PL_CHAIN_EOT = 0xff,
    PL_CHAIN_VOCAB = 256
};

/* Columns of f32 [samples, PL_CHAIN_COLUMNS]: of all that stands behind the latents, then of the answer with its end,
 * how many tokens there are; of these, are the likeliest behind those before them; and 1 where all are. */
enum {
    PL_CHAIN_TOKENS,
    PL_CHAIN_RIGHT,
    PL_CHAIN_ALL_RIGHT,
    PL_CHAIN_ANSWER_TOKENS,
    PL_CHAIN_ANSWER_RIGHT,
    PL_CHAIN_ANSWER_ALL_RIGHT,
    PL_CHAIN_COLUMNS
};

#endif
