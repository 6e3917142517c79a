#include "support/tiny_model.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/encoding.h"

const char tiny_config[] =
    "{\"model_type\": \"llama\", \"hidden_size\": 32, \"num_hidden_layers\": 2, \"num_attention_heads\": 2,\n"
    " \"num_key_value_heads\": 1, \"intermediate_size\": 64, \"vocab_size\": 40, \"max_position_embeddings\": 128,\n"
    " \"rms_norm_eps\": 1e-5, \"rope_theta\": 5e5, \"tie_word_embeddings\": false, \"bos_token_id\": 1,\n"
    " \"eos_token_id\": [2, 7]}\n";

static const struct {
    const char *hf, *gguf;
    int64_t rows, columns;
} names[] = {
    {"model.embed_tokens", "token_embd", TINY_VOCAB, TINY_WIDTH},
    {"model.norm", "output_norm", 1, TINY_WIDTH},
    {"lm_head", "output", TINY_VOCAB, TINY_WIDTH},
    {"input_layernorm", "attn_norm", 1, TINY_WIDTH},
    {"self_attn.q_proj", "attn_q", TINY_HEADS *TINY_HEAD_WIDTH, TINY_WIDTH},
    {"self_attn.k_proj", "attn_k", TINY_KEY_HEADS *TINY_HEAD_WIDTH, TINY_WIDTH},
    {"self_attn.v_proj", "attn_v", TINY_KEY_HEADS *TINY_HEAD_WIDTH, TINY_WIDTH},
    {"self_attn.o_proj", "attn_output", TINY_WIDTH, TINY_HEADS *TINY_HEAD_WIDTH},
    {"post_attention_layernorm", "ffn_norm", 1, TINY_WIDTH},
    {"mlp.gate_proj", "ffn_gate", TINY_INNER, TINY_WIDTH},
    {"mlp.up_proj", "ffn_up", TINY_INNER, TINY_WIDTH},
    {"mlp.down_proj", "ffn_down", TINY_WIDTH, TINY_INNER},
};

enum { OUTER = 3, IN_BLOCK = 9 };

static size_t row_of(size_t index) { return index < OUTER ? index : OUTER + (index - OUTER) % IN_BLOCK; }
static size_t block_of(size_t index) { return (index - OUTER) / IN_BLOCK; }

tiny_tensor tiny_tensor_at(size_t index)
{
    const size_t row = row_of(index);
    tiny_tensor t = {.rows = names[row].rows, .columns = names[row].columns};
    if (index < OUTER)
        snprintf(t.name, sizeof t.name, "%s.weight", names[row].hf);
    else
        snprintf(t.name, sizeof t.name, "model.layers.%zu.%s.weight", block_of(index), names[row].hf);
    return t;
}

float tiny_number(const tiny_tensor *t, int64_t i)
{
    uint32_t x = (uint32_t)i * 2654435761u;
    for (const char *c = t->name; *c; c++) x = (x ^ (unsigned char)*c) * 16777619u;
    return (float)((int)(x >> 16 & 127) - 64) / 64;
}

/* ---- a folder ---- */

static FILE *open_in(const char *folder, const char *name)
{
    char path[1200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    assert(file);
    return file;
}

void tiny_write_text(const char *folder, const char *name, const char *text)
{
    FILE *file = open_in(folder, name);
    fputs(text, file);
    fclose(file);
}

size_t tiny_print_header(char header[TINY_HEADER_MAX])
{
    size_t at = 0, offset = 0;
    for (size_t i = 0; i < TINY_TENSORS; i++) {
        const tiny_tensor t = tiny_tensor_at(i);
        const size_t bytes = (size_t)(t.rows * t.columns) * 4;
        char shape[64];
        if (t.rows == 1)
            snprintf(shape, sizeof shape, "%d", (int)t.columns);
        else
            snprintf(shape, sizeof shape, "%d,%d", (int)t.rows, (int)t.columns);
        at += (size_t)snprintf(header + at, TINY_HEADER_MAX - at,
                               "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}", i ? "," : "{",
                               t.name, shape, offset, offset + bytes);
        offset += bytes;
    }
    header[at++] = '}';
    while (at % 8) header[at++] = ' '; /* as writers do, so that numbers are aligned */
    return at;
}

void tiny_write_folder(const char *folder)
{
    tiny_write_text(folder, "config.json", tiny_config);
    tiny_write_text(folder, "generation_config.json", "{\"eos_token_id\": 9, \"temperature\": 0.5, \"top_k\": 20}");
    FILE *file = open_in(folder, "model.safetensors");
    char header[TINY_HEADER_MAX];
    const size_t bytes = tiny_print_header(header);
    for (int i = 0; i < 8; i++) fputc((int)(bytes >> 8 * i & 255), file);
    fwrite(header, 1, bytes, file);
    for (size_t i = 0; i < TINY_TENSORS; i++) {
        const tiny_tensor t = tiny_tensor_at(i);
        for (int64_t k = 0; k < t.rows * t.columns; k++) fwrite(&(float){tiny_number(&t, k)}, 4, 1, file);
    }
    fclose(file);
}

/* ---- a GGUF file ---- */

static void put(FILE *file, uint64_t x, int bytes)
{
    for (int i = 0; i < bytes; i++) fputc((int)(x >> 8 * i & 255), file);
}

static void put_text(FILE *file, const char *text)
{
    put(file, strlen(text), 8);
    fputs(text, file);
}

static void put_u32(FILE *file, const char *key, uint32_t x)
{
    put_text(file, key);
    put(file, 4, 4);
    put(file, x, 4);
}

static void put_f32(FILE *file, const char *key, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    put_text(file, key);
    put(file, 6, 4);
    put(file, bits, 4);
}

static void put_keys(FILE *file)
{
    put_text(file, "general.architecture");
    put(file, 8, 4);
    put_text(file, "llama");
    put_u32(file, "llama.block_count", TINY_LAYERS);
    put_u32(file, "llama.context_length", 128);
    put_u32(file, "llama.embedding_length", TINY_WIDTH);
    put_u32(file, "llama.feed_forward_length", TINY_INNER);
    put_u32(file, "llama.attention.head_count", TINY_HEADS);
    put_u32(file, "llama.attention.head_count_kv", TINY_KEY_HEADS);
    put_f32(file, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    put_f32(file, "llama.rope.freq_base", 5e5f);
    put_u32(file, "tokenizer.ggml.bos_token_id", 1);
    put_u32(file, "tokenizer.ggml.eos_token_id", 2);
    put_text(file, "tokenizer.ggml.tokens");
    put(file, 9, 4);
    put(file, 8, 4);
    put(file, 3, 8);
    put_text(file, "<unk>");
    put_text(file, "");
    put_text(file, "b c");
    put_text(file, "tokenizer.ggml.scores");
    put(file, 9, 4);
    put(file, 6, 4);
    put(file, 2, 8);
    put(file, 0x3f800000, 4); /* 1 */
    put(file, 0xc0000000, 4); /* −2 */
}

enum { KEYS = 13, ALIGNMENT = 32 };

static const struct {
    uint32_t type;
    pl_encoding encoding;
} types[] = {{0, PL_ENCODING_F32}, {1, PL_ENCODING_F16}, {2, PL_ENCODING_Q4_0}, {8, PL_ENCODING_Q8_0}};

static pl_encoding encoding_of(uint32_t type, const tiny_tensor *t)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].type == type && t->rows > 1) return types[i].encoding;
    return PL_ENCODING_F32;
}

static size_t bytes_of(uint32_t type, const tiny_tensor *t)
{
    return (size_t)(t->rows * pl_encoding_row_bytes(encoding_of(type, t), t->columns));
}

static void put_tensors(FILE *file, uint32_t type)
{
    size_t offset = 0;
    for (size_t i = 0; i < TINY_TENSORS; i++) {
        const tiny_tensor t = tiny_tensor_at(i);
        char name[64];
        if (i < OUTER)
            snprintf(name, sizeof name, "%s.weight", names[i].gguf);
        else
            snprintf(name, sizeof name, "blk.%zu.%s.weight", block_of(i), names[row_of(i)].gguf);
        put_text(file, name);
        put(file, t.rows == 1 ? 1 : 2, 4);
        put(file, (uint64_t)t.columns, 8);
        if (t.rows > 1) put(file, (uint64_t)t.rows, 8);
        put(file, t.rows == 1 ? 0 : type, 4);
        put(file, offset, 8);
        offset += (bytes_of(type, &t) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
}

static void pad(FILE *file)
{
    while (ftell(file) % ALIGNMENT) fputc(0, file);
}

/* In the file, rows k and k + half of a head in Wq and Wk are neighbours. */
static int64_t row_in_model(size_t index, int64_t row)
{
    const size_t kind = row_of(index);
    const int64_t half = TINY_HEAD_WIDTH / 2, k = row % TINY_HEAD_WIDTH;
    return kind != 4 && kind != 5 ? row : row - k + (k % 2 ? half + k / 2 : k / 2);
}

static void put_numbers(FILE *file, uint32_t type)
{
    for (size_t i = 0; i < TINY_TENSORS; i++) {
        const tiny_tensor t = tiny_tensor_at(i);
        const pl_encoding e = encoding_of(type, &t);
        for (int64_t row = 0; row < t.rows; row++) {
            float x[TINY_INNER];
            unsigned char blocks[TINY_INNER * 4];
            for (int64_t c = 0; c < t.columns; c++) x[c] = tiny_number(&t, row_in_model(i, row) * t.columns + c);
            pl_encoding_narrow(e, x, t.columns, blocks);
            fwrite(blocks, 1, (size_t)pl_encoding_row_bytes(e, t.columns), file);
        }
        pad(file);
    }
}

unsigned char *tiny_make_gguf(uint32_t type, size_t *bytes)
{
    char *memory = NULL;
    FILE *file = open_memstream(&memory, bytes);
    assert(file);
    fputs("GGUF", file);
    put(file, 3, 4);
    put(file, TINY_TENSORS, 8);
    put(file, KEYS, 8);
    put_keys(file);
    put_tensors(file, type);
    pad(file);
    put_numbers(file, type);
    fclose(file);
    return (unsigned char *)memory;
}
