/* The page about results of rollouts: what they are, how far they are, and what exists so far. */
#include "systems/rollout_page.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/units.h"
#include "config/schema.h"

enum { TEXT = 96 };

/* ---- what is finished ---- */

static bool is_done(const pl_rollout_page *p, uint32_t kind, uint64_t place, uint64_t realisation, uint64_t state)
{
    const uint64_t at[] = {place, realisation, state};
    return pl_block_reader_is_done(p->wish->results, pl_block_at(p->layout, kind, at));
}

uint32_t pl_rollout_page_states(const pl_rollout_page *p, uint32_t place, uint32_t realisation)
{
    const uint32_t states = p->d->setup.states, piece = p->d->setup.piece;
    uint32_t t = 0;
    while (t < states && is_done(p, PL_ROLLOUT_STATES, place, realisation, t)) t += piece;
    return t < states ? t : states;
}

static bool is_operator_done(const pl_rollout_page *p, uint32_t place)
{
    if (!is_done(p, PL_ROLLOUT_FIELDS, place, 0, 0)) return false;
    if (p->d->setup.features && !is_done(p, PL_ROLLOUT_FEATURES, place, 0, 0)) return false;
    for (uint32_t m = 0; m < p->d->setup.realisations; m++)
        if (pl_rollout_page_states(p, place, m) < p->d->setup.states) return false;
    return true;
}

static pl_status find_operators(pl_rollout_page *p, pl_error *err)
{
    p->policy = pl_alloc(p->operators, 1);
    p->done = pl_alloc(p->operators, 1);
    if (!p->policy || !p->done)
        return pl_fail(err, PL_E_NOMEM, "no memory for a page about %u operators", p->operators);
    for (uint32_t i = 0; i < p->operators; i++) {
        const double policy = pl_rollout_value(p->d, pl_rollout_page_number(p, i), PL_DIMENSION_UPDATE_POLICY);
        p->policy[i] = (uint8_t)pl_rollout_choice((float)policy, PL_POLICY_COUNT);
        p->finished += p->done[i] = is_operator_done(p, i);
    }
    return PL_OK;
}

/* ---- an operator in words ---- */

bool pl_rollout_page_varies(const pl_dimension *d)
{
    uint32_t used = 0;
    double sum = 0;
    if (d->type == PL_DIMENSION_BOOLEAN) return true;
    if (d->type != PL_DIMENSION_CHOICE) return d->low < d->high;
    for (uint32_t i = 0; i < d->choices; i++) sum += d->weight[i];
    for (uint32_t i = 0; i < d->choices; i++) used += sum <= 0 || d->weight[i] > 0;
    return used > 1;
}

static const pl_config_key *choices_of(const pl_rollout_page *p, const char *name)
{
    for (int i = 0; i < PL_CONFIG_DIMENSION_COUNT; i++) {
        char path[128];
        const pl_config_dimension d = pl_config_dimension_of(p->config, (pl_config_dimension_id)i);
        if (strcmp(d.name, name) != 0) continue;
        snprintf(path, sizeof path, "%s.choices", d.path);
        return pl_config_find(path);
    }
    return NULL;
}

const char *pl_rollout_page_word(const pl_rollout_page *p, uint32_t dimension, uint32_t choice)
{
    const pl_config_key *key = choices_of(p, p->d->space.dimension[dimension].name);
    const pl_config_list *list = key ? pl_config_value_of(p->config, key) : NULL;
    if (!key || !key->names || (int64_t)choice >= list->count) return NULL;
    const double word = list->item[choice];
    return word >= 0 && word < (double)key->name_count ? key->names[(size_t)word] : NULL;
}

static void say_value(const pl_rollout_page *p, uint32_t k, double value, pl_str *out)
{
    const pl_dimension *d = &p->d->space.dimension[k];
    for (uint32_t i = 0; d->type == PL_DIMENSION_CHOICE && i < d->choices; i++) {
        const char *word = d->choice[i] == value ? pl_rollout_page_word(p, k, i) : NULL;
        if (!word) continue;
        pl_str_printf(out, "%s %s", d->name, word);
        return;
    }
    pl_str_printf(out, "%s %.4g", d->name, value);
}

void pl_rollout_page_words(const pl_rollout_page *p, uint32_t place, pl_rollout_words which, pl_str *out)
{
    const pl_space *space = &p->d->space;
    const char *comma = "";
    double value[PL_SPACE_DIMENSIONS];
    pl_space_point(space, pl_rollout_page_number(p, place), value, NULL);
    for (uint32_t k = 0; k < space->dimensions; k++) {
        const pl_dimension *d = &space->dimension[k];
        if (which == PL_ROLLOUT_WORDS_SHAPE ? !d->is_shape : !pl_rollout_page_varies(d)) continue;
        pl_str_append(out, comma);
        say_value(p, k, value[k], out);
        comma = ", ";
    }
}

/* ---- what it is ---- */

static void add_numbers(const pl_rollout_page *p)
{
    const pl_rollout_setup *o = &p->d->setup;
    pl_doc *d = p->doc;
    char a[32], b[32];
    pl_system_show_fact(d, "operators", "%s, each from one initial field, in %" PRIu32 " realisation%s",
                        pl_format_count(p->operators, a, sizeof a), o->realisations, pl_plural(o->realisations));
    if (p->layout->whole)
        pl_system_show_fact(d, "part", "operators %" PRIu32 " to %" PRIu32 " of %s (a part of a job)", o->first,
                            o->first + p->operators - 1, pl_format_count(o->operators, a, sizeof a));
    pl_system_show_fact(d, "states", "%s of %" PRIu32 " × %" PRIu32 " pixels, %d channels; %s",
                        pl_format_count(o->states, a, sizeof a), p->d->grid, p->d->grid, PL_ROLLOUT_FIELD_CHANNELS,
                        o->keeps_states ? pl_dtype_name(o->state_dtype) : "not stored, only what is measured of them");
    pl_system_show_fact(d, "finished blocks", "%s of %s, form %s",
                        pl_format_count(pl_block_reader_done(p->wish->results), a, sizeof a),
                        pl_format_count(pl_block_count(p->layout), b, sizeof b),
                        pl_block_form_name(pl_block_reader_form(p->wish->results)));
}

static void add_facts(const pl_rollout_page *p)
{
    pl_doc_section(p->doc, "What it is");
    pl_system_show_facts(p->doc);
    pl_system_show_fact(p->doc, "results", "%s", p->wish->path);
    pl_system_show_key(p->doc, p->config, "model", "model.arch");
    pl_system_show_key(p->doc, p->config, "precision of the network", "simulation.precision");
    pl_system_show_key(p->doc, p->config, "instruction set", "run.isa");
    add_numbers(p);
    pl_system_show_key(p->doc, p->config, "dt of the residual policy", "simulation.update.dt");
    pl_system_show_key(p->doc, p->config, "alpha of the convex policy", "simulation.update.alpha");
    pl_system_show_key(p->doc, p->config, "post-process", "simulation.update.post_process");
    pl_doc_table_end(p->doc);
    pl_system_show_keys(p->doc, p->config, PL_CONFIG_BY_ROLLOUT);
    pl_doc_section_end(p->doc);
}

/* ---- the head ---- */

static uint64_t bytes_of(const pl_rollout_page *p, bool finished)
{
    uint64_t sum = 0, offset, bytes;
    for (uint64_t block = 0, blocks = pl_block_count(p->layout); block < blocks; block++)
        for (uint32_t i = 0; i < p->layout->datasets; i++)
            if ((!finished || pl_block_reader_is_done(p->wish->results, block)) &&
                pl_block_piece(p->layout, block, i, &offset, &bytes))
                sum += bytes;
    return sum;
}

static void add_head(const pl_rollout_page *p)
{
    char title[TEXT], a[32], b[32];
    const bool is_whole = pl_block_reader_done(p->wish->results) == pl_block_count(p->layout);
    const uint64_t done = bytes_of(p, true), all = bytes_of(p, false);
    snprintf(title, sizeof title, "Rollouts of %s operator%s", pl_format_count(p->operators, a, sizeof a),
             pl_plural(p->operators));
    pl_doc_title(p->doc, NULL, "results", title);
    if (is_whole)
        pl_doc_say(p->doc, 0, "All operators are finished.");
    else
        pl_doc_say(p->doc, PL_DOC_BAD,
                   "Not all is finished: %s of %s operators, %.1f %% of the bytes. What is not finished is not shown.",
                   pl_format_count(p->finished, a, sizeof a), pl_format_count(p->operators, b, sizeof b),
                   all ? 100 * (double)done / (double)all : 100);
    pl_doc_card(p->doc, pl_format_count(p->finished, a, sizeof a), "of %s operator%s finished",
                pl_format_count(p->operators, b, sizeof b), pl_plural(p->operators));
    pl_doc_card(p->doc, pl_format_count(p->d->setup.states, a, sizeof a),
                "state%s of each of %" PRIu32 " realisation%s", pl_plural(p->d->setup.states), p->d->setup.realisations,
                pl_plural(p->d->setup.realisations));
    pl_doc_card(p->doc, pl_format_bytes(done, a, sizeof a), "of %s of results", pl_format_bytes(all, b, sizeof b));
}

/* ---- all of it ---- */

static bool same_dataset(const pl_block_dataset *a, const pl_block_dataset *b)
{
    bool same = strcmp(a->name, b->name) == 0 && a->dtype == b->dtype && a->rank == b->rank && a->kind == b->kind;
    for (uint32_t i = 0; same && i < a->rank; i++) same = a->shape[i] == b->shape[i];
    return same;
}

static bool same_kind(const pl_block_kind *a, const pl_block_kind *b)
{
    bool same = strcmp(a->name, b->name) == 0 && a->axes == b->axes;
    for (uint32_t i = 0; same && i < a->axes; i++)
        same = a->axis[i].extent == b->axis[i].extent && a->axis[i].step == b->axis[i].step;
    return same;
}

/* What is read below relies on the config: the file must match it. */
static pl_status check_layout(const pl_rollout_page *p, pl_error *err)
{
    const pl_block_layout *a = p->layout, *b = &p->d->layout;
    bool same = a->datasets == b->datasets && a->kinds == b->kinds;
    for (uint32_t i = 0; same && i < a->datasets; i++) same = same_dataset(&a->dataset[i], &b->dataset[i]);
    for (uint32_t i = 0; same && i < a->kinds; i++) same = same_kind(&a->kind[i], &b->kind[i]);
    if (same) return PL_OK;
    return pl_fail(err, PL_E_DATA, "%s: what it holds is not what its config says; another version made it",
                   p->wish->path);
}

static pl_status write_parts(pl_rollout_page *p, pl_error *err)
{
    PL_TRY(check_layout(p, err));
    PL_TRY(find_operators(p, err));
    add_head(p);
    add_facts(p);
    PL_TRY(pl_rollout_page_fields(p, err));
    PL_TRY(pl_rollout_page_metrics(p, err));
    PL_TRY(pl_rollout_page_coverage(p, err));
    pl_rollout_page_shapes(p);
    return PL_OK;
}

/* The operators are those of the file, which may be only a part of the job. */
static pl_status open_data(const pl_config *c, const pl_block_layout *layout, pl_rollout_data **d, pl_error *err)
{
    pl_rollout_reading *r = pl_alloc(1, sizeof *r);
    if (!r) return pl_fail(err, PL_E_NOMEM, "no memory for the operators");
    pl_status status = pl_rollout_read(c, r, err);
    const uint64_t count = layout->kinds ? layout->kind[0].axis[0].extent : 0, all = r->setup.operators;
    if (status == PL_OK && (count == 0 || layout->first > all || count > all - layout->first))
        status = pl_fail(err, PL_E_DATA,
                         "the results are not those of %" PRIu64 " operators; another version made them", all);
    r->setup.first = (uint32_t)layout->first;
    r->setup.count = (uint32_t)count;
    if (status == PL_OK) status = pl_rollout_data_open(&r->setup, d, err);
    pl_rollout_reading_deinit(r);
    pl_free(r);
    return status;
}

pl_status pl_rollout_page_write(const pl_config *c, const pl_page_wish *wish, pl_doc *doc, pl_error *err)
{
    pl_rollout_data *d;
    pl_rollout_page p = {.config = c, .wish = wish, .layout = pl_block_reader_layout(wish->results), .doc = doc};
    PL_TRY(open_data(c, p.layout, &d, err));
    p.d = d;
    p.operators = d->setup.count;
    pl_status status = write_parts(&p, err);
    pl_free(p.policy);
    pl_free(p.done);
    pl_data_close(&d->data);
    return status;
}
