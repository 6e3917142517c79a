/* A folder as save_pretrained of transformers writes it. */
#include "pretrained/hf_config.h"
#include "pretrained/model_impl.h"
#include "store/safetensors.h"

/* ---- names ---- */

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
    char path[PL_FILE_PATH_MAX];
    bool has_old;
    if (p->parts[PL_PRETRAINED_TOKENIZER]) return PL_OK;
    PL_TRY(pl_path_join(path, sizeof path, p->path, "tokenizer.model", err));
    PL_TRY(pl_file_look(path, &has_old, err));
    if (!has_old) return PL_OK;
    return pl_fail(err, PL_E_UNSUPPORTED,
                   "%s: has a tokenizer.model, but no tokenizer.json; this line of Python writes one: "
                   "transformers.AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)",
                   p->path);
}

/* ---- tensors ---- */

static pl_status add_tensor(pl_pretrained *p, const pl_st_tensor *t, uint32_t file, pl_error *err)
{
    pl_source *s = pl_pretrained_add_source(p, t->name, err);
    if (!s) return PL_E_NOMEM;
    s->rank = t->rank, s->file = file, s->offset = t->offset;
    if (t->rank == 1) s->rows = 1, s->columns = t->shape[0];
    if (t->rank == 2) s->rows = t->shape[0], s->columns = t->shape[1];
    s->type = pl_st_dtype_name(t->dtype);
    s->encoding = pl_st_dtype_encoding(t->dtype);
    s->is_f64 = t->dtype == PL_ST_F64;
    return PL_OK;
}

static pl_status add_file(pl_pretrained *p, pl_safetensors *st, size_t index, pl_error *err)
{
    const pl_safetensors *of = pl_safetensors_file(st, index);
    for (size_t i = 0; i < pl_safetensors_count(of); i++)
        PL_TRY(add_tensor(p, pl_safetensors_at(of, i), (uint32_t)p->file_count, err));
    if (pl_grow(&p->files, &p->file_room, p->file_count, sizeof *p->files))
        return pl_fail(err, PL_E_NOMEM, "%s: no memory to open it", p->path);
    pl_safetensors_give_file(st, index, &p->files[p->file_count]);
    return pl_model_file_check(&p->files[p->file_count++], err);
}

static pl_status open_weights(pl_pretrained *p, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    pl_safetensors *st;
    pl_status status = PL_OK;
    PL_TRY(pl_safetensors_locate(p->path, "AutoModelForCausalLM", path, err));
    PL_TRY(pl_safetensors_open(path, &st, err));
    for (size_t i = 0; i < pl_safetensors_file_count(st) && status == PL_OK; i++) status = add_file(p, st, i, err);
    pl_safetensors_destroy(st);
    pl_pretrained_sort_sources(p);
    return status;
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
