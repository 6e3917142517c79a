/* An index of texts: as it is, and with both checksums made right, so that the fuzzer gets behind them. Of what is
 * accepted each entry is read: it lies within its source, or is refused. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "data/pages/texts_index.h"
#include "fuzz/fuzz.h"

static void put_u64(uint8_t *at, uint64_t value) { memcpy(at, &value, sizeof value); }

static void mend(uint8_t *file, size_t size)
{
    if (size < PL_TEXTS_HEADER_BYTES) return;
    put_u64(file + 96, XXH64(file + PL_TEXTS_HEADER_BYTES, size - PL_TEXTS_HEADER_BYTES, 0));
    put_u64(file + 120, XXH64(file, 120, 0));
}

static void check_place(int fd, const char *path, const pl_texts_info *i, pl_texts_form form, uint64_t number)
{
    pl_error err = {0};
    pl_text_place p;
    char name[PL_FILE_PATH_MAX];
    int64_t mtime_ns;
    pl_status status = pl_texts_read_place(fd, path, i, form, number, &p, &err);
    if (status != PL_OK) {
        fuzz_refused(status, &err, "/fd/", FUZZ_NAME);
        return;
    }
    const bool is_json = form == PL_TEXTS_JSONL || form == PL_TEXTS_SQUAD;
    FUZZ_CHECK(p.encoding == PL_TEXT_RAW || (p.encoding == PL_TEXT_JSON && is_json) ||
                   (p.encoding == PL_TEXT_CSV && form == PL_TEXTS_CSV),
               "encoding %d in form %d", (int)p.encoding, (int)form);
    if (form != PL_TEXTS_FOLDER) {
        FUZZ_CHECK(p.offset <= i->source.bytes && p.bytes <= i->source.bytes - p.offset, "outside of the source");
        return;
    }
    status = pl_texts_read_file(fd, path, i, p.offset, name, &mtime_ns, &err);
    if (status != PL_OK)
        fuzz_refused(status, &err, "/fd/", FUZZ_NAME);
    else
        FUZZ_CHECK(name[0] && strlen(name) < PL_FILE_PATH_MAX, "a file without a name");
}

static void check_file(const uint8_t *file, size_t size)
{
    pl_error err = {0};
    pl_texts_info i;
    pl_texts_form form;
    int fd;
    const char *path = fuzz_file(0, file, size);
    const pl_status status = pl_texts_open_index(path, &fd, &form, &i, &err);
    if (status != PL_OK) {
        FUZZ_CHECK(fd < 0, "a refused index is open");
        fuzz_refused(status, &err, "/fd/", FUZZ_NAME);
        return;
    }
    FUZZ_CHECK(i.count >= 1 && pl_texts_index_bytes(&i) == size, "%llu texts in %zu bytes", (unsigned long long)i.count,
               size);
    for (uint64_t n = 0; n < i.count; n++) check_place(fd, path, &i, form, n);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint64_t before = pl_alloc_live_blocks();
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
