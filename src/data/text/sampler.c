#include "data/text/sampler.h"

#include <inttypes.h>
#include <stdbool.h>

static pl_status check_part(const pl_sampler *s, const pl_sampler_options *o, pl_part part, pl_error *err)
{
    uint64_t tokens = s->end - s->begin, least = o->whole ? 2 : (uint64_t)o->sequence + 1;
    if (tokens >= least) return PL_OK;
    if (o->whole)
        return pl_fail(err, PL_E_DATA,
                       "the text has %" PRIu64 " token%s, and tokens are judged from the second on; use a longer text",
                       o->tokens, o->tokens == 1 ? "" : "s");
    if (o->tokens < least)
        return pl_fail(
            err, PL_E_DATA,
            "the text has %" PRIu64
            " token%s, fewer than one sequence of %u and its last target; use a longer text or a shorter sequence",
            o->tokens, o->tokens == 1 ? "" : "s", o->sequence);
    if (o->tokens < 2 * least)
        return pl_fail(err, PL_E_DATA,
                       "the text has %" PRIu64 " tokens, too few for a training and a validation part of a sequence of "
                       "%u and its last target each; set validation_fraction to 0, or shorten the sequence",
                       o->tokens, o->sequence);
    return pl_fail(err, PL_E_DATA,
                   "the %s part of the text has %" PRIu64 " token%s, fewer than one sequence of %u and its last "
                   "target; %s validation_fraction (%g) or shorten the sequence",
                   part == PL_PART_TRAIN ? "training" : "validation", tokens, tokens == 1 ? "" : "s", o->sequence,
                   part == PL_PART_TRAIN ? "lower" : "raise", o->validation_fraction);
}

pl_status pl_sampler_init(pl_sampler *s, const pl_sampler_options *o, pl_part part, pl_error *err)
{
    if (o->sequence == 0 || o->batch == 0 || o->sequence > INT32_MAX || o->batch > INT32_MAX)
        return pl_fail(err, PL_E_CONFIG, "sequence %u and batch %u must be from 1 to %d", o->sequence, o->batch,
                       INT32_MAX);
    if (!(o->validation_fraction >= 0 && o->validation_fraction < 1))
        return pl_fail(err, PL_E_CONFIG, "validation_fraction is %g; 0 or more and less than 1 was expected",
                       o->validation_fraction);
    uint64_t held_out = (uint64_t)((double)o->tokens * o->validation_fraction), edge = o->tokens - held_out;
    if (o->whole && part == PL_PART_VALIDATION) edge = 0;
    *s = (pl_sampler){.begin = part == PL_PART_TRAIN ? 0 : edge,
                      .end = part == PL_PART_TRAIN ? edge : o->tokens,
                      .sequence = o->sequence,
                      .batch = o->batch,
                      .shuffled = part == PL_PART_TRAIN};
    PL_TRY(check_part(s, o, part, err));
    s->windows = (s->end - s->begin - 2) / o->sequence + 1;
    s->steps_per_epoch = (s->windows - 1) / o->batch + 1;
    s->order = pl_permutation_init(s->windows, pl_philox_init(o->seed, pl_stream_id("data/shuffle")));
    return PL_OK;
}

uint64_t pl_sampler_shuffle(const pl_sampler *s, uint64_t epoch, uint64_t index)
{
    return s->shuffled ? pl_permutation_at(&s->order, epoch, index) : index;
}

pl_window pl_sampler_window(const pl_sampler *s, uint64_t step, uint32_t row)
{
    uint64_t epoch = step / s->steps_per_epoch, index = step % s->steps_per_epoch * s->batch + row;
    if (index >= s->windows || row >= s->batch) return (pl_window){s->begin, 0};
    uint64_t start = s->begin + pl_sampler_shuffle(s, epoch, index) * s->sequence, targets = s->end - 1 - start;
    return (pl_window){start, targets < s->sequence ? (uint32_t)targets : s->sequence};
}

uint64_t pl_sampler_step_tokens(const pl_sampler *s, uint64_t step)
{
    uint64_t counted = 0;
    for (uint32_t row = 0; row < s->batch; row++) counted += pl_sampler_window(s, step, row).counted;
    return counted;
}

void pl_sampler_targets(const pl_sampler *s, uint64_t steps, uint64_t *begin, uint64_t *end)
{
    bool all = steps == 0 || steps >= s->steps_per_epoch;
    *begin = s->begin + 1;
    *end = all ? s->end : s->begin + 1 + steps * s->batch * s->sequence;
}

uint64_t pl_sampler_epoch_tokens(const pl_sampler *s) { return s->end - s->begin - 1; }
