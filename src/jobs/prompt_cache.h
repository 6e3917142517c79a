/* What a prompt leaves in the caches of keys and values, in a file: a later prompt that begins with the same tokens
 * goes on from there. A file holds whole chunks of tokens, as the program "prefill" reads them, so what is computed
 * after them has the bits that it has without the file. Asks for no memory. Private to the jobs. */
#ifndef PL_JOBS_PROMPT_CACHE_H
#define PL_JOBS_PROMPT_CACHE_H

#include "base/file.h"
#include "run/session_impl.h"

typedef struct pl_prompt_cache {
    const char *path;
    uint64_t context, chunk; /* places of the caches, and tokens of a chunk */
    uint64_t tokens;         /* that the file holds; 0: there is none yet */
    uint64_t identity;       /* of the model, and of the caches */
    pl_file_writer file;
} pl_prompt_cache;

/* Fills the caches from the file; `cached`: how many of the first of these ids they then hold. PL_E_DATA: the file is
 * damaged, or another model's, or of other settings; PL_E_STORAGE. */
pl_status pl_prompt_cache_read(pl_prompt_cache *, pl_session *, const uint32_t *id, size_t count, size_t *cached,
                               pl_error *);
/* Takes the file's name, so that a name that cannot be had is known before a long prompt is read; then write, or
 * pl_file_abandon on its `file`. */
pl_status pl_prompt_cache_begin(pl_prompt_cache *, pl_error *);
/* The caches hold these tokens, whole chunks. */
pl_status pl_prompt_cache_write(pl_prompt_cache *, pl_session *, const uint32_t *id, size_t count, pl_error *);

#endif
