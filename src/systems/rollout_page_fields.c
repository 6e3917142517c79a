/* Fields as pictures: some states of a few operators. A field is read in strips of rows and made small meanwhile, so
 * memory does not depend on its size. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/narrow.h"
#include "base/units.h"
#include "systems/rollout_page.h"

enum { OPERATORS_MAX = 6, STATES_MAX = 6, TEXT = 96 };

/* ---- which ---- */

typedef struct chosen {
    uint32_t place[OPERATORS_MAX], count;
} chosen;

/* States of realisation 0 that can be shown of an operator; without trajectories, its initial field. */
static uint32_t states_of(const pl_rollout_page *p, uint32_t place)
{
    const uint64_t at[] = {place, 0, 0};
    if (p->d->setup.keeps_states) return pl_rollout_page_states(p, place, 0);
    return pl_block_reader_is_done(p->wish->results, pl_block_at(p->layout, PL_ROLLOUT_FIELDS, at));
}

static bool has(const chosen *c, uint32_t place)
{
    for (uint32_t i = 0; i < c->count; i++)
        if (c->place[i] == place) return true;
    return false;
}

/* The next operator of a policy that is finished (or, where not, has begun); false: there is none. */
static bool add_next(const pl_rollout_page *p, unsigned policy, bool finished, chosen *c)
{
    for (uint32_t i = 0; i < p->operators && c->count < OPERATORS_MAX; i++) {
        if (p->policy[i] != policy || p->done[i] != finished || has(c, i) || states_of(p, i) == 0) continue;
        c->place[c->count++] = i;
        return true;
    }
    return false;
}

static void choose(const pl_rollout_page *p, chosen *c)
{
    for (int finished = 1; finished >= 0; finished--)
        for (bool more = true; more;) {
            more = false;
            for (unsigned policy = 0; policy < PL_POLICY_COUNT; policy++) more |= add_next(p, policy, finished, c);
        }
}

static pl_status choose_one(const pl_rollout_page *p, chosen *c, pl_error *err)
{
    const uint64_t only = p->wish->only, first = p->d->setup.first;
    if (only < first || only - first >= p->operators)
        return pl_fail(err, PL_E_USAGE, "%s: there is no operator %" PRIu64 "; it has %" PRIu64 " to %" PRIu64,
                       p->wish->path, only, first, first + p->operators - 1);
    c->place[0] = (uint32_t)(only - first);
    c->count = states_of(p, c->place[0]) > 0;
    if (c->count) return PL_OK;
    return pl_fail(err, PL_E_DATA, "%s: no state of operator %" PRIu64 " is finished; let the run go on", p->wish->path,
                   only);
}

/* round(states^(k/5)) - 1 for k from 0 to 5, each once. */
static uint32_t choose_states(uint32_t states, uint32_t chosen_states[STATES_MAX])
{
    uint32_t count = 0;
    for (int k = 0; k < STATES_MAX; k++) {
        const double at = round(pow(states, (double)k / (STATES_MAX - 1))) - 1;
        const uint32_t t = at < 0 ? 0 : at >= states ? states - 1 : (uint32_t)at;
        if (count == 0 || t > chosen_states[count - 1]) chosen_states[count++] = t;
    }
    return count;
}

/* ---- pixels ---- */

typedef struct reader {
    const pl_rollout_page *p;
    uint32_t dataset, grid, side, halved; /* so many by so many numbers are a pixel */
    pl_dtype dtype;
    void *strip;                        /* as it lies in the file: `halved` rows */
    uint32_t state[STATES_MAX], states; /* of an operator, that are shown */
    float *pixel;                       /* [channels, states, side, side] */
    uint64_t *not_finite;               /* [channels, states] */
} reader;

static float number_of(const reader *r, size_t i)
{
    return r->dtype == PL_DTYPE_F16 ? pl_f32_of_f16(((const uint16_t *)r->strip)[i]) : ((const float *)r->strip)[i];
}

/* The mean; NaN where one of them is not finite. */
static float pixel_of(const reader *r, uint32_t rows, uint32_t x, uint64_t *not_finite)
{
    const uint32_t begin = x * r->halved, end = begin + r->halved < r->grid ? begin + r->halved : r->grid;
    double sum = 0;
    uint64_t bad = 0;
    for (uint32_t y = 0; y < rows; y++)
        for (uint32_t i = begin; i < end; i++) {
            const float v = number_of(r, (size_t)y * r->grid + i);
            if (isfinite(v))
                sum += v;
            else
                bad++;
        }
    *not_finite += bad;
    return bad ? NAN : (float)(sum / ((double)rows * (end - begin)));
}

/* The field whose first number is the `at`-th of the dataset. */
static pl_status read_field(reader *r, uint64_t at, float *pixel, uint64_t *not_finite, pl_error *err)
{
    const uint64_t bytes = pl_dtype_bytes(r->dtype);
    for (uint32_t y = 0; y < r->side; y++) {
        const uint32_t first = y * r->halved, left = r->grid - first, rows = left < r->halved ? left : r->halved;
        PL_TRY(pl_block_reader_read(r->p->wish->results, r->dataset, (at + (uint64_t)first * r->grid) * bytes, r->strip,
                                    (uint64_t)rows * r->grid * bytes, err));
        for (uint32_t x = 0; x < r->side; x++) pixel[(size_t)y * r->side + x] = pixel_of(r, rows, x, not_finite);
    }
    return PL_OK;
}

static uint64_t place_of(const reader *r, uint32_t place, uint32_t state, uint32_t channel)
{
    const pl_rollout_setup *o = &r->p->d->setup;
    const uint64_t row = o->keeps_states ? (uint64_t)place * o->realisations * o->states + state : place;
    return (row * PL_ROLLOUT_FIELD_CHANNELS + channel) * r->grid * r->grid;
}

static pl_status read_operator(reader *r, uint32_t place, pl_error *err)
{
    for (uint32_t channel = 0; channel < PL_ROLLOUT_FIELD_CHANNELS; channel++)
        for (uint32_t i = 0; i < r->states; i++) {
            const size_t n = (size_t)channel * r->states + i;
            r->not_finite[n] = 0;
            PL_TRY(read_field(r, place_of(r, place, r->state[i], channel), r->pixel + n * r->side * r->side,
                              &r->not_finite[n], err));
        }
    return PL_OK;
}

static void say_not_finite(const reader *r)
{
    uint64_t bad = 0, all = (uint64_t)PL_ROLLOUT_FIELD_CHANNELS * r->states * r->grid * r->grid;
    char count[32], of[32];
    for (uint32_t i = 0; i < PL_ROLLOUT_FIELD_CHANNELS * r->states; i++) bad += r->not_finite[i];
    if (bad)
        pl_doc_say(r->p->doc, PL_DOC_BAD, "%s of these %s numbers %s not finite: pink.",
                   pl_format_count(bad, count, sizeof count), pl_format_count(all, of, sizeof of),
                   bad == 1 ? "is" : "are");
}

static void draw_channels(const reader *r, uint32_t number, pl_str *out)
{
    char of[TEXT], name[TEXT];
    snprintf(of, sizeof of, "operator %" PRIu32, number);
    for (uint32_t channel = 0; channel < PL_ROLLOUT_FIELD_CHANNELS; channel++) {
        const size_t first = (size_t)channel * r->states;
        snprintf(name, sizeof name, "channel %" PRIu32, channel);
        pl_chart_draw_fields(&(pl_chart_fields){.of = of,
                                                .name = name,
                                                .each = "state",
                                                .side = r->side,
                                                .count = r->states,
                                                .number = r->state,
                                                .pixel = r->pixel + first * r->side * r->side,
                                                .not_finite = r->not_finite + first},
                             out);
    }
}

static pl_status add_operator(reader *r, uint32_t place, pl_error *err)
{
    const pl_rollout_page *p = r->p;
    pl_doc *d = p->doc;
    const uint32_t number = pl_rollout_page_number(p, place);
    r->states = choose_states(states_of(p, place), r->state);
    PL_TRY(read_operator(r, place, err));
    pl_doc_section_named(d, "Operator %" PRIu32 ", %s%s", number, pl_rollout_page_policy(p->policy[place]).name,
                         p->done[place] ? "" : ", not finished");
    pl_rollout_page_words(p, place, PL_ROLLOUT_WORDS_VARIED, pl_doc_paragraph(d, 0));
    pl_doc_paragraph_end(d);
    say_not_finite(r);
    draw_channels(r, number, pl_doc_drawing(d));
    pl_doc_drawing_end(d);
    pl_doc_section_end(d);
    return PL_OK;
}

/* ---- the section ---- */

static void begin_section(const reader *r, const chosen *c)
{
    pl_doc *d = r->p->doc;
    const bool keeps = r->p->d->setup.keeps_states, one = r->p->wish->only != PL_PAGE_EVERY;
    pl_doc_section_drawn(d, "Fields");
    if (!c->count) {
        pl_doc_say(d, 0, "No state is finished yet.");
        return;
    }
    pl_str *out = pl_doc_paragraph(d, 0);
    pl_str_append(out, one ? "The operator that was asked for, realisation 0."
                           : "Of each update policy in turn the next operator that is finished, else one that is "
                             "begun; at most six. Realisation 0.");
    pl_str_append(out, " A channel of an operator has one scale, from its least pixel shown to its largest.");
    pl_str_append(out, keeps ? " States: evenly in their logarithm, the first and the last finished one among them."
                             : " States are not stored (dataset.store: features), so there is the initial field "
                               "alone.");
    if (r->halved > 1)
        pl_str_printf(out, " A pixel is the mean of %" PRIu32 " × %" PRIu32 " numbers.", r->halved, r->halved);
    pl_doc_paragraph_end(d);
}

static void find_sizes(reader *r)
{
    const pl_rollout_data *d = r->p->d;
    r->grid = d->grid;
    r->halved = 1;
    while ((r->grid + r->halved - 1) / r->halved > PL_PICTURE_SIDE) r->halved *= 2;
    r->side = (r->grid + r->halved - 1) / r->halved;
    r->dataset = d->setup.keeps_states ? d->states_at : d->fields_at;
    r->dtype = r->p->layout->dataset[r->dataset].dtype;
}

static pl_status add_fields(reader *r, const chosen *c, pl_error *err)
{
    const size_t pictures = (size_t)PL_ROLLOUT_FIELD_CHANNELS * STATES_MAX;
    r->strip = pl_alloc((uint64_t)r->halved * r->grid, pl_dtype_bytes(r->dtype));
    r->pixel = pl_alloc((uint64_t)r->side * r->side * pictures, sizeof *r->pixel);
    r->not_finite = pl_alloc(pictures, sizeof *r->not_finite);
    if (!r->strip || !r->pixel || !r->not_finite) return pl_fail(err, PL_E_NOMEM, "no memory for the pictures");
    begin_section(r, c);
    for (uint32_t i = 0; i < c->count; i++) PL_TRY(add_operator(r, c->place[i], err));
    pl_doc_section_end(r->p->doc);
    return PL_OK;
}

pl_status pl_rollout_page_fields(const pl_rollout_page *p, pl_error *err)
{
    reader r = {.p = p};
    chosen c = {.count = 0};
    if (p->wish->only == PL_PAGE_EVERY)
        choose(p, &c);
    else
        PL_TRY(choose_one(p, &c, err));
    find_sizes(&r);
    pl_status status = add_fields(&r, &c, err);
    pl_free(r.strip);
    pl_free(r.pixel);
    pl_free(r.not_finite);
    return status;
}
