#include "data/arrays/arrays_prepare.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/size.h"
#include "data/infer/staging.h"

enum { ALIGNMENT = 64, TELL_EVERY = 256 };

/* ---- the user's files ---- */

static pl_status open_file(const char *name, int *fd, pl_origin *now, const char **dataset, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    uint64_t bytes;
    PL_TRY(pl_rows_split(name, path, dataset, err));
    PL_TRY(pl_file_open(path, fd, &bytes, err));
    const pl_status status = pl_origin_look(*fd, path, now, err);
    if (status != PL_OK) close(*fd);
    return status;
}

static bool is_named(const char *file) { return file && file[0]; }

static pl_status match_file(const pl_arrays_wish *w, const pl_arrays_record *r, int k, bool *same, pl_error *err)
{
    const char *dataset;
    pl_origin now;
    int fd;
    *same = is_named(w->file[k]) == (r->source[k].origin.bytes != 0);
    if (!*same || !is_named(w->file[k])) return PL_OK;
    PL_TRY(open_file(w->file[k], &fd, &now, &dataset, err));
    *same = pl_arrays_dataset_hash(dataset) == r->dataset[k];
    const pl_status status = *same ? pl_origin_match(fd, w->file[k], &now, &r->source[k].origin, same, err) : PL_OK;
    close(fd);
    if (status != PL_OK || !*same || pl_origin_is_untouched(&now, &r->source[k].origin)) return status;
    const uint64_t at = r->labels_at + pl_arrays_label_bytes(r->count) + offsetof(pl_arrays_record, source) +
                        (uint64_t)k * sizeof *r->source;
    pl_origin_note(w->path, at, sizeof *r->source, offsetof(pl_arrays_source, origin.content), pl_arrays_put_source,
                   &now);
    return PL_OK;
}

pl_status pl_arrays_match(const pl_arrays_wish *w, const pl_arrays_record *r, bool *same, pl_error *err)
{
    *same = r->window == w->window;
    for (int k = 0; k < PL_ARRAYS_FILES && *same; k++) PL_TRY(match_file(w, r, k, same, err));
    return PL_OK;
}

pl_status pl_arrays_is_made(const pl_arrays_wish *w, bool *made, uint64_t *content, pl_error *err)
{
    pl_arrays_record r;
    pl_error damaged;
    int fd;
    *made = pl_arrays_open(w->path, &fd, &r, &damaged) == PL_OK;
    *content = *made ? r.content : 0;
    const pl_status status = *made ? pl_arrays_match(w, &r, made, err) : PL_OK;
    if (fd >= 0) close(fd);
    return status;
}

/* ---- making it ---- */

typedef struct making {
    const pl_arrays_wish *w;
    pl_file_writer file;
    pl_arrays_record record;
    pl_infer_port port[PL_ARRAYS_FILES];
    pl_rows rows[PL_ARRAYS_FILES];
    uint64_t bytes; /* in the file so far */
    float *image, *target, *angles;
    uint64_t *sums;
    void *scratch;
} making;

static pl_status hash_file(making *m, int k, pl_error *err)
{
    const char *name = m->w->file[k], *dataset;
    pl_origin *o = &m->record.source[k].origin;
    int fd;
    if (!is_named(name)) return PL_OK;
    PL_TRY(open_file(name, &fd, o, &dataset, err));
    const pl_status status = pl_origin_hash(fd, name, 0, o->bytes, &o->content, err);
    close(fd);
    m->record.dataset[k] = pl_arrays_dataset_hash(dataset);
    return status;
}

/* Makes sure that what was read is what was hashed. */
static pl_status check_unchanged(const making *m, int k, pl_error *err)
{
    const char *name = m->w->file[k], *dataset;
    pl_origin now;
    int fd;
    if (!is_named(name)) return PL_OK;
    PL_TRY(open_file(name, &fd, &now, &dataset, err));
    close(fd);
    if (pl_origin_is_untouched(&now, &m->record.source[k].origin)) return PL_OK;
    return pl_fail(err, PL_E_DATA, "%.300s: was changed while it was read; begin again when it is whole", name);
}

/* Makes numbers of HDF5 ready. The targets stand in for angles that are not given: nobody reads them there. */
static pl_status stage(making *m, pl_error *err)
{
    pl_staged files[PL_ARRAYS_FILES] = {0};
    for (int k = 0; k < PL_ARRAYS_FILES; k++) {
        m->port[k] = pl_arrays_port(k, m->w->window);
        const int of = is_named(m->w->file[k]) ? k : PL_ARRAYS_TARGET;
        files[k] = (pl_staged){.name = m->w->file[of], .port = &m->port[of]};
    }
    const pl_staging_wish wish = {.folder = m->w->folder, .key = "run.out", .file = files, .files = PL_ARRAYS_FILES};
    return pl_staging_fill(&wish, m->file.fd, &m->bytes, err);
}

static pl_status open_rows(making *m, pl_error *err)
{
    const pl_rows *images = &m->rows[PL_ARRAYS_IMAGES];
    for (int k = 0; k < PL_ARRAYS_FILES; k++) {
        if (!is_named(m->w->file[k])) continue;
        PL_TRY(pl_arrays_open_rows(m->file.fd, k, m->w->file[k], &m->port[k], &m->rows[k], err));
        if (m->rows[k].count != images->count)
            return pl_fail(err, PL_E_DATA,
                           "%.300s: has %" PRIu64 " samples, but %.300s has %" PRIu64 "; both need the same number",
                           m->w->file[k], m->rows[k].count, m->w->file[PL_ARRAYS_IMAGES], images->count);
    }
    if (images->count >= 2) return PL_OK;
    return pl_fail(err, PL_E_DATA, "%.300s: has one sample; two are the least that a training needs",
                   m->w->file[PL_ARRAYS_IMAGES]);
}

static pl_status take_memory(making *m, pl_error *err)
{
    const uint64_t count = m->rows[PL_ARRAYS_IMAGES].count;
    m->image = pl_alloc(pl_infer_port_elems(&m->port[PL_ARRAYS_IMAGES]), sizeof *m->image);
    m->target = pl_alloc(count, sizeof *m->target);
    m->angles = pl_alloc(count, PL_ARRAYS_ANGLE_COUNT * sizeof *m->angles);
    m->sums = pl_alloc(count, sizeof *m->sums);
    m->scratch = pl_alloc(1, PL_ROWS_SCRATCH_BYTES);
    if (m->image && m->target && m->angles && m->sums && m->scratch) return PL_OK;
    return pl_fail(err, PL_E_NOMEM, "no memory for the labels of %" PRIu64 " samples and the images of one", count);
}

static pl_status read_sample(making *m, uint64_t i, pl_error *err)
{
    const pl_rows *angles = &m->rows[PL_ARRAYS_ANGLES], *images = &m->rows[PL_ARRAYS_IMAGES];
    PL_TRY(pl_rows_read(&m->rows[PL_ARRAYS_TARGET], i, m->target + i, m->scratch, err));
    if (angles->kind) PL_TRY(pl_rows_read(angles, i, m->angles + i * PL_ARRAYS_ANGLE_COUNT, m->scratch, err));
    PL_TRY(pl_rows_read(images, i, m->image, m->scratch, err));
    m->sums[i] = XXH64(m->image, (size_t)pl_infer_port_bytes(&m->port[PL_ARRAYS_IMAGES]), 0);
    if (i % TELL_EVERY || !m->w->tell || m->w->tell(m->w->context, i, images->count)) return PL_OK;
    return pl_fail(err, PL_E_STOPPED, "stopped at sample %" PRIu64 " of %" PRIu64 " that are read before planning", i,
                   images->count);
}

static pl_status put(making *m, XXH64_state_t *content, const void *what, uint64_t bytes, pl_error *err)
{
    XXH64_update(content, what, (size_t)bytes);
    PL_TRY(pl_file_put(m->file.fd, m->w->path, m->bytes, what, (size_t)bytes, err));
    m->bytes += bytes;
    return PL_OK;
}

static pl_status write_labels(making *m, pl_error *err)
{
    const uint64_t count = m->rows[PL_ARRAYS_IMAGES].count;
    const uint64_t *dim = m->port[PL_ARRAYS_IMAGES].dim;
    pl_arrays_record *r = &m->record;
    XXH64_state_t content;
    XXH64_reset(&content, 0);
    r->count = count, r->window = m->w->window, r->height = dim[1], r->width = dim[2];
    r->labels_at = m->bytes = pl_align_up(m->bytes, ALIGNMENT);
    PL_TRY(put(m, &content, m->target, count * sizeof *m->target, err));
    PL_TRY(put(m, &content, m->angles, count * PL_ARRAYS_ANGLE_COUNT * sizeof *m->angles, err));
    PL_TRY(put(m, &content, m->sums, count * sizeof *m->sums, err));
    const uint64_t shape[] = {r->window, r->height, r->width};
    XXH64_update(&content, shape, sizeof shape);
    r->content = XXH64_digest(&content);
    pl_arrays_seal(r);
    return pl_file_put(m->file.fd, m->w->path, m->bytes, r, sizeof *r, err);
}

static pl_status fill(making *m, pl_error *err)
{
    for (int k = 0; k < PL_ARRAYS_FILES; k++) PL_TRY(hash_file(m, k, err));
    PL_TRY(stage(m, err));
    PL_TRY(open_rows(m, err));
    PL_TRY(take_memory(m, err));
    for (uint64_t i = 0; i < m->rows[PL_ARRAYS_IMAGES].count; i++) PL_TRY(read_sample(m, i, err));
    for (int k = 0; k < PL_ARRAYS_FILES; k++) PL_TRY(check_unchanged(m, k, err));
    return write_labels(m, err);
}

static pl_status make(making *m, pl_error *err)
{
    if (m->w->before_writing) PL_TRY(m->w->before_writing(m->w->context, err));
    PL_TRY(pl_file_create(&m->file, m->w->path, err));
    const pl_status status = fill(m, err);
    for (int k = 0; k < PL_ARRAYS_FILES; k++) pl_rows_close(&m->rows[k]);
    pl_free(m->image);
    pl_free(m->target);
    pl_free(m->angles);
    pl_free(m->sums);
    pl_free(m->scratch);
    if (status == PL_OK) return pl_file_commit(&m->file, err);
    pl_file_abandon(&m->file);
    return status;
}

pl_status pl_arrays_prepare(const pl_arrays_wish *w, pl_error *err)
{
    bool made;
    uint64_t content;
    PL_TRY(pl_arrays_is_made(w, &made, &content, err));
    if (made) return PL_OK;
    making *m = pl_alloc(1, sizeof *m);
    if (!m) return pl_fail(err, PL_E_NOMEM, "no memory to read the arrays");
    m->w = w;
    const pl_status status = make(m, err);
    pl_free(m);
    return status;
}
