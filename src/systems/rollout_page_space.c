/* Where the operators lie in the parameter space, and what their shapes took. */
#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "systems/rollout_page.h"

/* ---- coverage ---- */

static void fill_choices(const pl_rollout_page *p, uint32_t k, pl_html_dimension *to)
{
    static const char *const truth[] = {"false", "true"};
    const pl_dimension *d = &p->d->space.dimension[k];
    double sum = 0;
    to->choices = d->type == PL_DIMENSION_BOOLEAN ? 2 : d->choices;
    for (uint32_t i = 0; i < d->choices; i++) sum += d->weight[i];
    for (uint32_t i = 0; i < to->choices; i++) {
        const bool is_truth = d->type == PL_DIMENSION_BOOLEAN;
        to->choice[i] = is_truth ? i : d->choice[i];
        to->word[i] = is_truth ? truth[i] : pl_rollout_page_word(p, k, i);
        to->weight[i] = !is_truth && sum > 0 ? d->weight[i] : 1.0 / to->choices;
    }
}

static pl_html_dimension dimension_of(const pl_rollout_page *p, uint32_t k)
{
    const pl_dimension *d = &p->d->space.dimension[k];
    pl_html_dimension to = {.name = d->name, .log_scale = d->log_scale, .low = d->low, .high = d->high, .column = k};
    to.is_whole = d->type == PL_DIMENSION_INTEGER;
    if (d->type == PL_DIMENSION_CHOICE || d->type == PL_DIMENSION_BOOLEAN) fill_choices(p, k, &to);
    return to;
}

/* Of the whole sequence, as the config's limits have it; one point is never even. */
static pl_status measure_quality(const pl_rollout_page *p, pl_html_space *s, pl_error *err)
{
    const pl_rollout_setup *o = &p->d->setup;
    pl_quality q = {NAN, NAN};
    s->points = o->operators;
    s->discrepancy = s->correlation = NAN;
    if (o->operators < 2) return PL_OK;
    void *scratch = pl_alloc(1, pl_quality_bytes(p->d->space.dimensions, o->operators));
    if (!scratch) return pl_fail(err, PL_E_NOMEM, "no memory to measure how even the points are");
    pl_quality_measure(&p->d->space.sobol, o->operators, scratch, &q);
    pl_free(scratch);
    s->discrepancy = q.discrepancy;
    s->correlation = q.correlation;
    return PL_OK;
}

pl_status pl_rollout_page_coverage(const pl_rollout_page *p, pl_error *err)
{
    const pl_space *space = &p->d->space;
    pl_html_space s = {.parameters = p->d->parameters,
                       .policy = p->policy,
                       .done = p->done,
                       .operators = p->operators,
                       .columns = space->dimensions};
    PL_TRY(measure_quality(p, &s, err));
    pl_html_dimension *dimension = pl_alloc(PL_SPACE_DIMENSIONS, sizeof *dimension);
    if (!dimension) return pl_fail(err, PL_E_NOMEM, "no memory for the parameter space");
    for (uint32_t k = 0; k < space->dimensions; k++)
        if (pl_rollout_page_varies(&space->dimension[k])) dimension[s.dimensions++] = dimension_of(p, k);
    s.dimension = dimension;
    pl_html_coverage(&s, p->out);
    pl_free(dimension);
    return PL_OK;
}

/* ---- shapes ---- */

static void add_told(const pl_process_told *t, pl_html_shape *s)
{
    s->as_planned = (s->processes == 0 || s->as_planned) && t->as_planned;
    s->processes++;
    s->planned_bytes = t->planned_bytes;
    s->peak_bytes = t->peak_bytes;
    s->states += t->items;
    s->seconds += t->seconds;
}

static void fill_shape(const pl_rollout_page *p, uint32_t group, pl_html_shape *s, pl_str *words)
{
    const pl_space_groups *g = &p->d->groups;
    const uint32_t first = g->first[group], end = g->first[group + 1];
    pl_rollout_page_words(p, pl_space_groups_point(g, first) - p->d->setup.first, PL_ROLLOUT_WORDS_SHAPE, words);
    s->words = pl_str_text(words);
    s->operators = end - first;
    for (uint32_t i = first; i < end; i++) s->done += p->done[pl_space_groups_point(g, i) - p->d->setup.first];
    for (size_t i = 0; i < p->wish->told_count; i++)
        if (p->wish->told[i].group == group) add_told(&p->wish->told[i], s);
}

static void put_shapes(const pl_rollout_page *p, pl_html_shape *shape, pl_str *words)
{
    const uint32_t groups = p->d->groups.groups;
    for (uint32_t i = 0; i < groups; i++) {
        fill_shape(p, i, &shape[i], &words[i]);
        p->out->failed |= words[i].failed;
    }
    pl_html_shapes(shape, groups,
                   p->wish->told_count ? "Bytes, of the last process of each shape: planned for the process, and the "
                                         "kernel's own mark of its peak."
                                       : "What the processes planned and measured is not known: there is no "
                                         "NAME.processes.jsonl beside the results.",
                   p->out);
    for (uint32_t i = 0; i < groups; i++) pl_str_deinit(&words[i]);
}

pl_status pl_rollout_page_shapes(const pl_rollout_page *p, pl_error *err)
{
    const uint32_t groups = p->d->groups.groups;
    pl_html_shape *shape = pl_alloc(groups, sizeof *shape);
    pl_str *words = pl_alloc(groups, sizeof *words);
    const bool is_there = shape && words;
    if (is_there) put_shapes(p, shape, words);
    pl_free(words);
    pl_free(shape);
    return is_there ? PL_OK : pl_fail(err, PL_E_NOMEM, "no memory for %u shapes", groups);
}
