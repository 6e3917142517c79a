/* plimsoll convert: a pretrained model in another form. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "load.h"
#include "format.h"
#include "out.h"

enum { ENCODING, SHARD_SIZE, WITHOUT_TOKENIZER, QUIET, LEDGER, JSON };
static const pl_cli_option own_options[] = {
    [ENCODING] =
        {"--encoding", "NAME",
         "of the matrices: f32, bf16, f16; in a GGUF file also q8_0, q5_1, q5_0, q4_1, q4_0; default: as stored",
         .words = "f32 bf16 f16 q8_0 q5_1 q5_0 q4_1 q4_0"},
    [SHARD_SIZE] = {"--shard-size", "SIZE", "a folder's files of weights are at most so large; default: 5GB"},
    [WITHOUT_TOKENIZER] = {"--without-tokenizer", NULL, "write the model alone, without tokenizer and chat template"},
    [QUIET] = {"--quiet", NULL, "say nothing but warnings and errors", true},
    [LEDGER] = {"--ledger", NULL, "print planned and measured memory at the end"},
    [JSON] = {"--json", NULL, "what was written as JSON (schema plimsoll.convert/1)", true},
};

static const char about[] =
    "Writes a pretrained language model in another form: MODEL is a folder of Hugging Face or a GGUF file, and so is "
    "OUT, a GGUF file where its name ends in .gguf. Without --encoding numbers stay as they are; of blocks, for which "
    "a "
    "folder has no form, it gets the numbers in f32. Several files of weights become one, or as many as --shard-size "
    "says.\n"
    "\n"
    "In blocks (q8_0 to q4_0) numbers are those of llama.cpp, to the byte. Vectors stay in f32 there, and the rows of "
    "tokens are in q8_0 where the rest has fewer bits. A table says how far the numbers of each tensor moved: the root "
    "mean square of the errors over that of the numbers, and the largest error.\n"
    "\n"
    "Memory is planned before the first byte is written and does not grow with the model: tensors go through a few "
    "megabytes, some rows at a time. OUT must not be there; its files get their names when all are written.\n";

/* ---- as JSON ---- */

static pl_status put_json_tensor(const pl_converted_tensor *x, bool is_first, pl_error *err)
{
    char text[2048];
    pl_line line = {text, sizeof text, 0};
    pl_line_add(&line, "%s\n  {\"name\": \"", is_first ? "" : ",");
    pl_line_json(&line, x->name, strlen(x->name));
    pl_line_add(&line,
                "\", \"from\": \"%s\", \"to\": \"%s\", \"numbers\": %" PRIu64 ", \"bytes\": %" PRIu64
                ", \"relative_error\": %.9g, \"largest_error\": %.9g}",
                x->from, x->to, x->numbers, x->bytes, x->relative_error, x->largest_error);
    return pl_put(text, line.bytes, err);
}

static pl_status put_json(const char *out, const pl_converted *x, pl_error *err)
{
    char text[16 << 10];
    pl_line line = {text, sizeof text, 0};
    pl_status status = pl_put_text("{\"schema\": \"plimsoll.convert/1\", \"tensors\": [", err);
    for (uint64_t i = 0; i < x->tensors && status == PL_OK; i++) status = put_json_tensor(&x->tensor[i], i == 0, err);
    if (status != PL_OK) return status;
    pl_line_add(&line, "], \"out\": \"");
    pl_line_json(&line, out, strlen(out));
    pl_line_add(&line,
                "\", \"numbers\": %" PRIu64 ", \"rounded\": %" PRIu64 ", \"files\": %" PRIu64
                ", \"file_bytes\": %" PRIu64 ", \"relative_error\": %.9g, \"planned_bytes\": %" PRIu64
                ", \"measured_bytes\": %" PRIu64 ", \"prepared_bytes\": %" PRIu64 ", \"note\": \"",
                x->numbers, x->rounded, x->files, x->file_bytes, x->relative_error, x->planned_bytes, x->measured_bytes,
                x->prepared_bytes);
    pl_line_json(&line, x->note, strlen(x->note));
    pl_line_add(&line, "\"}\n");
    return pl_put(text, line.bytes, err);
}

/* ---- as text ---- */

static pl_status put_table(const pl_converted *x, pl_error *err)
{
    char bytes[PL_FORMAT_BYTES];
    if (x->rounded == 0) return PL_OK;
    pl_status status =
        pl_put_format(err, "%-44s %-5s %-5s %9s %9s %11s\n", "tensor", "from", "to", "size", "error", "largest");
    for (uint64_t i = 0; i < x->tensors && status == PL_OK; i++) {
        const pl_converted_tensor *t = &x->tensor[i];
        if (t->relative_error > 0)
            status = pl_put_format(err, "%-44s %-5s %-5s %9s %8.4f%% %11.4g\n", t->name, t->from, t->to,
                                   pl_show_bytes(t->bytes, bytes), 100 * t->relative_error, t->largest_error);
    }
    return status;
}

static pl_status sum_up(const char *out, const pl_converted *x, pl_error *err)
{
    char shown[PL_SHOWN_BYTES] = "", bytes[PL_FORMAT_BYTES], numbers[PL_FORMAT_BYTES], files[PL_FORMAT_BYTES];
    pl_status status =
        pl_put_format(err, "%s: %s in %s file%s, %" PRIu64 " tensors, %s numbers", pl_show_plainly(out, shown),
                      pl_show_bytes(x->file_bytes, bytes), pl_show_count(x->files, files), pl_show_plural(x->files),
                      x->tensors, pl_show_count(x->numbers, numbers));
    if (status == PL_OK && x->rounded)
        status = pl_put_format(err, "; %" PRIu64 " tensors rounded, error %.4f%%, most in %s (%.4f%%)", x->rounded,
                               100 * x->relative_error, x->worst, 100 * x->worst_relative_error);
    return status == PL_OK ? pl_put_format(err, "\n") : status;
}

static pl_status put_ledger(const pl_converted *x, pl_error *err)
{
    char planned[PL_FORMAT_BYTES], measured[PL_FORMAT_BYTES], before[PL_FORMAT_BYTES];
    return pl_put_format(err,
                         "memory while tensors are written: planned %s bytes, measured %s bytes; before that, for "
                         "headers and the tokenizer, at most %s bytes\n",
                         pl_show_count(x->planned_bytes, planned), pl_show_count(x->measured_bytes, measured),
                         pl_show_count(x->prepared_bytes, before));
}

static pl_status tell(const pl_cli_command *command, const pl_cli_arguments *a, const pl_converted *x, pl_error *err)
{
    const char *out = a->operand[1];
    if (a->value[JSON]) return put_json(out, x, err);
    if (x->note[0]) pl_say("plimsoll %s: warning: %s\n", command->name, x->note);
    pl_status status = a->value[QUIET] ? PL_OK : put_table(x, err);
    if (status == PL_OK && !a->value[QUIET]) status = sum_up(out, x, err);
    return status == PL_OK && a->value[LEDGER] ? put_ledger(x, err) : status;
}

static int run(const pl_cli_command *command, int argc, char **argv)
{
    pl_cli_arguments a;
    pl_error err = {0};
    if (pl_cli_parse(command, argc, argv, &a, &err) != PL_OK) return pl_cli_complain(command->name, err.status, &err);
    if (a.operand_count != 2) return pl_cli_usage(command->name, "MODEL and OUT are expected", "");
    pl_convert_options o = {.encoding = a.value[ENCODING], .without_tokenizer = a.value[WITHOUT_TOKENIZER] != NULL};
    if (a.value[SHARD_SIZE]) {
        const int code = pl_cli_read_size(command->name, "--shard-size", a.value[SHARD_SIZE], &o.shard_bytes);
        if (code) return code;
        if (o.shard_bytes == 0)
            return pl_cli_usage(command->name, "--shard-size is 0; give the most bytes that a file may have", "");
    }
    char model[PATH_MAX];
    pl_converted *x = NULL;
    pl_status status = pl_cli_find_model(a.operand[0], model, &err);
    if (status == PL_OK) status = pl_convert(model, a.operand[1], &o, &x, &err);
    if (status == PL_OK) status = tell(command, &a, x, &err);
    pl_converted_destroy(x);
    return status == PL_OK ? 0 : pl_cli_complain(command->name, status, &err);
}

const pl_cli_body pl_cli_convert = {
    .text = about, .options = own_options, .option_count = sizeof own_options / sizeof *own_options, .run = run};
