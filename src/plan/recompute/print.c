/* A solution as text: the schedule, one step a line; or all about it as JSON. */
#include <inttypes.h>

#include "plimsoll/recompute.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"

static void print_step(const pl_recompute_step *step, pl_str *out)
{
    pl_str_append_bytes(out, step->action == PL_RECOMPUTE_COMPUTE ? "C " : "F ", 2);
    pl_str_uint(out, step->node);
}

static void print_schedule(const pl_recompute_solution *s, pl_str *out)
{
    for (size_t i = 0; i < s->step_count; i++) {
        print_step(&s->steps[i], out);
        pl_str_append_bytes(out, "\n", 1);
    }
}

static const char *verdict_name(pl_recompute_verdict verdict)
{
    return verdict == PL_RECOMPUTE_FITS ? "fits" : verdict == PL_RECOMPUTE_IMPOSSIBLE ? "impossible" : "not found";
}

/* Added share of the cost; 0 where all is free. */
static double added_share(const pl_recompute_solution *s) { return s->base_cost > 0 ? s->cost / s->base_cost - 1 : 0; }

static void print_numbers(const pl_recompute_problem *problem, const pl_recompute_solution *s, pl_json *json)
{
    pl_json_kv_string(json, "verdict", verdict_name(s->verdict));
    pl_json_kv_uint(json, "nodes", problem->node_count);
    pl_json_kv_uint_if(json, problem->budget != PL_RECOMPUTE_NONE, "budget_bytes", problem->budget);
    pl_json_kv_uint(json, "fixed_bytes", problem->fixed);
    pl_json_kv_uint(json, "peak_bytes", s->peak);
    pl_json_kv_uint(json, "store_all_bytes", s->store_all_peak);
    pl_json_kv_uint(json, "floor_bytes", s->floor_bytes);
    pl_json_kv_double(json, "cost", s->cost);
    pl_json_kv_double(json, "base_cost", s->base_cost);
    pl_json_kv_double(json, "added_share", added_share(s));
    pl_json_kv_double(json, "cost_lower_bound", s->cost_lower_bound);
    pl_json_kv_bool(json, "optimal", s->optimal);
    pl_json_kv_string(json, "method", s->method);
    pl_json_kv_double(json, "seconds", s->seconds);
    pl_json_kv_uint(json, "work", s->work);
}

static void print_json(const pl_recompute_problem *problem, const pl_recompute_solution *s, pl_str *out)
{
    pl_json json = pl_json_document(out, false, "plimsoll.recompute/1");
    print_numbers(problem, s, &json);
    pl_json_key(&json, "schedule");
    pl_json_array(&json);
    for (size_t i = 0; i < s->step_count; i++) {
        char step[24];
        pl_str text = pl_str_fixed(step, sizeof step);
        print_step(&s->steps[i], &text);
        pl_json_string(&json, pl_str_text(&text));
    }
    pl_json_array_end(&json);
    pl_json_document_end(&json);
}

pl_status pl_recompute_print(const pl_recompute_problem *problem, const pl_recompute_solution *solution,
                             pl_recompute_form form, char **text, size_t *bytes, pl_error *err)
{
    pl_str out = {0};
    *text = NULL, *bytes = 0;
    pl_str_append(&out, "");
    switch (form) {
    case PL_RECOMPUTE_SCHED:
        print_schedule(solution, &out);
        break;
    case PL_RECOMPUTE_JSON:
        print_json(problem, solution, &out);
        break;
    default:
        pl_str_deinit(&out);
        return pl_fail(err, PL_E_USAGE, "pl_recompute_print: form %d does not exist", (int)form);
    }
    if (out.failed || !out.data) {
        pl_str_deinit(&out);
        return pl_fail(err, PL_E_NOMEM, "no memory to print %zu steps", solution->step_count);
    }
    *text = out.data;
    *bytes = out.bytes;
    return PL_OK;
}

void pl_recompute_text_free(char *text) { pl_free(text); }
