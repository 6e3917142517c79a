/* jansson (2.14) takes a refused request for memory in three ways: it says so, it says "syntax error", or it goes on with
 * a letter less: a token that outgrows its buffer loses what did not fit (lex_save looks at no result). The last one makes
 * other numbers and names of a file that is sound. So while it reads, it asks through a function that remembers a
 * refusal, and then the tree is thrown away.
 *
 * The functions that jansson asks are those of the whole process. What stands there meanwhile hands every request on to
 * what stood there before, so a host program that uses jansson in another thread sees no difference. */
#include "base/json_read.h"

#include <pthread.h>
#include <stdbool.h>

static pthread_mutex_t one_reader = PTHREAD_MUTEX_INITIALIZER;
static json_malloc_t usual_malloc;
static _Thread_local bool refused;

static void *noting_malloc(size_t bytes)
{
    void *block = usual_malloc(bytes);
    if (!block) refused = true;
    return block;
}

pl_status pl_json_read(const char *text, size_t bytes, size_t flags, json_t **root, json_error_t *why)
{
    json_free_t usual_free;
    (void)pthread_mutex_lock(&one_reader); /* fails for no mutex like this one */
    json_get_alloc_funcs(&usual_malloc, &usual_free);
    refused = false;
    json_set_alloc_funcs(noting_malloc, usual_free);
    *root = json_loadb(text, bytes, flags, why);
    json_set_alloc_funcs(usual_malloc, usual_free);
    (void)pthread_mutex_unlock(&one_reader);
    if (*root && !refused) return PL_OK;
    json_decref(*root);
    *root = NULL;
    return refused ? PL_E_NOMEM : PL_E_DATA;
}
