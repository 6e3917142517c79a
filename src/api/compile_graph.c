/* The model of a config as a graph, differentiated and with its update; and run.dump: what a stage made, as text in
 * the run's folder. */
#include <stdio.h>

#include "api/compiler.h"
#include "api/narrow.h"
#include "api/packed.h"
#include "config/schema.h"
#include "grad/differentiate.h"
#include "ir/op.h"
#include "models/model.h"
#include "rewrite/rewrite.h"
#include "run/program.h"
#include "systems/files.h"
#include "systems/infer.h"

/* ---- run.dump ---- */

static pl_status dump(const pl_compiler *c, const char *stage, pl_str *text, pl_error *err)
{
    char path[PL_FILE_PATH_MAX], whole[64], name[96];
    snprintf(whole, sizeof whole, "dump-%s.txt", stage);
    pl_status status = text->failed ? pl_fail(err, PL_E_NOMEM, "no memory to print %s", stage)
                                    : pl_folder_create(c->settings.out, err);
    if (status == PL_OK) status = pl_path_of_part(name, sizeof name, whole, c->data->piece, err);
    if (status == PL_OK) status = pl_path_join(path, sizeof path, c->settings.out, name, err);
    if (status == PL_OK && c->settings.run.trace_path && pl_files_are_one(path, c->settings.trace))
        status = pl_fail(err, PL_E_USAGE,
                         "run.trace and the dump of run.dump (%.350s) are the same file; give another name", path);
    if (status == PL_OK) status = pl_file_write_all(path, pl_str_text(text), text->bytes, err);
    pl_str_deinit(text);
    return status;
}

pl_status pl_compiler_dump_graph(const pl_compiler *c, uint32_t bit, const char *stage, const pl_graph *g,
                                 pl_error *err)
{
    pl_str text = {0};
    if (!(c->config->run.dump & bit)) return PL_OK;
    pl_graph_print(g, &text);
    return dump(c, stage, &text, err);
}

static pl_status dump_program(const pl_compiler *c, const pl_plan *plan, pl_error *err)
{
    pl_str text = {0};
    pl_program *program;
    if (!(c->config->run.dump & PL_DUMP_PROGRAM)) return PL_OK;
    PL_TRY(pl_program_create_nowhere(plan, &program, err));
    pl_program_print(program, &text);
    pl_program_destroy(program);
    return dump(c, "program", &text, err);
}

pl_status pl_compiler_dump_plan(const pl_compiler *c, const pl_plan *plan, pl_error *err)
{
    pl_str text = {0};
    PL_TRY(pl_compiler_dump_graph(c, PL_DUMP_REWRITE, "rewrite", plan->graph, err));
    PL_TRY(dump_program(c, plan, err));
    if (!(c->config->run.dump & PL_DUMP_PLAN)) return PL_OK;
    pl_plan_print(plan, &text);
    return dump(c, "plan", &text, err);
}

/* ---- the graph ---- */

/* Keeps the programs that the jobs of the command run. */
static pl_status keep_programs(pl_graph *g, const pl_job_list *jobs, pl_error *err)
{
    const char *name[PL_JOBS_MAX * PL_JOB_PROGRAMS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < jobs->count; i++)
        for (size_t k = 0; k < PL_JOB_PROGRAMS_MAX && jobs->job[i]->program[k]; k++)
            name[count++] = jobs->job[i]->program[k];
    return pl_rewrite_keep_programs(g, name, count, err);
}

static pl_status add_update(pl_graph *g, const pl_config *c, pl_id train, pl_error *err)
{
    pl_grad_update u = {.beta1 = c->train.beta1,
                        .beta2 = c->train.beta2,
                        .epsilon = c->train.epsilon,
                        .weight_decay = c->train.weight_decay,
                        .clip = c->train.grad_clip,
                        .angle = c->train.optimizer == PL_OPTIMIZER_ADAM_ATAN2,
                        .ema_rate = c->train.ema_rate,
                        .seed = (uint64_t)c->train.seed,
                        .lr = pl_input_find(g, PL_INPUT_LR),
                        .step = pl_input_find(g, PL_INPUT_STEP)};
    PL_TRY(pl_grad_add_update(g, train, &u, err));
    return pl_grad_read_averages(g, err);
}

/* A sample may stay for several steps: what is read then was carried, and is given out under the data's name. */
static void give_carried(pl_graph *g, const pl_carry_read_args *read)
{
    pl_value *fresh = &g->value[read->fresh], *seen = &g->value[read->y];
    const char *name = fresh->name;
    if (fresh->role != PL_ROLE_OUTPUT) return; /* a state of the model, not of the data */
    fresh->name = seen->name, fresh->role = PL_ROLE_TEMPORARY;
    seen->name = name, seen->role = PL_ROLE_OUTPUT;
}

/* Without an update nothing reads the gradients: they are outputs of the program, and so is the batch. */
static void keep_gradients(pl_graph *g, pl_id train)
{
    for (size_t i = 0; i < g->value_count; i++) {
        pl_value *v = &g->value[i];
        bool is_loaded = v->producer != PL_NONE && g->node[v->producer].op == PL_OP_LOAD && v->program == train;
        if (v->role == PL_ROLE_GRADIENT || (is_loaded && !pl_is_sample_number(v))) v->role = PL_ROLE_OUTPUT;
    }
    for (size_t i = 0; i < g->node_count; i++)
        if (!g->node[i].dead && g->node[i].op == PL_OP_CARRY_READ) give_carried(g, &g->node[i].carry_read);
}

/* ---- 8 bits ---- */

static pl_id repeated_program(const pl_compiler *c, const pl_graph *g)
{
    const pl_job *job = c->settings.jobs.job[0];
    return pl_graph_find_program(g, job->program[job->repeated]);
}

/* The file of weights says which layers are in 8 bits, in every program. */
static pl_status take_int8(const pl_compiler *c, pl_graph *g, pl_error *err)
{
    size_t packed = 0;
    if (!c->data->weights) return PL_OK;
    PL_TRY(pl_graph_take_packed(g, PL_NONE, c->data->weights, &packed, err));
    if (packed == 0 || !pl_command_does(c->command, PL_USES_CALIBRATION)) return PL_OK;
    return pl_fail(err, PL_E_DATA,
                   "%s: holds weights in 8 bits already; give the file of weights that they were made of",
                   c->data->weights);
}

static pl_status observe(const pl_compiler *c, const pl_graph *like, pl_graph *g, pl_error *err)
{
    PL_TRY(pl_rewrite_unfold(g, repeated_program(c, g), err));
    const bool spread = c->config->quantization.method != PL_CONFIG_RANGE_MINMAX;
    return pl_rewrite_observe(g, repeated_program(c, g), like, spread, err);
}

/* The program that a calibration on the system's own samples runs. */
static pl_status make_own(const pl_compiler *c, pl_graph **own, pl_error *err)
{
    const pl_job_list jobs = {.job = {pl_task_of(c->config)->job[c->command]}, .count = 1};
    PL_TRY(pl_model_build(c->config, &c->data->extents, own, err));
    PL_TRY(keep_programs(*own, &jobs, err));
    return pl_rewrite_unfold(*own, PL_NONE, err);
}

/* The weights are for other commands, too: where samples are files, another program sees them, but the layers in 8 bits
 * are to be the same in both. A loss may read a matrix itself, and a part of a model need not run each time. */
static pl_status calibrate(const pl_compiler *c, pl_graph *g, pl_error *err)
{
    pl_graph *own = NULL;
    pl_status status = PL_OK;
    if (!pl_command_does(c->command, PL_USES_CALIBRATION)) return PL_OK;
    if (pl_system_files(c->config, c->command)) status = make_own(c, &own, err);
    if (status == PL_OK) status = observe(c, own, g, err);
    pl_graph_destroy(own);
    return status;
}

bool pl_compiler_is_narrow(const pl_compiler *c)
{
    const uint32_t all = PL_USES_WEIGHTS | PL_USES_GRADIENT | PL_USES_CALIBRATION;
    const uint32_t uses = pl_command_row_of(c->command)->uses;
    return ((uses & all) == PL_USES_WEIGHTS || uses & PL_USES_RESULTS) && pl_narrow_dtype(c->config) != PL_DTYPE_F32;
}

static pl_status check_ports(const pl_compiler *c, const pl_graph *g, pl_error *err)
{
    char arch[64];
    pl_str text = pl_str_fixed(arch, sizeof arch);
    const pl_config_key *key = pl_config_find("model.arch");
    if (!c->data->source) return PL_OK;
    pl_config_print_value(key, pl_config_value_of(c->config, key), &text);
    return pl_check_ports(g, c->data->source, arch, c->data->path, err);
}

pl_status pl_compiler_make_graph(const pl_compiler *c, pl_graph **graph, pl_error *err)
{
    PL_TRY(pl_build_graph(c->config, c->command, &c->data->extents, graph, err));
    PL_TRY(keep_programs(*graph, &c->settings.jobs, err));
    PL_TRY(check_ports(c, *graph, err));
    PL_TRY(take_int8(c, *graph, err));
    PL_TRY(calibrate(c, *graph, err));
    if (pl_compiler_is_narrow(c)) PL_TRY(pl_narrow_check(c->config, *graph, err));
    PL_TRY(pl_graph_check(*graph, PL_STAGE_MODEL, err));
    PL_TRY(pl_compiler_dump_graph(c, PL_DUMP_MODEL, "model", *graph, err));
    if (!pl_command_does(c->command, PL_USES_GRADIENT)) return PL_OK;
    pl_id train = pl_graph_find_program(*graph, "train");
    PL_TRY(pl_grad_differentiate(*graph, train, err));
    if (pl_command_does(c->command, PL_USES_UPDATE))
        PL_TRY(add_update(*graph, c->config, train, err));
    else
        keep_gradients(*graph, train);
    return pl_graph_check(*graph, PL_STAGE_GRAD, err);
}
