/* Fields as pictures: some states of a few operators. A field is read in strips of rows and made small meanwhile, so
 * memory does not depend on its size. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/narrow.h"
#include "systems/rollout_page.h"

enum { OPERATORS_MAX = 6, TEXT = 512 };

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
static uint32_t choose_states(uint32_t states, uint32_t chosen_states[PL_PICTURE_STATES])
{
    uint32_t count = 0;
    for (int k = 0; k < PL_PICTURE_STATES; k++) {
        const double at = round(pow(states, (double)k / (PL_PICTURE_STATES - 1))) - 1;
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
    void *strip;         /* as it lies in the file: `halved` rows */
    pl_html_fields page; /* of an operator */
    float *pixel;
    uint64_t *not_finite;
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
    const uint32_t states = r->page.states;
    for (uint32_t channel = 0; channel < PL_ROLLOUT_FIELD_CHANNELS; channel++)
        for (uint32_t i = 0; i < states; i++) {
            const size_t n = (size_t)channel * states + i;
            r->not_finite[n] = 0;
            PL_TRY(read_field(r, place_of(r, place, r->page.state[i], channel), r->pixel + n * r->side * r->side,
                              &r->not_finite[n], err));
        }
    return PL_OK;
}

static pl_status put_operator(reader *r, uint32_t place, pl_error *err)
{
    uint32_t state[PL_PICTURE_STATES], number = pl_rollout_page_number(r->p, place);
    const uint32_t finished = states_of(r->p, place);
    char title[TEXT];
    pl_str words = {0};
    snprintf(title, sizeof title, "Operator %" PRIu32 ", %s%s", number,
             pl_html_policy_name((pl_update_policy)r->p->policy[place]), r->p->done[place] ? "" : ", not finished");
    pl_rollout_page_words(r->p, place, PL_ROLLOUT_WORDS_VARIED, &words);
    r->page = (pl_html_fields){.title = title,
                               .words = pl_str_text(&words),
                               .number = number,
                               .side = r->side,
                               .whole = r->grid,
                               .states = choose_states(finished, state),
                               .channels = PL_ROLLOUT_FIELD_CHANNELS,
                               .state = state,
                               .pixel = r->pixel,
                               .not_finite = r->not_finite};
    pl_status status = read_operator(r, place, err);
    if (status == PL_OK) pl_html_field_pictures(&r->page, r->p->out);
    r->p->out->failed |= words.failed;
    pl_str_deinit(&words);
    return status;
}

/* ---- the section ---- */

static void begin_section(const reader *r, const chosen *c)
{
    char text[TEXT], halved[64] = "";
    const bool keeps = r->p->d->setup.keeps_states, one = r->p->wish->only != PL_PAGE_EVERY;
    if (r->halved > 1)
        snprintf(halved, sizeof halved, " A pixel is the mean of %" PRIu32 " × %" PRIu32 " numbers.", r->halved,
                 r->halved);
    snprintf(
        text, sizeof text, "%s%s A channel of an operator has one scale, from its least pixel shown to its largest.%s",
        one        ? "The operator that was asked for, realisation 0."
        : c->count ? "Of each update policy in turn the next operator that is finished, else one that is begun; at "
                     "most six. Realisation 0."
                   : "",
        keeps ? " States: evenly in their logarithm, the first and the last finished one among them."
              : " States "
                "are not stored (dataset.store: features), so there is the initial field alone.",
        halved);
    pl_html_section("Fields", c->count ? text : "No state is finished yet.", r->p->out);
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

static pl_status put_fields(reader *r, const chosen *c, pl_error *err)
{
    const size_t pictures = (size_t)PL_ROLLOUT_FIELD_CHANNELS * PL_PICTURE_STATES;
    r->strip = pl_alloc((uint64_t)r->halved * r->grid, pl_dtype_bytes(r->dtype));
    r->pixel = pl_alloc((uint64_t)r->side * r->side * pictures, sizeof *r->pixel);
    r->not_finite = pl_alloc(pictures, sizeof *r->not_finite);
    if (!r->strip || !r->pixel || !r->not_finite) return pl_fail(err, PL_E_NOMEM, "no memory for the pictures");
    begin_section(r, c);
    for (uint32_t i = 0; i < c->count; i++) PL_TRY(put_operator(r, c->place[i], err));
    pl_str_append(r->p->out, "</section>\n");
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
    pl_status status = put_fields(&r, &c, err);
    pl_free(r.strip);
    pl_free(r.pixel);
    pl_free(r.not_finite);
    return status;
}
