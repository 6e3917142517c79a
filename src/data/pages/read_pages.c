#include "data/pages/read_pages.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/told.h"

static const char header[] = "page,words,right,all_right,q_halt,fusion_gate,adapter_gate,planner_gate\n";
enum { LINE_BYTES = 192, BLOCK_BYTES = 4096, NUMBERS = 5 /* that each line has */ };
#define FILE_BYTES_MAX (UINT64_C(1) << 32)

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

static void put(block *b, const char *format, double number)
{
    b->bytes += (size_t)snprintf(b->text + b->bytes, LINE_BYTES / 8, format, number);
}

static void put_gate(block *b, float mean)
{
    b->text[b->bytes++] = ',';
    if (mean >= 0) put(b, "%.6g", (double)mean);
}

static pl_status put_line(block *b, uint32_t page, const float *told, pl_error *err)
{
    static const int counts[] = {PL_TOLD_WORDS, PL_TOLD_RIGHT, PL_TOLD_ALL_RIGHT};
    if (b->bytes + LINE_BYTES > BLOCK_BYTES) PL_TRY(flush(b, err));
    put(b, "%.0f", (double)page);
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) put(b, ",%.0f", (double)told[counts[k]]);
    put(b, ",%.9g", (double)told[PL_TOLD_HALT]);
    put_gate(b, told[PL_TOLD_FUSION + 1]);
    put_gate(b, told[PL_TOLD_ADAPTER + 1]);
    put_gate(b, told[PL_TOLD_PLANNER]);
    b->text[b->bytes++] = '\n';
    return PL_OK;
}

static pl_status put_all(block *b, const uint32_t *page, const float *told, uint64_t count, pl_error *err)
{
    memcpy(b->text, header, sizeof header - 1);
    b->bytes = sizeof header - 1;
    for (uint64_t i = 0; i < count; i++) PL_TRY(put_line(b, page[i], told + i * PL_TOLD_COLUMNS, err));
    return flush(b, err);
}

pl_status pl_read_pages_write(const char *path, const uint32_t *page, const float *told, uint64_t count, pl_error *err)
{
    pl_file_writer file;
    block b = {.file = &file};
    PL_TRY(pl_file_create(&file, path, err));
    pl_status status = put_all(&b, page, told, count, err);
    if (status == PL_OK) return pl_file_commit(&file, err);
    pl_file_abandon(&file);
    return status;
}

/* ---- reading ---- */

/* The numbers that each line has; what stands behind them is for people. */
static bool parse_line(const char *line, double number[NUMBERS])
{
    for (int k = 0; k < NUMBERS; k++) {
        char *end;
        number[k] = strtod(line, &end);
        if (end == line || *end != ',') return false;
        line = end + 1;
    }
    return true;
}

/* Counts that a page can have. */
static bool is_sound(const double number[NUMBERS])
{
    const double words = number[1], right = number[2], all = number[3];
    return words >= 0 && words <= 1e6 && right >= 0 && right <= words && (all == 0 || all == 1) && !isnan(number[4]);
}

static void add(const double number[NUMBERS], pl_read_pages *sum)
{
    sum->pages++;
    sum->words += (uint64_t)number[1], sum->right += (uint64_t)number[2], sum->all_right += number[3] > 0;
    sum->halted_rightly += (number[4] > 0) == (number[3] > 0);
}

static pl_status parse(const char *path, char *text, pl_read_pages *sum, pl_error *err)
{
    if (strncmp(text, header, sizeof header - 1) != 0)
        return pl_fail(err, PL_E_DATA, "%s:1: is no file of pages that were read; its first line is not \"%.*s\"", path,
                       (int)sizeof header - 2, header);
    for (char *line = text + sizeof header - 1; *line;) {
        double number[NUMBERS];
        char *end = strchr(line, '\n');
        if (end) *end = 0;
        if (!end || !parse_line(line, number) || !is_sound(number))
            return pl_fail(err, PL_E_DATA,
                           "%s:%" PRIu64 ": is no page; delete the file and train again with --resume, which makes it "
                           "anew",
                           path, sum->pages + 2);
        add(number, sum);
        line = end + 1;
    }
    return PL_OK;
}

pl_status pl_read_pages_sum(const char *path, pl_read_pages *sum, pl_error *err)
{
    char *text;
    size_t bytes;
    *sum = (pl_read_pages){0};
    PL_TRY(pl_file_read_all(path, FILE_BYTES_MAX, &text, &bytes, err));
    pl_status status = parse(path, text, sum, err);
    pl_free(text);
    return status;
}
