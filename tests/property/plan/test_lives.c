/* Lives and placements against brute force: every program of random small models is run unrolled, trip by trip, on an
 * arena in which each four bytes know whose content they hold. What a node reads must still be there, whoever else has
 * written meanwhile; a node's workspace and outputs may not lie on what it reads, unless it changes that in place. What
 * lasts (weights, moments, the program's outputs) must be whole at the end. With it: the totals of the plan, and the
 * predicted seconds, counted on the unrolled programs. `property_plan test_lives SEED` repeats one case. */
#include <math.h>
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

enum { CASES = 120, CELL = 4, NOBODY = -1, WORKSPACE = -2 };
static uint64_t only_seed;

typedef struct world {
    const tiny *t;
    const pl_plan *p;
    const pl_graph *g;
    int64_t *owner; /* of each cell: a root, NOBODY or WORKSPACE */
    uint64_t cells;
    double *seconds; /* [programs] as counted here */
    pl_id program;
    uint64_t trip; /* of the region of the node that runs */
} world;

static void wrong(const world *w, size_t node, pl_id value, const char *what)
{
    tiny_print(w->t);
    fail_msg("node %zu (%s): %s: %s", node, node < w->g->node_count ? pl_op_name(w->g->node[node].op) : "end",
             value == PL_NONE ? "workspace" : w->g->value[value].name, what);
}

/* The first cell of an element. */
static uint64_t cell_of(const world *w, pl_id value, uint64_t elem)
{
    pl_id root = pl_value_root(w->g, value);
    uint64_t moved = w->g->value[value].tile ? w->trip * pl_shape_elems(&w->g->value[value].shape) : 0;
    uint64_t at = w->p->value[root].offset +
                  ((uint64_t)reference_place(w->g, value, elem) + moved) * pl_dtype_bytes(w->g->value[value].dtype);
    if (at % CELL || at / CELL >= w->cells) fail_msg("%s lies outside the arena", w->g->value[value].name);
    return at / CELL;
}

static uint64_t cells_per_elem(const world *w, pl_id value) { return pl_dtype_bytes(w->g->value[value].dtype) / CELL; }

static void claim(world *w, pl_id value)
{
    uint64_t n = pl_shape_elems(&w->g->value[value].shape), each = cells_per_elem(w, value);
    for (uint64_t e = 0; e < n; e++)
        for (uint64_t c = 0; c < each; c++) w->owner[cell_of(w, value, e) + c] = pl_value_root(w->g, value);
}

static void must_hold(world *w, size_t node, pl_id value)
{
    uint64_t n = pl_shape_elems(&w->g->value[value].shape), each = cells_per_elem(w, value);
    for (uint64_t e = 0; e < n; e++)
        for (uint64_t c = 0; c < each; c++)
            if (w->owner[cell_of(w, value, e) + c] != pl_value_root(w->g, value))
                wrong(w, node, value, "its content is no longer, or not yet, there");
}

static bool is_input(const pl_node *n, const pl_graph *g, int64_t root)
{
    for (int k = 0; k < PL_NODE_IN_MAX; k++)
        if (n->in[k] != PL_NONE && pl_value_root(g, n->in[k]) == root) return true;
    return false;
}

static void must_not_hit_inputs(world *w, size_t node, pl_id out)
{
    pl_id root = pl_value_root(w->g, out);
    uint64_t n = pl_shape_elems(&w->g->value[out].shape), each = cells_per_elem(w, out);
    for (uint64_t e = 0; e < n; e++)
        for (uint64_t c = 0; c < each; c++) {
            int64_t holder = w->owner[cell_of(w, out, e) + c];
            if (holder == WORKSPACE) wrong(w, node, out, "lies on the node's workspace");
            if (holder >= 0 && holder != root && is_input(&w->g->node[node], w->g, holder))
                wrong(w, node, out, "lies on an input of its node");
        }
}

/* Workspace is written while inputs are read, and is nobody's afterwards. */
static void use_workspace(world *w, size_t node, int64_t as)
{
    const pl_block *b = &w->p->workspace[node];
    for (uint64_t at = b->offset / CELL; b->bytes && at < (b->offset + b->bytes + CELL - 1) / CELL; at++) {
        if (at >= w->cells) wrong(w, node, PL_NONE, "outside the arena");
        if (as == WORKSPACE && w->owner[at] >= 0 && is_input(&w->g->node[node], w->g, w->owner[at]))
            wrong(w, node, PL_NONE, "lies on an input");
        w->owner[at] = as;
    }
}

static void run_node(world *w, size_t node)
{
    const pl_node *n = &w->g->node[node];
    uint64_t needed = 0;
    assert_int_equal(pl_backend_workspace_bytes(w->g, n, w->p->team, &needed, NULL), PL_OK);
    assert_true(w->p->workspace[node].bytes >= needed);
    for (int k = 0; k < PL_NODE_IN_MAX; k++)
        if (n->in[k] != PL_NONE) must_hold(w, node, n->in[k]);
    if (n->predicate != PL_NONE) must_hold(w, node, n->predicate);
    use_workspace(w, node, WORKSPACE);
    for (int k = 0; k < PL_NODE_OUT_MAX; k++)
        if (n->out[k] != PL_NONE) must_not_hit_inputs(w, node, n->out[k]);
    use_workspace(w, node, NOBODY);
    for (int k = 0; k < PL_NODE_OUT_MAX; k++)
        if (n->out[k] != PL_NONE) claim(w, n->out[k]);
    w->seconds[w->program] += (double)(node % 7);
}

/* The tiny models nest one region in a program at most. */
static void run_program(world *w, pl_id program)
{
    const pl_graph *g = w->g;
    w->program = program;
    for (size_t i = 0; i < g->value_count; i++) {
        bool given =
            g->value[i].program == program && (g->value[i].role == PL_ROLE_INPUT || g->value[i].role == PL_ROLE_STATE);
        if (given && pl_value_root(g, (pl_id)i) == i && w->p->value[i].bytes) claim(w, (pl_id)i);
    }
    for (size_t i = 0; i < g->node_count;) {
        if (pl_region_program(g, g->node[i].region) != program) {
            i++;
            continue;
        }
        size_t end = i;
        while (end < g->node_count && g->node[end].region == g->node[i].region) end++;
        for (w->trip = 0; w->trip < g->region[g->node[i].region].trip; w->trip++)
            for (size_t k = i; k < end; k++) run_node(w, k);
        w->trip = 0;
        i = end;
    }
    for (size_t i = 0; i < g->value_count; i++) {
        bool lasts =
            g->value[i].program == PL_NONE || (g->value[i].program == program && g->value[i].role == PL_ROLE_OUTPUT);
        if (lasts && pl_value_root(g, (pl_id)i) == i) must_hold(w, g->node_count, (pl_id)i);
    }
}

static void check_totals(const world *w)
{
    uint64_t *sum = calloc(w->g->node_count, sizeof *sum), largest = 0;
    assert_non_null(sum);
    pl_plan_alive(w->p, PL_SPACE_RAM, sum);
    for (size_t i = 0; i < w->g->node_count; i++) largest = sum[i] > largest ? sum[i] : largest;
    assert_int_equal(largest, w->p->arena->lower_bound_bytes);
    assert_int_equal(sum[w->p->arena->peak_position], largest);
    assert_true(w->p->arena->bytes >= largest && w->p->arena->bytes <= 2 * largest);
    for (pl_id r = 0; r < w->g->region_count; r++)
        if (w->g->region[r].parent == PL_NONE)
            assert_true(fabs(pl_plan_program_seconds(w->p, r) - w->seconds[r]) < 1e-6);
    free(sum);
}

static double some_seconds(void *context, const pl_graph *g, const pl_node *n)
{
    (void)context;
    return (double)((size_t)(n - g->node) % 7);
}

static void one_case(uint64_t seed)
{
    static tiny t;
    pl_error err = {0};
    pl_plan *p = NULL;
    tiny_random(&t, seed);
    t.update = tiny_roll(&t, 0, 3) > 0;
    t.recompute = tiny_roll(&t, 0, 1), t.fuse = tiny_roll(&t, 0, 1), t.in_place = tiny_roll(&t, 0, 1);
    t.update_early = tiny_roll(&t, 0, 1);
    if (t.update && t.config.train.grad_clip == 0)
        t.layer_major = tiny_roll(&t, 0, 2), t.layer_major_keep = tiny_roll(&t, 0, 2);
    pl_plan_options options = {.team = {(int)tiny_roll(&t, 1, 4), (pl_isa)tiny_roll(&t, 0, pl_isa_of_machine())},
                               .process = pl_process_options_default(),
                               .cost = {some_seconds}};
    assert_int_equal(pl_plan_create(tiny_compiled(&t), &options, &p, &err), PL_OK);
    world w = {.t = &t, .p = p, .g = p->graph, .cells = p->arena->bytes / CELL};
    w.owner = malloc(w.cells * sizeof *w.owner);
    w.seconds = calloc(p->graph->region_count, sizeof *w.seconds);
    assert_true(w.owner && w.seconds);
    for (uint64_t i = 0; i < w.cells; i++) w.owner[i] = NOBODY;
    for (size_t i = 0; i < w.g->value_count; i++)
        if (w.g->value[i].program == PL_NONE && pl_value_root(w.g, (pl_id)i) == i) claim(&w, (pl_id)i);
    for (pl_id r = 0; r < w.g->region_count; r++)
        if (w.g->region[r].parent == PL_NONE) run_program(&w, r);
    check_totals(&w);
    if (pl_plan_check(p, &err) != PL_OK) fail_msg("%s", err.text);
    free(w.owner);
    free(w.seconds);
    pl_plan_destroy(p);
}

static void what_is_needed_is_never_overwritten(void **state)
{
    (void)state;
    for (uint64_t seed = only_seed ? only_seed : 1; seed <= (only_seed ? only_seed : CASES); seed++) one_case(seed);
}

PL_TEST_PROGRAM(argc, argv)
{
    if (argc > 1) only_seed = strtoull(argv[1], NULL, 10);
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_needed_is_never_overwritten)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
