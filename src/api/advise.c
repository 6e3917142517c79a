/* What a plan advises: its stages and risks (advise_look.c), and here what single changes would bring, each planned by
 * the planner itself with as many samples at once as the plan has, and options that fit memory and disk. The keys say
 * which changes there are (WHAT_IF in config/sections.def); a few kernels are measured for them, and their times are
 * kept like all others. Nothing is measured for a training, which has too many kernels. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/advise.h"
#include "base/alloc.h"
#include "base/machine_file.h"
#include "base/process.h"
#include "base/units.h"
#include "config/schema.h"
#include "plimsoll/stages.h"
#include "systems/system.h"

enum { CHANGES = PL_CONFIG_WHAT_IF_COUNT, SMALLER_ROWS = PL_CONFIG_SMALLER_COUNT, VALUE_BYTES = 48 };
_Static_assert((int)CHANGES <= (int)PL_ADVICE_CHANGES_MAX, "raise PL_ADVICE_CHANGES_MAX");

static const char *path_of(pl_config_key_id key) { return pl_config_keys[key].path; }

static pl_advice_effect effect_of(pl_config_effect effect)
{
    static const pl_advice_effect effects[] = {[PL_CONFIG_EFFECT_SAME] = PL_ADVICE_SAME,
                                               [PL_CONFIG_EFFECT_BITS] = PL_ADVICE_BITS,
                                               [PL_CONFIG_EFFECT_OTHER] = PL_ADVICE_OTHER};
    return effects[effect];
}

/* ---- a config with a change ---- */

static bool has_key(const pl_advising *v, const pl_config *c, pl_config_key_id key)
{
    const pl_config_key *k = &pl_config_keys[key];
    return pl_config_is_used(c, k) && pl_config_is_read(c, k, (pl_config_reader)(1u << v->command));
}

/* As typed after a command. */
static void say_option(const char *path, const char *value, pl_str *s)
{
    const pl_config_key *key = pl_config_find(path);
    const char *gap = s->bytes ? " " : "";
    if (key->option)
        pl_str_printf(s, "%s--%s %s", gap, key->option, value);
    else
        pl_str_printf(s, "%s--set %s=%s", gap, path, value);
}

/* The number of samples at once stays as the plan has it: searching for it again would be another change. */
static pl_status pin_at_once(const pl_advising *v, pl_config *c, pl_error *err)
{
    char text[VALUE_BYTES];
    snprintf(text, sizeof text, "%" PRIu32, v->compiled.at_once);
    for (size_t i = 0; i < CHANGES; i++)
        if (pl_config_what_ifs[i].how == PL_CONFIG_HOW_TIMES && has_key(v, c, pl_config_what_ifs[i].key))
            return pl_config_set(c, path_of(pl_config_what_ifs[i].key), text, "plan", err);
    return PL_OK;
}

static int64_t number_of(const pl_config *c, const char *path)
{
    int64_t number;
    memcpy(&number, pl_config_value_of(c, pl_config_find(path)), sizeof number);
    return number;
}

/* False: it is set already, or cannot be set. */
static bool value_of(const pl_advising *v, const pl_config_what_if *w, char text[VALUE_BYTES])
{
    const int64_t by = strtoll(w->value, NULL, 10);
    int64_t value = 0;
    switch (w->how) {
    case PL_CONFIG_HOW_WORD:
        snprintf(text, VALUE_BYTES, "%s", w->value);
        return true;
    case PL_CONFIG_HOW_TIMES:
        value = by * (int64_t)v->compiled.at_once;
        if (value > v->data->source->batch) return false;
        break;
    case PL_CONFIG_HOW_LESS:
        value = number_of(v->config, path_of(w->key)) - by;
        break;
    case PL_CONFIG_HOW_TEAM:
        value = v->plan->team.threads + by;
        break;
    case PL_CONFIG_HOW_FILLERS:
        if (v->a->bound != PL_ADVICE_FILL) return false;
        value = pl_source_threads(v->data->source) + by;
        break;
    }
    snprintf(text, VALUE_BYTES, "%" PRId64, value);
    return value >= 1;
}

/* ---- a change, planned ---- */

typedef struct tried {
    pl_status status;
    uint64_t charged_bytes, disk_bytes; /* charged 0: not known */
    pl_compiled compiled;
} tried;

/* Times wanted of a plan: none, only whether it fits; none; from the kernels already known; measuring more kernels. */
typedef enum times { NO_TIMES_QUICKLY, NO_TIMES, ESTIMATED, MEASURED } times;

static pl_status try_config(const pl_advising *v, const pl_config *c, times wanted, tried *t, pl_error *err)
{
    pl_error why = {0};
    pl_plan *plan;
    pl_fit_result r;
    *t = (tried){.compiled = {.time = {.seconds = -1}}};
    const pl_compile_options o = {.command = v->command,
                                  .cache_folder = v->cache_folder,
                                  .group = v->group,
                                  .found = &t->compiled,
                                  .here = v->here,
                                  .quick = wanted == NO_TIMES_QUICKLY,
                                  .sizes = wanted == NO_TIMES_QUICKLY && v->judges_texts,
                                  .unmeasured = wanted <= NO_TIMES,
                                  .measured = v->measured || wanted == ESTIMATED,
                                  .news = v->news,
                                  .brief = true};
    t->status = pl_compile(c, &o, &r, &plan, &why);
    if (t->status == PL_OK) {
        t->charged_bytes = pl_plan_charged_bytes(plan);
        t->disk_bytes = pl_advice_disk_bytes(v, plan);
    } else if (r.least != PL_FIT_NONE) {
        t->charged_bytes = r.point[r.least].charged_bytes;
    }
    pl_plan_destroy(plan);
    pl_fit_result_deinit(&r);
    if (t->status != PL_E_NOMEM) return PL_OK;
    return pl_fail(err, t->status, "%s", why.text);
}

/* The gain at best. A thread of the team is no use without a core; returns how many cores that takes. */
static double take_thread(pl_advice_stage *work, double cores)
{
    work->threads++;
    if (work->per_second >= 0) work->per_second *= work->threads / work->cores;
    work->cores = work->threads;
    return fmax(cores, work->threads);
}

static void take_filler(pl_advice_stage *fill)
{
    const double more = (fill->threads + 1.0) / fill->threads;
    if (fill->per_second >= 0) fill->per_second *= more;
    fill->cores *= more;
    fill->threads++;
}

static void predict(const pl_advising *v, const pl_config_what_if *w, const tried *t, pl_advice_change *to)
{
    pl_advice_stage stage[PL_ADVICE_STAGES], *work = &stage[PL_ADVICE_WORK];
    double cores = v->a->cores;
    memcpy(stage, v->a->stage, sizeof stage);
    if (w->how == PL_CONFIG_HOW_TEAM)
        cores = take_thread(work, cores);
    else if (w->how == PL_CONFIG_HOW_FILLERS)
        take_filler(&stage[PL_ADVICE_FILL]);
    else
        work->per_second = pl_advise_work_rate(v, &t->compiled);
    to->measured = t->compiled.measured;
    to->at_best = w->how == PL_CONFIG_HOW_TEAM || w->how == PL_CONFIG_HOW_FILLERS;
    to->cores = cores > v->a->cores ? (uint32_t)cores : 0;
    to->per_second = pl_advice_rate(stage, cores);
}

/* Measuring many samples at once takes long, and their time follows from that of fewer. */
static times times_of(const pl_advising *v, const pl_config_what_if *w)
{
    enum { TIMES_MEASURED = 4 };
    if (w->how == PL_CONFIG_HOW_TEAM || w->how == PL_CONFIG_HOW_FILLERS) return NO_TIMES;
    if (v->trains) return ESTIMATED;
    return w->how == PL_CONFIG_HOW_TIMES && strtoll(w->value, NULL, 10) > TIMES_MEASURED ? ESTIMATED : MEASURED;
}

static pl_status try_change(pl_advising *v, const pl_config_what_if *w, pl_config *c, const pl_config *pinned,
                            pl_error *err)
{
    char value[VALUE_BYTES];
    tried t;
    pl_error ignored = {0};
    *c = *pinned;
    if (!has_key(v, c, w->key) || !value_of(v, w, value)) return PL_OK;
    const pl_status given = pl_config_set(c, path_of(w->key), value, "plan", &ignored);
    if (given == PL_E_NOMEM) return pl_fail(err, given, "%s", ignored.text);
    if (given != PL_OK || pl_config_equal(c, pinned)) return PL_OK;
    PL_TRY(try_config(v, c, times_of(v, w), &t, err));
    if (t.status != PL_OK && t.status != PL_E_BUDGET) return PL_OK;
    pl_advice_change *to = &v->a->change[v->a->changes++];
    *to =
        (pl_advice_change){.effect = effect_of(w->effect), .fits = t.status == PL_OK, .charged_bytes = t.charged_bytes};
    pl_str s = pl_str_fixed(to->options, sizeof to->options);
    say_option(path_of(w->key), value, &s);
    predict(v, w, &t, to);
    return PL_OK;
}

enum { NODES_MAX = 16384 }; /* planning takes half a second up to there; each change is a plan */

static pl_status try_changes(pl_advising *v, pl_config *c, pl_config *pinned, pl_error *err)
{
    v->a->is_too_deep = v->plan->graph->node_count > NODES_MAX;
    if (v->a->is_too_deep) return PL_OK;
    *pinned = *v->config;
    PL_TRY(pin_at_once(v, pinned, err));
    for (size_t i = 0; i < CHANGES; i++) PL_TRY(try_change(v, &pl_config_what_ifs[i], c, pinned, err));
    return PL_OK;
}

/* ---- what is safe ---- */

static const char *share_key(const pl_advising *v, const pl_config *c)
{
    for (size_t i = 0; i < PL_CONFIG_SHARE_COUNT; i++)
        if (has_key(v, c, pl_config_shares[i])) return path_of(pl_config_shares[i]);
    return NULL;
}

/* The first of `pieces` pieces of the config's share I/N. */
static void say_share(const char *text, uint64_t pieces, char value[VALUE_BYTES])
{
    unsigned part = 1, parts = 1;
    if (sscanf(text, "%9u/%9u", &part, &parts) != 2) part = parts = 1;
    snprintf(value, VALUE_BYTES, "%" PRIu64 "/%" PRIu64, (part - 1) * pieces + 1, parts * pieces);
}

static pl_status set(pl_config *c, const char *path, const char *value, pl_str *options, pl_error *err)
{
    say_option(path, value, options);
    return pl_config_set(c, path, value, "plan", err);
}

/* As few shares as fit the disk, judged by the plan of the first; what lies around the data makes each larger. */
static pl_status share_out(const pl_advising *v, pl_config *c, const pl_config *asked, pl_str *options, tried *t,
                           pl_error *err)
{
    enum { ROUNDS = 4, PIECES_MAX = 1 << 20 };
    const char *key = share_key(v, c);
    const size_t before = options->bytes;
    uint64_t need = pl_advice_disk_bytes(v, v->plan), pieces = 1;
    for (int i = 0; i < ROUNDS && key && pl_advice_lacks_disk(v, need); i++) {
        char value[VALUE_BYTES];
        const double room = PL_ADVICE_ROOM * (double)v->disk_free, wanted = ceil((double)need * (double)pieces / room);
        if (!(wanted <= PIECES_MAX)) break;
        pieces = (uint64_t)wanted > pieces ? (uint64_t)wanted : pieces + 1;
        say_share(pl_config_value_of(asked, pl_config_find(key)), pieces, value);
        options->data[options->bytes = before] = 0;
        PL_TRY(set(c, key, value, options, err));
        PL_TRY(try_config(v, c, NO_TIMES, t, err));
        if (t->status != PL_OK) break;
        need = t->disk_bytes;
    }
    if (pl_advice_lacks_disk(v, need)) t->status = PL_E_STORAGE;
    v->a->safe_parts = pieces;
    v->a->safe_seconds = v->a->seconds < 0 ? -1 : v->a->seconds / (double)pieces;
    return PL_OK;
}

static pl_status find_safe(pl_advising *v, pl_config *c, pl_error *err)
{
    pl_advice *a = v->a;
    pl_error ignored = {0};
    pl_str options = pl_str_fixed(a->safe_options, sizeof a->safe_options);
    tried t = {.status = PL_OK,
               .charged_bytes = pl_plan_charged_bytes(v->plan),
               .disk_bytes = pl_advice_disk_bytes(v, v->plan)};
    *c = *v->config;
    if (pl_plan_check_machine(v->plan, &ignored) != PL_OK) {
        PL_TRY(set(c, "memory.budget", "auto", &options, err));
        PL_TRY(try_config(v, c, NO_TIMES, &t, err));
    }
    if (t.status == PL_OK) PL_TRY(share_out(v, c, v->config, &options, &t, err));
    a->has_safe = t.status == PL_OK && !v->is_barred;
    a->safe_charged_bytes = t.charged_bytes;
    a->safe_disk_bytes = t.disk_bytes;
    return PL_OK;
}

/* ---- all of it ---- */

/* One, or as many as the config has. */
static uint32_t count_trainings(const pl_config *c)
{
    pl_stage_row row;
    uint32_t count = 0;
    while (pl_system_find_stage(c, count, &row)) count++;
    return count ? count : 1;
}

/* False: there is nothing to advise on. */
static bool count_samples(pl_advising *v)
{
    const pl_work *work = v->plan->work;
    const pl_data *d = v->data;
    v->trains = work->trains;
    v->trainings = v->trains ? count_trainings(v->config) : 1;
    if (!d->source || (!v->trains && (!d->sink || d->group_items == 0))) return false;
    v->samples = v->trains ? work->items * v->plan->batch : d->group_samples;
    v->a->samples = work->count == 1 ? v->samples : work->items * (d->group_samples / d->group_items);
    v->a->of_largest = work->count > 1;
    v->left = 1;
    return v->samples > 0;
}

/* Adds what is waited for: the data, checkpoints. */
static void stretch(pl_work *w, double seconds)
{
    const double more = seconds > w->seconds && w->seconds >= 0 ? seconds - w->seconds : 0;
    w->seconds += more;
    w->low += more;
    w->high += more;
}

static pl_status advise(pl_advising *v, pl_plan *plan, pl_config *c, pl_config *pinned, pl_error *err)
{
    PL_TRY(pl_open_data(v->config, v->command, PL_DATA_FOR_PLAN, NULL, &v->data, err));
    if (v->group) PL_TRY(v->data->kind->choose(v->data, v->group - 1, err));
    if (!count_samples(v)) return PL_OK;
    PL_TRY(pl_config_run_folder(v->config, v->out, sizeof v->out, err));
    PL_TRY(pl_machine_planned(&v->machine, err));
    v->a->cores = fmin(v->machine.cores_allowed, v->machine.cores_quota);
    PL_TRY(pl_advise_stages(v, err));
    PL_TRY(pl_advise_risks(v, err));
    plan->work->left_seconds = v->a->seconds;
    if (v->trains) stretch(plan->work, v->a->seconds);
    plan->work->done = (uint64_t)round((1 - v->left) * (double)plan->work->items);
    PL_TRY(try_changes(v, c, pinned, err));
    return find_safe(v, c, err);
}

/* In a small container there may be no room for it: a plan without advice is a plan. */
static bool may_lack(pl_status status) { return status == PL_E_NOMEM && pl_process_fence_left() != UINT64_MAX; }

pl_status pl_advise(const pl_config *config, const pl_compile_options *o, const pl_compiled *compiled, pl_plan *plan,
                    pl_error *err)
{
    pl_config *c = pl_config_create(), *pinned = pl_config_create();
    pl_advising v = {.config = config,
                     .command = o->command,
                     .cache_folder = o->cache_folder,
                     .group = o->group,
                     .measured = o->measured,
                     .news = o->news,
                     .compiled = *compiled,
                     .plan = plan,
                     .a = pl_alloc(1, sizeof *v.a)};
    pl_status status = c && pinned && v.a ? advise(&v, plan, c, pinned, err)
                                          : pl_fail(err, PL_E_NOMEM, "no memory for what a plan advises");
    pl_data_close(v.data);
    pl_config_destroy(pinned);
    pl_config_destroy(c);
    if (status == PL_OK && v.a->samples) plan->advice = v.a;
    if (!plan->advice) pl_free(v.a);
    return may_lack(status) ? PL_OK : status;
}

/* ---- several trainings ---- */

static pl_status look_over(const pl_config *config, const pl_compile_options *o, uint32_t k, pl_work *w, pl_error *err)
{
    pl_work_group *g = &w->group[k];
    pl_stage stage;
    pl_plan *plan = NULL;
    pl_error why = {0};
    bool is_done;
    pl_compiled found = {.time = {.seconds = -1}};
    pl_compile_options own = {.command = o->command, .cache_folder = o->cache_folder, .found = &found};
    own.measured = own.brief = true;
    pl_config *c = pl_config_copy(config);
    if (!c) return pl_fail(err, PL_E_NOMEM, "no memory to look over training %u", k + 1);
    pl_status status = pl_stage_take(c, k, &stage, &is_done, err);
    pl_prepared *prepared = NULL;
    if (status == PL_OK)
        status = pl_prepare_briefly(c, o->command, NULL, NULL, &prepared, &why); /* into its own folder */
    if (status == PL_OK) status = pl_compile(c, &own, NULL, &plan, &why);
    (void)pl_prepared_undo(prepared, NULL); /* in a folder that a training will use anyway */
    pl_config_destroy(c);
    if (status == PL_OK) g->charged_bytes = pl_plan_charged_bytes(plan);
    pl_plan_destroy(plan);
    if (status == PL_E_NOMEM) return pl_fail(err, status, "%s", why.text[0] ? why.text : err->text);
    if (status == PL_E_BUDGET)
        return pl_fail(err, status, "%.700s (%s, %u of %zu trainings)", why.text, stage.name, stage.number, w->count);
    g->text = pl_strdup(stage.name);
    g->items = found.steps;
    g->seconds = found.time.seconds;
    g->low = found.time.low;
    g->high = found.time.high;
    g->measured = found.measured;
    if (found.time.busy > w->busy) w->busy = found.time.busy;
    w->evaluations += found.evaluations;
    w->checkpoints += found.checkpoints;
    if (found.patience > w->patience) w->patience = found.patience;
    if (is_done) w->done += found.steps;
    if (is_done && g->seconds > 0) w->left_seconds -= g->seconds; /* add_up adds the seconds of all */
    return g->text ? PL_OK : pl_fail(err, PL_E_NOMEM, "no memory to name a training");
}

static void add_up(pl_work *w)
{
    for (size_t i = 0; i < w->count; i++) {
        const pl_work_group *g = &w->group[i];
        w->items += g->items;
        w->measured += g->measured;
        w->seconds = w->seconds < 0 || g->seconds < 0 ? -1 : w->seconds + g->seconds;
        w->low += g->low;
        w->high += g->high;
        if (g->charged_bytes > w->group[w->largest].charged_bytes) w->largest = i;
    }
    w->left_seconds = w->seconds < 0 ? -1 : w->left_seconds + w->seconds;
}

/* Looks over all trainings of the config, where the plan covers only one. */
static pl_status look_over_all(const pl_config *config, const pl_compile_options *o, pl_plan *plan, pl_error *err)
{
    const uint32_t count = count_trainings(config);
    if (count < 2) return PL_OK;
    pl_work *w = pl_alloc(1, sizeof *w);
    if (w) w->group = pl_alloc(count, sizeof *w->group);
    pl_status status = w && w->group ? PL_OK : pl_fail(err, PL_E_NOMEM, "no memory to look over %u trainings", count);
    if (status == PL_OK) w->trains = true, w->count = count, w->error = -1;
    for (uint32_t k = 0; k < count && status == PL_OK; k++) status = look_over(config, o, k, w, err);
    if (status == PL_OK) {
        add_up(w);
        pl_work_destroy(plan->work);
        plan->work = w;
        return PL_OK;
    }
    pl_work_destroy(w);
    return may_lack(status) ? PL_OK : status;
}

pl_status pl_plan_advise(const pl_config *config, const char *cache_folder, pl_plan *plan, pl_error *err)
{
    const pl_work *w = plan->work;
    if (plan->context_most && plan->command == PL_COMMAND_GENERATE)
        return pl_look_at_contexts(config, cache_folder, plan, err);
    if (!w || !w->trains) return PL_OK;
    const pl_compiled found = {.time = {w->seconds, w->low, w->high, w->busy, w->measured == 0},
                               .measured = w->measured > 0,
                               .at_once = (uint32_t)pl_plan_micro_batch(plan)};
    const pl_compile_options o = {.command = plan->command, .cache_folder = cache_folder};
    PL_TRY(pl_advise(config, &o, &found, plan, err));
    return look_over_all(config, &o, plan, err);
}

/* ---- what is refused ---- */

static bool is_team(const pl_config_what_if *row)
{
    bool is = false;
    for (size_t i = 0; i < CHANGES; i++)
        is |= pl_config_what_ifs[i].key == row->key && pl_config_what_ifs[i].how == PL_CONFIG_HOW_TEAM;
    return is;
}

/* What costs least to give up comes first: what leaves the results alone, then threads, then bits, then the results. */
static int rank_of(const pl_config_what_if *row)
{
    return row->effect == PL_CONFIG_EFFECT_SAME ? is_team(row) : 1 + (int)row->effect;
}

/* Row i in that order; within a rank, in the order of the keys. */
static const pl_config_what_if *smaller_row(size_t i)
{
    enum { RANKS = 2 + PL_CONFIG_EFFECT_OTHER };
    for (int rank = 0; rank < RANKS; rank++)
        for (size_t k = 0; k < SMALLER_ROWS; k++)
            if (rank_of(&pl_config_smaller[k]) == rank && i-- == 0) return &pl_config_smaller[k];
    return pl_config_smaller;
}

/* The rows that may be taken, in that order, and the value of each; "": it is not taken. */
typedef struct taken {
    const pl_config_what_if *row[SMALLER_ROWS];
    char value[SMALLER_ROWS][VALUE_BYTES];
    size_t rows;
} taken;

static bool take_row(const taken *rows, size_t i, pl_config *c)
{
    pl_error ignored = {0};
    return !rows->value[i][0] ||
           pl_config_set(c, path_of(rows->row[i]->key), rows->value[i], "plan", &ignored) == PL_OK;
}

static pl_status try_taken(const pl_advising *v, pl_config *c, const taken *rows, times wanted, tried *t, pl_error *err)
{
    *c = *v->config;
    for (size_t i = 0; i < rows->rows; i++) (void)take_row(rows, i, c);
    return try_config(v, c, wanted, t, err);
}

/* The rows that change something. Fewer threads save little beside the weights of a model that somebody brings. */
static void list_rows(const pl_advising *v, pl_config *c, pl_config *before, taken *rows)
{
    *c = *v->config;
    for (size_t i = 0; i < SMALLER_ROWS; i++) {
        const size_t at = rows->rows;
        rows->row[at] = smaller_row(i);
        if (!has_key(v, c, rows->row[at]->key) || (pl_is_brought(c) && is_team(rows->row[at]))) continue;
        snprintf(rows->value[at], VALUE_BYTES, "%s", rows->row[at]->value);
        *before = *c;
        if (take_row(rows, at, c) && !pl_config_equal(c, before))
            rows->rows++;
        else
            *c = *before, rows->value[at][0] = 0;
    }
}

static void keep_first(taken *rows, const taken *all, size_t count)
{
    *rows = *all;
    rows->rows = count;
}

/* Keeps the first rows, as few as it takes; none where even all are not enough. What another key forbids comes last,
 * and is dropped. */
static pl_status take_until_it_fits(const pl_advising *v, pl_config *c, taken *rows, pl_error *err)
{
    const taken all = *rows;
    size_t enough = all.rows, too_few = 0;
    tried t = {.status = PL_E_USAGE};
    for (; enough > 0 && t.status != PL_OK && t.status != PL_E_BUDGET; enough--) {
        keep_first(rows, &all, enough);
        PL_TRY(try_taken(v, c, rows, NO_TIMES_QUICKLY, &t, err));
    }
    enough = t.status == PL_OK ? enough + 1 : 0;
    while (enough > too_few + 1) {
        const size_t middle = too_few + (enough - too_few) / 2;
        keep_first(rows, &all, middle);
        PL_TRY(try_taken(v, c, rows, NO_TIMES_QUICKLY, &t, err));
        *(t.status == PL_OK ? &enough : &too_few) = middle;
    }
    keep_first(rows, &all, enough);
    return PL_OK;
}

static pl_status try_number(const pl_advising *v, pl_config *c, taken *rows, size_t at, int64_t number, bool *fits,
                            pl_error *err)
{
    tried t;
    snprintf(rows->value[at], VALUE_BYTES, "%" PRId64, number);
    PL_TRY(try_taken(v, c, rows, NO_TIMES_QUICKLY, &t, err));
    *fits = t.status == PL_OK;
    return PL_OK;
}

/* Where the row's value is a number: the largest one that fits, below the config's; where that is auto, at all. */
static pl_status find_largest(const pl_advising *v, pl_config *c, taken *rows, size_t at, pl_error *err)
{
    char *end;
    int64_t least = strtoll(rows->value[at], &end, 10), over;
    bool fits = true;
    if (*end || end == rows->value[at]) return PL_OK;
    *c = *v->config;
    for (size_t i = 0; i < at; i++) (void)take_row(rows, i, c);
    over = number_of(c, path_of(rows->row[at]->key));
    for (bool is_auto = over < 0; is_auto && fits; least = fits ? over : least) {
        over = 2 * least;
        PL_TRY(try_number(v, c, rows, at, over, &fits, err));
    }
    while (over - least > 1) {
        const int64_t middle = least + (over - least) / 2;
        PL_TRY(try_number(v, c, rows, at, middle, &fits, err));
        *(fits ? &least : &over) = middle;
    }
    snprintf(rows->value[at], VALUE_BYTES, "%" PRId64, least);
    return PL_OK;
}

/* Gives back what rows `from` to `to` take without need, beginning with what costs most. */
static pl_status leave_what_is_not_needed(const pl_advising *v, pl_config *c, taken *rows, size_t from, size_t to,
                                          pl_error *err)
{
    const taken before = *rows;
    tried t;
    if (from == to) return PL_OK;
    for (size_t i = from; i < to; i++) rows->value[i][0] = 0;
    PL_TRY(try_taken(v, c, rows, NO_TIMES_QUICKLY, &t, err));
    if (t.status == PL_OK) return PL_OK;
    *rows = before;
    if (to - from == 1) return PL_OK;
    const size_t middle = from + (to - from) / 2;
    PL_TRY(leave_what_is_not_needed(v, c, rows, middle, to, err));
    return leave_what_is_not_needed(v, c, rows, from, middle, err);
}

static void say_smaller(const taken *rows, const tried *t, pl_error *refusal)
{
    static const char *const effects[] = {[PL_ADVICE_SAME] = "",
                                          [PL_ADVICE_BITS] = ", and the results are rounded differently",
                                          [PL_ADVICE_OTHER] = ", and the results differ"};
    char text[512] = "", charged[32];
    pl_str options = pl_str_fixed(text, sizeof text);
    pl_advice_effect effect = PL_ADVICE_SAME;
    for (size_t i = 0; i < rows->rows; i++) {
        if (!rows->value[i][0]) continue;
        say_option(path_of(rows->row[i]->key), rows->value[i], &options);
        if (effect_of(rows->row[i]->effect) > effect) effect = effect_of(rows->row[i]->effect);
    }
    if (options.failed) return; /* a text cut short would leave out options that were planned, too */
    pl_error_append(refusal, "; it fits with %s: %s charged%s", pl_str_text(&options),
                    pl_format_bytes(t->charged_bytes, charged, sizeof charged), effects[effect]);
}

/* Appends what would fit to the refusal's sentence. The search only asks quickly whether it fits; what is said is then
 * planned in full. */
static pl_status make_smaller(const pl_advising *v, pl_config *c, pl_config *before, pl_error *refusal, pl_error *err)
{
    taken rows = {0};
    tried t;
    list_rows(v, c, before, &rows);
    PL_TRY(take_until_it_fits(v, c, &rows, err));
    if (rows.rows == 0) return PL_OK;
    PL_TRY(find_largest(v, c, &rows, rows.rows - 1, err));
    PL_TRY(leave_what_is_not_needed(v, c, &rows, 0, rows.rows - 1, err));
    PL_TRY(leave_what_is_not_needed(v, c, &rows, rows.rows - 1, rows.rows, err));
    for (size_t i = 0; i + 1 < rows.rows; i++) /* what changes results, no more than it must */
        if (rows.row[i]->effect == PL_CONFIG_EFFECT_OTHER) PL_TRY(find_largest(v, c, &rows, i, err));
    PL_TRY(try_taken(v, c, &rows, NO_TIMES, &t, err));
    if (t.status == PL_OK) say_smaller(&rows, &t, refusal);
    return PL_OK;
}

pl_status pl_advise_refused(const pl_config *config, const pl_compile_options *o, pl_error *err)
{
    pl_config *c = pl_config_create(), *before = pl_config_create();
    const pl_advising v = {.config = config,
                           .command = o->command,
                           .cache_folder = o->cache_folder,
                           .group = o->group,
                           .here = o->here,
                           .judges_texts =
                               pl_is_brought(config) && o->command == PL_COMMAND_EVALUATE && !config->eval.choices[0]};
    pl_error why = {0};
    pl_status status = c && before ? make_smaller(&v, c, before, err, &why)
                                   : pl_fail(&why, PL_E_NOMEM, "no memory for what a plan advises");
    pl_config_destroy(before);
    pl_config_destroy(c);
    return status == PL_E_NOMEM && !may_lack(status) ? pl_fail(err, status, "%s", why.text) : PL_E_BUDGET;
}
