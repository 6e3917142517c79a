/* Reading tokenizer.json: BPE and WordLevel as Hugging Face's library writes them, and two kinds of our own. Whatever
 * would give ids other than that library's is refused, naming what is supported, and never ignored.
 *
 * A vocabulary, its merges and added tokens may have millions of values: they are scanned where they stand in the text.
 * jansson builds a tree of the rest (the skeleton, in which they are null), and what a small hostile file could turn
 * that into is bounded beforehand: every value costs at most VALUE_BYTES of tree, and values are counted by the
 * characters that separate them. */
#include <string.h>

#include <jansson.h>

#include "base/alloc.h"
#include "base/json_read.h"
#include "base/json_scan.h"
#include "data/text/alphabet.h"
#include "data/text/tokenizer_file.h"
#include "data/text/tokenizer_impl.h"
#include "data/text/unicode.h"

enum { RAW_TOKEN_MAX = 3 * PL_TOKEN_BYTES_MAX, KEY_MAX = 1024 };

/* A value in the text of a file; begin = end: it is not there. */
typedef struct span {
    size_t begin, end;
} span;

typedef struct reader {
    const char *name, *text; /* of the file */
    pl_error *err;
    span added_tokens, vocab, merges;
    pl_vocab_entry *entry; /* [room], first with texts as they stand in the file */
    uint8_t *texts;        /* theirs, with a free byte before each */
    size_t texts_bytes;
    uint32_t room, count;      /* count: the largest id + 1 */
    uint32_t vocab_count;      /* tokens of the model */
    uint32_t *slot, slot_mask; /* a token's text -> id + 1 */
    pl_added_token *added;     /* [added_room] */
    uint8_t *normal;           /* normal forms of added tokens, in a row */
    size_t normal_bytes;
    uint32_t added_room;
    uint32_t next_added; /* the id of the next added token that the model's vocabulary lacks */
    pl_bpe_parts parts;
    pl_merge *merge;
} reader;

static pl_status no_memory(const reader *r)
{
    return pl_fail(r->err, PL_E_NOMEM, "%s: no memory for reading the tokenizer", r->name);
}

#define BAD(...) pl_fail(r->err, PL_E_DATA, __VA_ARGS__)

/* ---- the file's parts ---- */

static pl_json_scan scan_of(const reader *r, span s)
{
    return (pl_json_scan){.name = r->name, .text = r->text, .bytes = s.end, .at = s.begin};
}

static pl_status pass_over(pl_json_scan *s, span *found, pl_error *err)
{
    pl_json_scan_peek(s);
    if (found && found->end)
        return pl_fail(err, PL_E_DATA, "%s: is not valid JSON: the value at byte %zu is there twice", s->name, s->at);
    const size_t begin = s->at;
    PL_TRY(pl_json_scan_skip(s, err));
    if (found) *found = (span){begin, s->at};
    return PL_OK;
}

static bool is_key(const char *key, size_t bytes, const char *name)
{
    return bytes == strlen(name) && memcmp(key, name, bytes) == 0;
}

static pl_status find_in_model(reader *r, pl_json_scan *s)
{
    char key[KEY_MAX];
    size_t bytes;
    bool more = true;
    if (pl_json_scan_peek(s) != '{') return pass_over(s, NULL, r->err);
    PL_TRY(pl_json_scan_enter(s, '{', r->err));
    for (bool first = true;; first = false) {
        PL_TRY(pl_json_scan_next(s, '{', first, &more, r->err));
        if (!more) return PL_OK;
        PL_TRY(pl_json_scan_key(s, key, sizeof key, &bytes, r->err));
        span *found = is_key(key, bytes, "vocab") ? &r->vocab : is_key(key, bytes, "merges") ? &r->merges : NULL;
        PL_TRY(pass_over(s, found, r->err));
    }
}

/* Checks that the whole text is JSON. */
static pl_status find_parts(reader *r, size_t bytes)
{
    pl_json_scan all = scan_of(r, (span){0, bytes}), *s = &all;
    char key[KEY_MAX];
    size_t n;
    bool more = pl_json_scan_peek(s) == '{';
    if (!more) PL_TRY(pl_json_scan_skip(s, r->err));
    if (more) PL_TRY(pl_json_scan_enter(s, '{', r->err));
    for (bool first = true; more; first = false) {
        PL_TRY(pl_json_scan_next(s, '{', first, &more, r->err));
        if (!more) break;
        PL_TRY(pl_json_scan_key(s, key, sizeof key, &n, r->err));
        if (is_key(key, n, "model"))
            PL_TRY(find_in_model(r, s));
        else
            PL_TRY(pass_over(s, is_key(key, n, "added_tokens") ? &r->added_tokens : NULL, r->err));
    }
    return pl_json_scan_end(s, r->err);
}

static pl_status parse_tree(const reader *r, const char *json, size_t bytes, json_t **root)
{
    json_error_t where;
    pl_tree_size t = {0};
    pl_tree_count(&t, json, bytes);
    if (pl_tree_bytes(&t) > PL_TOKENIZER_TREE_MAX)
        return BAD("%s: has about %llu values, more than a tokenizer that is read within %d MB", r->name,
                   (unsigned long long)t.values, PL_TOKENIZER_TREE_MAX / 1000000);
    pl_status status = pl_json_read(json, bytes, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, root, &where);
    if (status == PL_OK) return PL_OK;
    return status == PL_E_NOMEM ? no_memory(r) : BAD("%s: is not valid JSON: %s", r->name, where.text);
}

static size_t append(char *out, size_t at, const char *text, size_t bytes)
{
    memcpy(out + at, text, bytes);
    return at + bytes;
}

/* The tree of all but the large parts. */
static pl_status read_skeleton(reader *r, size_t bytes, json_t **root)
{
    span cut[3] = {r->added_tokens, r->vocab, r->merges};
    size_t from = 0, made = 0;
    char *text = pl_alloc(bytes + 3 * 4 + 1, 1);
    if (!text) return no_memory(r);
    for (int done = 0; done < 3; done++) {
        int next = -1;
        for (int i = 0; i < 3; i++)
            if (cut[i].end && (next < 0 || cut[i].begin < cut[next].begin)) next = i;
        if (next < 0) break;
        made = append(text, made, r->text + from, cut[next].begin - from);
        made = append(text, made, "null", 4);
        from = cut[next].end;
        cut[next].end = 0;
    }
    made = append(text, made, r->text + from, bytes - from);
    pl_status status = parse_tree(r, text, made, root);
    pl_free(text);
    return status;
}

static bool is_list(const reader *r, span s) { return s.end && r->text[s.begin] == '['; }
static bool is_null(const reader *r, span s) { return !s.end || r->text[s.begin] == 'n'; }

static int absent(const json_t *value) { return !value || json_is_null(value); }

/* A key that must be absent, null, false or "" because anything else changes ids in a way that is not supported. */
static pl_status refuse_unless_neutral(const reader *r, const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);
    if (absent(v) || json_is_false(v) || (json_is_string(v) && json_string_length(v) == 0)) return PL_OK;
    if (json_is_number(v) && json_number_value(v) == 0) return PL_OK;
    return BAD("%s: \"%s\" is set, which is not supported; null was expected", r->name, key);
}

static pl_status read_bool(const reader *r, const json_t *object, const char *key, int otherwise, int *value)
{
    return pl_tokenizer_read_bool(r->name, object, key, otherwise, value, r->err);
}

static const char *type_of(const json_t *object)
{
    const char *type = json_string_value(json_object_get(object, "type"));
    return type ? type : "(without a type)";
}

/* ---- vocabulary ---- */

/* The next member: its text, of RAW_TOKEN_MAX bytes and a zero, and its id. */
static pl_status next_token(const reader *r, pl_json_scan *s, char *text, size_t *bytes, uint32_t *id)
{
    int64_t n;
    PL_TRY(pl_json_scan_key(s, text, RAW_TOKEN_MAX, bytes, r->err));
    text[*bytes] = 0;
    PL_TRY(pl_json_scan_count(s, &n, r->err));
    if (n < 0 || n >= PL_VOCAB_MAX)
        return BAD("%s: the id of \"%.60s\" must be a whole number below %d", r->name, text, PL_VOCAB_MAX);
    *id = (uint32_t)n;
    return PL_OK;
}

/* How many tokens there are, and their largest id. */
static pl_status count_vocab(reader *r)
{
    pl_json_scan s = scan_of(r, r->vocab);
    char text[RAW_TOKEN_MAX + 1];
    size_t bytes;
    uint32_t id = 0;
    bool more;
    PL_TRY(pl_json_scan_enter(&s, '{', r->err));
    for (bool first = true;; first = false) {
        PL_TRY(pl_json_scan_next(&s, '{', first, &more, r->err));
        if (!more) return PL_OK;
        PL_TRY(next_token(r, &s, text, &bytes, &id));
        if (id >= r->count) r->count = id + 1;
        if (++r->vocab_count > PL_VOCAB_MAX) return BAD("%s: more than %d tokens", r->name, PL_VOCAB_MAX);
    }
}

static uint32_t *raw_place(const reader *r, const void *text, size_t bytes)
{
    return pl_vocab_place(r->entry, r->slot, r->slot_mask, text, bytes);
}

static uint32_t find_raw(const reader *r, const void *text, size_t bytes)
{
    const uint32_t found = *raw_place(r, text, bytes);
    return found ? found - 1 : PL_TOKEN_NONE;
}

static pl_status add_token(reader *r, const char *text, size_t bytes, uint32_t id)
{
    uint32_t *slot = raw_place(r, text, bytes);
    if (bytes == 0) return BAD("%s: the token with id %u is empty", r->name, id);
    if (*slot) return BAD("%s: the token \"%.60s\" is in the vocabulary twice", r->name, text);
    if (r->entry[id].text)
        return BAD("%s: the id %u belongs both to \"%.60s\" and to another token", r->name, id, text);
    uint8_t *copy = r->texts + r->texts_bytes + 1;
    memcpy(copy, text, bytes);
    r->texts_bytes += bytes + 1;
    r->entry[id] = (pl_vocab_entry){.text = copy, .bytes = (uint32_t)bytes, .in_model = 1};
    *slot = id + 1;
    return PL_OK;
}

static pl_status read_vocab(reader *r)
{
    pl_json_scan s = scan_of(r, r->vocab);
    char text[RAW_TOKEN_MAX + 1];
    size_t bytes;
    uint32_t id = 0;
    bool more;
    PL_TRY(pl_json_scan_enter(&s, '{', r->err));
    for (bool first = true;; first = false) {
        PL_TRY(pl_json_scan_next(&s, '{', first, &more, r->err));
        if (!more) return PL_OK;
        PL_TRY(next_token(r, &s, text, &bytes, &id));
        PL_TRY(add_token(r, text, bytes, id));
    }
}

/* ---- added tokens ---- */

static pl_status count_list(const reader *r, span list, uint32_t most, const char *what, uint32_t *count)
{
    pl_json_scan s = scan_of(r, list);
    bool more;
    PL_TRY(pl_json_scan_enter(&s, '[', r->err));
    for (*count = 0;; ++*count) {
        PL_TRY(pl_json_scan_next(&s, '[', *count == 0, &more, r->err));
        if (!more) return PL_OK;
        if (*count == most) return BAD("%s: more than %u %s are not supported", r->name, most, what);
        PL_TRY(pl_json_scan_skip(&s, r->err));
    }
}

/* As in Hugging Face's library, whatever `id` the file gives: the vocabulary's when the token is in it, otherwise the
 * next one after the vocabulary. */
static pl_status added_id(reader *r, const json_t *item, const char *text, size_t length, uint32_t *id)
{
    const json_t *given = json_object_get(item, "id");
    const json_int_t n = json_is_integer(given) ? json_integer_value(given) : -1;
    if (n < 0 || n >= PL_VOCAB_MAX)
        return BAD("%s: the id of \"%.60s\" must be a whole number below %d", r->name, text, PL_VOCAB_MAX);
    *id = find_raw(r, text, length);
    if (*id != PL_TOKEN_NONE) {
        if (r->entry[*id].is_added) return BAD("%s: two added tokens have the id %u", r->name, *id);
        return PL_OK;
    }
    if (r->next_added >= PL_VOCAB_MAX) return BAD("%s: more than %d tokens", r->name, PL_VOCAB_MAX);
    *id = r->next_added++;
    if (r->entry[*id].text)
        return BAD("%s: the id %u belongs both to \"%.60s\" and to another token", r->name, *id, text);
    return PL_OK;
}

/* An added token's text stands for itself, not for bytes in the alphabet. */
static pl_status read_added_token(reader *r, const json_t *item)
{
    uint32_t id = 0;
    const json_t *content = json_object_get(item, "content");
    const char *text = json_string_value(content);
    size_t length = json_string_length(content);
    if (!text || length == 0 || length > PL_TOKEN_BYTES_MAX)
        return BAD("%s: an added token needs \"content\" of 1 to %d bytes", r->name, PL_TOKEN_BYTES_MAX);
    PL_TRY(refuse_unless_neutral(r, item, "single_word"));
    PL_TRY(added_id(r, item, text, length, &id));
    pl_added_token *a = &r->added[r->parts.added_count++];
    *a = (pl_added_token){.id = id, .bytes = (uint32_t)length, .in_model = r->entry[id].text != NULL};
    PL_TRY(read_bool(r, item, "special", 0, &a->special));
    PL_TRY(read_bool(r, item, "normalized", !a->special, &a->normalized));
    PL_TRY(read_bool(r, item, "lstrip", 0, &a->strips_left));
    PL_TRY(read_bool(r, item, "rstrip", 0, &a->strips_right));
    uint8_t normal[PL_NORMAL_MAX];
    const size_t n = pl_pipeline_normalize(&r->parts.pipeline, (const uint8_t *)text, length, normal);
    if (a->normalized && (n != length || memcmp(normal, text, n) != 0)) {
        if (n > PL_TOKEN_BYTES_MAX) return BAD("%s: the normal form of \"%.60s\" is too long", r->name, text);
        a->wanted = memcpy(r->normal + r->normal_bytes, normal, n);
        a->wanted_bytes = (uint32_t)n;
        r->normal_bytes += n;
    }
    if (id >= r->count) r->count = id + 1;
    if (!a->in_model) { /* its text goes behind those of the model */
        uint8_t *copy = r->texts + r->texts_bytes;
        r->entry[id].text = memcpy(copy, text, length);
        r->entry[id].bytes = (uint32_t)length;
        r->texts_bytes += length;
    }
    r->entry[id].is_added = 1;
    return PL_OK;
}

static pl_status read_added(reader *r)
{
    pl_json_scan s = scan_of(r, r->added_tokens);
    bool more;
    r->next_added = r->vocab_count;
    PL_TRY(pl_json_scan_enter(&s, '[', r->err));
    for (bool first = true;; first = false) {
        json_t *item = NULL;
        PL_TRY(pl_json_scan_next(&s, '[', first, &more, r->err));
        if (!more) return PL_OK;
        pl_json_scan_peek(&s);
        const size_t begin = s.at;
        PL_TRY(pl_json_scan_skip(&s, r->err));
        if (s.at - begin > PL_ADDED_TEXT_MAX)
            return BAD("%s: an added token of %zu bytes is not supported", r->name, s.at - begin);
        PL_TRY(parse_tree(r, r->text + begin, s.at - begin, &item));
        pl_status status = read_added_token(r, item);
        json_decref(item);
        PL_TRY(status);
    }
}

/* ---- all tokens ---- */

static pl_status make_tables(reader *r)
{
    uint32_t largest = r->count > r->vocab_count + r->added_room ? r->count : r->vocab_count + r->added_room;
    const size_t added_bytes = r->added_tokens.end - r->added_tokens.begin;
    r->room = largest + 1;
    r->slot_mask = pl_table_size(r->vocab_count) - 1;
    r->entry = pl_alloc(r->room, sizeof *r->entry);
    r->slot = pl_alloc((size_t)r->slot_mask + 1, sizeof *r->slot);
    r->texts = pl_alloc(r->vocab.end - r->vocab.begin + added_bytes + 1, 1);
    r->added = pl_alloc((size_t)r->added_room + 1, sizeof *r->added);
    r->normal = pl_alloc(PL_NFC_BYTES_GROW * added_bytes + r->added_room + 1, 1);
    return r->entry && r->slot && r->texts && r->added && r->normal ? PL_OK : no_memory(r);
}

static pl_status read_tokens(reader *r)
{
    if (!is_null(r, r->added_tokens) && !is_list(r, r->added_tokens))
        return BAD("%s: \"added_tokens\" must be a list", r->name);
    PL_TRY(count_vocab(r));
    if (is_list(r, r->added_tokens))
        PL_TRY(count_list(r, r->added_tokens, PL_ADDED_MAX, "added tokens", &r->added_room));
    PL_TRY(make_tables(r));
    PL_TRY(read_vocab(r));
    if (is_list(r, r->added_tokens)) PL_TRY(read_added(r));
    r->parts.added = r->added;
    return r->count ? PL_OK : BAD("%s: the vocabulary is empty", r->name);
}

/* A token's text in GPT-2's alphabet -> its bytes, in the same place. */
static pl_status alphabet_bytes(const reader *r, pl_vocab_entry *e)
{
    uint32_t other;
    const int64_t made = pl_alphabet_decode(e->text, e->bytes, (uint8_t *)(uintptr_t)e->text, &other);
    if (made >= 0) {
        e->bytes = (uint32_t)made;
        return PL_OK;
    }
    return BAD("%s: the token with id %td has the character U+%04X, which is not in the byte-level alphabet", r->name,
               e - r->entry, other);
}

/* The text of the model's token -> what it stands for in a text. */
static pl_status convert(const reader *r, pl_tokenizer_kind kind, pl_vocab_entry *e)
{
    uint8_t *text = (uint8_t *)(uintptr_t)e->text;
    if (kind == PL_TOKENIZER_WORDS) {
        e->text = text - 1, e->bytes++;
        text[-1] = ' ';
    } else if (r->parts.pipeline.is_bytes) {
        return alphabet_bytes(r, e);
    } else if (r->parts.pipeline.has_blanks) {
        e->in_model = !memchr(text, ' ', e->bytes); /* no normal form has one: such a token stays as it is */
        if (e->in_model) e->bytes = (uint32_t)pl_fold_blanks(text, e->bytes, text);
    }
    return PL_OK;
}

static pl_status begin_tokenizer(reader *r, pl_tokenizer_kind kind, pl_tokenizer **out)
{
    for (uint32_t id = 0; id < r->count; id++) {
        pl_vocab_entry *e = &r->entry[id];
        if (e->text && !e->is_added) PL_TRY(convert(r, kind, e));
        if (e->bytes > PL_TOKEN_BYTES_MAX)
            return BAD("%s: the token with id %u is longer than %d bytes", r->name, id, PL_TOKEN_BYTES_MAX);
    }
    pl_status status = pl_tokenizer_begin(kind, r->entry, r->count, out, r->err);
    return status == PL_OK ? PL_OK : pl_fail_prefix(r->err, status, "%s", r->name);
}

/* ---- merges ---- */

static pl_status find_part(const reader *r, size_t number, const char *text, size_t length, uint32_t *id)
{
    *id = length ? find_raw(r, text, length) : PL_TOKEN_NONE;
    if (*id != PL_TOKEN_NONE) return PL_OK;
    return BAD("%s: merge %zu: \"%.*s\" is not in the vocabulary", r->name, number, length > 60 ? 60 : (int)length,
               text);
}

enum { MERGE_TEXT_MAX = 2 * RAW_TOKEN_MAX + 1 };

/* "left right" or ["left", "right"]: both in a row, and how long the first one is. */
static pl_status next_merge(const reader *r, pl_json_scan *s, size_t number, char *text, size_t length[2])
{
    bool more = false, good = true;
    const char opens = pl_json_scan_peek(s);
    length[0] = length[1] = 0;
    if (opens == '[') {
        PL_TRY(pl_json_scan_enter(s, '[', r->err));
        for (size_t i = 0; good && i < 2; i++) {
            PL_TRY(pl_json_scan_next(s, '[', i == 0, &more, r->err));
            good = more && pl_json_scan_peek(s) == '"';
            if (good) PL_TRY(pl_json_scan_string(s, text + (i ? length[0] : 0), RAW_TOKEN_MAX, &length[i], r->err));
        }
        if (good) PL_TRY(pl_json_scan_next(s, '[', false, &more, r->err));
        good = good && !more;
    } else if ((good = opens == '"')) {
        PL_TRY(pl_json_scan_string(s, text, MERGE_TEXT_MAX, &length[1], r->err));
        char *blank = memchr(text, ' ', length[1]);
        good = blank && !memchr(blank + 1, ' ', length[1] - (size_t)(blank + 1 - text));
        if (good) {
            length[0] = (size_t)(blank - text);
            length[1] -= length[0] + 1;
            memmove(blank, blank + 1, length[1]);
        }
    }
    if (good) return PL_OK;
    return BAD("%s: merge %zu is not of the form \"left right\" or [\"left\", \"right\"]", r->name, number);
}

static pl_status read_merge(const reader *r, pl_json_scan *s, size_t number, pl_merge *m)
{
    char text[MERGE_TEXT_MAX];
    size_t length[2];
    PL_TRY(next_merge(r, s, number, text, length));
    PL_TRY(find_part(r, number, text, length[0], &m->left));
    PL_TRY(find_part(r, number, text + length[0], length[1], &m->right));
    m->id = find_raw(r, text, length[0] + length[1]);
    if (m->id != PL_TOKEN_NONE) return PL_OK;
    return BAD("%s: merge %zu makes a token that is not in the vocabulary", r->name, number);
}

static pl_status read_merges(reader *r)
{
    pl_json_scan s = scan_of(r, r->merges);
    uint32_t count;
    bool more;
    PL_TRY(count_list(r, r->merges, PL_MERGES_MAX, "merges", &count));
    r->parts.merge = r->merge = pl_alloc(count, sizeof *r->merge);
    if (!r->merge) return no_memory(r);
    PL_TRY(pl_json_scan_enter(&s, '[', r->err));
    for (; r->parts.merge_count < count; r->parts.merge_count++) {
        const uint32_t n = r->parts.merge_count;
        PL_TRY(pl_json_scan_next(&s, '[', n == 0, &more, r->err));
        PL_TRY(read_merge(r, &s, n, &r->merge[n]));
    }
    return PL_OK;
}

/* ---- the models ---- */

static pl_status find_unknown(reader *r, const json_t *model)
{
    const json_t *token = json_object_get(model, "unk_token");
    r->parts.unknown = PL_TOKEN_NONE;
    if (absent(token)) return PL_OK;
    if (json_is_string(token)) r->parts.unknown = find_raw(r, json_string_value(token), json_string_length(token));
    if (r->parts.unknown == PL_TOKEN_NONE) return BAD("%s: the unk_token is not in the vocabulary", r->name);
    return PL_OK;
}

static pl_status read_bpe_options(reader *r, const json_t *model)
{
    static const char *const neutral[] = {"dropout", "continuing_subword_prefix", "end_of_word_suffix"};
    for (size_t i = 0; i < sizeof neutral / sizeof *neutral; i++) PL_TRY(refuse_unless_neutral(r, model, neutral[i]));
    PL_TRY(read_bool(r, model, "fuse_unk", 0, &r->parts.fuse_unknown));
    PL_TRY(read_bool(r, model, "ignore_merges", 0, &r->parts.ignore_merges));
    PL_TRY(read_bool(r, model, "byte_fallback", 0, &r->parts.pipeline.byte_fallback));
    if (r->parts.pipeline.byte_fallback && r->parts.pipeline.is_bytes)
        return BAD("%s: \"byte_fallback\" is set, which is not supported with ByteLevel; false was expected", r->name);
    return PL_OK;
}

/* What encoding takes for granted. */
static pl_status check_ids(const reader *r, const pl_tokenizer *t)
{
    const pl_pipeline *p = &r->parts.pipeline;
    if (p->has_blanks && pl_tokenizer_find(t, (const uint8_t *)" ", 1) == PL_TOKEN_NONE)
        return BAD("%s: the vocabulary lacks U+2581, which stands for blanks", r->name);
    for (uint32_t i = 0; i < p->before_count + p->after_count; i++)
        if ((i < p->before_count ? p->before[i] : p->after[i - p->before_count]) >= r->count)
            return BAD("%s: an id in the post_processor is not in the vocabulary", r->name);
    return PL_OK;
}

static pl_status read_bpe(reader *r, const json_t *root, const json_t *model, pl_tokenizer **out)
{
    static const char *const unsupported[] = {"truncation", "padding"};
    if (!r->vocab.end || r->text[r->vocab.begin] != '{' || !is_list(r, r->merges))
        return BAD("%s: the model needs an object \"vocab\" and a list \"merges\"", r->name);
    for (size_t i = 0; i < 2; i++) PL_TRY(refuse_unless_neutral(r, root, unsupported[i]));
    PL_TRY(pl_pipeline_read(r->name, root, &r->parts.pipeline, r->err));
    PL_TRY(read_bpe_options(r, model));
    PL_TRY(read_tokens(r));
    PL_TRY(find_unknown(r, model));
    PL_TRY(read_merges(r));
    PL_TRY(begin_tokenizer(r, PL_TOKENIZER_BPE, out));
    PL_TRY(check_ids(r, *out));
    return pl_tokenizer_finish_bpe(*out, &r->parts, r->err);
}

/* ---- words ---- */

static pl_status check_words_pipeline(const reader *r, const json_t *root, int *lower)
{
    static const char *const unsupported[] = {"truncation", "padding", "post_processor", "decoder"};
    for (size_t i = 0; i < sizeof unsupported / sizeof *unsupported; i++)
        PL_TRY(refuse_unless_neutral(r, root, unsupported[i]));
    const json_t *normalizer = json_object_get(root, "normalizer"), *pre = json_object_get(root, "pre_tokenizer");
    *lower = !absent(normalizer) && strcmp(type_of(normalizer), "Lowercase") == 0;
    if (!absent(normalizer) && !*lower)
        return BAD("%s: the normalizer %s is not supported with WordLevel; Lowercase or null was expected", r->name,
                   type_of(normalizer));
    if (absent(pre) || strcmp(type_of(pre), "WhitespaceSplit") != 0)
        return BAD("%s: the pre_tokenizer %s is not supported with WordLevel; WhitespaceSplit was expected", r->name,
                   absent(pre) ? "null" : type_of(pre));
    for (uint32_t i = 0; *lower && i < r->parts.added_count; i++)
        if (r->added[i].normalized)
            return BAD("%s: the added token with id %u is looked for in lower case, which is not supported; "
                       "\"normalized\": false was expected",
                       r->name, r->added[i].id);
    return PL_OK;
}

static pl_status read_words(reader *r, const json_t *root, const json_t *model, pl_tokenizer **out)
{
    pl_word_parts parts = {0};
    if (!r->vocab.end || r->text[r->vocab.begin] != '{')
        return BAD("%s: the model WordLevel needs an object \"vocab\"", r->name);
    PL_TRY(read_tokens(r));
    PL_TRY(check_words_pipeline(r, root, &parts.lower));
    PL_TRY(find_unknown(r, model));
    if (r->parts.unknown == PL_TOKEN_NONE)
        return BAD("%s: the model WordLevel needs an \"unk_token\" for words that it does not know", r->name);
    PL_TRY(begin_tokenizer(r, PL_TOKENIZER_WORDS, out));
    parts.added = r->parts.added, parts.added_count = r->parts.added_count, parts.unknown = r->parts.unknown;
    return pl_tokenizer_finish_words(*out, &parts, r->err);
}

static pl_status read_chars(reader *r, const json_t *model, pl_tokenizer **out)
{
    const json_t *list = json_object_get(model, "code_points"), *item;
    size_t i, count = json_array_size(list);
    pl_status status = PL_OK;
    if (!json_is_array(list)) return BAD("%s: the model PlimsollChars needs a list \"code_points\"", r->name);
    uint32_t *code_point = pl_alloc(count, sizeof *code_point);
    if (!code_point) return no_memory(r);
    json_array_foreach(list, i, item)
    {
        json_int_t c = json_is_integer(item) ? json_integer_value(item) : -1;
        if (c < 0 || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) || (i && (uint32_t)c <= code_point[i - 1])) {
            status = BAD("%s: code_points[%zu] must be a code point larger than the one before", r->name, i);
            break;
        }
        code_point[i] = (uint32_t)c;
    }
    if (status == PL_OK) status = pl_tokenizer_create_chars(code_point, count, out, r->err);
    pl_free(code_point);
    return status;
}

static pl_status read_model(reader *r, const json_t *root, pl_tokenizer **out)
{
    const json_t *model = json_object_get(root, "model");
    const char *type = json_is_object(model) ? json_string_value(json_object_get(model, "type")) : NULL;
    if (!json_is_object(model)) return BAD("%s: is not a tokenizer: an object \"model\" was expected", r->name);
    if (type && strcmp(type, "PlimsollBytes") == 0) return pl_tokenizer_create_bytes(out, r->err);
    if (type && strcmp(type, "PlimsollChars") == 0) return read_chars(r, model, out);
    if (type && strcmp(type, "WordLevel") == 0) return read_words(r, root, model, out);
    if (type && strcmp(type, "BPE") != 0)
        return BAD("%s: the model %.60s is not supported; byte-level BPE or WordLevel was expected (or PlimsollBytes, "
                   "PlimsollChars)",
                   r->name, type);
    return read_bpe(r, root, model, out);
}

pl_status pl_tokenizer_parse(const char *name, const char *json, size_t bytes, pl_tokenizer **out, pl_error *err)
{
    json_t *root = NULL;
    reader the_reader = {.name = name, .text = json, .err = err}, *r = &the_reader;
    *out = NULL;
    if (bytes > PL_TOKENIZER_FILE_MAX)
        return BAD("%s: has %zu bytes; a tokenizer of at most %d was expected", name, bytes, PL_TOKENIZER_FILE_MAX);
    pl_status status = find_parts(r, bytes);
    if (status == PL_OK) status = read_skeleton(r, bytes, &root);
    if (status == PL_OK) status = read_model(r, root, out);
    if (status != PL_OK) pl_tokenizer_destroy(*out), *out = NULL;
    json_decref(root);
    pl_free(r->entry), pl_free(r->texts), pl_free(r->slot), pl_free(r->added), pl_free(r->normal), pl_free(r->merge);
    return status;
}
