/* A few named numbers: hashes of what data were made from, extents that shapes depend on, counts. The writer and the
 * reader of a fact agree on what its name means; code between them only passes it on. */
#ifndef PL_BASE_FACTS_H
#define PL_BASE_FACTS_H

#include <stdbool.h>
#include <stdint.h>

enum { PL_FACTS_MAX = 16, PL_FACT_NAME_BYTES = 24 };

typedef struct pl_fact {
    char name[PL_FACT_NAME_BYTES]; /* letters, digits and _ */
    uint64_t value;
} pl_fact;

typedef struct pl_facts {
    pl_fact fact[PL_FACTS_MAX];
    uint32_t count;
} pl_facts;

/* False: no room is left, the name is not one as above, or it is there already. */
bool pl_facts_add(pl_facts *, const char *name, uint64_t value);
bool pl_facts_equal(const pl_facts *, const pl_facts *);
uint64_t pl_facts_value(const pl_facts *, const char *name, uint64_t otherwise);
/* Is a hash that was known then different now? One that is 0, or missing, is not known. */
bool pl_facts_differ(const pl_facts *then, const pl_facts *now, const char *name);
static inline uint64_t pl_fact_of_hash(uint64_t hash) { return hash ? hash : 1; }

/* One fact, as an argument. */
#define PL_FACT(name, number) (&(const pl_facts){.fact = {{name, (uint64_t)(number)}}, .count = 1})

#endif
