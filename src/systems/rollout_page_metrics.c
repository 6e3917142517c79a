/* What is measured of the states, over all finished rollouts of a policy: quantiles at some states.
 *
 * A rollout is a realisation of an operator all of whose states are finished. Its values lie together in the file and
 * are read at once; a table takes them by state, as many states at a time as there is room for, and all rollouts are
 * read again for the next ones. Quantiles are those of NumPy's default: between the two numbers next to the place
 * q (n - 1), by a straight line. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/units.h"
#include "systems/rollout_page.h"

enum { STATES_MAX = 101, TABLE_FLOATS = 4 << 20, ROWS = 11, TEXT = 64 };

typedef struct table {
    const pl_rollout_page *p;
    uint32_t dataset;                      /* of the metric */
    uint64_t series[PL_POLICY_COUNT], all; /* rollouts */
    uint32_t state[STATES_MAX], states;    /* that are shown */
    uint32_t at_once;                      /* of these */
    uint64_t values[PL_POLICY_COUNT], not_finite[PL_POLICY_COUNT];
    float *value;                 /* [at_once, rollouts by policy] */
    float *row;                   /* a rollout */
    pl_chart_quantiles *quantile; /* [PL_POLICY_COUNT, states] */
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

/* Brings the k-th smallest to its place, what is less before it, what is larger after it (Hoare's selection). */
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

static pl_chart_quantiles measure(float *v, uint64_t n)
{
    uint64_t finite = 0;
    for (uint64_t i = 0; i < n; i++)
        if (isfinite(v[i])) v[finite++] = v[i];
    return (pl_chart_quantiles){quantile(v, finite, 0.1), quantile(v, finite, 0.5), quantile(v, finite, 0.9), finite};
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

static const pl_chart_quantiles *quantiles_of(const table *t, unsigned policy)
{
    return t->quantile + (size_t)policy * t->states;
}

static void draw_metric(const table *t, const char *title, uint32_t first, pl_str *out)
{
    pl_chart_band band[PL_POLICY_COUNT];
    char name[PL_POLICY_COUNT][TEXT], count[32];
    pl_chart_bands b = {
        .title = title, .axis = "state", .place = t->state, .places = t->states, .first = first, .band = band};
    for (unsigned k = 0; k < PL_POLICY_COUNT; k++) {
        if (!t->series[k]) continue;
        const pl_chart_key key = pl_rollout_page_policy(k);
        snprintf(name[k], TEXT, "%s, %s rollout%s", key.name, pl_format_count(t->series[k], count, sizeof count),
                 pl_plural(t->series[k]));
        band[b.count++] = (pl_chart_band){{key.class_name, name[k]}, quantiles_of(t, k)};
    }
    pl_chart_draw_bands(&b, out);
}

static void say_not_finite(const table *t)
{
    char bad[32], all[32];
    for (unsigned k = 0; k < PL_POLICY_COUNT; k++)
        if (t->not_finite[k])
            pl_doc_say(t->p->doc, PL_DOC_BAD, "%s: %s of %s values %s not finite and left out.",
                       pl_rollout_page_policy(k).name, pl_format_count(t->not_finite[k], bad, sizeof bad),
                       pl_format_count(t->values[k] + t->not_finite[k], all, sizeof all),
                       t->not_finite[k] == 1 ? "is" : "are");
}

static void add_row(const table *t, uint32_t i, unsigned policy)
{
    const pl_chart_quantiles *q = &quantiles_of(t, policy)[i];
    pl_doc *d = t->p->doc;
    pl_doc_row(d, 0);
    pl_doc_words(d, "state %" PRIu32 ", %s", t->state[i], pl_rollout_page_policy(policy).name);
    pl_doc_real(d, q->low);
    pl_doc_real(d, q->median);
    pl_doc_real(d, q->high);
    pl_doc_count(d, q->values);
    pl_doc_row_end(d);
}

static void add_numbers(const table *t, uint32_t first)
{
    static const pl_doc_column columns[] = {{NULL, ""},
                                            {NULL, "10 %", PL_DOC_NUMBER, 6},
                                            {NULL, "median", PL_DOC_NUMBER, 6},
                                            {NULL, "90 %", PL_DOC_NUMBER, 6},
                                            {NULL, "values", PL_DOC_COUNT}};
    const uint32_t drawn = t->states > first ? t->states - first : 0, rows = drawn < ROWS ? drawn : ROWS;
    if (!rows) return;
    pl_doc_section_folded(t->p->doc, "as numbers");
    pl_doc_table(t->p->doc, NULL, columns, sizeof columns / sizeof *columns);
    for (uint32_t r = 0; r < rows; r++)
        for (unsigned k = 0; k < PL_POLICY_COUNT; k++)
            if (t->series[k]) add_row(t, first + (rows > 1 ? r * (drawn - 1) / (rows - 1) : 0), k);
    pl_doc_table_end(t->p->doc);
    pl_doc_section_end(t->p->doc);
}

static void add_metric(const table *t, const char *title, const char *words, uint32_t first)
{
    pl_doc *d = t->p->doc;
    pl_doc_section_half(d, title);
    pl_doc_say(d, 0, "%s", words);
    draw_metric(t, title, first, pl_doc_drawing(d));
    pl_doc_drawing_end(d);
    say_not_finite(t);
    add_numbers(t, first);
    pl_doc_section_end(d);
}

static pl_status add_metrics(table *t, pl_error *err)
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
        add_metric(t, metric[k].title, metric[k].words, k == PL_FIELD_AUTOCORRELATION);
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
    pl_doc_section(p->doc, "Metrics over time, by policy");
    pl_doc_say(p->doc, 0, "%s",
               t->all ? "The line is the median, the band the middle 80 %, over all finished realisations of all "
                        "operators. Values that are not finite are left out and counted."
                      : "No realisation is finished yet.");
    pl_status status = t->all ? add_metrics(t, err) : PL_OK;
    pl_doc_section_end(p->doc);
    pl_free(t->value);
    pl_free(t->row);
    pl_free(t->quantile);
    pl_free(t);
    return status;
}
