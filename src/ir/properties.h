/* What the rules of the operators (op.h) say about a whole graph, so that nobody has to know a program, a value or an
 * operator by its name. All of these look at every node. */
#ifndef PL_IR_PROPERTIES_H
#define PL_IR_PROPERTIES_H

#include "base/arithmetic.h"
#include "ir/graph.h"

/* Is the program trained: has it a backward pass or an update? And does it load data? Without nodes neither. */
bool pl_program_is_trained(const pl_graph *, pl_id program);
bool pl_program_loads(const pl_graph *, pl_id program);
/* Of a STORE with the attribute `back`, whose value lies in the place of a port that a LOAD of the program brings:
 * which port of it. What a model makes there is given back to who brought it. PL_NONE: of any other node. */
pl_id pl_node_returned_port(const pl_graph *, const pl_node *);
pl_id pl_graph_find_trained(const pl_graph *); /* the first such program; PL_NONE: none is */

/* (*partner)[values]: of a weight its average (a node EMA makes it), of an average its weight, else PL_NONE; both own
 * their bytes. *partner is NULL where there are no averages; else the caller frees it. PL_E_NOMEM. */
pl_status pl_graph_pair_averages(const pl_graph *, pl_id **partner, pl_error *);

/* The value that holds the loss of the program, which its gradients are of; PL_NONE when it has none. */
pl_id pl_graph_find_loss(const pl_graph *, pl_id program);

/* Is that a mean already, for its terms come with their scales? Else it is the sum over the items. */
bool pl_program_has_mean_loss(const pl_graph *, pl_id program);

/* The first node of the program whose operator mixes the samples of a micro-batch: then the program computes the same
 * only if it sees the whole batch at once. PL_NONE: any micro-batch will do. */
pl_id pl_graph_find_mixer(const pl_graph *, pl_id program);

/* One execution in seconds of a made-up machine: it orders what was never measured, and says how what was measured
 * goes over to other sizes. */
double pl_node_work(const pl_graph *, const pl_node *);

/* What a team can do at most on this machine, measured (calibrate/rates.c). */
typedef struct pl_rates {
    double operations[PL_ARITHMETIC_COUNT]; /* a second, two for each multiply-add; 0: not known */
    double bytes;                           /* a second, read from memory; 0: not known */
    double cache_bytes;                     /* what caches hold */
    /* How much longer a region takes when the team sleeps, because one thread worked alone before it. */
    double wake_seconds;
} pl_rates;

/* What one execution of a node is predicted to take: between low and high where the machine is as it was. */
typedef struct pl_duration {
    double seconds, low, high;
    double
        busy; /* so many times as long runs took, others' work included, when it was measured; 1: on a quiet machine */
    bool estimated; /* not measured at its shape */
} pl_duration;

/* The numbers that the node's products multiply. */
pl_arithmetic pl_node_arithmetic(const pl_graph *, const pl_node *);
/* No execution takes less than its products at their rate... */
double pl_node_computing_seconds(const pl_graph *, const pl_node *, const pl_rates *);
/* ... nor than what it reads and writes takes to and from memory, but for what caches may hold before it begins and
 * when it is done. A node that may be left out (a predicate) takes none. */
double pl_node_moving_seconds(const pl_graph *, const pl_node *, const pl_rates *);
double pl_node_least_seconds(const pl_graph *, const pl_node *, const pl_rates *); /* the longer of the two */

/* What a program computes, each node as often as its regions are repeated, and how much of that products of signs do.
 * Who does those s times as fast as before does the whole at most 1/(1 − share + share/s) times as fast (Amdahl 1967),
 * share = binary_flops/flops. Needs: the batch bound, or all counts are of one sample. */
typedef struct pl_work_share {
    double flops, binary_flops;
} pl_work_share;
pl_work_share pl_program_binary_share(const pl_graph *, pl_id program);

/* The input that the node takes as ids, PL_NONE when there is none, and what they must be below: the rows of a table.
 * (A negative id is none.) */
pl_id pl_node_find_ids(const pl_graph *, const pl_node *, int64_t *below);

/* Do some caches of keys and values hold only what a window sees? */
bool pl_graph_has_rings(const pl_graph *);

/* Is the value, or a window on it or a version of it, read as ids? Then *below is the smallest limit that a reader
 * sets, in any program. */
bool pl_graph_find_id_limit(const pl_graph *, pl_id value, int64_t *below);

#endif
