/* Any bytes as text, through a tokenizer of each sort. The first byte chooses which one and how the text is cut into
 * portions, which must not matter. */
#include <stdlib.h>
#include <string.h>

#include "data/text/bpe_train.h"
#include "data/text/encoder.h"
#include "fuzz/fuzz.h"

enum { SORTS = 6 };

static pl_tokenizer *tokenizer[SORTS]; /* bytes, chars, bpe, and bpe with what the names below say */
enum { BYTES, CHARS, BPE, PREFIX, ADDED, WHOLE };

static const char training_text[] = "the theory of the other thing: it's there, there! 2026 12 12 \n\n\tabc abc "
                                    "\xc3\xbc\xc3\xbc \xe2\x82\xac\xe2\x82\xac the end <|endoftext|>";

static pl_tokenizer *train(void)
{
    pl_error err = {0};
    pl_tokenizer *t = NULL;
    pl_bpe_trainer *trainer;
    pl_bpe_options o = pl_bpe_options_default(290);
    FUZZ_CHECK(pl_bpe_trainer_create(&o, &trainer, &err) == PL_OK, "%s", err.text);
    pl_bpe_trainer_feed(trainer, training_text, sizeof training_text - 1);
    FUZZ_CHECK(pl_bpe_trainer_finish(trainer, &t, &err) == PL_OK, "%s", err.text);
    pl_bpe_trainer_destroy(trainer);
    return t;
}

/* The trained one with one text in its file replaced by another. */
static pl_tokenizer *variant(const char *old, const char *new)
{
    pl_error err = {0};
    pl_tokenizer *t;
    pl_str text = {0}, changed = {0};
    pl_tokenizer_print(tokenizer[BPE], &text);
    const char *at = strstr(pl_str_text(&text), old);
    FUZZ_CHECK(at, "no %s in a tokenizer.json", old);
    pl_str_append_bytes(&changed, text.data, (size_t)(at - text.data));
    pl_str_append(&changed, new);
    pl_str_append(&changed, at + strlen(old));
    FUZZ_CHECK(pl_tokenizer_parse("variant", pl_str_text(&changed), changed.bytes, &t, &err) == PL_OK, "%s", err.text);
    pl_str_deinit(&text);
    pl_str_deinit(&changed);
    return t;
}

static void make_tokenizers(void)
{
    static const uint32_t points[] = {'\n', ' ', 'a', 'b', 'e', 'h', 't', 0xfc, 0x20ac, 0x1f600};
    pl_error err = {0};
    FUZZ_CHECK(pl_tokenizer_create_bytes(&tokenizer[BYTES], &err) == PL_OK, "%s", err.text);
    FUZZ_CHECK(pl_tokenizer_create_chars(points, sizeof points / sizeof *points, &tokenizer[CHARS], &err) == PL_OK,
               "%s", err.text);
    tokenizer[BPE] = train();
    tokenizer[PREFIX] = variant("\"add_prefix_space\": false", "\"add_prefix_space\": true");
    tokenizer[ADDED] = variant("\"added_tokens\": [",
                               "\"added_tokens\": ["
                               "{\"id\": 0, \"content\": \"the\", \"special\": false, \"normalized\": true},"
                               "{\"id\": 0, \"content\": \"he \", \"special\": true, \"normalized\": false},"
                               "{\"id\": 0, \"content\": \"<|end\", \"special\": false, \"normalized\": true},");
    tokenizer[WHOLE] = variant("\"ignore_merges\": false", "\"ignore_merges\": true");
}

/* ---- what comes out ---- */

typedef struct id_list {
    uint32_t *ids;
    size_t count, room;
} id_list;

static pl_status collect(void *context, const uint32_t *ids, size_t count, pl_error *err)
{
    id_list *list = context;
    (void)err;
    FUZZ_CHECK(list->count + count <= list->room, "more ids than bytes");
    memcpy(list->ids + list->count, ids, count * sizeof *ids);
    list->count += count;
    return PL_OK;
}

/* The same text again, portion by portion. */
static void check_portions(const pl_tokenizer *t, const uint8_t *text, size_t bytes, size_t portion,
                           const uint32_t *expected, size_t count)
{
    pl_error err = {0};
    pl_encoder *encoder;
    id_list list = {.room = 2 * bytes + 2};
    list.ids = malloc(list.room * sizeof *list.ids);
    FUZZ_CHECK(list.ids && pl_encoder_create(t, collect, &list, &encoder, &err) == PL_OK, "no memory");
    for (size_t at = 0; at < bytes; at += portion)
        FUZZ_CHECK(pl_encoder_feed(encoder, text + at, bytes - at < portion ? bytes - at : portion, &err) == PL_OK,
                   "%s", err.text);
    FUZZ_CHECK(pl_encoder_finish(encoder, &err) == PL_OK, "%s", err.text);
    FUZZ_CHECK(list.count == count && (count == 0 || memcmp(list.ids, expected, count * sizeof *expected) == 0),
               "%zu ids at once, %zu or others in portions of %zu", count, list.count, portion);
    pl_encoder_destroy(encoder);
    free(list.ids);
}

/* Ids back to the text: exactly for what knows every byte, but for the blanks that a prefix adds. */
static void check_decoded(int sort, const uint8_t *text, size_t bytes, const uint32_t *ids, size_t count)
{
    const pl_tokenizer *t = tokenizer[sort];
    pl_decoder decoder = {0};
    size_t room = 0, at = 0;
    for (size_t i = 0; i < count; i++) {
        size_t n;
        FUZZ_CHECK(ids[i] < pl_tokenizer_vocab_size(t), "id %u of %u", ids[i], pl_tokenizer_vocab_size(t));
        (void)pl_tokenizer_token(t, ids[i], &n);
        room += n;
    }
    uint8_t *out = malloc(room + pl_tokenizer_longest_token(t) + 4);
    FUZZ_CHECK(out, "no memory");
    for (size_t i = 0; i < count; i++) at += pl_decoder_push(&decoder, t, ids[i], out + at);
    at += pl_decoder_finish(&decoder, out + at);
    FUZZ_CHECK(at == room, "%zu bytes were decoded of %zu", at, room);
    if (sort != CHARS && sort != PREFIX)
        FUZZ_CHECK(at == bytes && memcmp(out, text, bytes) == 0, "the text did not come back (%zu bytes, %zu)", bytes,
                   at);
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pl_error err = {0};
    uint32_t *ids;
    size_t count;
    if (!tokenizer[BYTES]) make_tokenizers();
    if (size == 0) return 0;
    uint64_t before = pl_alloc_live_blocks();
    int sort = data[0] % SORTS;
    FUZZ_CHECK(pl_encode(tokenizer[sort], data + 1, size - 1, &ids, &count, &err) == PL_OK, "%s", err.text);
    check_decoded(sort, data + 1, size - 1, ids, count);
    check_portions(tokenizer[sort], data + 1, size - 1, (size_t)data[0] / SORTS + 1, ids, count);
    pl_free(ids);
    FUZZ_CHECK(pl_alloc_live_blocks() == before, "blocks are held still");
    return 0;
}
