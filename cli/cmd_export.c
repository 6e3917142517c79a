/* plimsoll export: a model for other programs. */
#include <inttypes.h>
#include <string.h>

#include "format.h"
#include "load.h"
#include "out.h"
#include "stages.h"

enum { FORMAT, OUT, CHECKPOINT, SEEDED, EXTERNAL, PACKED, JSON };
static const pl_cli_option options[] = {
    [FORMAT] = {"--format", "NAME",
                "onnx: the inference program, for ONNX Runtime and others; safetensors: the "
                "weights alone",
                .words = "onnx safetensors"},
    [OUT] = {"--out", "FILE", "the file to write"},
    [CHECKPOINT] = {"--checkpoint", "DIR", "a checkpoint's folder; default: the run's best, else its latest"},
    [SEEDED] = {"--seeded", NULL, "first values of the config's seed in place of trained weights"},
    [EXTERNAL] = {"--external-data", NULL, "onnx: weights into FILE.data beside it, as models over 2 GB have them"},
    [PACKED] = {"--packed", NULL,
                "safetensors: weights of layers of signs (model.binary) as bits; eval, generate and infer take the "
                "file with --weights"},
    [JSON] = {"--json", NULL, "what was written as JSON (schema plimsoll.export/1)"},
};

static const char about[] =
    "Writes a model as other programs read it. CONFIG is the run's config file or the folder of the run; its best "
    "checkpoint is taken, with averaged weights where evaluating uses them, or the file that --weights names. Of an "
    "encoder, which is not trained here, weights are those of that file (encoder.weights), or first values.\n"
    "\n"
    "ONNX (opset 17) has what eval, encode or generate computes, without dropout and losses, in f32: each weight once, "
    "recursions unrolled, and the batch is free; layers whose weights are in 8 bits (plimsoll quantize) are in the "
    "form QDQ. Its metadata hold the whole config. docs/export.md says which inputs and outputs each system has. The "
    "weights are in memory once, and written from where they lie; what takes more than memory.budget is refused before "
    "they are read (exit 3). A file is whole or not there.\n";

static pl_status read_options(const pl_cli_input *in, pl_export_options *o, pl_error *err)
{
    const char *const *value = in->arguments.value;
    *o = (pl_export_options){.path = value[OUT],
                             .checkpoint = value[CHECKPOINT],
                             .seeded = value[SEEDED] != NULL,
                             .external_data = value[EXTERNAL] != NULL,
                             .packed = value[PACKED] != NULL};
    if (!value[FORMAT]) return pl_cli_error(err, PL_E_USAGE, "--format is missing: onnx or safetensors");
    if (!pl_export_format_parse(value[FORMAT], &o->format))
        return pl_cli_error(err, PL_E_USAGE, "--format \"%.60s\" is none; onnx or safetensors were expected",
                            value[FORMAT]);
    if (!o->path) return pl_cli_error(err, PL_E_USAGE, "--out is missing: the file to write");
    if (pl_is_stdout(o->path))
        return pl_cli_error(err, PL_E_USAGE, "--out takes the name of a file, and writes none to stdout");
    if (o->external_data && o->format != PL_EXPORT_ONNX)
        return pl_cli_error(err, PL_E_USAGE, "--external-data is of --format onnx; leave it out");
    if (o->packed && o->format != PL_EXPORT_SAFETENSORS)
        return pl_cli_error(err, PL_E_USAGE, "--packed is of --format safetensors; leave it out");
    if (o->seeded && o->checkpoint)
        return pl_cli_error(err, PL_E_USAGE, "--seeded and --checkpoint both name weights; leave one out");
    return PL_OK;
}

static pl_status tell_json(const pl_export_options *o, const pl_exported *x, pl_error *err)
{
    static char text[16 << 10];
    pl_line line = {text, sizeof text, 0};
    pl_line_add(&line, "{\"schema\": \"plimsoll.export/1\", \"format\": \"%s\", \"file\": \"",
                pl_export_format_name(o->format));
    pl_line_json(&line, o->path, strlen(o->path));
    pl_line_add(&line, "\", \"weights_from\": \"");
    pl_line_json(&line, x->from, strlen(x->from));
    pl_line_add(&line,
                "\", \"file_bytes\": %" PRIu64 ", \"data_bytes\": %" PRIu64 ", \"nodes\": %" PRIu64
                ", \"weights\": %" PRIu64 ", \"weight_bytes\": %" PRIu64 ", \"held_bytes\": %" PRIu64
                ", \"values_bytes\": %" PRIu64 ", \"planned_bytes\": %" PRIu64 "}\n",
                x->file_bytes, x->data_bytes, x->nodes, x->weights, x->weight_bytes, x->held_bytes, x->values_bytes,
                x->planned_bytes);
    return pl_put(text, line.bytes, err);
}

static pl_status tell(const pl_export_options *o, const pl_exported *x, pl_error *err)
{
    char shown[PL_SHOWN_BYTES] = "", from[PL_SHOWN_BYTES] = "";
    char file[PL_FORMAT_BYTES], data[PL_FORMAT_BYTES], weights[PL_FORMAT_BYTES], nodes[PL_FORMAT_BYTES],
        held[PL_FORMAT_BYTES], values[PL_FORMAT_BYTES];
    pl_status status = pl_put_format(err, "%s: %s, %s tensors", pl_show_plainly(o->path, shown),
                                     pl_show_bytes(x->file_bytes, file), pl_show_count(x->weights, weights));
    if (status == PL_OK && x->nodes) status = pl_put_format(err, ", %s nodes", pl_show_count(x->nodes, nodes));
    if (status == PL_OK && x->data_bytes)
        status = pl_put_format(err, "; %s.data: %s", shown, pl_show_bytes(x->data_bytes, data));
    if (status != PL_OK) return status;
    return pl_put_format(err, "\nweights: %s; memory for it: %s, and %s of weights\n", pl_show_plainly(x->from, from),
                         pl_show_bytes(x->held_bytes, held), pl_show_bytes(x->values_bytes, values));
}

static pl_status export_model(const pl_cli_command *command, const pl_cli_input *in, pl_error *err)
{
    pl_export_options o;
    pl_error none = {0};
    static pl_exported x;
    pl_status status = read_options(in, &o, err);
    if (status == PL_OK && !o.seeded && pl_command_require(PL_COMMAND_TRAIN, in->config, &none) == PL_OK)
        status = pl_cli_require_trained(in, o.checkpoint, true, err);
    if (status == PL_OK) status = pl_export_model(in->config, &o, &x, err);
    if (status != PL_OK) return status;
    if (x.warning[0]) pl_say("plimsoll %s: warning: %s\n", command->name, x.warning);
    return in->arguments.value[JSON] ? tell_json(&o, &x, err) : tell(&o, &x, err);
}

static int run(const pl_cli_command *command, int argc, char **argv)
{
    pl_cli_input in;
    pl_error err = {0};
    uint32_t stages;
    pl_status status = pl_cli_load(command, argc, argv, 0, &in, &err);
    if (status == PL_OK) status = pl_cli_name_stage(&in, &stages, &err);
    if (status == PL_OK) status = export_model(command, &in, &err);
    pl_cli_release(&in);
    return status == PL_OK ? 0 : pl_cli_complain(command->name, status, &err);
}

const pl_cli_body pl_cli_export = {
    .text = about, .options = options, .option_count = sizeof options / sizeof *options, .run = run};
