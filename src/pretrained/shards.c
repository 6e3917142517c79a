#include "pretrained/shards.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/size.h"

enum { ENTRY_BYTES = 160, HEADER_BYTES = 256 }; /* at most, of a tensor without its name in a header, and of the rest */

/* As transformers writes it. */
static const pl_st_text format = {"format", "pt"};

const char *pl_shards_name(const pl_shards *s, uint32_t shard, char name[PL_SHARD_NAME_BYTES])
{
    if (s->count == 1)
        snprintf(name, PL_SHARD_NAME_BYTES, "model.safetensors");
    else
        snprintf(name, PL_SHARD_NAME_BYTES, "model-%05" PRIu32 "-of-%05" PRIu32 ".safetensors", shard + 1, s->count);
    return name;
}

static pl_status deal_out(pl_shards *s, uint64_t most, pl_error *err)
{
    uint64_t used = HEADER_BYTES;
    s->count = 1;
    for (size_t i = 0; i < s->list->count; i++) {
        pl_written *w = &s->list->of[i];
        const uint64_t bytes = w->bytes + strlen(w->name) + ENTRY_BYTES;
        if (used > HEADER_BYTES && (bytes > most || used > most - bytes)) s->count++, used = HEADER_BYTES;
        used += bytes;
        w->file = s->count - 1;
    }
    if (s->count <= PL_SHARDS_MAX) return PL_OK;
    return pl_fail(err, PL_E_USAGE, "files of at most %" PRIu64 " bytes would be %" PRIu32 "; %d are supported", most,
                   s->count, PL_SHARDS_MAX);
}

static void fill_entry(pl_st_entry *e, const pl_written *w)
{
    static const pl_st_dtype types[] = {
        [PL_ENCODING_F32] = PL_ST_F32, [PL_ENCODING_BF16] = PL_ST_BF16, [PL_ENCODING_F16] = PL_ST_F16};
    *e = (pl_st_entry){.name = w->name, .dtype = types[w->encoding], .rank = w->is_vector ? 1 : 2, .bytes = w->bytes};
    e->shape[0] = (uint64_t)(w->is_vector || w->is_transposed ? w->columns : w->rows);
    e->shape[1] = (uint64_t)(w->is_transposed ? w->rows : w->columns);
}

static pl_st_list list_of(const pl_shards *s, uint32_t shard)
{
    size_t first = 0, end;
    while (first < s->list->count && s->list->of[first].file < shard) first++;
    for (end = first; end < s->list->count && s->list->of[end].file == shard;) end++;
    return (pl_st_list){.entries = s->entry + first, .count = end - first, .metadata = &format, .metadata_count = 1};
}

pl_status pl_shards_init(pl_shards *s, pl_written_list *l, uint64_t most, pl_error *err)
{
    *s = (pl_shards){.list = l, .entry = pl_alloc(l->count, sizeof *s->entry)};
    if (!s->entry) return pl_fail(err, PL_E_NOMEM, "no memory for the list of tensors");
    PL_TRY(deal_out(s, most, err));
    for (size_t i = 0; i < l->count; i++) fill_entry(&s->entry[i], &l->of[i]);
    for (uint32_t i = 0; i < s->count; i++) {
        const pl_st_list list = list_of(s, i);
        const uint64_t header = pl_safetensors_header_bytes(&list), file = pl_safetensors_file_bytes(&list);
        if (header > s->header_bytes) s->header_bytes = header;
        if (pl_size_add(s->bytes, file, &s->bytes)) return pl_fail(err, PL_E_DATA, "the model has too many bytes");
    }
    s->header = pl_alloc(s->header_bytes, 1);
    return s->header ? PL_OK : pl_fail(err, PL_E_NOMEM, "no memory for the header of a file");
}

void pl_shards_deinit(pl_shards *s)
{
    pl_free(s->entry);
    pl_free(s->header);
}

void pl_shards_print_index(const pl_shards *s, pl_str *to)
{
    char name[PL_SHARD_NAME_BYTES];
    uint64_t bytes = 0;
    pl_json j = pl_json_begin(to, false);
    for (size_t i = 0; i < s->list->count; i++) bytes += s->list->of[i].bytes;
    pl_json_object(&j);
    pl_json_key(&j, "metadata"), pl_json_object(&j);
    pl_json_kv_uint(&j, "total_size", bytes);
    pl_json_object_end(&j);
    pl_json_key(&j, "weight_map"), pl_json_object(&j);
    for (size_t i = 0; i < s->list->count; i++)
        pl_json_kv_string(&j, s->list->of[i].name, pl_shards_name(s, s->list->of[i].file, name));
    pl_json_object_end(&j);
    pl_json_object_end(&j);
    pl_str_append(to, "\n");
}

/* Wider numbers come first, as in the header. */
pl_status pl_shards_write(const pl_shards *s, uint32_t shard, const pl_pretrained *p, const pl_written_room *room,
                          pl_file_writer *file, pl_written_teller tell, void *context, pl_error *err)
{
    const pl_st_list list = list_of(s, shard);
    pl_safetensors_print_header(&list, s->header);
    PL_TRY(pl_file_write(file, s->header, (size_t)pl_safetensors_header_bytes(&list), err));
    for (uint32_t width = 4; width >= 2; width -= 2)
        for (size_t i = 0; i < list.count; i++) {
            const pl_written *w = &s->list->of[list.entries - s->entry + (ptrdiff_t)i];
            pl_written_loss loss;
            if (pl_st_dtype_bytes(list.entries[i].dtype) != width) continue;
            PL_TRY(pl_written_put(p, w, room, file, &loss, err));
            tell(context, w, &loss);
        }
    return PL_OK;
}
