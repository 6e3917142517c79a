/* The index of a block file: as it is, and with the checksum of its header made right and the file as long as it says,
 * so that the search gets behind both. What is accepted is a layout that passes its check, whose pieces lie in their
 * datasets; it can be checked, opened as a runner does, and asked for what to go on from. */
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "store/block_file.h"
#include "base/checksum.h"

enum { FILE_MAX = 1 << 20, MEMORY = 1 << 20, BLOCKS_MAX = 512 };

/* ---- what was accepted ---- */

static void check_layout(const pl_block_layout *l)
{
    pl_error err = {0};
    uint64_t offset, bytes, blocks = pl_block_count(l);
    char name[PL_BLOCK_SENTENCE_BYTES];
    FUZZ_CHECK(pl_block_layout_check(l, &err) == PL_OK, "%s", err.text);
    for (uint64_t block = 0; block < blocks && block < BLOCKS_MAX; block++) {
        bool any = false;
        FUZZ_CHECK(strlen(pl_block_name(l, block, name)) < sizeof name - 1, "the name of block %llu is cut",
                   (unsigned long long)block);
        for (uint32_t i = 0; i < l->datasets; i++) {
            if (!pl_block_piece(l, block, i, &offset, &bytes)) continue;
            any = true;
            FUZZ_CHECK(bytes > 0 && offset + bytes <= pl_block_dataset_bytes(&l->dataset[i]),
                       "%s: a piece lies outside", l->dataset[i].name);
        }
        FUZZ_CHECK(any, "block %llu makes nothing", (unsigned long long)block);
    }
}

static void check_runner(const char *path, const pl_block_layout *l, uint64_t done)
{
    static _Alignas(64) char memory[MEMORY];
    static char carry[FILE_MAX];
    const pl_block_use use = {1, 1};
    pl_block_sizes sizes;
    pl_block_file *f;
    pl_error err = {0};
    bool found;
    pl_status status = pl_block_file_measure(l, PL_BLOCK_NATIVE, &use, &sizes, &err);
    FUZZ_CHECK(status == PL_OK, "%s", err.text);
    if (sizes.memory_bytes > MEMORY || l->carry_bytes > sizeof carry) return;
    status = pl_block_file_open(path, l, &use, memory, sizes.memory_bytes, &f, &err);
    if (status != PL_OK) { /* data files that are too short */
        fuzz_refused(status, &err, "/fd/", FUZZ_NAME);
        return;
    }
    FUZZ_CHECK(pl_block_file_done(f) == done, "a runner counts other blocks as done");
    FUZZ_CHECK(pl_block_file_recall(f, 0, carry, &found, &err) == PL_OK, "%s", err.text);
    FUZZ_CHECK(pl_block_file_close(f, &err) == PL_OK, "%s", err.text);
}

static void check_file(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file(0, data, size);
    pl_error err = {0};
    pl_block_reader *r;
    pl_block_checked c;
    pl_status status = pl_block_reader_open(path, false, &r, &err);
    if (status != PL_OK) {
        fuzz_refused(status, &err, "/fd/", FUZZ_NAME);
        return;
    }
    const pl_block_layout *l = pl_block_reader_layout(r);
    uint64_t done = pl_block_reader_done(r);
    check_layout(l);
    status = pl_block_reader_check(r, NULL, NULL, &c, &err);
    FUZZ_CHECK(status == PL_OK, "%s", err.text);
    FUZZ_CHECK(c.checked == done && c.damaged <= done, "other blocks were checked than are done");
    bool own = pl_block_reader_form(r) == PL_BLOCK_NATIVE;
    for (uint32_t i = 0; i < l->datasets; i++) own = own && !l->dataset[i].constant; /* whose bytes nobody here has */
    if (own) check_runner(path, l, done);
    pl_block_reader_close(r);
}

/* ---- a header made right ---- */

static uint64_t number_at(const uint8_t *data, size_t at, int bytes)
{
    uint64_t n = 0;
    for (int i = bytes; i-- > 0;) n = n << 8 | data[at + (size_t)i];
    return n;
}

static void check_mended(const uint8_t *data, size_t size)
{
    enum { HEAD = 128, FILE_BYTES = 40, KINDS = 56, DATASETS = 60, TEXT = 64, CHECKSUM = 120 };
    if (size < HEAD) return;
    uint64_t bytes = number_at(data, FILE_BYTES, 8), kinds = number_at(data, KINDS, 4);
    uint64_t datasets = number_at(data, DATASETS, 4), text = number_at(data, TEXT, 8);
    if (bytes < size || bytes > FILE_MAX || kinds > 64 || datasets > 256 || text > FILE_MAX) return;
    uint64_t header = HEAD + kinds * 192 + datasets * 176 + text;
    if (header > bytes) return;
    uint8_t *file = calloc(bytes, 1);
    FUZZ_CHECK(file, "no memory");
    memcpy(file, data, size);
    memset(file + CHECKSUM, 0, 8);
    uint64_t sum = pl_checksum_of(file, header);
    for (int i = 0; i < 8; i++) file[CHECKSUM + i] = (uint8_t)(sum >> 8 * i);
    check_file(file, bytes);
    free(file);
}

static pl_status read_once(const uint8_t *data, size_t size, pl_error *err)
{
    pl_block_reader *r;
    pl_status status = pl_block_reader_open(fuzz_file(0, data, size), false, &r, err);
    pl_block_reader_close(r);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t before = pl_alloc_live_blocks();
    check_file(data, size);
    check_mended(data, size);
    fuzz_without_memory(read_once, data, size);
    FUZZ_CHECK(pl_alloc_live_blocks() == before, "blocks are held still");
    return 0;
}
