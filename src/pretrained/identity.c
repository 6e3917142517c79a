/* What tells a model from another one without reading all of it: everything before the numbers of each file (names,
 * shapes, settings, a GGUF file's tokenizer), config.json, and a page from the middle of each tensor. The same model
 * has the same identity wherever it lies and whenever it was copied. Numbers that were changed elsewhere in a tensor,
 * and nowhere in its middle, are not seen. */
#include <fcntl.h>

#include "base/checksum.h"
#include "pretrained/model_impl.h"

enum { PAGE = PL_TENSOR_STAGING_MIN };

typedef struct identifying {
    const pl_pretrained *model;
    unsigned char *staging;
    size_t room;
    pl_checksum sum;
} identifying;

static pl_status add_range(identifying *h, const pl_model_file *f, uint64_t from, uint64_t to, pl_error *err)
{
    while (from < to) {
        const size_t n = to - from < h->room ? (size_t)(to - from) : h->room;
        PL_TRY(pl_model_file_read(f, from, h->staging, n, err));
        pl_checksum_update(&h->sum, h->staging, n);
        from += n;
    }
    return PL_OK;
}

static uint64_t bytes_of(const pl_source *s)
{
    if (s->encoding >= PL_ENCODING_COUNT) return 0;
    const uint64_t bytes = s->rows * s->columns / (uint64_t)pl_encoding_block(s->encoding) *
                           (uint64_t)pl_encoding_block_bytes(s->encoding);
    return s->is_f64 ? 2 * bytes : bytes;
}

/* Where the numbers of a file begin. */
static uint64_t head_bytes(const pl_pretrained *p, uint32_t file)
{
    uint64_t bytes = p->files[file].bytes;
    for (size_t i = 0; i < p->source_count; i++)
        if (p->sources[i].file == file && p->sources[i].offset < bytes) bytes = p->sources[i].offset;
    return bytes;
}

static pl_status add_heads(identifying *h, pl_error *err)
{
    const pl_pretrained *p = h->model;
    for (uint32_t i = 0; i < p->file_count; i++) {
        pl_checksum_update(&h->sum, &p->files[i].bytes, sizeof p->files[i].bytes);
        PL_TRY(add_range(h, &p->files[i], 0, head_bytes(p, i), err));
    }
    return PL_OK;
}

static pl_status add_middles(identifying *h, pl_error *err)
{
    for (size_t i = 0; i < h->model->source_count; i++) {
        const pl_source *s = &h->model->sources[i];
        const uint64_t bytes = bytes_of(s), some = bytes < PAGE ? bytes : PAGE, from = s->offset + (bytes - some) / 2;
        PL_TRY(add_range(h, &h->model->files[s->file], from, from + some, err));
    }
    return PL_OK;
}

/* Single pages: what the kernel would read ahead of each is not wanted. */
static void advise(const pl_pretrained *p, int how)
{
    for (size_t i = 0; i < p->file_count; i++) (void)posix_fadvise(p->files[i].fd, 0, 0, how);
}

static pl_status add_config(identifying *h, pl_error *err)
{
    const char *path = h->model->parts[PL_PRETRAINED_CONFIG];
    uint64_t value, bytes;
    if (!path) return PL_OK;
    PL_TRY(pl_checksum_file(path, h->staging, h->room, &value, &bytes, err));
    pl_checksum_update(&h->sum, &value, sizeof value);
    return PL_OK;
}

pl_status pl_pretrained_identify(const pl_pretrained *p, void *staging, size_t staging_bytes, uint64_t *hash,
                                 pl_error *err)
{
    identifying h = {.model = p, .staging = staging, .room = staging_bytes};
    pl_checksum_init(&h.sum);
    PL_TRY(add_config(&h, err));
    PL_TRY(add_heads(&h, err));
    advise(p, POSIX_FADV_RANDOM);
    const pl_status status = add_middles(&h, err);
    advise(p, POSIX_FADV_NORMAL);
    *hash = pl_checksum_value(&h.sum);
    return status;
}
