#include "data/clouds/predictions.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static const char header[] = "flight,frame,seconds,true_km,predicted_km,mean_km\n";
enum { LINE_BYTES = 256, BLOCK_BYTES = 4096, FIELDS = 6 };
#define FILE_BYTES_MAX (UINT64_C(1) << 30)

/* ---- writing ---- */

/* Lines are gathered: a system call for each would be slow on a disk far away. */
typedef struct block {
    pl_file_writer *file;
    size_t bytes;
    char text[BLOCK_BYTES];
} block;

static pl_status flush(block *b, pl_error *err)
{
    const size_t bytes = b->bytes;
    b->bytes = 0;
    return pl_file_write(b->file, b->text, bytes, err);
}

static pl_status put_line(block *b, const pl_prediction *p, pl_error *err)
{
    if (b->bytes + LINE_BYTES > BLOCK_BYTES) PL_TRY(flush(b, err));
    const int n = snprintf(b->text + b->bytes, LINE_BYTES, "%s,%" PRIu64 ",%.17g,%.9g,%.9g,%.9g\n", p->flight, p->frame,
                           p->seconds, p->truth, p->predicted, p->mean);
    b->bytes += (size_t)n;
    return PL_OK;
}

static pl_status put_all(block *b, void (*at)(const void *, uint64_t, pl_prediction *), const void *context,
                         uint64_t count, pl_error *err)
{
    memcpy(b->text, header, sizeof header - 1);
    b->bytes = sizeof header - 1;
    for (uint64_t i = 0; i < count; i++) {
        pl_prediction p;
        at(context, i, &p);
        PL_TRY(put_line(b, &p, err));
    }
    return flush(b, err);
}

pl_status pl_predictions_write(const char *path, void (*at)(const void *context, uint64_t i, pl_prediction *),
                               const void *context, uint64_t count, pl_error *err)
{
    pl_file_writer file;
    block b = {.file = &file};
    PL_TRY(pl_file_create(&file, path, err));
    pl_status status = put_all(&b, at, context, count, err);
    if (status == PL_OK) return pl_file_commit(&file, err);
    pl_file_abandon(&file);
    return status;
}

/* ---- reading ---- */

static bool parse_number(const char *text, double *value)
{
    char *end;
    *value = strtod(text, &end);
    return end != text && *end == 0;
}

/* Cuts the line at its commas. */
static bool split(char *line, char *field[FIELDS])
{
    int count = 0;
    for (char *next = line; next && count < FIELDS; count++) {
        field[count] = next;
        next = strchr(next, ',');
        if (next) *next++ = 0;
        if (count == FIELDS - 1 && next) return false;
    }
    return count == FIELDS;
}

static bool parse_line(char *line, pl_prediction *p)
{
    char *field[FIELDS];
    double frame;
    if (!split(line, field) || strlen(field[0]) >= sizeof p->flight || !field[0][0]) return false;
    snprintf(p->flight, sizeof p->flight, "%s", field[0]);
    if (!parse_number(field[1], &frame) || !(frame >= 0) || frame > 0x1p53) return false;
    p->frame = (uint64_t)frame;
    return parse_number(field[2], &p->seconds) && parse_number(field[3], &p->truth) &&
           parse_number(field[4], &p->predicted) && parse_number(field[5], &p->mean);
}

static uint64_t count_lines(const char *text)
{
    uint64_t lines = 0;
    for (; *text; text++) lines += *text == '\n';
    return lines;
}

static pl_status parse(const char *path, char *text, pl_prediction *all, uint64_t *count, pl_error *err)
{
    *count = 0;
    if (strncmp(text, header, sizeof header - 1) != 0)
        return pl_fail(err, PL_E_DATA, "%s:1: is no file of predictions; its first line is not \"%.*s\"", path,
                       (int)sizeof header - 2, header);
    for (char *line = text + sizeof header - 1; *line; (*count)++) {
        char *end = strchr(line, '\n');
        if (end) *end = 0;
        if (!end || !parse_line(line, &all[*count]))
            return pl_fail(err, PL_E_DATA,
                           "%s:%" PRIu64 ": is no prediction; delete the file and train again with --resume, which "
                           "makes it anew",
                           path, *count + 2);
        line = end + 1;
    }
    return PL_OK;
}

pl_status pl_predictions_read(const char *path, pl_prediction **all, uint64_t *count, pl_error *err)
{
    char *text;
    size_t bytes;
    *all = NULL;
    PL_TRY(pl_file_read_all(path, FILE_BYTES_MAX, &text, &bytes, err));
    *all = pl_alloc(count_lines(text) + 1, sizeof **all);
    pl_status status = *all ? parse(path, text, *all, count, err)
                            : pl_fail(err, PL_E_NOMEM, "no memory for the predictions of %s", path);
    pl_free(text);
    if (status == PL_OK) return PL_OK;
    pl_free(*all);
    *all = NULL;
    return status;
}
