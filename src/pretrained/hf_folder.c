/* A folder as save_pretrained of transformers writes it. */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "pretrained/hf_config.h"
#include "pretrained/model_impl.h"
#include "store/safetensors.h"

enum { INDEX_BYTES_MAX = 4 << 20 };

/* ---- names ---- */

static pl_status look(const pl_pretrained *p, const char *name, bool *is_there, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    PL_TRY(pl_path_join(path, sizeof path, p->path, name, err));
    return pl_file_look(path, is_there, err);
}

static pl_status find_parts(pl_pretrained *p, pl_error *err)
{
    static const char *const names[PL_PRETRAINED_PART_COUNT] = {
        "config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"};
    for (int i = 0; i < PL_PRETRAINED_PART_COUNT; i++) {
        char path[PL_FILE_PATH_MAX];
        bool is_there;
        PL_TRY(pl_path_join(path, sizeof path, p->path, names[i], err));
        PL_TRY(pl_file_look(path, &is_there, err));
        if (!is_there) continue;
        p->parts[i] = pl_pool_strdup(p->pool, path);
        if (!p->parts[i]) return pl_fail(err, PL_E_NOMEM, "%s: no memory to open it", p->path);
    }
    if (p->parts[PL_PRETRAINED_CONFIG]) return PL_OK;
    return pl_fail(err, PL_E_DATA,
                   "%s: has no config.json; the folder of a Hugging Face model or a .gguf file was expected", p->path);
}

/* Older forms, which only Python libraries read. */
static pl_status refuse_old_tokenizer(pl_pretrained *p, pl_error *err)
{
    bool has_old;
    if (p->parts[PL_PRETRAINED_TOKENIZER]) return PL_OK;
    PL_TRY(look(p, "tokenizer.model", &has_old, err));
    if (!has_old) return PL_OK;
    return pl_fail(err, PL_E_UNSUPPORTED,
                   "%s: has a tokenizer.model, but no tokenizer.json; this line of Python writes one: "
                   "transformers.AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)",
                   p->path);
}

static pl_status no_weights(const pl_pretrained *p, pl_error *err)
{
    bool has_pickle, has_pickles;
    PL_TRY(look(p, "pytorch_model.bin", &has_pickle, err));
    PL_TRY(look(p, "pytorch_model.bin.index.json", &has_pickles, err));
    if (has_pickle || has_pickles)
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "%s: has its weights as pytorch_model.bin only; this line of Python writes model.safetensors: "
                       "transformers.AutoModelForCausalLM.from_pretrained(FOLDER).save_pretrained(FOLDER)",
                       p->path);
    return pl_fail(err, PL_E_DATA, "%s: has neither model.safetensors nor model.safetensors.index.json", p->path);
}

/* ---- tensors ---- */

static pl_encoding encoding_of(pl_st_dtype type)
{
    switch (type) {
    case PL_ST_F32:
    case PL_ST_F64:
        return PL_ENCODING_F32;
    case PL_ST_F16:
        return PL_ENCODING_F16;
    case PL_ST_BF16:
        return PL_ENCODING_BF16;
    default:
        return PL_ENCODING_COUNT;
    }
}

static pl_status add_tensor(pl_pretrained *p, const pl_st_tensor *t, uint32_t file, pl_error *err)
{
    pl_source *s = pl_pretrained_add_source(p, t->name, err);
    if (!s) return PL_E_NOMEM;
    s->rank = t->rank, s->file = file, s->offset = t->offset;
    if (t->rank == 1) s->rows = 1, s->columns = t->shape[0];
    if (t->rank == 2) s->rows = t->shape[0], s->columns = t->shape[1];
    s->type = pl_st_dtype_name(t->dtype);
    s->encoding = encoding_of(t->dtype);
    s->is_f64 = t->dtype == PL_ST_F64;
    return PL_OK;
}

static pl_status add_shard(pl_pretrained *p, const char *name, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    pl_safetensors *st = NULL;
    pl_status status;
    const uint32_t file = (uint32_t)p->file_count;
    PL_TRY(pl_path_join(path, sizeof path, p->path, name, err));
    PL_TRY(pl_pretrained_add_file(p, path, err));
    PL_TRY(pl_safetensors_open(path, &st, err));
    for (size_t i = 0; i < pl_safetensors_count(st); i++)
        PL_TRY_DONE(add_tensor(p, pl_safetensors_at(st, i), file, err));
    status = pl_model_file_check(&p->files[file], err);
done:
    pl_safetensors_destroy(st);
    return status;
}

/* ---- shards ---- */

/* A name in the folder itself: an index must not lead out of it. */
static bool is_plain(const char *name)
{
    return name && *name && !strpbrk(name, "/\\") && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static int by_text(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* The names of the files, sorted, each once: *count of them. */
static pl_status list_shards(const json_t *map, const char *index, const char **names, size_t *count, pl_error *err)
{
    const char *tensor;
    json_t *file;
    size_t all = 0;
    json_object_foreach((json_t *)map, tensor, file)
    {
        names[all] = json_string_value(file);
        if (!is_plain(names[all]))
            return pl_fail(err, PL_E_DATA, "%s: the file of tensor \"%.120s\", \"%.80s\", is not a name in this folder",
                           index, tensor, names[all] ? names[all] : "");
        all++;
    }
    if (all) qsort(names, all, sizeof *names, by_text);
    *count = 0;
    for (size_t i = 0; i < all; i++)
        if (*count == 0 || strcmp(names[*count - 1], names[i]) != 0) names[(*count)++] = names[i];
    return PL_OK;
}

/* Every tensor is in the file that the index says, once, and there is no other. */
static pl_status check_index(const pl_pretrained *p, const json_t *map, const char *index, pl_error *err)
{
    const char *tensor;
    json_t *file;
    for (size_t i = 1; i < p->source_count; i++)
        if (strcmp(p->sources[i - 1].name, p->sources[i].name) == 0)
            return pl_fail(err, PL_E_DATA, "%s: tensor \"%.200s\" is in two of its files", index, p->sources[i].name);
    json_object_foreach((json_t *)map, tensor, file)
    {
        const pl_source *s = pl_pretrained_find_source(p, tensor);
        const char *path = s ? p->files[s->file].path : "", *name = strrchr(path, '/');
        if (!name || strcmp(name + 1, json_string_value(file)) != 0)
            return pl_fail(err, PL_E_DATA, "%s: tensor \"%.200s\" is not in %.200s", index, tensor,
                           json_string_value(file));
    }
    for (size_t i = 0; i < p->source_count && json_object_size(map) != p->source_count; i++)
        if (!json_object_get(map, p->sources[i].name))
            return pl_fail(err, PL_E_DATA, "%s: does not name tensor \"%.200s\" of %s", index, p->sources[i].name,
                           p->files[p->sources[i].file].path);
    return PL_OK;
}

static pl_status add_shards(pl_pretrained *p, const json_t *map, const char *index, pl_error *err)
{
    const char **names = pl_alloc(json_object_size(map) + 1, sizeof *names);
    size_t count = 0;
    pl_status status;
    PL_TRY_DONE(names ? PL_OK : pl_fail(err, PL_E_NOMEM, "%s: no memory for its files", index));
    PL_TRY_DONE(list_shards(map, index, names, &count, err));
    for (size_t i = 0; i < count; i++) PL_TRY_DONE(add_shard(p, names[i], err));
    pl_pretrained_sort_sources(p);
    status = check_index(p, map, index, err);
done:
    pl_free(names);
    return status;
}

static pl_status open_index(pl_pretrained *p, const char *name, pl_error *err)
{
    char index[PL_FILE_PATH_MAX];
    json_t *root;
    PL_TRY(pl_path_join(index, sizeof index, p->path, name, err));
    PL_TRY(pl_hf_json_read(index, INDEX_BYTES_MAX, &root, err));
    const json_t *map = json_object_get(root, "weight_map");
    const pl_status status = json_is_object(map) ? add_shards(p, map, index, err)
                                                 : pl_fail(err, PL_E_DATA, "%s: has no object weight_map", index);
    json_decref(root);
    return status;
}

static pl_status open_weights(pl_pretrained *p, pl_error *err)
{
    static const char one[] = "model.safetensors", several[] = "model.safetensors.index.json";
    bool has_one, has_several;
    PL_TRY(look(p, one, &has_one, err));
    PL_TRY(look(p, several, &has_several, err));
    if (has_one)
        PL_TRY(add_shard(p, one, err));
    else if (has_several)
        return open_index(p, several, err);
    else
        return no_weights(p, err);
    pl_pretrained_sort_sources(p);
    return PL_OK;
}

pl_status pl_hf_folder_open(pl_pretrained *p, pl_error *err)
{
    PL_TRY(find_parts(p, err));
    PL_TRY(pl_hf_config_read(p->parts[PL_PRETRAINED_CONFIG], &p->family, &p->model, &p->defaults, err));
    if (p->parts[PL_PRETRAINED_GENERATION_CONFIG])
        PL_TRY(pl_hf_generation_read(p->parts[PL_PRETRAINED_GENERATION_CONFIG], &p->defaults, err));
    PL_TRY(refuse_old_tokenizer(p, err));
    return open_weights(p, err);
}
