/* Pretrained language models of other programs: a folder as Hugging Face's libraries write it, or a GGUF file. Opening
 * reads headers only and checks everything that they say: what the model is (base/causal_lm.h), that its tensors are
 * all there, with the expected shapes, and nothing else. Reading a tensor then streams it into the caller's memory, in
 * our layout, and asks for no memory.
 *
 * The tensors have the names of llama in Hugging Face's files for all families: model.embed_tokens.weight,
 * model.embed_positions.weight, model.layers.0.self_attn.q_proj.weight (.bias), …, model.norm.weight, lm_head.weight. A
 * matrix has a row for each output. Families with norms after a sublayer have the four names of Gemma 2. */
#ifndef PL_PRETRAINED_PRETRAINED_H
#define PL_PRETRAINED_PRETRAINED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/causal_lm.h"
#include "base/encoding.h"
#include "base/error.h"
#include "base/file.h"
#include "pretrained/gguf.h"
#include "store/read_tensor.h"

typedef struct pl_pretrained pl_pretrained;

/* The folder or file that a name means: the path itself where something is there, else, for a name such as
 * "Qwen/Qwen2.5-0.5B", its newest download in `hub`, the cache of Hugging Face's libraries ("~/.cache/huggingface/hub";
 * NULL: there is none). PL_E_CONFIG: a sentence that says which files to fetch, and from where. */
pl_status pl_pretrained_find(const char *name, const char *hub, char path[PL_FILE_PATH_MAX], pl_error *);

/* Likewise what to open (store/safetensors.h) where a config takes weights: of a folder or a download its
 * model.safetensors, or the index of several files; else the name itself, also where nothing is there. PL_E_DATA,
 * PL_E_UNSUPPORTED: the folder has no weights that are read here. */
pl_status pl_pretrained_find_weights(const char *name, const char *hub, char path[PL_FILE_PATH_MAX], pl_error *);

/* A folder, or a .gguf file. PL_E_UNSUPPORTED names everything that the model needs and Plimsoll lacks; PL_E_DATA: the
 * files are damaged or do not fit each other. What this takes of the heap is the same each time: a plan rehearses it
 * (pl_alloc_set_meter, pl_json_count). */
pl_status pl_pretrained_open(const char *path, pl_pretrained **, pl_error *);
void pl_pretrained_close(pl_pretrained *); /* NULL is fine */

const pl_causal_lm *pl_pretrained_model(const pl_pretrained *);

/* ---- tensors ---- */

typedef struct pl_pretrained_tensor {
    const char *name;
    int64_t rows, columns; /* a vector has one row */
    pl_encoding encoding;  /* as stored; f64 counts as f32 */
    bool only_f32;         /* 1 is added when it is read, in f32 */
    uint32_t file;         /* which of the model's files */
    uint64_t bytes;        /* rows and columns in that encoding */
} pl_pretrained_tensor;

size_t pl_pretrained_tensor_count(const pl_pretrained *);
const pl_pretrained_tensor *pl_pretrained_tensor_at(const pl_pretrained *, size_t index);
const pl_pretrained_tensor *pl_pretrained_tensor_find(const pl_pretrained *,
                                                      const char *name); /* NULL: there is none */
/* The encoding in which a tensor is used where `wanted` is that of matrices (PL_ENCODING_COUNT: as they are stored).
 * Vectors, a table of positions, tensors that 1 is added to and rows that are no whole blocks are in f32, and rows of
 * tokens in 8 bits where the rest is in fewer. */
pl_encoding pl_pretrained_use_as(const pl_pretrained_tensor *, pl_encoding wanted);
/* That of a matrix alone. */
pl_encoding pl_pretrained_fit(pl_encoding wanted, int64_t columns, bool is_vocabulary);
size_t pl_pretrained_file_count(const pl_pretrained *);
const char *pl_pretrained_file_path(const pl_pretrained *, size_t index);

/* The whole tensor into `into`, rows × columns in `to`: blocks are copied where that is how they are stored; otherwise
 * numbers are widened to f32, and rounded once to `to`. `staging` has at least PL_TENSOR_STAGING_MIN bytes (a
 * megabyte reads faster); both are aligned as a float is.
 * PL_E_DATA: the file is another one than was opened, a block has a scale that is not finite, or a number is too large
 * for `to`. Asks for no memory; several threads may read, each with its own staging. */
pl_status pl_pretrained_read(const pl_pretrained *, const pl_pretrained_tensor *, pl_encoding to, void *into,
                             void *staging, size_t staging_bytes, pl_error *);

/* ---- tensors used in the pages of their files ----
 * All files of the model, one after the other, each from a whole page on: there a tensor begins at its place. */
#define PL_PRETRAINED_NO_PLACE UINT64_MAX
/* PL_PRETRAINED_NO_PLACE: the tensor does not lie in its file as it is used in `as` (numbers are converted, transposed,
 * in another order, or not aligned as a number is), so it must be read. */
uint64_t pl_pretrained_place(const pl_pretrained *, const pl_pretrained_tensor *, pl_encoding as);
/* Maps the first `bytes` of them, read-only, at `at`, the beginning of a page, in place of what is mapped there.
 * PL_E_DATA: a file is another one than was opened. Asks for no memory. */
pl_status pl_pretrained_map(const pl_pretrained *, void *at, uint64_t bytes, pl_error *);
/* PL_E_STORAGE: a file has another size, or was written to since it was opened. What its path leads to now does not
 * matter: a file that was replaced is still the old one where it is mapped. */
pl_status pl_pretrained_check_mapped(const pl_pretrained *, pl_error *);
/* The path of the file that has that byte; NULL: none. Safe in a handler of signals. */
const char *pl_pretrained_file_at(const pl_pretrained *, uint64_t place);

/* A number that tells this model from others: of config.json, of all that a file has before its numbers, and of a page
 * in the middle of each tensor. A plan keeps it. The staging is as above; asks for no memory. PL_E_DATA. */
pl_status pl_pretrained_identify(const pl_pretrained *, void *staging, size_t staging_bytes, uint64_t *hash,
                                 pl_error *);
/* The same of some of its rows: first and count are multiples of pl_pretrained_row_unit (of a vector: its one row). */
typedef struct pl_pretrained_rows {
    int64_t first, count;
    bool is_stored; /* the numbers of the file, without the 1 that is added to some */
} pl_pretrained_rows;

int64_t pl_pretrained_row_unit(const pl_pretrained *, const pl_pretrained_tensor *);
pl_status pl_pretrained_read_rows(const pl_pretrained *, const pl_pretrained_tensor *, const pl_pretrained_rows *,
                                  pl_encoding to, void *into, void *staging, size_t staging_bytes, pl_error *);
/* Does the file have it in its encoding? False: in f64. */
bool pl_pretrained_is_as_stored(const pl_pretrained *, const pl_pretrained_tensor *);

/* ---- what comes with a model ---- */

typedef enum pl_pretrained_part {
    PL_PRETRAINED_CONFIG,
    PL_PRETRAINED_GENERATION_CONFIG,
    PL_PRETRAINED_TOKENIZER,
    PL_PRETRAINED_TOKENIZER_CONFIG,
    PL_PRETRAINED_CHAT_TEMPLATE,
    PL_PRETRAINED_PART_COUNT
} pl_pretrained_part;

/* The path of that file in the folder; NULL: there is none, or the model is a GGUF file. */
const char *pl_pretrained_path(const pl_pretrained *, pl_pretrained_part);
/* The keys of a GGUF file, among them the tokenizer's; NULL: the model is a folder. */
const pl_gguf *pl_pretrained_gguf(const pl_pretrained *);

enum { PL_PRETRAINED_STOPS_MAX = 32, PL_PRETRAINED_NO_TOKEN = -1 };

/* Tokens and settings of generation that the files name. Those of folders come from config.json and
 * generation_config.json (united where both name some), not from the tokenizer. */
typedef struct pl_pretrained_defaults {
    int64_t bos, eos, pad; /* PL_PRETRAINED_NO_TOKEN: none is named */
    int64_t stop[PL_PRETRAINED_STOPS_MAX];
    size_t stops; /* each once; eos, and for GGUF eot and eom, are among them */
    bool has_temperature, has_top_k, has_top_p, has_repetition_penalty;
    double temperature, top_p, repetition_penalty;
    int64_t top_k;
} pl_pretrained_defaults;

const pl_pretrained_defaults *pl_pretrained_generation(const pl_pretrained *);

#endif
