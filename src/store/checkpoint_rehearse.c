/* What loading a checkpoint asks of the heap, found by doing it with a checkpoint that is only in memory: a record and
 * two headers, as saving would print them. In the order of checkpoint_load.c.
 *
 * Of a long list a part is read, 1/2^k, and counted 2^k times: that is right for what grows with each tensor, and for
 * jansson's and our tables, which double. Some entries more are read than a 2^k-th, so that a table which the whole
 * list would make grow has grown. Of every 2^k neighbours one is taken, each time another one: no rhythm of layers
 * meets it, and what was drawn is off by less than a thousandth. */
#include <stdio.h>

#include "base/alloc.h"
#include "store/checkpoint.h"

enum { PART_MAX = 1024, FURTHER = 128 }; /* tensors that are read; one of so many is read beyond its 2^k-th */

static pl_status no_memory(pl_error *err) { return pl_fail(err, PL_E_NOMEM, "no memory to rehearse a checkpoint"); }

static pl_status read_record(const pl_record *record, pl_saved *saved, pl_error *err)
{
    const uint64_t bytes = pl_record_bytes(record);
    char *text = bytes ? pl_alloc(bytes + 1, 1) : NULL;
    if (!text) return no_memory(err);
    pl_status status = pl_record_print(record, text, bytes, err);
    if (status == PL_OK) status = pl_record_parse(text, bytes, PL_RECORD_FILE, &saved->record, err);
    pl_free(text);
    return status;
}

static pl_status verify(pl_error *err)
{
    void *buffer = pl_alloc(1, PL_SAVED_READ_BYTES);
    pl_free(buffer);
    return buffer ? PL_OK : no_memory(err);
}

/* ---- headers ---- */

static uint64_t scale_of(size_t count)
{
    uint64_t scale = 1;
    while (count / scale > PART_MAX) scale *= 2;
    return scale;
}

static size_t pick(size_t turn, uint64_t scale)
{
    return (size_t)(turn * scale + (turn * UINT64_C(0x9e3779b97f4a7c15) >> 40) % scale);
}

/* First those, one of `scale` each; then neighbours of some of them. */
static size_t take_part(const pl_st_list *list, uint64_t scale, pl_st_entry *part)
{
    const size_t turns = list->count / scale;
    size_t count = 0;
    for (size_t i = 0; i < turns; i++) part[count++] = list->entries[pick(i, scale)];
    for (size_t i = 0; i < turns && scale > 1; i += FURTHER)
        part[count++] = list->entries[i * scale + (pick(i, scale) + 1) % scale];
    return count;
}

static pl_status read_header(const pl_st_list *list, const char *name, pl_alloc_meter *meter, pl_error *err)
{
    pl_safetensors *file = NULL;
    const uint64_t bytes = pl_safetensors_header_bytes(list);
    char *text = pl_alloc(bytes, 1);
    if (!text) return no_memory(err);
    pl_safetensors_print_header(list, text);
    pl_status status = pl_safetensors_parse(text, bytes, pl_safetensors_file_bytes(list), name, &file, err);
    pl_free(text);
    const uint64_t held = meter->held_bytes;
    pl_safetensors_destroy(file);
    meter->held_bytes = held;
    return status;
}

/* The meter of this thread is another one meanwhile. */
static pl_status measure_header(const pl_st_list *list, const char *name, pl_alloc_meter *meter, pl_error *err)
{
    const uint64_t scale = scale_of(list->count);
    pl_alloc_meter *outer = pl_alloc_set_meter(NULL);
    pl_st_entry *part = pl_alloc(list->count / scale + list->count / scale / FURTHER + 1, sizeof *part);
    pl_st_list some = {part, 0, list->metadata, list->metadata_count};
    pl_status status = PL_OK;
    if (!part) PL_TRY_DONE(no_memory(err));
    some.count = take_part(list, scale, part);
    (void)pl_alloc_set_meter(meter);
    status = read_header(&some, name, meter, err);
    meter->held_bytes *= scale;
    meter->peak_bytes *= scale;
done:
    (void)pl_alloc_set_meter(outer);
    pl_free(part);
    return status;
}

/* An open header. */
typedef struct header {
    uint64_t bytes;
    bool is_counted;
} header;

static pl_status open_header(const pl_checkpoint_spec *spec, const pl_st_list *list, const char *name, header *h,
                             pl_error *err)
{
    pl_alloc_meter m = {0};
    char path[PL_FILE_PATH_MAX], step[PL_STEP_NAME_BYTES];
    snprintf(path, sizeof path, "%s/checkpoints/%s/%s", spec->folder, pl_step_name_print(0, step), name); /* is kept */
    if (pl_safetensors_header_bytes(list) - 8 > PL_ST_HEADER_MAX) return PL_OK; /* refused before it takes memory */
    PL_TRY(measure_header(list, path, &m, err));
    pl_alloc_count_given(m.peak_bytes, pl_alloc_count_taken(m.peak_bytes));
    *h = (header){m.held_bytes, pl_alloc_count_taken(m.held_bytes)};
    return PL_OK;
}

static pl_status open_headers(const pl_checkpoint_spec *spec, pl_error *err)
{
    header model = {0}, state = {0};
    pl_status status = open_header(spec, &spec->model, PL_MODEL_FILE, &model, err);
    if (status == PL_OK && spec->state.count) status = open_header(spec, &spec->state, PL_STATE_FILE, &state, err);
    pl_alloc_count_given(model.bytes, model.is_counted);
    pl_alloc_count_given(state.bytes, state.is_counted);
    return status;
}

pl_status pl_saved_rehearse(const pl_checkpoint_spec *spec, pl_status (*goes_on)(void *, const pl_saved *, pl_error *),
                            void *context, pl_error *err)
{
    pl_saved saved = {0};
    pl_status status = read_record(spec->record, &saved, err);
    if (status == PL_OK) status = verify(err);
    if (status == PL_OK && goes_on) status = goes_on(context, &saved, err);
    if (status == PL_OK) status = open_headers(spec, err);
    pl_saved_deinit(&saved);
    return status;
}
