/* The ports of a language model's LOAD node, as a test's hook fills them. */
#ifndef PL_TEST_LOAD_H
#define PL_TEST_LOAD_H

#include "backend/backend.h"

static inline int32_t *load_tokens(const pl_load_call *c) { return c->port[0].at; }
static inline int32_t *load_targets(const pl_load_call *c) { return c->port[1].at; }
static inline int64_t load_count(const pl_load_call *c) { return (int64_t)(c->port[0].bytes / sizeof(int32_t)); }

#endif
