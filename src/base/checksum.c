#include "base/checksum.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"

_Static_assert(sizeof(XXH64_state_t) <= sizeof(pl_checksum), "pl_checksum must hold xxHash's state");

void pl_checksum_init(pl_checksum *c)
{
    XXH64_state_t state;
    XXH64_reset(&state, 0);
    memcpy(c->state, &state, sizeof state);
}

void pl_checksum_update(pl_checksum *c, const void *data, size_t bytes)
{
    XXH64_state_t state; /* copied in and out (88 bytes), so that no pointer is cast */
    if (bytes == 0) return;
    memcpy(&state, c->state, sizeof state);
    XXH64_update(&state, data, bytes);
    memcpy(c->state, &state, sizeof state);
}

uint64_t pl_checksum_value(const pl_checksum *c)
{
    XXH64_state_t state;
    memcpy(&state, c->state, sizeof state);
    return XXH64_digest(&state);
}

uint64_t pl_checksum_of(const void *data, size_t bytes) { return XXH64(data, bytes, 0); }

const char *pl_checksum_print(uint64_t value, char text[PL_CHECKSUM_TEXT_BYTES])
{
    for (int i = 0; i < 16; i++) text[i] = "0123456789abcdef"[value >> (60 - 4 * i) & 15];
    text[16] = 0;
    return text;
}

int pl_checksum_parse(const char *text, uint64_t *value)
{
    static const char digits[] = "0123456789abcdef";
    *value = 0;
    if (strlen(text) != 16) return -1;
    for (int i = 0; i < 16; i++) {
        const char *digit = strchr(digits, text[i]);
        if (!digit) return -1;
        *value = *value << 4 | (uint64_t)(digit - digits);
    }
    return 0;
}

pl_status pl_checksum_file(const char *path, void *buffer, size_t buffer_bytes, uint64_t *value, uint64_t *bytes,
                           pl_error *err)
{
    int fd;
    pl_checksum sum;
    pl_status status = PL_OK;
    PL_TRY(pl_file_open(path, &fd, bytes, err));
    pl_checksum_init(&sum);
    for (uint64_t at = 0; at < *bytes && status == PL_OK;) {
        size_t n = *bytes - at < buffer_bytes ? (size_t)(*bytes - at) : buffer_bytes;
        status = pl_file_read_at(fd, path, at, buffer, n, err);
        if (status == PL_OK) pl_checksum_update(&sum, buffer, n);
        posix_fadvise(fd, (off_t)at, (off_t)n, POSIX_FADV_DONTNEED);
        at += n;
    }
    close(fd);
    *value = pl_checksum_value(&sum);
    return status;
}
