/* An external merge sort. A record in memory and in the file: u64 bytes, i64 time, u64 content, u32 length of its path,
 * the path with a zero. Sorted portions ("runs") follow one another in the temporary file; merging reads all at once,
 * each through its share of the buffer. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/remove.h"
#include "texts/texts_folder.h"

enum { BUFFER_BYTES = 4 << 20, RUNS_MAX = 512, HEAD_BYTES = 28, RECORDS_MAX = BUFFER_BYTES / 64 };
_Static_assert(BUFFER_BYTES / RUNS_MAX >= HEAD_BYTES + PL_FILE_PATH_MAX, "a run's share has room for any record");

/* What is left of a run: in the file from `at` to `end`; in its share of the buffer, [from, to). */
typedef struct run {
    uint64_t at, end;
    size_t from, to;
} run;

struct pl_sorter {
    pl_file_writer file;
    size_t used, records, runs;
    uint64_t run_end[RUNS_MAX];
    run run[RUNS_MAX];
    const uint8_t *record[RECORDS_MAX];
    uint8_t buffer[BUFFER_BYTES];
};

uint64_t pl_sorter_bytes(void) /* qsort's copy of the pointers, too */
{
    return sizeof(pl_sorter) + PL_ALLOC_HEADER_BYTES + RECORDS_MAX * sizeof(uint8_t *);
}

static const char *path_in(const uint8_t *record) { return (const char *)record + HEAD_BYTES; }
static size_t length_of(const uint8_t *record) { return HEAD_BYTES + pl_get_u32(record, 24) + 1; }

static int by_path(const void *a, const void *b)
{
    return strcmp(path_in(*(const uint8_t *const *)a), path_in(*(const uint8_t *const *)b));
}

pl_status pl_sorter_create(const char *path, pl_sorter **out, pl_error *err)
{
    pl_sorter *s = *out = pl_alloc(1, sizeof *s);
    if (!s) return pl_fail(err, PL_E_NOMEM, "%s: no memory for sorting names", path);
    s->file.fd = -1;
    pl_status status = pl_file_create(&s->file, path, err);
    if (status == PL_OK) status = pl_remove_file(s->file.temporary, err); /* if this is killed, nothing remains */
    if (status != PL_OK) pl_sorter_destroy(s), *out = NULL;
    return status;
}

static pl_status spill(pl_sorter *s, pl_error *err)
{
    if (s->records == 0) return PL_OK;
    if (s->runs == RUNS_MAX)
        return pl_fail(err, PL_E_DATA, "%s: there are more names than can be sorted; give the texts as lines of a file",
                       s->file.path);
    qsort(s->record, s->records, sizeof *s->record, by_path);
    for (size_t i = 0; i < s->records; i++) PL_TRY(pl_file_write(&s->file, s->record[i], length_of(s->record[i]), err));
    s->run_end[s->runs++] = s->file.bytes;
    s->used = s->records = 0;
    return PL_OK;
}

pl_status pl_sorter_add(pl_sorter *s, const pl_listed *l, pl_error *err)
{
    const size_t length = strlen(l->path), bytes = HEAD_BYTES + length + 1;
    if (s->records == RECORDS_MAX || s->used + bytes > sizeof s->buffer) PL_TRY(spill(s, err));
    uint8_t *record = s->buffer + s->used;
    pl_put_u64(record, 0, l->bytes);
    pl_put_u64(record, 8, (uint64_t)l->mtime_ns);
    pl_put_u64(record, 16, l->content);
    pl_put_u32(record, 24, (uint32_t)length);
    memcpy(record + HEAD_BYTES, l->path, length + 1);
    s->record[s->records++] = record;
    s->used += bytes;
    return PL_OK;
}

/* ---- merging ---- */

/* Makes the next record of a run lie whole in its share; false: there is no next record. */
static pl_status fill(pl_sorter *s, size_t number, bool *is_there, pl_error *err)
{
    run *r = &s->run[number];
    const size_t share = sizeof s->buffer / s->runs, left = r->to - r->from;
    uint8_t *begin = s->buffer + number * share;
    *is_there = left > 0 || r->at < r->end;
    if (!*is_there || (left >= HEAD_BYTES && left >= length_of(begin + r->from))) return PL_OK;
    memmove(begin, begin + r->from, left);
    const size_t room = share - left, bytes = r->end - r->at < room ? (size_t)(r->end - r->at) : room;
    PL_TRY(pl_file_read_at(s->file.fd, s->file.temporary, r->at, begin + left, bytes, err));
    posix_fadvise(s->file.fd, (off_t)r->at, (off_t)bytes, POSIX_FADV_DONTNEED);
    r->at += bytes;
    r->from = 0, r->to = left + bytes;
    return PL_OK;
}

static pl_status hand_out(pl_sorter *s, size_t number, pl_listed_found found, void *context, pl_error *err)
{
    const uint8_t *record = s->record[number];
    const pl_listed l = {path_in(record), pl_get_u64(record, 0), (int64_t)pl_get_u64(record, 8),
                         pl_get_u64(record, 16)};
    s->run[number].from += length_of(record);
    return found(context, &l, err);
}

/* Moves to the next record of a run, in s->record[number]; NULL: the run has ended. */
static pl_status advance(pl_sorter *s, size_t number, pl_error *err)
{
    bool is_there;
    PL_TRY(fill(s, number, &is_there, err));
    s->record[number] = is_there ? s->buffer + number * (sizeof s->buffer / s->runs) + s->run[number].from : NULL;
    return PL_OK;
}

pl_status pl_sorter_each(pl_sorter *s, pl_listed_found found, void *context, pl_error *err)
{
    PL_TRY(spill(s, err));
    for (size_t i = 0; i < s->runs; i++) {
        s->run[i] = (run){.at = i ? s->run_end[i - 1] : 0, .end = s->run_end[i]};
        PL_TRY(advance(s, i, err));
    }
    for (;;) {
        size_t least = RUNS_MAX;
        for (size_t i = 0; i < s->runs; i++)
            if (s->record[i] && (least == RUNS_MAX || by_path(&s->record[i], &s->record[least]) < 0)) least = i;
        if (least == RUNS_MAX) return PL_OK;
        PL_TRY(hand_out(s, least, found, context, err));
        PL_TRY(advance(s, least, err));
    }
}

void pl_sorter_destroy(pl_sorter *s)
{
    if (!s) return;
    pl_file_abandon(&s->file);
    pl_free(s);
}
