/* Models for other programs: the inference program as ONNX, or the weights alone. */
#ifndef PLIMSOLL_EXPORT_H
#define PLIMSOLL_EXPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "plimsoll/config.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum pl_export_format {
    PL_EXPORT_ONNX,        /* nodes of ONNX (opset 17), weights as initialisers, f32, or QDQ where they are in 8 bits;
                              the config as metadata */
    PL_EXPORT_SAFETENSORS, /* the weights under their names, as a checkpoint has them; the config as metadata */
    PL_EXPORT_FORMAT_COUNT
} pl_export_format;

PL_API const char *pl_export_format_name(pl_export_format); /* "onnx" */
/* False: there is no format of that name. */
PL_API bool pl_export_format_parse(const char *name, pl_export_format *);

typedef struct pl_export_options {
    pl_export_format format;
    const char *path;       /* the file to write; ONNX with its weights outside has PATH.data beside it */
    const char *checkpoint; /* this checkpoint's folder instead of the run's best or latest; may be NULL */
    bool seeded;            /* the first values of the config's seed, whatever was trained */
    bool external_data;     /* ONNX: weights into a file of their own, also where the model has less than 2 GB */
    bool packed; /* safetensors: weights of which products see the signs alone as bits; PL_E_USAGE where none are */
} pl_export_options;

typedef struct pl_exported {
    uint64_t file_bytes, data_bytes; /* of the two files; data 0: there is one */
    uint64_t nodes, weights, weight_bytes;
    uint64_t planned_bytes;            /* of memory, of the whole process at most, known before weights are read */
    uint64_t held_bytes, values_bytes; /* that the work took besides the weights, and that for them */
    char from[1100];                   /* "the checkpoint runs/x/checkpoints/step-00000100", "first values" */
    char warning[PL_ERROR_TEXT_BYTES];
} pl_exported;

/* Writes the model of the config. Weights: the best checkpoint of the run's folder, else its latest; of a system that
 * is not trained the first values, or those of the file that the config names. PL_E_DATA where nothing was trained;
 * PL_E_UNSUPPORTED where an operator has no counterpart, or the module of ONNX is not installed; PL_E_STORAGE;
 * PL_E_BUDGET where memory.budget is less than planned. A file is whole or not there. */
PL_API PL_MUST_USE pl_status pl_export_model(const pl_config *, const pl_export_options *, pl_exported *, pl_error *);

#ifdef __cplusplus
}
#endif
#endif
