/* tokenizer_config.json, of which only a few keys matter here; it may hold a description of thousands of added tokens,
 * which are passed over. */
#include <string.h>

#include "base/json_scan.h"
#include "data/text/alphabet.h"
#include "data/text/tokenizer_impl.h"

enum { KEY_MAX = 1024 };

typedef struct reader {
    pl_tokenizer *t;
    pl_json_scan scan;
    pl_error *err;
    int adds[2]; /* bos, eos: false only where the file says so */
} reader;

static bool is_key(const char *key, size_t bytes, const char *name)
{
    return bytes == strlen(name) && memcmp(key, name, bytes) == 0;
}

/* The token with this text in a file, or PL_TOKEN_NONE. */
static uint32_t find_text(const pl_tokenizer *t, const char *text, size_t bytes)
{
    uint8_t converted[PL_TOKEN_BYTES_MAX];
    uint32_t other;
    for (uint32_t i = 0; i < t->added_count; i++) {
        const pl_added_token *a = &t->added[i];
        if (a->bytes == bytes && memcmp(t->text + t->offset[a->id], text, bytes) == 0) return a->id;
    }
    if (!bytes) return PL_TOKEN_NONE;
    const int64_t made = t->pipeline.is_bytes ? pl_alphabet_decode((const uint8_t *)text, bytes, converted, &other)
                                              : (int64_t)pl_fold_blanks((const uint8_t *)text, bytes, converted);
    return made > 0 ? pl_tokenizer_find(t, converted, (size_t)made) : PL_TOKEN_NONE;
}

/* "text", {"content": "text", …} or null. */
static pl_status read_token(reader *r, pl_special which)
{
    char text[PL_TOKEN_BYTES_MAX], key[KEY_MAX];
    size_t bytes = 0, n;
    bool more = true;
    const char opens = pl_json_scan_peek(&r->scan);
    if (opens == '"') {
        PL_TRY(pl_json_scan_string(&r->scan, text, sizeof text, &bytes, r->err));
    } else if (opens == '{') {
        PL_TRY(pl_json_scan_enter(&r->scan, '{', r->err));
        for (bool first = true;; first = false) {
            PL_TRY(pl_json_scan_next(&r->scan, '{', first, &more, r->err));
            if (!more) break;
            PL_TRY(pl_json_scan_key(&r->scan, key, sizeof key, &n, r->err));
            if (is_key(key, n, "content") && pl_json_scan_peek(&r->scan) == '"')
                PL_TRY(pl_json_scan_string(&r->scan, text, sizeof text, &bytes, r->err));
            else
                PL_TRY(pl_json_scan_skip(&r->scan, r->err));
        }
    } else {
        return pl_json_scan_skip(&r->scan, r->err);
    }
    r->t->special_id[which] = find_text(r->t, text, bytes);
    return PL_OK;
}

static pl_status read_member(reader *r, const char *key, size_t bytes)
{
    static const char *const tokens[] = {"bos_token", "eos_token", "unk_token", "pad_token"};
    static const char *const adds[] = {"add_bos_token", "add_eos_token"};
    for (int i = 0; i < 4; i++)
        if (is_key(key, bytes, tokens[i])) return read_token(r, (pl_special)i);
    for (int i = 0; i < 2; i++)
        if (is_key(key, bytes, adds[i])) r->adds[i] = pl_json_scan_peek(&r->scan) != 'f';
    return pl_json_scan_skip(&r->scan, r->err);
}

static void leave_out(uint32_t *ids, uint32_t *count, uint32_t id)
{
    uint32_t made = 0;
    for (uint32_t i = 0; i < *count; i++)
        if (ids[i] != id) ids[made++] = ids[i];
    memset(ids + made, 0, (*count - made) * sizeof *ids);
    *count = made;
}

pl_status pl_tokenizer_read_config(pl_tokenizer *t, const char *name, const char *json, size_t bytes, pl_error *err)
{
    reader r = {.t = t, .scan = {.name = name, .text = json, .bytes = bytes}, .err = err, .adds = {1, 1}};
    char key[KEY_MAX];
    size_t n;
    bool more;
    PL_TRY(pl_json_scan_enter(&r.scan, '{', err));
    for (bool first = true;; first = false) {
        PL_TRY(pl_json_scan_next(&r.scan, '{', first, &more, err));
        if (!more) break;
        PL_TRY(pl_json_scan_key(&r.scan, key, sizeof key, &n, err));
        PL_TRY(read_member(&r, key, n));
    }
    PL_TRY(pl_json_scan_end(&r.scan, err));
    pl_pipeline *p = &t->pipeline;
    if (!r.adds[0]) leave_out(p->before, &p->before_count, t->special_id[PL_SPECIAL_BOS]);
    if (!r.adds[1]) leave_out(p->after, &p->after_count, t->special_id[PL_SPECIAL_EOS]);
    pl_tokenizer_hash_again(t);
    return PL_OK;
}
