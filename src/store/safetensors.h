/* safetensors: a file of named tensors that others can load (format: github.com/huggingface/safetensors, README).
 *
 *   8 bytes   N, little endian
 *   N bytes   JSON: {"__metadata__":{"key":"text",…},"name":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},…}
 *             padded with spaces so that the data begin at a multiple of 64
 *   the rest  the tensors, row-major, little endian, one after another without holes
 *
 * Writing streams from where the tensors lie: no copy of them is made and no memory is asked for. Tensors with wider
 * elements come first, in the order of the list otherwise, so each is aligned to its element. The length of the file is
 * known beforehand (the plan books it).
 *
 * Reading trusts nothing: the header is bounded, every number is checked against the size of the file, and the tensors
 * must cover the data exactly. What is wrong is said in one sentence. */
#ifndef PL_STORE_SAFETENSORS_H
#define PL_STORE_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file.h"
#include "base/narrow.h"
#include "base/checksum.h"
#include "store/read_tensor.h"

typedef enum pl_st_dtype {
    PL_ST_BOOL,
    PL_ST_U8,
    PL_ST_I8,
    PL_ST_F8_E5M2,
    PL_ST_F8_E4M3,
    PL_ST_F8_E8M0,
    PL_ST_I16,
    PL_ST_U16,
    PL_ST_F16,
    PL_ST_BF16,
    PL_ST_I32,
    PL_ST_U32,
    PL_ST_F32,
    PL_ST_F64,
    PL_ST_I64,
    PL_ST_U64,
    PL_ST_C64,
    PL_ST_DTYPE_COUNT
} pl_st_dtype;

enum {
    PL_ST_RANK_MAX = 8,
    PL_ST_TEXT_MAX = 1000,       /* bytes of a name, of a metadata key that we write */
    PL_ST_VALUE_MAX = 256 << 10, /* of a metadata value that we write, which may have lines */
    PL_ST_ALIGNMENT = 64,        /* of the data in a file that we write */
    PL_ST_HEADER_MAX = 4 << 20,  /* bytes of a header that we read (about 40,000 tensors); bounds the memory it takes */
    PL_ST_PIECE_BYTES = 16 << 10 /* of the header in memory at once while writing: holds the longest entry, escaped */
};

/* A tensor to write, or the place to read one into. */
typedef struct pl_st_entry {
    const char *name;
    pl_st_dtype dtype;
    uint32_t rank;
    uint64_t shape[PL_ST_RANK_MAX];
    void *data; /* only read when writing */
    uint64_t bytes;
    bool optional; /* reading: a file without it leaves the data as they are */
    bool converts; /* reading: f32, bf16 or f16 there, rounded or widened to what it is here */
} pl_st_entry;

typedef struct pl_st_text {
    const char *key, *value;
} pl_st_text;

typedef struct pl_st_list {
    const pl_st_entry *entries;
    size_t count;
    const pl_st_text *metadata;
    size_t metadata_count;
    bool more_numbers; /* reading: the file may hold further tensors of one element */
    bool more_tensors; /* reading: it may hold any further ones */
} pl_st_list;

/* ---- safetensors.c ---- */

const char *pl_st_dtype_name(pl_st_dtype);          /* "F32" */
uint32_t pl_st_dtype_bytes(pl_st_dtype);            /* of one element */
int pl_st_dtype_parse(const char *, pl_st_dtype *); /* 0 on success */
int pl_st_dtype_real(pl_st_dtype, pl_real *);       /* 0 where it is one of these */
pl_encoding pl_st_dtype_encoding(pl_st_dtype);      /* f64: that of f32; PL_ENCODING_COUNT: whole numbers, and others */

/* Bytes of a tensor; -1 when there are more than a file can hold. */
int pl_st_tensor_bytes(pl_st_dtype, uint32_t rank, const uint64_t *shape, uint64_t *bytes);

/* "F32 [768, 256]" into text (cut when room is short); returns text. */
const char *pl_st_shape_print(pl_st_dtype, uint32_t rank, const uint64_t *shape, char *text, size_t room);

/* ---- safetensors_write.c ---- */

/* Everything that can be wrong with a list: empty, doubled or unprintable names, shape × element ≠ bytes. Once, early.
 */
pl_status pl_safetensors_check(const pl_st_list *, pl_error *);

/* For a checked list: bytes before the data (length field, JSON, padding), and of the whole file. */
uint64_t pl_safetensors_header_bytes(const pl_st_list *);
uint64_t pl_safetensors_file_bytes(const pl_st_list *);

/* xxh64 of the file that is written of the list, metadata included. */
uint64_t pl_safetensors_checksum(const pl_st_list *);

/* What lies before the data, header_bytes of it, into memory. */
void pl_safetensors_print_header(const pl_st_list *, char *to);

/* What writing needs beside the tensors; lives wherever the caller puts it (about 25 kB). */
typedef struct pl_st_writer {
    pl_file_writer file;
    pl_checksum sum;
    char piece[PL_ST_PIECE_BYTES];
} pl_st_writer;

/* Writes a checked list as base/file.h does: the whole file or nothing. *checksum (may be NULL) gets its xxh64. */
pl_status pl_safetensors_write(pl_st_writer *, const char *path, const pl_st_list *, uint64_t *checksum, pl_error *);

/* ---- safetensors_read.c ---- */

typedef struct pl_safetensors pl_safetensors;

typedef struct pl_st_tensor {
    const char *name;
    pl_st_dtype dtype;
    uint32_t rank;
    uint64_t shape[PL_ST_RANK_MAX];
    uint64_t bytes;
    uint64_t offset; /* in the file */
} pl_st_tensor;

/* Reads and checks the header; the file stays open for pl_safetensors_read until destroy. PL_E_DATA when it is damaged.
 * A path that ends in .json is an index of several files in its folder (model.safetensors.index.json), which have all
 * that it names, and nothing else: their tensors are those of one model, whose metadata nobody has. */
pl_status pl_safetensors_open(const char *path, pl_safetensors **, pl_error *);

/* The same for a header in memory (the first `bytes` bytes of a file of file_bytes): for tests and fuzzing. `name`
 * stands in the sentences. Nothing can be read from it. */
pl_status pl_safetensors_parse(const void *data, size_t bytes, uint64_t file_bytes, const char *name, pl_safetensors **,
                               pl_error *);
void pl_safetensors_destroy(pl_safetensors *); /* NULL is fine */

const char *pl_safetensors_path(const pl_safetensors *);
uint64_t pl_safetensors_data_at(const pl_safetensors *); /* where the data begin: the header's end */
size_t pl_safetensors_count(const pl_safetensors *);
/* In the order of the data; of an index by name. */
const pl_st_tensor *pl_safetensors_at(const pl_safetensors *, size_t index);
const pl_st_tensor *pl_safetensors_find(const pl_safetensors *, const char *name); /* NULL when it has none */
const char *pl_safetensors_metadata(const pl_safetensors *, const char *key);      /* NULL when it has none */

/* Its files, each by itself: one, or those of an index by name. What reads tensors or bytes below takes one of them
 * and no index. */
size_t pl_safetensors_file_count(const pl_safetensors *);
const pl_safetensors *pl_safetensors_file(const pl_safetensors *, size_t index);
/* The open file, for the caller to read and close: nothing can be read through the header any more. */
void pl_safetensors_give_file(pl_safetensors *, size_t index, pl_model_file *to);

/* Does the file hold this tensor with this dtype and shape? Otherwise PL_E_DATA with both shapes. */
pl_status pl_safetensors_match(const pl_safetensors *, const pl_st_entry *, pl_error *);

/* Every entry of the list is in the file as expected, or optional and not in it, and nothing else is but what the list
 * allows. Reads no data. */
pl_status pl_safetensors_match_all(const pl_safetensors *, const pl_st_list *, pl_error *);

/* Reads the tensor of that name, dtype and shape into entry->data, unless it is optional and missing. The page cache it
 * fills is dropped again. */
pl_status pl_safetensors_read(const pl_safetensors *, const pl_st_entry *, pl_error *);

/* How a tensor of numbers lies in a file that is one. */
pl_tensor_source pl_safetensors_source(const pl_safetensors *, const pl_st_tensor *);

/* Bytes of one file from `at` on, for who reads it from its first to its last. `last`: nobody reads it after that; what
 * is a window behind is dropped from the page cache. */
pl_status pl_safetensors_stream(const pl_safetensors *, uint64_t at, void *to, uint64_t bytes, bool last, pl_error *);

/* ---- safetensors_index.c ---- */

/* The path to open of a model's folder: its model.safetensors, or the index. PL_E_UNSUPPORTED: it has weights of
 * Python only, and the sentence has the line that converts them with that class of transformers. PL_E_DATA: none. */
pl_status pl_safetensors_locate(const char *folder, const char *python_class, char path[PL_FILE_PATH_MAX], pl_error *);

#endif
