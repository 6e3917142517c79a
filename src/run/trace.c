#include "run/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/locale.h"
#include "base/remove.h"

typedef struct trace_event {
    const char *name, *category;
    double begin, end;
} trace_event;

/* The first event says whose trace it is, to a viewer and to us. */
static const char BEGINNING[] =
    "[\n{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"plimsoll\"}}";

_Static_assert(sizeof BEGINNING <= PL_FILE_BEGINNING_MAX, "is compared as a whole");

enum { TEXT_BYTES = 32 << 10, EVENT_TEXT_MAX = 400 };

struct pl_trace {
    int fd;
    uint64_t bytes;  /* of the file */
    pl_error failed; /* the first write that did */
    double origin;
    size_t count, room;
    char path[PL_FILE_PATH_MAX];
    char text[TEXT_BYTES];
    trace_event event[];
};

/* A part that failed is taken away again. */
static pl_status write_text(pl_trace *t, const char *text, size_t bytes)
{
    size_t written;
    int error = pl_io_append(t->fd, text, bytes, &written);
    if (error == 0) {
        t->bytes += bytes;
        return PL_OK;
    }
    if (written > 0 && pl_io_truncate(t->fd, t->bytes) != 0) { /* then the last event is torn */
    }
    return pl_fail(&t->failed, PL_E_STORAGE, "%s: writing the trace failed: %s%s", t->path, strerror(error),
                   pl_io_hint(error));
}

/* What is no trace is somebody else's, results perhaps that took weeks. */
pl_status pl_trace_check(const char *path, pl_error *err)
{
    struct stat st;
    if (strlen(path) >= PL_FILE_PATH_MAX) return pl_fail(err, PL_E_USAGE, "the path %.200s… is too long", path);
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return pl_fail(err, PL_E_STORAGE, "%s: exists and is not a regular file; give another name", path);
    return pl_file_check_replaced(path, BEGINNING, true, "trace", err);
}

pl_status pl_trace_open(const char *path, void *memory, double now, pl_trace **trace, pl_error *err)
{
    pl_trace *t = memory;
    t->bytes = 0;
    t->failed = (pl_error){0};
    t->origin = now;
    t->count = 0;
    t->room = (PL_TRACE_STAGING_BYTES - sizeof *t) / sizeof *t->event;
    PL_TRY(pl_trace_check(path, err));
    strcpy(t->path, path);
    const bool there = access(path, F_OK) == 0;
    t->fd = pl_io_open(path, O_CREAT | O_TRUNC | O_WRONLY | O_NONBLOCK); /* what comes there meanwhile must not hang */
    if (t->fd < 0)
        return pl_fail(err, PL_E_STORAGE, "%s: cannot be created: %s%s", path, strerror(errno), pl_io_hint(errno));
    if (write_text(t, BEGINNING, sizeof BEGINNING - 1) == PL_OK) {
        *trace = t;
        return PL_OK;
    }
    close(t->fd);
    if (!there) (void)pl_remove_file(path, NULL);
    return pl_fail(err, PL_E_STORAGE, "%s", t->failed.text);
}

static pl_status flush_events(pl_trace *t)
{
    size_t used = 0;
    for (size_t i = 0; i < t->count; i++) {
        const trace_event *e = &t->event[i];
        used += (size_t)pl_print(
            t->text + used, EVENT_TEXT_MAX,
            ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"name\":\"%.80s\",\"cat\":\"%.120s\",\"ts\":%.3f,\"dur\":%.3f}",
            e->name, e->category, (e->begin - t->origin) * 1e6, (e->end - e->begin) * 1e6);
        if (used + EVENT_TEXT_MAX < sizeof t->text && i + 1 < t->count) continue;
        PL_TRY(write_text(t, t->text, used));
        used = 0;
    }
    t->count = 0;
    return PL_OK;
}

bool pl_trace_add(pl_trace *t, const char *name, const char *category, double begin, double end)
{
    t->event[t->count++] = (trace_event){name, category, begin, end};
    return t->count < t->room || flush_events(t) == PL_OK;
}

pl_status pl_trace_close(pl_trace *t, pl_error *err)
{
    if (!t) return PL_OK;
    if (t->failed.status == PL_OK && flush_events(t) == PL_OK) write_text(t, "\n]\n", 3);
    close(t->fd);
    *err = t->failed;
    return err->status;
}
