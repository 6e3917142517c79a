#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/size.h"
#include "data/pages/texts_index.h"

#define AGAIN "; delete it, it is made again from the texts"

/* Bytes that the places of texts lie in. */
static uint64_t extent_of(pl_texts_form form, const pl_texts_info *i)
{
    return form == PL_TEXTS_GATHERED ? i->gathered_bytes : i->source.bytes;
}

static pl_status check_numbers(const char *name, pl_texts_form form, const pl_texts_info *i, uint64_t file_bytes,
                               pl_error *err)
{
    const uint64_t limit = UINT64_C(1) << 56;
    const bool is_folder = form == PL_TEXTS_FOLDER;
    const bool is_known = form <= PL_TEXTS_GATHERED && form != PL_TEXTS_GRAMMAR;
    const bool fits = is_known && i->count >= 1 && i->count < limit && i->names_bytes < limit &&
                      is_folder == (i->names_bytes > 0) && i->source.bytes < limit &&
                      i->longest <= extent_of(form, i) && i->gathered_bytes < limit;
    if (!fits) return pl_fail(err, PL_E_DATA, "%s: its header contradicts itself" AGAIN, name);
    if (file_bytes == pl_texts_index_bytes(i)) return PL_OK;
    return pl_fail(err, PL_E_DATA,
                   "%s: has %" PRIu64 " bytes, but %" PRIu64 " texts need %" PRIu64
                   "; it is truncated or damaged" AGAIN,
                   name, file_bytes, i->count, pl_texts_index_bytes(i));
}

pl_status pl_texts_parse_header(const char *name, const uint8_t h[PL_TEXTS_HEADER_BYTES], uint64_t file_bytes,
                                pl_texts_form *form, pl_texts_info *i, pl_error *err)
{
    if (memcmp(h, PL_TEXTS_MAGIC, 8) != 0)
        return pl_fail(err, PL_E_DATA, "%s: is not an index of texts of Plimsoll", name);
    if (pl_get_u32(h, 8) != 1 || pl_get_u32(h, 12) != PL_TEXTS_HEADER_BYTES ||
        pl_get_u32(h, 20) != PL_TEXTS_ENTRY_BYTES)
        return pl_fail(err, PL_E_DATA, "%s: is an index of texts of version %u; version 1 was expected", name,
                       pl_get_u32(h, 8));
    if (pl_get_u64(h, 120) != XXH64(h, 120, 0))
        return pl_fail(err, PL_E_DATA, "%s: its header is damaged (checksum)" AGAIN, name);
    *form = (pl_texts_form)pl_get_u32(h, 16);
    *i = (pl_texts_info){.recipe = pl_get_u64(h, 24),
                         .count = pl_get_u64(h, 32),
                         .source = {.bytes = pl_get_u64(h, 48),
                                    .inode = pl_get_u64(h, 112),
                                    .mtime_ns = (int64_t)pl_get_u64(h, 56),
                                    .ctime_ns = (int64_t)pl_get_u64(h, 104),
                                    .content = pl_get_u64(h, 64)},
                         .listing = pl_get_u64(h, 72),
                         .gathered_bytes = pl_get_u64(h, 40),
                         .names_bytes = pl_get_u64(h, 80),
                         .longest = pl_get_u64(h, 88),
                         .body_hash = pl_get_u64(h, 96)};
    return check_numbers(name, *form, i, file_bytes, err);
}

static pl_status check_body(int fd, const char *path, uint64_t end, uint64_t expected, pl_error *err)
{
    uint64_t found;
    PL_TRY(pl_origin_hash(fd, path, PL_TEXTS_HEADER_BYTES, end, &found, err));
    if (found == expected) return PL_OK;
    return pl_fail(err, PL_E_DATA, "%s: is damaged behind its header (checksum)" AGAIN, path);
}

static pl_status check_file(int fd, const char *path, uint64_t bytes, pl_texts_form *form, pl_texts_info *i,
                            pl_error *err)
{
    uint8_t header[PL_TEXTS_HEADER_BYTES];
    if (bytes < sizeof header)
        return pl_fail(err, PL_E_DATA, "%s: has %" PRIu64 " bytes; an index of texts has at least %d", path, bytes,
                       PL_TEXTS_HEADER_BYTES);
    PL_TRY(pl_file_read_at(fd, path, 0, header, sizeof header, err));
    PL_TRY(pl_texts_parse_header(path, header, bytes, form, i, err));
    return check_body(fd, path, bytes, i->body_hash, err);
}

pl_status pl_texts_open_index(const char *path, int *fd, pl_texts_form *form, pl_texts_info *info, pl_error *err)
{
    uint64_t bytes;
    PL_TRY(pl_file_open(path, fd, &bytes, err));
    const pl_status status = check_file(*fd, path, bytes, form, info, err);
    if (status != PL_OK) close(*fd), *fd = -1;
    return status;
}

static pl_status contradiction(const char *path, uint64_t at, pl_error *err)
{
    return pl_fail(err, PL_E_DATA, "%s: what stands at byte %" PRIu64 " contradicts the header" AGAIN, path, at);
}

pl_status pl_texts_read_place(int fd, const char *path, const pl_texts_info *i, pl_texts_form form, uint64_t number,
                              pl_text_place *p, pl_error *err)
{
    const uint64_t at = pl_texts_entries_at(i) + number * PL_TEXTS_ENTRY_BYTES;
    const pl_text_encoding other = form == PL_TEXTS_JSONL || form == PL_TEXTS_SQUAD ? PL_TEXT_JSON
                                   : form == PL_TEXTS_CSV                           ? PL_TEXT_CSV
                                                                                    : 0;
    uint8_t entry[PL_TEXTS_ENTRY_BYTES];
    PL_TRY(pl_file_read_at(fd, path, at, entry, sizeof entry, err));
    const uint64_t word = pl_get_u64(entry, 8);
    *p = (pl_text_place){pl_get_u64(entry, 0), word << 2 >> 2, (pl_text_encoding)(word >> 62)};
    const uint64_t offset = form == PL_TEXTS_FOLDER ? 0 : p->offset;
    const uint64_t extent = extent_of(form, i);
    const bool fits = p->bytes <= i->longest && offset <= extent && p->bytes <= extent - offset;
    if (fits && (p->encoding == PL_TEXT_RAW || p->encoding == other)) return PL_OK;
    return contradiction(path, at, err);
}

pl_status pl_texts_read_file(int fd, const char *path, const pl_texts_info *i, uint64_t offset,
                             char name[PL_FILE_PATH_MAX], int64_t *mtime_ns, pl_error *err)
{
    const uint64_t at = PL_TEXTS_HEADER_BYTES + offset;
    uint8_t head[PL_TEXTS_FILE_BYTES];
    if (offset >= i->names_bytes || i->names_bytes - offset < sizeof head) return contradiction(path, at, err);
    PL_TRY(pl_file_read_at(fd, path, at, head, sizeof head, err));
    const uint32_t bytes = pl_get_u32(head, 8);
    if (bytes == 0 || bytes >= PL_FILE_PATH_MAX || bytes > i->names_bytes - offset - sizeof head)
        return contradiction(path, at, err);
    PL_TRY(pl_file_read_at(fd, path, at + sizeof head, name, bytes, err));
    name[bytes] = 0;
    *mtime_ns = (int64_t)pl_get_u64(head, 0);
    return strlen(name) == bytes ? PL_OK : contradiction(path, at, err);
}

pl_status pl_texts_gathered_path(char path[PL_FILE_PATH_MAX], const char *index_path, pl_error *err)
{
    if (snprintf(path, PL_FILE_PATH_MAX, "%s.gathered", index_path) < PL_FILE_PATH_MAX) return PL_OK;
    return pl_fail(err, PL_E_USAGE, "the path %.200s… is too long", index_path);
}
