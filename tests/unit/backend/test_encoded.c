/* A small model whose weights are encoded (table, linear with everything, gated feed-forward layer, loss with its
 * gradient, gradient of x): each value has the bits that it has where the widened weights are plain, at every level of
 * this machine, for teams of 1 to 3, with few tokens (dot products) and more (tiles). The scalar level, which
 * widens a block for each product and so takes four fifths of the time, goes the same way for few tokens and for many:
 * it has few, and one team. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/backend.h"
#include "base/size.h"
#include "support/guarded.h"
#include "support/program.h"

enum { WEIGHTS = 4, NAME_BYTES = 32, FEW = 3 };

static const char text[] = "graph 2\nregion 0 \"train\"\n"
                           "value 0 \"tokens\" i32 [3,%d] input program=0\n"
                           "value 1 \"targets\" i32 [3,%d] input program=0\n"
                           "value 2 \"scale\" f32 [1] input\n"
                           "value 3 \"table\" f32 [40,256] weight%s frozen=1\n"
                           "value 4 \"w\" f32 [256,256] weight%s frozen=1\n"
                           "value 5 \"gate_up\" f32 [512,256] weight%s frozen=1\n"
                           "value 6 \"down\" f32 [256,256] weight%s frozen=1\n"
                           "value 7 \"bias\" f32 [256] weight frozen=1\n"
                           "value 8 \"loss\" f64 [1] output program=0\n"
                           "value 9 \"x\" f32 [3,%d,256] temporary program=0\n"
                           "value 10 \"y\" f32 [3,%d,256] temporary program=0\n"
                           "value 11 \"a\" f32 [3,%d,256] temporary program=0\n"
                           "value 12 \"z\" f32 [3,%d,256] temporary program=0\n"
                           "value 13 \"loss.1\" f64 [1] output program=0 update=8\n"
                           "value 14 \"dh\" f32 [3,%d,256] temporary program=0\n"
                           "value 15 \"dx\" f32 [3,%d,256] output program=0\n"
                           "node 0 fill region=0 y=8 value=0\n"
                           "node 1 embedding region=0 tokens=0 table=3 x=9 window=1\n"
                           "node 2 linear region=0 x=9 weight=4 bias=7 residual=9 y=10 act_y=11 act=gelu\n"
                           "node 3 gated_feed_forward region=0 x=11 gate_up=5 down=6 residual=10 y=12 act=silu rows=4\n"
                           "node 4 linear_ce_bwd region=0 h=12 weight=3 target=1 scale=2 loss=8 loss_new=13 dh=14 "
                           "chunk_rows=7\n"
                           "node 5 linear_dx region=0 dy=14 weight=4 dx=15 act=none\nend graph\n";

static pl_graph *graph_of(pl_encoding encoding, int tokens)
{
    char field[NAME_BYTES] = "", whole[4096];
    const int t = tokens;
    pl_graph *g = NULL;
    pl_error err = {0};
    if (encoding) snprintf(field, sizeof field, " encoding=%s", pl_encoding_name(encoding));
    snprintf(whole, sizeof whole, text, t, t, field, field, field, field, t, t, t, t, t, t);
    if (pl_graph_parse("encoded", whole, strlen(whole), &g, &err) != PL_OK ||
        pl_graph_check(g, PL_STAGE_BOUND, &err) != PL_OK)
        fail_msg("%s", err.text);
    pl_str printed = {0};
    pl_graph_print(g, &printed);
    assert_string_equal(pl_str_text(&printed), whole);
    pl_str_deinit(&printed);
    return g;
}

/* Any numbers of ordinary size. */
static void fill_weight(const pl_value *v, uint8_t *at, uint64_t bytes, uint64_t stream)
{
    const int64_t count = (int64_t)pl_shape_elems(&v->shape);
    float *normal = guarded_normal(count, stream);
    for (int64_t i = 0; i < count; i++) normal[i] *= 0.1f;
    if (pl_encoding_is_written(v->encoding)) {
        pl_encoding_narrow(v->encoding, normal, count, at);
        return;
    }
    memcpy(at, normal, bytes); /* codes; then scales of f16 */
    const int two = v->encoding != PL_ENCODING_Q6_K, first = two ? 0 : 208;
    for (uint64_t b = 0; b < bytes; b += (uint64_t)pl_encoding_block_bytes(v->encoding))
        for (int i = 0; i < 1 + two; i++) at[b + (uint64_t)(first + 2 * i + 1)] = (uint8_t)(0x0c + b % 7);
}

typedef struct memory {
    uint64_t offset[16];
    pl_addresses at;
    uint64_t bytes;
} memory;

static memory *memory_of(const pl_graph *g)
{
    memory *m = guarded_bytes(sizeof *m, 0);
    *m = (memory){0};
    for (size_t i = 0; i < g->value_count; i++) {
        m->offset[i] = m->bytes;
        if (pl_value_root(g, (pl_id)i) == i) m->bytes += pl_align_up(pl_value_bytes(g, (pl_id)i), 64);
    }
    m->at = (pl_addresses){.base = {guarded_bytes(m->bytes, 0)}, .offset = m->offset};
    return m;
}

static void fill_inputs(const pl_graph *g, const memory *m)
{
    int32_t *tokens = pl_address_of(g, &m->at, 0), *targets = pl_address_of(g, &m->at, 1);
    const int64_t count = (int64_t)pl_shape_elems(&g->value[0].shape);
    for (int64_t i = 0; i < count; i++)
        tokens[i] = (int32_t)(i % 9 == 4 ? -1 : i * 7 % 40), targets[i] = (int32_t)(i * 11 % 40);
    *(float *)pl_address_of(g, &m->at, 2) = 1 / (float)count;
    memcpy(pl_address_of(g, &m->at, 7), guarded_normal(256, 7), 256 * sizeof(float));
}

static void run(const pl_graph *g, const memory *m, pl_team team)
{
    pl_error err = {0};
    for (size_t i = 0; i < g->node_count; i++) {
        uint64_t bytes;
        pl_call call = {0};
        assert_int_equal(pl_backend_workspace_bytes(g, &g->node[i], team, &bytes, &err), PL_OK);
        assert_int_equal(pl_backend_bind(g, &g->node[i], &m->at, guarded_bytes(bytes, 0), &call, &err), PL_OK);
        pl_backend_exec(&call, team);
    }
}

static void check_same(const pl_graph *g, const memory *m, const pl_graph *plain, const memory *wide, pl_team team)
{
    static const pl_id made[] = {8, 9, 10, 11, 12, 14, 15};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        if (memcmp(pl_address_of(g, &m->at, made[i]), pl_address_of(plain, &wide->at, made[i]),
                   pl_value_bytes(g, made[i])) != 0)
            fail_msg("%s differs where weights are %s (%s, %d threads, %lld tokens)", g->value[made[i]].name,
                     pl_encoding_name(g->value[3].encoding), pl_isa_name(team.isa), team.threads,
                     (long long)g->value[0].shape.dim[1]);
}

static void check_model(pl_encoding encoding, int tokens)
{
    pl_graph *g = graph_of(encoding, tokens), *plain = graph_of(PL_ENCODING_F32, tokens);
    memory *m = memory_of(g), *wide = memory_of(plain);
    fill_inputs(g, m), fill_inputs(plain, wide);
    for (pl_id i = 3; i < 3 + WEIGHTS; i++) {
        void *at = pl_address_of(g, &m->at, i);
        fill_weight(&g->value[i], at, pl_value_bytes(g, i), i);
        pl_encoding_widen(encoding, at, (int64_t)pl_shape_elems(&g->value[i].shape),
                          pl_address_of(plain, &wide->at, i));
    }
    for (pl_isa isa = tokens > FEW ? PL_ISA_REF + 1 : PL_ISA_REF; isa <= pl_isa_of_machine(); isa++) {
        run(plain, wide, (pl_team){1, isa});
        for (int threads = isa == PL_ISA_REF ? 3 : 1; threads <= 3; threads++) {
            run(g, m, (pl_team){threads, isa});
            check_same(g, m, plain, wide, (pl_team){threads, isa});
        }
    }
    guarded_check_all();
    guarded_free_all();
    pl_graph_destroy(g);
    pl_graph_destroy(plain);
}

static void test_models(void **state)
{
    (void)state;
    for (int e = PL_ENCODING_BF16; e < PL_ENCODING_COUNT; e++)
        check_model((pl_encoding)e, FEW), check_model((pl_encoding)e, 14);
}

static void test_bytes(void **state)
{
    (void)state;
    pl_graph *g = graph_of(PL_ENCODING_Q4_K, 3);
    assert_int_equal(pl_value_bytes(g, 3), 40 * 144);
    assert_int_equal(pl_value_bytes(g, 5), 512 * 144);
    assert_int_equal(pl_value_bytes(g, 7), 256 * 4);
    pl_graph_destroy(g);
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_models), cmocka_unit_test(test_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
