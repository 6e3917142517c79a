#include "pretrained/pretrained.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "pretrained/gguf_model.h"
#include "pretrained/model_impl.h"
#include "store/safetensors.h"

/* ---- names ---- */

/* A mistyped file is no model's name. */
static bool is_file_name(const char *name)
{
    static const char *const ends[] = {".gguf", ".yaml", ".yml", ".json", ".safetensors"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (pl_ends_in_any_case(name, ends[i])) return true;
    return false;
}

/* "ORG/NAME" or "NAME", as the hub has them. */
static bool is_hub_name(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    const size_t org = strspn(name, letters);
    if (org == 0 || *name == '.' || *name == '-' || is_file_name(name)) return false;
    if (!name[org]) return true;
    const size_t rest = name[org] == '/' ? strspn(name + org + 1, letters) : 0;
    return rest > 0 && !name[org + 1 + rest] && !strstr(name, "..");
}

/* The commit that refs/main names; "" where there is none. */
static pl_status read_commit(const char *folder, char commit[64], pl_error *err)
{
    char path[PL_FILE_PATH_MAX], *text;
    bool is_there;
    *commit = 0;
    PL_TRY(pl_path_join(path, sizeof path, folder, "refs/main", err));
    PL_TRY(pl_file_look(path, &is_there, err));
    if (!is_there) return PL_OK;
    PL_TRY(pl_file_read_all(path, 4096, &text, NULL, err));
    const size_t length = strspn(text, "0123456789abcdef");
    if (length < 64) snprintf(commit, 64, "%.*s", (int)length, text);
    pl_free(text);
    return PL_OK;
}

/* The folder of a download; is_there: and whether there is one. */
static pl_status find_download(const char *name, const char *hub, char path[PL_FILE_PATH_MAX], bool *is_there,
                               pl_error *err)
{
    char folder[PL_FILE_PATH_MAX], escaped[512] = "models--", commit[64], snapshot[80];
    *is_there = false;
    for (const char *c = name; *c; c++) {
        const size_t n = strlen(escaped);
        if (n + 3 > sizeof escaped) return PL_OK;
        snprintf(escaped + n, sizeof escaped - n, *c == '/' ? "--" : "%c", *c);
    }
    PL_TRY(pl_path_join(folder, sizeof folder, hub, escaped, err));
    PL_TRY(read_commit(folder, commit, err));
    if (!*commit) return PL_OK;
    snprintf(snapshot, sizeof snapshot, "snapshots/%s", commit);
    PL_TRY(pl_path_join(path, PL_FILE_PATH_MAX, folder, snapshot, err));
    return pl_file_look(path, is_there, err);
}

static pl_status not_there(const char *name, const char *hub, pl_error *err)
{
    if (!is_hub_name(name)) return pl_fail(err, PL_E_CONFIG, "%s: there is no such file or folder", name);
    return pl_fail(err, PL_E_CONFIG,
                   "%s: there is no such file or folder, and no download of such a model %s%s; if a model of Hugging "
                   "Face's hub is meant, fetch config.json, model.safetensors (or model.safetensors.index.json and all "
                   "files that it names) and, where they are there, generation_config.json, tokenizer.json, "
                   "tokenizer_config.json and chat_template.jinja from https://huggingface.co/%.200s/tree/main into "
                   "one folder, and give the path of that folder",
                   name, hub ? "in " : "is known", hub ? hub : "", name);
}

static pl_status check_download(const char *name, const char *path, pl_error *err)
{
    char config[PL_FILE_PATH_MAX];
    bool is_there;
    PL_TRY(pl_path_join(config, sizeof config, path, "config.json", err));
    PL_TRY(pl_file_look(config, &is_there, err));
    if (is_there) return PL_OK;
    return pl_fail(err, PL_E_CONFIG,
                   "%s: its download in %s has no config.json; fetch the rest of its files, or, where they are in "
                   "GGUF, give the path of one",
                   name, path);
}

static pl_status copy_path(const char *name, char path[PL_FILE_PATH_MAX], pl_error *err)
{
    if ((size_t)snprintf(path, PL_FILE_PATH_MAX, "%s", name) < PL_FILE_PATH_MAX) return PL_OK;
    return pl_fail(err, PL_E_USAGE, "the path %.100s… is too long", name);
}

pl_status pl_pretrained_find(const char *name, const char *hub, char path[PL_FILE_PATH_MAX], pl_error *err)
{
    bool is_there;
    PL_TRY(pl_file_look(name, &is_there, err));
    if (is_there) return copy_path(name, path, err);
    if (hub && is_hub_name(name)) PL_TRY(find_download(name, hub, path, &is_there, err));
    return is_there ? check_download(name, path, err) : not_there(name, hub, err);
}

pl_status pl_pretrained_find_weights(const char *name, const char *hub, char path[PL_FILE_PATH_MAX], pl_error *err)
{
    char folder[PL_FILE_PATH_MAX];
    pl_file_kind kind;
    bool is_download = false;
    PL_TRY(pl_file_find_kind(name, &kind, err));
    if (kind == PL_FILE_NONE && hub && is_hub_name(name)) PL_TRY(find_download(name, hub, folder, &is_download, err));
    if (!is_download && kind != PL_FILE_FOLDER) return copy_path(name, path, err);
    return pl_safetensors_locate(is_download ? folder : name, "AutoModel", path, err);
}

/* ---- sources ---- */

pl_source *pl_pretrained_add_source(pl_pretrained *p, const char *name, pl_error *err)
{
    const char *copy = pl_pool_strdup(p->pool, name);
    if (!copy || pl_grow(&p->sources, &p->source_room, p->source_count, sizeof *p->sources)) {
        (void)pl_fail(err, PL_E_NOMEM, "%s: no memory for its list of tensors", p->path);
        return NULL;
    }
    p->sources[p->source_count] = (pl_source){.name = copy};
    return &p->sources[p->source_count++];
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const pl_source *)a)->name, ((const pl_source *)b)->name);
}

void pl_pretrained_sort_sources(pl_pretrained *p)
{
    if (p->source_count) qsort(p->sources, p->source_count, sizeof *p->sources, by_name);
}

pl_source *pl_pretrained_find_source(const pl_pretrained *p, const char *name)
{
    const pl_source wanted = {.name = name};
    return p->source_count ? bsearch(&wanted, p->sources, p->source_count, sizeof *p->sources, by_name) : NULL;
}

/* ---- opening ---- */

static pl_status add_gguf_sources(pl_pretrained *p, pl_error *err)
{
    for (size_t i = 0; i < pl_gguf_tensor_count(p->gguf); i++) {
        const pl_gguf_tensor *t = pl_gguf_tensor_at(p->gguf, i);
        pl_source *s = pl_pretrained_add_source(p, t->name, err);
        if (!s) return PL_E_NOMEM;
        s->rank = t->ne[2] == 1 && t->ne[3] == 1 ? (t->ne[1] == 1 ? 1 : 2) : t->rank;
        if (s->rank <= 2) s->rows = t->ne[1], s->columns = t->ne[0];
        s->type = pl_gguf_type_name(t->type);
        s->encoding = t->encoding;
        s->offset = t->offset;
    }
    return PL_OK;
}

static pl_status open_gguf(pl_pretrained *p, pl_error *err)
{
    p->files = pl_alloc(1, sizeof *p->files);
    if (!p->files) return pl_fail(err, PL_E_NOMEM, "%s: no memory to open it", p->path);
    PL_TRY(pl_model_file_open(p->files, p->path, err));
    p->file_count = 1;
    PL_TRY(pl_gguf_open(p->files, &p->gguf, err));
    PL_TRY(pl_gguf_model_read(p->gguf, p->files, &p->family, &p->model, &p->defaults, err));
    PL_TRY(add_gguf_sources(p, err));
    return pl_model_file_check(p->files, err);
}

static pl_status open_path(pl_pretrained *p, const char *path, pl_error *err)
{
    struct stat st;
    p->pool = pl_pool_create();
    p->path = p->pool ? pl_pool_strdup(p->pool, path) : NULL;
    if (!p->path) return pl_fail(err, PL_E_NOMEM, "%s: no memory to open it", path);
    if (stat(path, &st)) return pl_fail(err, PL_E_DATA, "%s: cannot be opened: %s", path, strerror(errno));
    PL_TRY(S_ISDIR(st.st_mode) ? pl_hf_folder_open(p, err) : open_gguf(p, err));
    return pl_weights_map_apply(p, err);
}

pl_status pl_pretrained_open(const char *path, pl_pretrained **out, pl_error *err)
{
    pl_pretrained *p = pl_alloc(1, sizeof *p);
    *out = NULL;
    if (!p) return pl_fail(err, PL_E_NOMEM, "%s: no memory to open it", path);
    p->defaults = (pl_pretrained_defaults){
        .bos = PL_PRETRAINED_NO_TOKEN, .eos = PL_PRETRAINED_NO_TOKEN, .pad = PL_PRETRAINED_NO_TOKEN};
    const pl_status status = open_path(p, path, err);
    if (status == PL_OK)
        *out = p;
    else
        pl_pretrained_close(p);
    return status;
}

void pl_pretrained_close(pl_pretrained *p)
{
    if (!p) return;
    pl_gguf_destroy(p->gguf);
    for (size_t i = 0; i < p->file_count; i++) pl_model_file_close(&p->files[i]);
    pl_free(p->files);
    pl_free(p->sources);
    pl_free(p->tensors);
    pl_free(p->taken);
    if (p->pool) pl_pool_destroy(p->pool);
    pl_free(p);
}

/* ---- what is in it ---- */

const pl_causal_lm *pl_pretrained_model(const pl_pretrained *p) { return &p->model; }
size_t pl_pretrained_tensor_count(const pl_pretrained *p) { return p->tensor_count; }
const pl_pretrained_tensor *pl_pretrained_tensor_at(const pl_pretrained *p, size_t index) { return &p->tensors[index]; }

const pl_pretrained_tensor *pl_pretrained_tensor_find(const pl_pretrained *p, const char *name)
{
    for (size_t i = 0; i < p->tensor_count; i++)
        if (strcmp(p->tensors[i].name, name) == 0) return &p->tensors[i];
    return NULL;
}

static bool is_one_of(const char *name, const char *const *names)
{
    while (*names && strcmp(*names, name) != 0) names++;
    return *names != NULL;
}

static bool has_fewer_bits(pl_encoding e, pl_encoding than)
{
    return pl_encoding_row_bytes(e, PL_ENCODING_BLOCK_MAX) < pl_encoding_row_bytes(than, PL_ENCODING_BLOCK_MAX);
}

pl_encoding pl_pretrained_fit(pl_encoding wanted, int64_t columns, bool is_vocabulary)
{
    if (is_vocabulary && has_fewer_bits(wanted, PL_ENCODING_Q8_0)) wanted = PL_ENCODING_Q8_0;
    return pl_encoding_row_bytes(wanted, columns) >= 0 ? wanted : PL_ENCODING_F32;
}

pl_encoding pl_pretrained_use_as(const pl_pretrained_tensor *t, pl_encoding wanted)
{
    static const char *const places[] = {"model.embed_positions.weight", NULL}, *const words[] = {
                                                                                    "model.embed_tokens.weight",
                                                                                    "lm_head.weight", NULL};
    if (t->rows == 1 || t->only_f32 || is_one_of(t->name, places)) return PL_ENCODING_F32;
    return wanted == PL_ENCODING_COUNT ? t->encoding : pl_pretrained_fit(wanted, t->columns, is_one_of(t->name, words));
}

size_t pl_pretrained_file_count(const pl_pretrained *p) { return p->file_count; }
const char *pl_pretrained_file_path(const pl_pretrained *p, size_t index) { return p->files[index].path; }
const char *pl_pretrained_path(const pl_pretrained *p, pl_pretrained_part part) { return p->parts[part]; }
const pl_gguf *pl_pretrained_gguf(const pl_pretrained *p) { return p->gguf; }
const pl_pretrained_defaults *pl_pretrained_generation(const pl_pretrained *p) { return &p->defaults; }

/* ---- reading ---- */

pl_status pl_pretrained_read_rows(const pl_pretrained *p, const pl_pretrained_tensor *t, const pl_pretrained_rows *rows,
                                  pl_encoding to, void *into, void *staging, size_t staging_bytes, pl_error *err)
{
    const pl_taken *how = &p->taken[t - p->tensors];
    const pl_tensor_source from = {.file = &p->files[t->file],
                                   .name = how->source->name,
                                   .offset = how->source->offset,
                                   .encoding = t->encoding,
                                   .is_f64 = how->source->is_f64,
                                   .adds_one = t->only_f32 && !rows->is_stored,
                                   .columns = (int64_t)how->source->columns,
                                   .first = how->first + rows->first,
                                   .pair_heads = how->pair_heads * rows->count / t->rows,
                                   .is_vector = how->is_vector,
                                   .is_transposed = how->is_transposed};
    const pl_tensor_place place = {.rows = rows->count, .columns = t->columns, .encoding = to, .data = into};
    PL_TRY(pl_model_file_check(from.file, err));
    PL_TRY(pl_tensor_read(&from, &place, staging, staging_bytes, err));
    return pl_model_file_check(from.file, err);
}

pl_status pl_pretrained_read(const pl_pretrained *p, const pl_pretrained_tensor *t, pl_encoding to, void *into,
                             void *staging, size_t staging_bytes, pl_error *err)
{
    const pl_pretrained_rows all = {.count = t->rows};
    return pl_pretrained_read_rows(p, t, &all, to, into, staging, staging_bytes, err);
}

int64_t pl_pretrained_row_unit(const pl_pretrained *p, const pl_pretrained_tensor *t)
{
    const pl_taken *how = &p->taken[t - p->tensors];
    return how->is_vector ? t->rows : how->pair_heads ? t->rows / how->pair_heads : 1;
}

bool pl_pretrained_is_as_stored(const pl_pretrained *p, const pl_pretrained_tensor *t)
{
    return !p->taken[t - p->tensors].source->is_f64;
}
