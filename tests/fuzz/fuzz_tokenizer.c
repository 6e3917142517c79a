/* A tokenizer.json. What is accepted is written, read again, and used on a text. */
#include <stdlib.h>
#include <string.h>

#include "data/text/encoder.h"
#include "fuzz/fuzz.h"

static pl_str print(const pl_tokenizer *t)
{
    pl_str out = {0};
    pl_tokenizer_print(t, &out);
    return out;
}

static void check_round_trip(const pl_tokenizer *t)
{
    pl_error err = {0};
    pl_tokenizer *again;
    pl_str first = print(t);
    pl_status status = pl_tokenizer_parse("again", pl_str_text(&first), first.bytes, &again, &err);
    FUZZ_CHECK(status == PL_OK, "what was printed is refused: %s\n%s", err.text, pl_str_text(&first));
    FUZZ_CHECK(pl_tokenizer_hash(t) == pl_tokenizer_hash(again), "another hash after print and parse:\n%s",
               pl_str_text(&first));
    FUZZ_CHECK(pl_tokenizer_kind_of(t) == pl_tokenizer_kind_of(again) &&
                   pl_tokenizer_vocab_size(t) == pl_tokenizer_vocab_size(again) &&
                   pl_tokenizer_unknown_id(t) == pl_tokenizer_unknown_id(again),
               "another tokenizer after print and parse");
    pl_str second = print(again);
    fuzz_same_text(&first, &second, "print, parse, print");
    pl_tokenizer_destroy(again);
}

/* Ids exist, and the streaming decoder gives the bytes of their tokens, no more and no less. */
static void check_ids(const pl_tokenizer *t, const uint32_t *ids, size_t count)
{
    pl_decoder decoder = {0};
    uint8_t *out = malloc(pl_tokenizer_longest_token(t) + 4);
    uint64_t told = 0, expected = 0;
    FUZZ_CHECK(out, "no memory");
    for (size_t i = 0; i < count; i++) {
        size_t bytes;
        FUZZ_CHECK(ids[i] < pl_tokenizer_vocab_size(t), "id %u of %u", ids[i], pl_tokenizer_vocab_size(t));
        (void)pl_tokenizer_token(t, ids[i], &bytes);
        expected += bytes;
        told += pl_decoder_push(&decoder, t, ids[i], out);
    }
    told += pl_decoder_finish(&decoder, out);
    FUZZ_CHECK(told == expected, "%llu bytes were decoded of %llu", (unsigned long long)told,
               (unsigned long long)expected);
    free(out);
}

static void check_use(const pl_tokenizer *t, const uint8_t *text, size_t bytes)
{
    pl_error err = {0};
    uint32_t *ids;
    size_t count;
    FUZZ_CHECK(pl_encode(t, text, bytes, &ids, &count, &err) == PL_OK, "%s", err.text);
    check_ids(t, ids, count);
    pl_free(ids);
}

static pl_status read_once(const uint8_t *data, size_t size, pl_error *err)
{
    pl_tokenizer *t;
    pl_str text = {0};
    pl_status status = pl_tokenizer_parse("input", (const char *)data, size, &t, err);
    if (t) pl_tokenizer_print(t, &text);
    if (text.failed) status = pl_fail(err, PL_E_NOMEM, "no memory to print");
    pl_str_deinit(&text);
    pl_tokenizer_destroy(t);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char text[] = "The the  theory\n isn't 1234 <|endoftext|> \xc3\xbc\xff <s></s> abba\t\t";
    pl_error err = {0};
    pl_tokenizer *t;
    uint64_t before = pl_alloc_live_blocks();
    pl_status status = pl_tokenizer_parse("input", (const char *)data, size, &t, &err);
    if (status == PL_OK) {
        check_round_trip(t);
        check_use(t, (const uint8_t *)text, sizeof text - 1);
        check_use(t, data, size < 256 ? size : 256);
        pl_tokenizer_destroy(t);
    } else {
        FUZZ_CHECK(!t, "a tokenizer that was refused");
        fuzz_refused(status, &err, "input", FUZZ_NAME);
    }
    fuzz_without_memory(read_once, data, size);
    FUZZ_CHECK(pl_alloc_live_blocks() == before, "blocks are held still");
    return 0;
}
