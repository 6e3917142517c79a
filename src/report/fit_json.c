/* A search as JSON, schema "plimsoll.fit/1" (docs/fit.md). Sizes are exact bytes; what is not known is null. */
#include <stdio.h>

#include "base/json.h"
#include "report/account.h"
#include "report/fit.h"

enum { ALIVE_SHOWN = 8, RATE_BYTES = 64 };

static void write_choice(pl_json *j, const pl_fit_result *r, const pl_choice *c)
{
    pl_json_key(j, "choice");
    pl_json_object(j);
    for (size_t k = 0; k < pl_fit_axis_count(); k++) {
        char words[PL_FIT_WORDS_BYTES];
        if (!pl_fit_axis_applies(k, r)) continue;
        pl_str said = pl_str_fixed(words, sizeof words);
        words[0] = 0;
        pl_fit_axis_short(k, r, c, &said);
        pl_json_kv_string(j, pl_fit_axis_name(k), words);
    }
    pl_json_object_end(j);
}

static void write_point(pl_json *j, const pl_fit_result *r, const pl_fit_point *p)
{
    char rate_key[RATE_BYTES];
    double rate = pl_report_items_per_second(r, p);
    snprintf(rate_key, sizeof rate_key, "%s_per_second", r->words->items);
    pl_json_object(j);
    write_choice(j, r, &p->choice);
    pl_json_kv_int(j, "micro_batch", p->choice.micro_batch);
    pl_json_kv_int(j, "threads", p->choice.threads ? p->choice.threads : r->threads);
    pl_json_kv_uint_if(j, p->least_bytes != 0, "least_bytes", p->least_bytes);
    pl_json_kv_uint_if(j, p->charged_bytes != 0, "charged_bytes", p->charged_bytes);
    pl_json_kv_uint_if(j, p->huge_bytes != 0, "huge_pages_bytes", p->huge_bytes);
    pl_json_kv_double_if(j, p->seconds >= 0, "seconds", p->seconds);
    pl_json_kv_double_if(j, p->seconds >= 0, "seconds_spread", (p->high - p->low) / 2);
    pl_json_kv_double_if(j, p->seconds >= 0, "seconds_low", p->low);
    pl_json_kv_double_if(j, p->seconds >= 0, "seconds_high", p->high);
    pl_json_kv_double_if(j, p->seconds >= 0, "estimated_seconds", p->estimated_seconds);
    pl_json_kv_double_if(j, rate > 0, rate_key, rate);
    pl_json_kv_bool(j, "front", p->front);
    pl_json_object_end(j);
}

static void write_chosen(pl_json *j, const pl_fit_result *r, const pl_plan *plan, const pl_report_fit_options *o)
{
    pl_json_key(j, "chosen");
    if (!plan) {
        pl_json_null(j);
        return;
    }
    const pl_fit_point *p = &r->point[r->chosen];
    pl_json_object(j);
    pl_json_kv_uint(j, "point", r->chosen);
    pl_json_kv_uint(j, "charged_bytes", pl_plan_charged_bytes(plan));
    pl_json_kv_uint(j, "resident_bytes", pl_plan_resident_bytes(plan));
    pl_json_kv_uint(j, "arena_bytes", plan->arena->bytes);
    pl_json_kv_bool(j, "huge_pages", r->huge_pages);
    pl_json_kv_double_if(j, p->seconds >= 0, "seconds", p->seconds);
    pl_json_kv_double_if(j, p->seconds >= 0, "seconds_low", p->low);
    pl_json_kv_double_if(j, p->seconds >= 0, "seconds_high", p->high);
    pl_json_kv_double_if(j, p->seconds >= 0, "estimated_seconds", p->estimated_seconds);
    pl_json_kv_double_if(j, p->seconds >= 0 && o->steps, "run_seconds", p->seconds * (double)o->steps);
    pl_json_key(j, "reasons");
    pl_json_object(j);
    for (size_t k = 0; k < pl_fit_axis_count(); k++) {
        pl_str why = {0};
        if (!pl_fit_axis_applies(k, r)) continue;
        pl_report_reason(r, k, &why);
        pl_json_kv_string(j, pl_fit_axis_name(k), pl_str_text(&why));
        j->out->failed |= why.failed;
        pl_str_deinit(&why);
    }
    pl_json_object_end(j);
    pl_json_object_end(j);
}

static void write_time(pl_json *j, const pl_fit_result *r, const pl_plan *plan)
{
    pl_report_step s;
    pl_json_key(j, "step");
    if (!plan || !pl_report_time_step(plan, &s)) {
        pl_json_null(j);
        return;
    }
    const pl_fit_point *larger = pl_report_larger_budget(r);
    pl_json_object(j);
    pl_json_kv_string(j, "bottleneck", s.bottleneck);
    pl_json_kv_double(j, "computing_seconds", s.computing_seconds);
    pl_json_kv_double(j, "moving_seconds", s.moving_seconds);
    pl_json_kv_double(j, "small_calls_seconds", s.small_seconds);
    pl_json_kv_double(j, "once_seconds", s.once_seconds);
    pl_json_kv_double(j, "flops_per_second", s.flops_per_second);
    pl_json_kv_double(j, "bytes_per_second", s.bytes_per_second);
    pl_json_kv_double(j, "twice_the_batch_gain", pl_report_larger_batch_gain(&s));
    pl_json_kv_uint_if(j, larger != NULL, "larger_budget_bytes", larger ? larger->charged_bytes : 0);
    pl_json_kv_double_if(j, larger != NULL, "larger_budget_seconds", larger ? larger->seconds : 0);
    pl_json_kv_uint_if(j, r->narrow.least_bytes != 0, "bf16_least_bytes", r->narrow.least_bytes);
    pl_json_kv_double_if(j, r->narrow.least_bytes && r->narrow.seconds >= 0, "bf16_seconds", r->narrow.seconds);
    pl_json_object_end(j);
}

/* ---- nothing fits ---- */

static void write_roles(pl_json *j, const pl_plan *p)
{
    pl_report_account a = pl_report_sum(p);
    pl_json_key(j, "roles");
    pl_json_array(j);
    for (int r = 0; r < PL_ROLE_COUNT; r++) {
        if (a.role_bytes[r] == 0) continue;
        pl_json_object(j);
        pl_json_kv_string(j, "role", pl_role_name((pl_role)r));
        pl_json_kv_uint(j, "bytes", a.role_bytes[r]);
        pl_json_object_end(j);
    }
    pl_json_array_end(j);
}

static pl_status write_alive(pl_json *j, const pl_plan *p, pl_error *err)
{
    pl_report_alive *alive;
    size_t count;
    PL_TRY(pl_report_alive_at_peak(p, &alive, &count, err));
    pl_json_key(j, "alive");
    pl_json_array(j);
    for (size_t i = 0; i < count && i < ALIVE_SHOWN; i++) {
        bool workspace = alive[i].value == PL_NONE;
        const pl_value *v = workspace ? NULL : &p->graph->value[alive[i].value];
        pl_json_object(j);
        pl_json_kv_string(j, "name", workspace ? pl_op_name(p->graph->node[alive[i].node].op) : v->name);
        pl_json_kv_string(j, "role", workspace ? "workspace" : pl_role_name(v->role));
        pl_json_kv_uint(j, "bytes", alive[i].block->bytes);
        pl_json_object_end(j);
    }
    pl_json_array_end(j);
    pl_free(alive);
    return PL_OK;
}

static void write_permission(pl_json *j, const pl_fit_permission *p)
{
    pl_json_object(j);
    pl_json_kv_string(j, "key", p->key);
    pl_json_kv_string(j, "value", p->value);
    pl_json_kv_bool(j, "fits", p->fits);
    pl_json_kv_uint_if(j, p->charged_bytes != 0, "charged_bytes", p->charged_bytes);
    pl_json_kv_double_if(j, p->seconds >= 0, "seconds", p->seconds);
    pl_json_object_end(j);
}

static void write_permissions(pl_json *j, const char *key, const pl_fit_result *r)
{
    pl_json_key(j, key);
    pl_json_array(j);
    for (size_t i = 0; i < r->permission_count; i++) write_permission(j, &r->permission[i]);
    pl_json_array_end(j);
}

static pl_status write_certificate(pl_json *j, const pl_fit_result *r, pl_error *err)
{
    pl_json_key(j, "certificate");
    if (!r->smallest) {
        pl_json_null(j);
        write_permissions(j, "other_numbers", r);
        return PL_OK;
    }
    pl_json_object(j);
    pl_json_kv_uint(j, "least_bytes", r->point[r->least].charged_bytes);
    pl_json_kv_uint(j, "missing_bytes", r->point[r->least].charged_bytes - r->budget_bytes);
    pl_json_kv_uint(j, "point", r->least);
    write_roles(j, r->smallest);
    PL_TRY(write_alive(j, r->smallest, err));
    write_permissions(j, "permissions", r);
    pl_json_kv_uint_if(j, r->cheapest != PL_FIT_NONE, "cheapest", r->cheapest);
    pl_json_object_end(j);
    return PL_OK;
}

pl_status pl_report_fit_json(const pl_fit_result *r, const pl_plan *plan, const pl_report_fit_options *o, pl_str *out,
                             pl_error *err)
{
    pl_json j = pl_json_document(out, false, "plimsoll.fit/1");
    pl_json_kv_string(&j, "title", o->title);
    pl_json_kv_uint_if(&j, r->budget_bytes != UINT64_MAX, "budget_bytes", r->budget_bytes);
    pl_json_kv_int(&j, "batch", r->batch);
    pl_json_kv_int(&j, r->words->sample, r->rows);
    pl_json_kv_uint_if(&j, o->steps != 0, "steps", o->steps);
    write_chosen(&j, r, plan, o);
    write_time(&j, r, plan);
    PL_TRY(write_certificate(&j, r, err));
    pl_json_key(&j, "points");
    pl_json_array(&j);
    for (size_t i = 0; i < r->count; i++) write_point(&j, r, &r->point[i]);
    pl_json_array_end(&j);
    pl_json_document_end(&j);
    return out->failed ? pl_fail(err, PL_E_NOMEM, "no memory for the search as JSON") : PL_OK;
}
