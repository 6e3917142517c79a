#include "systems/clouds_child.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/child.h"
#include "base/remove.h"

typedef struct note {
    char flight[PL_FRAMES_NAME_BYTES];
    uint64_t done, all; /* pictures; 0 of 0: it begins to read a flight */
} note;
_Static_assert(sizeof(note) <= PL_CHILD_NOTE_BYTES, "a note holds it");

typedef struct reading {
    pl_clouds_work work;
    const pl_clouds_options *o;
    int channel; /* of the child */
    note last;   /* that was heard of it */
} reading;

/* ---- the child ---- */

/* Who is told decides before the next picture is made. */
static bool tell(void *context, const char *flight, uint64_t done, uint64_t all)
{
    note n = {.done = done, .all = all};
    snprintf(n.flight, sizeof n.flight, "%s", flight);
    return pl_child_tell(*(const int *)context, &n, sizeof n);
}

static pl_status work(void *context, int channel, pl_error *err)
{
    reading *r = context;
    pl_clouds_options own = *r->o;
    r->channel = channel;
    own.progress = tell, own.context = &r->channel;
    return r->work(&own, err);
}

/* ---- who waits for it ---- */

static pl_status hear(void *context, const void *told, pl_error *err)
{
    reading *r = context;
    const note *n = &r->last;
    memcpy(&r->last, told, sizeof r->last);
    if (!n->done || !r->o->progress || r->o->progress(r->o->context, n->flight, n->done, n->all)) return PL_OK;
    return pl_fail(err, PL_E_STOPPED, "stopped at picture %llu of %llu, of flight %s", (unsigned long long)n->done,
                   (unsigned long long)n->all, n->flight);
}

/* What it left goes; it held the lock that we hold. */
static pl_status name_death(const reading *r, int number, pl_error *err)
{
    char left[PL_FILE_TEMPORARY_MAX];
    const char *flight = r->last.flight[0] ? r->last.flight : r->o->flight[0].name;
    (void)pl_remove_file(pl_file_temporary(r->o->path, "", left), NULL);
    if (pl_child_crashed(number))
        return pl_fail(
            err, PL_E_DATA,
            "flight %s: the process that read its files was ended by signal %d, a crash of libhdf5: perhaps it "
            "got no memory, or one of them is damaged; begin again with more memory, or find out with "
            "h5dump which one it is and fetch that anew",
            flight, number);
    return pl_fail(
        err, PL_E_NOMEM,
        "flight %s: the process that read its files was ended (signal %d), by somebody or for want of memory; "
        "begin again with more of it",
        flight, number);
}

pl_status pl_clouds_in_child(pl_clouds_work make, const pl_clouds_options *o, pl_error *err)
{
    reading r = {.work = make, .o = o};
    int number;
    const pl_status status = pl_child_run(&(pl_child_work){work, hear, &r}, &number, err);
    return number ? name_death(&r, number, err) : status;
}
