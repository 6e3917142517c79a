#include "store/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"

static const char LINE_START[] = "{\"step\":";

/* ---- cutting back ---- */

/* One pass over the file, byte by byte, remembering of each line only its first bytes. */
typedef struct scan {
    uint64_t last_step; /* to keep */
    uint64_t at, keep_bytes;
    uint64_t line; /* from 1 */
    char head[48];
    size_t head_bytes, line_bytes;
    bool done;
} scan;

/* The step of a line's head; 0 on success. */
static int parse_head(const scan *s, uint64_t *step)
{
    size_t start = sizeof LINE_START - 1;
    char *end;
    if (s->head_bytes <= start || memcmp(s->head, LINE_START, start) != 0) return -1;
    if (s->head[start] < '0' || s->head[start] > '9') return -1;
    errno = 0;
    *step = strtoull(s->head + start, &end, 10);
    return errno || (*end != ',' && *end != '}') ? -1 : 0;
}

static pl_status not_ours(const scan *s, const char *path, pl_error *err)
{
    return pl_fail(err, PL_E_DATA,
                   "%s:%" PRIu64
                   ":1: this is not a line of a run's metrics ({\"step\":…} was expected); move the file away or"
                   " choose another folder",
                   path, s->line);
}

static pl_status end_line(scan *s, const char *path, char before, pl_error *err)
{
    uint64_t step;
    s->head[s->head_bytes] = 0;
    if (parse_head(s, &step) || before != '}') return not_ours(s, path, err);
    if (step > s->last_step)
        s->done = true;
    else
        s->keep_bytes = s->at + 1;
    s->head_bytes = s->line_bytes = 0;
    s->line++;
    return PL_OK;
}

/* Zeros are where a power cut lost what was written: a torn end. */
static pl_status scan_block(scan *s, const char *path, const char *block, size_t bytes, char *before, pl_error *err)
{
    for (size_t i = 0; i < bytes && !s->done; i++, s->at++) {
        if (block[i] == 0)
            s->done = true;
        else if (++s->line_bytes > PL_METRICS_LINE_BYTES)
            return not_ours(s, path, err);
        else if (block[i] == '\n')
            PL_TRY(end_line(s, path, *before, err));
        else if (s->head_bytes < sizeof s->head - 1)
            s->head[s->head_bytes++] = block[i];
        *before = block[i];
    }
    return PL_OK;
}

/* Bytes of the lines up to the step that are whole. */
static pl_status find_end(pl_metrics *m, uint64_t last_step, uint64_t file_bytes, uint64_t *keep, pl_error *err)
{
    scan s = {.last_step = last_step, .line = 1};
    char before = 0;
    for (uint64_t at = 0; at < file_bytes && !s.done; at += sizeof m->line) {
        size_t n = file_bytes - at < sizeof m->line ? (size_t)(file_bytes - at) : sizeof m->line;
        PL_TRY(pl_file_read_at(m->fd, m->path, at, m->line, n, err));
        PL_TRY(scan_block(&s, m->path, m->line, n, &before, err));
    }
    size_t start = s.head_bytes < sizeof LINE_START - 1 ? s.head_bytes : sizeof LINE_START - 1;
    if (memcmp(s.head, LINE_START, start) != 0)
        return not_ours(&s, m->path, err); /* no torn end of a line of ours either */
    *keep = s.keep_bytes;
    return PL_OK;
}

static pl_status cut(pl_metrics *m, uint64_t last_step, pl_error *err)
{
    struct stat st;
    if (fstat(m->fd, &st) != 0)
        return pl_fail(err, PL_E_STORAGE, "%s: cannot be examined: %s", m->path, strerror(errno));
    if (!S_ISREG(st.st_mode)) return pl_fail(err, PL_E_STORAGE, "%s: is not a regular file", m->path);
    bool fresh = last_step == PL_METRICS_NONE; /* all goes, if it is ours */
    PL_TRY(find_end(m, fresh ? 0 : last_step, (uint64_t)st.st_size, &m->bytes, err));
    if (fresh) m->bytes = 0;
    if (m->bytes < (uint64_t)st.st_size && pl_io_truncate(m->fd, m->bytes) != 0)
        return pl_fail(err, PL_E_STORAGE, "%s: cannot be cut back to %" PRIu64 " bytes: %s", m->path, m->bytes,
                       strerror(errno));
    return PL_OK;
}

pl_status pl_metrics_open(pl_metrics *m, const char *path, uint64_t last_step, pl_error *err)
{
    memset(m, 0, sizeof *m);
    if (strlen(path) >= sizeof m->path) return pl_fail(err, PL_E_USAGE, "the path %.200s… is too long", path);
    strcpy(m->path, path);
    m->fd = pl_io_open(path, O_RDWR | O_CREAT | O_APPEND | O_NONBLOCK | O_NOFOLLOW);
    if (m->fd < 0)
        return pl_fail(err, PL_E_STORAGE, "%s: cannot be opened for writing: %s%s", path, strerror(errno),
                       pl_io_hint(errno));
    m->is_open = 1;
    pl_status status = cut(m, last_step, err);
    if (status != PL_OK)
        pl_metrics_close(m);
    else
        m->last_step = last_step == PL_METRICS_NONE ? 0 : last_step;
    return status;
}

/* ---- writing ---- */

static void print_value(pl_json *j, const pl_metric *value)
{
    double v = value->value;
    if (v == floor(v) && fabs(v) < 0x1p53)
        pl_json_kv_int(j, value->key, (int64_t)v);
    else
        pl_json_kv_double(j, value->key, v);
}

static pl_status append(pl_metrics *m, const char *line, size_t bytes, pl_error *err)
{
    size_t written;
    int error = pl_io_append(m->fd, line, bytes, &written);
    if (error == 0) {
        m->bytes += bytes;
        return PL_OK;
    }
    if (written > 0 && pl_io_truncate(m->fd, m->bytes) != 0) { /* then the torn line goes at the next start */
    }
    return pl_fail(err, PL_E_STORAGE, "%s: writing at byte %" PRIu64 " failed: %s%s", m->path, m->bytes,
                   strerror(error), pl_io_hint(error));
}

/* The line that is begun with a step. */
static pl_status begin_line(pl_metrics *m, uint64_t step, pl_str *line, pl_json *j, pl_error *err)
{
    if (step < m->last_step)
        return pl_fail(err, PL_E_INTERNAL, "%s: metrics of step %" PRIu64 " come after those of step %" PRIu64, m->path,
                       step, m->last_step);
    *line = pl_str_fixed(m->line, sizeof m->line);
    *j = pl_json_begin(line, true);
    pl_json_object(j);
    pl_json_kv_uint(j, "step", step);
    m->last_step = step;
    return PL_OK;
}

pl_status pl_metrics_write(pl_metrics *m, uint64_t step, const pl_metric *values, size_t count, pl_error *err)
{
    pl_str line;
    pl_json j;
    PL_TRY(begin_line(m, step, &line, &j, err));
    for (size_t i = 0; i < count; i++) print_value(&j, &values[i]);
    pl_json_object_end(&j);
    pl_str_append(&line, "\n");
    if (line.failed)
        return pl_fail(err, PL_E_USAGE, "%s: the metrics of step %" PRIu64 " are longer than a line of %d bytes",
                       m->path, step, PL_METRICS_LINE_BYTES);
    return append(m, line.data, line.bytes, err);
}

/* A character takes no more room than "\\u0000"; what ends the line is kept free. */
static const char TEXT_END[] = "\"}\n";

static pl_status begin_text(pl_metrics *m, uint64_t step, pl_error *err)
{
    pl_json j;
    PL_TRY(begin_line(m, step, &m->text, &j, err));
    pl_str_append(&m->text, ",\"sample\":\"");
    return PL_OK;
}

pl_status pl_metrics_text(pl_metrics *m, uint64_t step, const char *piece, size_t bytes, pl_error *err)
{
    if (!m->text.data) PL_TRY(begin_text(m, step, err));
    for (size_t i = 0, n; i < bytes && m->text.bytes + 6 + sizeof TEXT_END <= sizeof m->line; i += n) {
        n = pl_json_utf8_length((const unsigned char *)piece + i, bytes - i);
        n = n ? n : 1;
        pl_json_escape(&m->text, piece + i, n);
    }
    return PL_OK;
}

pl_status pl_metrics_text_end(pl_metrics *m, pl_error *err)
{
    const pl_str line = m->text;
    if (!line.data) return PL_OK;
    pl_str_append(&m->text, TEXT_END);
    m->text = (pl_str){0};
    return append(m, m->line, line.bytes + sizeof TEXT_END - 1, err);
}

void pl_metrics_text_drop(pl_metrics *m) { m->text = (pl_str){0}; }

pl_status pl_metrics_sync(pl_metrics *m, pl_error *err)
{
    if (pl_io_sync_data(m->fd) == 0) return PL_OK;
    return pl_fail(err, PL_E_STORAGE, "%s: could not be brought to disk: %s", m->path, strerror(errno));
}

void pl_metrics_close(pl_metrics *m)
{
    if (m->is_open) close(m->fd);
    m->is_open = 0;
    m->fd = -1;
}
