/* jansson (2.14) does not survive a refused request for memory: a token that outgrows its buffer loses the letters
 * that did not fit (lex_save looks at no result). A number or a name is then another one; and where it was the closing
 * quote, the search for it runs off the end of the buffer. So a refusal must never return to it.
 *
 * While it reads, it asks through functions that note each block; a refusal jumps straight out of the parser, and what
 * it held is given back from the notes. (The parser holds nothing but memory.) A note is dropped when its block is
 * given back, found from the end, where the young ones are.
 *
 * The functions that jansson asks are those of the whole process. In other threads, where a host program may be using
 * jansson, what stands there meanwhile hands every request on to what stood there before. */
#include "base/json_read.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"

static pthread_mutex_t one_reader = PTHREAD_MUTEX_INITIALIZER;
static json_malloc_t usual_malloc;
static json_free_t usual_free;

static _Thread_local struct {
    bool active;
    jmp_buf refused;
    void **block;
    size_t count, capacity;
} reading;

static void *noting_malloc(size_t bytes)
{
    void *block = usual_malloc(bytes);
    if (!reading.active) return block;
    if (!block) longjmp(reading.refused, 1);
    if (pl_grow(&reading.block, &reading.capacity, reading.count, sizeof *reading.block)) {
        usual_free(block);
        longjmp(reading.refused, 1);
    }
    return reading.block[reading.count++] = block;
}

static void noting_free(void *block)
{
    size_t at = reading.active ? reading.count : 0;
    while (at > 0 && reading.block[at - 1] != block) at--;
    if (at > 0) {
        reading.count--;
        memmove(reading.block + at - 1, reading.block + at, (reading.count - (at - 1)) * sizeof *reading.block);
    }
    if (block) usual_free(block);
}

static void begin(void)
{
    (void)pthread_mutex_lock(&one_reader); /* fails for no mutex like this one */
    json_get_alloc_funcs(&usual_malloc, &usual_free);
    json_set_alloc_funcs(noting_malloc, noting_free);
    reading.active = true;
}

/* keep: the blocks are those of the tree. */
static void end(bool keep)
{
    reading.active = false;
    json_set_alloc_funcs(usual_malloc, usual_free);
    while (!keep && reading.count > 0) usual_free(reading.block[--reading.count]);
    pl_free(reading.block);
    reading.block = NULL;
    reading.count = reading.capacity = 0;
    (void)pthread_mutex_unlock(&one_reader);
}

pl_status pl_json_read(const char *text, size_t bytes, size_t flags, json_t **root, json_error_t *why)
{
    *root = NULL;
    begin();
    if (setjmp(reading.refused)) {
        end(false);
        return PL_E_NOMEM;
    }
    *root = json_loadb(text, bytes, flags, why);
    end(true);
    return *root ? PL_OK : PL_E_DATA;
}
