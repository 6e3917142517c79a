#include "data/infer/infer_data.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/size.h"
#include "base/units.h"

static const pl_infer_data *data_of(const pl_source *source)
{
    return (const pl_infer_data *)((const char *)source - offsetof(pl_infer_data, source));
}

/* ---- the source ---- */

static pl_status describe(const pl_source *source, uint32_t micro_batch, pl_source_layout *l, pl_error *err)
{
    const pl_infer_data *d = data_of(source);
    *l = (pl_source_layout){.ports = d->setup.ports, .scratch_bytes = PL_ROWS_SCRATCH_BYTES};
    for (uint32_t k = 0; k < d->setup.ports; k++) {
        const pl_infer_port *p = &d->setup.port[k];
        uint64_t bytes;
        if (pl_size_mul(pl_infer_port_bytes(p), micro_batch, &bytes))
            return pl_fail(err, PL_E_CONFIG, "%u items of %s at once are absurdly many; make `infer.batch` smaller",
                           micro_batch, p->name);
        l->port[k] = (pl_port){p->name, p->dtype, bytes, p->below, NULL};
    }
    return PL_OK;
}

static void prepare(const pl_source *source, void *scratch) { (void)source, (void)scratch; }

/* The file that has item `number`; first[i] items come before file i. */
static uint64_t find_file(const uint64_t *first, uint64_t files, uint64_t number)
{
    uint64_t low = 0, high = files;
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        if (first[middle] <= number)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Scales as in the model's training. */
static void scale(const pl_infer_port *p, float *x)
{
    const uint64_t elems = pl_infer_port_elems(p), together = p->scaled_together;
    for (uint64_t i = 0; together && i < elems; i += together) pl_scale_each(x + i, together);
    for (uint64_t i = 0; p->scaler && i < elems; i++) x[i] = (float)pl_scale(&p->scaler[i], (double)x[i]);
}

/* part->item is counted through all files. */
static pl_status read_row(const pl_infer_files *f, uint64_t row, void *to, void *scratch, pl_rows_part *part,
                          pl_error *err)
{
    const uint64_t at = find_file(f->first, f->count, row);
    *part = (pl_rows_part){.item = row - f->first[at], .is_last = true};
    f->rows[at].part = part;
    PL_TRY(pl_rows_read(&f->rows[at], row - f->first[at], to, scratch, err));
    scale(f->rows[at].port, to);
    part->item += f->first_item[at];
    return PL_OK;
}

/* A row is in work from its filling to its results. There are two slots, and one batch is taken while both are filled:
 * never more than three batches are in work at once. */
static uint64_t remark_places(const pl_infer_data *d) { return 4 * (uint64_t)d->source.batch; }

static pl_status read_remarked(const pl_infer_data *d, uint32_t k, uint64_t row, void *to, void *scratch, pl_error *err)
{
    const uint64_t places = remark_places(d);
    const pl_infer_files *f = &d->input[k];
    f->remark[places] = 0;
    PL_TRY(read_row(f, row, to, scratch, &f->part[places], err));
    f->remark[row % places] = f->remark[places];
    f->part[row % places] = f->part[places];
    return PL_OK;
}

size_t pl_infer_data_remarks(const pl_infer_data *d, uint64_t row, const pl_rows_remark *list[PL_ROWS_REMARKS_MAX])
{
    size_t count = 0;
    for (uint32_t k = 0; k < d->setup.ports; k++) {
        const pl_infer_files *f = &d->input[k];
        const pl_rows_remark *of = f->rows[find_file(f->first, f->count, row)].kind->remarks;
        const uint8_t bits = f->remark[row % remark_places(d)];
        for (int i = 0; of && of[i].word && count < PL_ROWS_REMARKS_MAX; i++)
            if (bits >> i & 1) list[count++] = &of[i];
    }
    return count;
}

pl_rows_part pl_infer_data_part(const pl_infer_data *d, uint64_t row)
{
    return d->input[0].part[row % remark_places(d)];
}

void pl_infer_remarked_add(pl_infer_remarked *r, const pl_rows_remark *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t k = 0;
        while (k + 1 < PL_ROWS_REMARKS_MAX && r->remark[k] && r->remark[k] != list[i]) k++;
        r->remark[k] = list[i];
        r->items[k]++;
    }
}

void pl_infer_remarked_print(const pl_infer_remarked *r, pl_str *text)
{
    for (size_t k = 0; k < PL_ROWS_REMARKS_MAX && r->remark[k]; k++)
        pl_str_printf(text, "%s%" PRIu64 " %s", k ? "; " : "", r->items[k], r->remark[k]->text);
}

/* Rows past the last, or the batch's, are zeros. */
static pl_status fill(const pl_source *source, void *scratch, pl_slot *slot, pl_error *err)
{
    const pl_infer_data *d = data_of(source);
    slot->counted = 0;
    for (uint32_t i = 0; i < slot->rows; i++) {
        const uint64_t place = slot->micro * (uint64_t)slot->rows + i, row = slot->step * source->batch + place;
        const bool is_row = place < source->batch && row < d->rows;
        slot->counted += is_row;
        for (uint32_t k = 0; k < d->setup.ports; k++) {
            const uint64_t bytes = pl_infer_port_bytes(&d->setup.port[k]);
            char *to = (char *)slot->port[k].at + i * bytes;
            if (is_row)
                PL_TRY(read_remarked(d, k, row, to, scratch, err));
            else
                memset(to, 0, bytes);
        }
    }
    return PL_OK;
}

static uint64_t count(const pl_source *source, pl_part part, uint64_t step)
{
    const uint64_t left = data_of(source)->rows - step * source->batch;
    (void)part;
    return left < source->batch ? left : source->batch;
}

static const pl_source_kind files = {
    .name = "files", .describe = describe, .prepare = prepare, .fill = fill, .count = count, .verb = "read"};

/* ---- the files ---- */

static pl_status open_file(pl_infer_data *d, uint64_t n, pl_rows *r, pl_error *err)
{
    const pl_infer_name *name = &d->names.name[n];
    const pl_infer_port *port = &d->setup.port[name->port];
    pl_staged s = {.name = name->path, .port = port};
    if (d->data.held) PL_TRY(pl_staging_entry(d->data.held, n, &s, err));
    if (!s.is_staged) return pl_rows_open(s.name, port, r, err);
    return (s.array.number == PL_NPY_NUMBERS ? pl_rows_open_records : pl_rows_open_staged)(s.name, port, d->data.held,
                                                                                           &s.array, s.bytes, r, err);
}

static pl_status add_file(pl_infer_data *d, uint64_t n, pl_error *err)
{
    pl_infer_files *f = &d->input[d->names.name[n].port];
    f->begun = f->count + 1;
    PL_TRY(open_file(d, n, &f->rows[f->count], err));
    const pl_rows *r = &f->rows[f->count];
    f->first[f->count + 1] = f->first[f->count] + r->count;
    f->first_item[f->count + 1] = f->first_item[f->count] + (r->items ? r->items : r->count);
    f->count++;
    return PL_OK;
}

static pl_status make_room(pl_infer_data *d, pl_error *err)
{
    uint64_t given[PL_INFER_PORTS_MAX] = {0};
    for (uint64_t n = 0; n < d->names.count; n++) given[d->names.name[n].port]++;
    for (uint32_t k = 0; k < d->setup.ports; k++) {
        d->input[k].rows = pl_alloc(given[k] + 1, sizeof *d->input[k].rows);
        d->input[k].first = pl_alloc(given[k] + 2, sizeof *d->input[k].first);
        d->input[k].first_item = pl_alloc(given[k] + 2, sizeof *d->input[k].first_item);
        if (!d->input[k].rows || !d->input[k].first || !d->input[k].first_item)
            return pl_fail(err, PL_E_NOMEM, "no memory for the list of files");
    }
    return PL_OK;
}

static pl_status check_counts(pl_infer_data *d, pl_error *err)
{
    const pl_infer_port *p = d->setup.port;
    for (uint32_t k = 0; k < d->setup.ports; k++) {
        const pl_infer_files *f = &d->input[k];
        char form[160];
        if (f->count == 0)
            return pl_fail(err, PL_E_USAGE, "a file is missing: the model's input %s takes %s (%s=FILE)", p[k].name,
                           pl_infer_port_text(&p[k], form, sizeof form), p[k].name);
        if (k == 0) d->rows = f->first[f->count], d->items = f->first_item[f->count];
        if (f->first[f->count] != d->rows)
            return pl_fail(err, PL_E_DATA,
                           "there are %" PRIu64 " items of %s and %" PRIu64 " of %s; there must be as many of each",
                           d->rows, p[0].name, f->first[f->count], p[k].name);
    }
    return PL_OK;
}

/* Before planning; a run finds the files made ready by the fact in its plan. */
static pl_status make_ready(pl_infer_data *d, pl_error *err)
{
    uint64_t fact = 0;
    pl_staged *file = pl_alloc(d->names.count, sizeof *file);
    if (!file) return pl_fail(err, PL_E_NOMEM, "no memory for the list of files");
    for (uint64_t n = 0; n < d->names.count; n++)
        file[n] = (pl_staged){.name = d->names.name[n].path, .port = &d->setup.port[d->names.name[n].port]};
    const pl_staging_wish wish = {.folder = d->setup.scratch,
                                  .key = "infer.scratch",
                                  .is_memory = d->setup.scratch_is_memory,
                                  .file = file,
                                  .files = d->names.count,
                                  .told = d->setup.told};
    pl_status status = pl_staging_make(&wish, &d->data.held, &fact, &d->data.file_bytes, err);
    pl_free(file);
    d->setup.staged = fact;
    return status;
}

static pl_status find_ready(pl_infer_data *d, pl_error *err)
{
    if (d->setup.looks) PL_TRY(make_ready(d, err));
    if (!d->setup.staged) return PL_OK;
    d->data.file = "files, made ready";
    if (!pl_facts_add(&d->data.identity, PL_FACT_STAGED, d->setup.staged))
        return pl_fail(err, PL_E_INTERNAL, "no room to tell what was made ready in a plan");
    return d->setup.looks ? PL_OK : pl_staging_open(d->setup.staged, d->names.count, &d->data.held, err);
}

/* Only records have keys; lines and arrays have none. */
static pl_status check_key(const pl_infer_data *d, pl_error *err)
{
    const char *key = NULL;
    bool has_keys = false;
    for (uint32_t k = 0; k < d->setup.ports; k++) {
        key = key ? key : d->setup.port[k].key;
        for (uint64_t i = 0; i < d->input[k].count; i++) has_keys |= d->input[k].rows[i].records_bytes > 0;
    }
    if (!key || has_keys) return PL_OK;
    return pl_fail(
        err, PL_E_CONFIG,
        "%.300s: the key \"%.100s\" is not looked for: no file of these has keys or columns; leave it out, or "
        "say what they hold",
        d->names.name[0].path, key);
}

static pl_status add_files(pl_infer_data *d, pl_error *err)
{
    PL_TRY(pl_infer_names_read(d->setup.files, d->setup.port, d->setup.ports, &d->names, err));
    PL_TRY(pl_infer_names_check(&d->names, d->setup.port, d->setup.ports, err));
    PL_TRY(find_ready(d, err));
    PL_TRY(make_room(d, err));
    for (uint64_t n = 0; n < d->names.count; n++) PL_TRY(add_file(d, n, err));
    PL_TRY(check_key(d, err));
    return check_counts(d, err);
}

/* ---- every number, before anything runs ---- */

/* An array has a row of one length for each item. */
static pl_status check_whole(const pl_infer_data *d, const pl_rows_part *part, pl_error *err)
{
    char name[PL_FILE_PATH_MAX + 32];
    if (part->is_last || !d->setup.arrays) return PL_OK;
    pl_str text = pl_str_fixed(name, sizeof name);
    pl_infer_data_name(d, part->item, &text);
    return pl_fail(err, PL_E_DATA,
                   "%.300s: has more than the %" PRIu64
                   " tokens that the model takes at once, and arrays (`infer.npy`, a comparison) have a row of "
                   "so many for each item: break it, or take lines (without `infer.npy`)",
                   name, pl_infer_port_elems(&d->setup.port[0]));
}

static pl_status look_at(const pl_infer_data *d, const pl_infer_files *f, void *row, void *scratch, pl_error *err)
{
    pl_rows_part part;
    for (uint64_t i = 0; i < f->first[f->count]; i++) {
        PL_TRY(read_row(f, i, row, scratch, &part, err));
        PL_TRY(check_whole(d, &part, err));
    }
    return PL_OK;
}

static pl_status look(const pl_infer_data *d, pl_error *err)
{
    uint64_t most = 0;
    for (uint32_t k = 0; k < d->setup.ports; k++) {
        const uint64_t bytes = pl_infer_port_bytes(&d->setup.port[k]);
        if (bytes > most) most = bytes;
    }
    void *row = pl_alloc(1, most), *scratch = pl_alloc(1, PL_ROWS_SCRATCH_BYTES);
    pl_status status = row && scratch ? PL_OK : pl_fail(err, PL_E_NOMEM, "no memory to look at the files");
    for (uint32_t k = 0; k < d->setup.ports && status == PL_OK; k++)
        status = look_at(d, &d->input[k], row, scratch, err);
    pl_free(row);
    pl_free(scratch);
    return status;
}

/* ---- data ---- */

static pl_status match(const pl_data *data, const pl_facts *saved, const char *saved_path, bool trains, pl_error *err)
{
    const pl_data *of = pl_infer_data_of(data)->of;
    return of->kind->match(of, saved, saved_path, trains, err);
}

static void close_data(pl_data *data)
{
    pl_infer_data *d = (pl_infer_data *)data;
    for (uint32_t k = 0; k < PL_INFER_PORTS_MAX; k++) {
        for (uint64_t i = 0; i < d->input[k].begun; i++) pl_rows_close(&d->input[k].rows[i]);
        pl_free(d->input[k].rows);
        pl_free(d->input[k].first);
        pl_free(d->input[k].first_item);
        pl_free(d->input[k].remark);
        pl_free(d->input[k].part);
    }
    pl_data_close(d->of);
    if (d->data.held) close(d->data.held);
    pl_infer_names_deinit(&d->names);
    pl_free(d->to);
    pl_free(d->arrays);
    pl_free(d);
}

static const pl_data_kind kind = {.match = match, .close = close_data};

/* A hash of what the files are, not of what they hold: that is checked again as it is read. */
static uint64_t hash_files(const pl_infer_data *d)
{
    uint64_t hash = 0;
    for (uint32_t k = 0; k < d->setup.ports; k++)
        for (uint64_t i = 0; i < d->input[k].count; i++) {
            const pl_rows *r = &d->input[k].rows[i];
            const uint64_t of[] = {hash, XXH64(r->path, strlen(r->path), k), r->count, r->bytes};
            hash = XXH64(of, sizeof of, 0);
        }
    return hash;
}

static pl_status copy_texts(pl_infer_data *d, pl_error *err)
{
    const pl_infer_setup *s = &d->setup;
    d->to = s->to ? pl_strdup(s->to) : NULL;
    d->arrays = s->arrays ? pl_strdup(s->arrays) : NULL;
    if ((s->to && !d->to) || (s->arrays && !d->arrays))
        return pl_fail(err, PL_E_NOMEM, "no memory for the names of the files");
    d->setup.to = d->to, d->setup.arrays = d->arrays;
    return PL_OK;
}

static void say_items(pl_infer_data *d)
{
    char text[32];
    (void)pl_format_count(d->items, text, sizeof text);
    snprintf(d->data.said, sizeof d->data.said, "%s item%s of %.300s%s", text, pl_plural(d->items),
             d->input[0].rows[0].path, d->input[0].count > 1 ? " and others" : "");
    for (char *c = d->data.said; *c; c++) /* a name may be any bytes */
        if ((unsigned char)*c < ' ' || *c == 127) *c = '?';
}

static void fill_data(pl_infer_data *d)
{
    const pl_infer_setup *s = &d->setup;
    const uint64_t most = s->latency ? 1 : s->batch ? s->batch : PL_INFER_BATCH_AUTO;
    const uint32_t batch = (uint32_t)(most < d->rows ? most : d->rows);
    d->source = (pl_source){.kind = &files, .batch = batch, .at_once = s->latency || s->batch ? batch : 0};
    d->source.steps_per_epoch[PL_PART_TRAIN] = (d->rows - 1) / batch + 1;
    d->source.samples[PL_PART_TRAIN] = d->rows;
    d->data.source = &d->source;
    d->data.path = d->input[0].rows[0].path;
    say_items(d);
}

static pl_status make_remarks(pl_infer_data *d, pl_error *err)
{
    for (uint32_t k = 0; k < d->setup.ports; k++) {
        pl_infer_files *f = &d->input[k];
        f->remark = pl_alloc(remark_places(d) + 1, sizeof *f->remark);
        f->part = pl_alloc(remark_places(d) + 1, sizeof *f->part);
        if (!f->remark || !f->part) return pl_fail(err, PL_E_NOMEM, "no memory for what is remarked of files");
        for (uint64_t i = 0; i < f->count; i++) f->rows[i].remark = f->remark + remark_places(d);
    }
    return PL_OK;
}

/* Takes what the model depends on from the system's own data. */
static void take_own(pl_infer_data *d)
{
    d->data.identity = d->of->identity;
    d->data.extents = d->of->extents;
    d->data.weights = d->of->weights;
    d->data.brought = d->of->brought;
    d->data.weights_part = d->of->weights_part;
    d->data.weights_exceed_f16 = d->of->weights_exceed_f16;
}

static pl_status open_data(pl_infer_data *d, pl_error *err)
{
    PL_TRY(copy_texts(d, err));
    take_own(d);
    d->data.path = "the caller's memory";
    d->data.at_once = d->setup.files[0] ? 0 : d->setup.batch ? (uint32_t)d->setup.batch : 1;
    if (d->data.at_once) return PL_OK;
    PL_TRY(add_files(d, err));
    fill_data(d);
    PL_TRY(make_remarks(d, err));
    if (d->setup.looks) PL_TRY(look(d, err));
    if (pl_facts_add(&d->data.identity, "files", hash_files(d))) return PL_OK;
    return pl_fail(err, PL_E_INTERNAL, "no room to tell the files' hash beside %u others", d->data.identity.count);
}

pl_status pl_infer_data_open(const pl_infer_setup *setup, pl_data *of, pl_infer_data **data, pl_error *err)
{
    pl_infer_data *d = pl_alloc(1, sizeof *d);
    if (!d) return pl_data_close(of), pl_fail(err, PL_E_NOMEM, "no memory for the files");
    d->data.kind = &kind;
    d->of = of;
    d->setup = *setup;
    pl_status status = open_data(d, err);
    if (status != PL_OK) return close_data(&d->data), status;
    *data = d;
    return PL_OK;
}

void pl_infer_data_name(const pl_infer_data *d, uint64_t item, pl_str *text)
{
    const pl_infer_files *f = &d->input[0];
    const uint64_t at = find_file(f->first_item, f->count, item);
    pl_str_append(text, f->rows[at].path);
    if (f->first_item[at + 1] - f->first_item[at] > 1) pl_str_printf(text, "[%" PRIu64 "]", item - f->first_item[at]);
}
