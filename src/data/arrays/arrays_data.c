#include "data/arrays/arrays_data.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hash.h"

/* ---- which data these are ---- */

static pl_status match(const pl_data *data, const pl_facts *saved, const char *saved_path, bool trains, pl_error *err)
{
    const pl_facts *now = &data->identity;
    if (pl_facts_differ(saved, now, "scalers"))
        return pl_fail(err, PL_E_CONFIG,
                       "%.350s: was trained with other means and deviations of angles and targets than those of the "
                       "arrays in %.350s; name the arrays, arrays.held_out and train.seed that it was trained with",
                       saved_path, data->path);
    if (trains && (pl_facts_differ(saved, now, "arrays") || pl_facts_differ(saved, now, "split")))
        return pl_fail(err, PL_E_CONFIG,
                       "%.350s: was trained on other arrays than those in %.350s, or on another part of them; resume "
                       "with the same, or train on these in another folder with `run.out`",
                       saved_path, data->path);
    return PL_OK;
}

static void close_arrays(pl_data *data)
{
    pl_arrays_data *d = (pl_arrays_data *)data;
    pl_rows_close(&d->rows);
    if (d->fd >= 0) close(d->fd);
    for (int part = PL_PART_TRAIN; part <= PL_PART_VALIDATION; part++) pl_free(d->item[part]);
    pl_free(d->target);
    pl_free(d->angles);
    pl_free(d->sums);
    pl_free(d->path);
    pl_free(d->images);
    pl_free(d);
}

/* ---- for the command that judges ---- */

static uint64_t count_labels(const pl_data *data) { return pl_arrays_data_of(data)->count[PL_PART_VALIDATION]; }

static pl_label label_at(const pl_data *data, uint64_t i)
{
    const pl_arrays_data *d = pl_arrays_data_of(data);
    const uint64_t item = d->item[PL_PART_VALIDATION][i];
    return (pl_label){.item = item, .truth = (double)d->target[item]};
}

static const pl_scaler *scaler_of(const pl_data *data) { return &pl_arrays_data_of(data)->scaler.target; }

static const pl_labels labels = {.count = count_labels, .at = label_at, .scaler = scaler_of};
static const pl_data_kind arrays = {.match = match, .close = close_arrays, .labels = &labels};

/* ---- opening ---- */

static pl_status read_labels(pl_arrays_data *d, pl_error *err)
{
    const pl_arrays_record *r = &d->record;
    const uint64_t targets = r->count * sizeof *d->target, angles = targets * PL_ARRAYS_ANGLE_COUNT;
    d->target = pl_alloc(r->count, sizeof *d->target);
    d->angles = pl_alloc(r->count, PL_ARRAYS_ANGLE_COUNT * sizeof *d->angles);
    d->sums = pl_alloc(r->count, sizeof *d->sums);
    if (!d->target || !d->angles || !d->sums) return pl_fail(err, PL_E_NOMEM, "no memory for the labels");
    PL_TRY(pl_file_read_at(d->fd, d->path, r->labels_at, d->target, (size_t)targets, err));
    PL_TRY(pl_file_read_at(d->fd, d->path, r->labels_at + targets, d->angles, (size_t)angles, err));
    PL_TRY(pl_file_read_at(d->fd, d->path, r->labels_at + targets + angles, d->sums,
                           (size_t)(r->count * sizeof *d->sums), err));
    XXH64_state_t content;
    const uint64_t shape[] = {r->window, r->height, r->width};
    XXH64_reset(&content, 0);
    XXH64_update(&content, d->target, (size_t)targets);
    XXH64_update(&content, d->angles, (size_t)angles);
    XXH64_update(&content, d->sums, (size_t)(r->count * sizeof *d->sums));
    XXH64_update(&content, shape, sizeof shape);
    if (XXH64_digest(&content) == r->content) return PL_OK;
    return pl_fail(err, PL_E_DATA, "%.350s: is damaged; delete it, and it is made again of the arrays", d->path);
}

static uint64_t count_held_out(uint64_t count, double share)
{
    const uint64_t held = (uint64_t)ceil((double)count * share);
    return held < count ? held : count - 1;
}

/* Both parts are lists from front to back; a draw decides which sample is in which. */
static pl_status split(pl_arrays_data *d, const pl_arrays_setup *s, pl_error *err)
{
    const uint64_t count = d->record.count, held = count_held_out(count, s->held_out);
    const pl_permutation draw = pl_permutation_init(count, pl_philox_init(s->seed, pl_stream_id("data/held_out")));
    uint8_t *is_held = pl_alloc(count, 1);
    d->item[PL_PART_TRAIN] = pl_alloc(count - held, sizeof *d->item[0]);
    d->item[PL_PART_VALIDATION] = pl_alloc(held + 1, sizeof *d->item[0]);
    const bool has_room = is_held && d->item[PL_PART_TRAIN] && d->item[PL_PART_VALIDATION];
    for (uint64_t i = 0; i < held && has_room; i++) is_held[pl_permutation_at(&draw, 0, i)] = 1;
    for (uint64_t i = 0; i < count && has_room; i++) {
        const pl_part part = is_held[i] ? PL_PART_VALIDATION : PL_PART_TRAIN;
        d->item[part][d->count[part]++] = i;
    }
    pl_free(is_held);
    return has_room ? PL_OK : pl_fail(err, PL_E_NOMEM, "no memory for the list of samples");
}

/* Only differences between targets can be learnt. */
static pl_status refuse_same(const pl_arrays_data *d, const pl_arrays_setup *s, double target, pl_error *err)
{
    if (d->count[PL_PART_TRAIN] > 1)
        return pl_fail(
            err, PL_E_DATA,
            "arrays.target: all targets that would be trained on are %g, so there is nothing to learn; bring "
            "others",
            target);
    return pl_fail(err, PL_E_DATA,
                   "arrays.held_out %g leaves one of %" PRIu64 " samples to train on, and two are the least; make it "
                   "smaller (0 holds out none), or bring more samples",
                   s->held_out, d->record.count);
}

static pl_status find_scalers(pl_arrays_data *d, const pl_arrays_setup *s, pl_error *err)
{
    pl_scaler_sum angle[PL_ARRAYS_ANGLE_COUNT] = {0}, target = {0};
    for (uint64_t i = 0; i < d->count[PL_PART_TRAIN]; i++) {
        const uint64_t item = d->item[PL_PART_TRAIN][i];
        pl_scaler_add(&target, (double)d->target[item]);
        for (int k = 0; k < PL_ARRAYS_ANGLE_COUNT; k++)
            pl_scaler_add(&angle[k], (double)d->angles[item * PL_ARRAYS_ANGLE_COUNT + k]);
    }
    for (int k = 0; k < PL_ARRAYS_ANGLE_COUNT; k++) d->scaler.angle[k] = pl_scaler_finish(&angle[k]);
    d->scaler.target = pl_scaler_finish(&target);
    return target.squares > 0 ? PL_OK : refuse_same(d, s, target.mean, err);
}

static void say_identity(pl_arrays_data *d, const pl_arrays_setup *s)
{
    pl_facts_add(&d->data.extents, "height", d->record.height);
    pl_facts_add(&d->data.extents, "width", d->record.width);
    const uint64_t train = d->count[PL_PART_TRAIN];
    pl_facts_add(&d->data.identity, "arrays", pl_fact_of_hash(d->record.content));
    pl_facts_add(&d->data.identity, "split",
                 pl_fact_of_hash(XXH64(d->item[PL_PART_TRAIN], (size_t)train * sizeof *d->item[0], s->window)));
    pl_facts_add(&d->data.identity, "scalers", pl_fact_of_hash(XXH64(&d->scaler, sizeof d->scaler, 0)));
}

static pl_status open_data(pl_arrays_data *d, const pl_arrays_setup *s, pl_error *err)
{
    d->path = pl_strdup(s->path);
    d->images = s->images ? pl_strdup(s->images) : NULL;
    if (!d->path || (s->images && !d->images)) return pl_fail(err, PL_E_NOMEM, "no memory for the arrays");
    d->data.path = d->path;
    PL_TRY(pl_arrays_open(d->path, &d->fd, &d->record, err));
    if (d->record.window != s->window)
        return pl_fail(err, PL_E_DATA,
                       "%.350s: was made of samples of %u frames, and temporal_frames is %u; train anew", d->path,
                       (uint32_t)d->record.window, s->window);
    PL_TRY(read_labels(d, err));
    PL_TRY(split(d, s, err));
    PL_TRY(find_scalers(d, s, err));
    say_identity(d, s);
    if (!d->images) return PL_OK;
    d->port = pl_arrays_port(PL_ARRAYS_IMAGES, s->window);
    PL_TRY(pl_arrays_open_rows(d->fd, PL_ARRAYS_IMAGES, d->images, &d->port, &d->rows, err));
    if (d->rows.count != d->record.count || d->port.dim[1] != d->record.height || d->port.dim[2] != d->record.width)
        return pl_fail(err, PL_E_DATA, "%.300s: has another shape than when %.300s was made; begin again", d->images,
                       d->path);
    d->data.file = "file of the arrays";
    d->data.file_bytes = d->rows.bytes;
    pl_arrays_source_init(d, s);
    return PL_OK;
}

pl_status pl_arrays_data_open(const pl_arrays_setup *s, pl_arrays_data **data, pl_error *err)
{
    pl_arrays_data *d = pl_alloc(1, sizeof *d);
    if (!d) return pl_fail(err, PL_E_NOMEM, "no memory for the arrays");
    d->data.kind = &arrays;
    d->fd = -1;
    const pl_status status = open_data(d, s, err);
    if (status != PL_OK) return close_arrays(&d->data), status;
    *data = d;
    return PL_OK;
}
