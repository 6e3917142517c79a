/* Every choice that saves memory or time against the plain plan. A choice is a key of the config with values, so a new
 * one is a line of the table; a plan that cannot be (two choices that exclude each other) is a row with its reason. */
#include "api/verify.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plimsoll/verify.h"

enum { VALUES_MAX = 4, VALUE_BYTES = 24, CHANGES_USUAL = 2 };

typedef struct choice {
    const char *key;
    const char *value[VALUES_MAX]; /* the plain one first; "" is found at the start; NULL ends */
} choice;

/* Between what two plans need: so that the planner must decide node by node. */
#define TIGHT "auto, tight"

static const choice choices[] = {
    {"train.micro_batch", {"", "", ""}},         {"train.gradient_checkpointing", {"off", "auto", "full", TIGHT}},
    {"train.layer_major", {"0", "1", "2"}},      {"train.layer_major_keep", {"1", "0"}},
    {"train.update_in_backward", {"off", "on"}}, {"run.threads", {"", "", ""}},
};
enum {
    CHOICES = sizeof choices / sizeof *choices,
    MICRO_BATCH = 0,
    CHECKPOINTING = 1,
    MAJOR = 2,
    KEEP = 3,
    THREADS = 5
};

typedef struct verification {
    const pl_config *config;
    pl_config *changed; /* the config of the row */
    const pl_verify_options *o;
    pl_verify_plain plain;
    pl_verify_outcome plain_outcome;
    char found[CHOICES][VALUES_MAX][VALUE_BYTES]; /* where the table has "" */
    pl_verify_result *result;
} verification;

static const char *value_of(const verification *v, int which, int at)
{
    const char *text = at < VALUES_MAX ? choices[which].value[at] : NULL;
    return text && !text[0] ? (v->found[which][at][0] ? v->found[which][at] : NULL) : text;
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
    PL_TRY(set(c, choices[CHECKPOINTING].key, checkpointing, err));
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
    PL_TRY(set(c, choices[CHECKPOINTING].key, "auto", err));
    return set_number(c, "memory.budget", least + (most - least) / 2, err);
}

static pl_status configure(verification *v, const int *at, pl_error *err)
{
    *v->changed = *v->config;
    PL_TRY(set(v->changed, "memory.budget", "none", err));
    for (int i = 0; i < CHOICES; i++)
        if (strcmp(value_of(v, i, at[i]), TIGHT) != 0)
            PL_TRY(set(v->changed, choices[i].key, value_of(v, i, at[i]), err));
    return strcmp(value_of(v, CHECKPOINTING, at[CHECKPOINTING]), TIGHT) == 0 ? set_tight(v->changed, err) : PL_OK;
}

/* "micro_batch 1, threads 2": what differs from the plain plan, or all of it. */
static void describe(const verification *v, const int *at, bool all, char *text, size_t room)
{
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < CHOICES && used < room; i++)
        if (at[i] || all)
            used += (size_t)snprintf(text + used, room - used, "%s%s %s", used ? ", " : "",
                                     strchr(choices[i].key, '.') + 1, value_of(v, i, at[i]));
}

/* ---- a row ---- */

static void judge(const verification *v, const pl_verify_outcome *o, pl_verify_row *row)
{
    const pl_verify_outcome *p = &v->plain_outcome;
    double relative = 0;
    row->loss = o->loss[0];
    row->gradient_difference = o->difference;
    row->gradient_share = o->share;
    row->gradient = o->gradient;
    for (int i = 0; i < PL_VERIFY_STEPS; i++) {
        double d = fabs(o->loss[i] - p->loss[i]);
        if (d > row->loss_difference) row->loss_difference = d;
        if (d / fabs(p->loss[i]) > relative) relative = d / fabs(p->loss[i]);
    }
    row->same_bits = pl_verify_same(o, p);
    /* The same gradients make the same update, whatever else there is: then only the same bits will do. */
    bool close = o->share > 0 && o->share <= PL_VERIFY_GRADIENT_SHARE && relative <= PL_VERIFY_LOSS_SHARE;
    row->within = row->repeats && (row->same_bits || close);
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

/* Twice, from the start. */
static pl_status run_twice(verification *v, const pl_plan *plan, bool keeps, pl_verify_outcome *o, bool *repeats,
                           pl_error *err)
{
    pl_verify_outcome again;
    PL_TRY(pl_verify_run(&v->plain, plan, v->o->checkpoint, keeps, o, err));
    PL_TRY(pl_verify_run(&v->plain, plan, v->o->checkpoint, false, &again, err));
    *repeats = pl_verify_same(o, &again);
    return PL_OK;
}

/* What cannot be planned or held is a row with its reason; what fails while it runs is a failure. */
static pl_status verify_row(verification *v, const int *at, pl_error *err)
{
    char text[256];
    pl_error why = {0};
    pl_plan *plan = NULL;
    pl_verify_outcome o;
    pl_verify_row row = {.choices = text};
    describe(v, at, false, text, sizeof text);
    pl_status status = configure(v, at, &why);
    if (status == PL_OK) status = pl_plan_make_unmeasured(v->changed, &plan, &why);
    if (status == PL_OK) status = pl_room_check_beside(plan, &why);
    if (status == PL_E_CONFIG || status == PL_E_BUDGET) {
        row.refused = why.text;
        tell(v, &row);
        pl_plan_destroy(plan);
        return PL_OK;
    }
    if (status != PL_OK) {
        *err = why;
        return status;
    }
    row.arena_bytes = pl_plan_arena_bytes(plan);
    status = run_twice(v, plan, false, &o, &row.repeats, err);
    pl_plan_destroy(plan);
    if (status != PL_OK) return status;
    judge(v, &o, &row);
    tell(v, &row);
    return PL_OK;
}

/* ---- the plain plan ---- */

static pl_status plan_plain(verification *v, int64_t micro_batch, pl_error *err)
{
    const int plain[CHOICES] = {0};
    snprintf(v->found[MICRO_BATCH][0], VALUE_BYTES, "%lld", (long long)micro_batch);
    PL_TRY(configure(v, plain, err));
    PL_TRY(pl_plan_make_unmeasured(v->changed, &v->plain.plan, err));
    pl_status status = pl_room_check_beside(v->plain.plan, err);
    if (status != PL_OK) pl_plan_destroy(v->plain.plan), v->plain.plan = NULL;
    return status;
}

/* The largest micro-batch that this machine can hold, and two smaller ones to compare: one that does not divide the
 * batch, where there is one, and 1. */
static pl_status find_micro_batches(verification *v, pl_error *err)
{
    int64_t batch = v->config->train.batch_size, micro = batch;
    pl_status status = plan_plain(v, micro, err);
    while (status == PL_E_BUDGET && micro > 1) {
        pl_error_clear(err);
        micro = micro / 2;
        status = plan_plain(v, micro, err);
    }
    PL_TRY(status);
    int64_t odd = micro / 2 + 1;
    if (odd < micro && odd > 1) snprintf(v->found[MICRO_BATCH][1], VALUE_BYTES, "%lld", (long long)odd);
    if (micro > 1) snprintf(v->found[MICRO_BATCH][odd < micro && odd > 1 ? 2 : 1], VALUE_BYTES, "1");
    return PL_OK;
}

static void find_threads(verification *v, int64_t threads)
{
    snprintf(v->found[THREADS][0], VALUE_BYTES, "%lld", (long long)threads);
    snprintf(v->found[THREADS][1], VALUE_BYTES, "%lld", (long long)(threads == 1 ? 2 : 1));
    snprintf(v->found[THREADS][2], VALUE_BYTES, "%d", 3 + (threads == 3));
}

static pl_status verify_plain(verification *v, pl_error *err)
{
    const int plain[CHOICES] = {0};
    char text[256];
    pl_verify_row row = {.choices = text};
    PL_TRY(run_twice(v, v->plain.plan, true, &v->plain_outcome, &row.repeats, err));
    describe(v, plain, true, text, sizeof text);
    row.arena_bytes = pl_plan_arena_bytes(v->plain.plan);
    judge(v, &v->plain_outcome, &row);
    tell(v, &row);
    return PL_OK;
}

/* ---- all of them ---- */

/* The next combination, the last choice fastest; false after the last one. */
static bool advance(const verification *v, int *at)
{
    for (int i = CHOICES; i-- > 0; at[i] = 0)
        if (value_of(v, i, at[i] + 1)) return at[i]++, true;
    return false;
}

/* Without layer_major nothing reads how many of its groups are kept. */
static bool wanted(const verification *v, const int *at)
{
    int changes = 0;
    for (int i = 0; i < CHOICES; i++) changes += at[i] != 0 && i != KEEP;
    if (at[KEEP] && !at[MAJOR]) return false;
    return v->o->everything || changes <= CHANGES_USUAL;
}

static pl_status verify_all(verification *v, pl_error *err)
{
    int at[CHOICES] = {0};
    while (advance(v, at)) {
        if (!wanted(v, at)) continue;
        PL_TRY(verify_row(v, at, err));
        if (v->o->stop && *v->o->stop) return pl_fail(err, PL_E_STOPPED, "stopped before all rows were compared");
    }
    return PL_OK;
}

static pl_status conclude(const pl_verify_result *r, pl_error *err)
{
    if (r->failed == 0) return PL_OK;
    return pl_fail(
        err, PL_E_MISMATCH,
        "%llu of %llu plans do not make the update of the plain one: a fault of Plimsoll or of this machine's "
        "memory; please report it with this table",
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
    verification v = {.config = config, .o = o, .result = result, .plain = {.beta1 = config->train.beta1}};
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
    PL_TRY_DONE(verify_plain(&v, err));
    PL_TRY_DONE(verify_all(&v, err));
    PL_TRY_DONE(conclude(result, err));
done:
    pl_verify_plain_deinit(&v.plain);
    pl_config_destroy(v.changed);
    return status;
}
