/* Any bytes as the text that a tokenizer is trained on, with tables so small that they overflow. The tokenizer that
 * comes out is written, read again, and gives the text back. */
#include <string.h>

#include "data/text/bpe_train.h"
#include "data/text/encoder.h"
#include "fuzz/fuzz.h"

enum { VOCAB = 300, WORD_BYTES = 16, WORDS = 16, WORDS_TEXT = 256 };

static void check_round_trip(const pl_tokenizer *t)
{
    pl_error err = {0};
    pl_tokenizer *again;
    pl_str first = {0}, second = {0};
    pl_tokenizer_print(t, &first);
    FUZZ_CHECK(pl_tokenizer_parse("again", pl_str_text(&first), first.bytes, &again, &err) == PL_OK, "%s", err.text);
    FUZZ_CHECK(pl_tokenizer_hash(t) == pl_tokenizer_hash(again), "another hash after print and parse");
    pl_tokenizer_print(again, &second);
    fuzz_same_text(&first, &second, "print, parse, print");
    pl_tokenizer_destroy(again);
}

static void check_text(const pl_tokenizer *t, const uint8_t *text, size_t bytes)
{
    pl_error err = {0};
    uint32_t *ids;
    size_t count, at = 0;
    FUZZ_CHECK(pl_encode(t, text, bytes, &ids, &count, &err) == PL_OK, "%s", err.text);
    for (size_t i = 0; i < count; i++) {
        size_t n;
        const uint8_t *token = pl_tokenizer_token(t, ids[i], &n);
        FUZZ_CHECK(n && n <= bytes - at && memcmp(text + at, token, n) == 0, "id %zu is not the text at byte %zu", i,
                   at);
        at += n;
    }
    FUZZ_CHECK(at == bytes, "ids for %zu bytes of %zu", at, bytes);
    pl_free(ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pl_error err = {0};
    pl_tokenizer *t;
    pl_bpe_trainer *trainer;
    uint64_t before = pl_alloc_live_blocks();
    bool small = size && data[size - 1] & 1;
    pl_bpe_options o = pl_bpe_options_default(VOCAB);
    o.word_bytes = WORD_BYTES;
    o.word_limit = small ? WORDS : 4096;
    o.word_text_limit = small ? WORDS_TEXT : 65536;
    FUZZ_CHECK(pl_bpe_trainer_create(&o, &trainer, &err) == PL_OK, "%s", err.text);
    for (size_t at = 0, n; at < size; at += n) {
        n = size - at < 7 ? size - at : 7;
        pl_bpe_trainer_feed(trainer, data + at, n);
    }
    FUZZ_CHECK(pl_bpe_trainer_finish(trainer, &t, &err) == PL_OK, "%s", err.text);
    pl_bpe_trainer_destroy(trainer);
    check_round_trip(t);
    check_text(t, data, size);
    pl_tokenizer_destroy(t);
    FUZZ_CHECK(pl_alloc_live_blocks() == before, "blocks are held still");
    return 0;
}
