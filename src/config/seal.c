/* A config that a run keeps decides what the run goes on with, and in YAML a flipped bit is another number. So it
 * begins with a mark and ends with a checksum, in comments, and where either is, both must be right: neither can be
 * damaged so that the file passes for one of a person, or of a build before this. */
#include <string.h>

#include "base/checksum.h"
#include "config/schema.h"

#define MARK     "# plimsoll.config/2: kept by a run; the last line is the checksum of all others\n"
#define KIND     "# plimsoll.config/"
#define CHECKSUM "# checksum "

enum { LAST_BYTES = sizeof CHECKSUM - 1 + 16 + 1 };

void pl_config_begin_sealed(pl_str *out) { pl_str_append(out, MARK); }

void pl_config_end_sealed(pl_str *out)
{
    char digits[PL_CHECKSUM_TEXT_BYTES];
    if (out->failed) return;
    pl_checksum_print(pl_checksum_of(out->data, out->bytes), digits);
    pl_str_printf(out, CHECKSUM "%s\n", digits);
}

static bool begins(const char *text, size_t bytes, const char *with)
{
    return bytes >= strlen(with) && memcmp(text, with, strlen(with)) == 0;
}

/* A line that a person's comment is not. */
static bool is_checksum_line(const char *line, size_t bytes)
{
    if (bytes != LAST_BYTES || !begins(line, bytes, CHECKSUM) || line[bytes - 1] != '\n') return false;
    for (size_t i = sizeof CHECKSUM - 1; i + 1 < bytes; i++)
        if (!strchr("0123456789abcdef", line[i])) return false;
    return true;
}

/* Where its last line begins, one without an end, too. */
static size_t last_line(const char *text, size_t bytes)
{
    size_t at = bytes && text[bytes - 1] == '\n' ? bytes - 1 : bytes;
    while (at && text[at - 1] != '\n') at--;
    return at;
}

static bool is_right(const char *text, size_t bytes, size_t last)
{
    char digits[PL_CHECKSUM_TEXT_BYTES] = {0};
    uint64_t expected;
    if (!begins(text, bytes, MARK) || !is_checksum_line(text + last, bytes - last)) return false;
    memcpy(digits, text + last + sizeof CHECKSUM - 1, 16);
    return pl_checksum_parse(digits, &expected) == 0 && expected == pl_checksum_of(text, last);
}

pl_status pl_config_check_sealed(const char *name, const char *text, size_t bytes, pl_error *err)
{
    const size_t last = last_line(text, bytes);
    if (!begins(text, bytes, KIND) && !is_checksum_line(text + last, bytes - last)) return PL_OK;
    if (is_right(text, bytes, last)) return PL_OK;
    return pl_fail(
        err, PL_E_DATA,
        "%.300s:1:1: the config is not as the run wrote it: it is damaged, or was edited. If you edited it on "
        "purpose, take out its first line and its last (\"" KIND "…\", \"" CHECKSUM "…\"); else put a copy of it back",
        name);
}
