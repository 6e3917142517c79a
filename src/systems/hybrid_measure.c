/* How many words and pages are read, whether the model knows when all are, and what its gates and its planner did.
 *
 * The spread of gates over all pages is made of each page's mean and variance: the sum of squares within pages, and
 * that of the means about their mean. Least, largest and median of them are those of histograms, one for each part of
 * the model that has gates. */
#include "systems/hybrid_measure.h"

#include <math.h>
#include <string.h>

#include "base/colours.h"
#include "base/policy.h"
#include "base/softmax.h"
#include "base/told.h"
#include "data/pages/read_pages.h"
#include "data/pages/reading.h"

enum { SHOWN = PL_METRIC_IN_FILE | PL_METRIC_VALIDATED };

typedef struct pages {
    const float *row; /* of so many columns each */
    uint64_t count, columns;
    uint64_t gates; /* of a page, each of fusion and adapter */
} pages;

/* A part of the model that has gates, and the keys of what is told of them. */
typedef struct gated {
    int mean_at; /* column */
    const char *words, *mean, *deviation, *least, *largest, *median;
} gated;

#define GATED(column, name)                                                                                            \
    {                                                                                                                  \
        column, name " gate", name "_gate_mean", name "_gate_std", name "_gate_min", name "_gate_max",                 \
            name "_gate_median"                                                                                        \
    }

static double at(const pages *p, uint64_t page, int column)
{
    return (double)p->row[page * p->columns + (uint64_t)column];
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

static size_t add(pl_loss_metric *to, size_t n, const char *key, const char *words, double value, uint32_t uses)
{
    to[n] = (pl_loss_metric){key, words, words, 4, 3, uses, value};
    return n + 1;
}

/* Of the metric before it; where that is in the same line, without "its". */
static size_t add_its(pl_loss_metric *to, size_t n, const char *key, const char *words, double value, uint32_t uses)
{
    to[n] = (pl_loss_metric){key, words, words + strlen("its "), 4, 3, uses, value};
    return n + 1;
}

/* Gates are told where there are some: a part that the model has not got has a number below 0 in place of its mean. */
static bool has_gates(const pages *p, const gated *g) { return p->count && at(p, 0, g->mean_at) >= 0; }

static size_t add_gates(const pages *p, const gated *g, uint64_t gates, const pl_histogram *h, pl_loss_metric *to,
                        size_t n)
{
    double mean, deviation;
    spread_of(p, g->mean_at, gates, &mean, &deviation);
    n = add(to, n, g->mean, g->words, mean, SHOWN);
    n = add_its(to, n, g->least, "its min", (double)h->least, SHOWN);
    n = add_its(to, n, g->largest, "its max", (double)h->largest, SHOWN);
    n = add_its(to, n, g->median, "its median", pl_histogram_median(h), PL_METRIC_IN_FILE);
    return add_its(to, n, g->deviation, "its std", deviation, PL_METRIC_IN_FILE);
}

static size_t add_all_gates(const pages *p, const pl_histogram *h, pl_loss_metric *to, size_t n)
{
    static const gated parts[] = {GATED(PL_TOLD_FUSION + 1, "fusion"), GATED(PL_TOLD_ADAPTER + 1, "adapter"),
                                  GATED(PL_TOLD_PLANNER, "planner")};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (has_gates(p, &parts[i]))
            n = add_gates(p, &parts[i], parts[i].mean_at == PL_TOLD_PLANNER ? 1 : p->gates, h++, to, n);
    return n;
}

static size_t add_entropy(const pages *p, pl_loss_metric *to, size_t n)
{
    double all = 0;
    if (p->count == 0 || at(p, 0, PL_TOLD_WAYS) <= PL_TOLD_NO_WAY) return n;
    for (uint64_t i = 0; i < p->count; i++)
        all += pl_softmax_entropy(p->row + i * p->columns + PL_TOLD_WAYS, PL_TOLD_WAYS_MAX);
    return add(to, n, "path_entropy", "path entropy", all / (double)p->count, SHOWN);
}

static pages pages_of(const pl_data *data, const float *predictions, uint64_t count)
{
    const pl_reading *r = pl_reading_of(data);
    const uint64_t columns = r->setup.chooses        ? PL_TOLD_POLICY_COLUMNS
                             : r->setup.counts_pages ? PL_TOLD_NOISE_COLUMNS
                                                     : PL_TOLD_COLUMNS,
                   there = r->count[PL_PART_VALIDATION], rows = count / columns;
    return (pages){predictions, rows < there ? rows : there, columns, r->setup.gates};
}

/* Of a mean square over numbers from 0 to 1: the peak is 1. */
static double decibels(double squares, double numbers)
{
    return squares > 0 ? -10 * log10(squares / numbers) : INFINITY;
}

static size_t add_decibels(pl_loss_metric *to, size_t n, const char *key, const char *words, double value)
{
    if (!isfinite(value)) return n;
    to[n] = (pl_loss_metric){key, words, words, 2, 2, SHOWN, value};
    return n + 1;
}

/* Of pages the peak signal-to-noise ratio, by the mean square over all pixels of all of them. */
static size_t add_ratios(const pages *p, const pl_reading *r, pl_loss_metric *to, size_t n)
{
    const double side = r->setup.image_size, numbers = PL_COLOURS * side * side * (double)p->count;
    n = add_decibels(to, n, "psnr_noisy", "PSNR of noisy pages, dB", decibels(sum(p, PL_TOLD_NOISE), numbers));
    if (r->setup.chooses)
        n = add_decibels(to, n, "psnr_denoised", "of denoised ones", decibels(sum(p, PL_TOLD_DENOISED), numbers));
    return add_decibels(to, n, "psnr", "PSNR, dB", decibels(sum(p, PL_TOLD_NOISE_LEFT), numbers));
}

/* Of all pages the share that the policy leaves in their size and place, how much the denoiser counts, and how sure the
 * choices are: the entropy of all three, in nats. */
static size_t add_choices(const pages *p, pl_loss_metric *to, size_t n)
{
    double as_is = 0, strength = 0, entropy = 0;
    for (uint64_t i = 0; i < p->count; i++) {
        const pl_policy_choice c = pl_policy_choose(p->row + i * p->columns + PL_TOLD_POLICY);
        as_is += c.size == 0 && c.across == 0 && c.down == 0;
        strength += c.strength, entropy += c.entropy;
    }
    n = add(to, n, "as_is", "drawn as they are", share(as_is, (double)p->count), SHOWN);
    n = add(to, n, "strength", "strength", share(strength, (double)p->count), SHOWN);
    return add(to, n, "choice_entropy", "choice entropy", share(entropy, (double)p->count), SHOWN);
}

/* Of what is trained alone: 1 where it leaves features or pages as they came. */
static size_t measure_noise(const pages *p, const pl_reading *r, const pl_histogram *h, pl_loss_metric *to)
{
    static const gated adapter = GATED(PL_TOLD_NOISE_ADAPTER + 1, "adapter");
    const double left = share(sum(p, PL_TOLD_NOISE_LEFT), sum(p, PL_TOLD_NOISE));
    size_t n = add(to, 0, "noise_left", "noise left", left, SHOWN);
    if (r->setup.denoises) n = add_ratios(p, r, to, n);
    if (r->setup.chooses) n = add_choices(p, to, n);
    return has_gates(p, &adapter) ? add_gates(p, &adapter, p->gates, h, to, n) : n;
}

size_t pl_hybrid_measure(const pl_data *data, const pl_predicted *predicted, pl_loss_metric *to)
{
    const pages p = pages_of(data, predicted->row, predicted->count);
    size_t n = 0;
    const pl_reading *r = pl_reading_of(data);
    if (r->setup.counts_pages) return measure_noise(&p, r, predicted->histogram, to);
    n = add(to, n, "token_accuracy", "words read", share(sum(&p, PL_TOLD_RIGHT), sum(&p, PL_TOLD_WORDS)), SHOWN);
    n = add(to, n, "exact_accuracy", "pages read", share(sum(&p, PL_TOLD_ALL_RIGHT), (double)p.count), SHOWN);
    n = add(to, n, "q_halt_accuracy", "q_halt right", halts_rightly(&p), SHOWN);
    n = add_all_gates(&p, predicted->histogram, to, n);
    return add_entropy(&p, to, n);
}

pl_status pl_hybrid_keep_predictions(const pl_data *data, const float *predictions, uint64_t count, const char *path,
                                     pl_error *err)
{
    const pages p = pages_of(data, predictions, count);
    const pl_reading *r = pl_reading_of(data);
    if (r->setup.chooses) return pl_chosen_pages_write(path, r->page[PL_PART_VALIDATION], p.row, p.count, err);
    if (r->setup.counts_pages) return pl_cleaned_pages_write(path, r->page[PL_PART_VALIDATION], p.row, p.count, err);
    return pl_read_pages_write(path, r->page[PL_PART_VALIDATION], p.row, p.count, err);
}
