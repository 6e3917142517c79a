#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "texts/texts_folder.h"
#include "data/pages/texts_index.h"

/* What is known about the source before it is read, and what is needed to read it. */
typedef struct preparation {
    const pl_texts_options *o;
    pl_texts_info source;
    pl_text_file file; /* unless it is a folder */
    uint64_t files;    /* in a folder */
    bool gathers;
    pl_corpus corpus; /* if it gathers */
} preparation;

/* Whether texts are gathered is only known after a look at them. */
static uint64_t gathering_bytes(const pl_texts_setup *s)
{
    bool gathers = true;
    if (s->path && pl_texts_find_gathers(s, &gathers, NULL) == PL_OK && !gathers) return 0;
    const pl_corpus_wish wish = pl_texts_corpus(s, "");
    return wish.names ? pl_corpus_bytes(&wish) + pl_texts_gather_bytes() : 0;
}

uint64_t pl_texts_prepare_bytes(const pl_texts_setup *s)
{
    const uint64_t block = PL_TEXT_BLOCK_BYTES + PL_ALLOC_HEADER_BYTES, small = 64 * 1024; /* open folders, paths */
    if (s->form == PL_TEXTS_GRAMMAR) return 0;
    return block + small + pl_texts_writer_bytes() + gathering_bytes(s) +
           (s->form == PL_TEXTS_FOLDER ? pl_sorter_bytes() + PL_TEXTS_DEPTH_MAX * (uint64_t)(40 * 1024)
                                       : pl_scanner_bytes(s->form));
}

/* ---- the setup ---- */

static pl_status check_name(const char *what, const char *name, pl_error *err)
{
    if (!name || (name[0] && strlen(name) < PL_TEXTS_NAME_BYTES)) return PL_OK;
    return pl_fail(err, PL_E_CONFIG, "the %s \"%.40s%s\" has %zu bytes; 1 to %d were expected", what, name,
                   strlen(name) > 40 ? "…" : "", strlen(name), PL_TEXTS_NAME_BYTES - 1);
}

static pl_status check_setup(const pl_texts_setup *s, pl_error *err)
{
    if (s->form > PL_TEXTS_AUTO_LINES || s->form == PL_TEXTS_GATHERED)
        return pl_fail(err, PL_E_INTERNAL, "texts of form %d do not exist", (int)s->form);
    if (s->form == PL_TEXTS_GRAMMAR && s->count == 0)
        return pl_fail(err, PL_E_CONFIG, "how many texts are to be made is missing; at least 1 is needed");
    if (s->form != PL_TEXTS_GRAMMAR && (!s->path || !s->path[0]))
        return pl_fail(err, PL_E_CONFIG, "the path of the texts is missing; name a file or a folder");
    if (s->form == PL_TEXTS_JSONL) PL_TRY(check_name("key", s->key, err));
    if (s->form == PL_TEXTS_SQUAD && !pl_squad_parts(s->key))
        return pl_fail(err, PL_E_CONFIG,
                       "the key \"%.100s\" names no parts of SQuAD; contexts, questions and answers are", s->key);
    if (s->form != PL_TEXTS_CSV) return PL_OK;
    PL_TRY(check_name("column", s->column, err));
    if (!s->headless || (s->column && strspn(s->column, "0123456789") == strlen(s->column))) return PL_OK;
    return pl_fail(err, PL_E_CONFIG, "the column \"%.100s\" needs a header; without one give its number, from 1 on",
                   s->column ? s->column : "text");
}

/* ---- is the existing index still good? ---- */

/* Files come in any order: so the hashes are summed. */
static pl_status add_listed(void *context, const pl_listed *l, pl_error *err)
{
    preparation *p = context;
    const uint64_t key[] = {l->bytes, (uint64_t)l->mtime_ns, (uint64_t)l->ctime_ns, l->inode,
                            XXH64(l->path, strlen(l->path), 0)};
    (void)err;
    p->source.listing += XXH64(key, sizeof key, 0);
    p->source.source.bytes += l->bytes;
    p->files++;
    return PL_OK;
}

static pl_status examine(preparation *p, pl_error *err)
{
    const pl_texts_setup *s = &p->o->setup;
    p->source.recipe = pl_texts_recipe(s);
    PL_TRY(pl_texts_find_gathers(s, &p->gathers, err));
    if (p->gathers) {
        const pl_corpus_wish wish = pl_texts_corpus(s, p->o->index_path);
        PL_TRY(pl_corpus_open(&p->corpus, &wish, err));
        p->corpus.progress = p->o->progress, p->corpus.context = p->o->context;
        p->source.source = p->corpus.origin;
        return PL_OK;
    }
    if (s->form == PL_TEXTS_FOLDER) {
        PL_TRY(pl_folder_walk(s->path, add_listed, p, err));
        return p->files ? PL_OK
                        : pl_fail(err, PL_E_DATA, "%s: no file lies in it; a folder with texts is needed", s->path);
    }
    PL_TRY(pl_text_open(&p->file, s->path, err));
    p->source.source = p->file.origin;
    return PL_OK;
}

/* The index has to be made again, which is not a failure. */
static pl_status stale(pl_texts_result *r, const char *reason)
{
    snprintf(r->reason, sizeof r->reason, "%s", reason);
    return PL_OK;
}

/* The gathered texts themselves are checked when they are opened. */
static pl_status same_corpus(preparation *p, const pl_texts_info *i, bool *same, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    struct stat st;
    PL_TRY(pl_texts_gathered_path(path, p->o->index_path, err));
    *same = stat(path, &st) == 0 && (uint64_t)st.st_size == i->gathered_bytes;
    if (!*same) return PL_OK;
    PL_TRY(pl_corpus_match(&p->corpus, &i->source, same, err));
    if (*same && !pl_origin_is_untouched(&p->corpus.origin, &i->source))
        pl_texts_note_source(p->o->index_path, &p->corpus.origin);
    return PL_OK;
}

/* A folder is known by its listing alone: reading its files is as much work as making the index again. */
static pl_status same_source(preparation *p, const pl_texts_info *i, bool *same, pl_error *err)
{
    if (p->gathers) return same_corpus(p, i, same, err);
    *same = i->source.bytes == p->source.source.bytes && i->listing == p->source.listing;
    if (p->o->setup.form == PL_TEXTS_FOLDER) return PL_OK;
    PL_TRY(pl_origin_match(p->file.fd, p->file.path, &p->source.source, &i->source, same, err));
    if (*same && !pl_origin_is_untouched(&p->source.source, &i->source))
        pl_texts_note_source(p->o->index_path, &p->source.source);
    return PL_OK;
}

static pl_texts_form form_of(const preparation *p) { return p->gathers ? PL_TEXTS_GATHERED : p->o->setup.form; }

static pl_status try_reuse(preparation *p, pl_texts_result *r, pl_error *err)
{
    pl_error why = {0};
    pl_texts_form form;
    pl_texts_info i;
    bool same;
    int fd;
    const pl_status status = pl_texts_open_index(p->o->index_path, &fd, &form, &i, &why);
    /* a damaged index is made again; one that the system does not let us read may be whole */
    if (status == PL_E_STORAGE) return pl_fail(err, status, "%s", why.text);
    if (status != PL_OK) return stale(r, why.text);
    close(fd);
    if (i.recipe != p->source.recipe || form != form_of(p))
        return stale(r, "the index was made for another form, key or column of texts");
    PL_TRY(same_source(p, &i, &same, err));
    if (!same) return stale(r, "the texts are no longer those that the index was made of");
    r->info = i, r->reused = true;
    return PL_OK;
}

/* ---- making: a file ---- */

static pl_status put_place(void *writer, const pl_text_place *place, pl_error *err)
{
    return pl_texts_put(writer, place, err);
}

static pl_status scan(preparation *p, pl_scanner *s, uint8_t *block, pl_error *err)
{
    XXH64_state_t state;
    XXH64_reset(&state, 0);
    for (size_t got = 1; got;) {
        PL_TRY(pl_text_read(&p->file, block, PL_TEXT_BLOCK_BYTES, &got, err));
        XXH64_update(&state, block, got);
        PL_TRY(pl_scanner_feed(s, block, got, err));
        PL_TRY(pl_text_tell(&p->file, p->o->progress, p->o->context, "finding the texts", err));
    }
    p->source.source.content = XXH64_digest(&state);
    PL_TRY(pl_scanner_finish(s, err));
    return pl_text_check_unchanged(&p->file, err);
}

static pl_status index_file(preparation *p, pl_texts_writer *w, pl_error *err)
{
    pl_scanner *s = NULL;
    uint8_t *block = pl_alloc(PL_TEXT_BLOCK_BYTES, 1);
    pl_status status = block ? PL_OK : pl_fail(err, PL_E_NOMEM, "no memory for reading %s", p->file.path);
    if (status == PL_OK) status = pl_scanner_create(&p->o->setup, put_place, w, &s, err);
    if (status == PL_OK) status = scan(p, s, block, err);
    pl_scanner_destroy(s);
    pl_free(block);
    if (status == PL_OK && pl_texts_put_count(w) == 0)
        return pl_fail(err, PL_E_DATA, "%s: has no texts, but only a header or empty lines", p->file.path);
    return status;
}

/* ---- making: a folder ---- */

typedef struct listing {
    preparation *p;
    preparation again; /* what the second look finds */
    pl_sorter *sorter;
    pl_texts_writer *writer;
    XXH64_state_t content;
    uint64_t offset; /* the next file's record */
    uint64_t done;   /* bytes */
    uint8_t *block;
    char path[PL_FILE_PATH_MAX];
} listing;

static pl_status hash_contents(const listing *l, int fd, uint64_t bytes, uint64_t *hash, pl_error *err)
{
    XXH64_state_t state;
    XXH64_reset(&state, 0);
    for (uint64_t at = 0; at < bytes;) {
        const size_t n = bytes - at < PL_TEXT_BLOCK_BYTES ? (size_t)(bytes - at) : PL_TEXT_BLOCK_BYTES;
        PL_TRY(pl_file_read_at(fd, l->path, at, l->block, n, err));
        XXH64_update(&state, l->block, n);
        at += n;
        posix_fadvise(fd, 0, (off_t)at, POSIX_FADV_DONTNEED);
    }
    *hash = XXH64_digest(&state);
    return PL_OK;
}

static pl_status read_listed(void *context, const pl_listed *found, pl_error *err)
{
    listing *l = context;
    const pl_texts_options *o = l->p->o;
    pl_listed file = *found;
    uint64_t bytes;
    int fd;
    PL_TRY(add_listed(&l->again, found, err));
    PL_TRY(pl_path_join(l->path, sizeof l->path, o->setup.path, file.path, err));
    PL_TRY(pl_file_open(l->path, &fd, &bytes, err));
    const pl_status status = hash_contents(l, fd, file.bytes, &file.content, err);
    close(fd);
    if (status != PL_OK) return status;
    l->done += file.bytes;
    if (o->progress && !o->progress(o->context, "reading the texts", l->done, l->p->source.source.bytes))
        return pl_fail(err, PL_E_STOPPED, "%s: stopped while reading the texts", o->setup.path);
    return pl_sorter_add(l->sorter, &file, err);
}

static pl_status put_file(void *context, const pl_listed *file, pl_error *err)
{
    listing *l = context;
    const uint64_t numbers[] = {file->bytes, file->content};
    XXH64_update(&l->content, file->path, strlen(file->path) + 1);
    XXH64_update(&l->content, numbers, sizeof numbers);
    return pl_texts_put_file(l->writer, file->path, file->mtime_ns, err);
}

static pl_status put_entry(void *context, const pl_listed *file, pl_error *err)
{
    listing *l = context;
    const pl_text_place place = {l->offset, file->bytes, PL_TEXT_RAW};
    l->offset += PL_TEXTS_FILE_BYTES + strlen(file->path);
    return pl_texts_put(l->writer, &place, err);
}

static pl_status list_files(listing *l, pl_error *err)
{
    preparation *p = l->p;
    XXH64_reset(&l->content, 0);
    PL_TRY(pl_folder_walk(p->o->setup.path, read_listed, l, err));
    if (l->again.source.listing != p->source.listing || l->again.files != p->files)
        return pl_fail(err, PL_E_DATA, "%s: was changed while it was being read; start again when it is complete",
                       p->o->setup.path);
    PL_TRY(pl_sorter_each(l->sorter, put_file, l, err));
    PL_TRY(pl_sorter_each(l->sorter, put_entry, l, err));
    p->source.source.content = XXH64_digest(&l->content);
    return PL_OK;
}

static pl_status index_folder(preparation *p, pl_texts_writer *w, pl_error *err)
{
    char names[PL_FILE_PATH_MAX];
    listing *l = NULL;
    if (snprintf(names, sizeof names, "%s.names", p->o->index_path) >= (int)sizeof names)
        return pl_fail(err, PL_E_USAGE, "the path %.200s… is too long", p->o->index_path);
    l = pl_alloc(1, sizeof *l);
    if (!l) return pl_fail(err, PL_E_NOMEM, "no memory for reading %s", p->o->setup.path);
    l->p = p, l->writer = w;
    l->block = pl_alloc(PL_TEXT_BLOCK_BYTES, 1);
    pl_status status = l->block ? PL_OK : pl_fail(err, PL_E_NOMEM, "no memory for reading %s", p->o->setup.path);
    if (status == PL_OK) status = pl_sorter_create(names, &l->sorter, err);
    if (status == PL_OK) status = list_files(l, err);
    pl_sorter_destroy(l->sorter);
    pl_free(l->block);
    pl_free(l);
    return status;
}

/* ---- both ---- */

static pl_status make_index(preparation *p, pl_texts_result *r, pl_error *err)
{
    const pl_texts_form form = form_of(p);
    pl_texts_writer *w;
    pl_texts_form written;
    int fd;
    PL_TRY(pl_texts_writer_create(p->o->index_path, &w, err));
    const pl_status status = p->gathers ? pl_texts_gather(&p->corpus, p->o->index_path, w, &p->source, err)
                             : form == PL_TEXTS_FOLDER ? index_folder(p, w, err)
                                                       : index_file(p, w, err);
    if (status != PL_OK) return pl_texts_abandon(w), status;
    PL_TRY(pl_texts_commit(w, form, &p->source, err));
    PL_TRY(pl_texts_open_index(p->o->index_path, &fd, &written, &r->info, err));
    close(fd);
    return PL_OK;
}

static pl_status prepare(preparation *p, pl_texts_result *r, pl_error *err)
{
    const pl_texts_options *o = p->o;
    PL_TRY(examine(p, err));
    if (access(o->index_path, F_OK) == 0) PL_TRY(try_reuse(p, r, err));
    if (r->reused) return PL_OK;
    if (o->before_writing) {
        PL_TRY(o->before_writing(o->writing, err));
        /* another process may have made it while this one waited */
        if (access(o->index_path, F_OK) == 0) PL_TRY(try_reuse(p, r, err));
        if (r->reused) return PL_OK;
    }
    return make_index(p, r, err);
}

pl_status pl_texts_prepare(const pl_texts_options *o, pl_texts_result *r, pl_error *err)
{
    preparation p = {.o = o, .file.fd = -1};
    *r = (pl_texts_result){0};
    PL_TRY(check_setup(&o->setup, err));
    if (o->setup.form == PL_TEXTS_GRAMMAR) {
        r->info = (pl_texts_info){
            .count = o->setup.count, .recipe = pl_texts_recipe(&o->setup), .source = {.content = o->setup.seed}};
        return PL_OK;
    }
    const pl_status status = prepare(&p, r, err);
    pl_text_close(&p.file);
    return status;
}
