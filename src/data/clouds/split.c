#include "data/clouds/split.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TRAIN_PERCENT = 80, INNER_PERCENT = 15 };

pl_status pl_split_find(const pl_frames_flight *flight, uint32_t flights, const char *key, const char *name,
                        uint32_t *number, pl_error *err)
{
    char names[256] = "";
    size_t used = 0;
    for (*number = 0; *number < flights; ++*number)
        if (strcmp(flight[*number].name, name) == 0) return PL_OK;
    for (uint32_t i = 0; i < flights && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", flight[i].name);
    if (used >= sizeof names) memcpy(names + sizeof names - 4, "...", 4);
    if (!name[0]) return pl_fail(err, PL_E_CONFIG, "%s names no flight; give one of %s", key, names);
    return pl_fail(err, PL_E_CONFIG, "%s is %.100s, but there is no such flight; give one of %s", key, name, names);
}

static pl_flight_split split_of(pl_split_stage stage, uint64_t labels, bool chosen)
{
    const uint64_t inner = (labels * INNER_PERCENT + 99) / 100; /* of few labels one at least */
    if (stage == PL_SPLIT_PRETRAIN)
        return chosen ? (pl_flight_split){labels * TRAIN_PERCENT / 100, labels, false} : (pl_flight_split){0};
    return chosen ? (pl_flight_split){.held_out = true} : (pl_flight_split){labels - inner, labels, false};
}

pl_status pl_split_make(pl_split_stage stage, const pl_frames_flight *flight, uint32_t flights, uint32_t chosen,
                        pl_flight_split *split, pl_error *err)
{
    uint64_t train = 0, inner = 0;
    for (uint32_t i = 0; i < flights; i++) {
        split[i] = split_of(stage, flight[i].labels, i == chosen);
        train += split[i].train, inner += split[i].end - split[i].train;
    }
    if (stage != PL_SPLIT_PRETRAIN && flight[chosen].labels == 0)
        return pl_fail(err, PL_E_DATA, "flight %s has no labels to be judged by; hold out another one",
                       flight[chosen].name);
    if (train && inner) return PL_OK;
    if (stage == PL_SPLIT_PRETRAIN)
        return pl_fail(err, PL_E_DATA,
                       "flight %s has %" PRIu64 " labels, too few to train on some and to be stopped by the others; "
                       "choose another pretrain_flight",
                       flight[chosen].name, flight[chosen].labels);
    return pl_fail(err, PL_E_DATA,
                   "without flight %s there are %" PRIu64 " labels to train on and %" PRIu64
                   " to be stopped by; give more flights",
                   flight[chosen].name, train, inner);
}

pl_split_list pl_split_find_list(const pl_flight_split *s, uint64_t label)
{
    if (s->held_out) return PL_SPLIT_TEST;
    if (label >= s->end) return PL_SPLIT_LISTS;
    return label < s->train ? PL_SPLIT_TRAIN : PL_SPLIT_INNER;
}
