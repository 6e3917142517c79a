/* A token file with known contents: token i is (i·i + 7·i) mod vocab. */
#ifndef PL_TESTS_UNIT_DATA_TOKEN_FILE_H
#define PL_TESTS_UNIT_DATA_TOKEN_FILE_H

#include "unit/data/scratch.h"

#include "data/text/tokens.h"

static inline uint32_t known_token(uint64_t i, uint32_t vocab) { return (uint32_t)((i * i + 7 * i) % vocab); }

static inline void write_known_tokens(const char *path, uint64_t count, uint32_t vocab)
{
    pl_error err = {0};
    pl_tokens_writer *w;
    assert_int_equal(pl_tokens_create(path, vocab, &w, &err), PL_OK);
    for (uint64_t i = 0; i < count; i++) {
        uint32_t id = known_token(i, vocab);
        assert_int_equal(pl_tokens_append(w, &id, 1, &err), PL_OK);
    }
    pl_tokens_info info = {.tokenizer_hash = 11,
                           .recipe = 12,
                           .source = {.bytes = 13, .inode = 16, .content = 14, .mtime_ns = -15, .ctime_ns = -17}};
    if (pl_tokens_commit(w, &info, &err) != PL_OK) fail_msg("%s", err.text);
}

#endif
