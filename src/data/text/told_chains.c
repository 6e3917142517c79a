#include "data/text/told_chains.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/chain.h"
#include "base/line_file.h"

#define HEADER "chain,tokens,right,answer_tokens,answer_right,answer_all_right\n"
enum { NUMBER, TOKENS, RIGHT, ANSWER_TOKENS, ANSWER_RIGHT, ANSWER_ALL, NUMBERS };

typedef struct told {
    uint64_t first;
    const float *row;
    uint64_t count;
} told;

static pl_status put(pl_line_file *l, const void *context, pl_error *err)
{
    const told *t = context;
    pl_line_put(l, HEADER);
    for (uint64_t i = 0; i < t->count; i++) {
        const float *row = t->row + i * PL_CHAIN_COLUMNS;
        PL_TRY(pl_line_begin(l, err));
        pl_line_put(l, "%" PRIu64 ",%.0f,%.0f,%.0f,%.0f,%.0f\n", t->first + i, (double)row[PL_CHAIN_TOKENS],
                    (double)row[PL_CHAIN_RIGHT], (double)row[PL_CHAIN_ANSWER_TOKENS],
                    (double)row[PL_CHAIN_ANSWER_RIGHT], (double)row[PL_CHAIN_ANSWER_ALL_RIGHT]);
    }
    return PL_OK;
}

pl_status pl_told_chains_write(const char *path, uint64_t first, const float *row, uint64_t count, pl_error *err)
{
    return pl_line_file_write(path, put, &(told){first, row, count}, err);
}

static bool parse_line(const char *line, uint64_t number[NUMBERS])
{
    for (int k = 0; k < NUMBERS; k++) {
        char *behind;
        if (*line < '0' || *line > '9') return false;
        number[k] = strtoull(line, &behind, 10);
        if (*behind != (k + 1 < NUMBERS ? ',' : 0)) return false;
        line = behind + 1;
    }
    return number[RIGHT] <= number[TOKENS] && number[ANSWER_RIGHT] <= number[ANSWER_TOKENS] && number[ANSWER_ALL] <= 1;
}

static pl_status add_line(const pl_lines *l, const char *line, pl_told_chains *sum, pl_error *err)
{
    uint64_t number[NUMBERS];
    if (!parse_line(line, number)) return pl_lines_refuse(l, err);
    sum->chains++;
    sum->tokens += number[TOKENS], sum->right += number[RIGHT], sum->answers_right += number[ANSWER_ALL];
    return PL_OK;
}

pl_status pl_told_chains_sum(const char *path, pl_told_chains *sum, pl_error *err)
{
    pl_lines l;
    pl_status status = PL_OK;
    *sum = (pl_told_chains){0};
    PL_TRY(pl_lines_open(&l, path, HEADER, "chain", err));
    for (const char *line; status == PL_OK && (line = pl_lines_next(&l));) status = add_line(&l, line, sum, err);
    pl_lines_close(&l);
    return status;
}
