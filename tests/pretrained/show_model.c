/* show_model PATH [NUMBERS]: what the library reads of a pretrained model, as JSON on standard output, for tests in
 * Python to compare; into NUMBERS, all tensors in f32, one after the other. A refusal is {"refused": SENTENCE}. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/json_read.h"
#include "pretrained/pretrained.h"

static void print_rope(pl_json *j, const pl_causal_lm *m, const pl_rope_scaling *s)
{
    pl_json_object(j);
    pl_json_kv_double(j, "magnitude", pl_rope_magnitude(s));
    pl_json_key(j, "frequencies");
    pl_json_array(j);
    for (int64_t i = 0; i < m->head_width / 2; i++) pl_json_double(j, pl_rope_frequency(s, m->head_width / 2, i));
    pl_json_array_end(j);
    pl_json_object_end(j);
}

static void print_blocks(pl_json *j, const pl_causal_lm *m)
{
    pl_json_key(j, "ropes");
    pl_json_array(j);
    for (int i = 0; i < PL_CAUSAL_LM_ROPES; i++)
        if (m->rope[i].theta != 0) print_rope(j, m, &m->rope[i]);
    pl_json_array_end(j);
    pl_json_key(j, "blocks"); /* [which rope or −1, window] */
    pl_json_array(j);
    for (int64_t i = 0; i < m->layers; i++) {
        pl_json_array(j);
        pl_json_int(j, m->block[i].has_rope ? m->block[i].rope : -1);
        pl_json_int(j, m->block[i].window);
        pl_json_array_end(j);
    }
    pl_json_array_end(j);
}

static void print_model(pl_json *j, const pl_causal_lm *m)
{
    pl_json_kv_string(j, "family", m->family);
    pl_json_kv_string(j, "activation", pl_activation_name(m->activation));
#define INT(name)  pl_json_kv_int(j, #name, m->name)
#define REAL(name) pl_json_kv_double(j, #name, m->name)
#define BOOL(name) pl_json_kv_bool(j, #name, m->name)
    INT(width), INT(layers), INT(heads), INT(key_heads), INT(head_width), INT(inner), INT(vocab), INT(context);
#define FORM(name) pl_json_kv_bool(j, #name, m->form.name)
    FORM(is_layer_norm), FORM(has_post_norms), FORM(has_qk_norm), BOOL(has_query_bias), BOOL(has_output_bias);
    BOOL(has_inner_bias), FORM(is_gated), BOOL(is_tied), FORM(has_position_table);
    REAL(norm_eps), REAL(embedding_scale), REAL(attention_scale), REAL(attention_cap), REAL(output_cap);
    print_blocks(j, m);
}

static void print_defaults(pl_json *j, const pl_pretrained_defaults *d)
{
    pl_json_kv_int(j, "bos", d->bos);
    pl_json_kv_int(j, "eos", d->eos);
    pl_json_kv_int(j, "pad", d->pad);
    pl_json_key(j, "stop");
    pl_json_array(j);
    for (size_t i = 0; i < d->stops; i++) pl_json_int(j, d->stop[i]);
    pl_json_array_end(j);
    pl_json_kv_double_if(j, d->has_temperature, "temperature", d->temperature);
    pl_json_kv_double_if(j, d->has_top_p, "top_p", d->top_p);
    pl_json_kv_double_if(j, d->has_top_k, "top_k", (double)d->top_k);
    pl_json_kv_double_if(j, d->has_repetition_penalty, "repetition_penalty", d->repetition_penalty);
}

static pl_status write_numbers(const pl_pretrained *p, FILE *to, size_t staging_bytes, pl_error *err)
{
    void *staging = malloc(staging_bytes);
    pl_status status = PL_OK;
    for (size_t i = 0; status == PL_OK && i < pl_pretrained_tensor_count(p); i++) {
        const pl_pretrained_tensor *t = pl_pretrained_tensor_at(p, i);
        const size_t count = (size_t)(t->rows * t->columns);
        float *x = malloc(count * sizeof *x);
        status = pl_pretrained_read(p, t, PL_ENCODING_F32, x, staging, staging_bytes, err);
        if (status == PL_OK && fwrite(x, sizeof *x, count, to) != count)
            status = pl_fail(err, PL_E_STORAGE, "the numbers cannot be written");
        free(x);
    }
    free(staging);
    return status;
}

static void print_tensors(pl_json *j, const pl_pretrained *p)
{
    pl_json_key(j, "tensors");
    pl_json_array(j);
    for (size_t i = 0; i < pl_pretrained_tensor_count(p); i++) {
        const pl_pretrained_tensor *t = pl_pretrained_tensor_at(p, i);
        pl_json_array(j);
        pl_json_string(j, t->name);
        pl_json_int(j, t->rows);
        pl_json_int(j, t->columns);
        pl_json_string(j, pl_encoding_name(t->encoding));
        pl_json_uint(j, t->bytes);
        pl_json_array_end(j);
    }
    pl_json_array_end(j);
}

static pl_status show(const char *path, const char *numbers, pl_json *j, pl_error *err)
{
    pl_pretrained *p = NULL;
    pl_alloc_meter heap = {0};
    pl_json_count(true);
    pl_alloc_set_meter(&heap);
    const pl_status opened = pl_pretrained_open(path, &p, err);
    pl_alloc_set_meter(NULL);
    pl_json_count(false);
    PL_TRY(opened);
    pl_json_kv_uint(j, "heap_bytes", heap.held_bytes);
    pl_json_kv_uint(j, "heap_peak_bytes", heap.peak_bytes);
    print_model(j, pl_pretrained_model(p));
    print_defaults(j, pl_pretrained_generation(p));
    print_tensors(j, p);
    pl_status status = PL_OK;
    const char *staging = getenv("STAGING_BYTES");
    FILE *to = numbers ? fopen(numbers, "wb") : NULL;
    if (to) status = write_numbers(p, to, staging ? (size_t)atoll(staging) : 1 << 20, err);
    if (to) fclose(to);
    pl_pretrained_close(p);
    return status;
}

int main(int argc, char **argv)
{
    pl_str out = {0};
    pl_error err = {0};
    pl_json j = pl_json_begin(&out, true);
    if (argc < 2) return 2;
    pl_json_object(&j);
    const pl_status status = show(argv[1], argc > 2 ? argv[2] : NULL, &j, &err);
    if (status != PL_OK) {
        pl_json_kv_string(&j, "refused", err.text);
        pl_json_kv_string(&j, "status", pl_status_name(status));
    }
    pl_json_object_end(&j);
    puts(pl_str_text(&out));
    pl_str_deinit(&out);
    if (pl_alloc_live_blocks()) fprintf(stderr, "%d blocks are held\n", (int)pl_alloc_live_blocks());
    return pl_alloc_live_blocks() ? 1 : 0;
}
