/* A tiny run to save: two weights and two moments whose numbers all follow from the step, so a mixture of two steps
 * shows. */
#ifndef TESTS_STORE_SMALL_RUN_H
#define TESTS_STORE_SMALL_RUN_H

#include "store/checkpoint.h"

enum { SMALL_ELEMS = 1000, SMALL_MODEL_HASH = 77 };

typedef struct small_run {
    float weight[SMALL_ELEMS], bias[3], moment[2][SMALL_ELEMS];
    pl_st_entry model[2], state[2];
    pl_record_counter counters[2];
    pl_record record;
    pl_checkpoint_spec spec;
    pl_checkpoint *checkpoint;
    _Alignas(64) char scratch[128 << 10];
} small_run;

static inline void small_run_init(small_run *r, const char *folder, uint32_t keep_last)
{
    memset(r, 0, sizeof *r);
    r->model[0] = (pl_st_entry){"weight", PL_ST_F32, 2, {10, 100}, r->weight, sizeof r->weight};
    r->model[1] = (pl_st_entry){"bias", PL_ST_F32, 1, {3}, r->bias, sizeof r->bias};
    r->state[0] = (pl_st_entry){"weight.m", PL_ST_F32, 2, {10, 100}, r->moment[0], sizeof r->moment[0]};
    r->state[1] = (pl_st_entry){"weight.v", PL_ST_F32, 2, {10, 100}, r->moment[1], sizeof r->moment[1]};
    r->counters[0] = (pl_record_counter){"tokens", 0};
    r->counters[1] = (pl_record_counter){"loss_scale", 1.5};
    r->record = (pl_record){.model_hash = SMALL_MODEL_HASH,
                            .plan_hash = 0xfedcba9876543210u,
                            .identity = {.fact = {{"tokenizer", 0x123456789u}, {"text", UINT64_MAX}}, .count = 2},
                            .config = "model:\n  width: 100\n  name: \"süß\"\n",
                            .best_metric = "validation_loss",
                            .counters = r->counters,
                            .counter_count = 2};
    r->spec = (pl_checkpoint_spec){.folder = folder,
                                   .model = {r->model, 2, NULL, 0},
                                   .state = {r->state, 2, NULL, 0},
                                   .keep_last = keep_last,
                                   .keep_best = true,
                                   .record = &r->record};
}

/* The numbers of a step. */
static inline void small_run_at(small_run *r, uint64_t step)
{
    for (int i = 0; i < SMALL_ELEMS; i++) {
        r->weight[i] = (float)step + (float)i;
        r->moment[0][i] = (float)step - (float)i;
        r->moment[1][i] = (float)step * 0.5f;
    }
    for (int i = 0; i < 3; i++) r->bias[i] = (float)step;
    r->record.step = step;
    r->record.epoch = step / 10;
    r->record.sample = step * 32;
    r->counters[0].value = (double)step * 4096;
}

/* 0 when all numbers are those of the step. */
static inline int small_run_differs(const small_run *r, uint64_t step)
{
    static small_run expected;
    small_run_init(&expected, "", 1);
    small_run_at(&expected, step);
    return memcmp(r->weight, expected.weight, sizeof r->weight) || memcmp(r->bias, expected.bias, sizeof r->bias) ||
           memcmp(r->moment, expected.moment, sizeof r->moment);
}

static inline pl_status small_run_create(small_run *r, const pl_record *resumed, pl_error *err)
{
    return pl_checkpoint_create(&r->spec, resumed, r->scratch, sizeof r->scratch, &r->checkpoint, err);
}

static inline pl_status small_run_save(small_run *r, uint64_t step, pl_error *err)
{
    small_run_at(r, step);
    return pl_checkpoint_save(r->checkpoint, &r->record, err);
}

#endif
