/* How many tokens behind the latents, and how many whole answers, are the likeliest ones behind what stands before
 * them. Where no step is left, that is what writing the likeliest token, again and again, would answer. */
#include "base/chain.h"
#include "data/text/chain_data.h"
#include "data/text/told_chains.h"
#include "systems/chain.h"

enum { SHOWN = PL_METRIC_IN_FILE | PL_METRIC_VALIDATED };

static uint64_t rows_of(const pl_chain_data *c, uint64_t count)
{
    const uint64_t rows = count / PL_CHAIN_COLUMNS, there = c->count[PL_PART_VALIDATION];
    return rows < there ? rows : there;
}

static double sum(const float *row, uint64_t rows, int column)
{
    double all = 0;
    for (uint64_t i = 0; i < rows; i++) all += (double)row[i * PL_CHAIN_COLUMNS + (uint64_t)column];
    return all;
}

static pl_loss_metric share_of(const char *key, const char *words, double part, double of)
{
    return (pl_loss_metric){key, words, words, 4, 3, SHOWN, of > 0 ? part / of : 0};
}

size_t pl_chain_measure(const pl_data *data, const pl_predicted *p, pl_loss_metric *to)
{
    const uint64_t rows = rows_of(pl_chain_data_of(data), p->count);
    to[0] = share_of("token_accuracy", "tokens right", sum(p->row, rows, PL_CHAIN_RIGHT),
                     sum(p->row, rows, PL_CHAIN_TOKENS));
    to[1] = share_of("answer_accuracy", "answers right", sum(p->row, rows, PL_CHAIN_ANSWER_ALL_RIGHT), (double)rows);
    return 2;
}

pl_status pl_chain_keep_predictions(const pl_data *data, const float *predictions, uint64_t count, const char *path,
                                    pl_error *err)
{
    const pl_chain_data *c = pl_chain_data_of(data);
    return pl_told_chains_write(path, c->first[PL_PART_VALIDATION], predictions, rows_of(c, count), err);
}
