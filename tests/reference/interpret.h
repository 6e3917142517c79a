/* A plain interpreter of graphs in double precision: the oracle of everything that is compiled. Each operator is
 * written straight from its formula (docs: the comments of backend/calls.h), one scalar
 * after the other; nothing is shared with src/kernels. Each storage root has a heap block of its own, so a value that
 * is not produced reads as not-a-number whatever a plan would have put there.
 *
 * Views and updates are honoured (a root's block is what all of them look at); regions repeat; a node with a predicate
 * that is zero is skipped. Integers are held as doubles too. A broken graph ends the program: the tests check it
 * before. */
#ifndef PL_TESTS_REFERENCE_INTERPRET_H
#define PL_TESTS_REFERENCE_INTERPRET_H

#include "ir/graph.h"

typedef struct reference reference;

/* Fills tokens and targets of the trip's micro-batch; may write inputs (first_sample) through the reference. */
typedef void (*reference_load)(void *context, uint64_t iteration, int64_t count, double *tokens, double *targets);

reference *reference_create(const pl_graph *); /* the graph must be bound and outlive the reference */
void reference_destroy(reference *);
void reference_run(reference *, pl_id program, reference_load, void *context);
void reference_run_named(reference *, const char *program, reference_load, void *context);

/* The block of the root that holds a value, from the value's first element on (contiguous values only). */
double *reference_find(reference *, const char *name);
double *reference_address(reference *, pl_id value);
int64_t reference_place(const pl_graph *, pl_id value, uint64_t elem); /* element's place within its root's storage */
uint64_t reference_elems(const reference *, pl_id value);

#endif
