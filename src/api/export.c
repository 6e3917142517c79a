/* plimsoll export: the model of a config for other programs. The forward graph is the one that evaluating, encoding or
 * generating plans; it is lowered as the model builds it, before any rewrite but that of layers in 8 bits. */
#include "api/export.h"

#include <stdio.h>
#include <string.h>

#include "api/narrow.h"
#include "api/packed.h"
#include "base/alloc.h"
#include "base/binary.h"
#include "base/str.h"
#include "export/export.h"
#include "jobs/jobs.h"
#include "models/model.h"
#include "rewrite/rewrite.h"
#include "store/weights.h"
#include "systems/files.h"

static const char *const formats[] = {[PL_EXPORT_ONNX] = "onnx", [PL_EXPORT_SAFETENSORS] = "safetensors"};

const char *pl_export_format_name(pl_export_format f) { return formats[f]; }

bool pl_export_format_parse(const char *name, pl_export_format *f)
{
    for (int i = 0; i < PL_EXPORT_FORMAT_COUNT; i++) {
        if (strcmp(name, formats[i]) != 0) continue;
        *f = (pl_export_format)i;
        return true;
    }
    return false;
}

typedef struct exporting {
    const pl_config *config;
    const pl_export_options *o;
    pl_data *data;
    pl_settings settings;
    pl_graph *graph;
    pl_export_weights weights;
    char *text; /* the config */
} exporting;

/* ---- what is exported ---- */

static pl_command command_of(const pl_config *c) { return pl_model_family(c)->used_for; }

static pl_status check_format(const exporting *e, pl_error *err)
{
    char where[PL_CONFIG_WHERE_BYTES];
    if (e->o->format != PL_EXPORT_ONNX) return PL_OK;
    if (pl_narrow_dtype(e->config) != PL_DTYPE_F32)
        return pl_fail(err, PL_E_CONFIG,
                       "%s: run.precision %s, but a model in ONNX is in f32; take f32, or `format` safetensors",
                       pl_config_where(e->config, "run.precision", where, sizeof where), pl_narrow_word(e->config));
    return pl_export_check_onnx(err);
}

/* Where the run lies is not part of the model: the same model gives the same file from any folder. */
static pl_status print_config(exporting *e, pl_error *err)
{
    pl_config *c = pl_alloc(1, sizeof *c);
    if (!c) return pl_fail(err, PL_E_NOMEM, "no memory to export the model");
    *c = *e->config;
    c->run.out[0] = 0;
    const pl_status status = pl_config_text(c, PL_CONFIG_YAML, &e->text, NULL, err);
    pl_free(c);
    return status;
}

/* Like a run, which finds the prepared files and does not need those that they were made from. */
static pl_status open_data(exporting *e, pl_error *err)
{
    const pl_command command = command_of(e->config);
    const pl_dataset *from = pl_dataset_of(e->config, command);
    if (from->open_model) return from->open_model(e->config, &e->data, err);
    return pl_open_data(e->config, command, PL_DATA_FOR_RUN, NULL, &e->data, err);
}

/* A file of weights in 8 bits says which layers are in 8 bits. One for a part of the model holds none. */
static pl_status take_packed(exporting *e, const char *name, pl_error *err)
{
    const pl_id program = pl_graph_find_program(e->graph, name);
    if (e->o->seeded || !e->data->weights || e->data->weights_part) return PL_OK;
    PL_TRY(pl_graph_take_packed(e->graph, program, e->data->weights, &e->weights.packed, err));
    if (e->weights.packed == 0 || program != PL_NONE) return PL_OK;
    return pl_fail(err, PL_E_UNSUPPORTED,
                   "%s: holds weights in 8 bits, but this config is of a part of a model, which has no program \"%s\"; "
                   "give the config that they were made with",
                   e->data->weights, name);
}

/* Weights are written in 16 bits where a program reads them so. A training of a part may have no program for others. */
static pl_status keep_programs(const exporting *e, const char *seen, pl_error *err)
{
    const bool is_there = pl_graph_find_program(e->graph, seen) != PL_NONE;
    const char *used = pl_narrow_dtype(e->config) != PL_DTYPE_F32 && !is_there ? pl_job_evaluate.program[0] : seen;
    const char *name[] = {"init", used};
    return pl_rewrite_keep_programs(e->graph, name, 2, err);
}

/* Any training's weights can be exported. */
static pl_status check_used(const exporting *e, pl_error *err)
{
    const pl_family *family = pl_model_family(e->config);
    if (e->o->format != PL_EXPORT_ONNX || !family->check_used) return PL_OK;
    const pl_status status = family->check_used(e->config, err);
    if (status == PL_E_CONFIG) pl_error_append(err, "; `format` safetensors exports its weights");
    return status;
}

/* Its own files are what programs read that want weights alone. */
static pl_status check_brought(const exporting *e, pl_error *err)
{
    if (e->o->format != PL_EXPORT_ONNX)
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "%s: only `format` onnx is made of a pretrained model; `plimsoll convert` writes its weights",
                       e->data->path);
    if (e->o->seeded)
        return pl_fail(err, PL_E_USAGE, "%s: a pretrained model has no first values; leave `seeded` out",
                       e->data->path);
    return PL_OK;
}

/* Rows that are stored in blocks or in 16 bits are f32 in the file. */
static void widen(pl_graph *g)
{
    for (size_t i = 0; i < g->value_count; i++)
        if (!pl_encoding_is_whole(g->value[i].encoding)) g->value[i].encoding = PL_ENCODING_F32;
}

static pl_status build(exporting *e, pl_error *err)
{
    const char *seen = pl_model_family(e->config)->face.program;
    PL_TRY(pl_config_check(e->config, err));
    PL_TRY(check_used(e, err));
    PL_TRY(print_config(e, err));
    PL_TRY(open_data(e, err));
    if (e->data->brought) PL_TRY(check_brought(e, err));
    PL_TRY(pl_settings_fill(e->config, command_of(e->config), e->data, &e->settings, err));
    pl_facts extents = e->data->extents;
    pl_facts_add(&extents, "export", 1); /* for archs whose other programs want labels, too */
    PL_TRY(pl_model_build(e->config, &extents, &e->graph, err));
    widen(e->graph);
    PL_TRY(keep_programs(e, seen, err));
    PL_TRY(take_packed(e, seen, err));
    PL_TRY(pl_narrow_check(e->config, e->graph, err));
    PL_TRY(pl_narrow_weights(e->graph, pl_narrow_dtype(e->config), err));
    return pl_graph_check(e->graph, PL_STAGE_MODEL, err);
}

/* ---- the formats ---- */

static void warn_of_data(const exporting *e, pl_exported *x)
{
    const size_t used = strlen(x->warning);
    snprintf(x->warning + used, sizeof x->warning - used,
             "%s%.300s.data is there, and this model does not read it; if it is of an earlier export, remove it",
             used ? "; " : "", e->o->path);
}

static pl_status write_onnx(exporting *e, pl_exported *x, pl_error *err)
{
    const pl_onnx_text text[] = {{PL_WEIGHTS_CONFIG, e->text}, {"plimsoll.weights", e->weights.from}};
    const pl_export_file file = {.path = e->o->path, .outside = e->o->external_data, .text = text, .texts = 2};
    const pl_lower_options lo = {.graph = e->graph,
                                 .face = &pl_model_family(e->config)->face,
                                 .name = pl_system_name(e->config),
                                 .weights = e->weights.of};
    pl_lowering *l = NULL;
    pl_export_sizes sizes = {0};
    pl_status status = pl_export_unpack(e->graph, &e->weights, err);
    if (status == PL_OK) status = pl_lower(&lo, &l, err);
    if (status == PL_OK) status = pl_export_write_onnx(l, &file, &sizes, err);
    if (status == PL_OK) {
        x->nodes = sizes.nodes, x->weights = sizes.tensors, x->weight_bytes = sizes.weight_bytes;
        x->file_bytes = sizes.model_bytes, x->data_bytes = sizes.data_bytes;
        x->held_bytes = pl_lowering_held_bytes(l) + sizes.held_bytes;
        if (sizes.has_other_data) warn_of_data(e, x);
    }
    pl_lowering_destroy(l);
    return status;
}

static bool has_bits(const exporting *e)
{
    for (size_t i = 0; i < e->weights.models; i++)
        if (pl_ends_with(e->weights.model[i].name, PL_BINARY_PACKED)) return true;
    return false;
}

static const char *format_of(const exporting *e)
{
    if (e->weights.packed) return PL_WEIGHTS_FORMAT;
    return has_bits(e) ? PL_BINARY_FORMAT : "pt";
}

/* Weights in 8 bits, and bits, stay as they are: such a file has the format that quantize writes. */
static pl_status write_safetensors(exporting *e, pl_exported *x, pl_error *err)
{
    if (e->o->packed && !has_bits(e)) PL_TRY(pl_export_pack_binary(e->config, e->graph, &e->weights, err));
    char checksum[PL_CHECKSUM_TEXT_BYTES] = PL_WEIGHTS_NO_CHECKSUM;
    const bool is_packed = e->weights.packed || has_bits(e); /* others are free to be edited */
    const pl_st_text text[] = {{"format", format_of(e)},
                               {PL_WEIGHTS_CONFIG, e->text},
                               {"plimsoll.weights", e->weights.from},
                               {PL_WEIGHTS_CHECKSUM, checksum}};
    pl_st_writer *writer = pl_alloc(1, sizeof *writer);
    const pl_st_list list = {
        .entries = e->weights.model, .count = e->weights.models, .metadata = text, .metadata_count = is_packed ? 4 : 3};
    if (is_packed) pl_checksum_print(pl_safetensors_checksum(&list), checksum);
    if (!writer) return pl_fail(err, PL_E_NOMEM, "no memory to write %.300s", e->o->path);
    pl_status status = pl_safetensors_check(&list, err);
    if (status == PL_OK) status = pl_safetensors_write(writer, e->o->path, &list, NULL, err);
    if (status == PL_OK) x->file_bytes = pl_safetensors_file_bytes(&list);
    for (size_t i = 0; i < list.count; i++) x->weight_bytes += list.entries[i].bytes;
    x->weights = list.count;
    x->held_bytes = sizeof *writer + e->weights.binary.bytes;
    pl_free(writer);
    return status;
}

/* Weights may be written outside, to FILE.data. A name that cannot be had is known before they are read. */
static pl_status check_place(const exporting *e, pl_error *err)
{
    char data[PL_FILE_PATH_MAX];
    pl_file_writer probe;
    PL_TRY(pl_file_check_free(e->o->path, NULL, err));
    const int n = snprintf(data, sizeof data, "%s.data", e->o->path);
    const bool fits = n > 0 && (size_t)n < sizeof data; /* else the writer says it */
    if (e->o->format == PL_EXPORT_ONNX && fits) PL_TRY(pl_file_check_free(data, NULL, err));
    PL_TRY(pl_file_create(&probe, e->o->path, err));
    pl_file_abandon(&probe);
    return PL_OK;
}

static pl_status work(exporting *e, pl_exported *x, pl_error *err)
{
    PL_TRY(check_place(e, err));
    if (e->o->seeded) PL_TRY(pl_check_seeded(e->config, err));
    PL_TRY(check_format(e, err));
    PL_TRY(build(e, err));
    PL_TRY(pl_export_find_weights(e->config, e->o, &e->settings, e->data, e->graph, &e->weights, err));
    memcpy(x->from, e->weights.from, sizeof x->from);
    memcpy(x->warning, e->weights.warning, sizeof x->warning);
    return e->o->format == PL_EXPORT_ONNX ? write_onnx(e, x, err) : write_safetensors(e, x, err);
}

pl_status pl_export_model(const pl_config *c, const pl_export_options *o, pl_exported *x, pl_error *err)
{
    *x = (pl_exported){0};
    exporting *e = pl_alloc(1, sizeof *e);
    if (!e) return pl_fail(err, PL_E_NOMEM, "no memory to export the model");
    e->config = c;
    e->o = o;
    pl_status status = work(e, x, err);
    x->values_bytes = e->weights.held_bytes, x->planned_bytes = e->weights.planned_bytes;
    pl_export_weights_deinit(&e->weights);
    pl_graph_destroy(e->graph);
    pl_settings_deinit(&e->settings);
    pl_data_close(e->data);
    pl_text_free(e->text);
    pl_free(e);
    return status;
}
