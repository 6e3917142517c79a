#include "data/text/prepare.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "data/text/bpe_train.h"
#include "data/text/chars.h"
#include "data/text/encoder.h"
#include "data/text/words_train.h"

/* A hash of the wish, to compare with that from which a token file was made. Raise the first number when training
 * changes. */
static uint64_t recipe_of(const pl_text_options *o)
{
    if (o->given) return 0;
    pl_bpe_options b = pl_bpe_options_default(o->vocab);
    uint64_t all[] = {1,
                      o->kind,
                      o->kind == PL_TOKENIZER_BYTES ? 256 : o->vocab,
                      b.min_count,
                      b.word_bytes,
                      b.word_limit,
                      b.word_text_limit};
    return XXH64(all, sizeof all, 0) | 1;
}

static uint64_t train_bytes(const pl_text_options *o)
{
    if (o->given) return pl_tokenizer_load_bytes(o->tokenizer_path);
    if (o->kind == PL_TOKENIZER_CHARS) return pl_chars_train_bytes();
    if (o->kind == PL_TOKENIZER_WORDS) return pl_words_train_bytes();
    pl_bpe_options b = pl_bpe_options_default(o->vocab);
    return o->kind == PL_TOKENIZER_BPE ? pl_bpe_train_bytes(&b) : 0;
}

uint64_t pl_text_prepare_bytes(const pl_text_options *o, uint64_t tokens)
{
    /* Encoding takes far less than training, and they do not coincide; the tokenizer is in both. */
    uint64_t encode = pl_tokens_writer_bytes(tokens) + (4 << 20), train = train_bytes(o);
    return pl_corpus_bytes(&o->text) + (encode > train ? encode : train);
}

/* ---- are the existing files still good? ---- */

static pl_status read_info(const char *path, pl_tokens_info *info, pl_error *err)
{
    pl_tokens *tokens = pl_alloc(1, sizeof *tokens);
    if (!tokens) return pl_fail(err, PL_E_NOMEM, "no memory for looking at %s", path);
    pl_status status = pl_tokens_open(tokens, path, err);
    if (status == PL_OK) *info = tokens->info, pl_tokens_close(tokens);
    pl_free(tokens);
    return status;
}

/* The tokens have to be made again, which is not a failure. */
static pl_status stale(pl_text_result *r, const char *reason)
{
    snprintf(r->reason, sizeof r->reason, "%s", reason);
    return PL_OK;
}

/* Damaged files are made again. After a lack of memory that would be wasted work, and fail again; and a file that the
 * system does not let us read may be whole, and someone else's. */
static pl_status stale_unless_refused(pl_text_result *r, pl_status status, const pl_error *why, pl_error *err)
{
    int refused = status == PL_E_NOMEM || status == PL_E_STORAGE;
    return refused ? pl_fail(err, status, "%s", why->text) : stale(r, why->text);
}

/* Were the tokens at `path` made from these texts? */
static pl_status same_text(pl_corpus *corpus, const char *path, const pl_tokens_info *i, bool *same, pl_error *err)
{
    PL_TRY(pl_corpus_match(corpus, &i->source, same, err));
    if (*same && !pl_origin_is_untouched(&corpus->origin, &i->source)) pl_tokens_note_source(path, &corpus->origin);
    return PL_OK;
}

/* The tokenizer of these tokens: the given one, or the file next to them. */
static pl_status reuse_tokenizer(const pl_text_options *o, const pl_tokens_info *i, pl_tokenizer **t, pl_text_result *r,
                                 pl_error *err)
{
    pl_error why = {0};
    pl_status status = o->given ? PL_OK : pl_tokenizer_load(o->tokenizer_path, t, &why);
    if (status != PL_OK) return stale_unless_refused(r, status, &why, err);
    if (pl_tokenizer_hash(*t) != i->tokenizer_hash) {
        (void)stale(r, "the tokens were made with another tokenizer");
        if (!o->given) pl_tokenizer_destroy(*t), *t = NULL;
    } else {
        r->tokenizer_reused = r->tokens_reused = 1;
        r->info = *i;
    }
    return PL_OK;
}

static pl_status try_reuse(const pl_text_options *o, pl_corpus *corpus, pl_tokenizer **t, pl_text_result *r,
                           pl_error *err)
{
    pl_error why = {0};
    pl_tokens_info info;
    bool same;
    pl_status status = read_info(o->tokens_path, &info, &why);
    if (status != PL_OK) return stale_unless_refused(r, status, &why, err);
    if (!o->given && info.recipe != recipe_of(o)) /* for a given tokenizer its own hash decides */
        return stale(r, "the tokens were made for another kind of tokenizer or vocabulary size");
    if (info.reader != PL_TOKENS_READER)
        return stale(r, "the tokens were made by another version of the reader of texts");
    PL_TRY(same_text(corpus, o->tokens_path, &info, &same, err));
    if (!same) return stale(r, "the text is no longer the one that the tokens were made from");
    return reuse_tokenizer(o, &info, t, r, err);
}

/* ---- making ---- */

static pl_status make_tokenizer(const pl_text_options *o, pl_corpus *corpus, pl_tokenizer **t, pl_text_result *r,
                                pl_error *err)
{
    pl_bpe_options bpe = pl_bpe_options_default(o->vocab);
    switch (o->kind) {
    case PL_TOKENIZER_BYTES:
        PL_TRY(pl_tokenizer_create_bytes(t, err));
        break;
    case PL_TOKENIZER_CHARS:
        PL_TRY(pl_chars_train(corpus, o->vocab, t, err));
        break;
    case PL_TOKENIZER_WORDS:
        PL_TRY(pl_words_train(corpus, o->vocab, &r->evicted, t, err));
        break;
    default:
        PL_TRY(pl_bpe_train(corpus, &bpe, &r->evicted, t, err));
    }
    return pl_tokenizer_save(*t, o->tokenizer_path, err);
}

static pl_status append(void *writer, const uint32_t *ids, size_t count, pl_error *err)
{
    return pl_tokens_append(writer, ids, count, err);
}

/* Texts on their way through the encoder to the file. */
typedef struct encoding {
    pl_encoder *encoder;
    pl_tokens_writer *writer;
    uint32_t end; /* PL_TOKEN_NONE: a line feed ends a text */
    bool passed;  /* something of this text */
    uint8_t last; /* byte */
} encoding;

static pl_status encode_piece(void *context, const void *data, size_t bytes, pl_error *err)
{
    encoding *e = context;
    e->passed = true;
    e->last = ((const uint8_t *)data)[bytes - 1];
    return pl_encoder_feed(e->encoder, data, bytes, err);
}

static pl_status encode_end(void *context, pl_error *err)
{
    encoding *e = context;
    if (!e->passed) return PL_OK;
    e->passed = false;
    if (e->end == PL_TOKEN_NONE && e->last != '\n') PL_TRY(pl_encoder_feed(e->encoder, "\n", 1, err));
    PL_TRY(pl_encoder_finish(e->encoder, err));
    return e->end == PL_TOKEN_NONE ? PL_OK : pl_tokens_append(e->writer, &e->end, 1, err);
}

static pl_status encode_texts(pl_corpus *corpus, encoding *e, pl_error *err)
{
    const pl_corpus_taker taker = {.piece = encode_piece, .end = encode_end, .context = e};
    PL_TRY(pl_corpus_read(corpus, "turning text into tokens", &taker, err));
    return pl_encoder_finish(e->encoder, err);
}

static pl_status make_tokens(const pl_text_options *o, pl_corpus *corpus, const pl_tokenizer *t, pl_error *err)
{
    encoding e = {.end = pl_tokenizer_end_id(t)};
    pl_tokens_info info = {.tokenizer_hash = pl_tokenizer_hash(t), .recipe = recipe_of(o)};
    pl_status status = pl_tokens_create(o->tokens_path, pl_tokenizer_vocab_size(t), &e.writer, err);
    if (status == PL_OK) status = pl_encoder_create(t, append, e.writer, &e.encoder, err);
    if (status == PL_OK) status = encode_texts(corpus, &e, err);
    pl_encoder_destroy(e.encoder);
    info.source = corpus->origin;
    if (status == PL_OK) return pl_tokens_commit(e.writer, &info, err);
    pl_tokens_abandon(e.writer);
    return status;
}

static pl_status prepare(const pl_text_options *o, pl_corpus *corpus, pl_tokenizer **t, pl_text_result *r,
                         pl_error *err)
{
    if (o->given) PL_TRY(pl_tokenizer_load(o->tokenizer_path, t, err));
    if (access(o->tokens_path, F_OK) == 0) PL_TRY(try_reuse(o, corpus, t, r, err));
    if (r->tokens_reused) return PL_OK;
    if (o->before_writing) {
        PL_TRY(o->before_writing(o->writing, err));
        /* another process may have made it while this one waited */
        if (access(o->tokens_path, F_OK) == 0) PL_TRY(try_reuse(o, corpus, t, r, err));
        if (r->tokens_reused) return PL_OK;
    }
    if (o->given)
        r->tokenizer_reused = 1;
    else
        PL_TRY(make_tokenizer(o, corpus, t, r, err));
    PL_TRY(make_tokens(o, corpus, *t, err));
    return read_info(o->tokens_path, &r->info, err);
}

pl_status pl_text_prepare(const pl_text_options *o, pl_tokenizer **t, pl_text_result *r, pl_error *err)
{
    pl_corpus corpus;
    *t = NULL;
    *r = (pl_text_result){0};
    PL_TRY(pl_corpus_open(&corpus, &o->text, err));
    corpus.progress = o->progress, corpus.context = o->context;
    pl_status status = prepare(o, &corpus, t, r, err);
    if (status != PL_OK) pl_tokenizer_destroy(*t), *t = NULL;
    return status;
}

pl_status pl_text_find_hash(const pl_corpus_wish *text, const char *tokens_path, uint64_t *hash, pl_error *err)
{
    pl_corpus corpus;
    pl_tokens_info info = {0};
    pl_error why = {0};
    bool same = false;
    PL_TRY(pl_corpus_open(&corpus, text, err));
    pl_status status = access(tokens_path, F_OK) == 0 ? read_info(tokens_path, &info, &why) : PL_E_DATA;
    if (status == PL_E_NOMEM) return pl_fail(err, status, "%s", why.text);
    if (status == PL_OK) PL_TRY(same_text(&corpus, tokens_path, &info, &same, err));
    /* where the sizes are equal, same_text has read them */
    if (!same && corpus.origin.bytes != info.source.bytes) PL_TRY(pl_corpus_hash(&corpus, err));
    *hash = corpus.origin.content;
    return PL_OK;
}

/* A missing file contradicts nothing. */
static pl_status are_there(const pl_corpus_wish *text, bool *there, pl_error *err)
{
    *there = true;
    return strpbrk(text->names, "\n*?[@") ? PL_OK : pl_file_look(text->names, there, err);
}

pl_status pl_text_match(const pl_corpus_wish *text, const char *tokens_path, const pl_tokens_info *info, bool *same,
                        pl_error *err)
{
    pl_corpus corpus;
    bool there;
    *same = true;
    PL_TRY(are_there(text, &there, err));
    if (!there) return PL_OK;
    PL_TRY(pl_corpus_open(&corpus, text, err));
    return same_text(&corpus, tokens_path, info, same, err);
}

/* ---- the text that tokens stand for ---- */

pl_status pl_text_count_bytes(pl_tokens_reader *r, const pl_tokenizer *t, uint64_t begin, uint64_t end, uint64_t *bytes,
                              pl_error *err)
{
    int32_t ids[1024];
    const uint32_t ends = pl_tokens_have_ends(&r->tokens->info) ? pl_tokenizer_end_id(t) : PL_TOKEN_NONE;
    *bytes = 0;
    while (begin < end) {
        size_t count = end - begin < 1024 ? (size_t)(end - begin) : 1024, of_token;
        PL_TRY(pl_tokens_read(r, begin, begin + count, ids, err));
        for (size_t i = 0; i < count; i++) {
            pl_tokenizer_token(t, (uint32_t)ids[i], &of_token);
            *bytes += (uint32_t)ids[i] == ends ? 0 : of_token;
        }
        begin += count;
        pl_tokens_trim_cache(r);
    }
    return PL_OK;
}
