/* A model as a file of ONNX: first, where weights lie in a file of their own, that one; then the model, which names it.
 * Both are streamed from where the numbers lie. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/module.h"
#include "base/remove.h"
#include "base/size.h"
#include "export/export.h"
#include "plimsoll/version.h"

/* A message of protocol buffers has at most 2^31 − 1 bytes. Tensors that a reader needs to find shapes stay in the
 * model (they are small); large ones begin at pages, so that they can be mapped. */
enum {
    PIECE_BYTES = 32 << 10,
    MESSAGE_MAX = INT32_MAX,
    STAYS_BYTES = 1024,
    LARGE_BYTES = 1 << 20,
    ALIGNMENT = 64,
    PAGE = 4096
};
#define DATA_SUFFIX ".data"

/* ---- the module ---- */

static pl_status load_module(pl_module *m, pl_error *err)
{
    const pl_module_wanted wanted = {
        .file = PL_ONNX_FILE,
        .symbol = PL_ONNX_SYMBOL,
        .version = PL_ONNX_VERSION,
        .what = "export to ONNX",
        .install = "; install libprotobuf-c (Debian: libprotobuf-c-dev, protobuf-c-compiler and libonnx-dev, and build "
                   "Plimsoll with them there)",
        .instead = ", or choose `format` safetensors"};
    return pl_module_load(&wanted, m, err);
}

pl_status pl_export_check_onnx(pl_error *err)
{
    pl_module onnx;
    PL_TRY(load_module(&onnx, err));
    pl_module_unload(&onnx);
    return PL_OK;
}

/* ---- weights outside ---- */

typedef struct writing {
    const pl_export_file *file;
    const pl_onnx_module *module;
    pl_onnx_model model;
    pl_onnx_tensor *tensor; /* as they lie in the files */
    char location[PL_FILE_PATH_MAX], data_path[PL_FILE_PATH_MAX];
    pl_export_sizes sizes;
    pl_file_writer writer, data;
    char piece[PIECE_BYTES]; /* packing gives a few bytes at a time */
    size_t used;
    pl_status status;
    pl_error *err;
} writing;

static bool goes_out(const pl_onnx_tensor *t) { return t->bytes >= STAYS_BYTES; }

static uint64_t alignment_of(const pl_onnx_tensor *t) { return t->bytes >= LARGE_BYTES ? PAGE : ALIGNMENT; }

static pl_status name_data(writing *w, pl_error *err)
{
    const char *slash = strrchr(w->file->path, '/');
    int n = snprintf(w->data_path, sizeof w->data_path, "%s" DATA_SUFFIX, w->file->path);
    if (n < 0 || (size_t)n >= sizeof w->data_path)
        return pl_fail(err, PL_E_USAGE, "%.300s: the path is too long", w->file->path);
    snprintf(w->location, sizeof w->location, "%s" DATA_SUFFIX, slash ? slash + 1 : w->file->path);
    return PL_OK;
}

/* Each tensor that goes out gets its place. */
static void place(writing *w)
{
    for (size_t i = 0; i < w->model.tensors; i++) {
        pl_onnx_tensor *t = &w->tensor[i];
        if (!goes_out(t)) continue;
        t->location = w->location;
        t->offset = pl_align_up(w->sizes.data_bytes, alignment_of(t));
        w->sizes.data_bytes = t->offset + t->bytes;
    }
}

/* What stands there without a model beside it is of no earlier export. */
static pl_status check_place(const writing *w, pl_error *err)
{
    bool has_data, has_model;
    PL_TRY(pl_file_look(w->data_path, &has_data, err));
    PL_TRY(pl_file_look(w->file->path, &has_model, err));
    if (!has_data || has_model) return PL_OK;
    return pl_fail(err, PL_E_USAGE,
                   "%.600s is there already, and no model %.600s that it is of; remove it, or give another `run.out`",
                   w->data_path, w->file->path);
}

static pl_status write_tensor(writing *w, const pl_onnx_tensor *t, pl_error *err)
{
    static const char zeros[PAGE];
    PL_TRY(pl_file_write(&w->data, zeros, (size_t)(t->offset - w->data.bytes), err));
    return pl_file_write(&w->data, t->data, (size_t)t->bytes, err);
}

static pl_status write_data(writing *w, pl_error *err)
{
    pl_status status = pl_file_create(&w->data, w->data_path, err);
    for (size_t i = 0; i < w->model.tensors && status == PL_OK; i++)
        if (w->tensor[i].location) status = write_tensor(w, &w->tensor[i], err);
    return status;
}

/* ---- the model ---- */

static void flush(writing *w)
{
    if (w->status == PL_OK) w->status = pl_file_write(&w->writer, w->piece, w->used, w->err);
    w->used = 0;
}

static int put(void *context, const void *data, size_t bytes)
{
    writing *w = context;
    if (bytes > PIECE_BYTES - w->used) flush(w);
    if (bytes > PIECE_BYTES) {
        if (w->status == PL_OK) w->status = pl_file_write(&w->writer, data, bytes, w->err);
    } else if (w->status == PL_OK) {
        memcpy(w->piece + w->used, data, bytes);
        w->used += bytes;
    }
    return w->status != PL_OK;
}

static pl_status measure(writing *w, uint64_t *bytes, pl_error *err)
{
    uint64_t held;
    const int failed = w->module->measure(&w->model, bytes, &held);
    w->sizes.held_bytes = held + sizeof *w + w->model.tensors * sizeof *w->tensor;
    if (!failed) return PL_OK;
    return pl_fail(err, PL_E_NOMEM, "no memory to write %.300s", w->file->path);
}

static pl_status decide_places(writing *w, pl_error *err)
{
    uint64_t bytes;
    PL_TRY(name_data(w, err));
    PL_TRY(measure(w, &bytes, err));
    if (w->file->outside || bytes > MESSAGE_MAX) place(w);
    PL_TRY(measure(w, &w->sizes.model_bytes, err));
    if (w->sizes.model_bytes <= MESSAGE_MAX) return PL_OK;
    return pl_fail(err, PL_E_UNSUPPORTED,
                   "%.300s: a file of ONNX holds at most %d bytes, this model needs %" PRIu64 " beside its weights",
                   w->file->path, MESSAGE_MAX, w->sizes.model_bytes);
}

static pl_status write_model(writing *w, pl_error *err)
{
    w->err = err;
    w->status = pl_file_create(&w->writer, w->file->path, err);
    if (w->status != PL_OK) return w->status;
    if (w->module->write(&w->model, put, w) != 0)
        w->status = pl_fail(err, PL_E_NOMEM, "no memory to write %.300s", w->file->path);
    flush(w);
    return w->status;
}

/* Two files cannot take the place of two others at once: an earlier model goes before its weights are others'. */
static pl_status put_in_place(writing *w, pl_error *err)
{
    pl_status status = PL_OK;
    if (w->sizes.data_bytes) {
        status = pl_remove_file(w->writer.path, err);
        if (status == PL_OK) status = pl_file_commit(&w->data, err);
    }
    if (status == PL_OK) status = pl_file_commit(&w->writer, err);
    w->sizes.has_other_data = w->sizes.data_bytes == 0 && access(w->data_path, F_OK) == 0;
    if (status == PL_OK) return PL_OK;
    pl_file_abandon(&w->writer);
    if (w->sizes.data_bytes) (void)pl_remove_file(w->data.path, NULL);
    return status;
}

static pl_status write_both(writing *w, pl_error *err)
{
    pl_status status = w->sizes.data_bytes ? check_place(w, err) : PL_OK;
    if (status == PL_OK && w->sizes.data_bytes) status = write_data(w, err);
    if (status == PL_OK) status = write_model(w, err);
    if (status == PL_OK) return put_in_place(w, err);
    pl_file_abandon(&w->writer);
    if (w->sizes.data_bytes) pl_file_abandon(&w->data);
    return status;
}

static pl_status write_files(writing *w, const pl_lowering *l, pl_error *err)
{
    w->model = pl_lowering_model(l);
    w->tensor = pl_alloc(w->model.tensors + 1, sizeof *w->tensor);
    if (!w->tensor) return pl_fail(err, PL_E_NOMEM, "no memory to write %.300s", w->file->path);
    memcpy(w->tensor, w->model.tensor, w->model.tensors * sizeof *w->tensor);
    w->model.tensor = w->tensor;
    w->model.producer = "plimsoll", w->model.producer_version = PL_VERSION;
    w->model.text = w->file->text, w->model.texts = w->file->texts;
    w->sizes.nodes = w->model.nodes, w->sizes.tensors = w->model.tensors;
    for (size_t i = 0; i < w->model.tensors; i++) w->sizes.weight_bytes += w->tensor[i].bytes;
    PL_TRY(decide_places(w, err));
    return write_both(w, err);
}

pl_status pl_export_write_onnx(const pl_lowering *l, const pl_export_file *file, pl_export_sizes *sizes, pl_error *err)
{
    pl_module onnx;
    writing *w = pl_alloc(1, sizeof *w);
    if (!w) return pl_fail(err, PL_E_NOMEM, "no memory to write %.300s", file->path);
    w->file = file;
    pl_status status = load_module(&onnx, err);
    w->module = onnx.functions;
    if (status == PL_OK) status = write_files(w, l, err);
    pl_module_unload(&onnx);
    *sizes = w->sizes;
    pl_free(w->tensor);
    pl_free(w);
    return status;
}
