/* Prompts as ids, from a file with one a line: {"prompt": "…"}, other keys are ignored, and so are empty lines. */
#ifndef PL_DATA_PROMPTS_H
#define PL_DATA_PROMPTS_H

#include <stddef.h>
#include <stdint.h>

#include "data/text/encoder.h"

enum { PL_PROMPTS_BYTES_MAX = 16 << 20 /* of the file */ };

typedef struct pl_prompts {
    uint32_t *id; /* of all, one after the other */
    size_t *end;  /* [count] where those of a prompt end */
    size_t ids, count;
    size_t id_capacity, end_capacity;
} pl_prompts;

/* What a prompt must be, called for each with its ids; the sentence of a failure is completed by file and line. */
typedef pl_status (*pl_prompt_check)(const void *context, const uint32_t *id, size_t count, pl_error *);

/* An empty prompt is a line break. PL_E_DATA: the file has no prompts, or a line is none; or what the check says. What
 * is read so far is to be given back after a failure, too. */
pl_status pl_prompts_read(const char *path, const pl_tokenizer *, pl_encode_options, pl_prompt_check,
                          const void *context, pl_prompts *, pl_error *);
void pl_prompts_deinit(pl_prompts *);

static inline const uint32_t *pl_prompts_at(const pl_prompts *p, size_t number, size_t *count)
{
    const size_t begin = number ? p->end[number - 1] : 0;
    *count = p->end[number] - begin;
    return p->id + begin;
}

#endif
