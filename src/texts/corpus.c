#include "texts/corpus.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "texts/file_bytes.h"
#include "texts/form.h"
#include "texts/list.h"
#include "texts/scan.h"
#include "texts/texts_folder.h"

enum { RECIPE_VERSION = 1 }; /* raise it when texts are found in another way */

uint64_t pl_corpus_bytes(const pl_corpus_wish *w)
{
    const pl_texts_form largest = w->form >= PL_TEXTS_AUTO ? PL_TEXTS_JSONL : w->form;
    const uint64_t folders = PL_TEXTS_DEPTH_MAX * (uint64_t)(40 * 1024), lists = PL_LISTS_DEEP;
    return pl_file_bytes_heap() + pl_scanner_bytes(largest) + pl_sorter_bytes() + folders + 64 * 1024 +
           (strchr(w->names, '@') ? lists * PL_LIST_BYTES_MAX : 0);
}

pl_status pl_corpus_tell(const pl_corpus *c, const char *phase, uint64_t done, uint64_t total, pl_error *err)
{
    char said[PL_CORPUS_SAID_BYTES];
    if (!c->progress || c->progress(c->context, phase, done, total)) return PL_OK;
    return pl_fail(err, PL_E_STOPPED, "%s: stopped while %s", pl_corpus_said(c->wish.names, said), phase);
}

/* ---- what exists ---- */

/* What decides, besides the files, which texts they are; form: 0 where each file's form is hashed with the file. */
static uint64_t recipe_of(const pl_corpus_wish *w, uint64_t form)
{
    const char *key = w->key ? w->key : "text";
    const uint64_t all[] = {RECIPE_VERSION, form, XXH64(key, strlen(key), 0)};
    return XXH64(all, sizeof all, 0);
}

static uint64_t listed_as(const pl_origin *o, const char *path, uint64_t number)
{
    const uint64_t all[] = {
        number, o->bytes, o->inode, (uint64_t)o->mtime_ns, (uint64_t)o->ctime_ns, XXH64(path, strlen(path), 0)};
    return XXH64(all, sizeof all, 0);
}

static pl_status look(const char *path, pl_origin *o, pl_error *err)
{
    uint64_t bytes;
    int fd;
    PL_TRY(pl_file_open(path, &fd, &bytes, err));
    const pl_status status = pl_origin_look(fd, path, o, err);
    close(fd);
    return status;
}

static pl_status find_form(const pl_corpus *c, pl_file_bytes *b, const char *path, pl_texts_form *form, pl_error *err)
{
    size_t bytes;
    const uint8_t *head = pl_file_bytes_head(b, &bytes);
    *form = c->wish.form;
    PL_TRY(pl_text_form_check(path, head, bytes, err));
    if (c->wish.form < PL_TEXTS_AUTO) return PL_OK;
    PL_TRY(pl_text_form_find(path, head, bytes, form, err));
    if (c->wish.form == PL_TEXTS_AUTO_LINES && *form == PL_TEXTS_WHOLE) *form = PL_TEXTS_LINES;
    return PL_OK;
}

static pl_status look_for_keys(pl_corpus *c, const char *path, pl_error *err)
{
    pl_file_bytes *b;
    pl_texts_form form = PL_TEXTS_WHOLE;
    PL_TRY(pl_file_bytes_create(&b, err));
    pl_status status = pl_file_bytes_open(b, path, err);
    if (status == PL_OK) status = find_form(c, b, path, &form, err);
    c->has_keys = form == PL_TEXTS_JSONL || form == PL_TEXTS_CSV || form == PL_TEXTS_SQUAD;
    pl_file_bytes_destroy(b);
    return status;
}

/* Files of a folder come in any order, hence the sum of their hashes. */
static pl_status add_file(void *context, const char *path, uint64_t number, pl_error *err)
{
    pl_corpus *c = context;
    pl_origin o;
    PL_TRY(look(path, &o, err));
    c->files++;
    c->origin.bytes += o.bytes;
    c->origin.inode += listed_as(&o, path, number);
    return c->wish.key && !c->has_keys && o.bytes ? look_for_keys(c, path, err) : PL_OK;
}

/* The only file; plain if it is read as it is. */
static pl_status look_at_one(pl_corpus *c, pl_error *err)
{
    pl_file_bytes *b;
    pl_texts_form form;
    PL_TRY(pl_file_bytes_create(&b, err));
    pl_status status = pl_file_bytes_open(b, c->wish.names, err);
    if (status == PL_OK) status = find_form(c, b, c->wish.names, &form, err);
    if (status == PL_OK) c->is_plain = form == PL_TEXTS_WHOLE && !pl_file_bytes_is_packed(b);
    if (status == PL_OK && c->is_plain) c->origin = pl_file_bytes_file(b)->origin, c->files = 1;
    pl_file_bytes_destroy(b);
    return status;
}

static pl_status check_wish(const pl_corpus_wish *w, pl_error *err)
{
    const size_t bytes = w->key ? strlen(w->key) : 0;
    if (w->form == PL_TEXTS_FOLDER || w->form == PL_TEXTS_GRAMMAR || w->form == PL_TEXTS_GATHERED)
        return pl_fail(err, PL_E_INTERNAL, "texts of form %d are not read so", (int)w->form);
    if (w->key && (bytes == 0 || bytes >= PL_TEXTS_NAME_BYTES))
        return pl_fail(err, PL_E_CONFIG, "the key \"%.40s\" has %zu bytes; 1 to %d were expected", w->key, bytes,
                       PL_TEXTS_NAME_BYTES - 1);
    if (w->form == PL_TEXTS_SQUAD && !pl_squad_parts(w->key))
        return pl_fail(err, PL_E_CONFIG,
                       "the key \"%.100s\" names no parts of SQuAD; contexts, questions, answers, or several with "
                       "commas between them were expected",
                       w->key);
    return PL_OK;
}

/* Where forms are detected, files without keys may be among others. */
static pl_status check_key(const pl_corpus *c, pl_error *err)
{
    char said[PL_CORPUS_SAID_BYTES];
    if (!c->wish.key || c->has_keys) return PL_OK;
    return pl_fail(err, PL_E_CONFIG, "%s: the key \"%.100s\" is not looked for: %s; leave it out, or say what %s",
                   pl_corpus_said(c->wish.names, said), c->wish.key,
                   c->files > 1 ? "none of the files has keys or columns" : "it has no keys and no columns",
                   c->files > 1 ? "they hold" : "the file holds");
}

pl_status pl_corpus_open(pl_corpus *c, const pl_corpus_wish *w, pl_error *err)
{
    char said[PL_CORPUS_SAID_BYTES];
    pl_file_kind kind; /* of all the names as one */
    *c = (pl_corpus){.wish = *w};
    PL_TRY(check_wish(w, err));
    PL_TRY(pl_file_find_kind(w->names, &kind, err));
    if (kind == PL_FILE_OTHER) PL_TRY(look_at_one(c, err));
    if (c->is_plain) return check_key(c, err);
    c->origin.inode = recipe_of(w, w->form);
    PL_TRY(pl_corpus_each_name(w, false, add_file, c, err));
    if (c->files && c->origin.bytes) return check_key(c, err);
    return pl_fail(err, PL_E_DATA, "%s: %s; a file with text is needed", pl_corpus_said(w->names, said),
                   c->files ? "all files in it are empty" : "no file lies in it");
}

/* ---- reading ---- */

typedef struct reading {
    pl_corpus *c;
    const char *phase;
    const pl_corpus_taker *taker; /* NULL: only hashes */
    pl_file_bytes *bytes;
    XXH64_state_t contents;
    uint64_t before;  /* bytes of the finished files */
    uint64_t listing; /* of this reading */
    uint64_t texts;
    bool passed; /* some of the text */
} reading;

static pl_status take_piece(void *context, const void *data, size_t bytes, pl_error *err)
{
    reading *r = context;
    r->passed |= bytes > 0;
    return bytes ? r->taker->piece(r->taker->context, data, bytes, err) : PL_OK;
}

static pl_status take_end(void *context, const pl_text_place *place, pl_error *err)
{
    reading *r = context;
    (void)place;
    r->texts += r->passed;
    r->passed = false;
    return r->taker->end ? r->taker->end(r->taker->context, err) : PL_OK;
}

static pl_status tell(reading *r, pl_error *err)
{
    r->c->at = r->before + pl_file_bytes_file(r->bytes)->at;
    return pl_corpus_tell(r->c, r->phase, r->c->at, r->c->origin.bytes, err);
}

static pl_status take_plain(reading *r, pl_error *err)
{
    const uint8_t *data;
    for (size_t got = 1; got;) {
        PL_TRY(pl_file_bytes_read(r->bytes, &data, &got, err));
        PL_TRY(take_piece(r, data, got, err));
        if (got) PL_TRY(tell(r, err));
    }
    r->texts++;
    return PL_OK;
}

static pl_status feed(reading *r, pl_scanner *s, pl_error *err)
{
    const uint8_t *data;
    PL_TRY(pl_scanner_want_pieces(s, take_piece, err));
    for (size_t got = 1; got;) {
        PL_TRY(pl_file_bytes_read(r->bytes, &data, &got, err));
        PL_TRY(pl_scanner_feed(s, data, got, err));
        PL_TRY(tell(r, err));
    }
    return pl_scanner_finish(s, err);
}

static pl_status take_texts(reading *r, const char *path, pl_texts_form form, pl_error *err)
{
    pl_scanner *s;
    const pl_corpus_wish *w = &r->c->wish;
    const pl_texts_setup setup = {.form = form, .path = path, .key = w->key, .column = w->key};
    PL_TRY(pl_scanner_create(&setup, take_end, r, &s, err));
    const pl_status status = feed(r, s, err);
    pl_scanner_destroy(s);
    return status;
}

static pl_status changed(const pl_corpus *c, pl_error *err)
{
    char said[PL_CORPUS_SAID_BYTES];
    return pl_fail(err, PL_E_DATA, "%s: was changed while it was being read; start again when it is complete",
                   pl_corpus_said(c->wish.names, said));
}

/* One of the forms that the files may have has a few keys of its own. */
static pl_status check_parts(const pl_corpus *c, const char *path, pl_texts_form form, pl_error *err)
{
    if (!c->wish.key || form != PL_TEXTS_SQUAD || pl_squad_parts(c->wish.key)) return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "%.300s: the key \"%.100s\" is not looked for: SQuAD's JSON has contexts, questions and answers; "
                   "leave it out, or say what the file holds",
                   path, c->wish.key);
}

static pl_status read_open(reading *r, const char *path, pl_error *err)
{
    pl_texts_form form;
    pl_origin o;
    PL_TRY(find_form(r->c, r->bytes, path, &form, err));
    PL_TRY(check_parts(r->c, path, form, err));
    if (!r->taker)
        PL_TRY(pl_file_bytes_pass_over(r->bytes, err));
    else if (r->c->is_plain)
        PL_TRY(take_plain(r, err));
    else
        PL_TRY(take_texts(r, path, form, err));
    PL_TRY(pl_file_bytes_end(r->bytes, &o, err));
    if (r->c->is_plain) {
        r->c->origin.content = o.content;
        return pl_origin_is_untouched(&o, &r->c->origin) ? PL_OK : changed(r->c, err);
    }
    const uint64_t all[] = {form, o.bytes, o.content};
    XXH64_update(&r->contents, all, sizeof all);
    r->before += o.bytes;
    return PL_OK;
}

static pl_status read_file(void *context, const char *path, uint64_t number, pl_error *err)
{
    reading *r = context;
    pl_origin o;
    PL_TRY(look(path, &o, err));
    r->listing += listed_as(&o, path, number);
    if (o.bytes == 0) return PL_OK;
    PL_TRY(pl_file_bytes_open(r->bytes, path, err));
    const pl_status status = read_open(r, path, err);
    pl_file_bytes_close(r->bytes);
    return status;
}

static pl_status read_all(reading *r, pl_error *err)
{
    char said[PL_CORPUS_SAID_BYTES];
    pl_corpus *c = r->c;
    const uint64_t recipe = recipe_of(&c->wish, 0);
    XXH64_reset(&r->contents, 0);
    XXH64_update(&r->contents, &recipe, sizeof recipe);
    r->listing = recipe_of(&c->wish, c->wish.form);
    PL_TRY(pl_corpus_each_name(&c->wish, true, read_file, r, err));
    if (c->is_plain) return PL_OK;
    if (r->listing != c->origin.inode) return changed(c, err);
    c->origin.content = XXH64_digest(&r->contents);
    if (r->texts || !r->taker) return PL_OK;
    return pl_fail(err, PL_E_DATA, "%s: has no text, but only empty ones", pl_corpus_said(c->wish.names, said));
}

static pl_status run_reading(reading *r, pl_error *err)
{
    PL_TRY(pl_file_bytes_create(&r->bytes, err));
    const pl_status status = read_all(r, err);
    pl_file_bytes_destroy(r->bytes);
    return status;
}

pl_status pl_corpus_read(pl_corpus *c, const char *phase, const pl_corpus_taker *taker, pl_error *err)
{
    c->at = 0;
    return run_reading(&(reading){.c = c, .phase = phase, .taker = taker}, err);
}

pl_status pl_corpus_hash(pl_corpus *c, pl_error *err) { return run_reading(&(reading){.c = c}, err); }

pl_status pl_corpus_match(pl_corpus *c, const pl_origin *then, bool *same, pl_error *err)
{
    *same = pl_origin_is_untouched(&c->origin, then);
    if (*same) c->origin.content = then->content;
    if (*same || c->origin.bytes != then->bytes) return PL_OK;
    PL_TRY(pl_corpus_hash(c, err));
    *same = c->origin.content == then->content;
    return PL_OK;
}
