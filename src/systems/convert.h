/* Inside of a conversion: what is read, and what is written of it. Private to this folder. */
#ifndef PL_SYSTEMS_CONVERT_H
#define PL_SYSTEMS_CONVERT_H

#include "base/file.h"
#include "plimsoll/convert.h"
#include "pretrained/model_write.h"
#include "pretrained/shards.h"
#include "systems/pretrained.h"

enum { PL_CONVERT_SIDES_MAX = 8 };

/* A file of a folder that holds no weights: a text, or a copy. */
typedef struct pl_side_file {
    const char *name;
    pl_str text;
    const char *copied; /* NULL: the text */
} pl_side_file;

typedef struct pl_conversion {
    const char *out;
    const pl_convert_options *o;
    pl_converted *done;
    pl_pretrained *from;
    bool to_gguf;
    pl_encoding wanted;   /* PL_ENCODING_COUNT: as stored */
    pl_encoding matrices; /* of most of the numbers that are written */
    pl_written_list list;
    pl_written_room room;
    pl_converted_tensor *told; /* of `done` */
    pl_alloc_meter meter;
    double squares, error_squares;
    /* a GGUF file */
    pl_gguf_keys keys;
    pl_gguf_model_written words;
    pl_str header;
    uint64_t file_bytes;
    /* a folder */
    pl_shards shards;
    pl_side_file side[PL_CONVERT_SIDES_MAX];
    size_t sides;
    pl_file_writer *file; /* all files */
    size_t files;
} pl_conversion;

/* A sentence about what gets lost. */
void pl_convert_note(pl_conversion *, const char *sentence);
pl_side_file *pl_convert_add_side(pl_conversion *, const char *name);

/* convert.c: nothing is there but what a killed conversion left. */
pl_status pl_convert_check_free(const pl_conversion *, pl_error *);

/* convert_tokenizer.c: the tokenizer's keys, or its files. */
pl_status pl_convert_put_tokenizer(pl_conversion *, pl_error *);
pl_status pl_convert_add_tokenizer(pl_conversion *, pl_error *);

/* convert_write.c */
pl_status pl_convert_plan(pl_conversion *, pl_error *);
pl_status pl_convert_write(pl_conversion *, pl_error *);

#endif
