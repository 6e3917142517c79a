/* The file of a machine: accepted ones print, parse and print the same. */
#include "base/machine_file.h"
#include "fuzz/fuzz.h"

static pl_status read_once(const uint8_t *data, size_t size, pl_error *err)
{
    pl_machine_file m;
    return pl_machine_file_parse("input", (const char *)data, size, &m, err);
}

static void check(const uint8_t *data, size_t size)
{
    pl_error err = {0};
    pl_machine_file m, again;
    pl_str first = {0}, second = {0};
    const pl_status status = pl_machine_file_parse("input", (const char *)data, size, &m, &err);
    if (status != PL_OK) {
        fuzz_refused(status, &err, "input", FUZZ_NAME);
        return;
    }
    FUZZ_CHECK(m.machine.cores >= 1 && m.fastest <= m.machine.isa && m.machine.isa < PL_ISA_COUNT, "no such machine");
    pl_machine_file_print(&m, &first);
    FUZZ_CHECK(pl_machine_file_parse("again", pl_str_text(&first), first.bytes, &again, &err) == PL_OK,
               "what was printed is refused: %s", err.text);
    pl_machine_file_print(&again, &second);
    fuzz_same_text(&first, &second, "the machine");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint64_t before = pl_alloc_live_blocks();
    check(data, size);
    fuzz_without_memory(read_once, data, size);
    FUZZ_CHECK(pl_alloc_live_blocks() == before, "blocks are held still");
    return 0;
}
