/* What only the archs and the text can tell: whether the numbers of a model go together, and whether it and its
 * activations stay within what can be counted. */
#include <inttypes.h>

#include "base/size.h"
#include "config/config.h"

int64_t pl_config_feed_forward(const pl_config *cfg)
{
    return cfg->model.feed_forward == PL_CONFIG_AUTO ? 4 * cfg->model.width : cfg->model.feed_forward;
}

/* The divisor of width next to heads, on either side (1 always is one). */
static int64_t divisor_below(int64_t width, int64_t heads)
{
    while (width % heads != 0) heads--;
    return heads;
}

static int64_t divisor_above(int64_t width, int64_t heads)
{
    if (heads > width) return 0;
    while (width % heads != 0) heads++;
    return heads;
}

static pl_status check_heads(const pl_config *cfg, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const int64_t width = cfg->model.width, heads = cfg->model.heads;
    if (cfg->model.arch != PL_ARCH_GPT || width % heads == 0) return PL_OK;
    int64_t below = divisor_below(width, heads < width ? heads : width), above = divisor_above(width, heads);
    pl_config_blame(cfg, "model.heads", "model.width", where);
    if (!above)
        return pl_fail(err, PL_E_CONFIG,
                       "%s: model.heads %" PRId64 " is more than model.width %" PRId64 "; take at most that many heads",
                       where, heads, width);
    return pl_fail(err, PL_E_CONFIG,
                   "%s: model.heads %" PRId64 " does not divide model.width %" PRId64 "; take %" PRId64 " or %" PRId64
                   " heads",
                   where, heads, width, below, above);
}

/* Beyond its sequence a token has nothing before it: those weights would only ever see padding. */
static pl_status check_window(const pl_config *cfg, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const int64_t window = cfg->model.window, sequence = cfg->model.sequence;
    if (cfg->model.arch != PL_ARCH_MLP || window <= sequence) return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "%s: model.window %" PRId64 " is more than model.sequence %" PRId64
                   "; take at most that, or a longer sequence",
                   pl_config_blame(cfg, "model.window", "model.sequence", where), window, sequence);
}

static pl_status check_vocabulary(const pl_config *cfg, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const int64_t rows = cfg->model.vocab_size;
    if (rows == PL_CONFIG_AUTO) return PL_OK;
    if (cfg->data.tokenizer.kind == PL_CONFIG_TOKENIZER_BPE && rows < cfg->data.vocab_size)
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

#define LARGEST_MODEL_BYTES (UINT64_C(1) << 60)
#define LARGEST_VALUE_BYTES (UINT64_C(1) << 58)

/* *sum += a·b; -1 when that does not fit. */
static int add_product(uint64_t *sum, uint64_t a, uint64_t b)
{
    uint64_t product;
    return pl_size_mul(a, b, &product) || pl_size_add(*sum, product, sum) ? -1 : 0;
}

/* The matrices, within one layer of the truth (the exact count is the model's business); -1 beyond 2^60, so that no
 * matrix comes near the 2^56 numbers that a value of a graph may have. */
static int weight_bytes(const pl_config *cfg, uint64_t *bytes)
{
    const pl_config_model *m = &cfg->model;
    const uint64_t d = (uint64_t)m->width;
    uint64_t inner = (uint64_t)pl_config_feed_forward(cfg), vocabulary = 256, layer = 0, count = 0;
    if (m->vocab_size != PL_CONFIG_AUTO)
        vocabulary = (uint64_t)m->vocab_size;
    else if (cfg->data.tokenizer.kind == PL_CONFIG_TOKENIZER_BPE)
        vocabulary = (uint64_t)cfg->data.vocab_size;
    if (m->arch == PL_ARCH_GPT) {
        if (add_product(&layer, 4 * d, d) || add_product(&layer, 2 * d, inner) ||
            add_product(&count, (uint64_t)m->sequence, d))
            return -1;
    } else {
        uint64_t read; /* by the first layer for a token */
        if (pl_size_mul((uint64_t)m->window, d, &read) || add_product(&layer, d, d) || add_product(&count, read, d))
            return -1;
    }
    if (add_product(&count, (uint64_t)m->layers, layer) || add_product(&count, vocabulary, d)) return -1;
    /* weight, gradient, two moments, f32 */
    return pl_size_mul(count, 16, bytes) || *bytes > LARGEST_MODEL_BYTES ? -1 : 0;
}

static pl_status check_weights(const pl_config *cfg, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    uint64_t bytes;
    bool mlp = cfg->model.arch == PL_ARCH_MLP;
    if (weight_bytes(cfg, &bytes) == 0) return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "%s: a model of model.width %" PRId64 ", model.layers %" PRId64 " and model.%s %" PRId64
                   " holds more than 2^60 bytes; take smaller numbers",
                   pl_config_blame(cfg, "model.width", "model.layers", where), cfg->model.width, cfg->model.layers,
                   mlp ? "window" : "feed_forward", mlp ? cfg->model.window : pl_config_feed_forward(cfg));
}

pl_status pl_config_check_model(const pl_config *cfg, pl_error *err)
{
    PL_TRY(check_heads(cfg, err));
    PL_TRY(check_window(cfg, err));
    PL_TRY(check_vocabulary(cfg, err));
    return check_weights(cfg, err);
}

/* Numbers that the widest layer holds for a token: the perceptron's first one reads a window, the transformer's
 * attention has three of the width. */
static uint64_t widest(const pl_config *cfg)
{
    uint64_t width = (uint64_t)cfg->model.width, inner = (uint64_t)pl_config_feed_forward(cfg);
    if (cfg->model.arch == PL_ARCH_MLP) return width * (uint64_t)cfg->model.window;
    return inner > 3 * width ? inner : 3 * width;
}

pl_status pl_config_check_activations(const pl_config *cfg, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    const pl_config_train *t = &cfg->train;
    bool chosen = t->micro_batch != PL_CONFIG_AUTO;
    int64_t sequences = chosen ? t->micro_batch : t->batch_size;
    uint64_t bytes;
    if (!pl_size_mul((uint64_t)sequences * (uint64_t)cfg->model.sequence, 4 * widest(cfg), &bytes) &&
        bytes <= LARGEST_VALUE_BYTES)
        return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "%s: one layer's activations, train.%s %" PRId64 " times model.sequence %" PRId64 " times %" PRIu64
                   " numbers a token, exceed 2^58 bytes; take smaller numbers",
                   pl_config_blame(cfg, chosen ? "train.micro_batch" : "train.batch_size", "model.width", where),
                   chosen ? "micro_batch" : "batch_size", sequences, cfg->model.sequence, widest(cfg));
}
