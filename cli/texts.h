/* Texts that generate writes, as a person or a program gets them. Asks for no memory. */
#ifndef PL_CLI_TEXTS_H
#define PL_CLI_TEXTS_H

#include "progress.h"

typedef struct pl_texts {
    pl_view *view;                    /* NULL: the command writes none */
    const char *prompt, *prompt_file; /* what they go on from: a text, or the file that has it; NULL: neither */
    uint64_t samples;                 /* of each of several prompts, which come from a file; 0: there is one prompt */
    bool chats;                       /* lines are messages of one chat */
    bool json;                        /* an object a line, plimsoll.generate/1 */
    uint64_t number;                  /* of the one that comes or is at work */
    uint64_t tokens;                  /* of several prompts' texts so far */
    bool begun;
} pl_texts;

/* Shows a text's pieces and its end; false: the event is another. */
bool pl_texts_event(pl_texts *, const pl_event *);
/* The texts behind the prompt. */
pl_status pl_texts_write(pl_texts *, pl_run *, pl_error *);
/* The texts behind each line of standard input, to its end. SIGINT ends the text at work, or, while a line is awaited,
 * the process. */
pl_status pl_texts_answer(pl_texts *, pl_run *, pl_error *);

#endif
