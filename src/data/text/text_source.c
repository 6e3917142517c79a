#include "data/text/text_source.h"

#include <string.h>

#include "base/size.h"

enum { READER_BYTES = (sizeof(pl_tokens_reader) + 15) / 16 * 16 };

static const pl_text_source *text_of(const pl_source *source) { return (const pl_text_source *)source; }

static pl_status describe(const pl_source *source, uint32_t micro_batch, pl_source_layout *l, pl_error *err)
{
    const pl_text_source *t = text_of(source);
    const bool trains = t->source.steps_per_epoch[PL_PART_TRAIN] > 0;
    const uint32_t sequence = t->sampler[trains ? PL_PART_TRAIN : PL_PART_VALIDATION].sequence;
    const int64_t below = t->tokens->info.vocab;
    uint64_t bytes;
    if (pl_size_mul(micro_batch, sequence, &bytes) || pl_size_mul(bytes, sizeof(int32_t), &bytes))
        return pl_fail(err, PL_E_CONFIG, "a micro-batch of %u sequences of %u tokens is absurdly large", micro_batch,
                       sequence);
    *l = (pl_source_layout){
        .port = {{"tokens", PL_DTYPE_I32, bytes, below, NULL}, {"targets", PL_DTYPE_I32, bytes, below, NULL}},
        .ports = 2,
        .scratch_bytes = READER_BYTES + pl_tokens_reader_bytes(&t->tokens->info)};
    return PL_OK;
}

static void prepare(const pl_source *source, void *scratch)
{
    pl_tokens_reader_init(scratch, text_of(source)->tokens, (uint8_t *)scratch + READER_BYTES);
}

static pl_status fill_row(pl_tokens_reader *reader, pl_window window, uint32_t length, int32_t *tokens,
                          int32_t *targets, pl_error *err)
{
    uint32_t n = window.counted;
    if (n) {
        PL_TRY(pl_tokens_read(reader, window.start, window.start + n, tokens, err));
        PL_TRY(pl_tokens_read(reader, window.start + n, window.start + n + 1, targets + n - 1, err));
        memcpy(targets, tokens + 1, (n - 1) * sizeof *targets);
    }
    for (uint32_t i = n; i < length; i++) tokens[i] = 0, targets[i] = -1;
    return PL_OK;
}

static pl_status fill(const pl_source *source, void *scratch, pl_slot *slot, pl_error *err)
{
    const pl_text_source *t = text_of(source);
    const pl_sampler *sampler = &t->sampler[slot->part];
    int32_t *tokens = slot->port[0].at, *targets = slot->port[1].at;
    uint32_t length = sampler->sequence;
    pl_status status = PL_OK;
    slot->counted = 0;
    for (uint32_t row = 0; row < slot->rows && status == PL_OK; row++) {
        uint64_t in_step = (uint64_t)slot->micro * slot->rows + row;
        pl_window window =
            in_step < sampler->batch ? pl_sampler_window(sampler, slot->step, (uint32_t)in_step) : (pl_window){0};
        status = fill_row(scratch, window, length, tokens + (size_t)row * length, targets + (size_t)row * length, err);
        slot->counted += window.counted;
    }
    pl_tokens_trim_cache(scratch);
    return status;
}

static uint64_t count(const pl_source *source, pl_part part, uint64_t step)
{
    return pl_sampler_step_tokens(&text_of(source)->sampler[part], step);
}

static const pl_source_kind text = {
    .name = "text", .describe = describe, .prepare = prepare, .fill = fill, .count = count};

pl_status pl_text_source_init(pl_text_source *t, const pl_tokens *tokens, const pl_sampler_options *options,
                              pl_error *err)
{
    pl_sampler_options o = *options;
    *t = (pl_text_source){.source = {.kind = &text, .batch = o.batch}, .tokens = tokens};
    o.tokens = tokens->info.count;
    for (int part = PL_PART_TRAIN; part <= PL_PART_VALIDATION; part++) {
        if (part == PL_PART_VALIDATION ? o.validation_fraction <= 0 && !o.whole : o.whole) continue;
        PL_TRY(pl_sampler_init(&t->sampler[part], &o, part, err));
        t->source.steps_per_epoch[part] = t->sampler[part].steps_per_epoch;
    }
    return PL_OK;
}
