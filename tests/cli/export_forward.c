/* What plimsoll itself makes of inputs, for the tests of export: runs one program of a config's model, plainly planned,
 * on weights that were exported as safetensors, and leaves what comes out as f32, before it is narrowed.
 *
 *   export_forward CONFIG COMMAND PROGRAM BATCH WEIGHTS OUT INPUT…
 *
 * INPUT: a file with the bytes of a port, - for zeros, or NAME=FILE for a value that lasts.
 *
 * OUT/stored.K is input K of STORE, OUT/judged.K the first input of loss K. Of weights in 8 bits, layer K of those that
 * are done so has OUT/int8.K.x, what comes to it, .residual, what is added to it, and .y, what it gives; OUT/int8.txt
 * has a line for each: its weight and the range of what comes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/packed.h"
#include "base/alloc.h"
#include "models/model.h"
#include "rewrite/rewrite.h"
#include "run/program.h"
#include "run/session_impl.h"

enum { WATCHED_MAX = 4096 };

typedef struct watched {
    pl_id value;
    uint32_t node; /* that makes it */
    char name[32];
} watched;

typedef struct work {
    const pl_graph *g;
    pl_program *program;
    char **input;
    int inputs;
    const char *out;
    watched w[WATCHED_MAX];
    int count;
} work;

static void must(pl_status status, const pl_error *err)
{
    if (status == PL_OK) return;
    fprintf(stderr, "export_forward: %s\n", err->text);
    exit(1);
}

/* Behind what only narrows it, the value itself. */
static pl_id wide(const pl_graph *g, pl_id v)
{
    while (g->value[v].producer != PL_NONE && g->node[g->value[v].producer].op == PL_OP_CAST)
        v = g->node[g->value[v].producer].in[0];
    return v;
}

static void watch(work *k, pl_id v, const char *kind, int number)
{
    pl_id base = v = wide(k->g, v);
    while (k->g->value[base].view_of != PL_NONE) base = k->g->value[base].view_of;
    watched *w = &k->w[k->count++];
    w->value = v, w->node = k->g->value[base].producer;
    snprintf(w->name, sizeof w->name, "%s.%d", kind, number);
}

static void watch_here(work *k, size_t node, pl_id v, int layer, const char *what)
{
    if (v == PL_NONE || k->count == WATCHED_MAX) return;
    watched *w = &k->w[k->count++];
    w->value = v, w->node = (uint32_t)node;
    snprintf(w->name, sizeof w->name, "int8.%d.%s", layer, what);
}

/* Nothing is done in place in a plain plan: what comes in is still there behind the node. */
static void find_layers(work *k)
{
    char path[PL_FILE_PATH_MAX];
    int layers = 0;
    snprintf(path, sizeof path, "%s/int8.txt", k->out);
    FILE *list = fopen(path, "w");
    for (size_t i = 0; list && i < k->g->node_count; i++) {
        const pl_node *n = &k->g->node[i];
        if (n->op != PL_OP_LINEAR_INT8) continue;
        fprintf(list, "%s %s\n", k->g->value[pl_value_root(k->g, n->in[1])].name,
                k->g->value[pl_value_root(k->g, n->in[2])].name);
        watch_here(k, i, n->in[0], layers, "x");
        watch_here(k, i, n->in[4], layers, "residual");
        watch_here(k, i, n->out[0], layers++, "y");
    }
    if (list) fclose(list);
}

static void find_watched(work *k)
{
    int losses = 0;
    for (size_t i = 0; i < k->g->node_count; i++) {
        const pl_node *n = &k->g->node[i];
        const bool judges = n->op == PL_OP_LINEAR_CE || n->op == PL_OP_CROSS_ENTROPY ||
                            n->op == PL_OP_BCE_WITH_LOGITS || n->op == PL_OP_REGRESSION_LOSS;
        if (judges) watch(k, n->in[0], "judged", losses++);
        for (int j = 0; n->op == PL_OP_STORE && j < PL_NODE_IN_MAX && n->in[j] != PL_NONE; j++)
            watch(k, n->in[j], "stored", j);
    }
}

static pl_status load(void *context, const pl_trips *trips, const pl_load_call *call, pl_error *err)
{
    const work *k = context;
    (void)trips;
    for (uint32_t i = 0; i < call->ports; i++) {
        memset(call->port[i].at, 0, call->port[i].bytes);
        if ((int)i >= k->inputs || strcmp(k->input[i], "-") == 0) continue;
        char *text;
        size_t bytes;
        PL_TRY(pl_file_read_all(k->input[i], 1 << 30, &text, &bytes, err));
        memcpy(call->port[i].at, text, bytes < call->port[i].bytes ? bytes : call->port[i].bytes);
        pl_free(text);
    }
    return PL_OK;
}

static pl_status leave(void *context, uint32_t node, double begin, double end, pl_error *err)
{
    const work *k = context;
    (void)begin, (void)end;
    for (int i = 0; i < k->count; i++) {
        char path[PL_FILE_PATH_MAX];
        if (k->w[i].node != node) continue;
        PL_TRY(pl_path_join(path, sizeof path, k->out, k->w[i].name, err));
        PL_TRY(pl_file_write_all(path, pl_program_address(k->program, k->w[i].value),
                                 pl_value_bytes(k->g, k->w[i].value), err));
    }
    return PL_OK;
}

static void give(const work *k, const char *word, pl_error *err)
{
    char name[256];
    char *text;
    size_t bytes;
    const char *equals = strchr(word, '=');
    if (!equals) return;
    snprintf(name, sizeof name, "%.*s", (int)(equals - word), word);
    must(pl_file_read_all(equals + 1, 1 << 30, &text, &bytes, err), err);
    memcpy(pl_program_find(k->program, name), text, bytes);
    pl_free(text);
}

static void read_weights(const work *k, const char *path, pl_error *err)
{
    pl_safetensors *file;
    pl_st_entry *model, *state;
    size_t models, states;
    must(pl_session_lists(k->g, k->program, &model, &models, &state, &states, err), err);
    must(pl_safetensors_open(path, &file, err), err);
    for (size_t i = 0; i < models; i++) must(pl_safetensors_read(file, &model[i], err), err);
    pl_safetensors_destroy(file);
    pl_free(model);
    pl_free(state);
}

int main(int argc, char **argv)
{
    pl_error err = {0};
    pl_command command;
    pl_data *data;
    pl_graph *g;
    pl_plan *plan;
    size_t packed;
    if (argc < 7 || !pl_command_parse(argv[2], &command)) return fprintf(stderr, "see the source\n"), 2;
    pl_config *c = pl_config_create();
    must(pl_config_load_file(c, argv[1], &err), &err);
    must(pl_config_check(c, &err), &err);
    must(pl_system_open(c, command, PL_DATA_FOR_PLAN, NULL, &data, &err), &err);
    pl_facts extents = data->extents;
    pl_facts_add(&extents, "export", 1);
    must(pl_model_build(c, &extents, &g, &err), &err);
    must(pl_rewrite_keep_programs(g, (const char *const[]){argv[3]}, 1, &err), &err);
    must(pl_graph_take_packed(g, pl_graph_find_program(g, argv[3]), argv[5], &packed, &err), &err);
    for (size_t i = 0; i < g->region_count; i++)
        if (g->region[i].parent == PL_NONE)
            must(pl_rewrite_bind_batch(g, (pl_id)i, atoi(argv[4]), NULL, 1, &err), &err);
    const pl_plan_options o = {.team = {2, pl_isa_of_machine()}, .process = pl_process_options_default()};
    must(pl_plan_create(g, &o, &plan, &err), &err);
    void *arena = aligned_alloc(PL_PLAN_ALIGNMENT, (plan->arena[0].bytes / PL_PLAN_ALIGNMENT + 1) * PL_PLAN_ALIGNMENT);
    memset(arena, 0, plan->arena[0].bytes);
    static work k;
    k = (work){.g = plan->graph, .out = argv[6], .input = argv + 7, .inputs = argc - 7};
    must(pl_program_create(plan, arena, plan->arena[0].bytes, &k.program, &err), &err);
    read_weights(&k, argv[5], &err);
    for (int i = 0; i < k.inputs; i++) give(&k, k.input[i], &err);
    find_watched(&k);
    find_layers(&k);
    const pl_program_hooks hooks = {.load = load, .timed = leave, .context = &k};
    must(pl_program_run(k.program, pl_graph_find_program(plan->graph, argv[3]), &hooks, &err), &err);
    pl_program_destroy(k.program);
    pl_plan_destroy(plan);
    pl_data_close(data);
    pl_config_destroy(c);
    free(arena);
    return 0;
}
