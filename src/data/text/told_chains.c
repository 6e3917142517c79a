#include "data/text/told_chains.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/chain.h"
#include "base/line_file.h"

#define HEADER         "chain,tokens,right,answer_tokens,answer_right,answer_all_right\n"
#define FILE_BYTES_MAX (UINT64_C(1) << 32)
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

static bool parse_line(const char *line, const char *end, uint64_t number[NUMBERS])
{
    for (int k = 0; k < NUMBERS; k++) {
        char *behind;
        if (*line < '0' || *line > '9') return false;
        number[k] = strtoull(line, &behind, 10);
        if (k + 1 < NUMBERS ? *behind != ',' : behind != end) return false;
        line = behind + 1;
    }
    return number[RIGHT] <= number[TOKENS] && number[ANSWER_RIGHT] <= number[ANSWER_TOKENS] && number[ANSWER_ALL] <= 1;
}

static pl_status parse(const char *path, char *text, pl_told_chains *sum, pl_error *err)
{
    if (strncmp(text, HEADER, strlen(HEADER)) != 0)
        return pl_fail(err, PL_E_DATA, "%s:1: is no file of what is told of chains; its first line is not \"%.*s\"",
                       path, (int)strlen(HEADER) - 1, HEADER);
    for (const char *line = text + strlen(HEADER); *line;) {
        const char *end = strchr(line, '\n');
        uint64_t number[NUMBERS];
        if (!end || !parse_line(line, end, number))
            return pl_fail(err, PL_E_DATA,
                           "%s:%" PRIu64 ": is no chain; delete the file and train again with --resume, which makes it "
                           "anew",
                           path, sum->chains + 2);
        sum->chains++;
        sum->tokens += number[TOKENS], sum->right += number[RIGHT], sum->answers_right += number[ANSWER_ALL];
        line = end + 1;
    }
    return PL_OK;
}

pl_status pl_told_chains_sum(const char *path, pl_told_chains *sum, pl_error *err)
{
    char *text;
    size_t bytes;
    *sum = (pl_told_chains){0};
    PL_TRY(pl_file_read_all(path, FILE_BYTES_MAX, &text, &bytes, err));
    pl_status status = parse(path, text, sum, err);
    pl_free(text);
    return status;
}
