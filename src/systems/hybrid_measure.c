/* How many words and pages are read, whether the model knows when all are, and what its gates and its planner did.
 *
 * The spread of gates over all pages is made of each page's mean and variance: the sum of squares within pages, and
 * that of the means about their mean. */
#include "systems/hybrid_measure.h"

#include <math.h>

#include "base/told.h"
#include "data/pages/read_pages.h"
#include "data/pages/reading.h"

enum { SHOWN = PL_METRIC_IN_FILE | PL_METRIC_VALIDATED };

typedef struct pages {
    const float *row;
    uint64_t count;
    uint64_t gates; /* of a page, each of fusion and adapter */
} pages;

static double at(const pages *p, uint64_t page, int column)
{
    return (double)p->row[page * PL_TOLD_COLUMNS + (uint64_t)column];
}

static double sum(const pages *p, int column)
{
    double all = 0;
    for (uint64_t i = 0; i < p->count; i++) all += at(p, i, column);
    return all;
}

static double share(double part, double of) { return of > 0 ? part / of : 0; }

static double halts_rightly(const pages *p)
{
    double right = 0;
    for (uint64_t i = 0; i < p->count; i++) right += (at(p, i, PL_TOLD_HALT) > 0) == (at(p, i, PL_TOLD_ALL_RIGHT) > 0);
    return share(right, (double)p->count);
}

/* Of a page's `gates` gates the mean stands in one column, the variance over n - 1 in the one before it, unless there
 * is one gate alone. */
static void spread_of(const pages *p, int mean_at, uint64_t gates, double *mean, double *deviation)
{
    const double n = (double)gates, pages_ = (double)p->count;
    double squares = 0;
    *mean = share(sum(p, mean_at), pages_);
    for (uint64_t i = 0; i < p->count; i++) {
        const double off = at(p, i, mean_at) - *mean;
        squares += n * off * off + (gates > 1 ? (n - 1) * at(p, i, mean_at - 1) : 0);
    }
    *deviation = sqrt(share(squares, n * pages_));
}

/* Of the softmax of the scores, in nats. */
static double entropy_of(const pages *p, uint64_t page)
{
    double top = -INFINITY, all = 0, weighed = 0;
    for (int k = 0; k < PL_TOLD_WAYS_MAX; k++) top = fmax(top, at(p, page, PL_TOLD_WAYS + k));
    for (int k = 0; k < PL_TOLD_WAYS_MAX; k++) {
        const double below = at(p, page, PL_TOLD_WAYS + k) - top, e = exp(below);
        all += e, weighed += e > 0 ? e * below : 0;
    }
    return log(all) - weighed / all;
}

static size_t add(pl_loss_metric *to, size_t n, const char *key, const char *words, double value)
{
    to[n] = (pl_loss_metric){key, words, words, 4, 3, SHOWN, value};
    return n + 1;
}

/* Gates are told where there are some: a part that the model has not got has a number below 0 in place of its mean. */
static size_t add_gates(const pages *p, pl_loss_metric *to, size_t n, const char *const name[4], int mean_at,
                        uint64_t gates)
{
    double mean, deviation;
    if (p->count == 0 || at(p, 0, mean_at) < 0) return n;
    spread_of(p, mean_at, gates, &mean, &deviation);
    n = add(to, n, name[0], name[1], mean);
    to[n] = (pl_loss_metric){name[2], name[3], name[3], 4, 3, PL_METRIC_IN_FILE, deviation};
    return n + 1;
}

static size_t add_entropy(const pages *p, pl_loss_metric *to, size_t n)
{
    double all = 0;
    if (p->count == 0 || at(p, 0, PL_TOLD_WAYS) <= PL_TOLD_NO_WAY) return n;
    for (uint64_t i = 0; i < p->count; i++) all += entropy_of(p, i);
    return add(to, n, "path_entropy", "path entropy", all / (double)p->count);
}

static pages pages_of(const pl_data *data, const float *predictions, uint64_t count)
{
    const pl_reading *r = pl_reading_of(data);
    const uint64_t there = r->count[PL_PART_VALIDATION], rows = count / PL_TOLD_COLUMNS;
    return (pages){predictions, rows < there ? rows : there, r->setup.gates};
}

size_t pl_hybrid_measure(const pl_data *data, const float *predictions, uint64_t count, pl_loss_metric *to)
{
    static const char *const fusion[4] = {"fusion_gate_mean", "fusion gate", "fusion_gate_std", "its std"},
                             *const adapter[4] = {"adapter_gate_mean", "adapter gate", "adapter_gate_std", "its std"},
                             *const planner[4] = {"planner_gate_mean", "planner gate", "planner_gate_std", "its std"};
    const pages p = pages_of(data, predictions, count);
    size_t n = 0;
    n = add(to, n, "token_accuracy", "words read", share(sum(&p, PL_TOLD_RIGHT), sum(&p, PL_TOLD_WORDS)));
    n = add(to, n, "exact_accuracy", "pages read", share(sum(&p, PL_TOLD_ALL_RIGHT), (double)p.count));
    n = add(to, n, "q_halt_accuracy", "q_halt right", halts_rightly(&p));
    n = add_gates(&p, to, n, fusion, PL_TOLD_FUSION + 1, p.gates);
    n = add_gates(&p, to, n, adapter, PL_TOLD_ADAPTER + 1, p.gates);
    n = add_gates(&p, to, n, planner, PL_TOLD_PLANNER, 1);
    return add_entropy(&p, to, n);
}

pl_status pl_hybrid_keep_predictions(const pl_data *data, const float *predictions, uint64_t count, const char *path,
                                     pl_error *err)
{
    const pages p = pages_of(data, predictions, count);
    return pl_read_pages_write(path, pl_reading_of(data)->page[PL_PART_VALIDATION], p.row, p.count, err);
}
