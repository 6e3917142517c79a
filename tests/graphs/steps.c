/* The steps by their names: the passes of rewrite/passes.c, and those below. With each the oracle that judges it. */
#include <stdio.h>
#include <string.h>

#include "grad/differentiate.h"
#include "graphs/graphs.h"
#include "plan/plan.h"

const double step_beta1 = 0.875, step_beta2 = 0.9375, step_epsilon = 1e-8, step_decay = 0.5;

static void refuse(subject *s, pl_status status, const pl_error *err)
{
    pl_str_printf(&s->out, "refused, %s: %s\n", pl_status_name(status), err->text);
}

/* ---- a pass ---- */

static bool is_bound(const pl_graph *g)
{
    for (size_t i = 0; i < g->value_count; i++)
        if (g->value[i].shape.symbolic) return false;
    return true;
}

/* All passes leave the numbers as they are, seen without rounding; but the interpreter adds up a layer in chunks in
 * another order than its parts, and what shares a sum takes turns. Bind batch is what makes a graph one that can be
 * run: there is nothing before it to compare with. */
static pl_status run_pass(subject *s, pl_pass pass, pl_error *err)
{
    pl_graph *before = pl_graph_copy(s->graph);
    if (!before) subject_broken(s, "no memory");
    pl_status status = pl_rewrite_passes(s->graph, &s->with, pass, pass + 1, err);
    if (status == PL_OK) {
        judge_graph(s, pl_pass_name(pass));
        bool scaled = pass == PL_PASS_PRECISION && s->with.precision == PL_DTYPE_F16;
        if (pass != PL_PASS_BIND_BATCH)
            judge_same(s, before, scaled, pass == PL_PASS_CHUNK || pass == PL_PASS_SHARE_SUMS ? 1e-12 : 0);
        else if (!is_bound(s->graph))
            subject_broken(s, "behind \"bind batch\" a value has a dimension B still");
    }
    pl_graph_destroy(before);
    return status;
}

/* ---- the others ---- */

static pl_id train_of(const subject *s)
{
    pl_id train = pl_graph_find_program(s->graph, "train");
    if (train == PL_NONE) subject_broken(s, "there is no program \"train\"");
    return train;
}

static pl_status differentiate(subject *s, pl_error *err)
{
    pl_graph *before = pl_graph_copy(s->graph);
    if (!before) subject_broken(s, "no memory");
    pl_status status = pl_grad_differentiate(s->graph, train_of(s), err);
    if (status == PL_OK) judge_graph(s, "differentiate");
    if (status == PL_OK) judge_gradients(s, before);
    pl_graph_destroy(before);
    return status;
}

static pl_status update(subject *s, pl_error *err)
{
    pl_graph *before = pl_graph_copy(s->graph);
    pl_grad_update u = {.beta1 = step_beta1,
                        .beta2 = step_beta2,
                        .epsilon = step_epsilon,
                        .weight_decay = step_decay,
                        .clip = s->clip,
                        .angle = s->angle,
                        .ema_rate = s->ema_rate,
                        .lr = pl_graph_find_value(s->graph, "input.lr"),
                        .step = pl_graph_find_value(s->graph, "input.step")};
    if (!before || u.lr == PL_NONE || u.step == PL_NONE) subject_broken(s, "update: no input.lr or input.step");
    pl_status status = pl_grad_add_update(s->graph, train_of(s), &u, err);
    if (status == PL_OK) status = pl_grad_read_averages(s->graph, err);
    if (status == PL_OK) judge_graph(s, "update");
    if (status == PL_OK) judge_update(s, before);
    pl_graph_destroy(before);
    return status;
}

/* Of the first program. */
static pl_status rewrite(subject *s, pl_status (*pass)(pl_graph *, pl_id, pl_error *), const char *name, double margin,
                         pl_error *err)
{
    pl_graph *before = pl_graph_copy(s->graph);
    if (!before) subject_broken(s, "no memory");
    pl_status status = pass(s->graph, 0, err);
    if (status == PL_OK) judge_graph(s, name);
    if (status == PL_OK) judge_same(s, before, false, margin);
    pl_graph_destroy(before);
    return status;
}

static pl_status unfold(subject *s, pl_error *err) { return rewrite(s, pl_rewrite_unfold, "unfold", 1e-12, err); }
static pl_status observe_all(pl_graph *g, pl_id program, pl_error *err)
{
    return pl_rewrite_observe(g, program, NULL, true, err);
}
static pl_status observe(subject *s, pl_error *err) { return rewrite(s, observe_all, "observe", 0, err); }

static bool is_packed(const void *context, const char *weight) { return !context && strcmp(weight, "kept") != 0; }

/* Numbers change: what packed weights give is the backend's and the reference's matter. */
static pl_status int8_of(subject *s, pl_id program, pl_error *err)
{
    PL_TRY(pl_rewrite_int8(s->graph, program, &(pl_int8_choice){is_packed, NULL}, err));
    judge_graph(s, "int8");
    return PL_OK;
}
static pl_status int8(subject *s, pl_error *err) { return int8_of(s, 0, err); }
static pl_status int8_all(subject *s, pl_error *err) { return int8_of(s, PL_NONE, err); }

static pl_status binary(subject *s, pl_error *err)
{
    PL_TRY(pl_rewrite_binary(s->graph, &(pl_packed_choice){is_packed, NULL}, err));
    judge_graph(s, "binary");
    return PL_OK;
}

/* As a system's face says it; what is left gives out other values, so its legality is judged and the text compared. */
static pl_status face(subject *s, pl_error *err)
{
    static const uint32_t scores[PL_OP_COUNT] = {[PL_OP_LINEAR_CE] = 3, [PL_OP_BCE_WITH_LOGITS] = 1};
    static const char *const in[] = {"images", "ids"}, *const stored[] = {"capsules", NULL, "attention"},
                             *const scored[] = {NULL, "logits"};
    const pl_face_wish wish = {.program = "evaluate",
                               .as = "infer",
                               .given = "state",
                               .given_as = "field",
                               .in = in,
                               .stored = stored,
                               .scored = scored,
                               .in_count = 2,
                               .stored_count = 3,
                               .scored_count = 2,
                               .scores = scores};
    PL_TRY(pl_rewrite_face(s->graph, &wish, err));
    judge_graph(s, "face");
    return PL_OK;
}

static pl_status check(subject *s, pl_error *err)
{
    PL_TRY(pl_graph_check(s->graph, is_bound(s->graph) ? PL_STAGE_BOUND : PL_STAGE_MODEL, err));
    pl_str_append(&s->out, "legal\n");
    return PL_OK;
}

/* ---- a plan: who lies where, from which position on to which (half-open, as the bytes) ---- */

static void print_block(const pl_block *b, pl_id space, const char *name, pl_str *out)
{
    if (b->bytes == 0 || b->space != space) return;
    pl_str_printf(out, "  %-16s alive [%u,%u)  bytes [%llu,%llu)\n", name, b->first, b->last,
                  (unsigned long long)b->offset, (unsigned long long)(b->offset + b->bytes));
}

static void print_space(const pl_plan *p, pl_id space, pl_str *out)
{
    pl_str_printf(out, "%s: %llu bytes, no plan needs less than %llu\n", p->graph->space[space],
                  (unsigned long long)p->arena[space].bytes, (unsigned long long)p->arena[space].lower_bound_bytes);
    for (size_t i = 0; i < p->graph->value_count; i++) print_block(&p->value[i], space, p->graph->value[i].name, out);
    for (size_t i = 0; i < p->graph->node_count; i++) {
        char name[40];
        snprintf(name, sizeof name, "work of node %zu", i);
        print_block(&p->workspace[i], space, name, out);
    }
}

/* The separate judge, and the text that a run holds. */
static void judge_plan(const subject *s, const pl_plan *p)
{
    pl_error err = {0};
    pl_plan *again = NULL;
    pl_str first = {0}, second = {0};
    if (pl_plan_check(p, &err) != PL_OK) subject_broken(s, "the plan is wrong: %s", err.text);
    pl_plan_print(p, &first);
    if (pl_plan_parse("printed", pl_str_text(&first), first.bytes, &again, &err) != PL_OK)
        subject_broken(s, "a plan that was printed is refused: %s", err.text);
    pl_plan_print(again, &second);
    if (strcmp(pl_str_text(&first), pl_str_text(&second)) != 0) subject_broken(s, "print, parse, print of the plan");
    pl_plan_destroy(again);
    pl_str_deinit(&first);
    pl_str_deinit(&second);
}

static pl_status plan(subject *s, pl_error *err)
{
    pl_plan *p = NULL;
    pl_plan_options options = {.team = {.threads = 1, .isa = PL_ISA_BASELINE}, .process = pl_process_options_default()};
    PL_TRY(pl_plan_create(s->graph, &options, &p, err));
    s->graph = NULL; /* the plan's */
    judge_plan(s, p);
    for (pl_id space = 0; space < p->graph->space_count; space++) print_space(p, space, &s->out);
    pl_plan_destroy(p);
    return PL_OK;
}

static const struct {
    const char *name;
    pl_status (*run)(subject *, pl_error *);
} others[] = {{"differentiate", differentiate},
              {"update", update},
              {"check", check},
              {"unfold", unfold},
              {"observe", observe},
              {"int8", int8},
              {"int8_all", int8_all},
              {"binary", binary},
              {"face", face},
              {"plan", plan}};

static pl_status run_step(subject *s, const char *name, pl_error *err)
{
    for (int i = 0; i < (int)(sizeof others / sizeof *others); i++)
        if (strcmp(name, others[i].name) == 0) return others[i].run(s, err);
    for (pl_pass pass = 0; pass < PL_PASS_COUNT; pass++)
        if (strcmp(name, pl_pass_name(pass)) == 0) return run_pass(s, pass, err);
    subject_broken(s, "steps: there is no %s", name);
}

void subject_run(subject *s)
{
    pl_error err = {0};
    if (strcmp(s->step[0], "check") != 0) judge_graph(s, "the parser");
    for (size_t i = 0; i < s->step_count && s->out.bytes == 0; i++) {
        pl_status status = run_step(s, s->step[i], &err);
        if (status != PL_OK) refuse(s, status, &err);
    }
}
