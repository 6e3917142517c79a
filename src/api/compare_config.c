/* The config for a form of a model, and for a step of a comparison. */
#include <stdio.h>
#include <string.h>

#include "api/compare.h"
#include "config/schema.h"

static pl_status set(pl_config *c, const char *key, const char *value, pl_error *err)
{
    return pl_config_set(c, key, value, "the comparison", err);
}

const pl_config_key *pl_compare_weights_key(const pl_config *c)
{
    for (const pl_config_key *k = pl_config_keys; k < PL_CONFIG_KEYS_END; k++)
        if (k->flags & PL_CONFIG_FLAG_WEIGHTS && pl_config_is_used(c, k) && !pl_config_is_meant_for_another(c, k))
            return k;
    return NULL;
}

static pl_status set_weights(const pl_compare *p, pl_config *c, const char *file, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    if (!p->weights) return PL_OK;
    const int n = file ? snprintf(path, sizeof path, "%s/%s.safetensors", p->folder, file) : snprintf(path, 8, "none");
    if (n < 0 || (size_t)n >= sizeof path) return pl_fail(err, PL_E_USAGE, "%.300s: the path is too long", p->folder);
    return set(c, p->weights->path, path, err);
}

pl_status pl_compare_forget_files(pl_config *c, pl_error *err)
{
    static const char *const plain[][2] = {
        {"infer.files", ""},      {"infer.to", "none"},      {"infer.npy", "none"},  {"infer.latency", "false"},
        {"infer.brief", "false"}, {"infer.seeded", "false"}, {"infer.batch", "auto"}};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) PL_TRY(set(c, plain[i][0], plain[i][1], err));
    return PL_OK;
}

static pl_status set_form(const pl_compare *p, int v, pl_config *c, pl_error *err)
{
    if (p->encoding) {
        PL_TRY(set(c, "model.weights", "arena", err)); /* memory is compared, too */
        PL_TRY(set(c, p->encoding->path, pl_compare_pretrained_forms[v].encoding, err));
        return set(c, "generate.activations", pl_compare_pretrained_forms[v].activations, err);
    }
    const pl_config_key *precision = pl_config_find_for(c, "<precision>"), *frozen = pl_config_find_for(c, "<frozen>");
    PL_TRY(set(c, precision->path, v == PL_VARIANT_BF16 ? "bf16" : "f32", err));
    if (frozen) PL_TRY(set(c, frozen->path, "f32", err));
    if (p->report.is_binary && v == PL_VARIANT_F32) PL_TRY(set(c, "model.binary", "none", err));
    return PL_OK;
}

static pl_status set_made(const pl_compare *p, int v, pl_config *c, pl_error *err)
{
    char path[PL_FILE_PATH_MAX];
    PL_TRY(set_form(p, v, c, err));
    PL_TRY(set_weights(p, c, p->by[v] == PL_COMPARE_BY_SEEDED ? NULL : "base", err));
    if (p->by[v] != PL_COMPARE_BY_QUANTIZE) return PL_OK;
    const int n = snprintf(path, sizeof path, "%s/%s.safetensors", p->folder, pl_compare_name(p, v));
    if (n < 0 || (size_t)n >= sizeof path) return pl_fail(err, PL_E_USAGE, "%.300s: the path is too long", p->folder);
    return set(c, "quantization.output", path, err);
}

static pl_status set_run(const pl_compare *p, int v, pl_config *c, pl_error *err)
{
    PL_TRY(set_form(p, v, c, err));
    return set_weights(p, c, pl_compare_is_base(p, v) ? "base" : pl_compare_name(p, v), err);
}

static pl_status set_step(const pl_compare *p, int v, pl_compare_step step, pl_config *c, pl_error *err)
{
    PL_TRY(pl_compare_forget_files(c, err));
    if (step != PL_COMPARE_RUN) PL_TRY(set(c, "memory.budget", "none", err)); /* the budget is for what is compared */
    if (step == PL_COMPARE_MAKE) return set_made(p, v, c, err);
    if (step != PL_COMPARE_BASE) return set_run(p, v, c, err);
    return set_form(p, p->report.is_binary ? PL_VARIANT_BINARY : PL_VARIANT_F32, c, err);
}

pl_status pl_compare_config(const pl_compare *p, int v, pl_compare_step step, char **text, size_t *bytes, pl_error *err)
{
    pl_config *c = pl_config_copy(p->config);
    if (!c) return pl_fail(err, PL_E_NOMEM, "no memory for the config");
    pl_status status = set_step(p, v, step, c, err);
    if (status == PL_OK) status = pl_config_text(c, PL_CONFIG_YAML, text, bytes, err);
    pl_config_destroy(c);
    return status;
}

/* ---- what the command line may say ---- */

/* What a comparison sets by itself, anew for each form. */
static const pl_config_key *find_own(const pl_config *c)
{
    static const char *const own[] = {
        "infer.files",         "infer.to",   "infer.npy",     "infer.latency",       "infer.brief", "infer.seeded",
        "quantization.output", "<encoding>", "model.weights", "generate.activations"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        const pl_config_key *key = pl_config_find_for(c, own[i]);
        const bool is_set = key && pl_config_origin_at(c, key)->level == PL_CONFIG_FROM_COMMAND_LINE;
        if (is_set && pl_config_is_used(c, key)) return key;
    }
    return NULL;
}

pl_status pl_compare_check_options(const pl_config *c, pl_error *err)
{
    static const pl_config_reader readers = 1 << PL_COMMAND_INFER | 1 << PL_COMMAND_QUANTIZE | 1 << PL_COMMAND_EVALUATE;
    const pl_config_key *own = find_own(c);
    if (!own) return pl_config_check_options(c, readers, err);
    return pl_fail(err, PL_E_USAGE, "%s: a comparison sets %s by itself, for each form anew; take it away",
                   pl_config_origin_at(c, own)->by, own->path);
}
