/* Reading tokenizer.json: byte-level BPE and WordLevel as Hugging Face's library writes them, and the two kinds of our
 * own. Whatever would give ids other than that library's is refused, naming what is supported, and never ignored.
 *
 * jansson builds a tree, so what a small hostile file could turn it into is bounded beforehand: every value costs at
 * most VALUE_BYTES of tree, and values are counted by the characters that separate them. */
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json_read.h"
#include "data/text/alphabet.h"
#include "data/text/tokenizer_impl.h"
#include "data/text/unicode.h"

enum { VALUE_BYTES = 160 };

typedef struct reader {
    const char *name;
    pl_error *err;
    pl_pool *pool; /* token texts and other scratch */
    pl_vocab_entry *entry;
    uint32_t vocab;
    pl_added_token *added;
    uint32_t next_added; /* the id of the next added token that the model's vocabulary lacks */
    pl_bpe_parts parts;
    pl_merge *merge;
} reader;

static pl_status no_memory(const reader *r)
{
    return pl_fail(r->err, PL_E_NOMEM, "%s: no memory for reading the tokenizer", r->name);
}

#define BAD(...) pl_fail(r->err, PL_E_DATA, __VA_ARGS__)

/* ---- the tree ---- */

/* Values and strings seen so far in a text that comes in parts. */
typedef struct tree_size {
    uint64_t values, bytes;
    int in_string, escaped;
} tree_size;

static void count_tree(tree_size *t, const char *json, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        char c = json[i];
        if (t->escaped)
            t->escaped = 0;
        else if (t->in_string && c == '\\')
            t->escaped = 1;
        else if (c == '"')
            t->in_string = !t->in_string;
        else if (!t->in_string)
            t->values += c == ',' || c == ':' || c == '[' || c == '{';
    }
    t->bytes += bytes;
}

static uint64_t tree_bytes(const tree_size *t) { return (t->values + 1) * VALUE_BYTES + 2 * t->bytes; }

static pl_status check_tree_size(const char *name, const char *json, size_t bytes, pl_error *err)
{
    tree_size t = {0};
    if (bytes > PL_TOKENIZER_FILE_MAX)
        return pl_fail(err, PL_E_DATA, "%s: has %zu bytes; a tokenizer of at most %d was expected", name, bytes,
                       PL_TOKENIZER_FILE_MAX);
    count_tree(&t, json, bytes);
    if (tree_bytes(&t) > PL_TOKENIZER_TREE_MAX)
        return pl_fail(err, PL_E_DATA, "%s: has about %llu values, more than a tokenizer that is read within %d MB",
                       name, (unsigned long long)t.values, PL_TOKENIZER_TREE_MAX / 1000000);
    return PL_OK;
}

static pl_status parse_tree(const char *name, const char *json, size_t bytes, json_t **root, pl_error *err)
{
    json_error_t where;
    PL_TRY(check_tree_size(name, json, bytes, err));
    pl_status status = pl_json_read(json, bytes, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, root, &where);
    if (status == PL_OK) return PL_OK;
    if (status == PL_E_NOMEM) return pl_fail(err, status, "%s: no memory to read it", name);
    return pl_fail(err, status, "%s:%d:%d: is not valid JSON: %s", name, where.line, where.column, where.text);
}

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
    const json_t *v = json_object_get(object, key);
    *value = absent(v) ? otherwise : json_is_true(v);
    if (absent(v) || json_is_boolean(v)) return PL_OK;
    return BAD("%s: \"%s\" must be true or false", r->name, key);
}

static const char *type_of(const json_t *object)
{
    const char *type = json_string_value(json_object_get(object, "type"));
    return type ? type : "(without a type)";
}

/* ---- the pipeline around the model ---- */

static pl_status check_pipeline(reader *r, const json_t *root)
{
    static const char *const unsupported[] = {"truncation", "padding"};
    int use_regex;
    for (size_t i = 0; i < 2; i++) PL_TRY(refuse_unless_neutral(r, root, unsupported[i]));
    const json_t *normalizer = json_object_get(root, "normalizer"), *pre = json_object_get(root, "pre_tokenizer");
    const json_t *post = json_object_get(root, "post_processor"), *decoder = json_object_get(root, "decoder");
    if (!absent(normalizer))
        return BAD("%s: the normalizer %s is not supported; byte-level BPE without a normalizer (null) was expected",
                   r->name, type_of(normalizer));
    if (absent(pre) || strcmp(type_of(pre), "ByteLevel") != 0)
        return BAD("%s: the pre_tokenizer %s is not supported; ByteLevel was expected", r->name,
                   absent(pre) ? "null" : type_of(pre));
    PL_TRY(read_bool(r, pre, "use_regex", 1, &use_regex));
    PL_TRY(read_bool(r, pre, "add_prefix_space", 1, &r->parts.add_prefix_space));
    if (!use_regex)
        return BAD("%s: the pre_tokenizer ByteLevel with use_regex false is not supported; true was expected", r->name);
    if (!absent(post) && strcmp(type_of(post), "ByteLevel") != 0)
        return BAD("%s: the post_processor %s is not supported, since it adds tokens; ByteLevel or null was expected",
                   r->name, type_of(post));
    if (!absent(decoder) && strcmp(type_of(decoder), "ByteLevel") != 0)
        return BAD("%s: the decoder %s is not supported; ByteLevel or null was expected", r->name, type_of(decoder));
    return PL_OK;
}

/* ---- vocabulary ---- */

static pl_status read_id(const reader *r, const json_t *value, const char *of, uint32_t *id)
{
    json_int_t n = json_integer_value(value);
    if (!json_is_integer(value) || n < 0 || n >= PL_VOCAB_MAX)
        return BAD("%s: the id of \"%.60s\" must be a whole number below %d", r->name, of, PL_VOCAB_MAX);
    *id = (uint32_t)n;
    return PL_OK;
}

/* Token text in GPT-2's alphabet -> its bytes. */
static pl_status alphabet_bytes(const reader *r, const char *text, size_t length, uint8_t bytes[PL_TOKEN_BYTES_MAX],
                                uint32_t *count)
{
    *count = 0;
    for (size_t i = 0; i < length;) {
        uint32_t c;
        i += pl_utf8_read((const uint8_t *)text + i, length - i, &c); /* jansson has checked that it is UTF-8 */
        int byte = pl_alphabet_byte(c);
        if (byte < 0)
            return BAD("%s: the token \"%.60s\" has the character U+%04X, which is not in the byte-level alphabet",
                       r->name, text, c);
        if (*count == PL_TOKEN_BYTES_MAX)
            return BAD("%s: the token \"%.60s…\" is longer than %d bytes", r->name, text, PL_TOKEN_BYTES_MAX);
        bytes[(*count)++] = (uint8_t)byte;
    }
    return PL_OK;
}

/* As in Hugging Face's library, whatever `id` the file gives: the vocabulary's when the token is in it, otherwise the
 * next one after the vocabulary. */
static pl_status added_id(reader *r, const json_t *vocab, const json_t *item, uint32_t *id)
{
    const json_t *content = json_object_get(item, "content"), *in_vocab = NULL;
    const char *text = json_string_value(content);
    PL_TRY(read_id(r, json_object_get(item, "id"), text ? text : "an added token", id));
    if (text && strlen(text) == json_string_length(content)) in_vocab = json_object_get(vocab, text);
    if (in_vocab) return read_id(r, in_vocab, text, id);
    if (r->next_added >= PL_VOCAB_MAX) return BAD("%s: more than %d tokens", r->name, PL_VOCAB_MAX);
    *id = r->next_added++;
    return PL_OK;
}

/* Makes the list of entries, with room for all ids. */
static pl_status largest_id(reader *r, const json_t *vocab, const json_t *added)
{
    const char *text;
    json_t *value;
    size_t i;
    uint32_t id = 0, count = 0;
    json_object_foreach((json_t *)vocab, text, value)
    {
        PL_TRY(read_id(r, value, text, &id));
        if (id >= count) count = id + 1;
    }
    r->next_added = (uint32_t)json_object_size(vocab);
    json_array_foreach(added, i, value)
    {
        PL_TRY(added_id(r, vocab, value, &id));
        if (id >= count) count = id + 1;
    }
    if (count == 0) return BAD("%s: the vocabulary is empty", r->name);
    r->vocab = count;
    r->entry = pl_pool_alloc(r->pool, count, sizeof *r->entry);
    return r->entry ? PL_OK : no_memory(r);
}

/* Added tokens first: their texts stand for themselves, not for bytes in the alphabet. */
static pl_status read_added_token(reader *r, const json_t *vocab, const json_t *item)
{
    static const char *const neutral[] = {"single_word", "lstrip", "rstrip"};
    uint32_t id = 0;
    const json_t *content = json_object_get(item, "content");
    const char *text = json_string_value(content);
    size_t length = json_string_length(content);
    if (!text || length == 0 || length > PL_TOKEN_BYTES_MAX)
        return BAD("%s: an added token needs \"content\" of 1 to %d bytes", r->name, PL_TOKEN_BYTES_MAX);
    for (size_t i = 0; i < 3; i++) PL_TRY(refuse_unless_neutral(r, item, neutral[i]));
    PL_TRY(added_id(r, vocab, item, &id));
    if (r->entry[id].text) return BAD("%s: two added tokens have the id %u", r->name, id);
    pl_added_token *a = &r->added[r->parts.added_count++];
    *a = (pl_added_token){.id = id, .bytes = (uint32_t)length};
    PL_TRY(read_bool(r, item, "special", 0, &a->special));
    PL_TRY(read_bool(r, item, "normalized", !a->special, &a->normalized));
    r->entry[id] = (pl_vocab_entry){(const uint8_t *)text, (uint32_t)length, 0};
    return PL_OK;
}

static pl_status read_added(reader *r, const json_t *vocab, const json_t *added)
{
    size_t i;
    const json_t *item;
    if (json_array_size(added) > 4096) return BAD("%s: more than 4,096 added tokens are not supported", r->name);
    r->added = pl_pool_alloc(r->pool, json_array_size(added) + 1, sizeof *r->added);
    if (!r->added) return no_memory(r);
    r->next_added = (uint32_t)json_object_size(vocab);
    json_array_foreach(added, i, item) PL_TRY(read_added_token(r, vocab, item));
    r->parts.added = r->added;
    return PL_OK;
}

/* The model also lists (some of) the added tokens. */
static pl_status mark_in_model(reader *r, uint32_t id, const char *text, size_t length)
{
    if (r->entry[id].bytes != length || memcmp(r->entry[id].text, text, length) != 0)
        return BAD("%s: the id %u belongs both to \"%.60s\" and to another token", r->name, id, text);
    for (uint32_t i = 0; i < r->parts.added_count; i++)
        if (r->added[i].id == id) r->added[i].in_model = 1;
    r->entry[id].in_model = 1;
    return PL_OK;
}

static pl_status read_vocab_token(reader *r, const char *text, uint32_t id)
{
    uint8_t bytes[PL_TOKEN_BYTES_MAX];
    uint32_t count;
    size_t length = strlen(text);
    if (r->entry[id].text) return mark_in_model(r, id, text, length);
    PL_TRY(alphabet_bytes(r, text, length, bytes, &count));
    if (count == 0) return BAD("%s: the token with id %u is empty", r->name, id);
    const char *copy = pl_pool_strndup(r->pool, (const char *)bytes, count);
    r->entry[id] = (pl_vocab_entry){(const uint8_t *)copy, count, 1};
    return copy ? PL_OK : no_memory(r);
}

static pl_status read_vocab(reader *r, const json_t *vocab)
{
    const char *text;
    json_t *value;
    json_object_foreach((json_t *)vocab, text, value)
    {
        PL_TRY(read_vocab_token(r, text, (uint32_t)json_integer_value(value)));
    }
    return PL_OK;
}

/* ---- merges ---- */

static pl_status find_part(const reader *r, const pl_tokenizer *t, size_t number, const char *text, size_t length,
                           uint32_t *id)
{
    uint8_t bytes[PL_TOKEN_BYTES_MAX];
    uint32_t count;
    PL_TRY(alphabet_bytes(r, text, length, bytes, &count));
    *id = count ? pl_tokenizer_find(t, bytes, count) : PL_TOKEN_NONE;
    if (*id != PL_TOKEN_NONE) return PL_OK;
    return BAD("%s: merge %zu: \"%.*s\" is not in the vocabulary", r->name, number, length > 60 ? 60 : (int)length,
               text);
}

/* "left right" or ["left", "right"]. */
static pl_status split_merge(const reader *r, const json_t *item, size_t number, const char *part[2], size_t length[2])
{
    if (json_is_array(item) && json_array_size(item) == 2 && json_is_string(json_array_get(item, 0)) &&
        json_is_string(json_array_get(item, 1))) {
        for (size_t i = 0; i < 2; i++) {
            part[i] = json_string_value(json_array_get(item, i));
            length[i] = json_string_length(json_array_get(item, i));
        }
        return PL_OK;
    }
    const char *text = json_string_value(item), *blank = text ? strchr(text, ' ') : NULL;
    if (!blank || strchr(blank + 1, ' '))
        return BAD("%s: merge %zu is not of the form \"left right\" or [\"left\", \"right\"]", r->name, number);
    part[0] = text, length[0] = (size_t)(blank - text);
    part[1] = blank + 1, length[1] = json_string_length(item) - length[0] - 1;
    return PL_OK;
}

static pl_status find_joined(const reader *r, const pl_tokenizer *t, size_t number, pl_merge *m)
{
    size_t left, right;
    const uint8_t *a = pl_tokenizer_token(t, m->left, &left), *b = pl_tokenizer_token(t, m->right, &right);
    uint8_t joined[2 * PL_TOKEN_BYTES_MAX];
    memcpy(joined, a, left);
    memcpy(joined + left, b, right);
    m->id = pl_tokenizer_find(t, joined, left + right);
    if (m->id != PL_TOKEN_NONE) return PL_OK;
    return BAD("%s: merge %zu makes a token that is not in the vocabulary", r->name, number);
}

static pl_status read_merges(reader *r, const pl_tokenizer *t, const json_t *merges)
{
    size_t i;
    const json_t *item;
    r->merge = pl_pool_alloc(r->pool, json_array_size(merges) + 1, sizeof *r->merge);
    if (!r->merge) return no_memory(r);
    json_array_foreach(merges, i, item)
    {
        const char *part[2];
        size_t length[2];
        PL_TRY(split_merge(r, item, i, part, length));
        PL_TRY(find_part(r, t, i, part[0], length[0], &r->merge[i].left));
        PL_TRY(find_part(r, t, i, part[1], length[1], &r->merge[i].right));
        PL_TRY(find_joined(r, t, i, &r->merge[i]));
    }
    r->parts.merge = r->merge;
    r->parts.merge_count = (uint32_t)json_array_size(merges);
    return PL_OK;
}

/* ---- the models ---- */

static pl_status find_unknown(reader *r, const json_t *model, const json_t *vocab)
{
    const json_t *token = json_object_get(model, "unk_token");
    r->parts.unknown = PL_TOKEN_NONE;
    if (absent(token)) return PL_OK;
    const char *text = json_string_value(token);
    const json_t *id = text ? json_object_get(vocab, text) : NULL;
    if (!id) return BAD("%s: the unk_token is not in the vocabulary", r->name);
    return read_id(r, id, text, &r->parts.unknown);
}

static pl_status read_bpe_options(reader *r, const json_t *model, const json_t *vocab)
{
    static const char *const neutral[] = {"dropout", "continuing_subword_prefix", "end_of_word_suffix",
                                          "byte_fallback"};
    for (size_t i = 0; i < sizeof neutral / sizeof *neutral; i++) PL_TRY(refuse_unless_neutral(r, model, neutral[i]));
    PL_TRY(read_bool(r, model, "fuse_unk", 0, &r->parts.fuse_unknown));
    PL_TRY(read_bool(r, model, "ignore_merges", 0, &r->parts.ignore_merges));
    return find_unknown(r, model, vocab);
}

static pl_status read_bpe(reader *r, const json_t *root, const json_t *model, pl_tokenizer **out)
{
    const json_t *vocab = json_object_get(model, "vocab"), *merges = json_object_get(model, "merges");
    const json_t *added = json_object_get(root, "added_tokens");
    if (!json_is_object(vocab) || !json_is_array(merges))
        return BAD("%s: the model needs an object \"vocab\" and a list \"merges\"", r->name);
    if (!absent(added) && !json_is_array(added)) return BAD("%s: \"added_tokens\" must be a list", r->name);
    PL_TRY(check_pipeline(r, root));
    PL_TRY(read_bpe_options(r, model, vocab));
    PL_TRY(largest_id(r, vocab, added));
    PL_TRY(read_added(r, vocab, added));
    PL_TRY(read_vocab(r, vocab));
    pl_status status = pl_tokenizer_begin(PL_TOKENIZER_BPE, r->entry, r->vocab, out, r->err);
    if (status != PL_OK) return pl_fail_prefix(r->err, status, "%s", r->name);
    PL_TRY(read_merges(r, *out, merges));
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

static pl_status read_word(reader *r, const char *text, uint32_t id)
{
    const size_t length = strlen(text);
    if (r->entry[id].text) return mark_in_model(r, id, text, length);
    if (length == 0) return BAD("%s: the token with id %u is empty", r->name, id);
    if (length >= PL_TOKEN_BYTES_MAX)
        return BAD("%s: the token \"%.60s…\" is longer than %d bytes", r->name, text, PL_TOKEN_BYTES_MAX - 1);
    char *copy = pl_pool_alloc(r->pool, length + 1, 1);
    if (!copy) return no_memory(r);
    copy[0] = ' ';
    memcpy(copy + 1, text, length);
    r->entry[id] = (pl_vocab_entry){(const uint8_t *)copy, (uint32_t)length + 1, 1};
    return PL_OK;
}

static pl_status read_words(reader *r, const json_t *root, const json_t *model, pl_tokenizer **out)
{
    const json_t *vocab = json_object_get(model, "vocab"), *added = json_object_get(root, "added_tokens");
    const char *text;
    json_t *value;
    pl_word_parts parts = {0};
    if (!json_is_object(vocab)) return BAD("%s: the model WordLevel needs an object \"vocab\"", r->name);
    if (!absent(added) && !json_is_array(added)) return BAD("%s: \"added_tokens\" must be a list", r->name);
    PL_TRY(largest_id(r, vocab, added));
    PL_TRY(read_added(r, vocab, added));
    PL_TRY(check_words_pipeline(r, root, &parts.lower));
    json_object_foreach((json_t *)vocab, text, value) PL_TRY(read_word(r, text, (uint32_t)json_integer_value(value)));
    PL_TRY(find_unknown(r, model, vocab));
    if (r->parts.unknown == PL_TOKEN_NONE)
        return BAD("%s: the model WordLevel needs an \"unk_token\" for words that it does not know", r->name);
    pl_status status = pl_tokenizer_begin(PL_TOKENIZER_WORDS, r->entry, r->vocab, out, r->err);
    if (status != PL_OK) return pl_fail_prefix(r->err, status, "%s", r->name);
    parts.added = r->parts.added, parts.added_count = r->parts.added_count, parts.unknown = r->parts.unknown;
    return pl_tokenizer_finish_words(*out, &parts, r->err);
}

static pl_status read_chars(reader *r, const json_t *model, pl_tokenizer **out)
{
    const json_t *list = json_object_get(model, "code_points"), *item;
    size_t i, count = json_array_size(list);
    uint32_t *code_point = pl_pool_alloc(r->pool, count + 1, sizeof *code_point);
    if (!code_point) return no_memory(r);
    if (!json_is_array(list)) return BAD("%s: the model PlimsollChars needs a list \"code_points\"", r->name);
    json_array_foreach(list, i, item)
    {
        json_int_t c = json_is_integer(item) ? json_integer_value(item) : -1;
        if (c < 0 || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) || (i && (uint32_t)c <= code_point[i - 1]))
            return BAD("%s: code_points[%zu] must be a code point larger than the one before", r->name, i);
        code_point[i] = (uint32_t)c;
    }
    return pl_tokenizer_create_chars(code_point, count, out, r->err);
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
    reader r = {.name = name, .err = err, .pool = pl_pool_create()};
    *out = NULL;
    pl_status status = r.pool ? parse_tree(name, json, bytes, &root, err) : no_memory(&r);
    if (status == PL_OK) status = read_model(&r, root, out);
    if (status != PL_OK) pl_tokenizer_destroy(*out), *out = NULL;
    json_decref(root);
    pl_pool_destroy(r.pool);
    return status;
}

pl_status pl_tokenizer_load(const char *path, pl_tokenizer **out, pl_error *err)
{
    char *text;
    size_t bytes;
    *out = NULL;
    PL_TRY(pl_file_read_text(path, PL_TOKENIZER_FILE_MAX, &text, &bytes, err));
    pl_status status = pl_tokenizer_parse(path, text, bytes, out, err);
    pl_free(text);
    return status;
}

uint64_t pl_tokenizer_load_bytes(const char *path)
{
    char part[4096];
    tree_size t = {0};
    int fd;
    uint64_t size;
    if (pl_file_open(path, &fd, &size, NULL) != PL_OK) return 0;
    for (uint64_t at = 0; at < size && size <= PL_TOKENIZER_FILE_MAX; at += sizeof part) {
        size_t bytes = size - at < sizeof part ? (size_t)(size - at) : sizeof part;
        if (pl_file_read_at(fd, path, at, part, bytes, NULL) != PL_OK) break;
        count_tree(&t, part, bytes);
    }
    close(fd);
    /* Each id costs an entry, an offset and up to four slots; each value may be a merge, twice there, with four slots.
     */
    uint64_t by_id = PL_VOCAB_MAX * (sizeof(pl_vocab_entry) + 5 * sizeof(uint32_t));
    uint64_t by_value = (t.values + 1) * (2 * sizeof(pl_merge) + 4 * sizeof(uint32_t) + 16);
    return size + tree_bytes(&t) + by_id + by_value + 2 * size;
}
