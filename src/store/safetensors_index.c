/* A model in several files, as Hugging Face's libraries write it: model.safetensors.index.json says in which of the
 * files next to it each tensor is. */
#include "store/safetensors_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_read.h"

enum { INDEX_BYTES_MAX = 4 << 20 };

/* ---- in a folder ---- */

static pl_status look(const char *folder, const char *name, bool *is_there, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    PL_TRY(pl_path_join(path, sizeof path, folder, name, err));
    return pl_file_look(path, is_there, err);
}

pl_status pl_safetensors_locate(const char *folder, const char *python_class, char path[PL_FILE_PATH_MAX],
                                pl_error *err)
{
    static const char *const names[] = {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
                                        "pytorch_model.bin.index.json"};
    bool has[4];
    for (int i = 0; i < 4; i++) PL_TRY(look(folder, names[i], &has[i], err));
    if (has[0] || has[1]) return pl_path_join(path, PL_FILE_PATH_MAX, folder, names[has[0] ? 0 : 1], err);
    if (has[2] || has[3])
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "%s: has its weights as pytorch_model.bin only; this line of Python writes model.safetensors: "
                       "transformers.%s.from_pretrained(FOLDER).save_pretrained(FOLDER)",
                       folder, python_class);
    return pl_fail(err, PL_E_DATA, "%s: has neither model.safetensors nor model.safetensors.index.json", folder);
}

/* ---- the index ---- */

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

/* A header takes many times its names of the heap: with all shards of a large model open that would be megabytes. */
static pl_status keep_names(pl_safetensors *s, pl_error *err)
{
    size_t bytes = 0;
    for (size_t i = 0; i < s->count; i++) bytes += strlen(s->tensors[i].name) + 1;
    char *at = s->names = pl_alloc(bytes, 1);
    if (!at) return pl_fail(err, PL_E_NOMEM, "%s: no memory for its list of tensors", s->file.path);
    for (size_t i = 0; i < s->count; i++) {
        const char *name = s->tensors[i].name;
        s->tensors[i].name = at;
        at = stpcpy(at, name) + 1;
    }
    json_decref(s->header);
    s->header = NULL;
    return PL_OK;
}

static pl_status open_shards(pl_safetensors *s, const char *const *names, size_t count, pl_error *err)
{
    const char *index = s->file.path, *slash = strrchr(index, '/');
    char path[PL_FILE_PATH_MAX];
    s->shard = pl_alloc(count, sizeof *s->shard);
    if (!s->shard) return pl_fail(err, PL_E_NOMEM, "%s: no memory for its files", index);
    for (size_t i = 0; i < count; i++) {
        const int n = snprintf(path, sizeof path, "%.*s%s", slash ? (int)(slash + 1 - index) : 0, index, names[i]);
        if (n < 0 || (size_t)n >= sizeof path) return pl_fail(err, PL_E_USAGE, "the path %.100s… is too long", path);
        PL_TRY(pl_safetensors_open_one(path, &s->shard[i], err));
        s->shards++;
        s->count += s->shard[i]->count;
        PL_TRY(keep_names(s->shard[i], err));
    }
    return PL_OK;
}

static pl_status unite(pl_safetensors *s, pl_error *err)
{
    size_t at = 0;
    s->by_name = pl_alloc(s->count, sizeof *s->by_name);
    if (!s->by_name) return pl_fail(err, PL_E_NOMEM, "%s: no memory for its list of tensors", s->file.path);
    for (uint32_t k = 0; k < s->shards; k++)
        for (size_t i = 0; i < s->shard[k]->count; i++) s->by_name[at++] = &s->shard[k]->tensors[i];
    pl_safetensors_sort(s);
    return PL_OK;
}

static const char *name_of(const pl_safetensors *shard)
{
    const char *slash = strrchr(shard->file.path, '/');
    return slash ? slash + 1 : shard->file.path;
}

static bool has_tensor(const pl_safetensors *s, const char *file, const char *tensor)
{
    for (uint32_t k = 0; k < s->shards; k++)
        if (strcmp(name_of(s->shard[k]), file) == 0) return pl_safetensors_find(s->shard[k], tensor) != NULL;
    return false;
}

/* Every tensor is in the file that the index says, once, and there is no other. */
static pl_status check_index(const pl_safetensors *s, const json_t *map, pl_error *err)
{
    const char *index = s->file.path, *tensor;
    json_t *file;
    for (size_t i = 1; i < s->count; i++)
        if (strcmp(s->by_name[i - 1]->name, s->by_name[i]->name) == 0)
            return pl_fail(err, PL_E_DATA, "%s: tensor \"%.200s\" is in two of its files", index, s->by_name[i]->name);
    json_object_foreach((json_t *)map, tensor, file)
    {
        if (!has_tensor(s, json_string_value(file), tensor))
            return pl_fail(err, PL_E_DATA, "%s: tensor \"%.200s\" is not in %.200s", index, tensor,
                           json_string_value(file));
    }
    for (uint32_t k = 0; k < s->shards; k++)
        for (size_t i = 0; i < s->shard[k]->count; i++)
            if (!json_object_get(map, s->shard[k]->tensors[i].name))
                return pl_fail(err, PL_E_DATA, "%s: does not name tensor \"%.200s\" of %s", index,
                               s->shard[k]->tensors[i].name, s->shard[k]->file.path);
    return PL_OK;
}

static pl_status open_files(pl_safetensors *s, const json_t *map, pl_error *err)
{
    if (!json_is_object(map)) return pl_fail(err, PL_E_DATA, "%s: has no object weight_map", s->file.path);
    const char **names = pl_alloc(json_object_size(map), sizeof *names);
    size_t count = 0;
    pl_status status;
    PL_TRY_DONE(names ? PL_OK : pl_fail(err, PL_E_NOMEM, "%s: no memory for its files", s->file.path));
    PL_TRY_DONE(list_shards(map, s->file.path, names, &count, err));
    PL_TRY_DONE(open_shards(s, names, count, err));
    PL_TRY_DONE(unite(s, err));
    status = check_index(s, map, err);
done:
    pl_free(names);
    return status;
}

pl_status pl_safetensors_open_index(const char *path, pl_safetensors **out, pl_error *err)
{
    json_t *root;
    *out = NULL;
    PL_TRY(pl_json_read_file(path, INDEX_BYTES_MAX, &root, err));
    pl_safetensors *s = pl_alloc(1, sizeof *s);
    if (s) *s = (pl_safetensors){.file = {.path = pl_strdup(path), .fd = -1}};
    pl_status status = s && s->file.path ? open_files(s, json_object_get(root, "weight_map"), err)
                                         : pl_fail(err, PL_E_NOMEM, "%s: no memory to open it", path);
    json_decref(root);
    if (status == PL_OK)
        *out = s;
    else
        pl_safetensors_destroy(s);
    return status;
}
