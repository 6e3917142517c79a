/* The bits of an update do not depend on the micro-batch. Random small models (gpt and mlp, norms, activations,
 * dropout, tied embeddings, biases, sequences of 1 to 70 tokens), a batch of 2 to 6 sequences, every micro-batch from 1
 * to the batch, the last one often short, with 1, 2 and 3 threads, at every instruction set of this machine: loss and
 * gradients of a step, and loss, weights and moments after three updates, against those of the whole batch at once with
 * one thread. `property_run test_micro_batches SEED` repeats one case. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "reference/tiny.h"
#include "support/program.h"

enum { CASES = 10, STEPS = 3 };
static uint64_t only_seed;

typedef struct outcome {
    double loss, evaluated;
    float *elems;
    uint64_t count;
} outcome;

static void add_role(outcome *o, tiny_run *run, pl_role role, const char *prefix)
{
    const pl_graph *g = run->plan->graph;
    for (size_t i = 0; i < g->value_count; i++) {
        bool wanted = g->value[i].role == role && strncmp(g->value[i].name, prefix, strlen(prefix)) == 0;
        if (!wanted || pl_value_root(g, (pl_id)i) != i) continue;
        uint64_t count = pl_shape_elems(&g->value[i].shape);
        o->elems = realloc(o->elems, (o->count + count) * sizeof *o->elems);
        assert_non_null(o->elems);
        memcpy(o->elems + o->count, pl_program_address(run->program, (pl_id)i), count * sizeof *o->elems);
        o->count += count;
    }
}

/* With updates: weights and moments after STEPS; without: the gradients of one step. */
static outcome outcome_of(tiny *t, pl_team team, bool update)
{
    outcome o = {0};
    t->update = update;
    t->keep_gradients = !update;
    tiny_run run = tiny_run_begin(t, team);
    tiny_run_weights(t, &run);
    for (uint64_t step = 1; step <= (update ? STEPS : 1); step++) tiny_run_step(t, &run, "train", step);
    o.loss = *(double *)pl_program_find(run.program, "train.loss");
    if (!update) add_role(&o, &run, PL_ROLE_OUTPUT, "grad.");
    if (update) add_role(&o, &run, PL_ROLE_WEIGHT, "");
    if (update) add_role(&o, &run, PL_ROLE_OPTIMIZER, "");
    tiny_run_step(t, &run, "evaluate", STEPS + 1);
    o.evaluated = *(double *)pl_program_find(run.program, "evaluate.loss");
    tiny_run_end(&run);
    return o;
}

static void compare(const tiny *t, uint64_t batch, pl_team team, const outcome *whole, const outcome *o)
{
    uint64_t other = 0, first = 0;
    assert_int_equal(o->count, whole->count);
    for (uint64_t i = whole->count; i-- > 0;)
        if (memcmp(&o->elems[i], &whole->elems[i], sizeof *o->elems) != 0) other++, first = i;
    if (!other && o->loss == whole->loss && o->evaluated == whole->evaluated) return;
    tiny_print(t);
    fail_msg(
        "%s, %d threads, micro-batch %lld of a batch of %llu: %llu of %llu %s have other bits (the first: %.9g, not "
        "%.9g); loss %.17g, not %.17g; evaluated %.17g, not %.17g",
        pl_isa_name(team.isa), team.threads, (long long)t->micro, (unsigned long long)batch, (unsigned long long)other,
        (unsigned long long)o->count, t->update ? "weights and moments" : "gradients", o->elems[first],
        whole->elems[first], o->loss, whole->loss, o->evaluated, whole->evaluated);
}

static void check(tiny *t, uint64_t batch, pl_isa isa, bool update)
{
    outcome whole = {0};
    for (uint64_t micro = batch; micro >= 1; micro--) {
        pl_team team = {1 + (int)((batch - micro) % 3), isa};
        t->micro = (int64_t)micro;
        t->trips = (batch + micro - 1) / micro;
        t->missing = micro * t->trips - batch;
        outcome o = outcome_of(t, team, update);
        if (micro == batch) {
            whole = o;
            continue;
        }
        compare(t, batch, team, &whole, &o);
        free(o.elems);
    }
    free(whole.elems);
}

static void any_micro_batch_gives_the_same_bits(void **state)
{
    (void)state;
    static tiny t;
    for (uint64_t seed = only_seed ? only_seed : 1; seed <= (only_seed ? only_seed : CASES); seed++) {
        tiny_random(&t, seed);
        uint64_t batch = (uint64_t)tiny_roll(&t, 2, 6);
        if (seed % 2) t.config.model.sequence = tiny_roll(&t, 7, 70);
        for (pl_isa isa = PL_ISA_REF; isa <= pl_isa_of_machine(); isa++)
            for (int update = 0; update < 2; update++) check(&t, batch, isa, update);
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    if (argc > 1) only_seed = strtoull(argv[1], NULL, 10);
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_micro_batch_gives_the_same_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
