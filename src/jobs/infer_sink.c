#include "jobs/infer_sink.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/locale.h"
#include "run/session_impl.h"
#include "store/npy.h"

enum { NUMBER_BYTES = 32 };

/* ---- files ---- */

static pl_status open_array(pl_infer_sink *k, const char *prefix, const pl_infer_output *o, uint64_t items,
                            pl_error *err)
{
    char path[PL_FILE_PATH_MAX], header[PL_NPY_HEADER_MAX];
    uint64_t shape[PL_RANK_MAX + 1] = {items};
    for (uint32_t i = 0; i < o->rank; i++) shape[i + 1] = o->dim[i];
    const int n = snprintf(path, sizeof path, "%s.%s.npy", prefix, o->name);
    if (n < 0 || (size_t)n >= sizeof path) return pl_fail(err, PL_E_USAGE, "%.300s: the path is too long", prefix);
    PL_TRY(pl_file_create(&k->file[k->open], path, err));
    k->open++;
    const size_t bytes = pl_npy_header(PL_DTYPE_F32, 0, o->rank + 1, shape, header);
    return pl_file_write(&k->file[k->open - 1], header, bytes, err);
}

pl_status pl_infer_sink_open(pl_infer_sink *k, const char *to, const char *arrays, uint64_t items, pl_error *err)
{
    k->in_arrays = arrays != NULL;
    k->in_file = to && !arrays;
    for (size_t i = 0; i < k->outputs && arrays; i++) PL_TRY(open_array(k, arrays, &k->output[i], items, err));
    if (!k->in_file) return PL_OK;
    PL_TRY(pl_file_create(&k->file[0], to, err));
    k->open = 1;
    return PL_OK;
}

pl_status pl_infer_sink_close(pl_infer_sink *k, bool complete, pl_error *err)
{
    pl_status status = complete ? pl_infer_sink_flush(k, err) : PL_OK;
    if (complete && status == PL_OK) status = pl_file_commit_all(k->file, k->open, err);
    for (size_t i = 0; i < k->open; i++) pl_file_abandon(&k->file[i]);
    k->open = 0;
    k->bytes = 0;
    return status;
}

/* ---- lines ---- */

pl_status pl_infer_sink_flush(pl_infer_sink *k, pl_error *err)
{
    if (k->bytes == 0) return PL_OK;
    if (k->in_file) PL_TRY(pl_file_write(&k->file[0], k->text, k->bytes, err));
    if (!k->in_file) pl_session_tell(k->s, (pl_event){.kind = PL_EVENT_TEXT, .text = k->text, .text_bytes = k->bytes});
    k->bytes = 0;
    return PL_OK;
}

static pl_status add(pl_infer_sink *k, const char *text, size_t bytes, pl_error *err)
{
    if (bytes > sizeof k->text - k->bytes) PL_TRY(pl_infer_sink_flush(k, err));
    memcpy(k->text + k->bytes, text, bytes);
    k->bytes += bytes;
    return PL_OK;
}

static pl_status add_number(pl_infer_sink *k, float x, pl_error *err)
{
    char text[NUMBER_BYTES];
    if (!isfinite(x)) return k->not_finite++, add(k, "null", 4, err);
    return add(k, text, (size_t)snprintf(text, sizeof text, "%.9g", (double)x), err);
}

/* Brackets that open before element e, and close behind it: one for each dimension that begins or ends there. */
static uint32_t count_brackets(const pl_infer_output *o, uint64_t e)
{
    uint64_t within = 1;
    uint32_t count = 0;
    for (uint32_t i = o->rank; i-- > 0; count++) {
        within *= o->dim[i];
        if (e % within) break;
    }
    return count;
}

static pl_status add_brackets(pl_infer_sink *k, char which, uint32_t count, pl_error *err)
{
    char text[PL_RANK_MAX];
    memset(text, which, count);
    return add(k, text, count, err);
}

static pl_status add_values(pl_infer_sink *k, const pl_infer_output *o, const float *x, pl_error *err)
{
    for (uint64_t e = 0; e < o->elems; e++) {
        if (e) PL_TRY(add(k, ",", 1, err));
        PL_TRY(add_brackets(k, '[', count_brackets(o, e), err));
        PL_TRY(add_number(k, x[e], err));
        PL_TRY(add_brackets(k, ']', count_brackets(o, e + 1), err));
    }
    return PL_OK;
}

static void add_remarks(pl_json *j, const pl_infer_item *item)
{
    if (item->remarks == 0) return;
    pl_json_key(j, "remarks");
    pl_json_array(j);
    for (size_t i = 0; i < item->remarks; i++) pl_json_string(j, item->remark[i]->word);
    pl_json_array_end(j);
}

static pl_status add_head(pl_infer_sink *k, uint64_t number, const char *source, const pl_infer_item *item,
                          pl_error *err)
{
    pl_str s = pl_str_fixed(k->head, sizeof k->head);
    pl_json j = pl_json_begin(&s, true);
    pl_json_object(&j);
    pl_json_kv_uint(&j, "item", number);
    pl_json_kv_string(&j, "source", source);
    add_remarks(&j, item);
    if (s.failed) return pl_fail(err, PL_E_USAGE, "%.300s: the path is too long", source);
    return add(k, k->head, s.bytes, err);
}

/* Keys that go on with the line: what the writer believes to be an object of its own begins with a brace. */
static pl_status add_said(pl_infer_sink *k, const pl_infer_item *item, pl_error *err)
{
    pl_str s = pl_str_fixed(k->said, sizeof k->said);
    pl_json j = pl_json_begin(&s, true);
    if (!k->say) return PL_OK;
    if (!item->is_last) return k->say(k->of, item, NULL), PL_OK;
    pl_json_object(&j);
    k->say(k->of, item, &j);
    if (s.failed) return pl_fail(err, PL_E_INTERNAL, "no room for what is said of an item");
    if (s.bytes == 1) return PL_OK;
    k->said[0] = ',';
    return add(k, k->said, s.bytes, err);
}

static pl_status add_key(pl_infer_sink *k, const pl_infer_output *o, pl_error *err)
{
    char key[PL_FILE_PATH_MAX];
    return add(k, key, (size_t)snprintf(key, sizeof key, ",\"%s\":", o->name), err);
}

static pl_status put_line(pl_infer_sink *k, uint64_t number, const char *source, const pl_infer_item *item,
                          pl_error *err)
{
    PL_TRY(add_head(k, number, source, item, err));
    PL_TRY(add_said(k, item, err));
    for (size_t i = 0; i < k->outputs && !k->brief; i++) {
        PL_TRY(add_key(k, &k->output[i], err));
        PL_TRY(add_values(k, &k->output[i], item->values[i], err));
    }
    return add(k, "}\n", 2, err);
}

/* ---- an item in parts ----
 *
 *     {"item":0,"source":"t.txt[0]","logits":[ rows of the first part, …, rows of the last ],"tokens":…}
 *
 * A row says what comes behind its id. A part begins with ids of the one before, and has the rows from the last of
 * those to its last id but one; the last part has the row of its last id, too. The system's keys come at the end, when
 * all is known. */

static pl_status add_rows(pl_infer_sink *k, const pl_infer_output *o, const pl_infer_item *item, pl_error *err)
{
    pl_infer_output row = {.rank = o->rank - 1, .elems = o->elems / o->dim[0]};
    const uint64_t from = item->again ? item->again - 1 : 0;
    uint64_t end = item->is_last ? item->id_count : item->id_count - 1;
    while (item->is_last && end > 0 && item->ids[end - 1] < 0) end--;
    memcpy(row.dim, o->dim + 1, row.rank * sizeof *row.dim);
    for (uint64_t r = from; r < end; r++) {
        if (r > from || item->again) PL_TRY(add(k, ",", 1, err));
        PL_TRY(add_values(k, &row, item->values[0] + r * row.elems, err));
    }
    return PL_OK;
}

static pl_status put_part(pl_infer_sink *k, uint64_t number, const char *source, const pl_infer_item *item,
                          pl_error *err)
{
    const pl_infer_output *o = &k->output[0];
    const bool is_first = item->again == 0,
               begins = k->brief ? item->is_last : is_first; /* a stop cuts no brief line */
    if (k->outputs != 1 || o->rank == 0 || o->dim[0] != item->id_count)
        return pl_fail(err, PL_E_INTERNAL, "what this model gives out cannot be joined from parts");
    if (begins) PL_TRY(add_head(k, number, source, item, err));
    if (is_first && !k->brief) PL_TRY(add_key(k, o, err));
    if (is_first && !k->brief) PL_TRY(add(k, "[", 1, err));
    if (!k->brief) PL_TRY(add_rows(k, o, item, err));
    if (item->is_last && !k->brief) PL_TRY(add(k, "]", 1, err));
    PL_TRY(add_said(k, item, err));
    return item->is_last ? add(k, "}\n", 2, err) : PL_OK;
}

static pl_status put_arrays(pl_infer_sink *k, const float *const *values, pl_error *err)
{
    for (size_t i = 0; i < k->outputs; i++) {
        for (uint64_t e = 0; e < k->output[i].elems; e++) k->not_finite += !isfinite(values[i][e]);
        PL_TRY(pl_file_write(&k->file[i], values[i], k->output[i].elems * sizeof(float), err));
    }
    return PL_OK;
}

pl_status pl_infer_sink_put(pl_infer_sink *k, uint64_t number, const char *source, const pl_infer_item *item,
                            pl_error *err)
{
    if (k->in_arrays) return put_arrays(k, item->values, err);
    const locale_t before = pl_locale_enter();
    const bool is_whole = item->again == 0 && item->is_last;
    const pl_status status = (is_whole ? put_line : put_part)(k, number, source, item, err);
    pl_locale_leave(before);
    return status;
}
