/* What a plan advises: its stages and risks (advise_look.c), and here what single changes would bring, each planned by
 * the planner itself with the samples at once that the plan has, and options that fit memory and disk. Which changes
 * there are stands in what_if.def; a few kernels are measured for them, and their times are kept as all are. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/advise.h"
#include "base/alloc.h"
#include "base/machine.h"
#include "base/process.h"
#include "base/units.h"
#include "config/schema.h"

typedef enum how { WORD, TIMES, LESS, MORE_TEAM, MORE_FILLERS } how;

typedef struct what_if {
    const char *path;
    how how;
    const char *value;
    pl_advice_effect effect;
} what_if;

#define HOW_WORD    WORD
#define HOW_TIMES   TIMES
#define HOW_LESS    LESS
#define HOW_TEAM    MORE_TEAM
#define HOW_FILLERS MORE_FILLERS
static const what_if changes[] = {
#define PL_WHAT_IF_ROW(path, how, value, effect) {path, HOW_##how, value, PL_ADVICE_##effect},
#include "api/what_if.def"
};

typedef struct setting {
    const char *path, *value;
    pl_advice_effect effect;
} setting;
static const setting smaller[] = {
#define PL_LESS_ROW(path, value, effect) {path, value, PL_ADVICE_##effect},
#include "api/what_if.def"
};
static const char *const shares[] = {
#define PL_SHARE_ROW(path) path,
#include "api/what_if.def"
};
enum {
    CHANGES = sizeof changes / sizeof *changes,
    SMALLER = sizeof smaller / sizeof *smaller,
    SHARES = sizeof shares / sizeof *shares,
    VALUE_BYTES = 48
};
_Static_assert((int)CHANGES <= (int)PL_ADVICE_CHANGES_MAX, "raise PL_ADVICE_CHANGES_MAX");

/* ---- a config with a change ---- */

static bool has_key(const pl_config *c, const char *path)
{
    const pl_config_key *key = pl_config_find(path);
    return key && pl_config_is_used(c, key);
}

/* As typed behind a command. */
static void say_option(const char *path, const char *value, pl_str *s)
{
    const pl_config_key *key = pl_config_find(path);
    const char *gap = s->bytes ? " " : "";
    if (key->option)
        pl_str_printf(s, "%s--%s %s", gap, key->option, value);
    else
        pl_str_printf(s, "%s--set %s=%s", gap, path, value);
}

/* How many samples are at once stays as the plan has it: what is searched for again would be another change. */
static pl_status pin_at_once(const pl_advising *v, pl_config *c, pl_error *err)
{
    char text[VALUE_BYTES];
    snprintf(text, sizeof text, "%" PRIu32, v->compiled.at_once);
    for (size_t i = 0; i < CHANGES; i++)
        if (changes[i].how == TIMES && has_key(c, changes[i].path))
            return pl_config_set(c, changes[i].path, text, "plan", err);
    return PL_OK;
}

static int64_t number_of(const pl_config *c, const char *path)
{
    int64_t number;
    memcpy(&number, pl_config_value_of(c, pl_config_find(path)), sizeof number);
    return number;
}

/* False: it is so already, or cannot be. */
static bool value_of(const pl_advising *v, const what_if *w, char text[VALUE_BYTES])
{
    const int64_t by = strtoll(w->value, NULL, 10);
    int64_t value = 0;
    switch (w->how) {
    case WORD:
        snprintf(text, VALUE_BYTES, "%s", w->value);
        return true;
    case TIMES:
        value = by * (int64_t)v->compiled.at_once;
        if (value > v->data->source->batch) return false;
        break;
    case LESS:
        value = number_of(v->config, w->path) - by;
        break;
    case MORE_TEAM:
        value = v->plan->team.threads + by;
        break;
    case MORE_FILLERS:
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

/* Times: none; those that follow from the kernels that are known; and more kernels are measured for it. */
typedef enum times { UNKNOWN, ESTIMATED, MEASURED } times;

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
                                  .unmeasured = wanted == UNKNOWN,
                                  .measured = v->measured || wanted == ESTIMATED,
                                  .news = v->news,
                                  .brief = true};
    t->status = pl_compile(c, &o, &r, &plan, &why);
    if (t->status == PL_OK) {
        t->charged_bytes = pl_plan_charged_bytes(plan);
        t->disk_bytes = pl_advice_results_bytes(plan);
    } else if (r.least != PL_FIT_NONE) {
        t->charged_bytes = r.point[r.least].charged_bytes;
    }
    pl_plan_destroy(plan);
    pl_fit_result_deinit(&r);
    if (t->status != PL_E_NOMEM) return PL_OK;
    return pl_fail(err, t->status, "%s", why.text);
}

/* A stage with a thread more, at best; that thread is of no use without a core: how many there must be then. */
static double take_thread(pl_advice_stage *s, double cores)
{
    const double threads = s->threads;
    if (s->per_second >= 0) s->per_second *= (threads + 1) / s->cores;
    s->cores = threads + 1;
    return cores > threads + 1 ? cores : threads + 1;
}

static void predict(const pl_advising *v, const what_if *w, const tried *t, pl_advice_change *to)
{
    pl_advice_stage stage[PL_ADVICE_STAGES], *work = &stage[PL_ADVICE_WORK];
    double cores = v->a->cores;
    memcpy(stage, v->a->stage, sizeof stage);
    if (w->how == MORE_TEAM)
        cores = take_thread(work, cores);
    else if (w->how == MORE_FILLERS)
        take_thread(&stage[PL_ADVICE_FILL], INFINITY);
    else
        work->per_second =
            t->compiled.time.seconds > 0 ? (double)v->data->group_samples / t->compiled.time.seconds : -1;
    to->measured = t->compiled.measured;
    to->at_best = w->how == MORE_TEAM || w->how == MORE_FILLERS;
    to->cores = cores > v->a->cores ? (uint32_t)cores : 0;
    to->per_second = pl_advice_rate(stage, cores);
}

/* To measure many samples at once takes long, and from fewer more follow. */
static times times_of(const what_if *w)
{
    enum { TIMES_MEASURED = 4 };
    if (w->how == MORE_TEAM || w->how == MORE_FILLERS) return UNKNOWN;
    return w->how == TIMES && strtoll(w->value, NULL, 10) > TIMES_MEASURED ? ESTIMATED : MEASURED;
}

static pl_status try_change(pl_advising *v, const what_if *w, pl_config *c, const pl_config *pinned, pl_error *err)
{
    char value[VALUE_BYTES];
    tried t;
    pl_error ignored = {0};
    *c = *pinned;
    if (!has_key(c, w->path) || !value_of(v, w, value)) return PL_OK;
    const pl_status given = pl_config_set(c, w->path, value, "plan", &ignored);
    if (given == PL_E_NOMEM) return pl_fail(err, given, "%s", ignored.text);
    if (given != PL_OK || pl_config_equal(c, pinned)) return PL_OK;
    PL_TRY(try_config(v, c, times_of(w), &t, err));
    if (t.status != PL_OK && t.status != PL_E_BUDGET) return PL_OK;
    pl_advice_change *to = &v->a->change[v->a->changes++];
    *to = (pl_advice_change){.effect = w->effect, .fits = t.status == PL_OK, .charged_bytes = t.charged_bytes};
    pl_str s = pl_str_fixed(to->options, sizeof to->options);
    say_option(w->path, value, &s);
    predict(v, w, &t, to);
    return PL_OK;
}

static pl_status try_changes(pl_advising *v, pl_config *c, pl_config *pinned, pl_error *err)
{
    *pinned = *v->config;
    PL_TRY(pin_at_once(v, pinned, err));
    for (size_t i = 0; i < CHANGES; i++) PL_TRY(try_change(v, &changes[i], c, pinned, err));
    return PL_OK;
}

/* ---- what is safe ---- */

static const char *share_key(const pl_config *c)
{
    for (size_t i = 0; i < SHARES; i++)
        if (has_key(c, shares[i])) return shares[i];
    return NULL;
}

/* The first of so many pieces of the config's share: of I/N. */
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

/* As few shares as the disk asks for, of which the plan of the first tells; what lies around data makes them larger. */
static pl_status share_out(const pl_advising *v, pl_config *c, const pl_config *asked, pl_str *options, tried *t,
                           pl_error *err)
{
    enum { ROUNDS = 4, PIECES_MAX = 1 << 20 };
    const char *key = share_key(c);
    const size_t before = options->bytes;
    uint64_t need = pl_advice_results_bytes(v->plan), pieces = 1;
    for (int i = 0; i < ROUNDS && key && pl_advice_lacks_disk(v, need); i++) {
        char value[VALUE_BYTES];
        const double room = PL_ADVICE_ROOM * (double)v->disk_free, wanted = ceil((double)need * (double)pieces / room);
        if (!(wanted <= PIECES_MAX)) break;
        pieces = (uint64_t)wanted > pieces ? (uint64_t)wanted : pieces + 1;
        say_share(pl_config_value_of(asked, pl_config_find(key)), pieces, value);
        options->data[options->bytes = before] = 0;
        PL_TRY(set(c, key, value, options, err));
        PL_TRY(try_config(v, c, UNKNOWN, t, err));
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
               .disk_bytes = pl_advice_results_bytes(v->plan)};
    *c = *v->config;
    if (pl_plan_check_machine(v->plan, &ignored) != PL_OK) {
        PL_TRY(set(c, "memory.budget", "auto", &options, err));
        PL_TRY(try_config(v, c, UNKNOWN, &t, err));
    }
    if (t.status == PL_OK) PL_TRY(share_out(v, c, v->config, &options, &t, err));
    a->has_safe = t.status == PL_OK && !v->is_barred;
    a->safe_charged_bytes = t.charged_bytes;
    a->safe_disk_bytes = t.disk_bytes;
    return PL_OK;
}

/* ---- all of it ---- */

static pl_status advise(pl_advising *v, pl_plan *plan, pl_config *c, pl_config *pinned, pl_error *err)
{
    const pl_work *work = v->plan->work;
    const pl_data_kind *kind;
    pl_machine machine;
    PL_TRY(pl_open_data(v->config, v->command, PL_DATA_FOR_PLAN, NULL, &v->data, err));
    kind = v->data->kind;
    if (v->group) PL_TRY(kind->choose(v->data, v->group - 1, err));
    if (!v->data->source || !v->data->sink || v->data->group_items == 0) return PL_OK;
    v->a->samples = work->items * (v->data->group_samples / v->data->group_items);
    if (work->count == 1) v->a->samples = v->data->group_samples;
    v->a->of_largest = work->count > 1;
    PL_TRY(pl_machine_read("", &machine, err));
    v->a->cores = fmin(machine.cores_allowed, machine.cores_quota);
    PL_TRY(pl_advise_stages(v, err));
    PL_TRY(pl_advise_risks(v, err));
    plan->work->left_seconds = v->a->seconds;
    plan->work->done = (uint64_t)round((1 - v->left) * (double)work->items);
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

/* Where a number fits and what `before` has does not: the largest that does. */
static pl_status find_largest(const pl_advising *v, pl_config *c, const pl_config *before, const char *path,
                              char value[VALUE_BYTES], tried *t, pl_error *err)
{
    char *end;
    int64_t fits = strtoll(value, &end, 10), over = *end ? 0 : number_of(before, path);
    while (over - fits > 1) {
        tried middle;
        char text[VALUE_BYTES];
        const int64_t number = fits + (over - fits) / 2;
        snprintf(text, sizeof text, "%" PRId64, number);
        PL_TRY(pl_config_set(c, path, text, "plan", err));
        PL_TRY(try_config(v, c, UNKNOWN, &middle, err));
        if (middle.status != PL_OK) {
            over = number;
            continue;
        }
        fits = number, *t = middle;
        strcpy(value, text);
    }
    return PL_OK;
}

/* The rows that are taken: the value that each has, "" where it is not. */
typedef struct taken {
    char value[SMALLER][VALUE_BYTES];
} taken;

static pl_status take(const pl_advising *v, const taken *rows, pl_config *c, pl_error *err)
{
    *c = *v->config;
    for (size_t i = 0; i < SMALLER; i++)
        if (rows->value[i][0]) PL_TRY(pl_config_set(c, smaller[i].path, rows->value[i], "plan", err));
    return PL_OK;
}

/* One after the other. */
static pl_status take_until_it_fits(const pl_advising *v, pl_config *c, pl_config *before, taken *rows, tried *t,
                                    pl_error *err)
{
    *c = *v->config;
    for (size_t i = 0; i < SMALLER && t->status != PL_OK; i++) {
        char *value = rows->value[i];
        *before = *c;
        if (!has_key(c, smaller[i].path)) continue;
        PL_TRY(pl_config_set(c, smaller[i].path, smaller[i].value, "plan", err));
        if (pl_config_equal(c, before)) continue;
        snprintf(value, VALUE_BYTES, "%s", smaller[i].value);
        PL_TRY(try_config(v, c, UNKNOWN, t, err));
        if (t->status == PL_OK) PL_TRY(find_largest(v, c, before, smaller[i].path, value, t, err));
        if (t->status != PL_OK && t->status != PL_E_BUDGET) *c = *before, value[0] = 0; /* another key forbids it */
    }
    return PL_OK;
}

static pl_status leave_what_is_not_needed(const pl_advising *v, pl_config *c, taken *rows, tried *t, pl_error *err)
{
    size_t count = 0;
    for (size_t i = 0; i < SMALLER; i++) count += rows->value[i][0] != 0;
    for (size_t i = 0; i < SMALLER && count > 1; i++) { /* without any it does not fit */
        tried without;
        char value[VALUE_BYTES];
        if (!rows->value[i][0]) continue;
        memcpy(value, rows->value[i], sizeof value);
        rows->value[i][0] = 0;
        PL_TRY(take(v, rows, c, err));
        PL_TRY(try_config(v, c, UNKNOWN, &without, err));
        if (without.status == PL_OK)
            *t = without, count--;
        else
            memcpy(rows->value[i], value, sizeof value);
    }
    return PL_OK;
}

/* What would fit, behind the sentence of the refusal. */
static pl_status make_smaller(const pl_advising *v, pl_config *c, pl_config *before, pl_error *refusal, pl_error *err)
{
    static const char *const effects[] = {[PL_ADVICE_SAME] = "",
                                          [PL_ADVICE_BITS] = ", and the results are rounded otherwise",
                                          [PL_ADVICE_OTHER] = ", and the results are others"};
    char text[240] = "", charged[32];
    pl_str options = pl_str_fixed(text, sizeof text);
    taken rows = {0};
    tried t = {.status = PL_E_BUDGET};
    pl_advice_effect effect = PL_ADVICE_SAME;
    PL_TRY(take_until_it_fits(v, c, before, &rows, &t, err));
    if (t.status != PL_OK) return PL_OK;
    PL_TRY(leave_what_is_not_needed(v, c, &rows, &t, err));
    for (size_t i = 0; i < SMALLER; i++) {
        if (!rows.value[i][0]) continue;
        say_option(smaller[i].path, rows.value[i], &options);
        if (smaller[i].effect > effect) effect = smaller[i].effect;
    }
    pl_error_append(refusal, "; it fits with %s: %s charged%s", pl_str_text(&options),
                    pl_format_bytes(t.charged_bytes, charged, sizeof charged), effects[effect]);
    return PL_OK;
}

pl_status pl_advise_refused(const pl_config *config, const pl_compile_options *o, pl_error *err)
{
    pl_config *c = pl_config_create(), *before = pl_config_create();
    const pl_advising v = {
        .config = config, .command = o->command, .cache_folder = o->cache_folder, .group = o->group, .here = o->here};
    pl_error why = {0};
    pl_status status = c && before ? make_smaller(&v, c, before, err, &why)
                                   : pl_fail(&why, PL_E_NOMEM, "no memory for what a plan advises");
    pl_config_destroy(before);
    pl_config_destroy(c);
    return status == PL_E_NOMEM && !may_lack(status) ? pl_fail(err, status, "%s", why.text) : PL_E_BUDGET;
}
