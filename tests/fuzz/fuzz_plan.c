/* A plan as text, as it is and with a checksum that is right. What the parser and the judge both accept is asked for
 * its figures and reported in every form. */
#include <stdlib.h>

#include <jansson.h>

#include "fuzz/fuzz.h"
#include "plan/plan.h"
#include "report/report.h"
#include "support/mend_text.h"

static pl_str print(const pl_plan *p)
{
    pl_str out = {0};
    pl_plan_print(p, &out);
    return out;
}

static void check_round_trip(const pl_plan *p)
{
    pl_error err = {0};
    pl_plan *again = NULL;
    pl_str first = print(p);
    pl_status status = pl_plan_parse("again", pl_str_text(&first), first.bytes, &again, &err);
    FUZZ_CHECK(status == PL_OK, "what was printed is refused: %s", err.text);
    pl_str second = print(again);
    fuzz_same_text(&first, &second, "print, parse, print");
    pl_plan_destroy(again);
}

/* What only a sound plan is asked: it must hold for whatever the judge let pass. */
static void check_figures(const pl_plan *p)
{
    const pl_graph *g = p->graph;
    uint64_t *alive = calloc(g->node_count + 1, sizeof *alive);
    FUZZ_CHECK(alive, "no memory");
    pl_plan_alive(p, PL_SPACE_RAM, alive);
    for (size_t i = 0; i < g->node_count; i++)
        FUZZ_CHECK(alive[i] <= p->arena->bytes, "%llu bytes are alive at %zu in an arena of %llu",
                   (unsigned long long)alive[i], i, (unsigned long long)p->arena->bytes);
    for (size_t i = 0; i < g->region_count; i++)
        if (g->region[i].parent == PL_NONE) (void)pl_plan_program_seconds(p, (pl_id)i);
    free(alive);
}

static void check_reports(const pl_plan *p)
{
    pl_error err = {0};
    pl_str text = {0};
    FUZZ_CHECK(pl_report_plan(p, NULL, &text, &err) == PL_OK, "%s", err.text);
    pl_str_clear(&text);
    FUZZ_CHECK(pl_report_html(p, NULL, NULL, &text, &err) == PL_OK, "%s", err.text);
    pl_str_clear(&text);
    FUZZ_CHECK(pl_report_plan_json(p, NULL, &text, &err) == PL_OK, "%s", err.text);
    json_t *root = json_loadb(pl_str_text(&text), text.bytes, 0, NULL);
    FUZZ_CHECK(json_is_object(root), "the report is no JSON");
    json_decref(root);
    pl_str_deinit(&text);
}

static pl_status read_once(const uint8_t *data, size_t size, pl_error *err)
{
    pl_plan *p = NULL;
    pl_status status = pl_plan_parse("input", (const char *)data, size, &p, err);
    if (status == PL_OK) status = pl_plan_check(p, err);
    pl_plan_destroy(p);
    return status;
}

static void check_text(const uint8_t *data, size_t size)
{
    pl_error err = {0};
    pl_plan *p = NULL;
    pl_status status = pl_plan_parse("input", (const char *)data, size, &p, &err);
    if (status != PL_OK) {
        fuzz_refused(status, &err, "input", FUZZ_LINE_COLUMN);
        return;
    }
    check_round_trip(p);
    status = pl_plan_check(p, &err);
    if (status == PL_OK) {
        check_figures(p);
        check_reports(p);
    } else {
        fuzz_refused(status, &err, "", FUZZ_NAME);
    }
    pl_plan_destroy(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t before = pl_alloc_live_blocks();
    uint8_t *mended = malloc(size + 1);
    FUZZ_CHECK(mended, "no memory");
    memcpy(mended, data, size);
    mend_text((char *)mended, size);
    check_text(data, size);
    check_text(mended, size);
    fuzz_without_memory(read_once, mended, size);
    free(mended);
    FUZZ_CHECK(pl_alloc_live_blocks() == before, "blocks are held still");
    return 0;
}
