/* From lines to the file of chains. Only a block of the text, the current line, and a number for each chain are in
 * memory at a time. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "data/text/chains.h"
#include "data/text/prepare.h"

enum { LINE_MAX_BYTES = 1 << 20, FORM = 1 };

typedef struct making {
    const pl_chains_options *o;
    pl_text_file file;
    XXH64_state_t hash;
    pl_tokens_writer *writer;
    char *block, *line;
    uint32_t *record;
    uint32_t *counted; /* one for each chain */
    size_t chains, capacity;
    size_t line_bytes;
    uint64_t number; /* of the line */
} making;

/* Raise FORM when a record changes. */
uint64_t pl_chain_recipe(const pl_chain_layout *l)
{
    const uint64_t of[] = {FORM, l->sequence, l->question, l->latents, l->replaced, l->answer_only};
    return XXH64(of, sizeof of, 0) | 1;
}

static bool is_blank(const making *m)
{
    for (size_t i = 0; i < m->line_bytes; i++)
        if (!strchr(" \t\r", m->line[i])) return false;
    return true;
}

static void drop_mark(making *m)
{
    const size_t mark = pl_utf8_mark(m->line, m->line_bytes);
    m->line_bytes -= mark;
    memmove(m->line, m->line + mark, m->line_bytes);
}

static pl_status end_line(making *m, pl_error *err)
{
    if (m->number == 0) drop_mark(m);
    const pl_chain_line line = {m->o->path, ++m->number, m->line, m->line_bytes};
    if (!is_blank(m)) {
        if (pl_grow(&m->counted, &m->capacity, m->chains, sizeof *m->counted))
            return pl_fail(err, PL_E_NOMEM, "%s: no memory for its chains", m->o->path);
        PL_TRY(pl_chain_line_parse(&line, &m->o->layout, m->record, &m->counted[m->chains], err));
        PL_TRY(pl_tokens_append(m->writer, m->record, pl_chain_record(&m->o->layout), err));
        m->chains++;
    }
    m->line_bytes = 0;
    return PL_OK;
}

static pl_status take_block(making *m, const char *at, size_t bytes, pl_error *err)
{
    for (const char *end = at + bytes; at < end;) {
        const char *feed = memchr(at, '\n', (size_t)(end - at));
        const size_t piece = (size_t)((feed ? feed : end) - at);
        if (piece > LINE_MAX_BYTES - m->line_bytes)
            return pl_fail(err, PL_E_DATA,
                           "%s:%" PRIu64 ": the line has more than %d bytes; a chain of thought must be on a line of "
                           "its own, and shorter",
                           m->o->path, m->number + 1, LINE_MAX_BYTES);
        memcpy(m->line + m->line_bytes, at, piece);
        m->line_bytes += piece;
        at += piece + (feed != NULL);
        if (feed) PL_TRY(end_line(m, err));
    }
    return PL_OK;
}

static pl_status take_lines(making *m, pl_error *err)
{
    for (size_t got = 1; got;) {
        PL_TRY(pl_text_read(&m->file, m->block, PL_TEXT_BLOCK_BYTES, &got, err));
        XXH64_update(&m->hash, m->block, got);
        PL_TRY(take_block(m, m->block, got, err));
        PL_TRY(pl_text_tell(&m->file, m->o->progress, m->o->context, "turning chains into tokens", err));
    }
    if (m->line_bytes) PL_TRY(end_line(m, err));
    if (m->chains == 0)
        return pl_fail(err, PL_E_DATA, "%s: has no chains of thought, only empty lines; give it some", m->o->path);
    return pl_text_check_unchanged(&m->file, err);
}

static pl_status write_file(making *m, pl_error *err)
{
    m->block = pl_alloc(PL_TEXT_BLOCK_BYTES, 1);
    m->line = pl_alloc(LINE_MAX_BYTES, 1);
    m->record = pl_alloc(pl_chain_record(&m->o->layout), sizeof *m->record);
    if (!m->block || !m->line || !m->record) return pl_fail(err, PL_E_NOMEM, "%s: no memory to read it", m->o->path);
    XXH64_reset(&m->hash, 0);
    PL_TRY(pl_tokens_create(m->o->tokens_path, PL_CHAIN_SEQUENCE_MAX + 1, &m->writer, err));
    PL_TRY(take_lines(m, err));
    PL_TRY(pl_tokens_append(m->writer, m->counted, m->chains, err));
    m->file.origin.content = XXH64_digest(&m->hash);
    const pl_tokens_info info = {.recipe = pl_chain_recipe(&m->o->layout), .source = m->file.origin};
    pl_tokens_writer *writer = m->writer;
    m->writer = NULL; /* commit destroys it */
    return pl_tokens_commit(writer, &info, err);
}

/* a damaged file is made again */
static pl_status try_reuse(const pl_chains_options *o, bool *good, pl_error *err)
{
    pl_tokens tokens;
    pl_error why = {0};
    bool same = false;
    *good = false;
    if (access(o->tokens_path, F_OK) != 0) return PL_OK;
    pl_status status = pl_tokens_open(&tokens, o->tokens_path, &why);
    if (status == PL_E_NOMEM || status == PL_E_STORAGE) return pl_fail(err, status, "%s", why.text);
    if (status != PL_OK) return PL_OK;
    status = pl_text_match(&(pl_corpus_wish){.names = o->path, .form = PL_TEXTS_WHOLE}, o->tokens_path, &tokens.info,
                           &same, err);
    *good = same && tokens.info.reader == PL_TOKENS_READER && tokens.info.recipe == pl_chain_recipe(&o->layout);
    pl_tokens_close(&tokens);
    return status;
}

pl_status pl_chains_prepare(const pl_chains_options *o, pl_error *err)
{
    making m = {.o = o, .file = {.fd = -1}};
    bool good;
    PL_TRY(try_reuse(o, &good, err));
    if (good) return PL_OK;
    PL_TRY(pl_text_open(&m.file, o->path, err));
    pl_status status = o->before_writing(o->writing, err);
    if (status == PL_OK) status = write_file(&m, err);
    pl_tokens_abandon(m.writer);
    pl_free(m.counted);
    pl_free(m.record);
    pl_free(m.line);
    pl_free(m.block);
    pl_text_close(&m.file);
    return status;
}
