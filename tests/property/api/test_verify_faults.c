/* Would verify see it? Passes and kernels are broken on purpose, between the library and itself (the linker's --wrap,
 * in tests/CMakeLists.txt): the product has no switch for it. Oracle: which plans the fault can reach. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "backend/backend.h"
#include "ir/graph.h"
#include "plimsoll/plimsoll.h"
#include "rewrite/rewrite.h"
#include "support/folder.h"

typedef enum fault {
    NONE,             /* test_verify.c */
    LOST_MICRO_BATCH, /* weights' gradients are not added up where the batch comes in parts */
    OTHER_RECOMPUTE,  /* what is computed again is not the same: a norm's eps */
    TEAM_OF_3,        /* a team of three rounds one weight the other way */
    OTHER_EACH_TIME,  /* numbers depend on how often a kernel was called */
    GRADIENT_FAR,     /* a team of three has gradients 0.1 % too large */
    GRADIENT_NEAR,    /* … 0.01 %: as another order of sums might */
    OTHER_CHUNKS,     /* feed-forward layers in chunks give other numbers */
    BF16_FAR,         /* bf16 has gradients a quarter too large: more than its roundings explain */
    BF16_LOST,        /* LOST_MICRO_BATCH, in bf16 alone */
    /* of the update, in plans with narrow storage alone: */
    DECAY,    /* half as much weight decay again */
    BETA1,    /* 0.8 in place of 0.9 */
    BETA2,    /* 0.99 in place of 0.95 */
    EPS,      /* a thousand times larger */
    STEP,     /* the correction of the moments is that of the next step */
    RANDOM,   /* moments are rounded by other random bits */
    NOT_MADE, /* vectors are not updated at all */
    CLIPPED,  /* the factor that clips or unscales gradients is 1 % too small */
    CHOPPED,  /* 16-bit copies of weights are cut off, not rounded */
} fault;

static fault broken;
static unsigned calls;
static bool chunked; /* since the last row */

/* ---- what is put between ---- */

pl_status __real_pl_rewrite_recompute_full(pl_graph *, pl_id, pl_error *);
pl_status __wrap_pl_rewrite_recompute_full(pl_graph *, pl_id, pl_error *);
pl_status __wrap_pl_rewrite_recompute_full(pl_graph *g, pl_id program, pl_error *err)
{
    pl_status status = __real_pl_rewrite_recompute_full(g, program, err);
    for (size_t i = 0; broken == OTHER_RECOMPUTE && i < g->node_count; i++)
        for (size_t j = 0; j < i && g->node[i].op == PL_OP_LAYER_NORM; j++)
            if (g->node[j].op == PL_OP_LAYER_NORM && g->node[j].in[1] == g->node[i].in[1] &&
                g->node[j].region == g->node[i].region)
                g->node[i].attr[0].f = 0.5;
    return status;
}

static pl_dtype precision; /* of the plan that was made last, which is the one that runs next */

pl_status __real_pl_rewrite_precision(pl_graph *, pl_id, pl_dtype, pl_error *);
pl_status __wrap_pl_rewrite_precision(pl_graph *, pl_id, pl_dtype, pl_error *);
pl_status __wrap_pl_rewrite_precision(pl_graph *g, pl_id program, pl_dtype dtype, pl_error *err)
{
    precision = dtype;
    return __real_pl_rewrite_precision(g, program, dtype, err);
}

static void scale(const pl_adamw_call *a, float by)
{
    float *g = (float *)(uintptr_t)a->g;
    for (int64_t i = 0; i < a->count; i++) g[i] *= by;
}

static pl_dtype narrow;  /* faults of the update: only in plans of this precision, … */
static int narrow_state; /* … only where moments are kept so; -1: anywhere */

static bool has_narrow_storage(const pl_call *call)
{
    if (narrow != PL_DTYPE_F32) return precision == narrow;
    return call->op != PL_OP_ADAMW || (int)call->u.adamw.state == narrow_state;
}

/* The call as the fault has it; false: not made. */
static bool change_update(pl_adamw_call *a)
{
    static int64_t next;
    next = *a->step + 1;
    a->weight_decay *= broken == DECAY ? 1.5f : 1;
    a->beta1 = broken == BETA1 ? 0.8f : a->beta1;
    a->beta2 = broken == BETA2 ? 0.99f : a->beta2;
    a->eps *= broken == EPS ? 1000 : 1;
    a->step = broken == STEP ? &next : a->step;
    a->stream += broken == RANDOM;
    return broken != NOT_MADE || a->weight_decay > 0;
}

static void chop(const pl_cast_call *c)
{
    const float *x = c->x;
    uint16_t *y = c->y;
    for (int64_t i = 0; i < c->count; i++) y[i] = (uint16_t)(pl_f32_bits(x[i]) >> 16);
}

void __real_pl_backend_exec(const pl_call *, pl_team);
void __wrap_pl_backend_exec(const pl_call *, pl_team);
void __wrap_pl_backend_exec(const pl_call *call, pl_team team)
{
    enum { ROWS = 4 * 8 }; /* of the whole batch */
    bool update = call->op == PL_OP_ADAMW, three = team.threads == 3;
    bool loses = broken == LOST_MICRO_BATCH || (broken == BF16_LOST && precision == PL_DTYPE_BF16);
    if (loses && call->op == PL_OP_LINEAR_DW && call->u.gemm.k < ROWS) return;
    if (update && three && broken == GRADIENT_FAR) scale(&call->u.adamw, 1.001f);
    if (update && three && broken == GRADIENT_NEAR) scale(&call->u.adamw, 1.0001f);
    if (update && precision == PL_DTYPE_BF16 && broken == BF16_FAR) scale(&call->u.adamw, 1.25f);
    pl_call changed = *call;
    if (broken >= DECAY && update && has_narrow_storage(call) && !change_update(&changed.u.adamw)) return;
    __real_pl_backend_exec(&changed, team);
    if (broken == CLIPPED && call->op == PL_OP_CLIP_SCALE && has_narrow_storage(call))
        *call->u.clip_scale.scale *= 0.99f;
    if (broken == CHOPPED && call->op == PL_OP_CAST && has_narrow_storage(call)) chop(&call->u.cast);
    chunked = chunked || call->op == PL_OP_FEED_FORWARD_BWD;
    if (call->op == PL_OP_FEED_FORWARD_BWD && broken == OTHER_CHUNKS) call->u.feed_forward_bwd.dw2[0] += 1;
    if (update && three && broken == TEAM_OF_3) call->u.adamw.w[0] = nextafterf(call->u.adamw.w[0], INFINITY);
    if (update && broken == OTHER_EACH_TIME) call->u.adamw.w[0] += 1e-4f * (float)(++calls);
}

/* ---- what is seen ---- */

typedef struct seen {
    const char *reached; /* a word in the choices of every plan but the plain that the fault reaches; NULL: all */
    unsigned rows, right, wrong, near, enough; /* enough: rows to look at; 0: all */
    volatile int stop;
    const char *named; /* a fault of the update: what of it verify names; then one row that it reaches is enough */
} seen;

/* The plain plan of a mixed precision, which is near that of f32. */
static bool is_rounded(const char *choices)
{
    return strncmp(choices, "mixed_precision ", 16) == 0 && !strchr(choices, ',');
}

static bool is_reached(const seen *s, const char *choices, bool plain)
{
    if (broken == NONE || !s->reached) return broken != NONE;
    if (broken == BF16_FAR || s->named)
        return strcmp(choices, s->reached) == 0; /* the others are compared with this one */
    return !plain && strstr(choices, s->reached) && (broken != OTHER_CHUNKS || chunked);
}

static void see(void *context, const pl_verify_row *r)
{
    seen *s = context;
    bool plain = s->rows++ == 0, reached = is_reached(s, r->choices, plain);
    s->stop = (s->enough && s->rows >= s->enough) || (s->named && reached);
    chunked = false;
    if (r->refused) return;
    if (s->named && reached && (!(r->update_share > 1) || strncmp(r->update, s->named, strlen(s->named)) != 0))
        fail_msg("%s: %s is %g of its bound off; %s was expected", r->choices, r->update, r->update_share, s->named);
    if (!reached && !(r->update_share <= 1))
        fail_msg("%s: %s is %g of its bound off", r->choices, r->update, r->update_share);
    bool near = r->within && !r->same_bits, same = r->within && r->same_bits;
    bool as_it_is = reached ? (broken == GRADIENT_NEAR ? near : !r->within) : same || (near && is_rounded(r->choices));
    s->near += near;
    s->right += as_it_is;
    if (!as_it_is) {
        s->wrong++;
        printf("  %s: gradient share %g, loss difference %g, %s bits\n", r->choices, r->gradient_share,
               r->loss_difference, r->same_bits ? "same" : "other");
    }
    if (broken == OTHER_EACH_TIME) assert_false(r->repeats);
}

static const char yaml[] = "model:\n  arch: gpt\n  width: 16\n  layers: 2\n  heads: 2\n  sequence: 8\n"
                           "data:\n  text: text.txt\n  tokenizer: bytes\n"
                           "train:\n  batch_size: 4\nrun:\n  threads: 2\n  out: run\n";

static const char *const no_keys[] = {NULL};

/* Verifies with the fault. Threads change fastest, so a fault of a team is seen in the first rows. */
static void expect_with(const char *const *keys, fault f, const char *reached, const char *named, unsigned enough,
                        pl_status expected)
{
    pl_error err = {0};
    seen s = {.reached = reached, .enough = enough, .named = named};
    pl_verify_result result;
    pl_verify_options o = {.row = see, .context = &s, .stop = &s.stop};
    pl_config *c = pl_config_create();
    assert_int_equal(pl_config_load_file(c, "small.yaml", &err), PL_OK);
    for (; *keys; keys += 2) assert_int_equal(pl_config_set(c, keys[0], keys[1], "the test", &err), PL_OK);
    assert_int_equal(pl_prepare(c, PL_COMMAND_TRAIN, NULL, NULL, &err), PL_OK);
    broken = f;
    calls = 0;
    assert_int_equal(pl_verify(c, &o, &result, &err), expected);
    broken = NONE;
    if (expected == PL_E_MISMATCH) assert_non_null(strstr(err.text, "make another update than the plain one"));
    assert_true((result.failed > 0) == (f != GRADIENT_NEAR));
    assert_int_equal(s.wrong, 0);
    assert_true(s.right > 0 && (f != GRADIENT_NEAR || s.near > 0));
    assert_int_equal(result.within, s.near);
    pl_config_destroy(c);
}

static void expect(fault f, const char *reached, unsigned enough, pl_status expected)
{
    expect_with(no_keys, f, reached, NULL, enough, expected);
}

/* ---- the update where storage is narrow: every plan of it is wrong in the same way ---- */

static void test_update_of_precision(void **state)
{
    static const struct {
        const char *name, *plan;
        pl_dtype dtype;
    } of[] = {{"bf16", "mixed_precision bf16", PL_DTYPE_BF16}, {"fp16", "mixed_precision fp16", PL_DTYPE_F16}};
    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *const keys[] = {"train.mixed_precision", of[i].name, "train.grad_clip", "0.1", NULL};
        narrow = of[i].dtype;
        expect_with(keys, DECAY, of[i].plan, "", 0, PL_E_STOPPED);
        expect_with(keys, NOT_MADE, of[i].plan, "", 0, PL_E_STOPPED);
        expect_with(keys, CLIPPED, of[i].plan, "the factor", 0, PL_E_STOPPED);
        expect_with(keys, CHOPPED, of[i].plan, i ? "f16." : "bf16.", 0, PL_E_STOPPED);
    }
    narrow = PL_DTYPE_F32;
}

static void test_update_of_state(void **state)
{
    static const struct {
        const char *name;
        int state;
    } of[] = {{"f32", PL_ADAMW_F32}, {"bf16", PL_ADAMW_BF16}, {"8bit", PL_ADAMW_8BIT}};
    static const struct {
        fault fault;
        const char *named;
    } faults[] = {{DECAY, ""}, {BETA1, ""}, {BETA2, ""}, {EPS, ""}, {STEP, ""}, {RANDOM, ""}, {NOT_MADE, ""}};
    (void)state;
    for (int i = 0; i < 3; i++)
        for (size_t k = 0; k < sizeof faults / sizeof *faults; k++) {
            const char *const keys[] = {"train.optimizer_state", of[i].name, NULL};
            if (faults[k].fault == RANDOM && i == 0) continue;   /* nothing is rounded at random */
            if (faults[k].fault == NOT_MADE && i == 2) continue; /* vectors stay f32 */
            narrow_state = of[i].state;
            printf("  %s: fault %d\n", of[i].name, (int)faults[k].fault);
            expect_with(keys, faults[k].fault, NULL, faults[k].named, 0, PL_E_STOPPED);
        }
}

static void test_recompute(void **state)
{
    (void)state, expect(OTHER_RECOMPUTE, "checkpointing full", 0, PL_E_MISMATCH);
}
static void test_lost(void **state) { (void)state, expect(LOST_MICRO_BATCH, "micro_batch", 0, PL_E_MISMATCH); }
static void test_bf16_lost(void **state)
{
    (void)state, expect(BF16_LOST, "mixed_precision bf16, micro_batch", 0, PL_E_MISMATCH);
}
static void test_bf16_far(void **state) { (void)state, expect(BF16_FAR, "mixed_precision bf16", 0, PL_E_MISMATCH); }
static void test_chunks(void **state) { (void)state, expect(OTHER_CHUNKS, "feed_forward_rows", 0, PL_E_MISMATCH); }
static void test_team(void **state) { (void)state, expect(TEAM_OF_3, "threads 3", 6, PL_E_STOPPED); }
static void test_each_time(void **state) { (void)state, expect(OTHER_EACH_TIME, NULL, 6, PL_E_STOPPED); }
static void test_far(void **state) { (void)state, expect(GRADIENT_FAR, "threads 3", 6, PL_E_STOPPED); }
static void test_near(void **state) { (void)state, expect(GRADIENT_NEAR, "threads 3", 6, PL_E_STOPPED); }

int main(void)
{
    char folder[] = "/tmp/plimsoll-faults-XXXXXX";
    if (enter_folder(folder)) return 1;
    write_file("small.yaml", yaml, 1);
    write_file("text.txt", "the sea is wide and the ship is deep; ", 400);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_recompute),
                                       cmocka_unit_test(test_lost),
                                       cmocka_unit_test(test_team),
                                       cmocka_unit_test(test_each_time),
                                       cmocka_unit_test(test_far),
                                       cmocka_unit_test(test_near),
                                       cmocka_unit_test(test_chunks),
                                       cmocka_unit_test(test_bf16_far),
                                       cmocka_unit_test(test_bf16_lost),
                                       cmocka_unit_test(test_update_of_precision),
                                       cmocka_unit_test(test_update_of_state)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return leave_folder(folder) || failed;
}
