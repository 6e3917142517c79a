/* run.json: as it is, and with a checksum that is right. */
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "fuzz/mend_record.h"
#include "store/record.h"

static char *print(const pl_record *r, uint64_t *bytes)
{
    pl_error err = {0};
    *bytes = pl_record_bytes(r);
    char *text = malloc(*bytes + 1);
    FUZZ_CHECK(*bytes && text, "no memory");
    FUZZ_CHECK(pl_record_print(r, text, *bytes, &err) == PL_OK, "%s", err.text);
    return text;
}

static void check_same(const pl_record *a, const pl_record *b)
{
    FUZZ_CHECK(a->step == b->step && a->epoch == b->epoch && a->sample == b->sample, "another step");
    FUZZ_CHECK(a->model_hash == b->model_hash && a->plan_hash == b->plan_hash &&
                   pl_facts_equal(&a->identity, &b->identity),
               "another hash");
    FUZZ_CHECK(a->has_best == b->has_best && (!a->has_best || a->best_value == b->best_value), "another best");
    FUZZ_CHECK(memcmp(&a->model, &b->model, sizeof a->model) == 0 && memcmp(&a->state, &b->state, sizeof a->state) == 0,
               "other files");
    FUZZ_CHECK(strcmp(a->config, b->config) == 0 && a->counter_count == b->counter_count, "another config or counter");
    for (size_t i = 0; i < a->counter_count; i++) {
        double x = a->counters[i].value, y = pl_record_counter_value(b, a->counters[i].key, -1);
        FUZZ_CHECK(x == y || (x != x && y != y), "counter \"%s\" was %g, it is %g", a->counters[i].key, x, y);
    }
}

static void check_text(const char *text, size_t size)
{
    pl_error err = {0};
    pl_record *record, *again;
    uint64_t bytes, bytes_again;
    pl_status status = pl_record_parse(text, size, "input", &record, &err);
    if (status != PL_OK) {
        FUZZ_CHECK(!record, "a record that was refused");
        fuzz_refused(status, &err, "input", FUZZ_NAME);
        return;
    }
    char *first = print(record, &bytes);
    FUZZ_CHECK(pl_record_parse(first, bytes, "again", &again, &err) == PL_OK, "what was printed is refused: %s",
               err.text);
    check_same(record, again);
    char *second = print(again, &bytes_again);
    FUZZ_CHECK(bytes == bytes_again && memcmp(first, second, bytes) == 0, "print, parse, print gives another text");
    free(first);
    free(second);
    pl_record_destroy(again);
    pl_record_destroy(record);
}

static pl_status read_once(const uint8_t *data, size_t size, pl_error *err)
{
    pl_str mended = mend_record((const char *)data, size);
    pl_record *record = NULL;
    pl_status status = mended.failed ? pl_fail(err, PL_E_NOMEM, "no memory")
                                     : pl_record_parse(pl_str_text(&mended), mended.bytes, "input", &record, err);
    pl_record_destroy(record);
    pl_str_deinit(&mended);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t before = pl_alloc_live_blocks();
    check_text((const char *)data, size);
    pl_str mended = mend_record((const char *)data, size);
    check_text(pl_str_text(&mended), mended.bytes);
    pl_str_deinit(&mended);
    fuzz_without_memory(read_once, data, size);
    FUZZ_CHECK(pl_alloc_live_blocks() == before, "blocks are held still");
    return 0;
}
