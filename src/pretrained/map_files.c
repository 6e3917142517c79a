/* Tensors that are used in the pages of their files, where these have them exactly as kernels take them. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/process.h"
#include "base/size.h"
#include "pretrained/model_impl.h"

static uint64_t first_byte(const pl_pretrained *p, uint32_t file)
{
    uint64_t at = 0;
    for (uint32_t i = 0; i < file; i++) at += pl_align_up(p->files[i].bytes, PL_PAGE_BYTES);
    return at;
}

/* Vector code loads from any address of a number; blocks hold numbers of 16 bits. */
static uint64_t alignment(pl_encoding e) { return e == PL_ENCODING_F32 ? sizeof(float) : sizeof(uint16_t); }

uint64_t pl_pretrained_place(const pl_pretrained *p, const pl_pretrained_tensor *t, pl_encoding as)
{
    const pl_taken *how = &p->taken[t - p->tensors];
    const bool is_same = as == t->encoding && !how->source->is_f64 && !t->only_f32;
    if (!is_same || how->is_transposed || how->pair_heads) return PL_PRETRAINED_NO_PLACE;
    const int64_t first = how->first * (how->is_vector ? 1 : t->columns);
    const uint64_t before = (uint64_t)(first / pl_encoding_block(as) * pl_encoding_block_bytes(as));
    const uint64_t place = first_byte(p, t->file) + how->source->offset + before;
    return place % alignment(as) ? PL_PRETRAINED_NO_PLACE : place;
}

static pl_status map_file(const pl_model_file *f, unsigned char *at, uint64_t bytes, pl_error *err)
{
    PL_TRY(pl_model_file_check(f, err));
    if (mmap(at, bytes, PROT_READ, MAP_PRIVATE | MAP_FIXED, f->fd, 0) != MAP_FAILED) return PL_OK;
    return pl_fail(err, PL_E_STORAGE, "%s: cannot be mapped: %s; take `model.weights` arena", f->path, strerror(errno));
}

pl_status pl_pretrained_map(const pl_pretrained *p, void *at, uint64_t bytes, pl_error *err)
{
    for (uint32_t i = 0; i < p->file_count; i++) {
        const uint64_t first = first_byte(p, i);
        if (first >= bytes) break;
        const uint64_t room = bytes - first, all = p->files[i].bytes;
        if (all) PL_TRY(map_file(&p->files[i], (unsigned char *)at + first, all < room ? all : room, err));
    }
    return PL_OK;
}

pl_status pl_pretrained_check_mapped(const pl_pretrained *p, pl_error *err)
{
    for (uint32_t i = 0; i < p->file_count; i++) PL_TRY(pl_model_file_check_held(&p->files[i], err));
    return PL_OK;
}

const char *pl_pretrained_file_at(const pl_pretrained *p, uint64_t place)
{
    for (uint32_t i = 0; i < p->file_count; i++) {
        const uint64_t bytes = pl_align_up(p->files[i].bytes, PL_PAGE_BYTES);
        if (place < bytes) return p->files[i].path;
        place -= bytes;
    }
    return NULL;
}
