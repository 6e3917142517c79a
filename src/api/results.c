/* Results for callers of the library. */
#include "plimsoll/results.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "api/api.h"
#include "api/results.h"
#include "api/storage.h"
#include "base/alloc.h"
#include "base/size.h"
#include "config/schema.h"
#include "store/beside.h"
#include "store/npy.h"

enum { EXPORT_BYTES = 1 << 20, CONFIG_BYTES_MAX = 1 << 20 /* no config is longer */ };

pl_status pl_results_open(const char *path, pl_results **out, pl_error *err)
{
    *out = NULL;
    pl_results *r = pl_alloc(1, sizeof *r);
    if (!r) return pl_fail(err, PL_E_NOMEM, "%s: no memory to look into it", path);
    pl_status status = pl_block_reader_open(path, false, &r->reader, err);
    if (status != PL_OK) {
        pl_free(r);
        return status;
    }
    r->layout = pl_block_reader_layout(r->reader);
    for (uint64_t block = 0, blocks = pl_block_count(r->layout); block < blocks; block++) {
        uint64_t begin[PL_BLOCK_AXES_MAX], end[PL_BLOCK_AXES_MAX];
        if (!pl_block_reader_is_done(r->reader, block)) continue;
        uint32_t kind = pl_block_ranges(r->layout, block, begin, end), axes = r->layout->kind[kind].axes;
        r->done[kind]++;
        r->done_rows[kind] += axes ? end[axes - 1] - begin[axes - 1] : 1;
    }
    *out = r;
    return PL_OK;
}

void pl_results_close(pl_results *r)
{
    if (!r) return;
    pl_block_reader_close(r->reader);
    pl_free(r);
}

/* Bytes at one place of all axes. */
static uint64_t row_bytes(const pl_results *r, const pl_block_dataset *d)
{
    uint64_t bytes = pl_dtype_bytes(d->dtype);
    for (uint32_t i = d->kind == PL_BLOCK_NO_KIND ? 0 : r->layout->kind[d->kind].axes; i < d->rank; i++)
        bytes *= d->shape[i];
    return bytes;
}

pl_results_summary pl_results_summarize(const pl_results *r)
{
    const pl_block_layout *l = r->layout;
    pl_results_summary s = {.form = pl_block_form_name(pl_block_reader_form(r->reader)),
                            .text = l->text,
                            .blocks = pl_block_count(l),
                            .done = pl_block_reader_done(r->reader),
                            .damaged_marks = pl_block_reader_bad_marks(r->reader),
                            .first = l->first,
                            .share = l->whole ? l->kind[0].axis[0].extent : 0,
                            .whole = l->whole,
                            .datasets = l->datasets};
    for (uint32_t i = 0; i < l->datasets; i++) {
        const pl_block_dataset *d = &l->dataset[i];
        if (!pl_block_is_made(d)) continue;
        s.bytes += pl_block_dataset_bytes(d);
        s.done_bytes += r->done_rows[d->kind] * row_bytes(r, d);
    }
    return s;
}

pl_results_dataset pl_results_at(const pl_results *r, size_t dataset)
{
    const pl_block_dataset *d = &r->layout->dataset[dataset];
    pl_results_dataset s = {.name = d->name,
                            .dtype = d->is_text ? "text" : pl_dtype_name(d->dtype),
                            .rank = d->rank,
                            .element_bytes = pl_dtype_bytes(d->dtype),
                            .bytes = pl_block_dataset_bytes(d)};
    for (uint32_t i = 0; i < d->rank; i++) s.shape[i] = d->shape[i];
    if (d->kind == PL_BLOCK_NO_KIND) return s;
    const pl_block_kind *k = &r->layout->kind[d->kind];
    s.axes = k->axes;
    for (uint32_t i = 0; i < k->axes; i++) s.axis[i] = k->axis[i].name;
    if (!pl_block_is_made(d)) return s;
    s.blocks = pl_block_count_of(k);
    s.done = r->done[d->kind];
    return s;
}

size_t pl_results_find(const pl_results *r, const char *name)
{
    uint32_t i = pl_block_find(r->layout, name);
    return i == PL_BLOCK_NO_KIND ? PL_RESULTS_NONE : i;
}

/* ---- parts ---- */

/* The first block of the part that is not finished, or PL_BLOCK_NONE. */
static uint64_t find_missing(const pl_results *r, size_t dataset, const uint64_t *begin, const uint64_t *end)
{
    const pl_block_dataset *d = &r->layout->dataset[dataset];
    uint64_t place[PL_BLOCK_AXES_MAX];
    if (!pl_block_is_made(d)) return PL_BLOCK_NONE;
    const pl_block_kind *k = &r->layout->kind[d->kind];
    for (uint32_t i = 0; i < d->rank; i++)
        if (begin[i] >= end[i]) return PL_BLOCK_NONE;
    for (uint32_t i = 0; i < k->axes; i++) place[i] = begin[i];
    for (;;) {
        uint64_t block = pl_block_at(r->layout, d->kind, place);
        uint32_t i = k->axes;
        if (!pl_block_reader_is_done(r->reader, block)) return block;
        while (i > 0) { /* the next block of the part: like the hands of a clock */
            uint64_t step = k->axis[i - 1].step;
            place[i - 1] = (place[i - 1] / step + 1) * step;
            if (place[i - 1] < end[i - 1]) break;
            place[i - 1] = begin[i - 1];
            i--;
        }
        if (i == 0) return PL_BLOCK_NONE;
    }
}

bool pl_results_is_done(const pl_results *r, size_t dataset, const uint64_t *begin, const uint64_t *end)
{
    return find_missing(r, dataset, begin, end) == PL_BLOCK_NONE;
}

static pl_status check_part(const pl_results *r, size_t dataset, const uint64_t *begin, const uint64_t *end,
                            uint64_t *bytes, pl_error *err)
{
    char name[PL_BLOCK_SENTENCE_BYTES];
    if (dataset >= r->layout->datasets) return pl_fail(err, PL_E_USAGE, "there is no dataset %zu", dataset);
    const pl_block_dataset *d = &r->layout->dataset[dataset];
    *bytes = pl_dtype_bytes(d->dtype);
    for (uint32_t i = 0; i < d->rank; i++) {
        if (begin[i] >= end[i] || end[i] > d->shape[i])
            return pl_fail(err, PL_E_USAGE,
                           "%s: dimension %u has %" PRIu64 " places; %" PRIu64 " to %" PRIu64 " is no part of it",
                           d->name, i, d->shape[i], begin[i], end[i]);
        *bytes *= end[i] - begin[i];
    }
    uint64_t missing = find_missing(r, dataset, begin, end);
    if (missing == PL_BLOCK_NONE) return PL_OK;
    return pl_fail(err, PL_E_DATA, "%s: %s are not finished; let the run go on, or take a part that is", d->name,
                   pl_block_name(r->layout, missing, name));
}

/* A part as runs of bytes that lie together: dimensions behind `split` are taken whole. */
typedef struct walk {
    const pl_block_dataset *d;
    const uint64_t *begin, *end;
    uint32_t split; /* the last dimension that may be cut; those before it are gone through one by one */
    uint64_t at[PL_BLOCK_RANK_MAX];
    uint64_t run_bytes, inner_bytes; /* of a run; of one place of `split` */
} walk;

static walk begin_walk(const pl_block_dataset *d, const uint64_t *begin, const uint64_t *end)
{
    walk w = {.d = d, .begin = begin, .end = end, .inner_bytes = pl_dtype_bytes(d->dtype), .split = d->rank - 1};
    while (w.split > 0 && begin[w.split] == 0 && end[w.split] == d->shape[w.split])
        w.inner_bytes *= d->shape[w.split--];
    w.run_bytes = w.inner_bytes * (end[w.split] - begin[w.split]);
    for (uint32_t i = 0; i < d->rank; i++) w.at[i] = begin[i];
    return w;
}

static uint64_t offset_of(const walk *w)
{
    uint64_t row = 0;
    for (uint32_t i = 0; i <= w->split; i++) row = row * w->d->shape[i] + w->at[i];
    return row * w->inner_bytes;
}

static bool next_run(walk *w)
{
    for (uint32_t i = w->split; i-- > 0; w->at[i] = w->begin[i])
        if (++w->at[i] < w->end[i]) return true;
    return false;
}

pl_status pl_results_read(const pl_results *r, size_t dataset, const uint64_t *begin, const uint64_t *end, void *to,
                          uint64_t bytes, pl_error *err)
{
    uint64_t wanted;
    char *at = to;
    PL_TRY(check_part(r, dataset, begin, end, &wanted, err));
    if (bytes != wanted)
        return pl_fail(err, PL_E_USAGE, "%s: the part has %" PRIu64 " bytes, its place has %" PRIu64,
                       r->layout->dataset[dataset].name, wanted, bytes);
    walk w = begin_walk(&r->layout->dataset[dataset], begin, end);
    do {
        PL_TRY(pl_block_reader_read(r->reader, (uint32_t)dataset, offset_of(&w), at, w.run_bytes, err));
        at += w.run_bytes;
    } while (next_run(&w));
    return PL_OK;
}

/* ---- map ---- */

pl_status pl_results_map(pl_results *r, size_t dataset, const uint64_t *begin, const uint64_t *end, const void **part,
                         pl_error *err)
{
    uint64_t bytes;
    const void *whole = NULL;
    *part = NULL;
    PL_TRY(check_part(r, dataset, begin, end, &bytes, err));
    const pl_block_dataset *d = &r->layout->dataset[dataset];
    const walk w = begin_walk(d, begin, end);
    for (uint32_t i = 0; i < w.split; i++)
        if (end[i] - begin[i] > 1)
            return pl_fail(
                err, PL_E_USAGE,
                "%s: this part does not lie in one piece: behind a dimension of several places another one is "
                "cut; map less of it, or read it",
                d->name);
    PL_TRY(pl_block_reader_map(r->reader, (uint32_t)dataset, &whole, err));
    *part = (const char *)whole + offset_of(&w);
    if ((uintptr_t)*part % pl_dtype_bytes(d->dtype) == 0) return PL_OK;
    return pl_fail(err, PL_E_DATA, "%s: its numbers do not lie at multiples of their size in this file; read it",
                   d->name);
}

/* ---- export ---- */

static size_t header_of(const pl_block_dataset *d, const uint64_t *begin, const uint64_t *end,
                        char header[PL_NPY_HEADER_MAX])
{
    uint64_t shape[PL_BLOCK_RANK_MAX];
    for (uint32_t i = 0; i < d->rank; i++) shape[i] = end[i] - begin[i];
    return pl_npy_header(d->dtype, d->is_text ? shape[d->rank - 1] : 0, d->rank - d->is_text, shape, header);
}

static pl_status write_part(const pl_results *r, size_t dataset, const uint64_t *begin, const uint64_t *end,
                            pl_file_writer *file, char *buffer, pl_error *err)
{
    const pl_block_dataset *d = &r->layout->dataset[dataset];
    char header[PL_NPY_HEADER_MAX];
    PL_TRY(pl_file_write(file, header, header_of(d, begin, end, header), err));
    walk w = begin_walk(d, begin, end);
    do {
        const uint64_t from = offset_of(&w);
        for (uint64_t at = 0; at < w.run_bytes; at += EXPORT_BYTES) {
            uint64_t n = w.run_bytes - at < EXPORT_BYTES ? w.run_bytes - at : EXPORT_BYTES;
            PL_TRY(pl_block_reader_read(r->reader, (uint32_t)dataset, from + at, buffer, n, err));
            PL_TRY(pl_file_write(file, buffer, n, err));
        }
    } while (next_run(&w));
    return PL_OK;
}

pl_status pl_results_export(const pl_results *r, size_t dataset, const uint64_t *begin, const uint64_t *end,
                            const char *path, pl_error *err)
{
    uint64_t bytes;
    pl_file_writer file;
    PL_TRY(check_part(r, dataset, begin, end, &bytes, err));
    char *buffer = pl_alloc(EXPORT_BYTES, 1);
    if (!buffer) return pl_fail(err, PL_E_NOMEM, "%s: no memory to copy a part", path);
    pl_status status = pl_file_create(&file, path, err);
    if (status == PL_OK) {
        status = write_part(r, dataset, begin, end, &file, buffer, err);
        if (status == PL_OK)
            status = pl_file_commit(&file, err);
        else
            pl_file_abandon(&file);
    }
    pl_free(buffer);
    return status;
}

/* ---- check and join ---- */

typedef struct listener {
    void (*tell)(void *, const char *);
    void *context;
} listener;

static void pass_on(void *context, uint64_t block, const char *name)
{
    const listener *l = context;
    (void)block;
    if (l->tell) l->tell(l->context, name);
}

pl_status pl_results_check(const char *path, bool repair, void (*tell)(void *, const char *), void *context,
                           pl_results_checked *checked, pl_error *err)
{
    listener l = {tell, context};
    pl_block_checked c;
    pl_block_reader *reader;
    *checked = (pl_results_checked){0};
    PL_TRY(pl_block_reader_open(path, repair, &reader, err));
    uint64_t bad_marks = pl_block_reader_bad_marks(reader);
    pl_status status = pl_block_reader_check(reader, pass_on, &l, &c, err);
    if (status == PL_OK)
        *checked = (pl_results_checked){c.checked, c.bytes, c.damaged + c.constants_damaged + bad_marks, c.not_finite};
    pl_block_reader_close(reader);
    return status;
}

/* What is joined is no part any more, and with that key its config would make one. One that is no config is kept as
 * it is: the page says why. */
static pl_status without_part(const char *path, char **text, size_t *bytes, pl_error *err)
{
    pl_error why;
    pl_config *c = pl_config_create();
    if (!c) return pl_fail(err, PL_E_NOMEM, "%s: no memory to read it", path);
    pl_status status = pl_config_load_file(c, path, &why);
    const bool is_read = status == PL_OK, is_odd = status == PL_E_CONFIG || status == PL_E_USAGE || status == PL_E_DATA;
    for (const pl_config_key *key = pl_config_keys; is_read && status == PL_OK && key < PL_CONFIG_KEYS_END; key++)
        if (key->option && strcmp(key->option, "part") == 0) status = pl_config_set(c, key->path, "", path, err);
    if (is_read && status == PL_OK) status = pl_config_text(c, PL_CONFIG_KEPT, text, bytes, err);
    pl_config_destroy(c);
    if (is_odd) return pl_file_read_all(path, CONFIG_BYTES_MAX, text, bytes, err);
    return is_read ? status : pl_fail(err, status, "%s", why.text);
}

/* With the config of a part the page about all of it finds what the results only name. */
pl_status pl_results_take_config(const char *path, const char *part, pl_error *err)
{
    char from[PL_FILE_PATH_MAX], to[PL_FILE_PATH_MAX], *text;
    size_t bytes;
    PL_TRY(pl_beside_path(part, PL_BESIDE_CONFIG, from, err));
    PL_TRY(pl_beside_path(path, PL_BESIDE_CONFIG, to, err));
    const int missing = access(from, R_OK) != 0 ? errno : 0;
    if (missing && missing != ENOENT && missing != EACCES)
        return pl_fail(err, PL_E_STORAGE, "%s: cannot be examined: %s", from, strerror(missing));
    if (missing || access(to, F_OK) == 0) return PL_OK;
    PL_TRY(without_part(from, &text, &bytes, err));
    pl_status status = pl_file_write_all(to, text, bytes, err);
    pl_free(text);
    return status;
}

pl_status pl_results_join(const char *path, const char *const *parts, size_t count, bool move, pl_error *err)
{
    PL_TRY(pl_block_join(path, parts, count, move, err));
    return pl_results_take_config(path, parts[0], err);
}
