/* NAME.processes.jsonl: whatever is in it, what is read are the lines that are whole, each of which reads back as
 * itself when it is written again; and a line can be added behind anything. */
#include <stdio.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "store/beside.h"

static const char *results(void)
{
    static char path[PL_FILE_PATH_MAX];
    snprintf(path, sizeof path, "%s/r.blocks", fuzz_folder());
    return path;
}

static void write_lines(const uint8_t *data, size_t size)
{
    char path[PL_FILE_PATH_MAX];
    pl_error err = {0};
    FUZZ_CHECK(pl_beside_path(results(), PL_BESIDE_PROCESSES, path, &err) == PL_OK, "%s", err.text);
    fuzz_write(path, data, size);
}

static pl_status read_input(const uint8_t *data, size_t size, pl_error *err)
{
    pl_process_told *told;
    size_t count;
    write_lines(data, size);
    pl_status status = pl_beside_read(results(), &told, &count, err);
    pl_free(told);
    return status;
}

static bool same(const pl_process_told *a, const pl_process_told *b)
{
    return a->group == b->group && a->planned_bytes == b->planned_bytes && a->measured_bytes == b->measured_bytes &&
           a->peak_bytes == b->peak_bytes && a->as_planned == b->as_planned && a->items == b->items &&
           a->seconds == b->seconds;
}

static size_t count_lines(const uint8_t *data, size_t size)
{
    size_t lines = 1;
    for (size_t i = 0; i < size; i++) lines += data[i] == '\n';
    return lines;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint64_t before = pl_alloc_live_blocks();
    const pl_process_told mine = {3, 4096, 8192, 12288, true, 7, 0.5};
    pl_process_told *told, *again;
    size_t count, counted;
    pl_error err = {0};
    write_lines(data, size);
    FUZZ_CHECK(pl_beside_read(results(), &told, &count, &err) == PL_OK, "refused: %s", err.text);
    FUZZ_CHECK(count <= count_lines(data, size), "more processes than lines");
    for (size_t i = 0; i < count; i++) FUZZ_CHECK(pl_beside_append(results(), &told[i], &err) == PL_OK, "%s", err.text);
    FUZZ_CHECK(pl_beside_append(results(), &mine, &err) == PL_OK, "%s", err.text);
    FUZZ_CHECK(pl_beside_read(results(), &again, &counted, &err) == PL_OK, "%s", err.text);
    FUZZ_CHECK(counted == 2 * count + 1, "%zu lines became %zu", count, counted);
    for (size_t i = 0; i < count; i++)
        FUZZ_CHECK(same(&told[i], &again[i]) && same(&told[i], &again[count + i]), "line %zu is another", i);
    FUZZ_CHECK(same(&mine, &again[2 * count]), "the line that was added is another");
    pl_free(told);
    pl_free(again);
    fuzz_without_memory(read_input, data, size);
    FUZZ_CHECK(pl_alloc_live_blocks() == before, "blocks are held still");
    return 0;
}
