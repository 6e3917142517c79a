/* Sums of products that stay far below 2^64, found before anything is built of them. */
#include <inttypes.h>

#include "base/size.h"
#include "models/check.h"

#define LARGEST_MODEL_BYTES (UINT64_C(1) << 60)
#define LARGEST_VALUE_BYTES (UINT64_C(1) << 58)

static bool learns_vocabulary(const pl_config *cfg)
{
    return cfg->data.tokenizer.kind == PL_CONFIG_TOKENIZER_BPE || cfg->data.tokenizer.kind == PL_CONFIG_TOKENIZER_WORDS;
}

static pl_status check_vocabulary(const pl_config *cfg, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const int64_t rows = cfg->model.vocab_size;
    if (rows == PL_CONFIG_AUTO) return PL_OK;
    if (learns_vocabulary(cfg) && rows < cfg->data.vocab_size)
        return pl_fail(err, PL_E_CONFIG,
                       "%s: model.vocab_size %" PRId64 " has no room for the %" PRId64
                       " tokens of data.vocab_size; take auto or at least as many",
                       pl_config_blame(cfg, "model.vocab_size", "data.vocab_size", where), rows, cfg->data.vocab_size);
    if (cfg->data.tokenizer.kind == PL_CONFIG_TOKENIZER_BYTES && rows < 256)
        return pl_fail(err, PL_E_CONFIG,
                       "%s: model.vocab_size %" PRId64
                       " has no room for the 256 tokens of the tokenizer bytes; take auto",
                       pl_config_blame(cfg, "model.vocab_size", "data.tokenizer", where), rows);
    return PL_OK;
}

/* *sum += a·b; -1 when that does not fit. */
static int add_product(uint64_t *sum, uint64_t a, uint64_t b)
{
    uint64_t product;
    return pl_size_mul(a, b, &product) || pl_size_add(*sum, product, sum) ? -1 : 0;
}

/* The matrices, within one layer of the truth (the exact count is the graph's business); -1 beyond 2^60, so that no
 * matrix comes near the 2^56 numbers that a value of a graph may have. */
static int weight_bytes(const pl_config *cfg, const pl_language_size *s, uint64_t *bytes)
{
    const pl_config_model *m = &cfg->model;
    uint64_t vocabulary = 256, layer = 0, count = 0;
    if (m->vocab_size != PL_CONFIG_AUTO)
        vocabulary = (uint64_t)m->vocab_size;
    else if (learns_vocabulary(cfg))
        vocabulary = (uint64_t)cfg->data.vocab_size;
    for (int i = 0; i < 3; i++)
        if (add_product(&layer, s->layer[i][0], s->layer[i][1])) return -1;
    if (add_product(&count, s->first[0], s->first[1]) || add_product(&count, (uint64_t)m->layers, layer) ||
        add_product(&count, vocabulary, (uint64_t)m->width))
        return -1;
    /* weight, gradient, two moments, f32 */
    return pl_size_mul(count, 16, bytes) || *bytes > LARGEST_MODEL_BYTES ? -1 : 0;
}

static pl_status check_weights(const pl_config *cfg, const pl_language_size *s, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    uint64_t bytes;
    if (weight_bytes(cfg, s, &bytes) == 0) return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "%s: a model of model.width %" PRId64 ", model.layers %" PRId64 " and model.%s %" PRId64
                   " holds more than 2^60 bytes; take smaller numbers",
                   pl_config_blame(cfg, "model.width", "model.layers", where), cfg->model.width, cfg->model.layers,
                   s->key, s->value);
}

/* Those of the sequences that are in memory at once. */
static pl_status check_activations(const pl_config *cfg, const pl_language_size *s, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const pl_config_train *t = &cfg->train;
    bool chosen = t->micro_batch != PL_CONFIG_AUTO;
    int64_t sequences = chosen ? t->micro_batch : pl_config_batch(cfg);
    uint64_t bytes;
    if (!pl_size_mul((uint64_t)sequences * (uint64_t)cfg->model.sequence, 4 * s->widest, &bytes) &&
        bytes <= LARGEST_VALUE_BYTES)
        return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "%s: one layer's activations, train.%s %" PRId64 " times model.sequence %" PRId64 " times %" PRIu64
                   " numbers a token, exceed 2^58 bytes; take smaller numbers",
                   pl_config_blame(cfg, chosen ? "train.micro_batch" : "train.batch_size", "model.width", where),
                   chosen ? "micro_batch" : "batch_size", sequences, cfg->model.sequence, s->widest);
}

pl_status pl_language_check(const pl_config *cfg, const pl_language_size *size, pl_error *err)
{
    PL_TRY(check_vocabulary(cfg, err));
    PL_TRY(check_weights(cfg, size, err));
    return check_activations(cfg, size, err);
}
