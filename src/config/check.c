/* What no single key can tell: keys that nothing reads, values that contradict each other, products that overflow. Each
 * sentence begins with the place of the value that is most likely to be the mistake: the one from the strongest source.
 * Ranges of single values were checked when they were read. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "config/schema.h"

enum { WHERE_BYTES = PL_CONFIG_TEXT_BYTES + 32 };

static pl_config_level level_of(const pl_config *cfg, const char *path)
{
    return pl_config_origin_at(cfg, pl_config_find(path))->level;
}

/* The place of a or b, whichever was said last by the strongest source. */
static const char *blame(const pl_config *cfg, const char *a, const char *b, char *where)
{
    return pl_config_where(cfg, level_of(cfg, b) > level_of(cfg, a) ? b : a, where, WHERE_BYTES);
}

/* ---- keys that are set and not read ---- */

static pl_status check_used(const pl_config *cfg, pl_error *err)
{
    char where[WHERE_BYTES];
    for (size_t i = 0; i < pl_config_key_count; i++) {
        const pl_config_key *key = &pl_config_keys[i];
        if (!pl_config_is_set(cfg, key->path) || pl_config_is_used(cfg, key)) continue;
        pl_str value = {0};
        pl_config_print_value(cfg, pl_config_find(key->use.path), &value);
        pl_status status = pl_fail(err, PL_E_CONFIG, "%s: %s is not used when %s is %.200s; take it out",
                                   pl_config_where(cfg, key->path, where, sizeof where), key->path, key->use.path,
                                   pl_str_text(&value));
        pl_str_deinit(&value);
        return status;
    }
    return PL_OK;
}

/* ---- the model ---- */

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
    char where[WHERE_BYTES];
    const int64_t width = cfg->model.width, heads = cfg->model.heads;
    if (cfg->model.arch != PL_ARCH_GPT || width % heads == 0) return PL_OK;
    int64_t below = divisor_below(width, heads < width ? heads : width), above = divisor_above(width, heads);
    blame(cfg, "model.heads", "model.width", where);
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
    char where[WHERE_BYTES];
    const int64_t window = cfg->model.window, sequence = cfg->model.sequence;
    if (cfg->model.arch != PL_ARCH_MLP || window <= sequence) return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "%s: model.window %" PRId64 " is more than model.sequence %" PRId64
                   "; take at most that, or a longer sequence",
                   blame(cfg, "model.window", "model.sequence", where), window, sequence);
}

static pl_status check_vocabulary(const pl_config *cfg, pl_error *err)
{
    char where[WHERE_BYTES];
    const int64_t rows = cfg->model.vocab_size;
    if (rows == PL_CONFIG_AUTO) return PL_OK;
    if (cfg->data.tokenizer.kind == PL_CONFIG_TOKENIZER_BPE && rows < cfg->data.vocab_size)
        return pl_fail(err, PL_E_CONFIG,
                       "%s: model.vocab_size %" PRId64 " has no room for the %" PRId64
                       " tokens of data.vocab_size; take auto or at least as many",
                       blame(cfg, "model.vocab_size", "data.vocab_size", where), rows, cfg->data.vocab_size);
    if (cfg->data.tokenizer.kind == PL_CONFIG_TOKENIZER_BYTES && rows < 256)
        return pl_fail(err, PL_E_CONFIG,
                       "%s: model.vocab_size %" PRId64
                       " has no room for the 256 tokens of the tokenizer bytes; take auto",
                       blame(cfg, "model.vocab_size", "data.tokenizer", where), rows);
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
    char where[WHERE_BYTES];
    uint64_t bytes;
    bool mlp = cfg->model.arch == PL_ARCH_MLP;
    if (weight_bytes(cfg, &bytes) == 0) return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "%s: a model of model.width %" PRId64 ", model.layers %" PRId64 " and model.%s %" PRId64
                   " holds more than 2^60 bytes; take smaller numbers",
                   blame(cfg, "model.width", "model.layers", where), cfg->model.width, cfg->model.layers,
                   mlp ? "window" : "feed_forward", mlp ? cfg->model.window : pl_config_feed_forward(cfg));
}

/* ---- the training ---- */

/* Numbers that the widest layer holds for a token: the perceptron's first one reads a window, the transformer's
 * attention has three of the width. */
static uint64_t widest(const pl_config *cfg)
{
    uint64_t width = (uint64_t)cfg->model.width, inner = (uint64_t)pl_config_feed_forward(cfg);
    if (cfg->model.arch == PL_ARCH_MLP) return width * (uint64_t)cfg->model.window;
    return inner > 3 * width ? inner : 3 * width;
}

/* Of the sequences in memory at once. */
static pl_status check_activations(const pl_config *cfg, pl_error *err)
{
    char where[WHERE_BYTES];
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
                   blame(cfg, chosen ? "train.micro_batch" : "train.batch_size", "model.width", where),
                   chosen ? "micro_batch" : "batch_size", sequences, cfg->model.sequence, widest(cfg));
}

static pl_status check_batch(const pl_config *cfg, pl_error *err)
{
    char where[WHERE_BYTES];
    const pl_config_train *t = &cfg->train;
    const uint64_t tokens = (uint64_t)t->batch_size * (uint64_t)cfg->model.sequence; /* 2^48 at most */
    uint64_t seen;
    if (t->micro_batch > t->batch_size)
        return pl_fail(err, PL_E_CONFIG,
                       "%s: train.micro_batch %" PRId64 " is more than train.batch_size %" PRId64
                       "; take at most that, or auto",
                       blame(cfg, "train.micro_batch", "train.batch_size", where), t->micro_batch, t->batch_size);
    PL_TRY(check_activations(cfg, err));
    if (t->steps != PL_CONFIG_AUTO && (pl_size_mul(tokens, (uint64_t)t->steps, &seen) || seen > INT64_MAX))
        return pl_fail(err, PL_E_CONFIG,
                       "%s: train.steps %" PRId64 " with train.batch_size %" PRId64
                       " is more than 2^63 tokens; take fewer",
                       blame(cfg, "train.steps", "train.batch_size", where), t->steps, t->batch_size);
    return PL_OK;
}

static pl_status check_schedule(const pl_config *cfg, pl_error *err)
{
    char where[WHERE_BYTES];
    const pl_config_train *t = &cfg->train;
    if (t->steps != PL_CONFIG_AUTO && t->warmup_steps > t->steps)
        return pl_fail(err, PL_E_CONFIG,
                       "%s: train.warmup_steps %" PRId64 " is more than train.steps %" PRId64 "; take fewer, or auto",
                       blame(cfg, "train.warmup_steps", "train.steps", where), t->warmup_steps, t->steps);
    if (t->schedule == PL_SCHEDULE_PLATEAU && cfg->data.validation_fraction == 0)
        return pl_fail(
            err, PL_E_CONFIG,
            "%s: the schedule plateau watches the validation loss, but data.validation_fraction is 0; raise it, or "
            "take another schedule",
            blame(cfg, "train.schedule", "data.validation_fraction", where));
    return PL_OK;
}

/* Without held-out text there is nothing to evaluate: asking for it is a contradiction. A key at its default asks for
 * nothing, though the file may name it: the config that a run keeps names them all. Nor does one that a stronger source
 * has just made pointless. */
static pl_status check_evaluation(const pl_config *cfg, pl_error *err)
{
    static const char *const paths[] = {"train.eval_every", "train.eval_batches"};
    const pl_config_level fraction = level_of(cfg, "data.validation_fraction");
    char where[WHERE_BYTES];
    pl_config defaults;
    if (cfg->data.validation_fraction > 0) return PL_OK;
    pl_config_default(&defaults);
    for (int i = 0; i < 2; i++) {
        if (level_of(cfg, paths[i]) < fraction || pl_config_value_equal(cfg, &defaults, pl_config_find(paths[i])))
            continue;
        return pl_fail(err, PL_E_CONFIG,
                       "%s: %s needs text held out, but data.validation_fraction is 0; raise it, or take %s out",
                       blame(cfg, paths[i], "data.validation_fraction", where), paths[i], paths[i]);
    }
    return PL_OK;
}

/* "train, eval and verify do" */
static void print_readers(uint32_t readers, pl_str *out)
{
    static const char *const names[] = {"train", "eval", "generate", "verify"};
    int count = 0, told = 0;
    for (int i = 0; i < 4; i++) count += readers >> i & 1;
    for (int i = 0; i < 4; i++) {
        if (!(readers >> i & 1)) continue;
        pl_str_printf(out, "%s%s", told == 0 ? "" : told + 1 == count ? " and " : ", ", names[i]);
        told++;
    }
    pl_str_append(out, count == 1 ? " does" : " do");
}

/* --seed belongs to two rows; it is enough that one of them is read. */
static bool is_option_read(const pl_config *cfg, const pl_config_key *key, pl_config_reader by)
{
    bool by_option = strncmp(pl_config_origin_at(cfg, key)->by, "--set", 5) != 0;
    for (size_t i = 0; by_option && key->option && i < pl_config_key_count; i++) {
        const pl_config_key *other = &pl_config_keys[i];
        if (other->option && strcmp(other->option, key->option) == 0 && pl_config_is_read(cfg, other, by)) return true;
    }
    return pl_config_is_read(cfg, key, by);
}

static pl_status refuse_option(const pl_config_key *key, const char *option, pl_config_reader by, pl_error *err)
{
    char text[96];
    pl_str readers = pl_str_fixed(text, sizeof text);
    if (by == PL_CONFIG_BY_TRAIN && key->readers & PL_CONFIG_BY_SAMPLES)
        return pl_fail(err, PL_E_USAGE,
                       "%s: train reads %s only for samples of text; give --sample_every too, or take it away", option,
                       key->path);
    print_readers(key->readers, &readers);
    return pl_fail(err, PL_E_USAGE, "%s: this command does not read %s (%s); take it away", option, key->path, text);
}

pl_status pl_config_check_options(const pl_config *cfg, pl_config_reader by, pl_error *err)
{
    for (size_t i = 0; i < pl_config_key_count; i++) {
        const pl_config_key *key = &pl_config_keys[i];
        const pl_config_origin *from = pl_config_origin_at(cfg, key);
        bool by_option = from->level == PL_CONFIG_FROM_COMMAND_LINE && strncmp(from->by, "--", 2) == 0;
        if (by_option && !is_option_read(cfg, key, by)) return refuse_option(key, from->by, by, err);
    }
    return PL_OK;
}

pl_status pl_config_check(const pl_config *cfg, pl_error *err)
{
    PL_TRY(check_used(cfg, err));
    PL_TRY(check_heads(cfg, err));
    PL_TRY(check_window(cfg, err));
    PL_TRY(check_vocabulary(cfg, err));
    PL_TRY(check_weights(cfg, err));
    PL_TRY(check_batch(cfg, err));
    PL_TRY(check_schedule(cfg, err));
    return check_evaluation(cfg, err);
}
