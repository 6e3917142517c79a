/* A token file: as it is, and with every checksum made right, so that the fuzzer gets behind them. What is accepted is
 * read in ranges, and written again from its ids. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "data/text/tokens.h"
#include "fuzz/fuzz.h"

static uint64_t get_u64(const uint8_t *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static void put_u64(uint8_t *at, uint64_t value) { memcpy(at, &value, sizeof value); }

/* The checksums of blocks, of their table and of the header, as far as the header's numbers lie in the file. */
static void mend(uint8_t *file, size_t size)
{
    if (size < PL_TOKENS_HEADER_BYTES) return;
    uint64_t count = get_u64(file + 24), table = get_u64(file + 80), ids = 0;
    uint32_t id_bytes;
    memcpy(&id_bytes, file + 20, sizeof id_bytes);
    bool inside = !__builtin_mul_overflow(count, id_bytes, &ids) && ids <= size - PL_TOKENS_HEADER_BYTES &&
                  table <= size && table >= PL_TOKENS_HEADER_BYTES + ids;
    if (inside) {
        uint64_t block_bytes = (uint64_t)PL_TOKENS_BLOCK * id_bytes;
        for (uint64_t at = 0, to = table; at < ids && to + 8 <= size; at += block_bytes, to += 8)
            put_u64(file + to,
                    XXH64(file + PL_TOKENS_HEADER_BYTES + at, ids - at < block_bytes ? ids - at : block_bytes, 0));
        put_u64(file + 88, XXH64(file + table, size - table, 0));
    }
    put_u64(file + 120, XXH64(file, 120, 0));
}

/* ---- what was accepted ---- */

static void read_range(pl_tokens_reader *r, const uint8_t *file, uint64_t begin, uint64_t end)
{
    pl_error err = {0};
    const pl_tokens_info *i = &r->tokens->info;
    int32_t *out = malloc((end - begin + 1) * sizeof *out);
    FUZZ_CHECK(out, "no memory");
    pl_status status = pl_tokens_read(r, begin, end, out, &err);
    if (status != PL_OK) fuzz_refused(status, &err, "/fd/", FUZZ_NAME);
    for (uint64_t k = begin; k < end && status == PL_OK; k++) {
        uint32_t id = 0;
        memcpy(&id, file + PL_TOKENS_HEADER_BYTES + k * i->id_bytes, i->id_bytes);
        FUZZ_CHECK(out[k - begin] == (int32_t)id && id < i->vocab, "token %llu is %d, in the file %u of %u",
                   (unsigned long long)k, out[k - begin], id, i->vocab);
    }
    free(out);
}

/* Member by member: what lies between them is not the same. The reader of texts is that of who wrote. */
static bool is_written_info(const pl_tokens_info *a, const pl_tokens_info *b)
{
    return a->vocab == b->vocab && a->id_bytes == b->id_bytes && a->count == b->count &&
           a->tokenizer_hash == b->tokenizer_hash && a->recipe == b->recipe && a->reader == PL_TOKENS_READER &&
           memcmp(&a->source, &b->source, sizeof a->source) == 0 && a->table_offset == b->table_offset &&
           a->table_hash == b->table_hash;
}

/* Written from what was read, the file is the same up to its table of checksums. */
static void check_written(const pl_tokens *t, const uint8_t *file, size_t size)
{
    char path[128];
    pl_error err = {0};
    pl_tokens_writer *w;
    pl_tokens again;
    snprintf(path, sizeof path, "%s/tokens.bin", fuzz_folder());
    FUZZ_CHECK(pl_tokens_create(path, t->info.vocab, &w, &err) == PL_OK, "%s", err.text);
    for (uint64_t k = 0; k < t->info.count; k++) {
        uint32_t id = 0;
        memcpy(&id, file + PL_TOKENS_HEADER_BYTES + k * t->info.id_bytes, t->info.id_bytes);
        FUZZ_CHECK(pl_tokens_append(w, &id, 1, &err) == PL_OK, "%s", err.text);
    }
    FUZZ_CHECK(pl_tokens_commit(w, &t->info, &err) == PL_OK, "%s", err.text);
    FUZZ_CHECK(pl_tokens_open(&again, path, &err) == PL_OK, "what was written is refused: %s", err.text);
    FUZZ_CHECK(is_written_info(&again.info, &t->info) && pl_tokens_file_bytes(&again.info) == size,
               "what was written says something else");
    FUZZ_CHECK(pl_tokens_verify(&again, &err) == PL_OK, "%s", err.text);
    pl_tokens_close(&again);
}

static void check_file(const uint8_t *file, size_t size)
{
    pl_error err = {0};
    pl_tokens t;
    pl_status status = pl_tokens_open(&t, fuzz_file(0, file, size), &err);
    if (status != PL_OK) {
        fuzz_refused(status, &err, "/fd/", FUZZ_NAME);
        return;
    }
    status = pl_tokens_verify(&t, &err);
    if (status != PL_OK) fuzz_refused(status, &err, "/fd/", FUZZ_NAME);
    pl_tokens_reader reader;
    void *memory = aligned_alloc(16, pl_tokens_reader_bytes(&t.info));
    FUZZ_CHECK(memory, "no memory");
    pl_tokens_reader_init(&reader, &t, memory);
    uint64_t count = t.info.count;
    read_range(&reader, file, count / 3, count / 2);
    read_range(&reader, file, 0, count);
    read_range(&reader, file, count - 1, count);
    FUZZ_CHECK(pl_tokens_read(&reader, 0, count + 1, NULL, &err) == PL_E_INTERNAL, "tokens behind the end");
    if (status == PL_OK) check_written(&t, file, size);
    free(memory);
    pl_tokens_close(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t before = pl_alloc_live_blocks();
    uint8_t *copy = malloc(size + 1);
    FUZZ_CHECK(copy, "no memory");
    memcpy(copy, data, size);
    check_file(copy, size);
    mend(copy, size);
    check_file(copy, size);
    free(copy);
    FUZZ_CHECK(pl_alloc_live_blocks() == before, "blocks are held still");
    return 0;
}
