/* Keys to seconds: entries in the order in which they came, and a hash of their places. */
#include "calibrate/table.h"

#include <string.h>

#include "base/philox.h"

enum { SLOTS_MIN = 256 };

/* The slot of the key, or the free one where it belongs. */
static uint32_t *slot_of(const pl_calibration *c, const char *key)
{
    size_t at = (size_t)pl_stream_id(key) & (c->slot_count - 1);
    while (c->slot[at] != PL_NONE && strcmp(c->entry[c->slot[at]].key, key) != 0) at = (at + 1) & (c->slot_count - 1);
    return &c->slot[at];
}

const pl_calibration_entry *pl_calibration_find(const pl_calibration *c, const char *key)
{
    if (c->slot_count == 0) return NULL;
    uint32_t index = *slot_of(c, key);
    return index == PL_NONE ? NULL : &c->entry[index];
}

const pl_calibration_entry *pl_calibration_touch(pl_calibration *c, const char *key)
{
    const pl_calibration_entry *e = pl_calibration_find(c, key);
    if (e) c->entry[e - c->entry].used = true;
    return e;
}

bool pl_calibration_is_known(const pl_calibration *c, const pl_calibration_entry *e)
{
    if (!e || !e->samples || (e->brief && !c->options.brief)) return false;
    return e->fresh || !c->again || e->busy < PL_CALIBRATION_BUSY;
}

/* At most half of the slots are taken, so that a search always ends. */
static int make_slots(pl_calibration *c)
{
    if ((c->count + 1) * 2 <= c->slot_count) return 0;
    size_t count = c->slot_count ? c->slot_count * 2 : SLOTS_MIN;
    uint32_t *slot = pl_alloc(count, sizeof *slot);
    if (!slot) return -1;
    for (size_t i = 0; i < count; i++) slot[i] = PL_NONE;
    pl_free(c->slot);
    c->slot = slot;
    c->slot_count = count;
    for (size_t i = 0; i < c->count; i++) *slot_of(c, c->entry[i].key) = (uint32_t)i;
    return 0;
}

pl_status pl_calibration_put(pl_calibration *c, const char *key, const pl_calibration_entry *figures, pl_error *err)
{
    if (make_slots(c) || pl_grow(&c->entry, &c->capacity, c->count, sizeof *c->entry)) goto refused;
    uint32_t *slot = slot_of(c, key);
    if (*slot == PL_NONE) {
        char *copy = pl_strdup(key);
        if (!copy) goto refused;
        c->entry[c->count] = (pl_calibration_entry){.key = copy};
        *slot = (uint32_t)c->count++;
    }
    pl_calibration_entry *e = &c->entry[*slot];
    e->seconds = figures->seconds;
    e->spread = figures->spread;
    e->work = figures->work;
    e->busy = figures->busy > 1 ? figures->busy : 1;
    e->at = figures->at;
    e->samples = figures->samples;
    e->brief = figures->brief;
    e->fresh = figures->fresh;
    pl_calibration_kin_clear(&c->kin);
    pl_calibration_recall_clear(&c->recall); /* what follows from it is another now */
    return PL_OK;
refused:
    return pl_fail(err, PL_E_NOMEM, "no memory for a calibration of %zu entries", c->count);
}

void pl_calibration_clear(pl_calibration *c)
{
    for (size_t i = 0; i < c->count; i++) pl_free(c->entry[i].key);
    pl_calibration_recall_clear(&c->recall);
    pl_calibration_kin_clear(&c->kin);
    pl_free(c->entry);
    pl_free(c->slot);
    c->entry = NULL;
    c->slot = NULL;
    c->count = c->capacity = c->slot_count = 0;
}
