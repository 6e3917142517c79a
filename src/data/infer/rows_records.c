/* Texts in a file of records (JSON Lines, CSV, SQuAD), or compressed by gzip: items like lines, but they cannot be read
 * by position. The one reader (texts/corpus.h) makes them ready, one after the other, each after its length (u64), and
 * the kind that reads lines finds them there (lines.h). */
#include <string.h>

#include "data/infer/staging.h"
#include "texts/corpus.h"
#include "texts/form.h"

enum { LENGTH_BYTES = sizeof(uint64_t) };

bool pl_rows_are_records(const pl_infer_port *p, const char *path, const char *head, size_t bytes)
{
    if (!p->kind) return false;
    if (bytes >= 3 && memcmp(head, "\x1f\x8b\x08", 3) == 0) return true;
    if (p->form != PL_TEXTS_AUTO_LINES) return p->form != PL_TEXTS_LINES;
    const pl_text_ending *named = pl_text_ending_of(path);
    return named && !named->is;
}

typedef struct staging {
    pl_stager *to;
    uint64_t begin, count; /* place for the text's length; number of texts */
} staging;

static pl_status begin_text(staging *s, pl_error *err)
{
    static const uint64_t unknown;
    s->begin = s->to->at;
    return pl_stager_put(s->to, &unknown, sizeof unknown, err);
}

static pl_status take_piece(void *context, const void *data, size_t bytes, pl_error *err)
{
    staging *s = context;
    return pl_stager_put(s->to, data, bytes, err);
}

static pl_status take_end(void *context, pl_error *err)
{
    staging *s = context;
    const uint64_t bytes = s->to->at - s->begin - LENGTH_BYTES;
    s->count++;
    PL_TRY(pl_file_put(s->to->fd, s->to->folder, s->begin, &bytes, sizeof bytes, err));
    return begin_text(s, err);
}

static pl_status stage(pl_stager *to, const pl_rows *r, pl_error *err)
{
    pl_corpus c;
    staging s = {.to = to};
    const uint64_t at = to->at;
    const pl_corpus_wish wish = {.names = r->path, .form = r->port->form, .key = r->port->key, .scratch = to->folder};
    const pl_corpus_taker taker = {.piece = take_piece, .end = take_end, .context = &s};
    PL_TRY(pl_corpus_open(&c, &wish, err));
    PL_TRY(begin_text(&s, err));
    PL_TRY(pl_corpus_read(&c, "reading texts", &taker, err));
    if (c.is_plain) PL_TRY(take_end(&s, err)); /* the file is one text */
    to->array = (pl_npy_array){.number = PL_NPY_NUMBERS, .dim = {s.count, s.begin - at}};
    return PL_OK;
}

pl_status pl_rows_open_records(const char *path, const pl_infer_port *port, int fd, const pl_npy_array *a,
                               uint64_t bytes, pl_rows *r, pl_error *err)
{
    *r = (pl_rows){.kind = port->kind,
                   .path = path,
                   .port = port,
                   .fd = fd,
                   .bytes = bytes,
                   .records_at = a->at,
                   .records_bytes = a->dim[1]};
    if (!port->kind) return pl_fail(err, PL_E_INTERNAL, "%.300s: texts were made ready that nothing reads", path);
    return r->kind->open(r, err);
}

const pl_rows_kind pl_rows_records = {.what = "records of texts", .stage = stage};
