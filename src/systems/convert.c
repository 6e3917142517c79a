/* A pretrained model in another form. The model is opened and checked as for any use; then what is written follows from
 * the same table by which it was read (pretrained/weights_map.c). */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json_read.h"
#include "systems/convert.h"
#include "systems/files.h"

void pl_convert_note(pl_conversion *c, const char *sentence)
{
    char *note = c->done->note;
    const size_t used = strlen(note);
    if (*sentence) snprintf(note + used, sizeof c->done->note - used, "%s%s", used ? "; " : "", sentence);
}

pl_side_file *pl_convert_add_side(pl_conversion *c, const char *name)
{
    pl_side_file *s = &c->side[c->sides++];
    *s = (pl_side_file){.name = name};
    return s;
}

/* ---- where to ---- */

/* A folder in which a killed conversion left files that are not whole yet counts for nothing. */
static pl_status check_folder(const char *out, pl_error *err)
{
    DIR *d = opendir(out);
    bool is_ours = d != NULL;
    for (const struct dirent *e; is_ours && (e = readdir(d));)
        is_ours =
            strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || pl_ends_with(e->d_name, PL_FILE_TEMPORARY);
    if (d) closedir(d);
    return is_ours ? PL_OK
                   : pl_fail(err, PL_E_USAGE, "%s: is there already; remove it, or give another name for the new model",
                             out);
}

pl_status pl_convert_check_free(const pl_conversion *c, pl_error *err)
{
    bool is_there;
    PL_TRY(pl_file_look(c->out, &is_there, err));
    return is_there ? check_folder(c->out, err) : PL_OK;
}

static pl_status check_out(const pl_conversion *c, const char *model, pl_error *err)
{
    if (!*c->out) return pl_fail(err, PL_E_USAGE, "the name of the new model is empty");
    if (pl_files_are_one(model, c->out))
        return pl_fail(err, PL_E_USAGE, "%s: is the model itself; give another name for the new one", c->out);
    PL_TRY(pl_file_check_free(c->out, NULL, err));
    return pl_convert_check_free(c, err);
}

/* ---- how ---- */

static pl_status check_shards(const pl_conversion *c, pl_error *err)
{
    if (!c->to_gguf || c->o->shard_bytes == 0) return PL_OK;
    return pl_fail(err, PL_E_USAGE,
                   "%s: a GGUF file is written whole; leave out `shard-size`, or give the name of a folder", c->out);
}

static pl_status check_encoding(pl_conversion *c, pl_error *err)
{
    const char *name = c->o->encoding;
    c->wanted = PL_ENCODING_COUNT;
    if (!name) return PL_OK;
    if (!pl_encoding_parse(name, &c->wanted) || pl_encoding_is_whole(c->wanted))
        return pl_fail(err, PL_E_USAGE,
                       "`encoding` \"%.40s\" is unknown; f32, bf16, f16, q8_0, q5_1, q5_0, q4_1 or q4_0 was expected",
                       name);
    if (!pl_encoding_is_written(c->wanted))
        return pl_fail(err, PL_E_UNSUPPORTED,
                       "`encoding` %s is only read; q8_0, q5_1, q5_0, q4_1 and q4_0 are those in blocks that are "
                       "written",
                       pl_encoding_name(c->wanted));
    if (c->to_gguf || pl_encoding_block(c->wanted) == 1) return PL_OK;
    return pl_fail(err, PL_E_USAGE,
                   "`encoding` %s has no place in a folder; give a name that ends in .gguf, or f32, bf16 or f16",
                   pl_encoding_name(c->wanted));
}

/* The encoding of most of the numbers. */
static pl_encoding find_most(const pl_written_list *l)
{
    int64_t numbers[PL_ENCODING_COUNT] = {0};
    pl_encoding most = PL_ENCODING_F32;
    for (size_t i = 0; i < l->count; i++)
        if (!l->of[i].is_vocabulary) numbers[l->of[i].encoding] += l->of[i].rows * l->of[i].columns;
    for (int e = 0; e < PL_ENCODING_COUNT; e++)
        if (numbers[e] > numbers[most]) most = (pl_encoding)e;
    return most;
}

static void note_rounding(pl_conversion *c)
{
    for (size_t i = 0; i < c->list.count; i++) {
        const pl_written *w = &c->list.of[i];
        const bool is_packed = pl_encoding_block(w->part[0]->encoding) > 1 && pl_encoding_block(w->encoding) > 1;
        if (!is_packed || w->encoding == w->part[0]->encoding) continue;
        pl_convert_note(c, "numbers that were rounded to blocks before are rounded again; from the model in 16 or 32 "
                           "bits the errors would be smaller");
        return;
    }
}

/* ---- what ---- */

/* Keys of a GGUF file stay, but for those that follow from the new one. */
static pl_status copy_keys(pl_conversion *c, const pl_gguf *g, pl_error *err)
{
    for (size_t i = 0; i < pl_gguf_value_count(g); i++) {
        const pl_gguf_value *v = pl_gguf_value_at(g, i);
        const bool is_made = strcmp(v->key, "general.file_type") == 0 || strcmp(v->key, "general.alignment") == 0 ||
                             strcmp(v->key, "general.quantization_version") == 0;
        const bool is_left = c->o->without_tokenizer && strncmp(v->key, "tokenizer.", 10) == 0;
        if (!is_made && !is_left) PL_TRY(pl_gguf_put_value(&c->keys, g, v, err));
    }
    const pl_rope_scaling *s = pl_pretrained_model(c->from)->rope;
    if (s->divisors) c->words.divisors = (pl_gguf_vector){"rope_freqs.weight", s->divisor, (uint64_t)s->divisors};
    pl_gguf_put_u32(&c->keys, "general.file_type", pl_gguf_file_type(c->matrices));
    pl_gguf_put_u32(&c->keys, "general.quantization_version", 2);
    return PL_OK;
}

static pl_status make_keys(pl_conversion *c, pl_error *err)
{
    const pl_gguf *g = pl_pretrained_gguf(c->from);
    if (g) return copy_keys(c, g, err);
    PL_TRY(pl_gguf_model_write(c->from, c->matrices, &c->keys, &c->words, err));
    pl_convert_note(c, c->words.note);
    return c->o->without_tokenizer ? PL_OK : pl_convert_put_tokenizer(c, err);
}

static pl_status copy_sides(pl_conversion *c, pl_error *err)
{
    static const char *const names[PL_PRETRAINED_PART_COUNT] = {
        "config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"};
    for (int i = 0; i < PL_PRETRAINED_PART_COUNT; i++) {
        const char *path = pl_pretrained_path(c->from, (pl_pretrained_part)i);
        const bool is_left = c->o->without_tokenizer && i >= PL_PRETRAINED_TOKENIZER;
        if (!path || is_left) continue;
        pl_side_file *s = pl_convert_add_side(c, names[i]);
        if (i == PL_PRETRAINED_CONFIG && c->wanted != PL_ENCODING_COUNT)
            PL_TRY(pl_hf_config_with_dtype(path, c->wanted, &s->text, err));
        else
            s->copied = path;
    }
    return PL_OK;
}

static pl_status prepare(pl_conversion *c, const char *model, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    PL_TRY(pl_pretrained_find(model, NULL, path, err));
    PL_TRY(check_out(c, path, err));
    PL_TRY(check_encoding(c, err));
    PL_TRY(check_shards(c, err));
    PL_TRY(pl_pretrained_open(path, &c->from, err));
    PL_TRY(pl_written_list_make(c->from, c->to_gguf, &c->list, err));
    if (c->list.left_out && !c->to_gguf)
        return pl_fail(
            err, PL_E_UNSUPPORTED,
            "%s: tensor %s is of the part that sees pictures, which is not written; a GGUF file (a name that "
            "ends in .gguf) gets the language model alone",
            path, c->list.left_out);
    PL_TRY(pl_written_list_encode(&c->list, c->to_gguf, c->wanted, err));
    c->matrices = c->wanted == PL_ENCODING_COUNT ? find_most(&c->list) : c->wanted;
    note_rounding(c);
    if (c->to_gguf) return make_keys(c, err);
    return pl_pretrained_gguf(c->from) ? pl_convert_add_tokenizer(c, err) : copy_sides(c, err);
}

static void release(pl_conversion *c)
{
    pl_pretrained_close(c->from);
    pl_written_list_deinit(&c->list);
    pl_written_room_deinit(&c->room);
    pl_str_deinit(&c->keys.text);
    pl_str_deinit(&c->header);
    pl_shards_deinit(&c->shards);
    for (size_t i = 0; i < c->sides; i++) pl_str_deinit(&c->side[i].text);
    pl_free(c->file);
}

static pl_status convert(pl_conversion *c, const char *model, pl_error *err)
{
    pl_alloc_meter *before = pl_alloc_set_meter(&c->meter);
    pl_json_count(true);
    pl_status status = prepare(c, model, err);
    if (status == PL_OK) status = pl_convert_plan(c, err);
    if (status == PL_OK) status = pl_convert_write(c, err);
    release(c);
    pl_json_count(false);
    (void)pl_alloc_set_meter(before);
    return status;
}

pl_status pl_convert(const char *model, const char *out, const pl_convert_options *o, pl_converted **done,
                     pl_error *err)
{
    pl_conversion *c = pl_alloc(1, sizeof *c);
    *done = pl_alloc(1, sizeof **done);
    pl_status status = PL_OK;
    if (!c || !*done) status = pl_fail(err, PL_E_NOMEM, "no memory to convert %.300s", model);
    if (status == PL_OK) {
        *c = (pl_conversion){.out = out, .o = o, .done = *done, .to_gguf = pl_ends_in_any_case(out, ".gguf")};
        status = convert(c, model, err);
    }
    pl_free(c);
    if (status != PL_OK) pl_converted_destroy(*done), *done = NULL;
    return status;
}

void pl_converted_destroy(pl_converted *done)
{
    if (!done) return;
    pl_free((void *)done->tensor);
    pl_free(done);
}
