/* A graph as text. */
#include "fuzz/fuzz.h"
#include "ir/graph.h"

static pl_str print(const pl_graph *g)
{
    pl_str out = {0};
    pl_graph_print(g, &out);
    return out;
}

static void check_stages(const pl_graph *g)
{
    for (int stage = PL_STAGE_MODEL; stage <= PL_STAGE_BOUND; stage++) {
        pl_error err = {0};
        pl_status status = pl_graph_check(g, (pl_graph_stage)stage, &err);
        if (status != PL_OK) fuzz_refused(status, &err, "", FUZZ_NAME);
    }
}

static void check_copies(const pl_graph *g)
{
    pl_error err = {0};
    pl_graph *again = NULL, *copy = pl_graph_copy(g);
    pl_str first = print(g);
    pl_status status = pl_graph_parse("again", pl_str_text(&first), first.bytes, &again, &err);
    FUZZ_CHECK(status == PL_OK && copy, "what was printed is refused: %s", err.text);
    pl_str second = print(again);
    fuzz_same_text(&first, &second, "print, parse, print");
    first = print(g), second = print(copy);
    fuzz_same_text(&first, &second, "a copy");
    pl_graph_destroy(again);
    pl_graph_destroy(copy);
}

static pl_status read_once(const uint8_t *data, size_t size, pl_error *err)
{
    pl_graph *g = NULL;
    pl_status status = pl_graph_parse("input", (const char *)data, size, &g, err);
    if (status == PL_OK) status = pl_graph_check(g, PL_STAGE_BOUND, err);
    pl_graph_destroy(g);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pl_error err = {0};
    pl_graph *g = NULL;
    uint64_t before = pl_alloc_live_blocks();
    pl_status status = pl_graph_parse("input", (const char *)data, size, &g, &err);
    if (status == PL_OK) {
        check_stages(g);
        check_copies(g);
        pl_graph_destroy(g);
    } else {
        fuzz_refused(status, &err, "input", FUZZ_LINE_COLUMN);
    }
    fuzz_without_memory(read_once, data, size);
    FUZZ_CHECK(pl_alloc_live_blocks() == before, "blocks are held still");
    return 0;
}
