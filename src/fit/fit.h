/* Choosing how a command runs inside a budget: the only place that compares bytes with one.
 *
 * What may be chosen is a table of axes (axes.c); a choice is one value of each, and pl_fit_candidate carries it out:
 * rewritten and planned by the real planner, since nothing here sizes anything itself. The budget binds the charged
 * total.
 *
 * The choices that are looked at depend on the config and the machine alone, never on the budget. Of those that fit,
 * the one with the least predicted seconds per step is taken (ties: the fewest bytes). From this follows, exactly:
 *
 *   a larger budget is never predicted slower      more choices fit, and the least of more is not larger
 *   a smaller budget never plans a higher peak     if the fastest that fits the larger budget were the smaller plan,
 *                                                  it would fit the smaller budget, too, and be the fastest there
 *
 * Work that cannot change the answer is skipped: a choice is planned only when the fewest bytes that it can hold
 * (pl_plan_find_least) leave it a chance, in the order of predicted time, so that the first that fits ends the search;
 * it is placed with full effort only where the most bytes that the placer could save would matter; kernels are
 * measured only when something fits, and only at the shapes of what may fit. The time for measuring is limited
 * (calibrate.h): where it is up before all is known, which times are known may depend on the budget.
 *
 * Two refinements keep both properties. A micro-batch larger than the default must be predicted faster by a share of
 * PL_FIT_WORTH than any choice that needs fewer bytes, since clocks are noisy. This drops choices by comparing them
 * with smaller ones only, so which are dropped does not depend on the budget. And huge pages are taken at the end where
 * rounding up to them still fits: the plan of a larger budget would then not have fitted the smaller one.
 *
 * What changes numbers (precision, the optimizer's state, the storage of frozen weights) is tried only where the caller
 * allows it. */
#ifndef PL_FIT_FIT_H
#define PL_FIT_FIT_H

#include "fit/choice.h"
#include "fit/result.h"
#include "plan/plan.h"

#define PL_FIT_NO_BUDGET UINT64_MAX

/* What changes numbers, and is tried only if the user allows it. */
typedef enum pl_fit_allow {
    PL_FIT_ALLOW_OPTIMIZER_BF16 = 1 << 0,
    PL_FIT_ALLOW_OPTIMIZER_8BIT = 1 << 1,
    PL_FIT_ALLOW_BF16 = 1 << 2,
    PL_FIT_ALLOW_FP16 = 1 << 3,
    PL_FIT_ALLOW_FROZEN_BF16 = 1 << 4,
    PL_FIT_ALLOW_FROZEN_FP16 = 1 << 5,
    PL_FIT_ALLOW_SHARED_SUMS = 1 << 6,
} pl_fit_allow;

#define PL_FIT_WORTH 0.02 /* what a predicted time must differ by to count against the established order */

typedef struct pl_fit_options {
    pl_plan_options plan;  /* except huge_pages and threads, which are choices; the cost model predicts */
    const pl_words *words; /* of the system, for reports; NULL: pl_words_plain */
    int64_t batch;         /* samples of a step */
    const char
        *repeated;   /* the program that is searched where none is trained: it runs for each micro-batch; NULL: what
                            * is not trained is not searched. Outlives the options */
    pl_choice given; /* what is decided already, and of what is open the established value; a micro-batch of 0:
                            * choose. Huge pages may still be dropped */
    uint32_t open;   /* a bit for each pl_choice_key that the search decides */
    uint32_t allow;  /* pl_fit_allow bits; of use where the key is open */
    uint64_t budget_bytes; /* charged; PL_FIT_NO_BUDGET */
    const char *instead;   /* of a model that is as it is: what takes less, for the words of a refusal; or NULL */
    bool is_advised;       /* the caller adds to the words of a refusal what would fit: they name no keys */
    uint64_t floor_bytes;  /* charged of a process that has no model; for the words of a refusal. 0: not known */
    bool everything;       /* without a budget, too; and what does not fit is predicted, for the front. Else no budget
                            * means no search: what is established is taken */
    bool quick;            /* whether anything fits is all that is asked: not what is fastest, nor, where nothing does,
                            * what is smallest; and of what may be computed again little is looked at */
    /* Adds what the session keeps in the arena; called once per candidate, before it is planned. */
    pl_status (*stage)(void *context, pl_graph *, int64_t micro_batch, pl_error *);
    /* Measures what the cost table lacks for this bound graph; may be NULL. */
    pl_status (*measure)(void *context, const pl_graph *, pl_error *);
    /* The process's rows are final only when the plan's text is known (its reader's heap); called for each plan. */
    pl_status (*settle)(void *context, pl_plan *, pl_error *);
    /* In long searches, called with the number of choices that a stage has looked at, one stage after the other; may
     * be NULL. */
    void (*tell)(void *context, size_t done, size_t total);
    void *context;
} pl_fit_options;

static inline bool pl_fit_is_open(const pl_fit_options *o, pl_choice_key key) { return o->open >> key & 1; }
static inline uint32_t pl_fit_leave(const pl_fit_options *o, pl_choice_key key)
{
    return pl_fit_is_open(o, key) ? o->allow : 0;
}

/* ---- fit.c ---- */
/* graph: legal, its batch not bound; stays the caller's. PL_E_BUDGET when nothing fits: the smallest plan's needs, what
 * is alive at its peak, and what single change would make it fit are in the sentence. */
pl_status pl_fit(const pl_graph *graph, const pl_fit_options *, pl_plan **, pl_error *);
/* The same, with everything that was found; the caller gives it back, also when nothing fits. NULL: not wanted. */
pl_status pl_fit_find(const pl_graph *graph, const pl_fit_options *, pl_fit_result *, pl_plan **, pl_error *);

/* ---- candidate.c: one choice carried out ---- */
/* The passes before recompute: what a decision names are the nodes of this graph. */
pl_status pl_fit_prepare(pl_graph *, const pl_fit_options *, const pl_choice *, pl_error *);
/* All passes, those included. */
pl_status pl_fit_rewrite(pl_graph *, const pl_fit_options *, const pl_choice *, pl_error *);
/* A copy, rewritten and bound; the caller's. */
pl_status pl_fit_bind(const pl_graph *graph, const pl_fit_options *, const pl_choice *, pl_graph **bound, pl_error *);
/* And planned; its seconds are not known yet. */
pl_status pl_fit_candidate(const pl_graph *graph, const pl_fit_options *, const pl_choice *, pl_plan **, pl_error *);
pl_plan_options pl_fit_plan_options(const pl_fit_options *, const pl_choice *);

/* ---- axes.c: what may be chosen ---- */
struct pl_recompute_frontier;
/* Appends to the result every choice that the options leave open, the established one first; with a frontier, those
 * that carry one of its decisions. */
pl_status pl_fit_list(const pl_graph *graph, const pl_fit_options *, const struct pl_recompute_frontier *,
                      pl_fit_result *, pl_error *);
/* Is recomputing to be planned node by node? */
bool pl_fit_plans_recompute(const pl_graph *graph, const pl_fit_options *);
/* And for the form that the choice gives the graph before recompute? Other forms (pl_choice_same_form) have other
 * nodes, so each has a frontier of its own. */
bool pl_fit_plans_form(const pl_fit_options *, const pl_choice *);
/* The micro-batch when there is nothing to choose: the given one, or what follows from the rest; else 0. */
int64_t pl_fit_given_micro_batch(const pl_graph *graph, const pl_fit_options *);

/* ---- rows.c ---- */
/* The most rows of a product: of an input of LINEAR, or of what a convolution makes. Of a sample while the batch is
 * open, of a micro-batch once it is bound; 1 where there is none. */
int64_t pl_fit_rows(const pl_graph *);

/* ---- time.c: how long a step takes ---- */
/* The program whose time counts: the trained one, else the repeated one; PL_NONE: there is neither. */
pl_id pl_fit_find_searched(const pl_graph *, const pl_fit_options *);
/* Of that program of a bound graph, for all samples of a step, into the point: its time and work. */
void pl_fit_predict(const pl_fit_options *, const pl_graph *bound, pl_fit_point *);
void pl_fit_take_time(pl_fit_point *, const pl_fit_point *from); /* seconds, low, high, estimated_seconds */
/* Seconds of every node of the plan. PL_E_NOMEM. */
pl_status pl_fit_predict_plan(const pl_fit_options *, const pl_choice *, pl_plan *, pl_error *);

/* ---- search.c ---- */
typedef struct pl_fit_search {
    const pl_graph *graph;
    const pl_fit_options *options;
    pl_fit_result *result;
    pl_plan *plan;  /* the newest, in the end of result->chosen; for pl_plan_destroy */
    size_t planned; /* whose it is */
    bool rough;     /* placed quickly, and it could be smaller */
} pl_fit_search;

/* Fills the result; result->chosen is PL_FIT_NONE when nothing fits. */
pl_status pl_fit_run_search(pl_fit_search *, pl_error *);

/* ---- potential.c ---- */
/* Fills result->narrow, when everything is wanted and something was chosen. Measures nothing. */
pl_status pl_fit_find_potential(const pl_fit_search *, pl_error *);

#endif
