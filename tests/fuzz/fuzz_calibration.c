/* The file of measured kernels, of a machine that is always the same here: what is wrong with it is a warning and an
 * empty table; what is right comes back after saving. */
#include <stdio.h>
#include <string.h>

#include "calibrate/table.h"
#include "fuzz/fuzz.h"

static void read_file(pl_calibration *c, const char *path)
{
    pl_error err = {0};
    *c = (pl_calibration){.machine = {.cpu = "a machine", .isa = "avx2", .cores = 2, .kernels = 1}};
    strcpy(c->path, path);
    FUZZ_CHECK(pl_calibration_read(c, &err) == PL_OK, "%s", err.text);
    FUZZ_CHECK(!c->warning[0] || c->count == 0, "a warning and %zu entries", c->count);
    FUZZ_CHECK(memchr(c->warning, 0, sizeof c->warning), "the warning does not end");
}

static void check_saved(pl_calibration *c)
{
    static pl_calibration again;
    pl_error err = {0};
    snprintf(c->path, sizeof c->path, "%s/calibration.json", fuzz_folder());
    c->changed = true;
    FUZZ_CHECK(pl_calibration_save(c, &err) == PL_OK && !c->warning[0], "%s%s", err.text, c->warning);
    read_file(&again, c->path);
    FUZZ_CHECK(again.count == c->count && !again.warning[0], "%zu entries became %zu: %s", c->count, again.count,
               again.warning);
    for (size_t i = 0; i < c->count; i++) {
        const pl_calibration_entry *a = &c->entry[i], *b = pl_calibration_find(&again, a->key);
        FUZZ_CHECK(b && a->seconds == b->seconds && a->spread == b->spread && a->samples == b->samples,
                   "the entry \"%s\" came back as another one", a->key);
    }
    pl_calibration_clear(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static pl_calibration c;
    uint64_t before = pl_alloc_live_blocks();
    read_file(&c, fuzz_file(0, data, size));
    if (c.count) check_saved(&c);
    pl_calibration_clear(&c);
    FUZZ_CHECK(pl_alloc_live_blocks() == before, "blocks are held still");
    return 0;
}
