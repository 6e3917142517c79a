/* The comparison as JSON (docs/infer.md). What was not measured is null, and a sentence says why. */
#include "report/compare.h"

#include <math.h>

static void put_sentence(pl_json *j, const char *key, const char *sentence)
{
    pl_json_kv_string(j, key, sentence[0] ? sentence : NULL);
}

static void put_runs(const pl_compare_run *r, pl_json *j)
{
    pl_json_object(j);
    pl_json_kv_uint(j, "batch", r->batch);
    pl_json_kv_uint_if(j, r->turns > 0, "items", r->items);
    pl_json_kv_double_if(j, r->turns > 0, "seconds", pl_compare_median(r));
    pl_json_key(j, "turns");
    pl_json_array(j);
    for (uint32_t i = 0; i < r->turns; i++) pl_json_double(j, r->seconds[i]);
    pl_json_array_end(j);
    pl_json_kv_uint_if(j, r->turns > 0, "planned_bytes", r->planned_bytes);
    pl_json_kv_uint_if(j, r->turns > 0, "measured_bytes", r->measured_bytes);
    put_sentence(j, "why_not", r->why);
    pl_json_object_end(j);
}

static void put_metrics(const pl_compare_row *r, pl_json *j)
{
    pl_json_key(j, "held_out");
    if (r->metrics) {
        pl_json_object(j);
        for (size_t i = 0; i < r->metrics; i++) pl_json_kv_double(j, r->metric[i].name, r->metric[i].value);
        pl_json_object_end(j);
    } else {
        pl_json_null(j);
    }
    put_sentence(j, "not_judged", r->not_judged);
}

static void put_outputs(const pl_compare_row *r, pl_json *j)
{
    pl_json_key(j, "outputs");
    pl_json_array(j);
    for (size_t i = 0; i < r->outputs; i++) {
        const pl_compare_output *o = &r->output[i];
        pl_json_object(j);
        pl_json_kv_string(j, "name", o->name);
        pl_json_kv_double_if(j, isfinite(o->difference), "difference", o->difference);
        pl_json_kv_double_if(j, o->has_cosine, "mean_cosine", o->mean_cosine);
        pl_json_kv_double_if(j, o->has_cosine, "least_cosine", o->least_cosine);
        pl_json_object_end(j);
    }
    pl_json_array_end(j);
}

static void put_row(const pl_compare_row *r, pl_json *j)
{
    pl_json_object(j);
    pl_json_kv_string(j, "variant", r->name);
    put_sentence(j, "why_not", r->why);
    put_sentence(j, "remark", r->remark);
    pl_json_kv_uint_if(j, r->file_bytes > 0, "file_bytes", r->file_bytes);
    pl_json_key(j, "runs");
    pl_json_array(j);
    for (int b = 0; b < PL_COMPARE_BATCHES; b++) put_runs(&r->runs[b], j);
    pl_json_array_end(j);
    put_metrics(r, j);
    put_outputs(r, j);
    pl_json_object_end(j);
}

static void put_share(const pl_report_compare *c, pl_json *j)
{
    const double share = pl_compare_share(c);
    pl_json_key(j, "binary");
    pl_json_object(j);
    pl_json_kv_bool(j, "is", c->is_binary);
    pl_json_kv_double(j, "flops", c->flops);
    pl_json_kv_double(j, "binary_flops", c->binary_flops);
    pl_json_kv_double_if(j, share >= 0, "share", share);
    pl_json_kv_double(j, "amdahl_limit", pl_compare_limit(c));
    pl_json_object_end(j);
}

void pl_report_compare_json(const pl_report_compare *c, pl_str *out)
{
    pl_json j = pl_json_document(out, false, PL_COMPARE_SCHEMA);
    pl_json_kv_string(&j, "model", c->title);
    pl_json_kv_string(&j, "arch", c->arch);
    pl_json_kv_string(&j, "inputs", c->inputs);
    pl_json_kv_uint(&j, "turns", c->turns);
    pl_json_key(&j, "variants");
    pl_json_array(&j);
    for (int i = 0; i < PL_COMPARE_ROWS; i++) put_row(&c->row[i], &j);
    pl_json_array_end(&j);
    put_share(c, &j);
    pl_json_document_end(&j);
}
