/* From a text to its tokenizer and token file, and how a run's own are protected.
 *
 * A run keeps the tokenizer that its weights were trained with, as tokenizer.json in its folder, wherever it came from
 * (learned there or in data.cache, or a file of the user's): later commands use that one, and no other. Its token file
 * is remade only from the run's own text. Whatever writes into the folder holds its lock, so a command that comes while
 * a run works there changes nothing. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "config/schema.h"
#include "data/text/prepare.h"
#include "systems/files.h"
#include "systems/text.h"

typedef struct preparation {
    pl_preparation *p;
    pl_text_paths paths;
    const char *source; /* the tokenizer's: a file to be loaded, or where the new one is to be */
    bool given;         /* it is to be loaded */
    bool other;         /* text than the run's: it is only looked at */
    char learned[PL_FILE_PATH_MAX];
    int cache_lock;
} preparation;

static pl_status hash_of(const char *path, uint64_t *hash, pl_error *err)
{
    pl_tokenizer *t;
    PL_TRY(pl_tokenizer_load(path, &t, err));
    *hash = pl_tokenizer_hash(t);
    pl_tokenizer_destroy(t);
    return PL_OK;
}

/* ---- keeping others out ---- */

/* Whoever works in a folder leaves a lock there. A tokenizer in a folder without one is foreign, and is not overwritten
 * unless it is the given one. */
static pl_status spare_foreign(const pl_preparation *of, pl_error *err)
{
    const preparation *p = of->own;
    pl_error why = {0};
    const char *own = p->paths.tokenizer;
    uint64_t there, wanted;
    if (p->p->holds_run || !p->source || access(own, F_OK) != 0) return PL_OK;
    pl_status status = p->given ? hash_of(p->source, &wanted, &why) : PL_E_DATA;
    if (status == PL_OK) status = hash_of(own, &there, &why);
    if (status == PL_E_NOMEM) return pl_fail(err, status, "%s", why.text);
    if (status == PL_OK && there == wanted) return PL_OK;
    return pl_fail(err, PL_E_STORAGE,
                   "%.350s: exists but belongs to no run (no lock beside it), and this command would overwrite it; "
                   "take it (`data.tokenizer`), move it away, or choose another folder with `run.out`",
                   own);
}

/* A tokenizer that we wrote is reproduced to the byte after being read; another program's, or an edited one, is not. */
static pl_status is_as_written(const char *path, bool *same, pl_error *err)
{
    pl_error why = {0};
    pl_tokenizer *t;
    pl_str again = {0};
    char *text;
    size_t bytes;
    *same = false;
    pl_status status = pl_tokenizer_load(path, &t, &why);
    if (status == PL_E_NOMEM || status == PL_E_STORAGE) return pl_fail(err, status, "%s", why.text);
    if (status != PL_OK) return PL_OK;
    pl_tokenizer_print(t, &again);
    pl_tokenizer_destroy(t);
    status = again.failed ? pl_fail(err, PL_E_NOMEM, "no memory to compare %s", path)
                          : pl_file_read_all(path, PL_TOKENIZER_FILE_MAX, &text, &bytes, err);
    if (status == PL_OK) {
        *same = bytes == again.bytes && memcmp(text, pl_str_text(&again), bytes) == 0;
        pl_free(text);
    }
    pl_str_deinit(&again);
    return status;
}

/* In a cache only the files themselves say who works there. */
static pl_status spare_foreign_in_cache(const preparation *p, pl_error *err)
{
    bool ours;
    if (p->given || access(p->source, F_OK) != 0) return PL_OK;
    PL_TRY(is_as_written(p->source, &ours, err));
    if (ours) return PL_OK;
    return pl_fail(err, PL_E_STORAGE,
                   "%.350s: exists, but not as Plimsoll writes it, and this command would overwrite it; take it "
                   "(`data.tokenizer`), move it away, or choose another folder for data.cache",
                   p->source);
}

static pl_status before_writing(void *context, pl_error *err)
{
    preparation *p = context;
    const char *cache = p->p->config->data.cache;
    PL_TRY(cache[0] ? pl_preparation_lock_cache(p->p, cache, &p->cache_lock, err) : pl_preparation_lock(p->p, err));
    if (cache[0]) PL_TRY(spare_foreign_in_cache(p, err));
    PL_TRY(pl_made_file(&p->p->made, p->paths.tokens, err));
    return p->given ? PL_OK : pl_made_file(&p->p->made, p->source, err);
}

/* ---- the tokenizer ---- */

/* The newest checkpoint's; 0: not known. */
static uint64_t hash_in(const preparation *p, const char *name)
{
    const pl_record *r = p->p->saved.record;
    return r ? pl_facts_value(&r->identity, name, 0) : 0;
}

static uint64_t trained_with(const preparation *p) { return hash_in(p, "tokenizer"); }

static pl_status refuse_own(const preparation *p, const char *path, pl_error *err)
{
    return pl_fail(err, PL_E_CONFIG,
                   "%.350s: is not the tokenizer that %.350s was trained with; put that one back, or train anew in "
                   "another folder with `run.out`",
                   path, p->p->saved.path);
}

/* The run's tokenizer must be the one it was trained with, and the config must not ask for another. A file that was
 * given once may be gone: the run has its copy. */
static pl_status check_own(const preparation *p, const pl_config *c, pl_error *err)
{
    const char *own = p->paths.tokenizer, *asked = c->data.tokenizer.path;
    uint64_t own_hash, asked_hash;
    bool compares = c->data.tokenizer.kind == PL_CONFIG_TOKENIZER_FILE && access(asked, F_OK) == 0;
    if (!compares && trained_with(p) == 0) return PL_OK;
    PL_TRY(hash_of(own, &own_hash, err));
    if (trained_with(p) && own_hash != trained_with(p)) return refuse_own(p, own, err);
    if (!compares) return PL_OK;
    PL_TRY(hash_of(asked, &asked_hash, err));
    if (asked_hash == own_hash) return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "%.350s: is another tokenizer than %.350s, which this run was trained with; leave data.tokenizer as "
                   "it was, or train with the new one in another folder with `run.out`",
                   asked, own);
}

/* Runs of older versions have no tokenizer in their folder when it came from a file or lay in the cache. */
static pl_status find_tokenizer(preparation *p, const pl_config *c, pl_error *err)
{
    const char *own = p->paths.tokenizer;
    bool file = c->data.tokenizer.kind == PL_CONFIG_TOKENIZER_FILE;
    if (p->p->holds_run && access(own, F_OK) == 0) {
        p->source = own;
        p->given = true;
        return check_own(p, c, err);
    }
    const char *folder = c->data.cache[0] ? c->data.cache : p->p->out;
    PL_TRY(pl_path_join(p->learned, sizeof p->learned, folder, "tokenizer.json", err));
    p->source = file ? c->data.tokenizer.path : p->learned;
    p->given = file || (p->p->holds_run && access(p->learned, F_OK) == 0);
    return PL_OK;
}

/* A damaged one does not count as there. */
static pl_status find_there(const preparation *p, uint64_t hash, bool *there, pl_error *err)
{
    pl_error why = {0};
    uint64_t held;
    pl_status status = PL_OK;
    *there = access(p->paths.tokenizer, F_OK) == 0;
    if (*there) status = hash_of(p->paths.tokenizer, &held, &why);
    *there = *there && status == PL_OK && held == hash;
    bool refused = status == PL_E_NOMEM || status == PL_E_STORAGE;
    return refused ? pl_fail(err, status, "%s", why.text) : PL_OK;
}

/* Puts the tokenizer that is used into the folder of the run, byte for byte. */
static pl_status keep_tokenizer(preparation *p, uint64_t hash, pl_error *err)
{
    char *text;
    size_t bytes;
    bool there;
    const char *own = p->paths.tokenizer;
    if (trained_with(p) && hash != trained_with(p)) return refuse_own(p, p->source, err);
    PL_TRY(find_there(p, hash, &there, err));
    if (there) return PL_OK;
    PL_TRY(pl_preparation_lock(p->p, err));
    PL_TRY(pl_made_file(&p->p->made, own, err));
    PL_TRY(pl_file_read_all(p->source, PL_TOKENIZER_FILE_MAX, &text, &bytes, err));
    pl_status status = pl_file_write_all(own, text, bytes, err);
    pl_free(text);
    if (status == PL_OK) status = find_there(p, hash, &there, err);
    if (status != PL_OK || there) return status;
    return pl_fail(
        err, PL_E_DATA,
        "%s: changed while it was copied to %s; when another command uses that folder too, start this one again",
        p->source, own);
}

/* ---- the text ---- */

/* The hash of the text that the run was trained on; 0 when nothing tells. Before run.json said so, the token file in
 * the folder did. */
static uint64_t trained_on(const preparation *p)
{
    pl_error ignored = {0};
    pl_tokens tokens;
    if (hash_in(p, "text")) return hash_in(p, "text");
    if (!p->p->holds_run || p->p->config->data.cache[0]) return 0;
    if (pl_tokens_open(&tokens, p->paths.tokens, &ignored) != PL_OK) return 0;
    uint64_t hash = tokens.info.source.content;
    pl_tokens_close(&tokens);
    return hash;
}

/* Which keys of the config, besides its files, now select other texts; "": none. */
static void say_how(const pl_config *c, const pl_config *other, pl_str *text)
{
    static const char *const paths[] = {"data.key", "data.format"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        const pl_config_key *key = pl_config_find(paths[i]);
        if (pl_config_value_equal(c, other, key)) continue;
        pl_str_printf(text, "%s `%s` ", text->bytes ? " and" : " with", paths[i]);
        pl_config_print_value(key, pl_config_value_of(c, key), text);
    }
}

static pl_status refuse_text(const preparation *p, pl_error *err)
{
    pl_error ignored = {0};
    char said[PL_CORPUS_SAID_BYTES], said_before[PL_CORPUS_SAID_BYTES], how[160] = "", how_before[160] = "";
    const pl_config *now = p->p->config;
    pl_config *before = pl_config_create();
    const char *text = p->p->saved.record ? p->p->saved.record->config : NULL;
    if (!before || !text || pl_config_load_text(before, "run.json", text, strlen(text), &ignored) != PL_OK)
        pl_config_destroy(before), before = NULL;
    if (before) {
        pl_str here = pl_str_fixed(how, sizeof how), then = pl_str_fixed(how_before, sizeof how_before);
        say_how(now, before, &here);
        say_how(before, now, &then);
    }
    pl_status status = pl_fail(
        err, PL_E_CONFIG,
        "%.300s:%s%s is not the text that the run in %.300s was trained on (%.200s%s then); resume with that text, or "
        "train on this one in another folder with `run.out`",
        pl_corpus_said(now->data.text, said), how, how[0] ? " it" : "", p->p->out,
        before ? pl_corpus_said(before->data.text, said_before) : "another", how_before);
    pl_config_destroy(before);
    return status;
}

/* A run of an earlier build has learned a file of records as plain text: it continues so. */
static pl_status try_as_plain(preparation *p, uint64_t expected, bool *same, pl_error *err)
{
    pl_error ignored = {0};
    uint64_t hash = 0;
    pl_config *c = p->p->writable;
    pl_corpus_wish wish = pl_text_wish(c, &p->paths);
    *same = false;
    if (wish.form != PL_TEXTS_AUTO) return PL_OK;
    wish.form = PL_TEXTS_WHOLE;
    const pl_status status = pl_text_find_hash(&wish, p->paths.tokens, &hash, &ignored);
    if (status == PL_E_NOMEM || status == PL_E_STORAGE) return pl_fail(err, status, "%s", ignored.text);
    *same = status == PL_OK && hash == expected;
    if (*same) c->data.format = PL_CONFIG_TEXTS_PLAIN;
    return PL_OK;
}

static pl_status is_own_text(preparation *p, bool *same, pl_error *err)
{
    const uint64_t expected = trained_on(p);
    const pl_corpus_wish wish = pl_text_wish(p->p->config, &p->paths);
    uint64_t hash;
    *same = true;
    if (expected == 0) return PL_OK;
    PL_TRY(pl_text_find_hash(&wish, p->paths.tokens, &hash, err));
    *same = hash == expected;
    return *same ? PL_OK : try_as_plain(p, expected, same, err);
}

/* Looking at a run with another text is fine; that text's tokens are then kept apart, in one folder per text. */
static pl_status find_text(preparation *p, pl_error *err)
{
    char path[PL_FILE_PATH_MAX], name[PL_CHECKSUM_TEXT_BYTES + 8];
    bool same;
    PL_TRY(is_own_text(p, &same, err));
    if (same) return PL_OK;
    if (p->p->config->run.resume != PL_SWITCH_OFF) return refuse_text(p, err);
    PL_TRY(pl_path_absolute(path, sizeof path, p->p->config->data.text, err));
    memcpy(name, "texts/", 6);
    pl_checksum_print(pl_checksum_of(path, strlen(path)), name + 6);
    pl_config *c = p->p->writable;
    p->other = true;
    PL_TRY(pl_path_join(c->data.cache, sizeof c->data.cache, p->p->out, name, err));
    return pl_text_find_paths(c, &p->paths, err);
}

static pl_tokenizer_kind kind_of(const pl_config *c)
{
    switch (c->data.tokenizer.kind) {
    case PL_CONFIG_TOKENIZER_BYTES:
        return PL_TOKENIZER_BYTES;
    case PL_CONFIG_TOKENIZER_CHARS:
        return PL_TOKENIZER_CHARS;
    case PL_CONFIG_TOKENIZER_WORDS:
        return PL_TOKENIZER_WORDS;
    default:
        return PL_TOKENIZER_BPE;
    }
}

/* Is it long enough to train and evaluate on? Checked here, where what was made can still be undone. */
static pl_status check_length(const pl_config *c, uint64_t tokens, pl_error *err)
{
    pl_sampler sampler;
    pl_sampler_options o = pl_text_sampler(c, PL_COMMAND_TRAIN);
    o.tokens = tokens;
    PL_TRY(pl_sampler_init(&sampler, &o, PL_PART_TRAIN, err));
    return o.validation_fraction > 0 ? pl_sampler_init(&sampler, &o, PL_PART_VALIDATION, err) : PL_OK;
}

/* The files that are made here must not be their own sources. Another text's tokens lie in the folder of the run. */
static pl_status spare_text(const preparation *p, pl_error *err)
{
    const char *const made[] = {p->paths.tokens, p->paths.tokenizer, p->given ? NULL : p->source};
    const pl_corpus_wish wish = pl_text_wish(p->p->config, &p->paths);
    return pl_text_check_apart(p->p->config, &wish, p->p->out, made, 3, err);
}

static pl_status make_tokens(preparation *p, pl_progress progress, void *context, pl_error *err)
{
    const pl_config *c = p->p->config;
    pl_tokenizer *tokenizer = NULL;
    pl_text_result result = {0};
    pl_text_options o = {.text = pl_text_wish(c, &p->paths),
                         .tokenizer_path = p->source,
                         .tokens_path = p->paths.tokens,
                         .given = p->given,
                         .kind = kind_of(c),
                         .vocab = (uint32_t)c->data.vocab_size,
                         .progress = progress,
                         .context = context,
                         .before_writing = before_writing,
                         .writing = p};
    PL_TRY(pl_text_prepare(&o, &tokenizer, &result, err));
    uint64_t hash = pl_tokenizer_hash(tokenizer);
    pl_tokenizer_destroy(tokenizer);
    if (!p->other) PL_TRY(check_length(c, result.info.count, err));
    return keep_tokenizer(p, hash, err);
}

static pl_status with_text(pl_preparation *of, pl_status (*work)(preparation *, const void *, pl_error *),
                           const void *context, pl_error *err)
{
    preparation *p = pl_alloc(1, sizeof *p);
    if (!p) return pl_fail(err, PL_E_NOMEM, "no memory to prepare the text");
    *p = (preparation){.p = of, .cache_lock = -1};
    of->own = p;
    of->spare = spare_foreign;
    pl_status status = pl_text_find_paths(of->config, &p->paths, err);
    if (status == PL_OK) status = work(p, context, err);
    if (p->cache_lock >= 0) close(p->cache_lock);
    of->own = NULL;
    of->spare = NULL;
    pl_free(p);
    return status;
}

typedef struct told {
    pl_progress progress;
    void *context;
} told;

static pl_status prepare(preparation *p, const void *context, pl_error *err)
{
    const told *t = context;
    PL_TRY(pl_config_require(p->p->config, "data.text", "this command", err));
    PL_TRY(find_tokenizer(p, p->p->config, err));
    PL_TRY(pl_text_keep_input(p->p, &p->paths, err));
    PL_TRY(find_text(p, err));
    PL_TRY(spare_text(p, err));
    return make_tokens(p, t->progress, t->context, err);
}

pl_status pl_text_prepare_run(pl_preparation *of, pl_progress progress, void *context, pl_error *err)
{
    told t = {progress, context};
    return with_text(of, prepare, &t, err);
}

static pl_status find_own(preparation *p, const void *context, pl_error *err)
{
    uint64_t *const *hash = context;
    (void)err;
    **hash = trained_on(p);
    return PL_OK;
}

/* A run whose checkpoints cannot be read must not pass as one of an earlier version, which does not record its text. */
static pl_status check_record(const pl_preparation *of, pl_error *err)
{
    pl_saved saved;
    if (!of->holds_run || of->saved.record) return PL_OK;
    PL_TRY(pl_saved_find(of->out, PL_SAVED_RECORD, &saved, err));
    pl_saved_deinit(&saved);
    return PL_OK;
}

pl_status pl_text_find_own(const pl_config *c, uint64_t *hash, pl_error *err)
{
    pl_preparation *of = pl_alloc(1, sizeof *of);
    if (!of) return pl_fail(err, PL_E_NOMEM, "no memory to look at the run");
    pl_status status = pl_preparation_begin(of, c, NULL, PL_COMMAND_TRAIN, err);
    if (status == PL_OK) status = check_record(of, err);
    if (status == PL_OK) status = with_text(of, find_own, &hash, err);
    pl_preparation_end(of, status);
    pl_free(of);
    return status;
}

static pl_status check_folder(preparation *p, const void *context, pl_error *err)
{
    const pl_command command = *(const pl_command *)context;
    uint64_t hash;
    PL_TRY(find_tokenizer(p, p->p->config, err));
    if (pl_command_does(command, PL_USES_DATA) || !p->given || p->source == p->paths.tokenizer) return PL_OK;
    PL_TRY(hash_of(p->source, &hash, err));
    return keep_tokenizer(p, hash, err);
}

pl_status pl_text_check_folder(pl_preparation *of, pl_command command, pl_error *err)
{
    return of->holds_run ? with_text(of, check_folder, &command, err) : PL_OK;
}
