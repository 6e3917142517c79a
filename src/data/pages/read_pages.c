#include "data/pages/read_pages.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/told.h"
#include "base/line_file.h"

static const char header[] = "page,words,right,all_right,q_halt,fusion_gate,adapter_gate,planner_gate\n";
enum { NUMBERS = 5 /* that each line has */ };
#define FILE_BYTES_MAX (UINT64_C(1) << 32)

/* ---- writing ---- */

typedef struct read {
    const uint32_t *page;
    const float *told;
    uint64_t count;
} read;

static void put_gate(pl_line_file *l, float mean)
{
    pl_line_put(l, ",");
    if (mean >= 0) pl_line_put(l, "%.6g", (double)mean);
}

static pl_status put_all(pl_line_file *l, const void *context, pl_error *err)
{
    const read *r = context;
    pl_line_put(l, "%s", header);
    for (uint64_t i = 0; i < r->count; i++) {
        const float *told = r->told + i * PL_TOLD_COLUMNS;
        PL_TRY(pl_line_begin(l, err));
        pl_line_put(l, "%" PRIu32 ",%.0f,%.0f,%.0f,%.9g", r->page[i], (double)told[PL_TOLD_WORDS],
                    (double)told[PL_TOLD_RIGHT], (double)told[PL_TOLD_ALL_RIGHT], (double)told[PL_TOLD_HALT]);
        put_gate(l, told[PL_TOLD_FUSION + 1]);
        put_gate(l, told[PL_TOLD_ADAPTER + 1]);
        put_gate(l, told[PL_TOLD_PLANNER]);
        pl_line_put(l, "\n");
    }
    return PL_OK;
}

pl_status pl_read_pages_write(const char *path, const uint32_t *page, const float *told, uint64_t count, pl_error *err)
{
    return pl_line_file_write(path, put_all, &(read){page, told, count}, err);
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
