/* A problem with its solution as text: CSV that reads back (offsets then being fixed), JSON for programs, SVG for eyes.
 */
#include "plimsoll/place.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "svg.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"

static void print_id(pl_str *out, const pl_place_buffer *b, size_t i)
{
    if (!b->id) {
        pl_str_printf(out, "%zu", i);
        return;
    }
    size_t n = strlen(b->id);
    bool spaced = n && (strchr(" \t", b->id[0]) || strchr(" \t", b->id[n - 1]));
    if (!spaced && !strpbrk(b->id, "\",\r\n")) {
        pl_str_append(out, b->id);
        return;
    }
    pl_str_append(out, "\"");
    for (const char *c = b->id; *c; c++) pl_str_append_bytes(out, *c == '"' ? "\"\"" : c, *c == '"' ? 2 : 1);
    pl_str_append(out, "\"");
}

static void print_csv(const pl_place_problem *problem, const pl_place_solution *solution, pl_str *out)
{
    bool aligned = false;
    for (size_t i = 0; i < problem->buffer_count; i++) aligned |= problem->buffers[i].alignment != 1;
    pl_str_append(out, aligned ? "id,lower,upper,size,alignment,offset\n" : "id,lower,upper,size,offset\n");
    for (size_t i = 0; i < problem->buffer_count; i++) {
        const pl_place_buffer *b = &problem->buffers[i];
        print_id(out, b, i);
        pl_str_printf(out, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64, b->lower, b->upper, b->size);
        if (aligned) pl_str_printf(out, ",%" PRIu64, b->alignment);
        pl_str_printf(out, ",%" PRIu64 "\n", solution->offsets[i]);
    }
}

static const char *verdict_name(pl_place_verdict verdict)
{
    return verdict == PL_PLACE_FITS ? "fits" : verdict == PL_PLACE_IMPOSSIBLE ? "impossible" : "not found";
}

static void print_json_buffer(pl_json *json, const pl_place_buffer *b, size_t i, uint64_t offset)
{
    pl_json_object(json);
    char index[24];
    snprintf(index, sizeof index, "%zu", i);
    pl_json_kv_string(json, "id", b->id ? b->id : index);
    pl_json_kv_uint(json, "lower", b->lower);
    pl_json_kv_uint(json, "upper", b->upper);
    pl_json_kv_uint(json, "size", b->size);
    pl_json_kv_uint(json, "alignment", b->alignment);
    pl_json_kv_bool(json, "fixed", b->fixed_offset != PL_PLACE_NONE);
    pl_json_kv_uint(json, "offset", offset);
    pl_json_object_end(json);
}

static void print_json(const pl_place_problem *problem, const pl_place_solution *s, pl_str *out)
{
    pl_json json = pl_json_document(out, false, "plimsoll.place/1");
    pl_json_kv_string(&json, "verdict", verdict_name(s->verdict));
    pl_json_kv_uint_if(&json, problem->capacity != PL_PLACE_NONE, "capacity_bytes", problem->capacity);
    pl_json_kv_uint(&json, "peak_bytes", s->peak);
    pl_json_kv_uint(&json, "lower_bound_bytes", s->lower_bound);
    pl_json_kv_uint(&json, "gap_bytes", s->peak - s->lower_bound);
    pl_json_kv_bool(&json, "optimal", s->optimal);
    pl_json_kv_uint(&json, "peak_time", s->peak_time);
    pl_json_kv_uint(&json, "bound_time", s->bound_time);
    pl_json_kv_string(&json, "heuristic", s->heuristic);
    pl_json_kv_double(&json, "seconds", s->seconds);
    pl_json_kv_uint(&json, "nodes", s->nodes);
    pl_json_key(&json, "buffers");
    pl_json_array(&json);
    for (size_t i = 0; i < problem->buffer_count; i++) print_json_buffer(&json, &problem->buffers[i], i, s->offsets[i]);
    pl_json_array_end(&json);
    pl_json_document_end(&json);
}

pl_status pl_place_print(const pl_place_problem *problem, const pl_place_solution *solution, pl_place_form form,
                         char **text, size_t *bytes, pl_error *err)
{
    pl_str out = {0};
    *text = NULL, *bytes = 0;
    switch (form) {
    case PL_PLACE_CSV:
        print_csv(problem, solution, &out);
        break;
    case PL_PLACE_JSON:
        print_json(problem, solution, &out);
        break;
    case PL_PLACE_SVG:
        place_svg(problem, solution, &out);
        break;
    default:
        return pl_fail(err, PL_E_USAGE, "pl_place_print: form %d does not exist", (int)form);
    }
    if (out.failed || !out.data) {
        pl_str_deinit(&out);
        return pl_fail(err, PL_E_NOMEM, "no memory to print %zu buffers", problem->buffer_count);
    }
    *text = out.data;
    *bytes = out.bytes;
    return PL_OK;
}

void pl_place_text_free(char *text) { pl_free(text); }
