/* A safetensors file: as it is, and its header alone with a length and data that fit, so that the fuzzer need not
 * count. What is accepted is written by our writer and read again, tensor by tensor. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "fuzz/fuzz.h"
#include "store/safetensors.h"

enum { TENSORS_MAX = 64, DATA_MAX = 1 << 16 };

/* ---- what was accepted ---- */

static void check_cover(const pl_safetensors *s, size_t size)
{
    uint64_t at = pl_safetensors_count(s) ? pl_safetensors_at(s, 0)->offset : 0;
    for (size_t i = 0; i < pl_safetensors_count(s); i++) {
        const pl_st_tensor *t = pl_safetensors_at(s, i);
        FUZZ_CHECK(t->offset == at, "tensor %zu begins at %llu, the one before ends at %llu", i,
                   (unsigned long long)t->offset, (unsigned long long)at);
        FUZZ_CHECK(pl_safetensors_find(s, t->name) == t, "tensor \"%s\" is not found", t->name);
        at += t->bytes;
    }
    FUZZ_CHECK(pl_safetensors_count(s) == 0 || at == size, "the tensors end at %llu of %zu bytes",
               (unsigned long long)at, size);
}

static size_t entries_of(const pl_safetensors *s, const uint8_t *data, pl_st_entry *entry)
{
    size_t count = pl_safetensors_count(s);
    for (size_t i = 0; i < count; i++) {
        const pl_st_tensor *t = pl_safetensors_at(s, i);
        entry[i] = (pl_st_entry){.name = t->name, .dtype = t->dtype, .rank = t->rank, .bytes = t->bytes};
        memcpy(entry[i].shape, t->shape, sizeof t->shape);
        entry[i].data = (void *)(data + t->offset);
    }
    return count;
}

/* Every tensor of the file has the bytes of its entry. */
static void check_contents(const pl_safetensors *s, const pl_st_list *list)
{
    pl_error err = {0};
    FUZZ_CHECK(pl_safetensors_match_all(s, list, &err) == PL_OK, "%s", err.text);
    for (size_t i = 0; i < list->count; i++) {
        pl_st_entry place = list->entries[i];
        place.data = malloc(place.bytes + 1);
        FUZZ_CHECK(place.data && pl_safetensors_read(s, &place, &err) == PL_OK, "%s", err.text);
        FUZZ_CHECK(memcmp(place.data, list->entries[i].data, place.bytes) == 0, "\"%s\" has other bytes", place.name);
        free(place.data);
    }
}

static void check_written(const pl_st_list *list)
{
    static pl_st_writer writer;
    char path[128];
    pl_error err = {0};
    pl_safetensors *s;
    snprintf(path, sizeof path, "%s/written", fuzz_folder());
    pl_status status = pl_safetensors_check(list, &err);
    if (status != PL_OK) { /* an empty list, a name that is too long: read, but not ours to write */
        fuzz_refused(status, &err, "", FUZZ_NAME);
        return;
    }
    FUZZ_CHECK(pl_safetensors_write(&writer, path, list, NULL, &err) == PL_OK, "%s", err.text);
    FUZZ_CHECK(pl_safetensors_open(path, &s, &err) == PL_OK, "what was written is refused: %s", err.text);
    check_contents(s, list);
    pl_safetensors_destroy(s);
}

static void check_file(const uint8_t *data, size_t size)
{
    pl_error err = {0};
    pl_safetensors *s, *memory;
    pl_status status = pl_safetensors_open(fuzz_file(0, data, size), &s, &err);
    if (status != PL_OK) {
        fuzz_refused(status, &err, "/fd/", FUZZ_NAME);
        return;
    }
    FUZZ_CHECK(pl_safetensors_parse(data, size, size, "input", &memory, &err) == PL_OK, "%s", err.text);
    check_cover(memory, size);
    if (pl_safetensors_count(s) <= TENSORS_MAX) {
        pl_st_entry entry[TENSORS_MAX];
        pl_st_list list = {.entries = entry, .count = entries_of(s, data, entry)};
        check_contents(s, &list);
        check_written(&list);
    }
    (void)pl_safetensors_metadata(s, "format");
    pl_safetensors_destroy(memory);
    pl_safetensors_destroy(s);
}

/* ---- the header alone ---- */

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

static void check_header(const uint8_t *data, size_t size)
{
    size_t header = size > 8 ? size - 8 : 0;
    while (header && data[8 + header - 1] != '}') header--;
    if (!header) return;
    size_t bytes = 8 + header + data_bytes_of((const char *)data + 8, header);
    uint8_t *file = calloc(bytes, 1);
    FUZZ_CHECK(file, "no memory");
    for (int i = 0; i < 8; i++) file[i] = (uint8_t)((uint64_t)header >> 8 * i);
    memcpy(file + 8, data + 8, header);
    for (size_t i = 8 + header; i < bytes; i++) file[i] = (uint8_t)i;
    check_file(file, bytes);
    free(file);
}

static pl_status read_once(const uint8_t *data, size_t size, pl_error *err)
{
    pl_safetensors *s;
    pl_status status = pl_safetensors_parse(data, size, size, "input", &s, err);
    pl_safetensors_destroy(s);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t before = pl_alloc_live_blocks();
    check_file(data, size);
    check_header(data, size);
    fuzz_without_memory(read_once, data, size);
    FUZZ_CHECK(pl_alloc_live_blocks() == before, "blocks are held still");
    return 0;
}
