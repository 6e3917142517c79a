#include "store/sum_file.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checksum.h"
#include "base/file.h"

enum { BUFFER_BYTES = 8 << 10, LINE_BYTES = 512 };

static pl_status path_of(const char *path, char sum_path[PL_FILE_PATH_MAX], pl_error *err)
{
    const int bytes = snprintf(sum_path, PL_FILE_PATH_MAX, "%s" PL_SUM_FILE_ENDING, path);
    return bytes < PL_FILE_PATH_MAX ? PL_OK : pl_fail(err, PL_E_USAGE, "the path %.200s… is too long", path);
}

/* "0123456789abcdef  predictions.csv" */
static pl_status print_line(const char *path, char line[LINE_BYTES], pl_error *err)
{
    char buffer[BUFFER_BYTES], digits[PL_CHECKSUM_TEXT_BYTES];
    uint64_t value, bytes;
    const char *slash = strrchr(path, '/');
    PL_TRY(pl_checksum_file(path, buffer, sizeof buffer, &value, &bytes, err));
    snprintf(line, LINE_BYTES, "%s  %.255s\n", pl_checksum_print(value, digits), slash ? slash + 1 : path);
    return PL_OK;
}

pl_status pl_sum_file_write(const char *path, pl_error *err)
{
    char sum_path[PL_FILE_PATH_MAX], line[LINE_BYTES];
    PL_TRY(path_of(path, sum_path, err));
    PL_TRY(print_line(path, line, err));
    return pl_file_write_all(sum_path, line, strlen(line), err);
}

pl_status pl_sum_file_check(const char *path, bool *is_sound, pl_error *err)
{
    char sum_path[PL_FILE_PATH_MAX], line[LINE_BYTES], *says;
    size_t bytes;
    bool has_sum;
    PL_TRY(path_of(path, sum_path, err));
    PL_TRY(pl_file_look(path, is_sound, err));
    if (!*is_sound) return PL_OK;
    PL_TRY(pl_file_look(sum_path, &has_sum, err));
    if (!has_sum) return PL_OK;
    PL_TRY(print_line(path, line, err));
    const pl_status status = pl_file_read_all(sum_path, LINE_BYTES, &says, &bytes, err);
    *is_sound = status == PL_OK && bytes == strlen(line) && memcmp(says, line, bytes) == 0;
    if (status == PL_OK) pl_free(says);
    if (status != PL_E_DATA) return status;
    pl_error_clear(err); /* longer than such a file is */
    return PL_OK;
}
