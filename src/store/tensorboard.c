#include "store/tensorboard.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/remove.h"

enum { FRAME_BEFORE = 12, FRAME_AFTER = 4, VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5, SESSION_START = 1 };

/* ---- crc32c (Castagnoli, reflected polynomial 0x82f63b78), four bits at a time: events are short ---- */

static uint32_t crc32c(const unsigned char *data, size_t bytes)
{
    static const uint32_t table[16] = {
        0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
        0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
    };
    uint32_t crc = ~0u;
    for (size_t i = 0; i < bytes; i++) {
        crc ^= data[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return ~crc;
}

/* As TFRecord stores it: a checksum of data that hold checksums would be weak. */
static uint32_t masked_crc(const unsigned char *data, size_t bytes)
{
    uint32_t crc = crc32c(data, bytes);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

/* ---- protobuf into a bounded buffer; what does not fit is counted, not written ---- */

typedef struct wire {
    unsigned char *data;
    size_t bytes, room;
} wire;

static void put_byte(wire *w, unsigned char byte)
{
    if (w->bytes < w->room) w->data[w->bytes] = byte;
    w->bytes++;
}

static void put_little(wire *w, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) put_byte(w, (unsigned char)(value >> (8 * i)));
}

static void put_varint(wire *w, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) put_byte(w, (unsigned char)(value | 0x80));
    put_byte(w, (unsigned char)value);
}

static void put_tag(wire *w, unsigned field, unsigned type) { put_varint(w, field << 3 | type); }

static void put_double(wire *w, unsigned field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_tag(w, field, FIXED64);
    put_little(w, bits, 8);
}

static void put_float(wire *w, unsigned field, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_tag(w, field, FIXED32);
    put_little(w, bits, 4);
}

static void put_text(wire *w, unsigned field, const char *text)
{
    size_t n = strlen(text);
    put_tag(w, field, BYTES);
    put_varint(w, n);
    for (size_t i = 0; i < n; i++) put_byte(w, (unsigned char)text[i]);
}

static void put_value(wire *w, const pl_metric *value)
{
    put_text(w, 1, value->key);
    put_float(w, 2, (float)value->value);
}

/* Length of a message: encoded once into nothing. */
static size_t value_bytes(const pl_metric *value)
{
    wire counter = {0};
    put_value(&counter, value);
    return counter.bytes;
}

static void put_summary(wire *w, const pl_metric *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        put_tag(w, 1, BYTES);
        put_varint(w, value_bytes(&values[i]));
        put_value(w, &values[i]);
    }
}

/* ---- records ---- */

static wire begin_event(pl_tensorboard *t, double wall_time, uint64_t step)
{
    wire w = {.data = t->record + FRAME_BEFORE, .room = sizeof t->record - FRAME_BEFORE - FRAME_AFTER};
    put_double(&w, 1, wall_time);
    if (step) { /* zero is what a reader takes an absent field for */
        put_tag(&w, 2, VARINT);
        put_varint(&w, step);
    }
    return w;
}

static pl_status append(pl_tensorboard *t, size_t bytes, pl_error *err)
{
    size_t written;
    int error = pl_io_append(t->fd, t->record, bytes, &written);
    if (error == 0) {
        t->bytes += bytes;
        return PL_OK;
    }
    if (written > 0 && pl_io_truncate(t->fd, t->bytes) != 0) { /* TensorBoard stops at a torn record by itself */
    }
    return pl_fail(err, PL_E_STORAGE, "%s: writing at byte %" PRIu64 " failed: %s%s", t->path, t->bytes,
                   strerror(error), pl_io_hint(error));
}

static pl_status end_event(pl_tensorboard *t, const wire *w, pl_error *err)
{
    if (w->bytes > w->room)
        return pl_fail(err, PL_E_USAGE, "%s: an event of %zu bytes is longer than a record may be (%zu)", t->path,
                       w->bytes, w->room);
    wire frame = {.data = t->record, .room = sizeof t->record};
    put_little(&frame, w->bytes, 8);
    put_little(&frame, masked_crc(t->record, 8), 4);
    frame.bytes += w->bytes;
    put_little(&frame, masked_crc(w->data, w->bytes), 4);
    return append(t, frame.bytes, err);
}

static pl_status create_file(pl_tensorboard *t, pl_error *err)
{
    char host[256], name[400];
    if (gethostname(host, sizeof host) != 0) strcpy(host, "localhost");
    host[sizeof host - 1] = 0;
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "events.out.tfevents.%010" PRIu64 ".%s.%ld.%d", (uint64_t)t->began, host,
                 (long)getpid(), i);
        PL_TRY(pl_path_join(t->path, sizeof t->path, t->folder, name, err));
        t->fd = pl_io_open(t->path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND);
        if (t->fd >= 0 || errno != EEXIST) break;
    }
    if (t->fd < 0) return pl_fail(err, PL_E_STORAGE, "%s: cannot be created: %s", t->path, strerror(errno));
    return PL_OK;
}

static pl_status write_start(pl_tensorboard *t, pl_error *err)
{
    wire w = begin_event(t, t->began, 0);
    put_text(&w, 3, "brain.Event:2");
    PL_TRY(end_event(t, &w, err));
    if (t->first_step == 0) return PL_OK;
    w = begin_event(t, t->began, t->first_step);
    put_tag(&w, 7, BYTES);
    put_varint(&w, 2);
    put_tag(&w, 1, VARINT);
    put_varint(&w, SESSION_START);
    return end_event(t, &w, err);
}

void pl_tensorboard_open(pl_tensorboard *t, const char *folder, double wall_time, uint64_t first_step)
{
    memset(t, 0, sizeof *t); /* touches its pages before "committed" */
    t->fd = -1;
    t->folder = folder;
    t->began = wall_time;
    t->first_step = first_step;
    t->is_open = 1;
}

static pl_status begin_file(pl_tensorboard *t, pl_error *err)
{
    t->bytes = 0;
    PL_TRY(create_file(t, err));
    pl_status status = write_start(t, err);
    if (status == PL_OK) return PL_OK;
    close(t->fd);
    t->fd = -1;
    (void)pl_remove_file(t->path, NULL);
    return status;
}

pl_status pl_tensorboard_write(pl_tensorboard *t, double wall_time, uint64_t step, const pl_metric *values,
                               size_t count, pl_error *err)
{
    wire w, summary = {0};
    if (t->fd < 0) PL_TRY(begin_file(t, err));
    w = begin_event(t, wall_time, step);
    put_summary(&summary, values, count);
    put_tag(&w, 5, BYTES);
    put_varint(&w, summary.bytes);
    put_summary(&w, values, count);
    return end_event(t, &w, err);
}

void pl_tensorboard_close(pl_tensorboard *t)
{
    if (t->is_open && t->fd >= 0) close(t->fd);
    t->is_open = 0;
    t->fd = -1;
}
