/* The same update, whatever was chosen to fit: small random models, with all pairs of choices, and with a seed given
 * also every combination. Oracle: the plain plan, which keeps everything and takes the whole batch at once; for the
 * plain plan of a mixed precision that of f32, within the bound for its roundings. That the comparison would see a
 * fault is the business of test_verify_faults.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/philox.h"
#include "plimsoll/plimsoll.h"
#include "support/program.h"
#include "support/seed.h"

#if defined(__SANITIZE_ADDRESS__)
enum { SLOW = 1 };
#else
enum { SLOW = 0 };
#endif

static uint64_t seed, drawn;
static bool thorough;          /* thousands of plans */
static uint64_t rows, rounded; /* rounded: rows of a mixed precision alone */
static double farthest;        /* update from that computed apart, as a share of what roundings explain */

static uint64_t draw(uint64_t below)
{
    uint32_t r[4];
    pl_philox p = pl_philox_init(seed, 0);
    pl_philox_block(&p, 0, drawn++, 0, r);
    return r[0] % below;
}

static const char *pick(const char *const *texts, uint64_t count) { return texts[draw(count)]; }

static void see(void *context, const pl_verify_row *r)
{
    const char *model = context;
    static const char *const reasons[] = {"not possible", "saves nothing", "the smallest plan needs"};
    bool expected = false;
    rows++;
    for (int i = 0; i < 3 && r->refused; i++) expected = expected || strstr(r->refused, reasons[i]);
    if (r->refused && !expected) fail_msg("%s: %s: %s", model, r->choices, r->refused);
    const char *other = strstr(r->choices, "mixed_precision ");
    bool alone = other == r->choices && !strchr(r->choices, ',');
    rounded += alone && !r->refused;
    if (!r->refused && r->update_share > farthest) farthest = r->update_share;
    if (alone && !r->refused && r->within)
        printf("    %s: loss %.2g, gradient %.2g of %.2g\n", r->choices, r->loss_difference, r->gradient_share,
               r->bound);
    if (r->refused || (r->within && (r->same_bits || alone))) return;
    fail_msg("seed %llu: %s: with %s the loss differs by %g, %s by %g of its largest (bound %g), %s by %g of its "
             "bound%s",
             (unsigned long long)seed, model, r->choices, r->loss_difference, r->gradient, r->gradient_share, r->bound,
             r->update, r->update_share, r->repeats ? "" : ", and each time");
}

static void set(pl_config *c, char *model, const char *key, const char *value)
{
    pl_error err = {0};
    if (pl_config_set(c, key, value, "the test", &err) != PL_OK) fail_msg("%s", err.text);
    size_t used = strlen(model);
    snprintf(model + used, 1024 - used, " --set %s=%s", key, value);
}

static void set_number(pl_config *c, char *model, const char *key, uint64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    set(c, model, key, text);
}

static void draw_model(pl_config *c, char *model)
{
    static const char *const norms[] = {"layer_norm", "rms_norm"}, *const activations[] = {"gelu", "silu", "relu"},
                             *const flags[] = {"true", "false"}, *const rates[] = {"0", "0.2"},
                             *const clips[] = {"0", "0", "0.3"}, *const precisions[] = {"off", "off", "bf16", "fp16"},
                             *const states[] = {"f32", "f32", "bf16", "8bit"};
    bool gpt = draw(4) != 0;
    uint64_t heads = 1 + draw(3), sequence = 4 + draw(12);
    set(c, model, "model.arch", gpt ? "gpt" : "mlp");
    set_number(c, model, "model.width", gpt ? heads * 4 * (1 + draw(3)) : 1 + draw(24));
    if (gpt) set_number(c, model, "model.heads", heads);
    if (gpt) set(c, model, "model.norm", pick(norms, 2));
    if (!gpt) set_number(c, model, "model.window", 1 + draw(sequence));
    set_number(c, model, "model.layers", 1 + draw(3));
    set_number(c, model, "model.sequence", sequence);
    set(c, model, "model.activation", pick(activations, 3));
    set(c, model, "model.bias", pick(flags, 2));
    set(c, model, "model.tie_embeddings", pick(flags, 2));
    set(c, model, "model.dropout", pick(rates, 2));
    set_number(c, model, "train.batch_size", 1 + draw(6));
    set(c, model, "train.grad_clip", pick(clips, 3));
    set(c, model, "train.optimizer_state", pick(states, 4));
    set(c, model, "train.mixed_precision", pick(precisions, 4));
    set_number(c, model, "run.threads", 1 + draw(3));
}

static void write_text(const char *path)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (int i = 0; i < 400; i++) fprintf(f, "the sea is %u wide and the ship is %u deep; ", i * 7919u % 97, i % 13);
    assert_int_equal(fclose(f), 0);
}

/* Its activations are about 1e-5: in fp16 they have few digits left, and the roundings are no longer 2^-11. */
static void set_faint_model(pl_config *c, char *model)
{
    static const char *const keys[][2] = {{"model.arch", "mlp"},      {"model.width", "3"},
                                          {"model.window", "1"},      {"model.layers", "3"},
                                          {"model.sequence", "11"},   {"model.activation", "silu"},
                                          {"model.bias", "false"},    {"model.tie_embeddings", "false"},
                                          {"model.dropout", "0"},     {"train.batch_size", "5"},
                                          {"train.grad_clip", "0.3"}, {"train.optimizer_state", "f32"},
                                          {"run.threads", "2"}};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) set(c, model, keys[i][0], keys[i][1]);
}

static void verify_one(void (*choose)(pl_config *, char *), bool everything)
{
    char model[1024] = "";
    pl_error err = {0};
    pl_verify_result result;
    pl_config *c = pl_config_create();
    assert_non_null(c);
    set(c, model, "data.text", "text.txt");
    set(c, model, "data.tokenizer", "bytes");
    choose(c, model);
    set(c, model, "run.out", "run");
    pl_verify_options o = {.everything = everything, .row = see, .context = model};
    rows = rounded = 0;
    farthest = 0;
    if (pl_prepare(c, PL_COMMAND_TRAIN, NULL, NULL, &err) != PL_OK || pl_verify(c, &o, &result, &err) != PL_OK)
        fail_msg("seed %llu: %s: %s", (unsigned long long)seed, model, err.text);
    assert_int_equal(rows, result.plans + result.refused);
    assert_int_equal(rounded, 2); /* bf16, fp16 */
    assert_int_equal(result.same_bits + result.within, result.plans);
    assert_true(result.within <= rounded);
    assert_true(result.plans >= 6 && result.failed == 0);
    assert_true(farthest > 0 && farthest <= 1);
    printf("  %3llu plans, %3llu not possible, updates %.2f of their bound off:%s\n", (unsigned long long)result.plans,
           (unsigned long long)result.refused, farthest, model);
    pl_config_destroy(c);
}

static void test_random_models(void **state)
{
    char folder[] = "/tmp/plimsoll-verify-XXXXXX", command[64];
    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    write_text("text.txt");
    for (int i = 0; i < (SLOW ? 1 : 3); i++) verify_one(draw_model, !SLOW && i == 0 && thorough);
    verify_one(set_faint_model, false);
    assert_int_equal(access("run/checkpoints", F_OK), -1); /* nothing of a run is left */
    assert_int_equal(access("run/metrics.jsonl", F_OK), -1);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(system(command), 0);
}

PL_TEST_PROGRAM(argc, argv)
{
    seed = test_seed_said(argc, argv);
    thorough = argc > 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_models)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
