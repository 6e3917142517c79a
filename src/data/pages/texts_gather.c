/* Texts that are not read where they lie: those of several files, of a folder of records, of gzip files. The one reader
 * (texts/corpus.h) reads them once, and they are kept one after the other in a file next to the index. */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "data/pages/texts_index.h"

static pl_status begins_with_gzip(const char *path, bool *does, pl_error *err)
{
    static const uint8_t magic[] = {0x1f, 0x8b, 8};
    uint8_t head[sizeof magic] = {0};
    uint64_t bytes;
    int fd;
    PL_TRY(pl_file_open(path, &fd, &bytes, err));
    const pl_status status = bytes < sizeof head ? PL_OK : pl_file_read_at(fd, path, 0, head, sizeof head, err);
    close(fd);
    *does = memcmp(head, magic, sizeof head) == 0;
    return status;
}

pl_status pl_texts_find_gathers(const pl_texts_setup *s, bool *gathers, pl_error *err)
{
    struct stat st;
    const bool is_there = stat(s->path, &st) == 0;
    *gathers = strchr(s->path, '\n') || (!is_there && (s->path[0] == '@' || strpbrk(s->path, "*?[")));
    if (*gathers || !is_there) return PL_OK;
    *gathers = S_ISDIR(st.st_mode) ? s->form != PL_TEXTS_FOLDER : s->form >= PL_TEXTS_AUTO;
    return *gathers || S_ISDIR(st.st_mode) ? PL_OK : begins_with_gzip(s->path, gathers, err);
}

pl_corpus_wish pl_texts_corpus(const pl_texts_setup *s, const char *index_path)
{
    return (pl_corpus_wish){.names = s->path,
                            .form = s->form == PL_TEXTS_FOLDER ? PL_TEXTS_WHOLE : s->form,
                            .key = s->key,
                            .scratch = index_path};
}

/* ---- gathering ---- */

typedef struct gathering {
    pl_texts_writer *index;
    uint64_t begin; /* where the text begins */
    XXH64_state_t hash;
    pl_file_writer file;
} gathering;

static pl_status take_piece(void *context, const void *data, size_t bytes, pl_error *err)
{
    gathering *g = context;
    XXH64_update(&g->hash, data, bytes);
    return pl_file_write(&g->file, data, bytes, err);
}

static pl_status take_end(void *context, pl_error *err)
{
    gathering *g = context;
    const pl_text_place place = {g->begin, g->file.bytes - g->begin, PL_TEXT_RAW};
    g->begin = g->file.bytes;
    return pl_texts_put(g->index, &place, err);
}

static pl_status gather(gathering *g, pl_corpus *corpus, const char *index_path, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    const pl_corpus_taker taker = {.piece = take_piece, .end = take_end, .context = g};
    PL_TRY(pl_texts_gathered_path(path, index_path, err));
    PL_TRY(pl_file_create(&g->file, path, err));
    PL_TRY(pl_corpus_read(corpus, "reading the texts", &taker, err));
    return pl_file_commit(&g->file, err);
}

uint64_t pl_texts_gather_bytes(void) { return sizeof(gathering) + PL_ALLOC_HEADER_BYTES; }

pl_status pl_texts_gather(pl_corpus *corpus, const char *index_path, pl_texts_writer *w, pl_texts_info *i,
                          pl_error *err)
{
    gathering *g = pl_alloc(1, sizeof *g);
    if (!g) return pl_fail(err, PL_E_NOMEM, "no memory for reading the texts");
    g->index = w, g->file.fd = -1;
    XXH64_reset(&g->hash, 0);
    const pl_status status = gather(g, corpus, index_path, err);
    i->source.content = corpus->origin.content;
    i->listing = XXH64_digest(&g->hash), i->gathered_bytes = g->file.bytes;
    pl_file_abandon(&g->file);
    pl_free(g);
    return status;
}
