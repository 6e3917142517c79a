/* Every choice that saves memory or time against the plain plan: the keys of fit/axes.def with the values that stand
 * there; an impossible plan (two choices that exclude each other) is a row with its reason.
 *
 * The precision, which comes first, makes groups: each has its own plain plan, with which its rows are compared, and
 * which is itself compared with that of f32. And since all of them could be wrong alike, each update is compared with
 * one computed independently (verify_update.c). */
#include "api/verify.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/choice.h"
#include "fit/fit.h"
#include "ir/op.h"
#include "plimsoll/verify.h"

enum { VALUES_MAX = 4, VALUE_BYTES = 24, FOUND_MAX = PL_CHOICE_KEYS * VALUES_MAX, CHANGES_USUAL = 2 };

/* A budget between the needs of two plans, so that the planner must decide node by node. */
#define TIGHT "auto, tight"

/* By key; the plain value first, NULL ends. What looks like "<most>" is found at the start, and left out where there is
 * no such value. */
static const char *const tried[PL_CHOICE_KEYS][VALUES_MAX + 1] = {
#define PL_AXIS_VERIFY(id, ...) [PL_CHOICE_##id] = {__VA_ARGS__},
#include "fit/axes.def"
};
enum {
#define PL_AXIS_VERIFY(id, ...) VALUES_##id = sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *),
#include "fit/axes.def"
    PRECISION = PL_CHOICE_PRECISION,
    PRECISIONS = VALUES_PRECISION,
};
_Static_assert(PRECISION == 0, "the precision makes groups");
#define PL_AXIS_VERIFY(id, ...) _Static_assert((int)VALUES_##id <= (int)VALUES_MAX, "raise VALUES_MAX");
#include "fit/axes.def"

typedef struct found {
    const char *name; /* "<most>" */
    char value[VALUE_BYTES];
} found;

typedef struct verification {
    const pl_config *config;
    pl_config *changed; /* the config of the row */
    int precision;      /* the config's: which of those that are tried */
    const pl_verify_options *o;
    pl_verify_plain plain[PRECISIONS];
    pl_verify_outcome outcome[PRECISIONS]; /* the plain plans' */
    found found[FOUND_MAX];
    size_t found_count;
    pl_verify_result *result;
} verification;

static found *find(verification *v, const char *name)
{
    size_t i = 0;
    while (i < v->found_count && strcmp(v->found[i].name, name) != 0) i++;
    return i < v->found_count ? &v->found[i] : NULL;
}

static void note(verification *v, const char *name, int64_t value)
{
    found *f = find(v, name);
    if (!f) f = &v->found[v->found_count++];
    f->name = name;
    snprintf(f->value, sizeof f->value, "%lld", (long long)value);
}

/* NULL: there is no such value. */
static const char *value_of(verification *v, int key, int at)
{
    const char *text = tried[key][at];
    if (!pl_choice_is_used(v->config, (pl_choice_key)key)) return NULL;
    if (!text || text[0] != '<') return text;
    const found *f = find(v, text);
    return f ? f->value : NULL;
}

/* ---- a config for a row ---- */

static pl_status set(pl_config *c, const char *key, const char *value, pl_error *err)
{
    return pl_config_set(c, key, value, "verify", err);
}

static pl_status set_number(pl_config *c, const char *key, uint64_t value, pl_error *err)
{
    char text[VALUE_BYTES];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    return set(c, key, text, err);
}

static pl_status charged_with(pl_config *c, const char *checkpointing, uint64_t *bytes, pl_error *err)
{
    pl_plan *plan = NULL;
    PL_TRY(set(c, pl_choice_rows[PL_CHOICE_RECOMPUTE].path, checkpointing, err));
    PL_TRY(pl_plan_make_unmeasured(c, &plan, err));
    *bytes = pl_plan_charged_bytes(plan);
    pl_plan_destroy(plan);
    return PL_OK;
}

/* A budget halfway between keeping everything and the classic recompute. */
static pl_status set_tight(pl_config *c, pl_error *err)
{
    uint64_t most, least;
    PL_TRY(charged_with(c, "off", &most, err));
    PL_TRY(charged_with(c, "full", &least, err));
    if (least >= most) return pl_fail(err, PL_E_CONFIG, "recompute saves nothing here");
    PL_TRY(set(c, pl_choice_rows[PL_CHOICE_RECOMPUTE].path, "auto", err));
    return set_number(c, "memory.budget", least + (most - least) / 2, err);
}

static pl_status configure(verification *v, const int *at, pl_error *err)
{
    *v->changed = *v->config;
    PL_TRY(set(v->changed, "memory.budget", "none", err));
    bool tight = false;
    for (int i = 0; i < PL_CHOICE_KEYS; i++) {
        const char *value = value_of(v, i, at[i]);
        if (value && strcmp(value, TIGHT) == 0)
            tight = true;
        else if (value)
            PL_TRY(set(v->changed, pl_choice_rows[i].path, value, err));
    }
    return tight ? set_tight(v->changed, err) : PL_OK;
}

/* "micro_batch 1, threads 2": what differs from the plain plan, or all of it. */
static void describe(verification *v, const int *at, bool all, char *text, size_t room)
{
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < PL_CHOICE_KEYS && used < room; i++)
        if (value_of(v, i, at[i]) && (at[i] || all))
            used += (size_t)snprintf(text + used, room - used, "%s%s %s", used ? ", " : "",
                                     strchr(pl_choice_rows[i].path, '.') + 1, value_of(v, i, at[i]));
}

/* ---- a row ---- */

/* What a plan made, next to what the plan with which it is compared made. */
static void fill(const pl_verify_outcome *o, const pl_verify_outcome *with, int steps, pl_verify_row *row)
{
    row->loss = o->loss[0];
    row->gradient_difference = o->difference;
    row->gradient_share = o->share;
    row->gradient = o->gradient;
    for (int i = 0; i < steps; i++)
        if (!(fabs(o->loss[i] - with->loss[i]) <= row->loss_difference))
            row->loss_difference = fabs(o->loss[i] - with->loss[i]);
    row->same_bits = pl_verify_same(o, with);
    row->update_share = o->update_share;
    row->update = o->update;
}

/* Conditions that no comparison can make up for. */
static bool is_sound(const pl_verify_row *row) { return row->repeats && row->update_share <= 1; }

static double loss_share(const pl_verify_outcome *o, const pl_verify_outcome *with, int step)
{
    double d = fabs(o->loss[step] - with->loss[step]);
    return d == 0 ? 0 : d / fabs(with->loss[step]);
}

static void judge(const pl_verify_outcome *o, const pl_verify_outcome *with, pl_verify_row *row)
{
    bool close = true;
    fill(o, with, PL_VERIFY_STEPS, row);
    row->bound = PL_VERIFY_GRADIENT_SHARE;
    for (int i = 0; i < PL_VERIFY_STEPS; i++) close = close && loss_share(o, with, i) <= PL_VERIFY_LOSS_SHARE;
    /* The same gradients make the same update, whatever else there is: then only the same bits will do. */
    close = close && o->share > 0 && o->share <= PL_VERIFY_GRADIENT_SHARE;
    row->within = is_sound(row) && (row->same_bits || close);
}

/* Does the slope of one of its operators jump? */
static bool has_kink(const pl_node *n)
{
    if (n->op == PL_OP_MAX_POOL || n->op == PL_OP_CONV2D_POOL || n->op == PL_OP_TOP_K) return true;
    const pl_operand *attr = pl_signature_of(n->op)->attr;
    for (int k = 0; attr[k].name[0]; k++) {
        if (attr[k].kind == 'a' && (n->attr[k].i == PL_ACT_RELU || n->attr[k].i == PL_ACT_LEAKY_RELU)) return true;
    }
    return false;
}

static bool has_kinks(const pl_graph *g)
{
    for (size_t i = 0; i < g->node_count; i++)
        if (!g->node[i].dead && has_kink(&g->node[i])) return true;
    return false;
}

/* Where relu rounds to the other side of its kink, or the largest of a pool to another place, a term of a gradient
 * appears or vanishes, however small the rounding. One in 1/(√n·u) does, which changes the norm of all gradients by the
 * root of that share. */
static double bound_of(const verification *v, int precision)
{
    const double rounding = v->outcome[precision].rounding;
    const pl_plan *plain = v->plain[precision].plan;
    return PL_VERIFY_ROUNDINGS * fmax(rounding, plain && has_kinks(plain->graph) ? sqrt(rounding) : 0);
}

/* A precision alone, against f32. Gradients that no state shows are not judged, nor those that overflowed: then nothing
 * was updated. */
static void judge_precision(const verification *v, int precision, pl_verify_row *row)
{
    const pl_verify_outcome *o = &v->outcome[precision], *with = &v->outcome[0];
    fill(o, with, 1, row);
    row->gradient_share = o->norm_share;
    row->gradient = "";
    row->bound = bound_of(v, precision);
    row->within = is_sound(row) && row->loss_difference <= row->bound * fmax(1, fabs(with->loss[0])) &&
                  !(row->gradient_share > row->bound);
}

static void count(pl_verify_result *r, const pl_verify_row *row)
{
    r->refused += row->refused != NULL;
    if (row->refused) return;
    r->plans++;
    r->same_bits += row->within && row->same_bits;
    r->within += row->within && !row->same_bits;
    r->failed += !row->within;
}

static void tell(verification *v, const pl_verify_row *row)
{
    count(v->result, row);
    if (v->o->row) v->o->row(v->o->context, row);
}

/* Not planned, or too large for this machine: the row says why. Any other failure is one. */
static bool is_refused(pl_status status, const pl_error *why, pl_verify_row *row)
{
    if (status == PL_E_CONFIG || status == PL_E_BUDGET) row->refused = why->text;
    return row->refused != NULL;
}

static pl_status plan_row(verification *v, const int *at, pl_plan **plan, pl_error *err)
{
    PL_TRY(configure(v, at, err));
    PL_TRY(pl_plan_make_unmeasured(v->changed, plan, err));
    pl_status status = pl_room_check_beside(*plan, pl_verify_update_bytes(*plan), err);
    if (status != PL_OK) pl_plan_destroy(*plan), *plan = NULL;
    return status;
}

/* Twice, from the start. */
static pl_status run_row(const verification *v, const pl_verify_plain *with, const pl_plan *plan, pl_verify_outcome *o,
                         pl_verify_row *row, pl_error *err)
{
    pl_verify_outcome again;
    row->arena_bytes = pl_plan_arena_bytes(plan);
    PL_TRY(pl_verify_run(with, plan, v->o->checkpoint, o, err));
    PL_TRY(pl_verify_run_again(with, plan, v->o->checkpoint, &again, err));
    row->repeats = pl_verify_same(o, &again);
    return PL_OK;
}

static pl_status verify_row(verification *v, const int *at, pl_error *err)
{
    char text[256];
    pl_error why = {0};
    pl_plan *plan = NULL;
    pl_verify_outcome o;
    pl_verify_row row = {.choices = text};
    describe(v, at, false, text, sizeof text);
    pl_status status = plan_row(v, at, &plan, &why);
    if (status == PL_OK) {
        status = run_row(v, &v->plain[at[PRECISION]], plan, &o, &row, err);
        pl_plan_destroy(plan);
        if (status != PL_OK) return status;
        judge(&o, &v->outcome[at[PRECISION]], &row);
    } else if (!is_refused(status, &why, &row)) {
        *err = why;
        return status;
    }
    tell(v, &row);
    return PL_OK;
}

/* ---- the plain plan ---- */

static pl_status plan_plain(verification *v, int64_t micro_batch, pl_error *err)
{
    const int plain[PL_CHOICE_KEYS] = {0};
    note(v, "<most>", micro_batch);
    return plan_row(v, plain, &v->plain[0].plan, err);
}

/* The largest micro-batch that this machine can hold, and two smaller ones to compare: one that does not divide the
 * batch, where there is one, and 1. */
static pl_status find_micro_batches(verification *v, pl_error *err)
{
    int64_t batch = pl_config_batch(v->config), micro = batch;
    pl_status status = plan_plain(v, micro, err);
    while (status == PL_E_BUDGET && micro > 1) {
        pl_error_clear(err);
        micro = micro / 2;
        status = plan_plain(v, micro, err);
    }
    PL_TRY(status);
    int64_t odd = micro / 2 + 1;
    if (odd < micro && odd > 1) note(v, "<odd>", odd);
    if (micro > 1) note(v, "<one>", 1);
    return PL_OK;
}

/* About a quarter of the rows, so that the last chunk is a short one. */
static void find_rows(verification *v) { note(v, "<rows>", pl_fit_rows(v->plain[0].plan->graph) / 4 + 1); }

static void find_threads(verification *v, int64_t threads)
{
    note(v, "<team>", threads);
    note(v, "<other>", threads == 1 ? 2 : 1);
    note(v, "<third>", threads == 3 ? 4 : 3);
}

/* The first row of all: everything is compared with it. */
static pl_status verify_plain(verification *v, pl_error *err)
{
    const int plain[PL_CHOICE_KEYS] = {0};
    char text[256];
    pl_verify_outcome again;
    pl_verify_row row = {.choices = text, .arena_bytes = pl_plan_arena_bytes(v->plain[0].plan)};
    PL_TRY(pl_verify_run_plain(NULL, &v->plain[0], v->o->checkpoint, &v->outcome[0], err));
    PL_TRY(pl_verify_run_again(&v->plain[0], v->plain[0].plan, v->o->checkpoint, &again, err));
    row.repeats = pl_verify_same(&v->outcome[0], &again);
    describe(v, plain, true, text, sizeof text);
    judge(&v->outcome[0], &v->outcome[0], &row);
    row.bound = 0;
    tell(v, &row);
    return PL_OK;
}

/* The first row of another precision; without a plan there is no group. */
static pl_status verify_precision(verification *v, int precision, pl_error *err)
{
    const int at[PL_CHOICE_KEYS] = {[PRECISION] = precision};
    char text[256];
    pl_error why = {0};
    pl_verify_outcome again;
    pl_verify_plain *p = &v->plain[precision];
    pl_verify_row row = {.choices = text};
    describe(v, at, false, text, sizeof text);
    pl_status status = plan_row(v, at, &p->plan, &why);
    if (status == PL_OK) {
        row.arena_bytes = pl_plan_arena_bytes(p->plan);
        PL_TRY(pl_verify_run_plain(&v->plain[0], p, v->o->checkpoint, &v->outcome[precision], err));
        PL_TRY(pl_verify_run_again(p, p->plan, v->o->checkpoint, &again, err));
        row.repeats = pl_verify_same(&v->outcome[precision], &again);
        judge_precision(v, precision, &row);
    } else if (!is_refused(status, &why, &row)) {
        *err = why;
        return status;
    }
    tell(v, &row);
    return PL_OK;
}

/* ---- all of them ---- */

/* The next combination within a precision, the last choice varying fastest; false after the last one. */
static bool advance(verification *v, int *at)
{
    for (int i = PL_CHOICE_KEYS; i-- > PRECISION + 1; at[i] = 0)
        while (tried[i][at[i]] && tried[i][++at[i]])
            if (value_of(v, i, at[i])) return true;
    return false;
}

/* The config's precision among those that are tried; open is f32. */
static void find_precision(verification *v)
{
    char text[PL_CHOICE_TEXT_BYTES];
    pl_choice_text(v->config, PL_CHOICE_PRECISION, text);
    for (int i = 0; i < PRECISIONS; i++)
        if (strcmp(tried[PRECISION][i], text) == 0) v->precision = i;
}

/* A key under another one does not count as a change, and is skipped where nothing reads it. A precision other than the
 * config's is one change. */
static bool wanted(const verification *v, const int *at)
{
    int changes = at[PRECISION] != v->precision;
    for (int i = PRECISION + 1; i < PL_CHOICE_KEYS; i++) {
        const pl_choice_key above = pl_choice_rows[i].under;
        changes += at[i] != 0 && above == PL_CHOICE_NO_KEY;
        if (at[i] && above != PL_CHOICE_NO_KEY && !at[above]) return false;
    }
    return v->o->everything || changes <= CHANGES_USUAL;
}

static pl_status check_stop(const verification *v, pl_error *err)
{
    if (!v->o->stop || !*v->o->stop) return PL_OK;
    return pl_fail(err, PL_E_STOPPED, "stopped before all rows were compared");
}

static pl_status verify_group(verification *v, int precision, pl_error *err)
{
    int at[PL_CHOICE_KEYS] = {[PRECISION] = precision};
    PL_TRY(precision ? verify_precision(v, precision, err) : verify_plain(v, err));
    while (v->plain[precision].plan && advance(v, at)) {
        PL_TRY(check_stop(v, err));
        if (wanted(v, at)) PL_TRY(verify_row(v, at, err));
    }
    return check_stop(v, err);
}

static pl_status conclude(const pl_verify_result *r, pl_error *err)
{
    if (r->failed == 0) return PL_OK;
    return pl_fail(err, PL_E_MISMATCH,
                   "%llu of %llu plans make another update than the plain one, or than the definition: a fault of "
                   "Plimsoll or of this machine's memory; please report it with this table",
                   (unsigned long long)r->failed, (unsigned long long)r->plans);
}

static int64_t threads_of_plan(const pl_config *c, pl_error *err)
{
    pl_plan *plan = NULL;
    if (pl_plan_make_unmeasured(c, &plan, err) != PL_OK) return 0;
    int64_t threads = pl_plan_threads(plan);
    pl_plan_destroy(plan);
    return threads;
}

pl_status pl_verify(const pl_config *config, const pl_verify_options *o, pl_verify_result *result, pl_error *err)
{
    pl_status status = PL_OK;
    *result = (pl_verify_result){0};
    verification v = {.config = config, .o = o, .result = result};
    for (int i = 0; i < PRECISIONS; i++) v.plain[i].config = config;
    v.changed = pl_config_create();
    if (!v.changed) return pl_fail(err, PL_E_NOMEM, "no memory to verify");
    find_threads(&v, config->run.threads == PL_CONFIG_AUTO ? 1 : config->run.threads);
    if (config->run.threads == PL_CONFIG_AUTO) {
        *v.changed = *config;
        PL_TRY_DONE(set(v.changed, "memory.budget", "none", err));
        int64_t threads = threads_of_plan(v.changed, err);
        if (threads == 0) PL_TRY_DONE(err->status);
        find_threads(&v, threads);
    }
    PL_TRY_DONE(find_micro_batches(&v, err));
    find_rows(&v);
    find_precision(&v);
    for (int i = 0; i < PRECISIONS; i++) PL_TRY_DONE(verify_group(&v, i, err));
    PL_TRY_DONE(conclude(result, err));
done:
    for (int i = 0; i < PRECISIONS; i++) pl_verify_plain_deinit(&v.plain[i]);
    pl_config_destroy(v.changed);
    return status;
}
