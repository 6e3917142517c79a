/* A folder of a pretrained model: config.json, a zero, and the header of model.safetensors, from which its length and
 * data follow. Tensors of a model that is accepted can be read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "fuzz/fuzz.h"
#include "pretrained/model_write.h"
#include "pretrained/shards.h"

enum { DATA_MAX = 1 << 20, NUMBERS_MAX = 1 << 16 };

/* The largest end among the data_offsets; 0 when there is none, or one that is too large to try. */
static size_t data_bytes_of(const char *header, size_t size)
{
    size_t most = 0;
    const char *name;
    json_t *entry, *root = json_loadb(header, size, 0, NULL);
    json_object_foreach(root, name, entry)
    {
        json_int_t end = json_integer_value(json_array_get(json_object_get(entry, "data_offsets"), 1));
        if (end > 0 && end <= DATA_MAX && (size_t)end > most) most = (size_t)end;
    }
    json_decref(root);
    return most;
}

static void write_weights(const uint8_t *header, size_t size)
{
    char path[128];
    const size_t bytes = 8 + size + data_bytes_of((const char *)header, size);
    uint8_t *file = calloc(bytes, 1);
    FUZZ_CHECK(file, "no memory");
    for (int i = 0; i < 8; i++) file[i] = (uint8_t)((uint64_t)size >> 8 * i);
    memcpy(file + 8, header, size);
    snprintf(path, sizeof path, "%s/model.safetensors", fuzz_folder());
    fuzz_write(path, file, bytes);
    free(file);
}

static void check_model(const pl_pretrained *p)
{
    static float numbers[NUMBERS_MAX];
    static unsigned char staging[PL_TENSOR_STAGING_MIN];
    for (size_t i = 0; i < pl_pretrained_tensor_count(p); i++) {
        const pl_pretrained_tensor *t = pl_pretrained_tensor_at(p, i);
        pl_error err = {0};
        if (t->rows > NUMBERS_MAX / t->columns) continue;
        const pl_status status = pl_pretrained_read(p, t, PL_ENCODING_F32, numbers, staging, sizeof staging, &err);
        FUZZ_CHECK(status == PL_OK, "%s", err.text);
    }
}

/* Both forms of it have a list of tensors, whose rooms and layout are known. */
static void check_forms(const pl_pretrained *p)
{
    for (int is_gguf = 0; is_gguf < 2; is_gguf++) {
        pl_written_list list;
        pl_shards shards = {0};
        pl_error err = {0};
        if (pl_written_list_make(p, is_gguf, &list, &err) == PL_OK &&
            pl_written_list_encode(&list, is_gguf, is_gguf ? PL_ENCODING_Q4_0 : PL_ENCODING_BF16, &err) == PL_OK) {
            const pl_written_room room = pl_written_room_plan(p, &list);
            FUZZ_CHECK(pl_written_room_bytes(&room) > 0 && list.count > 0, "no room");
            if (!is_gguf) (void)pl_shards_init(&shards, &list, 4096, &err);
        }
        pl_shards_deinit(&shards);
        pl_written_list_deinit(&list);
    }
}

/* What its config says is said again, or refused. */
static void check_words(const pl_pretrained *p)
{
    pl_gguf_keys keys = {0};
    pl_gguf_model_written written;
    pl_str text = {0};
    pl_error err = {0};
    (void)pl_gguf_model_write(p, PL_ENCODING_F32, &keys, &written, &err);
    (void)pl_hf_config_write(p, PL_ENCODING_F32, NULL, 0, &text, &err);
    pl_str_deinit(&keys.text);
    pl_str_deinit(&text);
}

static pl_status read_once(const uint8_t *data, size_t size, pl_error *err)
{
    pl_pretrained *p;
    (void)data, (void)size;
    const pl_status status = pl_pretrained_open(fuzz_folder(), &p, err);
    if (p) check_model(p), check_forms(p), check_words(p);
    pl_pretrained_close(p);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t before = pl_alloc_live_blocks();
    const uint8_t *zero = memchr(data, 0, size);
    const size_t config = zero ? (size_t)(zero - data) : size;
    char path[128];
    pl_error err = {0};
    snprintf(path, sizeof path, "%s/config.json", fuzz_folder());
    fuzz_write(path, data, config);
    write_weights(zero ? zero + 1 : data, zero ? size - config - 1 : 0);
    const pl_status status = read_once(data, size, &err);
    if (status != PL_OK) fuzz_refused(status, &err, "plimsoll-fuzz", FUZZ_NAME);
    fuzz_without_memory(read_once, data, size);
    FUZZ_CHECK(pl_alloc_live_blocks() == before, "blocks are held still");
    return 0;
}
