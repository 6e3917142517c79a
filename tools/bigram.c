/* What counting alone can do: a smoothed bigram model of the training part of a token file, judged on its held-out
 * part. bigram TOKENS.bin [validation_fraction]        prints nats per token, alone on stdout
 *
 * p(b|a) = (n(ab) + k·p(b)) / (n(a) + k),   p(b) = (n(b) + 1) / (N + V)
 *
 * (MacKay and Peto 1995: a Dirichlet prior around the unigram). k is the one of several that does best on the held-out
 * part itself, which favours the bigram. The parts are those of src/data/text/sampler.h. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "data/text/sampler.h"
#include "data/text/tokens.h"

enum { VOCAB_MAX = 16384, CHUNK = 16384 };

typedef struct counts {
    uint32_t vocab;
    uint32_t *pair;    /* [vocab × vocab] */
    uint64_t *single;  /* as the first of a pair */
    uint64_t *follows; /* as the second */
    uint64_t total;
} counts;

typedef void (*use_pair)(void *context, int32_t a, int32_t b);

/* Every pair of neighbours in tokens [begin, end). */
static pl_status each_pair(pl_tokens_reader *reader, uint64_t begin, uint64_t end, use_pair use, void *context,
                           pl_error *err)
{
    static int32_t id[CHUNK + 1];
    for (uint64_t at = begin; at + 1 < end; at += CHUNK) {
        uint64_t stop = at + CHUNK + 1 < end ? at + CHUNK + 1 : end;
        PL_TRY(pl_tokens_read(reader, at, stop, id, err));
        for (uint64_t i = 0; i + 1 < stop - at; i++) use(context, id[i], id[i + 1]);
    }
    return PL_OK;
}

static void count_pair(void *context, int32_t a, int32_t b)
{
    counts *c = context;
    c->pair[(size_t)a * c->vocab + (size_t)b]++;
    c->single[a]++;
    c->follows[b]++;
    c->total++;
}

typedef struct judge {
    const counts *c;
    double k, nats;
    uint64_t pairs;
} judge;

static void judge_pair(void *context, int32_t a, int32_t b)
{
    judge *j = context;
    const counts *c = j->c;
    double unigram = ((double)c->follows[b] + 1) / (double)(c->total + c->vocab);
    double n = c->pair[(size_t)a * c->vocab + (size_t)b];
    j->nats -= log((n + j->k * unigram) / ((double)c->single[a] + j->k));
    j->pairs++;
}

static pl_status best_of(pl_tokens_reader *reader, const counts *c, const pl_sampler *held_out, judge *best,
                         pl_error *err)
{
    best->nats = INFINITY;
    for (double k = 1; k < 3e4; k *= 3) {
        judge j = {.c = c, .k = k};
        PL_TRY(each_pair(reader, held_out->begin, held_out->end, judge_pair, &j, err));
        if (j.pairs && j.nats / (double)j.pairs < best->nats) *best = (judge){c, k, j.nats / (double)j.pairs, j.pairs};
    }
    return PL_OK;
}

static pl_status find_parts(const pl_tokens *tokens, double fraction, pl_sampler *train, pl_sampler *held_out,
                            pl_error *err)
{
    pl_sampler_options o = {.tokens = tokens->info.count, .sequence = 1, .batch = 1, .validation_fraction = fraction};
    PL_TRY(pl_sampler_init(train, &o, PL_PART_TRAIN, err));
    return pl_sampler_init(held_out, &o, PL_PART_VALIDATION, err);
}

static pl_status model_text(const pl_tokens *tokens, double fraction, pl_error *err)
{
    pl_status status = PL_OK;
    pl_sampler train, held_out;
    pl_tokens_reader reader;
    judge best = {0};
    counts c = {.vocab = tokens->info.vocab};
    if (c.vocab > VOCAB_MAX)
        return pl_fail(err, PL_E_DATA, "%s: a vocabulary of %u is too large to count pairs", tokens->path, c.vocab);
    void *memory = pl_alloc(1, pl_tokens_reader_bytes(&tokens->info));
    c.pair = pl_alloc((size_t)c.vocab * c.vocab, sizeof *c.pair);
    c.single = pl_alloc(c.vocab, sizeof *c.single);
    c.follows = pl_alloc(c.vocab, sizeof *c.follows);
    if (!memory || !c.pair || !c.single || !c.follows)
        PL_TRY_DONE(pl_fail(err, PL_E_NOMEM, "no memory for the counts"));
    pl_tokens_reader_init(&reader, tokens, memory);
    PL_TRY_DONE(find_parts(tokens, fraction, &train, &held_out, err));
    PL_TRY_DONE(each_pair(&reader, train.begin, train.end, count_pair, &c, err));
    PL_TRY_DONE(best_of(&reader, &c, &held_out, &best, err));
    fprintf(stderr, "bigram of %" PRIu64 " pairs, k = %g, on %" PRIu64 " held-out pairs\n", c.total, best.k,
            best.pairs);
    printf("%.5f\n", best.nats);
done:
    pl_free(memory);
    pl_free(c.pair);
    pl_free(c.single);
    pl_free(c.follows);
    return status;
}

int main(int argc, char **argv)
{
    pl_error err = {0};
    pl_tokens tokens;
    if (argc < 2 || argc > 3) return fprintf(stderr, "usage: bigram TOKENS.bin [validation_fraction]\n"), 2;
    pl_status status = pl_tokens_open(&tokens, argv[1], &err);
    if (status == PL_OK) {
        status = model_text(&tokens, argc > 2 ? atof(argv[2]) : 0.02, &err);
        pl_tokens_close(&tokens);
    }
    if (status != PL_OK) fprintf(stderr, "bigram: %s\n", err.text);
    return pl_status_exit_code(status);
}
