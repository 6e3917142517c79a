#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/narrow.h"
#include "base/size.h"
#include "data/clouds/frames.h"

#define AGAIN "; delete it, it is made again from the flights"

_Static_assert(sizeof(pl_frames_flight) == 56 && sizeof(pl_frames_record) == 48, "they are written as they are");

/* ---- header ---- */

static pl_status check_numbers(const char *name, const pl_frames_info *i, uint64_t file_bytes, pl_error *err)
{
    const uint64_t limit = UINT64_C(1) << 40;
    const bool fits = i->height >= 1 && i->width >= 1 && i->height <= 65536 && i->width <= 65536 &&
                      i->form <= PL_FRAMES_F16 && i->flights >= 1 && i->flights <= PL_FRAMES_FLIGHTS_MAX &&
                      i->frames >= 1 && i->frames < limit && i->pictures <= i->frames &&
                      i->pictures < UINT64_MAX / 4 / pl_frames_picture_bytes(i);
    if (!fits) return pl_fail(err, PL_E_DATA, "%s: its header contradicts itself" AGAIN, name);
    if (file_bytes == pl_frames_file_bytes(i)) return PL_OK;
    return pl_fail(err, PL_E_DATA,
                   "%s: has %" PRIu64 " bytes, but %" PRIu64 " frames with %" PRIu64 " pictures need %" PRIu64
                   "; it is truncated or damaged" AGAIN,
                   name, file_bytes, i->frames, i->pictures, pl_frames_file_bytes(i));
}

pl_status pl_frames_parse_header(const char *name, const uint8_t h[PL_FRAMES_HEADER_BYTES], uint64_t file_bytes,
                                 pl_frames_info *i, pl_error *err)
{
    if (memcmp(h, PL_FRAMES_MAGIC, 8) != 0) return pl_fail(err, PL_E_DATA, "%s: is not a frame file of Plimsoll", name);
    const uint32_t version = pl_get_u32(h, 8);
    if (version < 1 || version > 2 || pl_get_u32(h, 12) != PL_FRAMES_HEADER_BYTES)
        return pl_fail(err, PL_E_DATA, "%s: is a frame file of version %u; version 1 or 2 was expected", name, version);
    if (pl_get_u64(h, 120) != XXH64(h, 120, 0))
        return pl_fail(err, PL_E_DATA, "%s: its header is damaged (checksum)" AGAIN, name);
    *i = (pl_frames_info){.version = version,
                          .height = pl_get_u32(h, 16),
                          .width = pl_get_u32(h, 20),
                          .form = (pl_frames_form)pl_get_u32(h, 24),
                          .flights = pl_get_u32(h, 28),
                          .frames = pl_get_u64(h, 32),
                          .pictures = pl_get_u64(h, 40),
                          .key = pl_get_u64(h, 48),
                          .records_hash = pl_get_u64(h, 56),
                          .table_hash = pl_get_u64(h, 64)};
    return check_numbers(name, i, file_bytes, err);
}

/* ---- what follows the pictures ---- */

static uint64_t records_at(const pl_frames_info *i)
{
    return pl_frames_records_offset(i) + i->flights * sizeof(pl_frames_flight);
}
static uint64_t table_at(const pl_frames_info *i) { return records_at(i) + i->frames * sizeof(pl_frames_record); }

static pl_status check_hash(const pl_frames *f, uint64_t begin, uint64_t end, uint64_t expected, const char *what,
                            pl_error *err)
{
    uint8_t part[4096];
    XXH64_state_t state;
    XXH64_reset(&state, 0);
    for (uint64_t at = begin; at < end;) {
        const size_t bytes = end - at < sizeof part ? (size_t)(end - at) : sizeof part;
        PL_TRY(pl_file_read_at(f->fd, f->path, at, part, bytes, err));
        XXH64_update(&state, part, bytes);
        at += bytes;
    }
    if (XXH64_digest(&state) == expected) return PL_OK;
    return pl_fail(err, PL_E_DATA, "%s: %s at byte %" PRIu64 " are damaged (checksum)" AGAIN, f->path, what, begin);
}

static pl_status contradiction(const pl_frames *f, const char *what, uint64_t number, pl_error *err)
{
    return pl_fail(err, PL_E_DATA, "%s: %s %" PRIu64 " contradicts the header" AGAIN, f->path, what, number);
}

/* Flights follow each other, pictures are numbered in the order of the frames, and the count of labels is right. */
static pl_status check_flight(const pl_frames *f, uint32_t number, uint64_t *frames, uint64_t *pictures, pl_error *err)
{
    const uint64_t at = pl_frames_records_offset(&f->info) + number * sizeof(pl_frames_flight);
    pl_frames_flight flight;
    uint64_t labels = 0;
    PL_TRY(pl_file_read_at(f->fd, f->path, at, &flight, sizeof flight, err));
    if (!memchr(flight.name, 0, sizeof flight.name) || flight.first != *frames || flight.frames < 1 ||
        flight.frames > f->info.frames - *frames)
        return contradiction(f, "flight", number, err);
    for (*frames += flight.frames; flight.first < *frames; flight.first++) {
        pl_frames_record r;
        PL_TRY(pl_frames_read_records(f, flight.first, flight.first + 1, &r, err));
        const bool has_label = r.profile != PL_FRAMES_NONE;
        if ((r.picture != PL_FRAMES_NONE && r.picture != (*pictures)++) ||
            !(has_label ? isfinite(r.label_km) : isnan(r.label_km)) || !isfinite(r.zenith) || !isfinite(r.azimuth) ||
            !isfinite(r.seconds) || (has_label && r.picture == PL_FRAMES_NONE))
            return contradiction(f, "frame", flight.first, err);
        labels += has_label;
    }
    return labels == flight.labels ? PL_OK : contradiction(f, "flight", number, err);
}

static pl_status check_file(pl_frames *f, uint64_t bytes, pl_error *err)
{
    uint8_t header[PL_FRAMES_HEADER_BYTES];
    uint64_t frames = 0, pictures = 0;
    if (bytes < sizeof header)
        return pl_fail(err, PL_E_DATA, "%s: has %" PRIu64 " bytes; a frame file has at least %d", f->path, bytes,
                       PL_FRAMES_HEADER_BYTES);
    PL_TRY(pl_file_read_at(f->fd, f->path, 0, header, sizeof header, err));
    PL_TRY(pl_frames_parse_header(f->path, header, bytes, &f->info, err));
    const pl_frames_info *i = &f->info;
    PL_TRY(check_hash(f, pl_frames_records_offset(i), table_at(i), i->records_hash, "the records", err));
    PL_TRY(check_hash(f, table_at(i), pl_frames_sources_offset(i), i->table_hash, "the checksums", err));
    for (uint32_t n = 0; n < i->flights; n++) PL_TRY(check_flight(f, n, &frames, &pictures, err));
    if (frames != i->frames) return contradiction(f, "frame", frames, err);
    return pictures == i->pictures ? PL_OK : contradiction(f, "picture", pictures, err);
}

pl_status pl_frames_open(pl_frames *f, const char *path, pl_error *err)
{
    uint64_t bytes;
    f->fd = -1;
    if (strlen(path) >= sizeof f->path) return pl_fail(err, PL_E_USAGE, "the path %.200s… is too long", path);
    strcpy(f->path, path);
    PL_TRY(pl_file_open(path, &f->fd, &bytes, err));
    const pl_status status = check_file(f, bytes, err);
    if (status != PL_OK)
        pl_frames_close(f);
    else
        posix_fadvise(f->fd, 0, 0, POSIX_FADV_RANDOM); /* no read-ahead: windows come in random order */
    return status;
}

void pl_frames_close(pl_frames *f)
{
    if (f->fd >= 0) close(f->fd);
    f->fd = -1;
}

bool pl_frames_read_source(const pl_frames *f, uint32_t number, pl_origin *o)
{
    uint8_t source[PL_FRAMES_SOURCE_BYTES];
    pl_error ignored;
    const uint64_t at = pl_frames_sources_offset(&f->info) + number * sizeof source;
    if (f->info.version < 2 || number >= f->info.flights * PL_FRAMES_SOURCES ||
        pl_file_read_at(f->fd, f->path, at, source, sizeof source, &ignored) != PL_OK ||
        pl_get_u64(source, 40) != XXH64(source, 40, 0))
        return false;
    *o = (pl_origin){.bytes = pl_get_u64(source, 0),
                     .inode = pl_get_u64(source, 8),
                     .mtime_ns = (int64_t)pl_get_u64(source, 16),
                     .ctime_ns = (int64_t)pl_get_u64(source, 24),
                     .content = pl_get_u64(source, 32)};
    return true;
}

/* ---- reading ---- */

pl_status pl_frames_read_flights(const pl_frames *f, pl_frames_flight *all, pl_error *err)
{
    return pl_file_read_at(f->fd, f->path, pl_frames_records_offset(&f->info), all, f->info.flights * sizeof *all, err);
}

pl_status pl_frames_read_records(const pl_frames *f, uint64_t begin, uint64_t end, pl_frames_record *to, pl_error *err)
{
    if (begin > end || end > f->info.frames)
        return pl_fail(err, PL_E_INTERNAL, "%s: frames %" PRIu64 " to %" PRIu64 " were asked for; it has %" PRIu64,
                       f->path, begin, end, f->info.frames);
    return pl_file_read_at(f->fd, f->path, records_at(&f->info) + begin * sizeof *to, to,
                           (size_t)(end - begin) * sizeof *to, err);
}

static void widen(pl_frames_form form, const uint8_t *bytes, uint64_t n, float *out)
{
    for (uint64_t i = 0; i < n; i++)
        if (form == PL_FRAMES_F16) {
            uint16_t half;
            memcpy(&half, bytes + 2 * i, sizeof half);
            out[i] = pl_f32_of_f16(half);
        } else {
            out[i] = (float)bytes[i] / UINT8_MAX;
        }
}

static uint64_t picture_at(const pl_frames_info *i, uint64_t picture)
{
    return pl_frames_records_offset(i) - (i->pictures - picture) * pl_frames_picture_bytes(i);
}

/* Any bytes; as f16 they are in [0.5, 1). */
static void make_noise(const pl_frames_info *i, uint64_t picture, void *bytes)
{
    const uint64_t numbers = pl_frames_picture_bytes(i) / sizeof(uint16_t);
    uint32_t state = (uint32_t)picture * 2654435761u;
    for (uint64_t k = 0; k < numbers; k++) {
        state = state * 1664525u + 1013904223u;
        const uint16_t drawn = (uint16_t)(state >> 16);
        ((uint16_t *)bytes)[k] = i->form == PL_FRAMES_F16 ? (uint16_t)(0x3800 | (drawn & 0x3ff)) : drawn;
    }
}

pl_status pl_frames_read_picture(const pl_frames *f, uint64_t picture, void *bytes, float *out, pl_error *err)
{
    const pl_frames_info *i = &f->info;
    const uint64_t size = pl_frames_picture_bytes(i), at = picture_at(i, picture);
    uint64_t expected;
    if (picture >= i->pictures)
        return pl_fail(err, PL_E_INTERNAL, "%s: picture %" PRIu64 " was asked for; it has %" PRIu64, f->path, picture,
                       i->pictures);
    if (f->fd < 0 && !f->is_noise) return pl_fail(err, PL_E_DATA, "there are no flights, so no picture can be read");
    if (f->fd < 0) {
        make_noise(i, picture, bytes);
        if (out) widen(i->form, bytes, (uint64_t)i->height * i->width, out);
        return PL_OK;
    }
    PL_TRY(pl_file_read_at(f->fd, f->path, table_at(i) + picture * sizeof expected, &expected, sizeof expected, err));
    PL_TRY(pl_file_read_at(f->fd, f->path, at, bytes, size, err));
    if (XXH64(bytes, size, 0) != expected)
        return pl_fail(err, PL_E_DATA,
                       "%s: bytes %" PRIu64 " to %" PRIu64 " are damaged (checksum of picture %" PRIu64 ")" AGAIN,
                       f->path, at, at + size, picture);
    if (out) widen(i->form, bytes, (uint64_t)i->height * i->width, out);
    return PL_OK;
}

/* Only whole pages can be dropped: so also those that it shares with its neighbours. */
void pl_frames_drop_picture(const pl_frames *f, uint64_t picture)
{
    const uint64_t page = 4096, at = picture_at(&f->info, picture), first = at / page * page;
    const uint64_t end = pl_align_up(at + pl_frames_picture_bytes(&f->info), page);
    if (f->fd >= 0) posix_fadvise(f->fd, (off_t)first, (off_t)(end - first), POSIX_FADV_DONTNEED);
}
