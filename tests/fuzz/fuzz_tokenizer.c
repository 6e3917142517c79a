/* A tokenizer.json. What is accepted is written, read again, and used on a text. */
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz_ids.h"

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
    pl_error err = {0};
    pl_tokenizer *t;
    uint64_t before = pl_alloc_live_blocks();
    pl_status status = pl_tokenizer_parse("input", (const char *)data, size, &t, &err);
    if (status == PL_OK) {
        check_round_trip(t);
        fuzz_check_use(t, (const uint8_t *)fuzz_text, sizeof fuzz_text - 1);
        fuzz_check_use(t, data, size < 256 ? size : 256);
        pl_tokenizer_destroy(t);
    } else {
        FUZZ_CHECK(!t, "a tokenizer that was refused");
        fuzz_refused(status, &err, "input", FUZZ_NAME);
    }
    fuzz_without_memory(read_once, data, size);
    FUZZ_CHECK(pl_alloc_live_blocks() == before, "blocks are held still");
    return 0;
}
