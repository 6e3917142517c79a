/* The legality check refuses, each with its sentence, one illegal graph per rule: a small legal graph as text, in which
 * one thing is changed. What no text can say (ids out of range) is changed in the graph itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/str.h"
#include "ir/op.h"
#include "support/program.h"

/* One of every operator that a check could be too kind to; values are listed in pairs of lines with their node. */
static const char legal[] =
    "graph 1\n"
    "region 0 \"p\" batch=2\n"
    "region 1 \"micro\" in=0 trip=2\n"
    "region 2 \"q\"\n"
    "value 0 \"tokens\" i32 [2,3] input\n"
    "value 1 \"table\" f32 [5,4] weight\n"
    "value 2 \"places\" f32 [3,4] weight\n"
    "value 3 \"step\" i64 [1] input\n"
    "value 4 \"scale\" f32 [1] input\n"
    "value 5 \"w\" f32 [4,4] weight\n"
    "value 6 \"gain\" f32 [4] weight\n"
    "value 7 \"loss\" f64 [1] output program=0\n"
    "value 8 \"x\" f32 [2,3,4] temporary program=0\n"
    "value 9 \"n\" f32 [2,3,4] temporary program=0\n"
    "value 10 \"mean\" f32 [2,3] temporary program=0\n"
    "value 11 \"rstd\" f32 [2,3] temporary program=0\n"
    "value 12 \"qkv\" f32 [2,3,12] temporary program=0\n"
    "value 13 \"w3\" f32 [12,4] weight\n"
    "value 14 \"q\" f32 [2,3,4] temporary program=0 view=12 offset=0 strides=36,12,1\n"
    "value 15 \"k\" f32 [2,3,4] temporary program=0 view=12 offset=4 strides=36,12,1\n"
    "value 16 \"v\" f32 [2,3,4] temporary program=0 view=12 offset=8 strides=36,12,1\n"
    "value 17 \"o\" f32 [2,3,4] temporary program=0\n"
    "value 18 \"lse\" f32 [2,2,3] temporary program=0\n"
    "value 19 \"a\" f32 [2,3,4] temporary program=0\n"
    "value 20 \"d\" f32 [2,3,4] temporary program=0\n"
    "value 21 \"s\" f32 [2,3,4] temporary program=0\n"
    "value 22 \"loss.1\" f64 [1] output program=0 update=7\n"
    "value 23 \"dh\" f32 [2,3,4] temporary program=0\n"
    "value 24 \"dtable\" f32 [5,4] gradient program=0\n"
    "value 25 \"dtable.1\" f32 [5,4] gradient program=0 update=24\n"
    "value 26 \"dgain\" f32 [4] gradient program=0\n"
    "value 27 \"dgain.1\" f32 [4] gradient program=0 update=26\n"
    "value 28 \"dn\" f32 [2,3,4] temporary program=0\n"
    "value 29 \"dbias\" f32 [4] gradient program=0\n"
    "value 30 \"dbias.1\" f32 [4] gradient program=0 update=29\n"
    "value 31 \"dq\" f32 [2,3,4] temporary program=0\n"
    "value 32 \"dk\" f32 [2,3,4] temporary program=0\n"
    "value 33 \"dv\" f32 [2,3,4] temporary program=0\n"
    "value 34 \"dw\" f32 [4,4] gradient program=0\n"
    "value 35 \"dw.1\" f32 [4,4] gradient program=0 update=34\n"
    "value 36 \"dx\" f32 [2,3,4] temporary program=0\n"
    "value 37 \"dbias.2\" f32 [4] gradient program=0 update=30\n"
    "value 38 \"dtable.2\" f32 [5,4] gradient program=0 update=25\n"
    "value 39 \"dplaces\" f32 [3,4] gradient program=0\n"
    "value 40 \"dplaces.1\" f32 [3,4] gradient program=0 update=39\n"
    "value 41 \"norm\" f64 [1] state program=0\n"
    "value 42 \"norm.1\" f64 [1] state program=0 update=41\n"
    "value 43 \"clip\" f32 [1] temporary program=0\n"
    "value 44 \"finite\" i32 [1] temporary program=0\n"
    "value 45 \"m\" f32 [4,4] optimizer\n"
    "value 46 \"vv\" f32 [4,4] optimizer\n"
    "value 47 \"w.1\" f32 [4,4] weight update=5\n"
    "value 48 \"m.1\" f32 [4,4] optimizer update=45\n"
    "value 49 \"vv.1\" f32 [4,4] optimizer update=46\n"
    "value 50 \"cache\" f32 [1,9,4] state program=2\n"
    "value 51 \"cache.1\" f32 [1,9,4] state program=2 update=50\n"
    "value 52 \"one\" f32 [1,1,4] input program=2\n"
    "value 53 \"oo\" f32 [1,1,4] temporary program=2\n"
    "value 54 \"gelu\" f32 [2,3,4] temporary program=0\n"
    "value 55 \"dgelu\" f32 [2,3,4] temporary program=0\n"
    "value 56 \"rms\" f32 [2,3,4] temporary program=0\n"
    "value 57 \"rrstd\" f32 [2,3] temporary program=0\n"
    "value 58 \"drms\" f32 [2,3,4] temporary program=0\n"
    "value 59 \"dgain.2\" f32 [4] gradient program=0 update=27\n"
    "value 60 \"ema.w\" f32 [4,4] average\n"
    "value 61 \"ema.w.1\" f32 [4,4] average update=60\n"
    "node 0 fill region=0 out=7 value=0\n"
    "node 1 fill region=0 out=24 value=0\n"
    "node 2 fill region=0 out=26 value=0\n"
    "node 3 fill region=0 out=29 value=0\n"
    "node 4 fill region=0 out=34 value=0\n"
    "node 5 fill region=0 out=39 value=0\n"
    "node 6 fill region=0 out=41 value=0\n"
    "node 7 embedding region=1 in=0,1,2 out=8 window=1\n"
    "node 8 layer_norm region=1 in=8,6,6 out=9,10,11 eps=0.001\n"
    "node 9 linear region=1 in=9,13 out=12 act=none\n"
    "node 10 attention region=1 in=14,15,16 out=17,18 heads=2 causal=1 scale=0.5\n"
    "node 11 linear region=1 in=17,5,6,8 out=19,54 act=gelu\n"
    "node 12 dropout region=1 in=19,3,3,8 out=20 probability=0.5 seed=1 stream=2\n"
    "node 13 add region=1 in=20,54 out=21\n"
    "node 14 linear_ce_bwd region=1 in=21,1,0,4,7,24 out=22,23,25 chunk_rows=32 phase=backward\n"
    "node 15 layer_norm_bwd region=1 in=23,8,6,10,11,26,29,23 out=28,27,30 eps=0.001 phase=backward\n"
    "node 16 attention_bwd region=1 in=14,15,16,17,18,28 out=31,32,33 heads=2 causal=1 scale=0.5 phase=backward\n"
    "node 17 linear_dw region=1 in=31,17,34 out=35 phase=backward\n"
    "node 18 linear_dx region=1 in=32,5,33,19 out=36 act=gelu phase=backward\n"
    "node 19 column_sum region=1 in=36,30 out=37 phase=backward\n"
    "node 20 activation_bwd region=1 in=19,36 out=55 act=gelu phase=backward\n"
    "node 21 rms_norm region=1 in=55,6 out=56,57 eps=0.001 phase=backward\n"
    "node 22 rms_norm_bwd region=1 in=56,55,6,57,27,36 out=58,59 eps=0.001 phase=backward\n"
    "node 23 embedding_bwd region=1 in=0,58,25,39 out=38,40 window=1 phase=backward\n"
    "node 24 sum_squares region=0 in=35,41 out=42 phase=update\n"
    "node 25 clip_scale region=0 in=42 out=43,44 max_norm=1 phase=update\n"
    "node 26 adamw region=0 in=5,35,45,46,4,3,43 out=47,48,49 beta1=0.9 beta2=0.95 eps=1e-08 weight_decay=0 "
    "seed=1 stream=-7 phase=update predicate=44\n"
    "node 27 ema region=0 in=60,47 out=61 rate=0.75 phase=update\n"
    "node 28 cache_write region=2 in=52,50,3 out=51\n"
    "node 29 attention region=2 in=52,51,51,3 out=53 heads=2 causal=1 scale=0.5\n"
    "end graph\n";

static pl_graph *parse(const char *text)
{
    pl_error err = {0};
    pl_graph *g = NULL;
    if (pl_graph_parse("t", text, strlen(text), &g, &err) != PL_OK) fail_msg("%s", err.text);
    return g;
}

static void must_fail(const pl_graph *g, pl_graph_stage stage, const char *change, const char *words)
{
    pl_error err = {0};
    pl_status status = pl_graph_check(g, stage, &err);
    if (status == PL_OK) fail_msg("accepted: %s", change);
    if (status != PL_E_INTERNAL || !strstr(err.text, words))
        fail_msg("%s: \"%s\" does not say \"%s\"", change, err.text, words);
}

/* The legal text with `from` (which occurs once) replaced by `to` must be refused with these words. */
static void refuse_at(pl_graph_stage stage, const char *from, const char *to, const char *words)
{
    const char *at = strstr(legal, from);
    if (!at || strstr(at + 1, from)) fail_msg("\"%s\" does not occur once", from);
    pl_str text = {0};
    pl_str_append_bytes(&text, legal, (size_t)(at - legal));
    pl_str_append(&text, to);
    pl_str_append(&text, at + strlen(from));
    pl_graph *g = parse(pl_str_text(&text));
    must_fail(g, stage, to, words);
    pl_graph_destroy(g);
    pl_str_deinit(&text);
}

static void refuse(const char *from, const char *to, const char *words) { refuse_at(PL_STAGE_BOUND, from, to, words); }

static void the_legal_graph_is_legal(void **state)
{
    (void)state;
    pl_error err = {0};
    pl_graph *g = parse(legal);
    if (pl_graph_check(g, PL_STAGE_BOUND, &err) != PL_OK) fail_msg("%s", err.text);
    pl_graph_destroy(g);
}

static void values(void **state)
{
    (void)state;
    refuse("\"x\" f32 [2,3,4]", "\"x\" f32 [B,3,4]", "not bound");
    refuse("\"x\" f32 [2,3,4] temporary program=0", "\"x\" f32 [2,3,4] temporary program=1", "not a root region");
    refuse("\"w3\"", "\"w\"", "two values are named w");
    refuse("offset=8", "offset=9", "ends beyond the value");
    refuse("offset=8 strides=36,12,1", "offset=8 strides=36,1099511627775,1", "window");
    refuse("\"v\" f32 [2,3,4]", "\"v\" i32 [2,3,4]", "dtype of its base");
    refuse("update=24", "update=24 view=24", "both a view and an update");
    refuse("\"dbias.1\" f32 [4]", "\"dbias.1\" f32 [5]", "shape and dtype of what it replaces");
}

static void state_for_inference(void **state)
{
    (void)state;
    const char words[] = "only state that lasts and owns its bytes can be there for inference";
    refuse("\"w3\" f32 [12,4] weight", "\"w3\" f32 [12,4] weight inference=1", words);
    refuse("\"s\" f32 [2,3,4] temporary program=0", "\"s\" f32 [2,3,4] state program=0 inference=1", words);
}

static void frozen_weights(void **state)
{
    (void)state;
    const char words[] = "only a weight that lasts and owns its bytes can be frozen";
    refuse("\"w\" f32 [4,4] weight", "\"w\" f32 [4,4] weight frozen=1", "an update of a frozen weight");
    refuse("\"step\" i64 [1] input", "\"step\" i64 [1] input frozen=1", words);
    refuse("\"s\" f32 [2,3,4] temporary program=0", "\"s\" f32 [2,3,4] weight program=0 frozen=1", words);
    refuse("\"q\" f32 [2,3,4] temporary program=0", "\"q\" f32 [2,3,4] weight frozen=1", words);
}

static void averages(void **state)
{
    (void)state;
    refuse("ema region=0 in=60,47", "ema region=0 in=60,6", "the shape of the average");
    refuse("ema region=0 in=60,47", "ema region=0 in=60,43", "the shape of the average");
    refuse("ema region=0 in=60,47 out=61", "ema region=0 in=60,47 out=47", "");
    refuse("ema region=0 in=60,47", "ema region=0 in=60", "");
    refuse("rate=0.75", "rate=1", "the rate is at least 0 and below 1, not 1");
    refuse("rate=0.75", "rate=-0.5", "the rate is at least 0 and below 1, not -0.5");
    refuse("rate=0.75", "rate=nan", "");
}

/* Both rules take the same, but Adam-atan2 has no eps. */
static void optimizers(void **state)
{
    (void)state;
    static const char *const broken[][2] = {{"6,35,45,46,4,3,43", "the shape of the weight"},
                                            {"5,6,45,46,4,3,43", "the shape of the weight"},
                                            {"5,35,6,46,4,3,43", "the shape of the weight"},
                                            {"5,35,45,3,4,3,43", ""},
                                            {"5,35,45,46,3,3,43", ""},
                                            {"5,35,45,46,4,3,44", ""}};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        char to[160];
        snprintf(to, sizeof to, "adamw region=0 in=%s out=47,48,49 beta1=0.9 beta2=0.95 eps=1e-08", broken[i][0]);
        refuse("adamw region=0 in=5,35,45,46,4,3,43 out=47,48,49 beta1=0.9 beta2=0.95 eps=1e-08", to, broken[i][1]);
        snprintf(to, sizeof to, "adam_atan2 region=0 in=%s out=47,48,49 beta1=0.9 beta2=0.95", broken[i][0]);
        refuse("adamw region=0 in=5,35,45,46,4,3,43 out=47,48,49 beta1=0.9 beta2=0.95 eps=1e-08", to, broken[i][1]);
    }
}

static void regions(void **state)
{
    (void)state;
    refuse("trip=2", "trip=0", "never runs");
    refuse("node 13 add region=1", "node 13 add region=0", "not one stretch");
    refuse("node 25 clip_scale region=0", "node 25 clip_scale region=2", "");
}

static void order_and_versions(void **state)
{
    (void)state;
    refuse("in=17,5,6,8 out=19,54", "in=55,5,6,8 out=19,54", "nothing before it has produced");
    refuse("sum_squares region=0 in=35,41", "sum_squares region=0 in=34,41", "already replaced");
    refuse("in=52,51,51,3", "in=52,50,50,3", "already replaced");
    refuse("attention region=2 in=52,51,51,3 out=53", "attention region=2 in=52,51,51,3 out=17", "");
    refuse("add region=1 in=20,54", "add region=1 in=20,52", "nothing before it has produced");
    refuse("predicate=44", "predicate=43", "predicate");
    refuse("\"finite\" i32 [1] temporary program=0", "\"finite\" i32 [1] temporary program=2", "");
    refuse("fill region=0 out=24 value=0", "fill region=0 out=26 value=0", "two producers");
    refuse("node 20 activation_bwd region=1 in=19,36 out=55 act=gelu phase=backward",
           "node 20 activation_bwd region=1 in=19,36 out=55 act=gelu phase=backward dead=1", "");
}

static void outputs(void **state)
{
    (void)state;
    refuse("add region=1 in=20,54 out=21", "add region=1 in=20,54", "no output");
    refuse("add region=1 in=20,54 out=21", "add region=1 in=20,54 out=21,55", "too many outputs");
    refuse("add region=1 in=20,54 out=21", "add region=1 in=20,54,8 out=21", "too many inputs");
    refuse("add region=1 in=20,54 out=21", "add region=1 in=20 out=21", "input b is missing");
    refuse("\"s\" f32 [2,3,4]", "\"s\" f32 [2,3,5]", "shape that the operator gives");
    refuse("\"loss.1\" f64 [1] output program=0 update=7", "\"loss.1\" f64 [1] output program=0", "not marked so");
    refuse("\"o\" f32 [2,3,4] temporary program=0", "\"o\" f32 [2,3,4] temporary program=0 update=8",
           "may not overwrite");
    refuse("out=31,32,33", "out=31,32,32", "two");
    refuse("fill region=0 out=24 value=0", "fill region=0 out=3 value=0", "writes an input");
    refuse("26,29,23 out=28,27,30", "26,-,23 out=28,27,55", "");
}

static void outputs_that_a_kernel_always_writes(void **state)
{
    (void)state;
    refuse("out=47,48,49", "out=47,48", "an output is missing");
    refuse("out=47,48,49", "out=47,-,49", "an output is missing");
    refuse("out=43,44", "out=43", "an output is missing");
    refuse("out=31,32,33", "out=31,32", "an output is missing");
    refuse("out=22,23,25", "out=22,23", "an output is missing");
    refuse("out=28,27,30", "out=28,27", "an output is missing");
    refuse("out=38,40", "out=38", "an output is missing");
    refuse("in=56,55,6,57,27,36 out=58,59", "in=56,55,6,57,-,36", "no output");
    refuse("in=56,55,6,57,27,36 out=58,59", "in=56,55,6,57,-,36 out=58,59", "is not given");
    refuse("out=58,59", "out=58", "an output is missing");
}

static void a_changed_input_must_be_given(void **state)
{
    (void)state; /* without dbeta, its new version has no old one: it would add to what nobody has zeroed */
    refuse("\"dbias.1\" f32 [4] gradient program=0 update=29", "\"dbias.1\" f32 [4] gradient program=0",
           "not marked so");
    pl_graph *g = parse(legal);
    for (size_t i = 0; i < g->node_count; i++)
        if (g->node[i].op == PL_OP_LAYER_NORM_BWD) g->node[i].in[6] = PL_NONE;
    g->value[30].update_of = PL_NONE;
    must_fail(g, PL_STAGE_BOUND, "dbias without dbias", "in place");
    pl_graph_destroy(g);
}

/* dx may take the place of what is added to it, but not when the product reads that, too. */
static void an_operand_is_not_overwritten(void **state)
{
    (void)state;
    pl_error err = {0};
    pl_graph *g = parse(legal);
    g->value[36].update_of = 33;
    if (pl_graph_check(g, PL_STAGE_BOUND, &err) != PL_OK) fail_msg("%s", err.text);
    for (size_t i = 0; i < g->node_count; i++)
        if (g->node[i].op == PL_OP_LINEAR_DX) g->node[i].in[0] = 33;
    must_fail(g, PL_STAGE_BOUND, "dx over its own operand", "read elsewhere");
    pl_graph_destroy(g);
}

/* Shapes and dtypes that a kernel would take on trust. */
static void operands_of_matrix_products(void **state)
{
    (void)state;
    refuse("\"w3\" f32 [12,4]", "\"w3\" f32 [12,5]", "input weight is");
    refuse("linear region=1 in=9,13 out", "linear region=1 in=9,13,6 out", "input bias is");
    refuse("linear region=1 in=17,5,6,8", "linear region=1 in=17,5,6,12", "input residual is");
    refuse("linear region=1 in=17,5,6,8", "linear region=1 in=0,5,6,8", "input x is");
    refuse("linear_dx region=1 in=32,5,33,19", "linear_dx region=1 in=32,5,12,19", "input partial is");
    refuse("linear_dx region=1 in=32,5,33,19", "linear_dx region=1 in=32,5,33,12", "input u is");
    refuse("linear_dx region=1 in=32,5,33,19", "linear_dx region=1 in=32,1,33,19", "input weight is");
    refuse("linear_dw region=1 in=31,17,34", "linear_dw region=1 in=31,6,34", "input x is");
    refuse("column_sum region=1 in=36,30", "column_sum region=1 in=12,30", "input sum is");
    refuse("\"places\" f32 [3,4]", "\"places\" i32 [3,4]", "input positions is");
    refuse("\"w\" f32 [4,4]", "\"w\" i32 [4,4]", "");
}

/* A linear layer, its gradients and the loss in bf16, with what stays f32 beside them. */
static const char mixed[] = "graph 1\n"
                            "region 0 \"p\" batch=2\n"
                            "value 0 \"x\" bf16 [2,3,4] input program=0\n"
                            "value 1 \"w\" bf16 [4,4] input program=0\n"
                            "value 2 \"bias\" f32 [4] weight\n"
                            "value 3 \"target\" i32 [2,3] input program=0\n"
                            "value 4 \"scale\" f32 [1] input program=0\n"
                            "value 5 \"loss\" f64 [1] output program=0\n"
                            "value 6 \"dw\" f32 [4,4] gradient program=0\n"
                            "value 7 \"dbias\" f32 [4] gradient program=0\n"
                            "value 8 \"u\" bf16 [2,3,4] temporary program=0\n"
                            "value 9 \"y\" bf16 [2,3,4] temporary program=0\n"
                            "value 10 \"loss.1\" f64 [1] output program=0 update=5\n"
                            "value 11 \"dy\" bf16 [2,3,4] temporary program=0\n"
                            "value 12 \"dw.1\" f32 [4,4] gradient program=0 update=6\n"
                            "value 13 \"dx\" bf16 [2,3,4] temporary program=0\n"
                            "value 14 \"again\" bf16 [2,3,4] temporary program=0\n"
                            "value 15 \"dw.2\" f32 [4,4] gradient program=0 update=12\n"
                            "value 16 \"dbias.1\" f32 [4] gradient program=0 update=7\n"
                            "node 0 linear region=0 in=0,1,2,0 out=8,9 act=gelu\n"
                            "node 1 fill region=0 out=5 value=0\n"
                            "node 2 fill region=0 out=6 value=0\n"
                            "node 3 fill region=0 out=7 value=0\n"
                            "node 4 linear_ce_bwd region=0 in=9,1,3,4,5,6 out=10,11,12 chunk_rows=2\n"
                            "node 5 linear_dx region=0 in=11,1,11,8 out=13,14 act=gelu\n"
                            "node 6 linear_dw region=0 in=13,0,12 out=15\n"
                            "node 7 column_sum region=0 in=13,7 out=16\n"
                            "end graph\n";

static void numbers_of_16_bits_in_matrix_products(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *words;
    } changes[] = {
        {"\"w\" bf16", "\"w\" f32", "linear in : input weight is f32 [4,4], expected bf16"},
        {"\"w\" bf16", "\"w\" f16", "input weight is f16 [4,4], expected bf16"},
        {"\"bias\" f32", "\"bias\" bf16", "input bias is bf16 [4], expected f32"},
        {"\"y\" bf16", "\"y\" f32", ""},
        {"\"dy\" bf16", "\"dy\" f32", ""},
        {"\"dx\" bf16", "\"dx\" f16", ""},
        {"\"dbias\" f32 [4] gradient program=0\n", "\"dbias\" bf16 [4] gradient program=0\n", ""},
        {"linear_dw region=0 in=13,0,12", "linear_dw region=0 in=13,2,12", "input x is f32 [4], expected bf16"},
        {"linear_ce_bwd region=0 in=9,1,3", "linear_ce_bwd region=0 in=9,6,3",
         "input weight is f32 [4,4], expected bf16"},
    };
    pl_error err = {0};
    pl_graph *g = parse(mixed);
    if (pl_graph_check(g, PL_STAGE_BOUND, &err) != PL_OK) fail_msg("%s", err.text);
    pl_graph_destroy(g);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        const char *at = strstr(mixed, changes[i].from);
        assert_non_null(at);
        char text[sizeof mixed + 64];
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - mixed), mixed, changes[i].to, at + strlen(changes[i].from));
        g = parse(text);
        must_fail(g, PL_STAGE_BOUND, changes[i].to, changes[i].words);
        pl_graph_destroy(g);
    }
}

static void operands_of_norms(void **state)
{
    (void)state;
    refuse("layer_norm region=1 in=8,6,6", "layer_norm region=1 in=8,6,3", "input beta is");
    refuse("layer_norm region=1 in=8,6,6", "layer_norm region=1 in=8,6,4", "input beta is");
    refuse("in=23,8,6,10,11,26,29,23", "in=23,8,6,4,11,26,29,23", "input mean is");
    refuse("in=23,8,6,10,11,26,29,23", "in=23,8,6,10,4,26,29,23", "input rstd is");
    refuse("in=23,8,6,10,11,26,29,23", "in=23,8,6,10,11,26,29,12", "input add is");
    refuse("in=56,55,6,57,27,36", "in=56,55,6,4,27,36", "input rstd is");
    refuse("in=56,55,6,57,27,36", "in=56,55,6,-,27,36", "input rstd is missing");
    refuse("in=56,55,6,57,27,36", "in=56,55,-,57,27,36", "input dgamma is");
    refuse("in=56,55,6,57,27,36", "in=56,55,6,57,27,12", "input add is");
    refuse("in=56,55,6,57,27,36", "in=12,55,6,57,27,36", "input dy is");
}

static void operands_of_attention(void **state)
{
    (void)state;
    refuse("in=14,15,16 out=17,18 heads=2", "in=14,15,16 out=17,18 heads=3", "heads");
    refuse("in=14,15,16 out=17,18 heads=2", "in=14,15,16 out=17,18 heads=0", "heads");
    refuse("out=17,18 heads=2", "out=17,18 key_heads=3 heads=2", "3 key heads do not divide 2 heads");
    refuse("out=17,18 heads=2", "out=17,18 key_heads=-1 heads=2", "-1 key heads");
    refuse("out=17,18 heads=2", "out=17,18 key_heads=1 heads=2", "input k is");
    refuse("out=17,18 heads=2", "out=17,18 window=-1 heads=2", "only causal attention has a window");
    refuse("out=17,18 heads=2 causal=1", "out=17,18 window=1 heads=2 causal=0", "only causal attention has a window");
    refuse("out=17,18 heads=2", "out=17,18 cap=-2 heads=2", "the cap -2");
    refuse("out=17,18 heads=2", "out=17,18 cap=inf heads=2", "the cap inf");
    refuse("attention_bwd region=1 in=14,15,16,17,18,28", "attention_bwd region=1 in=14,15,16,12,18,28", "input o is");
    refuse("attention_bwd region=1 in=14,15,16,17,18,28", "attention_bwd region=1 in=14,15,16,17,11,28",
           "input lse is");
    refuse("attention_bwd region=1 in=14,15,16,17,18,28", "attention_bwd region=1 in=14,15,16,17,18,12",
           "input d_o is");
    refuse("\"cache\" f32 [1,9,4] state program=2\nvalue 51 \"cache.1\" f32 [1,9,4]",
           "\"cache\" f32 [2,9,4] state program=2\nvalue 51 \"cache.1\" f32 [2,9,4]", "input cache is");
    refuse("attention region=2 in=52,51,51,3", "attention region=2 in=52,51,51,4", "input position is");
    refuse("attention region=2 in=52,51,51,3", "attention region=2 in=52,51,52,3", "input v is");
    refuse("cache_write region=2 in=52,50,3", "cache_write region=2 in=52,50,4", "input position is");
    refuse("cache_write region=2 in=52,50,3", "cache_write region=2 in=0,50,3", "input x is");
    refuse("cache_write region=2 in=52,50,3", "cache_write region=2 in=52,50,3,4", "input sequence is");
    refuse("attention region=2 in=52,51,51,3", "attention region=2 in=52,51,51,3,-,-,4", "input sequence is");
    refuse("in=14,15,16 out=17,18", "in=14,15,16,-,-,-,3 out=17,18", "a position and queries of one sequence");
}

static void dropout_of_attention(void **state)
{
    (void)state;
    static const char forward[] = "in=14,15,16 out=17,18", backward[] = "in=14,15,16,17,18,28 out=31,32,33";
    refuse(forward, "in=14,15,16,-,3,3 out=17,18 probability=1", "probability is not in [0, 1)");
    refuse(forward, "in=14,15,16,-,3,3 out=17,18 probability=-0.1", "probability is not in [0, 1)");
    refuse(forward, "in=14,15,16,-,3,3 out=17,18 probability=nan", "probability is not in [0, 1)");
    refuse(forward, "in=14,15,16 out=17,18 probability=0.5", "input step is nothing, expected i64 [1]: dropout needs");
    refuse(forward, "in=14,15,16,-,3 out=17,18 probability=0.5", "input first_sample is nothing, expected i64 [1]");
    refuse(forward, "in=14,15,16,-,4,3 out=17,18 probability=0.5", "input step is");
    refuse(forward, "in=14,15,16,-,3,4 out=17,18 probability=0.5", "input first_sample is");
    refuse(forward, "in=14,15,16,3,3,3 out=17,18 probability=0.5", "no position where weights are dropped");
    refuse(backward, "in=14,15,16,17,18,28 out=31,32,33 probability=1", "probability is not in [0, 1)");
    refuse(backward, "in=14,15,16,17,18,28 out=31,32,33 probability=0.5", "input step is nothing");
    refuse(backward, "in=14,15,16,17,18,28,3 out=31,32,33 probability=0.5", "input first_sample is nothing");
    refuse(backward, "in=14,15,16,17,18,28,4,3 out=31,32,33 probability=0.5", "input step is");
}

/* Blocks of the mask have numbers of 32 bits: 2^17 queries of 2^17 keys in one head are as many as there are. */
static void blocks_of_the_mask_can_be_numbered(void **state)
{
    (void)state;
    for (int heads = 1; heads <= 2; heads++) {
        pl_error err = {0};
        char text[512];
        snprintf(text, sizeof text,
                 "graph 1\nregion 0 \"p\"\nvalue 0 \"q\" f32 [1,131072,2] input\nvalue 1 \"step\" i64 [1] input\n"
                 "value 2 \"o\" f32 [1,131072,2] output program=0\nnode 0 attention region=0 in=0,0,0,-,1,1 out=2 "
                 "heads=%d causal=0 scale=1 probability=0.5\nend graph\n",
                 heads);
        pl_graph *g = parse(text);
        if (heads == 1 && pl_graph_check(g, PL_STAGE_BOUND, &err) != PL_OK) fail_msg("%s", err.text);
        if (heads == 2) must_fail(g, PL_STAGE_BOUND, text, "fewer keys");
        pl_graph_destroy(g);
    }
}

static void operands_of_tables_and_losses(void **state)
{
    (void)state;
    refuse("in=0,1,2 out=8 window=1", "in=0,1,2 out=8 window=0", "window");
    refuse("in=0,1,2 out=8 window=1", "in=0,1,2,4 out=8 window=1", "input position is");
    refuse("in=0,1,2 out=8 window=1", "in=4,1,2 out=8 window=1", "input tokens is");
    refuse("\"places\" f32 [3,4]", "\"places\" f32 [2,4]", "input positions is");
    refuse("in=0,58,25,39 out=38,40 window=1", "in=0,12,25,39 out=38,40 window=1", "input dy is");
    refuse("\"dplaces\" f32 [3,4] gradient program=0\nvalue 40 \"dplaces.1\" f32 [3,4]",
           "\"dplaces\" f32 [2,4] gradient program=0\nvalue 40 \"dplaces.1\" f32 [2,4]", "input dpositions is");
    refuse("in=0,58,25,39 out=38,40", "in=0,58", "input dtable is nothing");
    refuse("in=0,58,25,39 out=38,40", "in=0 out=38,40", "input dy is missing");
    refuse("in=21,1,0,4,7,24 out=22,23,25 chunk_rows=32", "in=21,1,0,4,7,24 out=22,23,25 chunk_rows=0", "chunk");
    refuse("in=21,1,0,4,7,24", "in=21,1,0,3,7,24", "input scale is");
    refuse("in=21,1,0,4,7,24", "in=21,1,3,4,7,24", "input target is");
    refuse("in=21,1,0,4,7,24", "in=21,5,0,4,7,24", "input dweight is");
}

static void operands_of_the_rest(void **state)
{
    (void)state;
    refuse("add region=1 in=20,54", "add region=1 in=20,12", "input b is");
    refuse("dropout region=1 in=19,3,3,8", "dropout region=1 in=19,3,3,12", "input residual is");
    refuse("dropout region=1 in=19,3,3,8", "dropout region=1 in=19,4,3,8", "input step is");
    refuse("dropout region=1 in=19,3,3,8", "dropout region=1 in=19,3,4,8", "input first_sample is");
    refuse("probability=0.5", "probability=1", "probability");
    refuse("probability=0.5", "probability=nan", "probability");
    refuse("activation_bwd region=1 in=19,36", "activation_bwd region=1 in=19,12", "input dy is");
    refuse("sum_squares region=0 in=35,41", "sum_squares region=0 in=35,4", "input sum is");
    refuse("clip_scale region=0 in=42", "clip_scale region=0 in=4", "input sum is");
    refuse("in=5,35,45,46,4,3,43", "in=5,35,45,46,6,3,43", "input rate is");
    refuse("in=5,35,45,46,4,3,43", "in=5,35,45,46,4,4,43", "input step is");
    refuse("in=5,35,45,46,4,3,43", "in=5,35,45,46,4,3,42", "input scale is");
    refuse("in=5,35,45,46,4,3,43", "in=5,37,45,46,4,3,43", "input gradient is");
    refuse("fill region=0 out=41 value=0", "fill region=0 out=41 value=1", "f32");
}

/* Ids that a text cannot hold: the graph was made by code. */
static void ids_that_do_not_exist(void **state)
{
    (void)state;
    for (int which = 0; which < 6; which++) {
        pl_graph *g = parse(legal);
        pl_node *n = &g->node[26];
        pl_id *id[] = {&n->in[1], &n->out[1], &n->predicate, &n->region, &n->queue, &g->value[8].view_of};
        *id[which] = 1000;
        must_fail(g, PL_STAGE_BOUND, "an id that does not exist", "");
        pl_graph_destroy(g);
    }
    pl_graph *g = parse(legal);
    g->node[13].op = PL_OP_COUNT;
    must_fail(g, PL_STAGE_BOUND, "an operator that does not exist", "unknown operator");
    pl_graph_destroy(g);
}

static void what_belongs_to_views_alone(void **state)
{
    (void)state;
    static const char *const fields[] = {"offset=3", "strides=9,9,1"};
    for (int i = 0; i < 2; i++) {
        char text[160];
        pl_error err = {0};
        pl_graph *g = NULL;
        snprintf(text, sizeof text,
                 "graph 1\nregion 0 \"p\"\nvalue 0 \"x\" f32 [2,3,4] input program=0 %s\nend graph\n", fields[i]);
        assert_int_equal(pl_graph_parse("t", text, strlen(text), &g, &err), PL_E_DATA);
        assert_non_null(strstr(err.text, "view"));
    }
}

static void names_of_spaces_and_queues_read_back(void **state)
{
    (void)state;
    static const char text[] = "graph 2\nspace \"a b\"\nqueue \"c \\\"d\"\nend graph\n";
    pl_graph *g = parse(text);
    pl_str printed = {0};
    pl_graph_print(g, &printed);
    assert_string_equal(pl_str_text(&printed), text);
    pl_str_deinit(&printed);
    pl_graph_destroy(g);
}

/* What version 1 said by names alone; the same in version 2. */
static void version_1_belongs_by_name(void **state)
{
    (void)state;
    static const char old[] = "graph 1\nregion 0 \"p\"\nvalue 0 \"w\" f32 [4,4] weight scope=\"cycle.0/block.1/x\"\n"
                              "value 1 \"w.taken\" i32 [1] staging scope=\"block.1/x\"\n"
                              "value 2 \"w.rows\" f32 [4] weight scope=\"head\"\n"
                              "node 0 fill region=0 out=2 value=0 scope=\"block.3\"\nend graph\n";
    static const char now[] =
        "graph 2\nregion 0 \"p\"\nvalue 0 \"w\" f32 [4,4] weight block=1 scope=\"cycle.0/block.1/x\"\n"
        "value 1 \"w.taken\" i32 [1] staging of=0 block=1 scope=\"block.1/x\"\n"
        "value 2 \"w.rows\" f32 [4] weight scope=\"head\"\nnode 0 fill region=0 y=2 value=0 block=3 "
        "scope=\"block.3\"\nend graph\n";
    for (int i = 0; i < 2; i++) {
        pl_graph *g = parse(i ? now : old);
        pl_str printed = {0};
        pl_graph_print(g, &printed);
        assert_string_equal(pl_str_text(&printed), now);
        assert_true(g->value[0].block == 2 && g->value[1].of == 0 && g->value[2].of == PL_NONE);
        pl_str_deinit(&printed);
        pl_graph_destroy(g);
    }
}

PL_TEST_PROGRAM(argc, argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_legal_graph_is_legal),
        cmocka_unit_test(values),
        cmocka_unit_test(frozen_weights),
        cmocka_unit_test(state_for_inference),
        cmocka_unit_test(averages),
        cmocka_unit_test(optimizers),
        cmocka_unit_test(regions),
        cmocka_unit_test(order_and_versions),
        cmocka_unit_test(outputs),
        cmocka_unit_test(outputs_that_a_kernel_always_writes),
        cmocka_unit_test(a_changed_input_must_be_given),
        cmocka_unit_test(an_operand_is_not_overwritten),
        cmocka_unit_test(operands_of_matrix_products),
        cmocka_unit_test(numbers_of_16_bits_in_matrix_products),
        cmocka_unit_test(operands_of_norms),
        cmocka_unit_test(operands_of_attention),
        cmocka_unit_test(dropout_of_attention),
        cmocka_unit_test(blocks_of_the_mask_can_be_numbered),
        cmocka_unit_test(operands_of_tables_and_losses),
        cmocka_unit_test(operands_of_the_rest),
        cmocka_unit_test(ids_that_do_not_exist),
        cmocka_unit_test(what_belongs_to_views_alone),
        cmocka_unit_test(names_of_spaces_and_queues_read_back),
        cmocka_unit_test(version_1_belongs_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
