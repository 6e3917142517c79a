/* What is measured of the states, over all finished rollouts of a policy: quantiles at some states.
 *
 * A rollout is a realisation of an operator all of whose states are finished. Its values lie together in the file and
 * are read at once; a table takes them by state, as many states at a time as there is room for, and all rollouts are
 * read again for the next ones. Quantiles are those of NumPy's default: between the two numbers beside the place
 * q (n - 1), by a straight line. */
#include <math.h>

#include "base/alloc.h"
#include "systems/rollout_page.h"

enum { STATES_MAX = 101, TABLE_FLOATS = 4 << 20 };

typedef struct table {
    const pl_rollout_page *p;
    uint32_t dataset;                      /* of the metric */
    uint64_t series[PL_POLICY_COUNT], all; /* rollouts */
    uint32_t state[STATES_MAX], states;    /* that are shown */
    uint32_t at_once;                      /* of these */
    uint64_t values[PL_POLICY_COUNT], not_finite[PL_POLICY_COUNT];
    float *value;                /* [at_once, rollouts by policy] */
    float *row;                  /* a rollout */
    pl_html_quantiles *quantile; /* [PL_POLICY_COUNT, states] */
} table;

static bool is_series(const pl_rollout_page *p, uint32_t place, uint32_t realisation)
{
    return p->done[place] || pl_rollout_page_states(p, place, realisation) == p->d->setup.states;
}

static void count_series(table *t)
{
    const pl_rollout_page *p = t->p;
    for (uint32_t i = 0; i < p->operators; i++)
        for (uint32_t m = 0; m < p->d->setup.realisations; m++)
            if (is_series(p, i, m)) t->series[p->policy[i]]++, t->all++;
}

static void choose_states(table *t)
{
    const uint64_t last = t->p->d->setup.states - 1;
    t->states = last < STATES_MAX ? (uint32_t)last + 1 : STATES_MAX;
    for (uint32_t i = 0; i < t->states; i++)
        t->state[i] = t->states > 1 ? (uint32_t)((i * last + (t->states - 1) / 2) / (t->states - 1)) : 0;
}

/* ---- quantiles ---- */

static void swap(float *a, float *b)
{
    const float kept = *a;
    *a = *b, *b = kept;
}

/* Brings the k-th smallest to its place, what is less before it, what is larger behind it (Hoare's selection). */
static void select_kth(float *v, uint64_t n, uint64_t k)
{
    int64_t low = 0, high = (int64_t)n - 1, at = (int64_t)k;
    while (low < high) {
        const float pivot = v[low + (high - low) / 2];
        int64_t i = low, j = high;
        while (i <= j) {
            while (v[i] < pivot) i++;
            while (v[j] > pivot) j--;
            if (i <= j) swap(&v[i++], &v[j--]);
        }
        if (at <= j)
            high = j;
        else if (at >= i)
            low = i;
        else
            return;
    }
}

static double quantile(float *v, uint64_t n, double q)
{
    if (n == 0) return NAN;
    const double place = q * (double)(n - 1);
    const uint64_t k = (uint64_t)place;
    select_kth(v, n, k);
    if (k + 1 == n) return v[k];
    float next = v[k + 1];
    for (uint64_t i = k + 2; i < n; i++)
        if (v[i] < next) next = v[i];
    return v[k] + (place - (double)k) * ((double)next - v[k]);
}

static pl_html_quantiles measure(float *v, uint64_t n)
{
    uint64_t finite = 0;
    for (uint64_t i = 0; i < n; i++)
        if (isfinite(v[i])) v[finite++] = v[i];
    return (pl_html_quantiles){quantile(v, finite, 0.1), quantile(v, finite, 0.5), quantile(v, finite, 0.9), finite};
}

/* ---- reading ---- */

static void count_values(table *t, unsigned policy)
{
    for (uint32_t i = 0; i < t->p->d->setup.states; i++)
        if (isfinite(t->row[i]))
            t->values[policy]++;
        else
            t->not_finite[policy]++;
}

static pl_status read_series(table *t, uint32_t place, uint32_t realisation, pl_error *err)
{
    const uint64_t bytes = (uint64_t)t->p->d->setup.states * sizeof(float);
    const uint64_t row = (uint64_t)place * t->p->d->setup.realisations + realisation;
    return pl_block_reader_read(t->p->wish->results, t->dataset, row * bytes, t->row, bytes, err);
}

/* States first … end - 1 of those shown, of all rollouts: those of a policy lie together. */
static pl_status fill(table *t, uint32_t first, uint32_t end, pl_error *err)
{
    uint64_t next[PL_POLICY_COUNT] = {0};
    for (int k = 1; k < PL_POLICY_COUNT; k++) next[k] = next[k - 1] + t->series[k - 1];
    for (uint32_t i = 0; i < t->p->operators; i++)
        for (uint32_t m = 0; m < t->p->d->setup.realisations; m++) {
            const unsigned policy = t->p->policy[i];
            if (!is_series(t->p, i, m)) continue;
            PL_TRY(read_series(t, i, m, err));
            if (first == 0) count_values(t, policy);
            for (uint32_t j = first; j < end; j++) t->value[(j - first) * t->all + next[policy]] = t->row[t->state[j]];
            next[policy]++;
        }
    return PL_OK;
}

static pl_status read_metric(table *t, pl_error *err)
{
    for (int k = 0; k < PL_POLICY_COUNT; k++) t->values[k] = t->not_finite[k] = 0;
    for (uint32_t first = 0; first < t->states; first += t->at_once) {
        const uint32_t end = first + t->at_once < t->states ? first + t->at_once : t->states;
        PL_TRY(fill(t, first, end, err));
        for (uint32_t j = first; j < end; j++) {
            float *v = t->value + (j - first) * t->all;
            for (int k = 0; k < PL_POLICY_COUNT; v += t->series[k++])
                t->quantile[(size_t)k * t->states + j] = measure(v, t->series[k]);
        }
    }
    return PL_OK;
}

/* ---- the section ---- */

static void put_metric(const table *t, const char *title, const char *words, size_t first)
{
    pl_html_band band[PL_POLICY_COUNT];
    pl_html_bands b = {
        .title = title, .words = words, .state = t->state, .states = t->states, .first = first, .band = band};
    for (int k = 0; k < PL_POLICY_COUNT; k++)
        if (t->series[k])
            band[b.count++] = (pl_html_band){.policy = (pl_update_policy)k,
                                             .series = t->series[k],
                                             .values = t->values[k],
                                             .not_finite = t->not_finite[k],
                                             .at = t->quantile + (size_t)k * t->states};
    pl_html_band_chart(&b, t->p->out);
}

static pl_status put_metrics(table *t, pl_error *err)
{
    static const struct {
        const char *title, *words;
    } metric[PL_FIELD_METRICS] = {
        [PL_FIELD_ENERGY] = {"Energy", "the sum of the squares of a state"},
        [PL_FIELD_ENTROPY] = {"Entropy", "in nats, of a histogram of 50 bins"},
        [PL_FIELD_AUTOCORRELATION] = {"Autocorrelation", "of a state with the one before; the first has none"},
        [PL_FIELD_VARIANCE] = {"Variance", "of the numbers of a state"},
        [PL_FIELD_MEAN_MAGNITUDE] = {"Mean magnitude", "of the numbers of a state"},
    };
    const uint64_t at_once = TABLE_FLOATS / t->all;
    t->at_once = at_once == 0 ? 1 : at_once < t->states ? (uint32_t)at_once : t->states;
    t->value = pl_alloc(t->all * t->at_once, sizeof *t->value);
    t->row = pl_alloc(t->p->d->setup.states, sizeof *t->row);
    t->quantile = pl_alloc((uint64_t)PL_POLICY_COUNT * t->states, sizeof *t->quantile);
    if (!t->value || !t->row || !t->quantile) return pl_fail(err, PL_E_NOMEM, "no memory for the metrics");
    for (uint32_t k = 0; k < PL_FIELD_METRICS; k++) {
        t->dataset = t->p->d->metrics_at + k;
        PL_TRY(read_metric(t, err));
        put_metric(t, metric[k].title, metric[k].words, k == PL_FIELD_AUTOCORRELATION);
    }
    return PL_OK;
}

pl_status pl_rollout_page_metrics(const pl_rollout_page *p, pl_error *err)
{
    table *t = pl_alloc(1, sizeof *t);
    if (!t) return pl_fail(err, PL_E_NOMEM, "no memory for the metrics");
    t->p = p;
    count_series(t);
    choose_states(t);
    pl_html_section("Metrics over time, by policy",
                    t->all ? "The line is the median, the band the middle 80 %, over all finished realisations of all "
                             "operators. Values that are not finite are left out and counted."
                           : "No realisation is finished yet.",
                    p->out);
    pl_str_append(p->out, "<div class='bands'>\n");
    pl_status status = t->all ? put_metrics(t, err) : PL_OK;
    pl_str_append(p->out, "</div></section>\n");
    pl_free(t->value);
    pl_free(t->row);
    pl_free(t->quantile);
    pl_free(t);
    return status;
}
