#include "data/pages/read_pages.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>

#include "base/line_file.h"
#include "base/locale.h"
#include "base/told.h"

enum { NUMBERS_MAX = 5 };

/* What a file holds, as its first line says it: of each line so many numbers, behind which others may stand that are
 * for people alone. */
typedef struct form {
    const char *header;
    int numbers;
    bool (*add)(const double number[], pl_read_pages *); /* false: no page has such numbers */
} form;

static bool add_read(const double number[], pl_read_pages *sum)
{
    const double words = number[1], right = number[2], all = number[3];
    if (!(words >= 0 && words <= 1e6 && right >= 0 && right <= words && (all == 0 || all == 1)) || isnan(number[4]))
        return false;
    sum->words += (uint64_t)words, sum->right += (uint64_t)right, sum->all_right += all > 0;
    sum->halted_rightly += (number[4] > 0) == (all > 0);
    return true;
}

static bool add_cleaned(const double number[], pl_read_pages *sum)
{
    if (!(number[1] >= 0 && number[1] <= FLT_MAX && number[2] >= 0 && number[2] <= FLT_MAX)) return false;
    sum->noise += number[1], sum->noise_left += number[2];
    return true;
}

static bool add_chosen(const double number[], pl_read_pages *sum)
{
    if (!(number[3] >= 0 && number[3] <= FLT_MAX) || !add_cleaned(number, sum)) return false;
    sum->denoised_left += number[3];
    return true;
}

static const form forms[PL_LINES_KINDS] = {
    [PL_LINES_READ] = {"page,words,right,all_right,q_halt,fusion_gate,adapter_gate,planner_gate\n", 5, add_read},
    [PL_LINES_CLEANED] = {"page,noise,noise_left,adapter_gate\n", 3, add_cleaned},
    [PL_LINES_CHOSEN] = {"page,noise,noise_left,denoised_left,size,across,down,strength\n", 4, add_chosen}};

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

static pl_status put_read(pl_line_file *l, const void *context, pl_error *err)
{
    const read *r = context;
    pl_line_put(l, "%s", forms[PL_LINES_READ].header);
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
    return pl_line_file_write(path, put_read, &(read){page, told, count}, err);
}

static pl_status put_cleaned(pl_line_file *l, const void *context, pl_error *err)
{
    const read *r = context;
    pl_line_put(l, "%s", forms[PL_LINES_CLEANED].header);
    for (uint64_t i = 0; i < r->count; i++) {
        const float *told = r->told + i * PL_TOLD_NOISE_COLUMNS;
        PL_TRY(pl_line_begin(l, err));
        pl_line_put(l, "%" PRIu32 ",%.9g,%.9g", r->page[i], (double)told[PL_TOLD_NOISE],
                    (double)told[PL_TOLD_NOISE_LEFT]);
        put_gate(l, told[PL_TOLD_NOISE_ADAPTER + 1]);
        pl_line_put(l, "\n");
    }
    return PL_OK;
}

pl_status pl_cleaned_pages_write(const char *path, const uint32_t *page, const float *told, uint64_t count,
                                 pl_error *err)
{
    return pl_line_file_write(path, put_cleaned, &(read){page, told, count}, err);
}

static pl_status put_chosen(pl_line_file *l, const void *context, pl_error *err)
{
    const read *r = context;
    pl_line_put(l, "%s", forms[PL_LINES_CHOSEN].header);
    for (uint64_t i = 0; i < r->count; i++) {
        const float *told = r->told + i * PL_TOLD_POLICY_COLUMNS;
        const pl_policy_choice c = pl_policy_choose(told + PL_TOLD_POLICY);
        PL_TRY(pl_line_begin(l, err));
        pl_line_put(l, "%" PRIu32 ",%.9g,%.9g,%.9g,%d,%d,%d,%.6g\n", r->page[i], (double)told[PL_TOLD_NOISE],
                    (double)told[PL_TOLD_NOISE_LEFT], (double)told[PL_TOLD_DENOISED], c.size, c.across, c.down,
                    c.strength);
    }
    return PL_OK;
}

pl_status pl_chosen_pages_write(const char *path, const uint32_t *page, const float *told, uint64_t count,
                                pl_error *err)
{
    return pl_line_file_write(path, put_chosen, &(read){page, told, count}, err);
}

/* ---- reading ---- */

static bool parse_line(const char *line, int numbers, double number[NUMBERS_MAX])
{
    for (int k = 0; k < numbers; k++) {
        char *end;
        number[k] = pl_read_double(line, &end);
        if (end == line || *end != ',') return false;
        line = end + 1;
    }
    return true;
}

static pl_status add_line(const pl_lines *l, const char *line, const form *f, pl_read_pages *sum, pl_error *err)
{
    double number[NUMBERS_MAX];
    if (!parse_line(line, f->numbers, number) || !f->add(number, sum)) return pl_lines_refuse(l, err);
    sum->pages++;
    return PL_OK;
}

pl_status pl_read_pages_sum(const char *path, pl_page_lines_kind kind, pl_read_pages *sum, pl_error *err)
{
    pl_lines l;
    pl_status status = PL_OK;
    *sum = (pl_read_pages){0};
    PL_TRY(pl_lines_open(&l, path, forms[kind].header, "page", err));
    for (const char *line; status == PL_OK && (line = pl_lines_next(&l));)
        status = add_line(&l, line, &forms[kind], sum, err);
    pl_lines_close(&l);
    if (status == PL_OK && !sum->pages) status = pl_fail(err, PL_E_DATA, "%s: has no page; " PL_LINES_REMEDY, path);
    return status;
}
