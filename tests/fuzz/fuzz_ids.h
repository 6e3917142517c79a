/* What ids of a tokenizer are held to, whatever it was read from. */
#ifndef TESTS_FUZZ_FUZZ_IDS_H
#define TESTS_FUZZ_FUZZ_IDS_H

#include <stdlib.h>

#include "base/utf8.h"
#include "data/text/encoder.h"
#include "fuzz/fuzz.h"

static const char fuzz_text[] =
    "The the  theory\n isn't 1234 <|endoftext|> \xc3\xbc\xe2\x96\x81 e\xcc\x81 <s></s> abba\t\t\n\n";

/* Ids exist, and the streaming decoder gives the bytes of their tokens, no more and no less but for a blank at the
 * beginning; or a text. */
static inline void fuzz_check_ids(const pl_tokenizer *t, const uint32_t *ids, size_t count, int is_text)
{
    pl_decoder decoder = {.is_text = is_text, .skips_special = is_text};
    uint8_t *out = malloc(pl_decoder_room(t));
    uint64_t told = 0, expected = 0;
    FUZZ_CHECK(out, "no memory");
    for (size_t i = 0; i < count; i++) {
        size_t bytes;
        FUZZ_CHECK(ids[i] < pl_tokenizer_vocab_size(t), "id %u of %u", ids[i], pl_tokenizer_vocab_size(t));
        (void)pl_tokenizer_token(t, ids[i], &bytes);
        expected += bytes;
        const size_t now = pl_decoder_push(&decoder, t, ids[i], out);
        FUZZ_CHECK(now <= pl_decoder_room(t), "%zu bytes at once", now);
        told += now;
    }
    told += pl_decoder_finish(&decoder, out);
    FUZZ_CHECK(is_text || told == expected || told + 1 == expected, "%llu bytes were decoded of %llu",
               (unsigned long long)told, (unsigned long long)expected);
    free(out);
}

static inline int fuzz_is_utf8(const uint8_t *text, size_t bytes)
{
    uint32_t c;
    for (size_t at = 0, length; at < bytes; at += length) {
        length = pl_utf8_read(text + at, bytes - at, &c);
        if (length == 0 || c == PL_NOT_UTF8) return 0;
    }
    return 1;
}

static inline void fuzz_check_use(const pl_tokenizer *t, const uint8_t *text, size_t bytes)
{
    for (unsigned i = 0; i < 8; i += 3) {
        const pl_encode_options o = {.adds_special = i & 1, .ignores_added = i & 2, .continues = i & 4};
        pl_error err = {0};
        uint32_t *ids;
        size_t count;
        const pl_status status = pl_encode_with(t, o, text, bytes, &ids, &count, &err);
        FUZZ_CHECK(status == PL_OK || (status == PL_E_DATA && !fuzz_is_utf8(text, bytes)), "%s", err.text);
        fuzz_check_ids(t, ids, count, 0);
        fuzz_check_ids(t, ids, count, 1);
        pl_free(ids);
    }
}

#endif
